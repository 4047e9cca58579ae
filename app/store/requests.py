"""The requests that people saved of a server: a name, a method, its parameters. Kept with the target, and in its file.

Secrets are never written: what is left out is named, and asked for again.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from app import bounds, secrecy
from app.core.errors import Invalid, NotAllowed
from app.core.json import pointer
from app.core.json.text import parse
from app.core.times import LAST_MOMENT
from app.secret_names import sounds_secret
from app.store import beside
from app.store.beside import Beside, pointers

if TYPE_CHECKING:
    import sqlite3

logger = logging.getLogger("parley.store")

_COLUMNS: Final = ("id", "target", "owner", "name", "method", "params", "missing", "changed")
_ROWS: Final = f"SELECT {', '.join(_COLUMNS)} FROM requests ORDER BY changed"  # noqa: S608 (constants)


@dataclass(slots=True, frozen=True)
class SavedRequest:
    """One request of one server."""

    id: str
    target: str
    """The kept target that it belongs to."""
    owner: str
    name: str
    method: str
    params: dict[str, Any] | None
    changed: float
    missing: tuple[str, ...] = ()
    """Pointers into the parameters: secrets that were left out, to be typed again."""

    @property
    def subject(self) -> str:
        """What it is about: a tool, a prompt, a resource; else its method."""
        params = self.params or {}
        said = params.get("uri" if self.method.startswith("resources/") else "name")
        return said if isinstance(said, str) and said else self.method


def without_secrets(params: Any) -> tuple[Any, tuple[str, ...]]:
    """Parameters as they may be written down, and pointers to what had to be left out."""
    missing: list[str] = []

    def left(value: Any, at: tuple[str, ...]) -> Any:
        if isinstance(value, dict):
            kept = {}
            for key, one in value.items():
                path = (*at, secrecy.masked(str(key)))
                if _is_secret(str(key), one) or path[-1] != key:  # a name may be a secret itself
                    missing.append(pointer.join(path))
                else:
                    kept[key] = left(one, path)
            return kept
        if isinstance(value, list):
            return [left(one, (*at, str(index))) for index, one in enumerate(value)]
        if isinstance(value, str) and secrecy.in_text(value):
            missing.append(pointer.join(at))
            return secrecy.masked(value)
        return value

    return left(params, ()), tuple(missing)


def _is_secret(name: str, value: Any) -> bool:
    """Whether a member is left out: by its name, or because there is a secret in its text. What says nothing stays."""
    if isinstance(value, str):
        return bool(value) and (sounds_secret(name, "argument") or bool(secrecy.in_text(value)))
    return value not in (None, {}, []) and not isinstance(value, bool) and sounds_secret(name, "argument")


class SavedRequests(Beside[SavedRequest]):
    """Every saved request of this installation."""

    table = "requests"
    gone = "That request is no longer saved."

    # ---- reading, from memory

    def of(self, owner: str, target: str) -> list[SavedRequest]:
        """The requests of a target, by name."""
        mine = (one for one in self._kept.values() if (one.owner, one.target) == (owner, target))
        return sorted(mine, key=lambda one: (one.name.casefold(), one.changed))

    # ---- writing

    async def save(self, owner: str, target: str, name: str, method: str, params: Any) -> tuple[SavedRequest, bool]:
        """Keep a request, and whether it is a new one: the same name for the same thing takes the place of the old
        one. Raises NotAllowed when there are too many, Invalid when it cannot be kept."""
        plain, missing = _fit(name, method, params)
        made = SavedRequest("", target, owner, _named(name), method, plain, self._wall(), missing)
        mine = self.of(owner, target)
        same = next((one for one in mine if (one.name, one.subject) == (made.name, made.subject)), None)
        if same is None and len(mine) >= bounds.REQUESTS_PER_TARGET:
            most = bounds.REQUESTS_PER_TARGET
            raise NotAllowed(f"{most} requests of this server are saved, which is the limit. Delete one first.")
        if same is None and len(self._kept) >= bounds.REQUESTS:
            raise NotAllowed(f"{bounds.REQUESTS} requests are saved, which is the limit. Delete one first.")
        made = replace(made, id=f"q{secrets.token_urlsafe(9)}" if same is None else same.id)
        await self.put(made)
        return made, same is None

    async def change(
        self, request: SavedRequest, *, name: str | None, method: str | None, params: Any, has_params: bool
    ) -> SavedRequest:
        """Give it another name, another method, other parameters. Raises as `save` does."""
        wanted_name = request.name if name is None else name
        wanted_method = request.method if method is None else method
        plain, missing = _fit(wanted_name, wanted_method, params if has_params else request.params)
        made = replace(
            self.mine(request),
            name=_named(wanted_name),
            method=wanted_method,
            params=plain,
            missing=missing if has_params else tuple(dict.fromkeys((*request.missing, *missing))),
            changed=self._wall(),
        )
        await self.put(made)
        return made

    def row(self, one: SavedRequest) -> dict[str, Any]:
        """Its row."""
        return dict(zip(_COLUMNS, _row(one), strict=True))


def _named(name: str) -> str:
    return " ".join(name.split())


def _fit(name: str, method: str, params: Any) -> tuple[Any, tuple[str, ...]]:
    """What may be written of it. Raises Invalid for what cannot be kept."""
    wrong: dict[str, list[str]] = {}
    if not name.strip():
        wrong["/name"] = ["Type a name."]
    elif len(_named(name)) > bounds.REQUEST_NAME:
        wrong["/name"] = [f"At most {bounds.REQUEST_NAME} characters."]
    if not method.strip():
        wrong["/method"] = ["Name the method."]
    plain, missing = without_secrets(params)
    if len(json.dumps(plain)) > bounds.REQUEST_BYTES:
        wrong["/params"] = [f"Larger than {bounds.REQUEST_BYTES // 1024} KiB, the most that is saved."]
    if wrong:
        raise Invalid("This request cannot be saved.", wrong)
    return plain, missing[: bounds.REQUEST_MISSING]


# -------------------------------------------------------------------------------------------------------- statements


def _row(one: SavedRequest) -> tuple[Any, ...]:
    params, missing = json.dumps(one.params), json.dumps(one.missing)
    return one.id, one.target, one.owner, one.name, one.method, params, missing, one.changed


# -------------------------------------------------------------------------------- the file as it is found, in a thread


def read(file: sqlite3.Connection) -> tuple[list[SavedRequest], bool]:
    """Each that makes sense, without what is a secret by today's table; and whether any of them held one."""
    return beside.read(file, "requests", f"{_ROWS} LIMIT {bounds.REQUESTS}", _requests)


def scrub(file: sqlite3.Connection) -> bool:
    """Write rows again that hold what is a secret by today's table; whether there were any."""
    from app.store import sqlite

    stale = [_row(one) for one, is_stale in _requests(sqlite.rows(file, "requests", _ROWS)) if is_stale]
    query = "UPDATE requests SET params = ?, missing = ? WHERE id = ?"
    return beside.scrub(file, query, [(row[5], row[6], row[0]) for row in stale])


def _requests(rows: list[tuple[Any, ...]]) -> Iterator[tuple[SavedRequest, bool]]:
    for key, target, owner, name, method, params, missing, changed in rows:
        read = parse(params.encode("utf-8", "replace"))
        if read.problem is not None or not isinstance(read.value, dict | None):
            logger.warning("a saved request cannot be read and is left where it is")
            continue
        plain, more = without_secrets(read.value)
        left = tuple(dict.fromkeys((*pointers(missing), *more)))
        at = changed if 0 <= changed <= LAST_MOMENT else 0.0
        yield SavedRequest(key, target, owner, name, method, plain, at, left), bool(more) and plain != read.value
