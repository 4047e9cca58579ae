"""Where browsers live: below a random path, `/~{key}/`, which is also the path of their cookie (H01).

Cookies ignore ports, so a cookie for `/` would go to every web server on this machine that a browser visits; a path
that nobody else knows is what no other port is ever asked for. Scripts with a token, and JSON, know nothing of it: an
address is `/s/…` everywhere in the program, and only what is written for a browser that came below the path gets it in
front, by `at` in markup and by `BrowserRoot` in headers. Modes with cookies that name their host have no such path:
there the root is empty.

Loaded before the port is open, so it imports little.
"""

from __future__ import annotations

import hmac
import logging
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import private

log = logging.getLogger("parley.web")

FILE: Final = "browser-path"
"""Holds the key, so that bookmarks live longer than the process."""
_KEY = re.compile(r"[A-Za-z0-9_-]{22,64}")
_LEADING: Final = ("location", "hx-redirect", "hx-location", "hx-push-url", "hx-replace-url")
"""Headers of an answer that lead a browser on."""
_below: ContextVar[str] = ContextVar("below", default="")


_trouble: ContextVar[str] = ContextVar("trouble", default="")


def degraded() -> str:
    """Why nothing of a team is saved at the moment, as a sentence without its beginning; for every page."""
    return _trouble.get()


@contextmanager
def saying(trouble: str) -> Iterator[None]:
    """Pages that are made inside say why nothing is saved."""
    before = _trouble.set(trouble)
    try:
        yield
    finally:
        _trouble.reset(before)


# ------------------------------------------------------------------------------------------------------- addresses


def root() -> str:
    """What stands before every address in markup for whoever asked: `/~{key}` for a browser, "" for a script."""
    return _below.get()


def at(address: str) -> str:
    """An address of ours as markup has it. What is no path of ours, and the public files, stay as they are."""
    if address.startswith("/") and not address.startswith(("//", "/static/")):
        return _below.get() + address
    return address


@contextmanager
def written_for(whose: str) -> Iterator[None]:
    """Markup that is made inside is for those below this root. All browsers of a process share one, so what is made
    once may go to many tabs."""
    before = _below.set(whose)
    try:
        yield
    finally:
        _below.reset(before)


class BrowserRoot:
    """Takes the path of the browsers off a request, as `root_path`, and puts it onto where an answer leads.

    Outermost, so that refusals know it too. Who asks below a wrong key asks for a path that does not exist.
    """

    def __init__(self, app: ASGIApp, root: str) -> None:
        self.app = app
        self.root = root

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not self.root or not self._below(scope["path"]):
            await self.app(scope, receive, send)
            return

        async def leading(message: Message) -> None:
            if message["type"] == "http.response.start":
                _lead(MutableHeaders(scope=message), self.root)
            await send(message)

        scope["root_path"] = self.root
        with written_for(self.root):
            await self.app(scope, receive, leading)

    def _below(self, path: str) -> bool:
        first, slash, _ = path[1:].partition("/")
        return bool(slash) and hmac.compare_digest(f"/{first}".encode("utf-8", "surrogatepass"), self.root.encode())


def _lead(headers: MutableHeaders, root: str) -> None:
    """An answer for a script names the addresses that scripts use, whoever asked."""
    if headers.get("content-type", "").startswith("application/json"):
        return
    for name in _LEADING:
        address = headers.get(name, "")
        if address.startswith("/") and not address.startswith(("//", root + "/")):
            headers[name] = root + address


# --------------------------------------------------------------------------------------------------------- the key


def browser_root(directory: Path | None) -> str:
    """The root of browsers with the key of this installation; with a new one where none can be kept.

    Never raises: with a key for this process alone only bookmarks end with it. What is odd is said in the log, the key
    itself never is.
    """
    return f"/~{_new_key() if directory is None else _kept_key(directory)}"


def _new_key() -> str:
    return secrets.token_urlsafe(16)


def _kept_key(directory: Path) -> str:
    path = directory / FILE
    try:
        try:
            return _read(path)
        except FileNotFoundError:
            return _write(path, anew=False)
        except private.Unfit as unfit:
            log.warning("%s %s; Parley made a new path, and bookmarks of the old one lead nowhere", path, unfit)
            return _write(path, anew=True)
    except OSError as fault:
        log.warning(
            "%s cannot be used: %s. Bookmarks of pages end with this process; check who may read and write there, or "
            "start Parley with another --data-dir",
            path,
            fault.strerror or fault,
        )
        return _new_key()


def _read(path: Path) -> str:
    """The key in the file: only from a plain file of this user that nobody else may read."""
    text = private.read(path, 200).decode("ascii", "replace").strip()
    if not _KEY.fullmatch(text):
        raise private.Unfit("held no key")
    return text


def _write(path: Path, *, anew: bool) -> str:
    """Keep a new key. Another Parley that starts at the same moment may be first: then its key counts."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    key, temporary = _new_key(), path.with_name(f".{FILE}-{secrets.token_hex(8)}")
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(file, "w") as opened:
            opened.write(key + "\n")
        if not anew:
            with suppress(OSError):  # the name is taken, or the disk knows no links
                path.hardlink_to(temporary)
                return key
            if path.exists():
                return _read(path)
        temporary.replace(path)
        return key
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()
