"""The command line: arguments to `Settings`, then serve until a signal.

What is imported before the port is open is what a person waits for, so the rest comes late; the MCP SDK comes last,
in a thread, while the page is already there.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from app import __version__

# pydantic looks for plugins in every installed package, which costs the start 30 ms, and there are none.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

if TYPE_CHECKING:
    from app.core.model import DemoTarget, HttpTarget, StdioTarget
    from app.settings import Settings

_USAGE, _FAILED = 2, 1


class _Stop(Exception):
    """The start ends here: one sentence for the person, and the exit code."""

    def __init__(self, sentence: str, code: int = _USAGE) -> None:
        super().__init__(sentence)
        self.code = code


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _Stop(f"{message}; see parley --help")


def main(argv: Sequence[str] | None = None) -> int:
    """Run Parley; the exit code."""
    # A tenth of the start is the collector looking at imports that stay, and pydantic looking for plug-ins.
    gc.disable()
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        arguments, command = _arguments(sys.argv[1:] if argv is None else argv)
        settings = _settings(arguments)
        target = _target(arguments.target, command)
        _serve(settings, target)
    except _Stop as stop:
        print(f"parley: {stop}", file=sys.stderr)
        return stop.code
    return 0


# -------------------------------------------------------------------------------------------------------- arguments


def _arguments(argv: Sequence[str]) -> tuple[argparse.Namespace, list[str] | None]:
    """What stands before `--` is ours, what stands after it is the command of a server, as it is."""
    ours, command = list(argv), None
    if "--" in ours:
        at = ours.index("--")
        ours, command = ours[:at], ours[at + 1 :]
        if not command:
            raise _Stop("after -- the command of a server is missing, like: parley -- python server.py")
    parser = _Parser(
        prog="parley",
        usage="parley [options] [demo | URL | -- COMMAND ARGS…]",
        description="A browser-based MCP inspector that answers back.",
        epilog="Each option may also stand in the file of --config; PARLEY_PORT, PARLEY_HOST, PARLEY_CONFIG, "
        "PARLEY_DATA_DIR and PARLEY_TOKEN do the same from the environment. The command line counts first, then the "
        "environment.",
        allow_abbrev=False,
    )
    parser.add_argument("target", nargs="?", metavar="demo | URL", help="open a session already connected to this")
    parser.add_argument("--port", type=int, help="where to listen (6280; 0 takes any free port)")
    parser.add_argument("--host", help="the loopback address to listen on (127.0.0.1 and ::1)")
    parser.add_argument("--no-open", action="store_true", help="do not open the browser")
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings in TOML")
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="where saved targets are kept")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="holds the token that scripts send")
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

    from app.core.model import DemoTarget, HttpTarget, StdioTarget

    try:
        if command is not None:
            import shutil

            if shutil.which(command[0]) is None:
                raise _Stop(f"there is no command {command[0]!r} that could be started", _FAILED)
            return StdioTarget(command=command[0], args=tuple(command[1:]), cwd=str(Path.cwd()))
        if word is None:
            return None
        if word == "demo":
            return DemoTarget()
        if word.startswith(("http://", "https://")):
            return HttpTarget(transport="http", url=word)
    except ValidationError as fault:
        raise _Stop(f"the target cannot be used: {_first(fault)}") from fault
    raise _Stop(f"{word!r} is neither 'demo' nor a URL; to start a program write: parley -- {word}")


# --------------------------------------------------------------------------------------------------------- settings


def _settings(arguments: argparse.Namespace) -> Settings:
    """Command line before `PARLEY_*` before the file before the preset."""
    from pydantic import ValidationError

    from app.settings import local

    # Taken out, so that no child process can find it there.
    token = os.environ.pop("PARLEY_TOKEN", None) or None
    if arguments.token_file is not None:
        token = _read(arguments.token_file, "token file").strip()
    from_file = arguments.config or os.environ.get("PARLEY_CONFIG") or None
    changes: dict[str, Any] = {} if from_file is None else _config(Path(from_file))
    given = {
        "port": _first_of(arguments.port, os.environ.get("PARLEY_PORT")),
        "host": _first_of(arguments.host, os.environ.get("PARLEY_HOST")),
        "data_dir": _first_of(arguments.data_dir, os.environ.get("PARLEY_DATA_DIR")),
        "token": token,
        "published_on_loopback": arguments.published_on_loopback or None,
        "open_browser": False if arguments.no_open else None,
    }
    changes |= {key: value for key, value in given.items() if value is not None}
    if "data_dir" not in changes:
        changes["data_dir"] = _data_dir()
    if isinstance(changes.get("token"), str) and not _sendable(changes["token"]):
        raise _Stop("the token must be at least 16 visible ASCII characters, without spaces")
    try:
        settings = local(**changes)
    except ValidationError as fault:
        raise _Stop(f"a setting cannot be used: {_first(fault)}") from fault
    _check_host(settings)
    return settings


def _data_dir() -> Path | None:
    """The usual place; None where the user has no home."""
    from app.settings import default_data_dir

    try:
        return default_data_dir()
    except RuntimeError:
        return None


def _check_host(settings: Settings) -> None:
    import ipaddress

    try:
        address = ipaddress.ip_address("127.0.0.1" if settings.host == "localhost" else settings.host)
    except ValueError:
        raise _Stop(f"--host takes an IP address or localhost, not {settings.host!r}") from None
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


def _sendable(token: str) -> bool:
    return len(token) >= 16 and token.isascii() and token.isprintable() and " " not in token


def _first_of(*values: Any) -> Any:
    return next((value for value in values if value not in {None, ""}), None)


def _first(fault: Any) -> str:
    error = fault.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return f"there is no {where}"
    return f"{where}: {error['msg'].removeprefix('Value error, ')}"


# ------------------------------------------------------------------------------------------------------------ serve


def _serve(settings: Settings, target: StdioTarget | DemoTarget | HttpTarget | None) -> None:
    from app.web import serve

    try:
        sockets = serve.bind(settings)
    except serve.CannotListen as fault:
        raise _Stop(str(fault), _FAILED) from fault
    settings = settings.model_copy(update={"port": sockets[0].getsockname()[1]})
    serve.set_up_log()

    from app.web.app import create_app

    address = serve.url(settings)

    def announce(code: str) -> None:
        print(f"Parley: the next way in is {address}/login?code={code}", flush=True)

    app = create_app(settings, announce=announce)

    async def listening() -> None:
        way_in, trouble = f"{address}/login?code={app.state.door.code}", None
        if target is not None:
            await app.state.loaded.wait()
            from app.core.model import ParleyError
            from app.web.actions import begin

            try:
                # The demo begins on the stage, where its parade is.
                way_in += f"&next=/s/{begin(app, target).id}" + ("/stage" if target.transport == "demo" else "")
            except ParleyError as fault:
                trouble = fault.message
        print(f"Parley is at {way_in}", flush=True)
        gc.freeze()
        gc.enable()
        if trouble is not None:
            print(f"parley: {trouble}", file=sys.stderr)
        if settings.open_browser and _has_screen():
            _open_browser(way_in)

    server = serve.Server(app, settings, listening)
    server.run(sockets)
    if server.broken or not server.started:
        raise _Stop("it broke inside and had to stop; the log above has the reason", _FAILED)


def _has_screen() -> bool:
    if sys.platform == "darwin":
        return "SSH_CONNECTION" not in os.environ
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _open_browser(address: str) -> None:
    """In a thread of its own: some browsers return only when they are closed."""
    import threading
    import webbrowser

    threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()


if __name__ == "__main__":
    sys.exit(main())
