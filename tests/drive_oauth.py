"""How tests drive the protected server and its authorization servers (tests/servers/authorization.py).

with protected() as harbour:
    target = harbour.target()          # connect to it: 401
    final = harbour.allow(address)     # what a person's browser does with the address that Parley shows
    harbour.set(fault="expired code")  # while it runs
    harbour.saw("/token")              # the requests that came there
"""

import json
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlencode

from app.core.targets import HttpTarget
from tests.certificates import make
from tests.drive import SERVERS
from tests.drive_http import Peer, started

FAULTS = (
    "no metadata",
    "wrong resource",
    "wrong issuer",
    "no PKCE",
    "refused registration",
    "expired code",
    "wrong redirect",
    "TLS failure",
    "unreachable server",
    "endless 403",
)
"""The broken set-ups that have a name."""


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), _Stay())


class Harbour:
    """The protected server that runs."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        about = self.set()
        self.resource: str = about["resource"]
        self.issuers: dict[str, str] = about["issuers"]

    @property
    def issuer(self) -> str:
        return self.issuers["issuer"]

    def target(self, **more: Any) -> HttpTarget:
        return HttpTarget(transport="http", url=self.resource, **more)

    def set(self, **settings: Any) -> dict[str, Any]:
        """Change what it does, and read what it is and saw."""
        body = json.dumps(settings).encode()
        asked = urllib.request.Request(
            self._peer.url("/control"), body, {"content-type": "application/json"}, method="POST"
        )
        with _OPENER.open(asked, timeout=20) as answer:
            return json.load(answer)

    def saw(self, path: str = "", at: str = "") -> list[dict[str, Any]]:
        """The requests that came, to one path, to one of its servers."""
        return [
            each for each in self.set()["saw"] if (not path or each["path"] == path) and (not at or each["at"] == at)
        ]

    @property
    def secrets(self) -> list[str]:
        """Every token, code and secret that it handed out."""
        return self.set()["secrets"]

    @property
    def tokens(self) -> list[dict[str, Any]]:
        return self.set()["tokens"]

    def open(self, address: str) -> tuple[int, str]:
        """The page of the authorization server, as a browser gets it."""
        try:
            with _OPENER.open(address, timeout=20) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read().decode()

    def press(self, address: str, say: Literal["allow", "deny"]) -> str:
        """Where the browser is sent when a person presses a button of that page."""
        asked = urllib.request.Request(address, urlencode({"say": say}).encode(), method="POST")
        try:
            with _OPENER.open(asked, timeout=20) as answer:
                raise AssertionError(f"it answered {answer.status}")
        except urllib.error.HTTPError as answer:
            with answer:
                assert answer.code == 303, (answer.code, answer.read())
                return str(answer.headers["location"])

    def allow(self, address: str) -> str:
        return self.press(address, "allow")

    def deny(self, address: str) -> str:
        return self.press(address, "deny")


@contextmanager
def protected(tls: Path | None = None, **settings: Any) -> Iterator[Harbour]:
    """A protected server with these settings; with a folder for a certificate also an issuer behind TLS."""
    argv = [sys.executable, str(SERVERS / "authorization.py"), "--with", json.dumps(settings)]
    if tls is not None:
        argv += ["--tls", *make().files(tls)]
    with started(argv) as peer:
        yield Harbour(peer)
