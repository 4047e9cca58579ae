"""Whether those who run the servers of a team may read what they would run: asked before one is started, because a
program that cannot be opened behind the walls says nothing that anybody would understand. Imported by team mode alone.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from app.isolation import PATH, Isolation, Walls, Wanted, program_of, works


def closed_to(walls: Isolation, wanted: Wanted) -> str:
    """What on the way to a program, or to what it reads, is not open to whom it would run as; empty when all is.

    Blocks. What looks closed by its bits is tried, for there may be other rights. Raises OSError when there is no such
    program or directory."""
    program = program_of(wanted)
    if not walls.walls.switch:
        return ""
    for name in dict.fromkeys((program, *wanted.reads, *([wanted.cwd] if wanted.cwd else []))):
        suspect = _closed(Path(name))
        if suspect is not None and not _opens(walls, name):
            return str(suspect)
    return ""


def _closed(at: Path) -> Path | None:
    """The first directory on the way to something, or it itself, that is not open to everybody by its bits."""
    real = Path(os.path.realpath(at))
    for place in (*reversed(real.parents), real):
        if not place.stat().st_mode & (stat.S_IROTH if place == real else stat.S_IXOTH):
            return place
    return None


def _opens(walls: Isolation, name: str) -> bool:
    test, outer = shutil.which("test", path=PATH), Walls(walls.walls.switch, walls.walls.setpriv)
    return test is None or works(Isolation(outer, (), walls.users), Wanted(test, ("-r", name)))
