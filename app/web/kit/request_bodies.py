"""Reading what was posted: strict JSON, or the flat fields of a form, into the models that the actions take.

Strict: a key twice, NaN, 1e400, broken UTF-8 or bottomless nesting is a 400 with its place; an unknown key or a wrong
type is a 422 with its pointer. The fields of a form are turned into the same shape first, so both go through the same
model and their errors have the same pointers. Knows no session.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl

import anyio.to_thread
from pydantic import BaseModel, Field, ValidationError
from starlette.datastructures import UploadFile
from starlette.requests import Request

from app import bounds
from app.core.json.text import parse
from app.core.options import Options, Root
from app.core.strict import Closed
from app.core.targets import Target
from app.web.door.denied import Denied, Fields, invalid
from app.web.kit import typed
from app.web.kit.errors import field_errors

COMMAND_LINE_LONGEST = 64 * 1024
"""Splitting a line takes the time of its square; this much takes less than a tenth of a second."""
_LISTS = frozenset(
    {f"{kind}_{column}" for kind in ("env", "header") for column in ("name", "value", "secret")}
    | {"root_uri", "root_name", "fill_name", "fill_value", "fill_keep", "save"}
)
"""Fields of a form that stand once for each row; of all others the last value counts."""

Model = TypeVar("Model", bound=BaseModel)


class Nothing(Closed):
    """The body of an action without parameters."""


class ConnectBody(Closed):
    target: Target
    options: Options = Options()
    confirm: str | None = None
    probe: bool = False
    """Find out anew which era the command speaks, whatever is remembered of it."""


class OptionsBody(Closed):
    options: Options = Options()


class RootsBody(Closed):
    roots: list[Root]


class CallBody(Closed):
    method: str = Field(min_length=1, max_length=1000)
    params: dict[str, Any] | None = None
    as_task: bool = False
    ttl: int | None = Field(default=None, gt=0, lt=10**15)
    timeout_ms: int | None = Field(default=None, gt=0, le=24 * 3_600_000)
    notification: bool = False
    quiet: bool = False
    force: bool = False
    """Send it although the rules for tasks say otherwise."""


class FormErrors(Denied):
    """The fields of a form do not fit. Raised for forms only: a page may show the form again with what was typed."""

    def __init__(self, fields: Fields) -> None:
        super().__init__(422, "invalid", "Please fix the marked fields.", fields=fields)


class Body:
    """What was posted: the object of a JSON text, or the fields of a form."""

    __slots__ = ("data", "is_form")

    def __init__(self, data: dict[str, Any], *, is_form: bool) -> None:
        self.data = data
        self.is_form = is_form

    def __bool__(self) -> bool:
        return bool(self.data)

    def text(self, name: str) -> str:
        """A text in it; empty when it is not there."""
        value = self.data.get(name)
        return value if isinstance(value, str) else ""

    @property
    def arguments(self) -> dict[str, str]:
        """The fields of a form that hold arguments (`arg.NAME`)."""
        return {name.removeprefix("arg."): self.text(name) for name in self.data if name.startswith("arg.")}

    def rows(self, *names: str) -> list[tuple[str, ...]]:
        """The rows of a form's list: one text for each of its columns. Rows without a first one are left out."""
        columns = [self.data.get(name, []) for name in names]
        longest = max((len(column) for column in columns), default=0)
        rows = [tuple(column[at] if at < len(column) else "" for column in columns) for at in range(longest)]
        return [row for row in rows if row[0].strip()]

    def read(self, model: type[Model], of_form: Callable[[Body], dict[str, Any]]) -> Model:
        """The body as a model. Raises FormErrors for a form, ValidationError for JSON."""
        if not self.is_form:
            return model.model_validate(self.data)
        try:
            return model.model_validate(of_form(self))
        except ValidationError as fault:
            raise FormErrors({_as_typed(where): texts for where, texts in field_errors(fault).items()}) from None


async def read(request: Request) -> Body:
    """The body of a request, by its content type."""
    if is_form(request):
        return Body(_by_name(await pairs(request)), is_form=True)
    raw = await request.body()
    if not raw:
        return Body({}, is_form=False)
    data = await _off_the_loop(raw, strict_json)
    if not isinstance(data, dict):
        raise Denied(400, "malformed", "The body must be a JSON object.")
    return Body(data, is_form=False)


def is_form(request: Request) -> bool:
    """Whether a form was posted rather than JSON; neither is Denied."""
    kind = _media_type(request)
    if kind in {"multipart/form-data", "application/x-www-form-urlencoded"}:
        return True
    if not kind or is_json(request):
        return False
    raise Denied(415, "media-type", "Send a form, or JSON with content-type application/json.")


async def pairs(request: Request) -> list[tuple[str, str]]:
    """The fields of a form as they were sent: in order, names more than once."""
    if _media_type(request) == "multipart/form-data":
        return await _multipart(request)
    most = request.app.state.settings.limits.form_fields
    found: list[tuple[str, str]] = await _off_the_loop(await request.body(), lambda raw: _urlencoded(raw, most))
    return found


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def _off_the_loop(raw: bytes, reader: Callable[[bytes], Any]) -> Any:
    return reader(raw) if len(raw) <= bounds.THREAD_ABOVE else await anyio.to_thread.run_sync(reader, raw)


# ------------------------------------------------------------------------------------------------------------- JSON


def strict_json(raw: bytes | str) -> Any:
    """The value of a JSON text that says one thing only. Denied, with the place, when it does not."""
    parsed = parse(raw.encode(errors="surrogatepass") if isinstance(raw, str) else raw, strict=True)
    if (fault := parsed.fault) is not None:
        where = f"line {fault.line}, column {fault.column}"
        raise Denied(400, "malformed", f"That is not JSON: {fault.what} at {where}.")
    if parsed.problem is not None:
        raise Denied(400, "malformed", parsed.problem)
    return parsed.value


# ------------------------------------------------------------------------------------------------------------ forms


def _urlencoded(raw: bytes, most: int) -> list[tuple[str, str]]:
    try:
        return parse_qsl(raw.decode(), keep_blank_values=True, max_num_fields=most, errors="strict")
    except UnicodeDecodeError:
        raise Denied(400, "malformed", "The form is not UTF-8.") from None
    except ValueError:
        raise Denied(413, "too-large", f"The form has more than {most:,} fields.") from None


async def _multipart(request: Request) -> list[tuple[str, str]]:
    limits = request.app.state.settings.limits
    async with request.form(
        max_files=limits.form_files, max_fields=limits.form_fields, max_part_size=limits.message_bytes
    ) as form:
        fields = form.multi_items()
        if any(isinstance(value, UploadFile) for _, value in fields):
            raise Denied(400, "malformed", "No file is expected here.")
        return [(name, value) for name, value in fields if isinstance(value, str)]


def _by_name(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in _LISTS:
            found.setdefault(name, []).append(value)
        else:
            found[name] = value
    return found


def connect_of_form(form: Body) -> dict[str, Any]:
    """The connect form: what was typed, in the shape of the JSON body."""
    body: dict[str, Any] = {"target": _target_of_form(form), "options": options_of_form(form)}
    if form.text("confirm"):
        body["confirm"] = form.text("confirm")
    return body


_AUTH: Final[dict[str, tuple[str, ...]]] = {
    "none": (),
    "bearer": ("token",),
    "oauth": ("client_id", "client_secret", "scopes"),
    "client-credentials": ("client_id", "client_secret", "private_key", "scopes"),
}
"""What of the form belongs to each kind; the fields of the others are not looked at."""


def _auth_of_form(form: Body) -> dict[str, Any]:
    """How to prove who one is, when the form says so. Secrets that are left blank stay out of it."""
    kind = form.text("auth_kind")
    said: dict[str, Any] = {name: form.text(f"auth_{name}").strip() for name in _AUTH.get(kind, ())}
    if "scopes" in said:
        said["scopes"] = said["scopes"].split()
    return {"kind": kind} | {name: value for name, value in said.items() if value} if kind else {}


def _target_of_form(form: Body) -> dict[str, Any]:
    transport = form.text("transport") or "stdio"
    if transport in {"http", "sse"}:
        headers = {name.strip(): value for name, value in form.rows("header_name", "header_value")}
        secret = _marked(form, "header")
        url = typed.with_scheme(form.text("url").strip())
        dialled = {"transport": transport, "url": url, "headers": headers, "secret": secret}
        tls = {name: form.text(f"tls_{name}").strip() for name in ("ca", "fingerprint")}
        auth = _auth_of_form(form)
        return dialled | ({"tls": tls} if any(tls.values()) else {}) | ({"auth": auth} if auth else {})
    if transport != "stdio":
        return {"transport": transport}
    target: dict[str, Any] = {
        "transport": "stdio",
        "cwd": typed.directory(form.text("cwd").strip()),
        "env": _env_of_form(form),
    }
    target["secret"] = _marked(form, "env")
    line = form.text("command_line")
    if len(line) > COMMAND_LINE_LONGEST:
        words = f"This is {len(line):,} characters long; a command line may have {COMMAND_LINE_LONGEST:,}."
        raise FormErrors({"/target/command_line": [words]})
    try:
        argv = shlex.split(line)
    except ValueError as fault:
        raise FormErrors({"/target/command_line": [f"This cannot be split into arguments: {fault}."]}) from None
    if not argv:
        raise FormErrors({"/target/command_line": ["Type the command that starts the server."]})
    if (offer := typed.shell_offer(line)) is not None:
        raise FormErrors({"/target/command_line": [typed.shell_words(offer)]})
    target["command"], target["args"] = argv[0], argv[1:]
    return target


def _marked(form: Body, kind: str) -> list[str]:
    """The rows that the person marked as secret."""
    return [name.strip() for name, mark in form.rows(f"{kind}_name", f"{kind}_secret") if mark]


def _env_of_form(form: Body) -> dict[str, str]:
    env: dict[str, str] = {}
    for name, value in form.rows("env_name", "env_value"):
        if name.strip() in env:
            raise FormErrors({"/target/env": [f"{name.strip()} stands there twice."]})
        env[name.strip()] = value
    return env


def options_of_form(form: Body) -> dict[str, Any]:
    """The connection options in a form (`option.KEY`); an empty field means the default."""
    found: dict[str, Any] = {}
    for field, text in form.data.items():
        if not field.startswith("option."):
            continue
        key = field.removeprefix("option.")
        if key in {"meta", "extensions"}:
            found[key] = json_field(text, f"/options/{key}")
        elif text.strip():
            found[key] = text.strip()
        elif key in Options.model_fields:
            found[key] = Options.model_fields[key].default
    return found


def roots_of_form(form: Body) -> dict[str, Any]:
    rows = form.rows("root_uri", "root_name")
    return {"roots": [{"uri": uri.strip(), "name": name.strip() or None} for uri, name in rows]}


def call_of_form(form: Body) -> dict[str, Any]:
    """The form of a call: a tool with its arguments, or any method with its params, as JSON text."""
    body: dict[str, Any] = {"method": form.text("method").strip()}
    if "params" in form.data:
        body["params"] = json_field(form.text("params"), "/params")
    elif "name" in form.data or "arguments" in form.data:
        arguments = json_field(form.text("arguments"), "/params/arguments")
        body["params"] = {"name": form.text("name"), "arguments": arguments}
    for name in ("timeout_ms", "ttl", "as_task", "notification", "quiet"):
        if form.text(name).strip():
            body[name] = form.text(name).strip()
    return body


def json_field(text: str, where: str) -> dict[str, Any]:
    """A field that holds a JSON object; empty means an empty one."""
    if not text.strip():
        return {}
    try:
        value = strict_json(text)
    except Denied as fault:
        raise FormErrors({where: [fault.message]}) from None
    if not isinstance(value, dict):
        raise FormErrors({where: ["This must be a JSON object, like {}."]})
    return value


def _as_typed(where: str) -> str:
    """A pointer into the JSON body as one into the form: there the command and its arguments are one line."""
    return "/target/command_line" if where.startswith(("/target/command", "/target/args")) else where


async def nothing(request: Request) -> None:
    """The body of an action without parameters: any key of a JSON body is one that does not exist."""
    (await read(request)).read(Nothing, lambda _: {})


def is_json(request: Request) -> bool:
    """Whether the body says that it is JSON."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"


# ------------------------------------------------------------------------------------------------------------ query


def waiting_seconds(request: Request) -> float:
    """How long the asker lets us wait, within the limit; 0 when not said."""
    text = request.query_params.get("wait", "0")
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not seconds >= 0:
        raise invalid({"/wait": ["A number of seconds, like 10."]})
    return min(seconds, float(request.app.state.settings.limits.wait_seconds))


def whole_number(request: Request, name: str) -> int | None:
    text = request.query_params.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise invalid({f"/{name}": ["A whole number, 0 or more."]})
    return int(text)
