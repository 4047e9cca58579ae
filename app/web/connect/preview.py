"""What the connect form says while it is filled in: how a command line is split, whether a name sounds secret, whether
a paste can be read. The form asks at the address that it goes to, with `_preview`; nothing is started or kept."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import ClassVar, Final

from app import secrecy, secret_names
from app.web.connect import mcp_json
from app.web.kit import typed
from app.web.kit.request_bodies import COMMAND_LINE_LONGEST, Body, FormErrors
from app.web.kit.templates import Context

NAMES: Final[dict[str, secret_names.Where]] = {"env_name": "variable", "header_name": "header"}


@dataclass(slots=True)
class Preview(Context):
    """The answer, for one field: a part that goes beside it."""

    template: ClassVar[str] = "connect/_preview.html"
    part: ClassVar[str | None] = "connect/_preview.html"

    of: str
    argv: tuple[str, ...] = ()
    offer: str = ""
    """That the line needs a shell, and what it comes to without one."""
    usable: bool = False
    """Whether that can be used."""
    is_secret: bool = False
    fault: str = ""


def preview(body: Body) -> Preview | None:
    """What to say about the field that a form asks about; None when a form was sent rather than looked at."""
    of = body.text("_preview") if body.is_form else ""
    if of == "command_line":
        return _command_line(body.text(of))
    if of == "mcp_json":
        return _paste(body.text(of))
    if of in NAMES:
        return Preview(
            of, is_secret=any(secret_names.sounds_secret(name.strip(), NAMES[of]) for (name,) in body.rows(of))
        )
    return Preview("") if of else None


def _command_line(line: str) -> Preview:
    """The parts of a line. A secret among them does not come back to the page, not even there."""
    if len(line) > COMMAND_LINE_LONGEST:
        return Preview("command_line", fault="too long to be split")
    try:
        argv = tuple(shlex.split(line))
    except ValueError:
        return Preview("command_line", fault="a quotation mark is still open")
    if (offer := typed.shell_offer(line)) is not None:
        return Preview("command_line", offer=typed.shell_words(offer), usable=bool(offer.command))
    return Preview("command_line", argv=secrecy.masked_arguments(argv))


def _paste(text: str) -> Preview:
    try:
        mcp_json.read(text)
    except FormErrors as fault:
        return Preview("mcp_json", fault=" ".join(fault.fields[mcp_json.FIELD]))
    return Preview("mcp_json")
