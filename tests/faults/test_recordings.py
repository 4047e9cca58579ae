"""What can happen to a disk while a session is recorded, in a real Parley: the recording ends, the session does not.

And Parley itself may be killed: what was recorded until a second before is there, whole to the line.
"""

import json
import resource
import time
import urllib.error
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app import bounds
from tests.browser.parley import Parley, running
from tests.drive import HANG
from tests.recordings.drive import read_text

pytestmark = [pytest.mark.faults]

SMALL = 400_000


def within(what: Callable[[], Any]) -> Any:
    """Wait for something to become true, by asking again; a guard against a hang."""
    until = time.monotonic() + HANG
    while not (found := what()):
        assert time.monotonic() < until
        time.sleep(0.05)
    return found


class Recorded:
    """A session of a running Parley, and its recording."""

    def __init__(self, parley: Parley) -> None:
        self.parley = parley
        self.url = parley.script("POST", "/s", target={"transport": "demo"}, options={"era": "legacy"})["url"]
        assert parley.script("GET", f"{self.url}?wait=30")["connection"]["state"] == "ready"

    def record(self, on: bool) -> Any:
        return self.parley.script("POST", f"{self.url}/record", on=on)

    def echo(self, message: str) -> None:
        arguments = {"name": "echo", "arguments": {"message": message}}
        call = self.parley.script("POST", f"{self.url}/calls", method="tools/call", params=arguments)
        assert self.parley.script("GET", f"{call['url']}?wait=30")["state"] == "done"

    def trouble(self) -> str:
        """The sentence with which the recording ended, while the session goes on."""

        def told() -> str | None:
            self.echo("still here " * 100)
            found: str | None = self.parley.script("GET", self.url)["recording"]["trouble"]
            return found

        words: str = within(told)
        self.echo("and still")
        assert self.parley.script("GET", self.url)["connection"]["state"] == "ready"
        assert words.endswith("The session goes on.")
        return words


@pytest.mark.requirement("U-C03")
def test_a_disk_that_fails_ends_the_recording_and_a_kill_costs_a_second(tmp_path: Path):
    data, folder = tmp_path / "data", tmp_path / "data" / "recordings"
    with running("--data-dir", str(data)) as parley:
        session = Recorded(parley)

        # the directory is there no longer
        session.record(True)
        folder.rename(tmp_path / "away")
        assert "is gone" in session.trouble()

        # nothing can be written there from the beginning
        folder.write_text("in the way")
        with pytest.raises(urllib.error.HTTPError) as refused:
            session.record(True)
        assert refused.value.code == 403
        said = json.loads(refused.value.read())["error"]["message"]
        assert str(folder) in said
        folder.unlink()
        session.echo("goes on")

        # the disk is full
        session.record(True)
        before = resource.prlimit(parley.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(parley.process.pid, resource.RLIMIT_FSIZE, (SMALL, before[1]))
        session.echo("x" * SMALL)
        assert "is full" in session.trouble()
        resource.prlimit(parley.process.pid, resource.RLIMIT_FSIZE, before)
        states = {one["state"] for one in parley.script("GET", "/recordings")["recordings"]}
        assert states == {"cut"}
        for cut in folder.glob("*.jsonl"):
            read_text(cut.read_bytes())  # whole to the line

        # Parley is killed in the middle
        rid = session.record(True)["rid"]
        file = folder / f"{rid}.jsonl"
        session.echo("a second before")
        within(lambda: b"a second before" in file.read_bytes())
        for number in range(50):
            session.echo(f"in the middle {number}")
        parley.process.kill()
        parley.process.wait()
        found = read_text(file.read_bytes())  # whole to the line
        assert found.end is None
        numbers = [frame.number for frame in found.frames]
        assert numbers == list(range(numbers[0], numbers[-1] + 1)), "nothing is missing but the end"
        assert bounds.RECORDING_TICK_SECONDS < 0.5, "and that is less than a second"
        assert any(b"a second before" in (frame.raw or b"") for frame in found.frames)

    with running("--data-dir", str(data)) as parley:
        within(lambda: parley.script("GET", "/recordings")["recordings"])
        size = file.stat().st_size
        rows = within(
            lambda: (
                rows
                if (rows := {one["rid"]: one for one in parley.script("GET", "/recordings")["recordings"]})[rid]["size"]
                == size
                else None
            )
        )
        assert rows[rid]["state"] == "cut"
        assert rows[rid]["words"] == "Parley ended while it was recording."


@pytest.mark.requirement("U-C03")
def test_parley_that_is_told_to_end_ends_its_recordings(tmp_path: Path):
    with running("--data-dir", str(tmp_path), "--record", "demo") as parley:
        session = within(lambda: parley.script("GET", "/")["sessions"])[0]
        ready = within(lambda: (one := parley.script("GET", session["url"]))["connection"]["state"] == "ready" and one)
        told = tmp_path / "recordings" / f"{ready['recording']['rid']}.jsonl"
        within(lambda: told.exists() and b'"direction":"in"' in told.read_bytes())  # its process has started by now
        parley.stop()
        assert parley.process.returncode == 0
        found = read_text(told.read_bytes())
        assert found.end is not None, "".join(parley.output)
        assert found.end.why == "shutdown"
        assert found.frames[0].number == 1, "from the first byte of the connection on"
