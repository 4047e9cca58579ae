"""What a restart must not forget: who is logged in, and which commands a person has agreed to start.

One file for its owner alone, and in it digests only: no cookie, no command, no value can be read from it. Several
Parleys may share it. Whoever changes it holds a lock, reads it, changes it and puts a new file in its place, so nobody
brings back what another one has removed; whoever reads looks first whether it is still the same file. A file that is
damaged, or that others could read, counts as empty. What cannot be written holds until the process ends, and `trouble`
says so.

Loaded before the port is open, so it imports little.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import hmac
import json
import logging
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from app import bounds, private

log = logging.getLogger("parley.remembered")

FILE: Final = "remembered"
LOCK: Final = "remembered.lock"
_VERSION: Final = 1
_RENEW_SECONDS: Final = 3600.0
"""How old the mark of the last use may be before it is written anew."""
_WAIT_SECONDS: Final = 1.0
_POLL_SECONDS: Final = 0.005
_KEY_BYTES: Final = 32
_UNSEEN: Final = (0,)


@dataclass(slots=True)
class _Login:
    at: str
    """The name of the cookie: each port has its own."""
    used: float


@dataclass(slots=True)
class _Consent:
    of: str
    """The same command without its secrets: what is forgotten together."""
    used: float


@dataclass(slots=True)
class _State:
    key: bytes = field(default_factory=lambda: secrets.token_bytes(_KEY_BYTES))
    """What digests of commands are made with: their values may be guessed, and must not be found by trying."""
    logins: dict[str, _Login] = field(default_factory=dict)
    consents: dict[str, _Consent] = field(default_factory=dict)

    def digest(self, owner: str, text: str) -> str:
        return hmac.digest(self.key, f"{owner}\0{text}".encode(), "sha256").hex()


class Remembered:
    """The file below a directory; without a directory all of it is memory. No method raises for a fault of the disk."""

    def __init__(
        self,
        directory: Path | None,
        *,
        logins: int = 200,
        login_seconds: float = 30 * 86_400,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.path = None if directory is None else directory / FILE
        self.trouble = ""
        """Why nothing is kept, as a sentence without its beginning; empty while it works."""
        self.login_seconds = login_seconds
        self._logins, self._wall = logins, wall
        self._file = _State()
        """As it was read the last time."""
        self._seen: tuple[int, ...] | None = _UNSEEN
        self._own = _State()
        """What could not be written."""
        self._revoked: set[str] = set()
        """Logins that were ended and could not be taken out of the file."""
        self._refused: set[tuple[str, str]] = set()
        """Whose consent to what was taken back, and is still in the file."""
        self._lately: dict[str, float] = {}
        """Uses that are not written yet."""
        self._lock: int | None = None
        """The lock of the file, while somebody who waited for it changes something."""
        self._waited = False

    @property
    def lasts(self) -> bool:
        """Whether what is kept outlives the process."""
        return self.path is not None

    # ---- logins

    @property
    def browsers(self) -> int:
        """How many are logged in, on every port."""
        self.look()
        known = {**self._file.logins, **self._own.logins}
        return sum(key not in self._revoked and not self._over(one) for key, one in known.items())

    def knows(self, login: bytes, at: str) -> bool:
        """Whether a cookie with this digest and this name may come in. Call `look` before."""
        key = login.hex()
        kept = self._file.logins.get(key) or self._own.logins.get(key)
        return kept is not None and kept.at == at and key not in self._revoked and not self._over(kept)

    def admit(self, login: bytes, at: str) -> None:
        """Remember a new browser; the one that was used least recently is forgotten when there are too many."""

        def add(state: _State) -> None:
            state.logins[login.hex()] = _Login(at, self._wall())

        self._change(add)

    def use(self, login: bytes) -> bool:
        """A browser came. Whether that is worth a new date on its cookie."""
        key, now = login.hex(), self._wall()
        self._lately[key] = now
        kept = self._file.logins.get(key)
        if kept is None or now - kept.used < _RENEW_SECONDS:
            return False

        def renew(state: _State) -> None:
            # Only what is still there: another Parley may have ended it a moment ago.
            if (found := state.logins.get(key)) is not None:
                found.used = now

        self._change(renew, wait=0.0, otherwise=False)
        return True

    def end(self, login: bytes | None) -> int:
        """Forget one browser, or with None all of them; how many that were. Here they are out in any case; `trouble`
        says when they could not be taken out of the file."""
        ended: set[str] = set()

        def drop(state: _State) -> None:
            gone = [key for key in state.logins if login is None or key == login.hex()]
            ended.update(gone)
            for key in gone:
                del state.logins[key]

        drop(self._own)
        if self.path is not None and not self._change(drop, lasting=True, otherwise=False):
            drop(self._file)
            self._revoked |= ended
        return len(ended)

    def _over(self, login: _Login) -> bool:
        return self._wall() - login.used > self.login_seconds

    # ---- consent

    def agreed(self, owner: str, command: str) -> bool:
        """Whether somebody has agreed to start the command with this digest."""
        self.look()
        if self._own.digest(owner, command) in self._own.consents:
            return True
        kept = self._file.consents.get(self._file.digest(owner, command))
        return kept is not None and all(kept.of != self._file.digest(*one) for one in self._refused)

    def agree(self, owner: str, command: str, of: str) -> None:
        """Remember that somebody has. `of` is the digest of the same command without its secrets."""
        self.look()
        now = self._wall()
        kept = self._file.consents.get(self._file.digest(owner, command))
        if kept is not None and now - kept.used < _RENEW_SECONDS and not self._refused:
            return

        def add(state: _State) -> None:
            state.consents[state.digest(owner, command)] = _Consent(state.digest(owner, of), now)

        self._change(add)

    def disagree(self, owner: str, of: str) -> None:
        """Forget what was agreed of a command, whatever its secrets were. Here that holds in any case."""

        def drop(state: _State) -> None:
            _refuse(state, owner, of)

        drop(self._own)
        if self.path is not None and not self._change(drop, lasting=True, otherwise=False):
            self._refused.add((owner, of))

    # ---- the file

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Wait until no other Parley holds the file, so that what is changed inside waits for nobody: whoever runs in
        the event loop comes through here, and awaits nothing inside. Raises nothing: a change says what is wrong."""
        try:
            self._lock = None if self.path is None else await self._awaited(self.path.with_name(LOCK))
        except OSError:
            self._lock = None
        self._waited = True
        try:
            yield
        finally:
            self._waited = False
            if self._lock is not None:
                os.close(self._lock)
                self._lock = None

    async def _awaited(self, path: Path) -> int | None:
        """The lock; None when another Parley does not let go of it."""
        from anyio import sleep  # most of what is loaded before the port is open needs no event loop

        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        deadline = time.monotonic() + _WAIT_SECONDS
        while True:
            file = _open_lock(path)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return file
            except OSError as fault:
                os.close(file)
                if not isinstance(fault, BlockingIOError):
                    raise
            if time.monotonic() >= deadline:
                return None
            await sleep(_POLL_SECONDS)

    def look(self) -> None:
        """Read the file when it is another one than the last time."""
        if self.path is None:
            return
        try:
            seen = _signature(self.path.lstat())
        except FileNotFoundError:
            seen = None
        except OSError as fault:
            self._file, self._seen = _State(), _UNSEEN
            self._say(self._words(fault))
            return
        if seen == self._seen:
            return
        self._seen = seen
        if seen is None:
            self._file = _State()
            return
        try:
            self._file = _read(self.path)
        except private.Unfit as unfit:
            self._file = _State()
            log.warning("%s %s; it is not used, and whoever was logged in needs a new address", self.path, unfit)
        except FileNotFoundError:
            self._file, self._seen = _State(), None
        except OSError as fault:
            self._file = _State()
            self._say(self._words(fault))

    def _change(
        self,
        change: Callable[[_State], None],
        *,
        wait: float = _WAIT_SECONDS,
        lasting: bool = False,
        otherwise: bool = True,
    ) -> bool:
        """Change the file; whether that worked. With `otherwise`, what did not is done in memory."""
        try:
            if self.path is not None:
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                with _locked(self.path.with_name(LOCK), 0.0 if self._waited else wait, self._lock):
                    self.look()
                    self._catch_up(self._file)
                    change(self._file)
                    self._bounded(self._file)
                    self._put(self.path, lasting)
                self._revoked, self._refused = set(), set()
                self.trouble = ""
                return True
        except OSError as fault:
            if wait:
                self._say(self._words(fault))
            # What was changed in memory alone is not what the file says.
            self._seen = _UNSEEN
            self.look()
        if otherwise:
            change(self._own)
            self._bounded(self._own)
        return False

    def _catch_up(self, state: _State) -> None:
        """Take out of the file what could not be taken out of it before."""
        for key in self._revoked:
            state.logins.pop(key, None)
        for owner, of in self._refused:
            _refuse(state, owner, of)

    def _put(self, path: Path, lasting: bool) -> None:
        """Put what is known in the place of the file. Where something was taken out of it and that cannot be written,
        the whole file goes: nobody comes in by what was ended."""
        try:
            _write(path, self._file, lasting)
        except OSError as fault:
            if not lasting:
                raise
            path.unlink(missing_ok=True)
            self._file, self._seen = _State(), None
            log.warning("%s was deleted, for it could not be written: %s", path, fault.strerror or fault)
            return
        self._seen = _signature(path.lstat())

    def _bounded(self, state: _State) -> None:
        """Without what is over; of too many, without those that were used least recently."""
        for key, login in list(state.logins.items()):
            login.used = max(login.used, self._lately.pop(key, 0.0))
            if self._over(login):
                del state.logins[key]
        for key in sorted(state.logins, key=lambda one: state.logins[one].used)[: -self._logins]:
            del state.logins[key]
        for key in sorted(state.consents, key=lambda one: state.consents[one].used)[: -bounds.CONSENTS]:
            del state.consents[key]
        self._lately = {key: at for key, at in self._lately.items() if key in self._own.logins}

    def _words(self, fault: OSError) -> str:
        if fault.errno in {errno.ENOSPC, errno.EDQUOT}:
            return f"the disk that holds {self.path} is full. Make room; the next login tries again."
        if fault.errno == errno.EAGAIN:
            return f"another Parley holds {self.path}. Try again."
        if fault.errno in {errno.EROFS, errno.EACCES, errno.EPERM}:
            return f"{self.path} cannot be written. Check its permissions, or start Parley with another --data-dir."
        return f"{self.path} cannot be used: {fault.strerror or fault}."

    def _say(self, trouble: str) -> None:
        if trouble != self.trouble:
            log.warning("logins and consents hold until Parley ends: %s", trouble)
        self.trouble = trouble


def _refuse(state: _State, owner: str, of: str) -> None:
    wanted = state.digest(owner, of)
    state.consents = {key: one for key, one in state.consents.items() if one.of != wanted}


def _signature(status: os.stat_result) -> tuple[int, ...]:
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size


def _open_lock(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0), 0o600)


@contextmanager
def _locked(path: Path, wait: float, held: int | None) -> Iterator[None]:
    """Alone with the file, among all Parleys; whoever holds the lock goes on at once. Raises OSError when another
    one does not let go of it."""
    if held is not None:
        yield
        return
    file = _open_lock(path)
    try:
        deadline = time.monotonic() + wait
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise OSError(errno.EAGAIN, "another Parley holds it") from None
                time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(file)


def _read(path: Path) -> _State:
    """What is in the file: only from a plain file of this user that nobody else may read."""
    text = private.read(path, bounds.REMEMBERED_BYTES + 1)
    try:
        if len(text) > bounds.REMEMBERED_BYTES:
            raise ValueError
        return _state_of(json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise private.Unfit("is damaged") from None


def _state_of(said: dict[str, Any]) -> _State:
    if said["version"] != _VERSION:
        raise ValueError
    key = bytes.fromhex(said["key"])
    if len(key) != _KEY_BYTES:
        raise ValueError
    return _State(
        key,
        {str(one): _Login(str(at), float(used)) for one, (at, used) in said["logins"].items()},
        {str(one): _Consent(str(of), float(used)) for one, (of, used) in said["consents"].items()},
    )


def _write(path: Path, state: _State, lasting: bool) -> None:
    said = {
        "version": _VERSION,
        "key": state.key.hex(),
        "logins": {key: (one.at, one.used) for key, one in state.logins.items()},
        "consents": {key: (one.of, one.used) for key, one in state.consents.items()},
    }
    temporary = path.with_name(f".{FILE}-{secrets.token_hex(8)}")
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(file, "w") as opened:
            json.dump(said, opened)
            opened.write("\n")
            if lasting:
                opened.flush()
                os.fsync(opened.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def digest(secret: str) -> bytes:
    """What stands for a secret: random ones are not found by it."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
