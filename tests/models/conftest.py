"""A stand-in for both providers, as a process of its own."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SERVERS = Path(__file__).parents[1] / "servers"


class Providers:
    """Where the stand-in listens, and what it was asked."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.port: int = self.next()["port"]

    def next(self) -> Any:
        """The next thing that happened there."""
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def url(self, provider: str) -> str:
        return f"http://127.0.0.1:{self.port}" + ("/v1" if provider == "openai" else "")


@pytest.fixture
def providers() -> Iterator[Providers]:
    process = subprocess.Popen([sys.executable, "-I", str(SERVERS / "providers.py")], stdout=subprocess.PIPE, text=True)
    try:
        yield Providers(process)
    finally:
        process.kill()
        process.wait(10)
        assert process.stdout is not None
        process.stdout.close()
