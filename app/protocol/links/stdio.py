"""Target to link: an open, two-way channel of frames, exact to the byte.

Owns how a server is started or dialled, how its bytes become frames, and how it is ended. Knows JSON-RPC not at all:
a frame is bytes, and whoever reads it decides what it is. stdio is ours rather than the SDK's, which loses the exact
line, the exit code and, on one bad byte, the session.

Ending a child (R5-06): close its stdin, wait; SIGTERM to its process group, wait; SIGKILL to the group, reap. The
whole takes at most 5 seconds, also when the caller is cancelled, and ends grandchildren that stayed in the group; where
Parley serves on Linux, also those that left it (H09).
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from subprocess import PIPE

import anyio
import anyio.abc
import anyio.lowlevel
import anyio.to_thread

from app import bounds
from app import process as system
from app.core.errors import Trouble
from app.core.signal import Signal
from app.core.targets import StdioTarget
from app.core.wire import RpcId
from app.protocol.links.base import Inbound, LinkError, Outbound, Oversized
from app.settings import Limits

INHERITED = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
"""What a child sees of our environment, besides what the person typed: nothing that could hold a secret."""


class LineSplitter:
    """Chunks in, lines out, in linear time whatever the length of a line."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes | Oversized]:
        """The lines that this chunk completes, without their line feed."""
        *whole, rest = chunk.split(b"\n")
        lines: list[bytes | Oversized] = []
        for piece in whole:
            self._keep(piece)
            lines.append(self._take())
        self._keep(rest)
        if self._size > self._limit:
            lines.append(self._take())
        return lines

    def rest(self) -> bytes | Oversized | None:
        """What stood after the last line feed when the stream ended."""
        return self._take() if self._size else None

    def _keep(self, piece: bytes) -> None:
        if piece:
            self._parts.append(piece)
            self._size += len(piece)

    def _take(self) -> bytes | Oversized:
        size, line = self._size, b"".join(self._parts)
        self._parts, self._size = [], 0
        return line if size <= self._limit else Oversized(line, size)


def child_environment(extra: dict[str, str]) -> dict[str, str]:
    """The environment of a child: a few harmless names of ours, then what the person set."""
    return {name: os.environ[name] for name in INHERITED if name in os.environ} | extra


def demo_command() -> StdioTarget:
    """How the built-in demo server is started: this interpreter, the installed package, no shell."""
    home = Path(__file__).resolve().parents[3]
    return StdioTarget(command=sys.executable, args=("-m", "app.demo.server"), cwd=str(home))


class Child(asyncio.SubprocessProtocol):
    """A child process and its three pipes, read as far as somebody takes what came.

    On asyncio itself, as Parley runs: what the library puts around it takes a turn of the loop and a cancel scope for
    each line, a tenth of what a call over stdio costs."""

    def __init__(self) -> None:
        self.exited = Signal()
        self._unread: dict[int, deque[bytes]] = {1: deque(), 2: deque()}
        self._open = {1, 2}
        self._resting: set[int] = set()
        self._readers: dict[int, Signal] = {}
        self._room: Signal | None = None
        """Set when the child has read enough of what was written; None while there is room."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio has started it."""
        if not isinstance(transport, asyncio.SubprocessTransport):
            raise TypeError("this is no child process")
        self._transport = transport
        self.pid: int = transport.get_pid()

    @property
    def returncode(self) -> int | None:
        """How it ended; None while it runs."""
        return self._transport.get_returncode()

    # ---- told by asyncio

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Bytes came; a pipe that nobody takes from rests."""
        self._unread[fd].append(data)
        pipe = self._transport.get_pipe_transport(fd)
        if len(self._unread[fd]) > 1 and fd not in self._resting and isinstance(pipe, asyncio.ReadTransport):
            self._resting.add(fd)
            pipe.pause_reading()
        self.wake(fd)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """A pipe is closed at the other end."""
        self._open.discard(fd)
        self.wake(fd)
        if fd == 0:
            self.resume_writing()

    def pause_writing(self) -> None:
        """The child reads more slowly than we write."""
        self._room = self._room or Signal()

    def resume_writing(self) -> None:
        """The child has read most of it."""
        room, self._room = self._room, None
        if room is not None:
            room.set()

    def process_exited(self) -> None:
        """It has ended; its pipes may hold more."""
        self.exited.set()

    # ---- asked by the link

    def wake(self, fd: int) -> None:
        """Whoever reads this pipe looks again."""
        reader = self._readers.pop(fd, None)
        if reader is not None:
            reader.set()

    def waits(self, fd: int) -> bool:
        """Whether somebody reads this pipe and nothing is there."""
        return fd in self._readers

    async def read(self, fd: int) -> bytes | None:
        """What came next, empty when woken without anything, None once the pipe is closed."""
        if self._unread[fd] or fd not in self._open:
            await anyio.lowlevel.checkpoint()
        else:
            reader = self._readers[fd] = Signal()
            await reader.wait()
        unread = self._unread[fd]
        if not unread:
            return b"" if fd in self._open else None
        chunk = unread.popleft()
        pipe = self._transport.get_pipe_transport(fd)
        if not unread and fd in self._resting and isinstance(pipe, asyncio.ReadTransport):
            self._resting.discard(fd)
            pipe.resume_reading()
        return chunk

    async def write(self, line: bytes) -> None:
        """Hand a line over, whole, and wait while the child has much to read. Raises OSError when it reads no more."""
        pipe = self._transport.get_pipe_transport(0)
        if not isinstance(pipe, asyncio.WriteTransport) or pipe.is_closing():
            raise BrokenPipeError
        pipe.write(line)
        if self._room is not None:
            await self._room.wait()
        if pipe.is_closing():  # asyncio keeps to itself that the system refused the line
            raise BrokenPipeError

    def close_input(self) -> None:
        """No more is written; what was handed over still leaves."""
        pipe = self._transport.get_pipe_transport(0)
        if pipe is not None:
            pipe.close()

    def close(self) -> None:
        """Close what is left of the pipes, also an input that somebody still holds and nobody reads."""
        pipe = self._transport.get_pipe_transport(0)
        if isinstance(pipe, asyncio.WriteTransport) and pipe.get_write_buffer_size():
            pipe.abort()
        self._transport.close()


class StdioLink:
    """A child process that speaks one message per line on its standard input and output (R5-40)."""

    def __init__(
        self,
        child: Child,
        target: StdioTarget,
        limits: Limits,
        on_stderr: Callable[[bytes], None],
        mark: str = "",
    ) -> None:
        self.child, self._target, self._limits, self._on_stderr = child, target, limits, on_stderr
        self._lines = LineSplitter(limits.message_bytes)
        self._chunks = 0
        self._over = False
        self._stderr_over = Signal()
        self._mark = mark
        """Stands in the environment of the child and of whoever descends from it."""
        self._family: frozenset[system.Process] = frozenset()
        """Descendants of the child, as far as they are known."""
        self.pid: int | None = child.pid

    def start(self, group: anyio.abc.TaskGroup) -> None:
        """Drain stderr, and see to it that reading ends soon after the child has."""
        group.start_soon(self._drain_stderr)
        group.start_soon(self._watch)

    async def _watch(self) -> None:
        await self.child.exited.wait()
        seen = -1
        # Whoever is still busy with what came before has not looked whether there is more.
        while seen != self._chunks or not self.child.waits(1):
            seen = self._chunks
            await anyio.sleep(bounds.AFTER_EXIT_SECONDS)
        self._over = True
        self.child.wake(1)

    async def receive(self) -> list[Inbound] | None:
        """Lines of stdout, each exactly as written, less its line feed."""
        while not self._over:
            chunk = await self.child.read(1)
            if chunk is None:
                self._over = True
            self._chunks += 1
            lines: list[Inbound] = [*self._lines.feed(chunk)] if chunk else []
            if lines:
                return lines
        rest = self._lines.rest()
        return None if rest is None else [rest]

    async def send(self, raw: bytes, about: Outbound) -> None:
        """One line to stdin. The whole line is handed over before the first wait, so no cancellation can cut it."""
        try:
            await self.child.write(raw + b"\n")
        except OSError:
            raise LinkError(Trouble("lost", "The server no longer reads its input.")) from None
        if about.delivery is not None:
            about.delivery.taken()

    def agreed(self, version: str) -> None:
        """The revision changes nothing for a pipe."""

    def settled(self, rpc_id: RpcId, *, answered: bool) -> bool:
        """Replies need no stream of their own on a pipe, and what is sent is sent."""
        return False

    async def ended(self) -> Trouble:
        """The exit status, when the child is gone; else that it closed its output."""
        with anyio.move_on_after(bounds.AFTER_EXIT_SECONDS):
            await self.child.exited.wait()
            await self._stderr_over.wait()
        code = self.child.returncode
        name = Path(self._target.command).name
        if code is None:
            return Trouble("closed-stdout", f"{name} closed its output while it was still running.", _LOOK_AT_STDERR)
        return exit_trouble(name, code)

    async def _drain_stderr(self) -> None:
        """Every line of stderr, however long, until the child closes it."""
        splitter = LineSplitter(self._limits.stderr_line_bytes * 4)
        try:
            while (chunk := await self.child.read(2)) is not None:
                for number, line in enumerate(splitter.feed(chunk), 1):
                    self._on_stderr(_start_of(line))
                    if number % bounds.STDERR_AT_ONCE == 0:
                        await anyio.lowlevel.checkpoint()
            rest = splitter.rest()
            if rest is not None:
                self._on_stderr(_start_of(rest))
        finally:
            self._stderr_over.set()

    async def end(self) -> None:
        """Close stdin, SIGTERM, SIGKILL, each with its time; then whoever is left of the group and of the family."""
        limits = self._limits
        await self._look_around()
        self.child.close_input()
        if not await self._gone(limits.stdin_close_seconds):
            self._signal(signal.SIGTERM)
            if not await self._gone(limits.terminate_seconds):
                self._signal(signal.SIGKILL)
                await self._gone(limits.kill_seconds)
        for number in (signal.SIGTERM, signal.SIGKILL):
            if await self._anybody_left():
                self._signal(number)
                system.tell(self._family, number)
                await self._all_gone(bounds.AFTER_EXIT_SECONDS)

    async def _gone(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds):
            await self.child.exited.wait()
        return self.child.returncode is not None

    async def _all_gone(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            while await self._anybody_left():  # noqa: ASYNC110 - they are not ours to wait for, only to look at
                await anyio.sleep(0.02)

    async def _anybody_left(self) -> bool:
        await self._look_around()
        return bool(self._family) or self._group_alive()

    async def _look_around(self) -> None:
        """Find who descends from the child. One that is seen while its parent lives is known when it is an orphan."""
        if self._mark:
            look = system.descendants_of
            self._family = await anyio.to_thread.run_sync(look, self.child.pid, self._mark, self._family)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.child.pid, number)

    def _group_alive(self) -> bool:
        try:
            os.killpg(self.child.pid, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return True


def _start_of(line: bytes | Oversized) -> bytes:
    return line.prefix if isinstance(line, Oversized) else line


_LOOK_AT_STDERR = "Look at its stderr for the reason, then connect again."


def exit_trouble(name: str, code: int) -> Trouble:
    """What to say of a child that ended."""
    if code < 0:
        try:
            word = signal.Signals(-code).name
        except ValueError:
            word = f"signal {-code}"
        return Trouble("exit", f"{name} was ended by {word}.", _LOOK_AT_STDERR, exit_code=code)
    if code == 127:
        return Trouble(
            "exit",
            f"{name} ended with code 127: something it tried to run was not found.",
            "Check the command and its arguments, then connect again.",
            exit_code=code,
        )
    return Trouble("exit", f"{name} ended with code {code}.", _LOOK_AT_STDERR, exit_code=code)


def start_trouble(target: StdioTarget, fault: OSError) -> Trouble:
    """What to say of a child that could not be started."""
    name = target.command
    if target.cwd is not None and not Path(target.cwd).is_dir():
        return Trouble(
            "cwd", f"There is no directory {target.cwd}.", "Correct the working directory, then connect again."
        )
    if isinstance(fault, FileNotFoundError):
        return Trouble(
            "not-found",
            f"The command {name} was not found.",
            "Check its spelling, give its full path, or install it; then connect again.",
        )
    if isinstance(fault, PermissionError):
        return Trouble(
            "not-executable", f"{name} may not be run.", "Make it executable, or name the program that runs it."
        )
    return Trouble(
        "start", f"{name} did not start: {fault.strerror or fault}.", "Check the command, then connect again."
    )


def _tied(target: StdioTarget, environment: dict[str, str]) -> list[str]:
    """The argument vector; on Linux through `setpriv`, so that the child dies with us even when we are killed (F24),
    and with the limit of open files that programs expect (H06).

    Only for what the system can run by itself: `setpriv` would give anything else to a shell (R5-72). A command that
    cannot be found is left alone, and the system says so."""
    argv = [target.command, *target.args]
    setpriv = shutil.which("setpriv") if sys.platform == "linux" else None
    name = target.command if "/" not in target.command else str(Path(target.cwd or ".") / target.command)
    found = None if setpriv is None else shutil.which(name, path=environment.get("PATH"))
    if setpriv is None or found is None:
        return argv
    try:
        with Path(found).open("rb") as file:
            head = file.read(4)
    except OSError:
        return argv
    if head != b"\x7fELF" and head[:2] != b"#!":
        return argv
    return [setpriv, "--pdeathsig", "KILL", "--", *system.with_old_file_limit(argv)]


@asynccontextmanager
async def open_stdio(
    target: StdioTarget, limits: Limits, on_stderr: Callable[[bytes], None], start: system.Start | None = None
) -> AsyncGenerator[StdioLink, None]:
    """The link to a child that is started here; as `start` says, where that was decided already."""
    try:
        # Shielded: a start that is cancelled half-way would leave a child that nobody waits for.
        with anyio.CancelScope(shield=True):
            mark = system.new_mark()
            environment = child_environment(target.env) if start is None else start.env
            environment = environment | ({system.VARIABLE: mark} if mark else {})
            _, child = await asyncio.get_running_loop().subprocess_exec(
                Child,
                *(_tied(target, environment) if start is None else start.argv),
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                cwd=target.cwd if start is None else start.cwd,
                env=environment,
                start_new_session=True,
            )
    except OSError as fault:
        raise LinkError(start_trouble(target, fault)) from None
    except ValueError as fault:
        raise LinkError(Trouble("start", f"{target.command} cannot be started: {fault}.", "Correct it.")) from None
    link = StdioLink(child, target, limits, on_stderr, mark)
    try:
        yield link
    finally:
        with anyio.CancelScope(shield=True):
            await link.end()
            child.close()
