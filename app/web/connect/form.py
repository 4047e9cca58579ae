"""The connect form with every option: what it shows, for the first page and for a session."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from app import secrecy
from app.core.options import LEVELS, Options
from app.core.revisions import HANDSHAKE_VERSIONS
from app.core.targets import AnyTarget, DemoTarget, HttpTarget, StdioTarget, target_digest, typed_line
from app.core.times import wire_time
from app.sessions import Identity, SessionRegistry, Workspace
from app.store import Kept
from app.web.connect.mcp_json import Entry
from app.web.kit import format
from app.web.kit.frame import Shell, shell
from app.web.kit.request_bodies import COMMAND_LINE_LONGEST
from app.web.kit.templates import Context
from app.web.kit.words import list_of, target_json, transport_words


@dataclass(slots=True, frozen=True)
class TargetLine:
    """One target that was saved, or used before."""

    id: str
    name: str
    label: str
    transport: str
    used: str
    missing: tuple[str, ...]


@dataclass(slots=True, frozen=True)
class ChoiceLine:
    """One server of a pasted file: connect to it, or why not."""

    name: str
    digest: str
    label: str
    transport: str
    names: tuple[str, ...]
    problem: str
    note: str

    @classmethod
    def of(cls, entry: Entry, digest: str) -> ChoiceLine:
        target = entry.target
        if target is None:
            return cls(entry.name, "", "", "", (), entry.problem, "")
        names = target.env if isinstance(target, StdioTarget) else target.headers
        words = transport_words(target)
        return cls(entry.name, digest, target.label, words, tuple(sorted(names)), "", entry.note)


@dataclass(slots=True, frozen=True)
class PairRow:
    """One variable or header in the form. The value of a secret never comes back to a page."""

    name: str = ""
    value: str = ""
    secret: bool = False
    kept: bool = False
    """Leaving it blank keeps the value that it has."""


@dataclass(slots=True, frozen=True)
class OptionField:
    """One connection option in the form: its control, its value and one line that explains it."""

    key: str
    label: str
    kind: str
    """`bool`, `number`, `select` or `json`."""
    value: str
    help: str
    group: str
    choices: tuple[tuple[str, str], ...] = ()
    error: str = ""


@dataclass(slots=True)
class ConnectFields:
    """The values and errors of the connect form, for home and for a session."""

    action: str
    transport: str
    values: dict[str, str]
    env: list[PairRow]
    headers: list[PairRow]
    options: list[OptionField]
    errors: dict[str, str]
    changed: str
    like: str
    """The session or the kept target whose secrets stay when they are left blank."""
    notice: str
    """Why nothing can be saved."""
    choices: list[ChoiceLine]
    masks_kept: bool = True
    """Whether the secrets behind the masks of the line or the address are still known."""


_ANY = ("", "not set")
_OPTIONS: tuple[tuple[str, str, str, str, str, tuple[tuple[str, str], ...]], ...] = (
    (
        "era",
        "Protocol era",
        "select",
        "How the conversation begins: with a handshake, to 2025-11-25, or without one, in 2026-07-28.",
        "The handshake",
        (("auto", "Find out"), ("legacy", "Handshake (to 2025-11-25)"), ("modern", "2026-07-28, no handshake")),
    ),
    (
        "protocol_version",
        "Protocol version",
        "select",
        "Which revision Parley proposes; the server may answer with another.",
        "The handshake",
        (("", "Newest"), *((version, version) for version in HANDSHAKE_VERSIONS)),
    ),
    ("sampling", "Sampling", "bool", "The server may ask for a text from a model.", "What Parley offers", ()),
    ("sampling_tools", "with tools", "bool", "Such a request may bring tools for the model.", "What Parley offers", ()),
    (
        "sampling_context",
        "with context",
        "bool",
        "Such a request may ask for context of other servers.",
        "What Parley offers",
        (),
    ),
    ("elicitation_form", "Forms", "bool", "The server may ask you to fill in a form.", "What Parley offers", ()),
    ("elicitation_url", "Links", "bool", "The server may ask you to open a link.", "What Parley offers", ()),
    ("roots", "Roots", "bool", "The server may see which directories you work in.", "What Parley offers", ()),
    ("ask_roots", "Ask before roots", "bool", "Every question for roots waits for you.", "What Parley offers", ()),
    (
        "receiver_tasks",
        "Receiver tasks",
        "bool",
        "The server may hand over its asks as tasks.",
        "What Parley offers",
        (),
    ),
    (
        "handshake_timeout_ms",
        "Time limit of the handshake",
        "number",
        "Milliseconds; empty means the setting of Parley, 30,000. A first start with npx or uvx may need more.",
        "Patience",
        (),
    ),
    ("request_timeout_ms", "Time limit of a call", "number", "Milliseconds.", "Patience", ()),
    (
        "reset_timeout_on_progress",
        "Progress renews it",
        "bool",
        "Each progress notification starts the time limit anew.",
        "Patience",
        (),
    ),
    ("max_total_timeout_ms", "At most in all", "number", "Milliseconds; empty means no such limit.", "Patience", ()),
    (
        "unattended_limit_ms",
        "Unattended limit",
        "number",
        "Milliseconds an ask waits when nobody is there; empty means until it expires.",
        "Patience",
        (),
    ),
    ("receiver_task_ttl_ms", "TTL of our tasks", "number", "Milliseconds, when the server names none.", "Tasks", ()),
    ("receiver_task_max_ttl_ms", "Longest TTL", "number", "Milliseconds; longer wishes are cut to this.", "Tasks", ()),
    ("poll_interval_ms", "Poll interval", "number", "Milliseconds that Parley suggests to the server.", "Tasks", ()),
    (
        "awaiting_user_status",
        "Status while you think",
        "select",
        "What tasks/get answers while an ask is open.",
        "Tasks",
        (("input_required", "input_required"), ("working", "working")),
    ),
    (
        "send_status_notifications",
        "Announce task states",
        "bool",
        "Send notifications/tasks/status when a task changes.",
        "Tasks",
        (),
    ),
    (
        "log_level",
        "Log level",
        "select",
        "Asked of the server right after the handshake; it may not support it.",
        "Extras",
        (_ANY, *((level, level) for level in LEVELS)),
    ),
    ("meta", "_meta", "json", "A JSON object that goes with every request.", "Extras", ()),
    ("extensions", "Extensions", "json", "A JSON object of extension capabilities to declare.", "Extras", ()),
)


def _option_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return format.pretty(value) if value else ""
    return "" if value is None else str(value)


def option_fields(options: Options, values: dict[str, Any], errors: dict[str, str]) -> list[OptionField]:
    """The options as form fields, with what the person had typed."""
    built = []
    for key, label, kind, help_text, group, choices in _OPTIONS:
        typed = values.get(f"option.{key}")
        typed = typed[-1] if isinstance(typed, list) and typed else typed
        value = typed if isinstance(typed, str) else _option_value(getattr(options, key))
        error = errors.get(f"/options/{key}", "")
        built.append(OptionField(key, label, kind, value, help_text, group, choices, error))
    return built


def _typed(values: dict[str, Any], name: str, otherwise: str) -> str:
    given = values.get(name, otherwise)
    return str(given[-1] if isinstance(given, list) and given else given)


def _pairs(target: AnyTarget | None, kind: str, missing: tuple[str, ...]) -> list[PairRow]:
    """The variables or headers that a target has, and those it had before it went to disk."""
    held: dict[str, str] = {}
    if kind == "env" and isinstance(target, StdioTarget):
        held = target.env
    elif kind == "header" and isinstance(target, HttpTarget):
        held = target.headers
    else:
        return []
    secret = target.secret_names
    rows = [
        PairRow(name, "" if name in secret else value, name in secret, name in secret)
        for name, value in sorted(held.items())
    ]
    return rows + [PairRow(name, secret=True) for name in missing if name not in held]


def _typed_pairs(values: dict[str, Any], kind: str, known: list[PairRow]) -> list[PairRow]:
    """The rows as they were typed, without the values of secrets."""
    names, texts, marks = (list_of(values, f"{kind}_{column}") for column in ("name", "value", "secret"))
    kept = {row.name for row in known if row.kept}
    rows = []
    for index, name in enumerate(names):
        value = texts[index] if index < len(texts) else ""
        sounds = secrecy.is_secret_variable if kind == "env" else secrecy.is_secret_header
        secret = bool(index < len(marks) and marks[index]) or sounds(name, value)
        value = "" if secret else value
        if name:
            rows.append(PairRow(name, value, secret, name in kept))
    return rows


def _typed_texts(values: dict[str, Any], fill: dict[str, str]) -> dict[str, str]:
    """The fields as they were typed. A secret that was typed does not come back: its place says so."""
    typed = {name: _typed(values, name, "") for name in fill if name in values}
    if "url" in typed:
        typed["url"] = _unfilled(typed["url"], secrecy.in_url(typed["url"]))
    if "command_line" in typed:
        typed["command_line"] = _unfilled_line(typed["command_line"])
    return typed


def _unfilled(text: str, found: Sequence[secrecy.Hidden]) -> str:
    """A text with a request to type each secret again; what was masked before stays so."""
    kept = (secrecy.MASK, secrecy.AGAIN)
    return secrecy.replaced(text, [one for one in found if text[one.start : one.end] not in kept], lambda _: kept[1])


def _unfilled_line(line: str) -> str:
    try:
        argv = tuple(shlex.split(line)) if len(line) <= COMMAND_LINE_LONGEST else ()
    except ValueError:
        argv = ()
    if not argv:
        return _unfilled(line, secrecy.in_text(line))
    shown = tuple(_unfilled(text, found) for text, found in zip(argv, secrecy.in_arguments(argv), strict=True))
    return line if shown == argv else typed_line(shown)


def connect_fields(
    session: Workspace | None,
    values: dict[str, Any] | None,
    errors: dict[str, list[str]] | None,
    *,
    registry: SessionRegistry,
    identity: Identity,
    choices: list[ChoiceLine] | None = None,
) -> ConnectFields:
    """The connect form: what was typed, else the kept target that it names, else the session's last one."""
    typed = values or {}
    flat = {pointer: " ".join(texts) for pointer, texts in (errors or {}).items()}
    kept = registry.store.find(identity.id, _typed(typed, "like", ""))
    target = kept.target if kept is not None else session.target if session is not None else None
    missing = kept.missing_names if kept is not None else ()
    fill = {"command_line": "", "cwd": "", "url": "", "name": kept.name if kept is not None else ""}
    transport = "stdio"
    if isinstance(target, StdioTarget):
        fill |= {"command_line": target.command_line, "cwd": target.cwd or ""}
    elif target is not None:
        transport = target.transport
        fill |= {"url": target.shown_url} if isinstance(target, HttpTarget) else {}
    options = kept.options if kept is not None else session.options if session is not None else Options()
    changed = [name for name, value in options.model_dump().items() if value != getattr(Options(), name)]
    transport = _typed(typed, "transport", transport)
    env, headers = _pairs(target, "env", missing), _pairs(target, "header", missing)
    store = registry.store
    return ConnectFields(
        action="/s" if session is None else f"/s/{session.id}/connect",
        transport=transport if transport in {"stdio", "http", "sse", "demo", "mcpjson"} else "stdio",
        values=fill | _typed_texts(typed, fill),
        env=_typed_pairs(typed, "env", env) or env,
        headers=_typed_pairs(typed, "header", headers) or headers,
        options=option_fields(options, typed, flat),
        errors=flat,
        changed=f"{format.plural(len(changed), 'option')} changed" if changed else "",
        like=kept.id if kept is not None else session.id if session is not None else "",
        notice=f"Saving is off: {store.trouble}" if store.trouble else "",
        choices=choices or [],
        masks_kept=kept is None or missing == kept.missing,
    )


_AGO = ((86_400, "day"), (3_600, "hour"), (60, "minute"))


def _ago(seconds: float) -> str:
    for span, word in _AGO:
        if seconds >= span:
            return f"{format.plural(int(seconds // span), word)} ago"
    return "just now"


def target_lines(registry: SessionRegistry, identity: Identity) -> list[TargetLine]:
    """The targets that are kept, the last used first; the demo server has a button of its own."""
    now = registry.wall()
    return [
        TargetLine(
            id=one.id,
            name=one.name,
            label=one.target.label,
            transport=transport_words(one.target),
            used=_ago(now - one.used),
            missing=one.missing,
        )
        for one in registry.store.of(identity.id)
        if not isinstance(one.target, DemoTarget) or one.saved
    ]


def kept_json(kept: Kept) -> dict[str, Any]:
    """A kept target for scripts; of secrets, variables and headers only the names."""
    return {
        "id": kept.id,
        "name": kept.name or None,
        "digest": target_digest(kept.target),
        "label": kept.target.label,
        **(target_json(kept.target) or {}),
        "options": kept.options.model_dump(mode="json", exclude_defaults=True, exclude={"meta"}),
        "used_at": wire_time(kept.used),
        "missing": list(kept.missing),
    }


@dataclass(slots=True)
class ConnectForm(Context):
    """The connect form on its own page: for a session, or after an error."""

    template: ClassVar[str] = "connect/page.html"

    shell: Shell | None
    form: ConnectFields
    heading: str
    connected: bool

    def as_json(self) -> dict[str, Any]:
        """What there is to choose from, when several servers were pasted; what is wrong, else."""
        if self.form.choices:
            return {"choices": [asdict(one) for one in self.form.choices]}
        fields_json = {pointer: [text] for pointer, text in self.form.errors.items()}
        return {"error": {"kind": "invalid", "message": "Some fields need another value.", "fields": fields_json}}


def connect_form(
    session: Workspace | None,
    registry: SessionRegistry,
    identity: Identity,
    *,
    values: dict[str, Any] | None = None,
    errors: dict[str, list[str]] | None = None,
    choices: list[ChoiceLine] | None = None,
) -> ConnectForm:
    """The connect form, with what was typed and what was wrong with it, or with what was pasted to choose from."""
    return ConnectForm(
        shell=shell(session, "connect", "Connect") if session is not None else None,
        form=connect_fields(session, values, errors, registry=registry, identity=identity, choices=choices),
        heading="Change and reconnect" if session is not None and session.target is not None else "Connect to a server",
        connected=session is not None and session.info.state in {"ready", "connecting"},
    )
