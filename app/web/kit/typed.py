"""What people type into the connect form, put right: an address without its scheme, a line for a shell."""

from __future__ import annotations

import os
import re
from pathlib import Path

from app import secrecy
from app.core import shell
from app.core.targets import typed_line


def shell_offer(line: str) -> shell.Offer | None:
    """What to use instead of a line that only a shell understands."""
    known = {name: os.environ[name] for name in _PLAIN_VARIABLES if name in os.environ}
    return shell.offer(line, home(), known)


def shell_words(offer: shell.Offer) -> str:
    """That a line needs a shell, and what can be done about it."""
    *first, last = offer.found
    many = f"{', '.join(first)} and {last} do" if first else f"{last} does"
    said = f"Parley runs no shell: {many} not work."
    if offer.unknown:
        names = ", ".join(f"${name}" for name in offer.unknown)
        return f"{said} Type the value of {names}, or put it in single quotes to send it as it stands."
    if not offer.command:
        return f"{said} Type the command alone, and its directory below."
    parts = [f"Working directory {offer.cwd}"] if offer.cwd else []
    parts += [f"variable {name}" for name, _ in offer.env]
    parts.append(f"command {typed_line(secrecy.masked_arguments(offer.command))}")
    return f"{said} {', '.join(parts)[:1].upper()}{', '.join(parts)[1:]}?"


def with_scheme(url: str) -> str:
    """An address as people type it, host and port first, with its scheme. Plain HTTP where that is usual: on this
    machine, in a network without dots, and where a port is named."""
    host = url.partition("/")[0]
    name, _, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
    if not name:
        name, port = host, ""
    if "://" in url or not name or (port and not port.isdecimal()) or not _HOST.fullmatch(name):
        return url
    numbers = name.startswith("[") or name.replace(".", "").isdecimal()
    near = numbers or "." not in name or name.endswith((".localhost", ".local")) or port not in ("", "443")
    return f"{'http' if near else 'https'}://{url}"


def directory(text: str) -> str | None:
    """A working directory; the person's own may be written with a tilde."""
    return home() + text[1:] if text == "~" or text.startswith("~/") else text or None


def home() -> str:
    """The directory of whoever started Parley."""
    try:
        return str(Path.home())
    except RuntimeError:
        return "~"


_HOST = re.compile(r"\[[0-9A-Fa-f:.]{2,60}\]|[0-9A-Za-z._-]{1,255}")
_PLAIN_VARIABLES = ("HOME", "USER", "LOGNAME", "PWD", "TMPDIR", "SHELL", "LANG")
"""Variables that hold no secret."""
