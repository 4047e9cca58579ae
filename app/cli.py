"""The command line: arguments to `Settings`, then serve until a signal.

What is imported before the port is open is what a person waits for, so the rest comes late; the MCP SDK comes last,
in a thread, while the page is already there.
"""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from app import __version__, process

# pydantic looks for plugins in every installed package, which costs the start 30 ms, and there are none.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

if TYPE_CHECKING:
    from pydantic import ValidationError

    from app.core.targets import DemoTarget, HttpTarget, StdioTarget
    from app.settings import Settings

_USAGE, _FAILED = 2, 1
_PROGRAM = "to start a program write: parley -- COMMAND, like: parley -- python server.py"


class _Stop(Exception):
    """The start ends here: one sentence for the person, and the exit code."""

    def __init__(self, sentence: str, code: int = _USAGE) -> None:
        super().__init__(sentence)
        self.code = code


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        kind, _, words = message.partition(": ")
        if kind == "unrecognized arguments" and not words.startswith("-"):
            raise _Stop(f"there is no place for {_shown(words)}; {_PROGRAM}")
        raise _Stop(f"{message[:200]}; see parley --help")


def main(argv: Sequence[str] | None = None) -> int:
    """Run Parley; the exit code."""
    # A tenth of the start is the collector looking at imports that stay.
    gc.disable()
    # Until the server listens for signals, Ctrl-C just ends the process: there is nothing to put away, and no traceback
    # that a person could use.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        arguments, command = _arguments(sys.argv[1:] if argv is None else argv)
        settings = _settings(arguments)
        target = _target(arguments.target, command)
        _serve(settings, target)
    except _Stop as stop:
        _complain(str(stop))
        return stop.code
    return 0


def _complain(sentence: str) -> None:
    """One line on standard error, without anything that a terminal would obey."""
    line = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in sentence)
    print(f"parley: {line}", file=sys.stderr)


def _say(line: str) -> bool:
    """One line on standard output. Parley goes on without it, as in `parley | head -1`; False says it was not shown."""
    try:
        print(line, flush=True)
    except OSError:
        # What is left in its buffer must not be tried again at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return sys.stdout is not None


def _shown(word: str) -> str:
    """What a person typed, for a sentence about it."""
    return repr(word if len(word) <= 100 else word[:100] + "…")


# -------------------------------------------------------------------------------------------------------- arguments


def _arguments(argv: Sequence[str]) -> tuple[argparse.Namespace, list[str] | None]:
    """What stands before `--` is ours, what stands after it is the command of a server, as it is."""
    ours, command = list(argv), None
    if "--" in ours:
        at = ours.index("--")
        ours, command = ours[:at], ours[at + 1 :]
        if not command:
            raise _Stop("after -- the command of a server is missing, like: parley -- python server.py")
        for word in command:
            try:
                word.encode()
            except UnicodeEncodeError:  # a byte that is no text could be neither shown nor saved
                raise _Stop(f"{_shown(word)} is not UTF-8 text, and Parley starts programs with nothing else") from None
    parser = _Parser(
        prog="parley",
        usage="parley [options] [demo | URL | -- COMMAND ARGS ...]",
        description="A browser-based MCP inspector that answers back.",
        epilog="The command line counts first, then PARLEY_PORT, PARLEY_HOST, PARLEY_DATA_DIR, PARLEY_TOKEN and "
        "PARLEY_CONFIG of the environment, then the config file with port, host, open_browser, data_dir, token, "
        "published_on_loopback, roots and [limits].",
        allow_abbrev=False,
    )
    parser.add_argument("target", nargs="?", metavar="demo | URL", help="open a session already connected to this")
    parser.add_argument("--port", metavar="N", help="where to listen (6280; 0 takes any free port)")
    parser.add_argument("--host", metavar="ADDRESS", help="the loopback address to listen on (127.0.0.1 and ::1)")
    parser.add_argument("--no-open", action="store_true", help="do not open the browser")
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings in TOML")
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="where saved targets are kept")
    parser.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="holds the token that scripts send; better than PARLEY_TOKEN, which whoever set it still shows",
    )
    parser.add_argument(
        "--published-on-loopback",
        action="store_true",
        help="allow another --host: a container publishes the port on the loopback address of its host",
    )
    parser.add_argument("--version", action="version", version=f"parley {__version__}")
    arguments = parser.parse_args(ours)
    if arguments.target is not None and command is not None:
        raise _Stop("give either a target or, after --, a command, not both")
    return arguments, command


def _target(word: str | None, command: list[str] | None) -> StdioTarget | DemoTarget | HttpTarget | None:
    """The server to begin with. Typing a command is consent to start it (R5-71)."""
    from pydantic import ValidationError

    from app.core.targets import DemoTarget, HttpTarget, StdioTarget

    try:
        if command is not None:
            return StdioTarget(command=_program(command[0]), args=tuple(command[1:]), cwd=_here())
        if word is None:
            return None
        if word == "demo":
            return DemoTarget()
        scheme, found, rest = word.partition("://")
        if found and scheme.lower() in {"http", "https"}:
            return HttpTarget(transport="http", url=_with_host(f"{scheme.lower()}://{rest}"))
    except ValidationError as fault:
        raise _Stop(f"the target cannot be used: {_first(fault)}") from fault
    raise _Stop(f"{_shown(word)} is neither 'demo' nor a URL that begins with http:// or https://; {_PROGRAM}")


def _program(name: str) -> str:
    import shutil

    if shutil.which(name) is not None:
        return name
    with suppress(OSError):  # of a name that is too long to be one
        if Path(name).is_file():
            raise _Stop(f"{_shown(name)} is not a program; write before it what runs it, like: "
                        "parley -- python server.py", _FAILED)  # fmt: skip
    raise _Stop(f"there is no program {_shown(name)} that could be started; check its name and your PATH", _FAILED)


def _here() -> str:
    try:
        return str(Path.cwd())
    except OSError:
        raise _Stop("the directory you are in is gone; change to one that exists", _FAILED) from None


def _with_host(address: str) -> str:
    """An address that somebody could be at. What is there is found out by the session, and shown in it."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(address)
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise _Stop(f"{_shown(address)} has no host and port that could be dialled; write it like "
                    "http://127.0.0.1:8000/mcp")  # fmt: skip
    return address


# --------------------------------------------------------------------------------------------------------- settings


def _settings(arguments: argparse.Namespace) -> Settings:
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
    for key in ("port", "host", "data_dir"):
        option, variable = f"--{key.replace('_', '-')}", f"PARLEY_{key.upper()}"
        if value := getattr(arguments, key):
            changes[key], names[key] = value, option
        elif value := os.environ.get(variable):
            changes[key], names[key] = value, variable
    given = {
        "token": token,
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
            raise _Stop("the token must be at least 16 visible ASCII characters, without spaces")
    try:
        settings = local(**changes)
        if settings.roots:
            _check_roots(settings.roots)
    except ValidationError as fault:
        raise _Stop(_first(fault, named)) from fault
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
            raise _Stop(f"the root {_shown(uri)} cannot be used: {why}") from fault


def _check_host(settings: Settings, name: str) -> None:
    import ipaddress

    try:
        address = ipaddress.ip_address("127.0.0.1" if settings.host == "localhost" else settings.host)
    except ValueError:
        raise _Stop(f"{name} takes an address like 127.0.0.1 or ::1, not {_shown(settings.host)}") from None
    if not address.is_loopback and not settings.published_on_loopback:
        raise _Stop(
            f"listening on {settings.host} would let others start programs here; Parley stays on 127.0.0.1, "
            "unless --published-on-loopback says that a container publishes the port on loopback only"
        )


def _config(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(_read(path, "config file"))
    except tomllib.TOMLDecodeError as fault:
        raise _Stop(f"the config file {path} is not TOML: {fault}", _FAILED) from fault


def _read(path: Path, what: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as fault:
        raise _Stop(f"the {what} {path} cannot be read: {fault.strerror}", _FAILED) from fault
    except ValueError as fault:
        raise _Stop(f"the {what} {path} is not UTF-8 text", _FAILED) from fault


def _warn_of_readers(path: Path) -> None:
    """Whoever has the token can start programs here. A file of somebody else has the rights that they chose."""
    status = path.stat()
    if status.st_uid == os.geteuid() and status.st_mode & 0o077:
        _complain(f"other users may read the token file; make it yours alone with: chmod 600 {path}")


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


def _first(fault: ValidationError, named: Callable[[str], str] = str) -> str:
    """The first thing that is wrong, by the name under which it was given."""
    error = fault.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        known = "the page /about shows every limit" if where.startswith("limits.") else "parley --help names them all"
        return f"there is no setting {named(where)}; {known}"
    if error["type"] in _WORDS:
        return f"{named(where)} {_WORDS[error['type']].format(**error.get('ctx', {}))}"
    return f"{named(where)}: {error['msg'].removeprefix('Value error, ')}"


# ------------------------------------------------------------------------------------------------------------ serve


def _serve(settings: Settings, target: StdioTarget | DemoTarget | HttpTarget | None) -> None:
    from app import server

    try:
        sockets = server.bind(settings)
    except server.CannotListen as fault:
        raise _Stop(str(fault), _FAILED) from fault
    settings = settings.model_copy(update={"port": sockets[0].getsockname()[1]})
    server.set_up_log(settings.limits)

    from app import opening
    from app.web.app import create_app

    address = server.url(settings)
    leading: list[opening.Page] = []

    def announce(code: str) -> None:
        for page in leading:
            page.remove()  # the code in it has been used or has expired
        _say(f"Parley: the next way in is {address}/login?code={code}")

    app = create_app(settings, announce=announce)

    async def listening() -> None:
        way_in, trouble = f"{address}/login?code={app.state.visitors.code}", None
        if target is not None:
            await app.state.loaded.wait()
            from app.core.errors import ParleyError
            from app.web.connect.routes import begin

            try:
                # The demo begins on the stage, where its parade is.
                way_in += f"&next=/s/{begin(app, target).id}" + ("/stage" if target.transport == "demo" else "")
            except ParleyError as fault:
                trouble = fault.message
        if not _say(f"Parley is at {way_in}"):
            _complain("the address cannot be shown, because nothing reads the standard output; scripts still get in")
        gc.freeze()
        gc.enable()
        if trouble is not None:
            _complain(trouble)
        if settings.open_browser and _has_screen():
            page = opening.open_browser(way_in)
            leading.extend([] if page is None else [page])

    parley = server.Server(app, settings, listening)
    try:
        parley.run(sockets)
    finally:
        for page in leading:
            page.remove()
    if parley.broken or not parley.started:
        raise _Stop("it broke inside and had to stop; the log above has the reason", _FAILED)


def _has_screen() -> bool:
    if sys.platform == "darwin":
        return "SSH_CONNECTION" not in os.environ
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
