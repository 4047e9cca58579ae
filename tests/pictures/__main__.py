"""`python -m tests.pictures OUT_DIR [--checkout DIR] [--only WORD]`, and with `--compare BEFORE AFTER` instead.

The first takes a picture of every page, wide and narrow, light and dark; those of the same commit are equal, byte by
byte. Parley runs from DIR, which is this checkout unless something else is said: so what was is pictured as what is,
by the same photographer. The second lists what is missing, extra or different, draws each difference into
AFTER/differences, and ends with 1 when there is one.

Frozen: the clock and everything random (`frozen.py`), the ports, the folders, the server (`tests/servers/harbour.py`)
and the clock of the browser. What cannot be frozen is written over in the page, see `UNFREEZABLE`.
"""

import argparse
import shutil
import signal
import sys
from pathlib import Path

from tests.browser.parley import ROOT
from tests.pictures.compare import DIFFERENCES, compare
from tests.pictures.journey import journey
from tests.pictures.studio import open_studio


def take(folder: Path, checkout: Path, only: str) -> int:
    """All pictures, into an empty folder."""
    if folder.is_dir() and any(each.suffix != ".png" and each.name != DIFFERENCES for each in folder.iterdir()):
        print(f"{folder} holds more than pictures: name another folder", file=sys.stderr)
        return 2
    with open_studio(folder, checkout, only) as studio:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        journey(studio)
    print(f"{len(list(folder.glob('*.png')))} pictures in {folder}")
    return 0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.pictures", description="Pictures of every page of Parley.")
    parser.add_argument("folder", nargs="?", type=Path, metavar="OUT_DIR", help="where the pictures go")
    parser.add_argument("--checkout", type=Path, default=ROOT, metavar="DIR", help="whose pages, if not ours")
    parser.add_argument("--only", default="", metavar="WORD", help="only pictures with this in their name")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("BEFORE", "AFTER"), help="compare two such folders")
    given = parser.parse_args(arguments)
    if given.compare is None:
        if given.folder is None:
            parser.error("say where the pictures go, or which folders to compare")
        return take(given.folder, given.checkout.resolve(), given.only)
    before, after = given.compare
    for folder in given.compare:
        if not any(folder.glob("*.png")):
            parser.error(f"there are no pictures in {folder}")
    found = compare(before, after)
    for each in found:
        print(f"{each.name}: {each.words}")
    names = {path.name for folder in given.compare for path in folder.glob("*.png")}
    print(f"{len(found)} of {len(names)} pictures differ")
    return 1 if found else 0


if __name__ == "__main__":
    # What was started is put away also when somebody has enough of it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main(sys.argv[1:]))
