"""Starts a program whose time and ids are frozen: `python frozen.py CLOCK PACKAGE ARGUMENTS...`.

It is run as a file, with the checkout to be looked at as the working directory, and changes sources of the standard
library before the first module of PACKAGE is imported. It names no module of that package, and so it works on every
commit alike.

The wall clock is the file CLOCK, eight bytes that somebody else moves. The clocks for durations move with it, but only
for the package itself: whoever else asks (the event loop first of all) gets the real ones, so that nothing waits for
ever. Random bytes are counted, each size for itself.
"""

import datetime
import hashlib
import mmap
import os
import random
import runpy
import secrets
import struct
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any


def freeze_clocks(clock: Path, package: str) -> None:
    """Take the wall clock from the file, for everybody; and durations, for this package."""
    with clock.open("rb") as file:
        shared = mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)

    def wall() -> float:
        return float(struct.unpack("<d", shared[:8])[0])

    began = wall()

    def of_package(real: Callable[[], float], scale: int = 1) -> Callable[[], float]:
        start = real()

        def clock() -> float:
            asking = sys._getframe(1).f_globals.get("__name__", "")
            if asking == "__main__" or asking.partition(".")[0] == package:
                # Still near to the real one, for code that compares it with the time of the event loop.
                return start + (wall() - began) * scale if scale == 1 else start + int((wall() - began) * scale)
            return real()

        return clock

    time.time = wall
    time.time_ns = lambda: int(wall() * 1e9)
    for name in ("monotonic", "perf_counter"):
        setattr(time, name, of_package(getattr(time, name)))
        setattr(time, f"{name}_ns", of_package(getattr(time, f"{name}_ns"), 1_000_000_000))
    _freeze_datetime(wall)


def _freeze_datetime(wall: Callable[[], float]) -> None:
    real = datetime.datetime

    class Kind(type):
        """Whatever was made by the real class counts as one of the frozen class."""

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, real)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, real)

    class Frozen(real, metaclass=Kind):  # type: ignore[misc, valid-type]
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return real.fromtimestamp(wall(), tz)

        @classmethod
        def utcnow(cls) -> Any:
            return real.fromtimestamp(wall(), datetime.UTC).replace(tzinfo=None)

        @classmethod
        def today(cls) -> Any:
            return cls.now()

    Frozen.__name__, Frozen.__qualname__, Frozen.__module__ = "datetime", "datetime", "datetime"
    datetime.datetime = Frozen  # type: ignore[misc]


def freeze_ids() -> None:
    """Count instead of drawing lots. Each size has a count of its own, so that one id more does not change others."""
    drawn: Counter[int] = Counter()

    def some(size: int | None = None) -> bytes:
        size = secrets.DEFAULT_ENTROPY if size is None else size
        drawn[size] += 1
        return hashlib.shake_256(f"{size} {drawn[size]}".encode()).digest(size)

    # Both others of `secrets` are made of this one.
    secrets.token_bytes = some  # type: ignore[assignment]
    uuid.uuid4 = lambda: uuid.UUID(bytes=some(16), version=4)
    os.urandom = some
    random.seed(0)


def main(arguments: list[str]) -> None:
    clock, package, *rest = arguments
    sys.path[0] = str(Path.cwd())
    freeze_clocks(Path(clock), package)
    freeze_ids()
    sys.argv = [package, *rest]
    runpy.run_module(package, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
