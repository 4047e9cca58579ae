"""The photographer of `make pictures`: what differs is found, what does not is not, and time stands still."""

import struct
import subprocess
import sys
import zlib
from pathlib import Path

from tests.browser.parley import ROOT
from tests.pictures import frozen

PROGRAM = """
import datetime, os, secrets, time, uuid
before = time.monotonic(), time.perf_counter()
sum(range(1_000_000))  # takes a while
print(time.time(), datetime.datetime.now(datetime.UTC).isoformat(), time.monotonic() - before[0])
print(secrets.token_urlsafe(9), secrets.token_urlsafe(9), secrets.token_hex(4), uuid.uuid4(), os.urandom(3).hex())
print(isinstance(datetime.datetime.fromtimestamp(0, datetime.UTC), datetime.datetime), time.perf_counter() - before[1])
"""


def picture(path: Path, width: int, height: int, *red: tuple[int, int]) -> None:
    """A white PNG with red pixels."""
    rows = b"".join(
        b"\0" + b"".join(b"\xff\0\0" if (x, y) in red else b"\xff\xff\xff" for x in range(width)) for y in range(height)
    )

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def compared(before: Path, after: Path) -> tuple[int, list[str]]:
    command = [sys.executable, "-m", "tests.pictures", "--compare", str(before), str(after)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def test_a_difference_is_found_counted_and_drawn(tmp_path: Path):
    before, after = tmp_path / "before", tmp_path / "after"
    for folder in (before, after):
        picture(folder / "same.png", 20, 10, (1, 1))
    picture(before / "moved.png", 20, 10, (3, 4))
    picture(after / "moved.png", 20, 10, (5, 6))
    picture(before / "longer.png", 20, 10)
    picture(after / "longer.png", 20, 12)
    picture(before / "gone.png", 2, 2)
    picture(after / "new.png", 2, 2)
    assert compared(before, after) == (
        1,
        [
            "gone.png: is missing",
            "longer.png: 20×10 became 20×12; 40 pixels differ, within x 0–20, y 10–12",
            "moved.png: 2 pixels differ, within x 3–6, y 4–7",
            "new.png: is extra",
            "4 of 5 pictures differ",
        ],
    )
    assert {each.name for each in (after / "differences").iterdir()} == {"longer.png", "moved.png"}
    assert compared(before, before) == (0, ["0 of 4 pictures differ"])


def test_a_frozen_program_says_the_same_each_time(tmp_path: Path):
    (tmp_path / "thing").mkdir()
    (tmp_path / "thing" / "__main__.py").write_text(PROGRAM, encoding="utf-8")
    clock = tmp_path / "clock"
    clock.write_bytes(struct.pack("<d", 1_768_478_400.0))

    def run() -> list[str]:
        command = [sys.executable, frozen.__file__, str(clock), "thing"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
        return done.stdout.splitlines()

    first = run()
    assert first == run()
    assert first[0] == "1768478400.0 2026-01-15T12:00:00+00:00 0.0"
    ids = first[1].split()
    assert len(ids) == len(set(ids)) == 5
    assert first[2] == "True 0.0"
