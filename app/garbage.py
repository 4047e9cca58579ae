"""When Python looks for garbage: seldom through all that is kept, for whoever waits meanwhile waits for all of it.

Logs of sessions are many small objects that stay for minutes and are replaced one by one. Python takes that for garbage
that might be, and looked through everything each time a quarter of it was new: half a second for a hundred sessions,
every twenty seconds, to find nothing. What is young is still looked through at once; everything is when a session was
let go of (`core/lane.py:give_back_soon`), when the process has grown by much, and long after the last time.
"""

from __future__ import annotations

import gc
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_THRESHOLDS: Final = (700, 10, 2_000)
_GROWN: Final = 1.25
_AT_LEAST: Final = 32 * 1024 * 1024
"""How much larger the process is than after the last look when it is time for another one."""


@dataclass(slots=True)
class _State:
    size: int = 0
    """Of the process, in bytes, after the last look."""


_state = _State()


def begin() -> None:
    """All that is here now stays for ever, and is never looked through again; from now on garbage is looked for."""
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    gc.enable()


def collect() -> None:
    """Look through everything. Everybody waits."""
    gc.collect()
    _state.size = _resident()


def is_due() -> bool:
    """Whether the process has grown so much that garbage may be a part of it."""
    now = _resident()
    _state.size = min(_state.size, now) if _state.size else now
    return now > _state.size * _GROWN + _AT_LEAST


def _resident() -> int:
    """How much memory the process takes; where the system does not say so, the most that it ever took."""
    if not sys.platform.startswith("linux"):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
