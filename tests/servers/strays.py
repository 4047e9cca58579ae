"""A raw server that first starts a process which leaves it: python strays.py KIND FILE [arguments of raw.py].

The process writes its number into FILE before the server begins to speak, and then lives until it is ended. Kinds:

    daemon     leaves group and session, loses its parent, closes its standard streams, as daemons do
    deaf       the same, and hears no SIGTERM
    apart      leaves group and session with an empty environment, but keeps its parent
    bare       a daemon with an empty environment: nothing tells where it came from
    quick      a daemon that ends by itself when FILE is gone
"""

import os
import runpy
import signal
import sys
import time
from pathlib import Path

RAW = Path(__file__).with_name("raw.py")
LIVE = "import os, sys, time; os.write(int(sys.argv[1]), b'x'); time.sleep(600)"


def stray(kind, file, told):
    os.setsid()
    if kind != "apart" and os.fork():
        os._exit(0)
    file.write_text(str(os.getpid()))
    if kind in ("apart", "bare"):
        os.set_inheritable(told, True)
        os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", LIVE, str(told)], {})
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    if kind == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.write(told, b"x")
    while kind != "quick" or file.exists():
        time.sleep(0.05)
    os._exit(0)


def main(kind, file, *arguments):
    heard, told = os.pipe()
    child = os.fork()
    if child == 0:
        stray(kind, Path(file), told)
    os.read(heard, 1)
    if kind != "apart":
        os.waitpid(child, 0)
    sys.argv = [str(RAW), *(arguments or ("plain",))]
    runpy.run_path(str(RAW), run_name="__main__")


main(*sys.argv[1:])
