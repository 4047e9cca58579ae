"""What command line, environment and config file say, as `Settings`, or in one sentence what is wrong with it.

Imported before the port is open, so it imports little.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from app import process

if TYPE_CHECKING:
    from pydantic import ValidationError

    from app.settings import Settings

USAGE: Final = 2
FAILED: Final = 1


class Stop(Exception):
    """The start ends here: one sentence for the person, and the exit code."""

    def __init__(self, sentence: str, code: int = USAGE) -> None:
        super().__init__(sentence)
        self.code = code


def complain(sentence: str) -> None:
    """One line on standard error, without anything that a terminal would obey."""
    line = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in sentence)
    print(f"parley: {line}", file=sys.stderr)


def shown(word: str) -> str:
    """What a person typed, for a sentence about it."""
    return repr(word if len(word) <= 100 else word[:100] + "…")


def settings_of(arguments: argparse.Namespace) -> Settings:
    """Command line before `PARLEY_*` before the file before the preset."""
    from pydantic import ValidationError

    from app.settings import default_data_dir, local

    # Taken out, so that no child process can find it: not in its own environment, nor by a look at ours.
    token = process.take_variable("PARLEY_TOKEN")
    if arguments.token_file is not None:
        token = _read(arguments.token_file, "token file").strip()
    file = arguments.config or os.environ.get("PARLEY_CONFIG") or None
    changes: dict[str, Any] = {} if file is None else _config(Path(file))
    names: dict[str, str] = {}
    for key in ("port", "host", "data_dir", "record", "public_url"):
        option, variable = f"--{key.replace('_', '-')}", f"PARLEY_{key.upper()}"
        if value := getattr(arguments, key):
            changes[key], names[key] = "always" if key == "record" else value, option
        elif value := os.environ.get(variable):
            changes[key], names[key] = value, variable
    given = {
        "token": token,
        "sign_ins_key": process.take_variable("PARLEY_SIGN_INS_KEY"),
        "published_on_loopback": arguments.published_on_loopback or None,
        "open_browser": False if arguments.no_open else None,
    }
    changes |= {key: value for key, value in given.items() if value is not None}

    def named(key: str) -> str:
        """A setting as the person wrote it, so that they find where to put it right."""
        return names.get(key) or f"{key} in {file}"

    if "data_dir" not in changes:
        with suppress(RuntimeError):  # of a user who has no home: nothing is kept
            changes["data_dir"] = default_data_dir()
    if isinstance(token := changes.get("token"), str):
        visible = token.isascii() and token.isprintable() and " " not in token
        if not visible or len(token) < 16:
            raise Stop("the token must be at least 16 visible ASCII characters, without spaces")
    if changes.get("mode", "local") != "local":
        raise Stop(f"{named('mode')} must be 'local'; a team is served by: parley team --config FILE")
    try:
        settings = local(**changes)
        if settings.roots:
            _check_roots(settings.roots)
        if settings.models:
            _check_models(settings.models)
    except ValidationError as fault:
        raise Stop(first_fault(fault, named)) from fault
    _check_host(settings, named("host"))
    if arguments.token_file is not None:
        _warn_of_readers(arguments.token_file)
    return settings


def _check_roots(roots: Sequence[str]) -> None:
    """A root that no session could use would fail each of them."""
    from pydantic import ValidationError

    from app.core.options import Root

    for uri in roots:
        try:
            Root(uri=uri)
        except ValidationError as fault:
            why = fault.errors()[0]["msg"].removeprefix("Value error, ")
            raise Stop(f"the root {shown(uri)} cannot be used: {why}") from fault


def _check_models(models: dict[str, dict[str, Any]]) -> None:
    """A model that nobody could use is said before anything starts."""
    from pydantic import ValidationError

    from app.models.base import Model

    for name, given in models.items():
        try:
            Model.model_validate(given)
        except ValidationError as fault:
            wrong = fault.errors()[0]
            where = ".".join(str(part) for part in ("models", name, *wrong["loc"]))
            raise Stop(f"{shown(where)} cannot be used: {wrong['msg'].removeprefix('Value error, ')}") from None


def _check_host(settings: Settings, name: str) -> None:
    import ipaddress

    try:
        address = ipaddress.ip_address("127.0.0.1" if settings.host == "localhost" else settings.host)
    except ValueError:
        raise Stop(f"{name} takes an address like 127.0.0.1 or ::1, not {shown(settings.host)}") from None
    if not address.is_loopback and not settings.published_on_loopback:
        raise Stop(
            f"listening on {settings.host} would let others start programs here; Parley stays on 127.0.0.1, "
            "unless --published-on-loopback says that a container publishes the port on loopback only"
        )


def _config(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(_read(path, "config file"))
    except tomllib.TOMLDecodeError as fault:
        raise Stop(f"the config file {path} is not TOML: {fault}", FAILED) from fault


def _read(path: Path, what: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as fault:
        raise Stop(f"the {what} {path} cannot be read: {fault.strerror}", FAILED) from fault
    except ValueError as fault:
        raise Stop(f"the {what} {path} is not UTF-8 text", FAILED) from fault


def _warn_of_readers(path: Path) -> None:
    """Whoever has the token can start programs here. A file of somebody else has the rights that they chose."""
    status = path.stat()
    if status.st_uid == os.geteuid() and status.st_mode & 0o077:
        complain(f"other users may read the token file; make it yours alone with: chmod 600 {path}")


_WORDS = {
    "int_parsing": "must be a whole number",
    "int_parsing_size": "is too large",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be text in quotes",
    "path_type": "must be a path in quotes",
    "tuple_type": 'must be a list, like: roots = ["file:///home/me/project"]',
    "model_type": "must be a table, like: [limits]",
    "literal_error": "must be {expected}",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
}
"""What pydantic finds, as a part of a sentence for somebody who has never heard of it."""


def first_fault(fault: ValidationError, named: Callable[[str], str] = str) -> str:
    """The first thing that is wrong, by the name under which it was given."""
    error = fault.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        known = "the page /about shows every limit" if where.startswith("limits.") else "parley --help names them all"
        return f"there is no setting {named(where)}; {known}"
    if error["type"] in _WORDS:
        return f"{named(where)} {_WORDS[error['type']].format(**error.get('ctx', {}))}"
    return f"{named(where)}: {error['msg'].removeprefix('Value error, ')}"
