"""Places in a target that another program would fill in: `${workspaceFolder}`, `${input:key}`, `${env:HOME}`.

They are found and asked for, never passed on as they stand unless somebody wants that. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from app.core.targets import AnyTarget, DemoTarget, HttpTarget, StdioTarget
from app.secret_names import sounds_secret

_PLACEHOLDER = re.compile(r"\$\{[^}${]{1,200}\}")
_FOLDERS = frozenset({"workspaceFolder", "workspaceRoot", "cwd", "fileWorkspaceFolder"})
_HOMES = frozenset({"userHome", "HOME"})


@dataclass(slots=True, frozen=True)
class Blank:
    """One placeholder: as it is written, what it is called, and what is likely meant."""

    text: str
    name: str
    likely: str = ""
    secret: bool = False


def blanks(target: AnyTarget, cwd: str, home: str, variables: Mapping[str, str]) -> list[Blank]:
    """What is to be filled in, each once, in the order in which it stands there."""
    found = dict.fromkeys(one for text in _texts(target) for one in _PLACEHOLDER.findall(text))
    held = _held(target)
    hidden = "".join(held[name] for name in target.secret_names if name in held)
    return [_blank(text, cwd, home, variables, hidden) for text in found]


def _blank(text: str, cwd: str, home: str, variables: Mapping[str, str], hidden: str) -> Blank:
    inner, _, default = text[2:-1].partition(":-")
    kind, sign, name = inner.partition(":")
    name = name if sign and kind in ("input", "env", "config", "command") else inner
    if text in hidden or sounds_secret(name):
        return Blank(text, name, secret=True)
    if kind in _FOLDERS:
        return Blank(text, name, cwd)
    if name in _HOMES:
        return Blank(text, name, home)
    return Blank(text, name, default or ("" if kind == "input" else variables.get(name, "")))


def filled(target: AnyTarget, values: Mapping[str, str]) -> dict[str, Any]:
    """A target with values in the place of placeholders, to be validated anew. What holds a secret by it is marked.
    Raises ValueError where nothing could hide one."""
    secret = _secret(target) & values.keys()
    plain = (target.command, target.cwd or "") if isinstance(target, StdioTarget) else ()
    if any(one in text for one in secret for text in plain):
        raise ValueError("A secret can stand in an argument or a variable, not in the program or its directory.")
    marked = [name for name, text in _held(target).items() if any(one in text for one in secret)]
    made = _with(target, values, ("command", "args", "env", "cwd", "url", "headers")) | _marks(target, values, secret)
    return made | {"secret": [*made.get("secret", ()), *marked]} if marked else made


def lasting(target: AnyTarget, values: Mapping[str, str]) -> dict[str, Any]:
    """The same as it may be remembered: of a command line and an address the secrets are not kept, so each placeholder
    stays there and is asked for again."""
    secret = _secret(target)
    plain = {text: value for text, value in values.items() if text not in secret}
    return (
        filled(target, values)
        | {
            key: value
            for key, value in _with(target, plain, ("command", "args", "cwd", "url")).items()
            if key in ("command", "args", "cwd", "url")
        }
        | _marks(target, plain, set())
    )


def _marks(target: AnyTarget, values: Mapping[str, str], secret: Set[str]) -> dict[str, Any]:
    """Where secrets stand in the command line or the address once its placeholders are filled in."""
    if isinstance(target, StdioTarget):
        before = target.secret_args
        return {
            "secret_args": [
                (at, *span)
                for at, text in enumerate(target.args)
                for span in _spans(text, values, secret, [one[1:] for one in before if one[0] == at])
            ]
        }
    if isinstance(target, HttpTarget):
        return {"secret_url": list(_spans(target.url, values, secret, target.secret_url))}
    return {}


def _spans(
    text: str, values: Mapping[str, str], secret: Set[str], before: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    made: list[str] = []
    spans: list[tuple[int, int]] = []
    at = length = 0
    for found in _PLACEHOLDER.finditer(text):
        value = values.get(found[0], found[0])
        made += [text[at : found.start()], value]
        length += found.start() - at + len(value)
        at = found.end()
        if found[0] in secret and value:
            spans.append((length - len(value), length))
    whole = "".join([*made, text[at:]])
    # What was marked before has moved with what was filled in: all of it is hidden then.
    return iter(spans if not before else [*spans, *before] if whole == text else [(0, len(whole))])


def asks_secret(target: AnyTarget) -> bool:
    """Whether a secret has to be typed into it before it can be used."""
    return bool(_secret(target))


def _secret(target: AnyTarget) -> set[str]:
    return {one.text for one in blanks(target, "", "", {}) if one.secret}


def _with(target: AnyTarget, values: Mapping[str, str], keys: tuple[str, ...]) -> dict[str, Any]:
    plain = target.model_dump(mode="json")

    def fill(value: Any) -> Any:
        if isinstance(value, str):
            return _PLACEHOLDER.sub(lambda found: values.get(found[0], found[0]), value)
        if isinstance(value, list):
            return [fill(one) for one in value]
        return {key: fill(one) for key, one in value.items()} if isinstance(value, dict) else value

    return {key: fill(value) if key in keys else value for key, value in plain.items()}


def _held(target: AnyTarget) -> dict[str, str]:
    """The variables of a command, or the headers of an address."""
    return {} if isinstance(target, DemoTarget) else target.env if isinstance(target, StdioTarget) else target.headers


def _texts(target: AnyTarget) -> list[str]:
    if isinstance(target, DemoTarget):
        return []
    if isinstance(target, StdioTarget):
        return [target.command, *target.args, *target.env.values(), target.cwd or ""]
    return [target.url, *target.headers.values()]
