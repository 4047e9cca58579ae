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
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from app import __version__, garbage, process
from app.configured import FAILED, USAGE, Stop, complain, first_fault, settings_of, shown

# pydantic looks for plugins in every installed package, which costs the start 30 ms, and there are none.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

if TYPE_CHECKING:
    import socket

    from app.core.targets import AnyTarget
    from app.rooms import Listener
    from app.settings import Settings

_PROGRAM = "to start a program write: parley -- COMMAND, like: parley -- python server.py"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        kind, _, words = message.partition(": ")
        if kind == "unrecognized arguments" and not words.startswith("-"):
            raise Stop(f"there is no place for {shown(words)}; {_PROGRAM}")
        raise Stop(f"{message[:200]}; see parley --help")


def main(argv: Sequence[str] | None = None) -> int:
    """Run Parley; the exit code."""
    # A tenth of the start is the collector looking at imports that stay.
    gc.disable()
    # Until the server listens for signals, Ctrl-C just ends the process: there is nothing to put away, and no traceback
    # that a person could use.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    given = list(sys.argv[1:] if argv is None else argv)
    try:
        if given[:1] == ["auth"]:
            return _auth(given[1:])
        if given[:1] in (["team"], ["invite"], ["drain"]):
            from app import team

            return team.run(given, _say, complain, first_fault)
        file = None
        if "open" in given:
            from app.opening import recording_in

            given, file, why = recording_in(given)
            if why:
                raise Stop(why, USAGE if file is None else FAILED)
        arguments, command = _arguments(given)
        settings = settings_of(arguments)
        target = _target(arguments.target, command)
        if arguments.public:
            _check_public(arguments, command)
            _serve_public(settings, arguments.trusted_proxy)
            return 0
        _serve(settings, target, file, _listener(arguments))
    except Stop as stop:
        complain(str(stop))
        return stop.code
    return 0


def _say(line: str) -> bool:
    """One line on standard output. Parley goes on without it, as in `parley | head -1`; False says it was not shown."""
    try:
        print(line, flush=True)
    except OSError:
        # What is left in its buffer must not be tried again at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return sys.stdout is not None


def _auth(argv: Sequence[str]) -> int:
    """`parley auth URL`: sign in to a server in the terminal."""
    from app import opening, signing
    from app.core.targets import HttpTarget

    arguments = signing.parser(_Parser).parse_args(argv)
    is_address = arguments.url.lower().startswith(("http://", "https://"))
    target = _target(arguments.url, None) if is_address else None
    if not isinstance(target, HttpTarget):
        raise Stop("parley auth takes the address of a server, like: parley auth https://example.com/mcp")
    secret = process.take_variable("PARLEY_CLIENT_SECRET") or ""
    if secret and not arguments.client_id:
        raise Stop("PARLEY_CLIENT_SECRET belongs to a client: name it with --client-id")
    try:
        return signing.run(arguments, target, secret, opening.open_browser if opening.has_screen() else _nowhere)
    except OSError as fault:
        raise Stop(
            f"no port can be opened for the browser to come back to: {fault.strerror}", signing.BROKEN
        ) from fault


# -------------------------------------------------------------------------------------------------------- arguments


def _arguments(argv: Sequence[str]) -> tuple[argparse.Namespace, list[str] | None]:
    """What stands before `--` is ours, what stands after it is the command of a server, as it is."""
    ours, command = list(argv), None
    if "--" in ours:
        at = ours.index("--")
        ours, command = ours[:at], ours[at + 1 :]
        if not command:
            raise Stop("after -- the command of a server is missing, like: parley -- python server.py")
        for word in command:
            try:
                word.encode()
            except UnicodeEncodeError:  # a byte that is no text could be neither shown nor saved
                raise Stop(f"{shown(word)} is not UTF-8 text, and Parley starts programs with nothing else") from None
    parser = _Parser(
        prog="parley",
        usage="parley [options] [demo | URL | open FILE | -- COMMAND ARGS ...]\n       parley auth URL [options]\n"
        "       parley team | invite NAME | drain NAME --config FILE",
        description="A browser-based MCP inspector that answers back.",
        epilog="open FILE opens a recording, gzipped or not. "
        "The command line counts first, then PARLEY_PORT, PARLEY_HOST, PARLEY_DATA_DIR, PARLEY_RECORD, "
        "PARLEY_TOKEN and PARLEY_CONFIG of the environment, then the config file with port, host, open_browser, "
        "data_dir, record, recordings_in, token, published_on_loopback, roots, public_url, client_metadata_url, "
        "keep_sign_ins and [limits].",
        allow_abbrev=False,
    )
    parser.add_argument("target", nargs="?", metavar="demo | URL", help="open a session already connected to this")
    parser.add_argument("--port", metavar="N", help="where to listen (6280; 0 takes any free port)")
    parser.add_argument("--host", metavar="ADDRESS", help="the loopback address to listen on (127.0.0.1 and ::1)")
    parser.add_argument("--no-open", action="store_true", help="do not open the browser")
    parser.add_argument("--record", action="store_true", help="record every session from its first message on")
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings in TOML")
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="where saved targets are kept")
    parser.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="holds the token that scripts send; better than PARLEY_TOKEN, which whoever set it still shows",
    )
    parser.add_argument("--public", action="store_true", help="with demo: let anybody try it, and nothing else")
    parser.add_argument("--public-url", metavar="URL", help="how browsers elsewhere call this Parley: that of a proxy")
    parser.add_argument(
        "--room", metavar="ADDRESS", help="where phones of a room come in; nothing else is served there"
    )
    parser.add_argument("--room-url", metavar="URL", help="how phones call that, when a proxy stands before it")
    parser.add_argument(
        "--trusted-proxy",
        action="append",
        metavar="ADDRESS",
        help="the proxy before a room or a public demo, whose word counts for where somebody comes from (this machine)",
    )
    parser.add_argument(
        "--published-on-loopback",
        action="store_true",
        help="allow another --host: a container publishes the port on the loopback address of its host",
    )
    parser.add_argument("--version", action="version", version=f"parley {__version__}")
    arguments = parser.parse_args(ours)
    if arguments.target is not None and command is not None:
        raise Stop("give either a target or, after --, a command, not both")
    return arguments, command


def _target(word: str | None, command: list[str] | None) -> AnyTarget | None:
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
        raise Stop(f"the target cannot be used: {first_fault(fault)}") from fault
    raise Stop(f"{shown(word)} is neither 'demo' nor a URL that begins with http:// or https://; {_PROGRAM}")


def _program(name: str) -> str:
    import shutil

    if shutil.which(name) is not None:
        return name
    with suppress(OSError):  # of a name that is too long to be one
        if Path(name).is_file():
            raise Stop(f"{shown(name)} is not a program; write before it what runs it, like: "
                        "parley -- python server.py", FAILED)  # fmt: skip
    raise Stop(f"there is no program {shown(name)} that could be started; check its name and your PATH", FAILED)


def _here() -> str:
    try:
        return str(Path.cwd())
    except OSError:
        raise Stop("the directory you are in is gone; change to one that exists", FAILED) from None


def _with_host(address: str) -> str:
    """An address that somebody could be at. What is there is found out by the session, and shown in it."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(address)
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise Stop(f"{shown(address)} has no host and port that could be dialled; write it like "
                    "http://127.0.0.1:8000/mcp")  # fmt: skip
    return address


# ------------------------------------------------------------------------------------------------------------ serve


def _check_public(arguments: argparse.Namespace, command: list[str] | None) -> None:
    """A public demo has the demo server, no room and nothing of this user."""
    if arguments.target != "demo" or command is not None:
        raise Stop("--public lets anybody try the demo server, and no other: parley demo --public")
    if arguments.room is not None or arguments.record:
        raise Stop("a public demo has neither a room nor recordings; leave out --room and --record")


def _serve_public(settings: Settings, trusted: list[str] | None) -> None:
    """Anybody may come in: the demo server, half an hour, nothing kept."""
    from app import rooms, server
    from app.settings import demo

    try:
        url = rooms.outside(settings.public_url, "--public-url")
        proxies = rooms.proxies(trusted, url)
    except rooms.Unusable as fault:
        raise Stop(str(fault)) from fault
    public = demo(host=settings.host, port=settings.port, public_url=url or None)
    sockets = _bound(public)
    public = public.model_copy(update={"port": sockets[0].getsockname()[1]})
    server.set_up_log(public.limits)
    from app.web.visiting.app import create_public_app

    app = create_public_app(public, proxies)

    async def listening() -> None:
        await app.state.loaded.wait()
        garbage.begin()
        where = public.public_url or server.url(public)
        _say(f"Parley is at {where}/ for anybody: one session each with the demo server, half an hour, nothing is kept")

    parley = server.Server(app, public, listening)
    parley.run(sockets)
    if parley.broken or not parley.started:
        raise Stop("it broke inside and had to stop; the log above has the reason", FAILED)


def _bound(settings: Settings) -> list[socket.socket]:
    from app import server

    try:
        return server.bind(settings)
    except server.CannotListen as fault:
        raise Stop(str(fault), FAILED) from fault


def _listener(arguments: argparse.Namespace) -> Listener | None:
    """Where phones come in, when somebody said so."""
    if arguments.room is None:
        if arguments.room_url is not None:
            raise Stop("--room-url says how phones call a room; --room ADDRESS says where it listens")
        if arguments.trusted_proxy is not None:
            raise Stop("--trusted-proxy names what stands before a room or a public demo; there is neither here")
        return None
    from app import rooms, server

    try:
        url = rooms.outside(arguments.room_url)
        return rooms.Listener(*rooms.place(arguments.room), url, rooms.proxies(arguments.trusted_proxy, url))
    except rooms.Unusable as fault:
        raise Stop(str(fault)) from fault
    except server.CannotListen as fault:
        raise Stop(str(fault), FAILED) from fault


def _serve(
    settings: Settings, target: AnyTarget | None, file: Path | None = None, listener: Listener | None = None
) -> None:
    from app import server

    sockets = _bound(settings)
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
        if listener is not None:
            await app.state.loaded.wait()
            app.state.registry.reach = listener
            _say(f"Parley: a room will be at {listener.origin}. {listener.words}")
        way_in, trouble = f"{address}/login?code={app.state.visitors.code}", None
        if file is not None:
            await app.state.loaded.wait()
            from app.recordings.arriving import opened

            rid, trouble = await opened(app.state.registry, file)
            way_in += f"&next=/r/{rid}" if rid else ""
        elif target is not None:
            await app.state.loaded.wait()
            from app.core.errors import ParleyError
            from app.web.connect.routes import begin

            try:
                # The demo begins on the stage, where its parade is.
                way_in += f"&next=/s/{begin(app, target).id}" + ("/stage" if target.transport == "demo" else "")
            except ParleyError as fault:
                trouble = fault.message
        if not _say(f"Parley is at {way_in}"):
            complain("the address cannot be shown, because nothing reads the standard output; scripts still get in")
        garbage.begin()
        if trouble is not None:
            complain(trouble)
        if settings.open_browser and opening.has_screen():
            page = opening.open_browser(way_in)
            leading.extend([] if page is None else [page])

    parley = server.Server(app, settings, listening)
    if listener is not None:
        from app.rooms import RoomServer

        parley = RoomServer(app, settings, listening, listener)
    try:
        parley.run(sockets)
    finally:
        for page in leading:
            page.remove()
    if parley.broken or not parley.started:
        raise Stop("it broke inside and had to stop; the log above has the reason", FAILED)


def _nowhere(_: str) -> None:
    """Without a screen, a person opens the address elsewhere."""
