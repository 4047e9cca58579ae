"""The pipes of a child, at their ends: what nobody reads is said, and nothing of it stays."""

import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from app.core.targets import StdioTarget
from app.protocol.links.base import LinkError, Outbound
from app.protocol.links.stdio import StdioLink, open_stdio
from app.settings import Limits

REQUEST = Outbound("request", 1)


@asynccontextmanager
async def child(code: str, *args: str) -> AsyncGenerator[StdioLink, None]:
    target = StdioTarget(command=sys.executable, args=("-c", code, *args))
    limits = Limits(stdin_close_seconds=0.1, terminate_seconds=0.1)
    with anyio.fail_after(20):
        async with open_stdio(target, limits, lambda _: None) as link:
            yield link


async def test_a_line_that_the_system_refuses_is_not_taken_for_sent(tmp_path: Path):
    """The child closes its input between two turns of the loop, so asyncio learns of it by the write alone."""
    fifo = tmp_path / "closed"
    os.mkfifo(fifo)
    code = "import os, sys, time; os.read(0, 9); os.close(0); open(sys.argv[1], 'w').close(); time.sleep(60)"
    async with child(code, str(fifo)) as link:
        await link.send(b"{}", REQUEST)
        fifo.read_bytes()  # blocks on purpose: no turn of the loop until the child has closed its input
        with pytest.raises(LinkError, match="no longer reads"):
            await link.send(b"{}", REQUEST)


def descriptors() -> set[Path]:
    return set(Path("/dev/fd").iterdir())


async def test_an_input_that_a_descendant_holds_and_never_reads_is_closed():
    code = "import subprocess, time; holder = subprocess.Popen(['sleep', '60'], start_new_session=True)"
    before = descriptors()
    async with child(f"{code}; print(holder.pid, flush=True); time.sleep(60)") as link:
        lines = await link.receive()
        assert lines and isinstance(lines[0], bytes)
        with anyio.CancelScope() as gives_up:
            gives_up.cancel()
            await link.send(b"x" * 1_000_000, REQUEST)
    try:
        with anyio.fail_after(5):
            while descriptors() - before:
                await anyio.lowlevel.checkpoint()
    finally:
        os.kill(int(lines[0]), signal.SIGKILL)
