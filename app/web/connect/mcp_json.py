"""What people paste: an `mcp.json`, one entry of it, or one line of it; read into targets.

Hosts write the same thing in several ways: `mcpServers` or `servers` around the entries, a bare entry, or an entry with
its name but without the braces around it; with comments and a last comma, as editors do. What cannot be used is said
entry by entry; what is no JSON, by its place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from app.core.json import jsonc
from app.core.placeholders import blanks
from app.core.targets import HttpTarget, StdioTarget
from app.web.door.denied import Denied
from app.web.kit.errors import field_errors
from app.web.kit.request_bodies import FormErrors, strict_json

FIELD: Final = "/mcp_json"
MOST: Final = 40
LONGEST: Final = 256 * 1024
_KINDS: Final = {
    "stdio": "stdio",
    "local": "stdio",
    "sse": "sse",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamablehttp": "http",
    "remote": "http",
}
_NAMED = re.compile(r'"(?:[^"\\]|\\.)*+"\s*:')


@dataclass(slots=True, frozen=True)
class Entry:
    """One server of the file: what to connect to, or why not."""

    name: str
    target: StdioTarget | HttpTarget | None
    problem: str = ""
    note: str = ""

    @property
    def names(self) -> list[str]:
        """The variables or headers that it brings."""
        target = self.target
        return [] if target is None else sorted(target.env if isinstance(target, StdioTarget) else target.headers)


def read(text: str) -> list[Entry]:
    """The entries of a pasted text, in order. FormErrors when there is none."""
    found = [_entry(name, value) for name, value in _entries(_value(text)).items()]
    if len(found) > MOST:
        raise FormErrors({FIELD: [f"There are {len(found)} servers in it; paste at most {MOST} at a time."]})
    return found


def _value(text: str) -> Any:
    text = text.strip().removeprefix("\ufeff")
    if not text:
        raise FormErrors({FIELD: ["Paste an mcp.json, or one entry of it."]})
    if len(text) > LONGEST:
        raise FormErrors({FIELD: [f"This is {len(text):,} characters long; paste at most {LONGEST:,} at a time."]})
    text = jsonc.plain(text)
    try:
        return strict_json(text)
    except Denied as fault:
        # `"name": {…},` as it stands in the file: an entry that was copied with its name.
        if _NAMED.match(text):
            try:
                return strict_json(jsonc.plain("{" + text + "}"))
            except Denied:
                pass
        raise FormErrors({FIELD: [fault.message]}) from None


def _entries(value: Any) -> dict[str, Any]:
    """The servers by name."""
    if not isinstance(value, dict):
        raise FormErrors({FIELD: ["This must be a JSON object, like {“mcpServers”: {…}}."]})
    for key in ("mcpServers", "servers"):
        if isinstance(value.get(key), dict):
            if not value[key]:
                raise FormErrors({FIELD: [f"There is no server in “{key}”."]})
            return dict(value[key])
    inside = value.get("mcp")
    if isinstance(inside, dict) and isinstance(inside.get("servers"), dict):
        return _entries(inside)
    if "command" in value or "url" in value or "serverUrl" in value:
        return {str(value.get("name") or "pasted"): value}
    if value and all(isinstance(one, dict) for one in value.values()):
        return value
    raise FormErrors({FIELD: ["There is no server in it: an entry has a “command” or a “url”."]})


def _entry(name: str, value: Any) -> Entry:
    if not isinstance(value, dict):
        return Entry(name, None, "This entry is not an object.")
    kind = str(value.get("type") or value.get("transport") or "").lower()
    if kind and kind not in _KINDS:
        return Entry(name, None, f"Its type is {kind[:40]!r}; Parley speaks stdio, http and sse.")
    url = value.get("url") or value.get("serverUrl")
    wanted: dict[str, Any]
    if "command" in value and _KINDS.get(kind, "stdio") == "stdio":
        wanted = {"command": value["command"], "args": value.get("args") or []}
        wanted |= {"env": _texts(value.get("env")), "cwd": value.get("cwd") or None}
    elif url is not None:
        guess = "sse" if isinstance(url, str) and url.rstrip("/").endswith("/sse") else "http"
        wanted = {"transport": _KINDS.get(kind, guess), "url": url, "headers": _texts(value.get("headers"))}
        if wanted["transport"] == "stdio":
            wanted["transport"] = guess
    else:
        return Entry(name, None, "It has neither a “command” nor a “url”.")
    try:
        target = (HttpTarget if "url" in wanted else StdioTarget).model_validate(wanted)
    except ValidationError as fault:
        where, texts = next(iter(field_errors(fault).items()))
        return Entry(name, None, f"{where.removeprefix('/')}: {texts[0]}")
    return Entry(name, target, note=_note(target, value))


def _texts(value: Any) -> Any:
    """Values of variables and headers: numbers and booleans are written as text by most people."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        return value
    plain = {key: "true" if one is True else "false" if one is False else one for key, one in value.items()}
    return {key: str(one) if isinstance(one, int | float) else one for key, one in plain.items()}


def _note(target: StdioTarget | HttpTarget, value: dict[str, Any]) -> str:
    """What another program would have filled in, and what Parley does not read."""
    names = [one.name for one in blanks(target, "", "", {})]
    said = [f"Asks for {', '.join(names[:5])}{' and more' if names[5:] else ''}."] if names else []
    return " ".join([*said, "Its envFile is not read."] if value.get("envFile") else said)
