"""Completion of arguments: of a prompt, or of a template's variables, while they are typed (R5-21).

The page asks here after a short pause; what was typed in the other fields goes along as context. The call is a quiet
one. Without the capability nothing is sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from app.core.errors import Conflict
from app.core.forms.words import differs
from app.core.rules import catalogue
from app.core.strict import Closed
from app.sessions import Workspace
from app.web.kit import request_bodies
from app.web.kit.responses import in_json

SHOWN = 100
_SECONDS = 10.0


@dataclass(slots=True, frozen=True)
class FieldView:
    """One argument in a form: a text with suggestions."""

    name: str
    id: str
    value: str = ""
    title: str = ""
    help: str = ""
    required: bool = False
    error: str = ""
    many: bool = False
    """Several values, one on each line."""

    @property
    def more_title(self) -> str:
        """Its title, where that says more than its name."""
        return self.title if differs(self.title, self.name) else ""


class _Ref(Closed):
    type: Literal["ref/prompt", "ref/resource"]
    name: str | None = Field(default=None, max_length=8_000)
    uri: str | None = Field(default=None, max_length=8_000)


class _Argument(Closed):
    name: str = Field(min_length=1, max_length=1_000)
    value: str = Field(default="", max_length=100_000)


class _Known(Closed):
    arguments: dict[str, str] = Field(default_factory=dict)


class CompleteBody(Closed):
    """The params of `completion/complete`, as the specification has them."""

    ref: _Ref
    argument: _Argument
    context: _Known = _Known()


def _of_form(form: request_bodies.Body) -> dict[str, Any]:
    """What the page sends: the form as it stands, and which field is typed in."""
    which, of = form.text("_ref"), form.text("_of")
    ref = {"type": "ref/prompt", "name": of} if which == "prompt" else {"type": "ref/resource", "uri": of}
    typed = form.text("_argument")
    others = {name: text for name, text in form.arguments.items() if name != typed and text}
    argument = {"name": typed, "value": form.text(f"arg.{typed}")}
    return {"ref": ref, "argument": argument, "context": {"arguments": others}}


async def complete(request: Request) -> Response:
    """What the server suggests: `{"values", "total", "hasMore"}`, or `error` in words when it did not answer so."""
    session: Workspace = request.state.session
    wanted = (await request_bodies.read(request)).read(CompleteBody, _of_form)
    if session.info.state == "ready" and not session.info.offers("completions"):
        raise Conflict("The server did not declare `completions`, so it is not asked.")
    params: dict[str, Any] = {
        "ref": wanted.ref.model_dump(exclude_none=True),
        "argument": {"name": wanted.argument.name, "value": wanted.argument.value},
    }
    if wanted.context.arguments:
        params["context"] = {"arguments": wanted.context.arguments}
    call = session.start_call(
        "completion/complete", params, quiet=True, timeout_ms=int(_SECONDS * 1000), by=request.state.identity
    )
    await session.until(lambda: call.settled, _SECONDS + 1, call.id)
    result = await session.result(call)
    found = result.get("completion") if isinstance(result, dict) else None
    given = found.get("values") if isinstance(found, dict) else None
    values = [one for one in given if isinstance(one, str)] if isinstance(given, list) else []
    if len(values) > SHOWN and call.legs and call.legs[-1].reply_seq is not None:
        session.messages.remark(call.legs[-1].reply_seq, catalogue.too_many_suggestions(count=len(values)))
    total = found.get("total") if isinstance(found, dict) else None
    return await in_json(
        lambda: {
            "values": values[:SHOWN],
            "total": total if isinstance(total, int) and not isinstance(total, bool) else None,
            "hasMore": len(values) > SHOWN or (isinstance(found, dict) and found.get("hasMore") is True),
            "call": call.id,
            "error": call.error.message if call.error is not None else None,
        }
    )
