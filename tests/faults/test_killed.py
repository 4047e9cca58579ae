"""F24: Parley itself is killed with SIGKILL, and a child that ignores everything else still ends."""

import os
import signal
import subprocess
import sys
import textwrap

import psutil
import pytest

from tests.drive import HANG, ROOT

DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
LISTENING = "import sys; sys.stdin.read()"
"""Only Linux can tie a child to the life of its parent; elsewhere a child must look at its stdin."""
DRIVER = textwrap.dedent(
    """
    import sys, anyio
    from app.core.options import Options
    from app.core.targets import StdioTarget
    from app.sessions import Identity, SessionRegistry
    from app.settings import local

    async def main():
        me = Identity("local", "you")
        async with SessionRegistry(local()) as registry:
            session = registry.open(me)
            session.connect(StdioTarget(command=sys.executable, args=("-c", sys.argv[1])), Options(), by=me)
            while session.info.pid is None:
                await session.events.wait(session.events.seq)
            print(session.info.pid, flush=True)
            await anyio.sleep_forever()

    anyio.run(main)
    """
)


@pytest.mark.requirement("F24")
def test_a_child_dies_with_a_killed_parley():
    program = DEAF if sys.platform == "linux" else LISTENING
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, program], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    child = psutil.Process(int(driver.stdout.readline()))
    assert child.is_running()
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait(HANG)
    driver.stdout.close()
    gone, alive = psutil.wait_procs([child], timeout=HANG)
    for each in alive:
        each.kill()
    assert (len(gone), alive) == (1, [])
