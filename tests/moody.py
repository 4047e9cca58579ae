"""A server that starts or does not, as a file beside it says: for what happens when a connection is made again."""

import json
import sys
from pathlib import Path
from typing import Any

from app.core.targets import StdioTarget
from tests.drive import SERVERS

_SCRIPT = """import pathlib, runpy, sys
broken = pathlib.Path({broken!r})
if broken.exists():
    sys.exit(broken.read_text())
sys.argv = ["raw.py", "plain", "--record", {record!r}, "--with", {settings!r}]
runpy.run_path({raw!r}, run_name="__main__")
"""
ECHO = {
    "name": "echo",
    "description": "Says it again.",
    "inputSchema": {"type": "object", "properties": {"message": {"type": "string"}}},
}


class Moody:
    """The server, its record, and its mood."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.record, self._broken, script = folder / "record", folder / "broken", folder / "server.py"
        names = {"broken": str(self._broken), "record": str(self.record), "settings": json.dumps(settings)}
        script.write_text(_SCRIPT.format(raw=str(SERVERS / "raw.py"), **names))
        self.target = StdioTarget(command=sys.executable, args=("-I", "-S", str(script)))

    def breaks(self, last_words: str) -> None:
        """From now on it writes this to stderr and ends, instead of starting."""
        self._broken.write_text(last_words)

    def mends(self) -> None:
        self._broken.unlink()

    def received(self, method: str) -> int:
        """How many messages of this method it has read, over all of its starts."""
        return self.record.read_bytes().count(f'"method":"{method}"'.encode()) if self.record.exists() else 0
