"""The answer rules that people keep with a server: each as its JSON, in an order. They stand in the file of its target.

Secrets are never written: what is left out of an answer is named, and the rule stays off until it is typed again.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from app import bounds, secrecy
from app.core.errors import NotAllowed
from app.core.json.text import parse
from app.core.times import LAST_MOMENT
from app.store import beside
from app.store.beside import Beside, pointers
from app.store.requests import without_secrets

if TYPE_CHECKING:
    import sqlite3

logger = logging.getLogger("parley.store")

_COLUMNS: Final = ("id", "target", "owner", "place", "rule", "missing", "changed")
_ROWS: Final = f"SELECT {', '.join(_COLUMNS)} FROM rules ORDER BY place, changed"  # noqa: S608 (constants)


@dataclass(slots=True, frozen=True)
class SavedRule:
    """One answer rule of one server."""

    id: str
    target: str
    """The kept target that it belongs to."""
    owner: str
    place: int
    rule: dict[str, Any]
    """Its JSON, without secrets."""
    changed: float
    missing: tuple[str, ...] = ()
    """Pointers into it: secrets that were left out, to be typed again."""


def plain(rule: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A rule as it may be written down, and pointers to what had to be left out. What it answers loses members; of a
    text, which it cannot be without, the secret is masked."""
    missing: list[str] = []

    def texts(part: dict[str, Any], at: str) -> dict[str, Any]:
        found = dict(part)
        for key, value in part.items():
            if isinstance(value, str) and secrecy.in_text(value):
                found[key] = secrecy.masked(value)
                missing.append(f"{at}/{key}")
            elif key == "fields" and isinstance(value, list):
                found[key] = [secrecy.masked(one) if isinstance(one, str) else one for one in value]
                missing.extend(f"{at}/{key}/{index}" for index, one in enumerate(value) if one != found[key][index])
        return found

    made = texts(rule, "")
    for name in ("when", "do"):
        if isinstance(made.get(name), dict):
            made[name] = texts(made[name], f"/{name}")
    do = made["do"] if isinstance(made.get("do"), dict) else {}
    for name in ("content", "result"):
        if isinstance(do.get(name), dict):
            do[name], left = without_secrets(do[name])
            missing += [f"/do/{name}{one}" for one in left]
    return made, tuple(missing)[: bounds.REQUEST_MISSING]


class SavedRules(Beside[SavedRule]):
    """Every kept answer rule of this installation."""

    table = "rules"
    gone = "That rule is no longer kept."

    def of(self, owner: str, target: str) -> list[SavedRule]:
        """The rules of a target, in their order."""
        mine = (one for one in self._kept.values() if (one.owner, one.target) == (owner, target))
        return sorted(mine, key=lambda one: (one.place, one.changed))

    async def save(
        self, owner: str, target: str, key: str, place: int, rule: dict[str, Any], left: tuple[str, ...] = ()
    ) -> SavedRule:
        """Keep a rule at a place, under its key or a new one; `left` is what was left out of it before. What is kept
        like this already is not written again. Raises NotAllowed when there are too many."""
        said, missing = plain(rule)
        missing = tuple(dict.fromkeys((*left, *missing)))
        known = self.find(owner, target, key)
        if known is None:
            if len(self._kept) >= bounds.RULES_SAVED:
                raise NotAllowed(f"{bounds.RULES_SAVED} rules are kept, which is the limit. Delete one first.")
            known = SavedRule(f"u{secrets.token_urlsafe(9)}", target, owner, place, {}, 0.0)
        made = replace(known, place=place, rule=said, missing=missing)
        if made != known:
            made = replace(made, changed=self._wall())
            await self.put(made)
        return made

    def row(self, one: SavedRule) -> dict[str, Any]:
        """Its row."""
        return dict(zip(_COLUMNS, _row(one), strict=True))


def _row(one: SavedRule) -> tuple[Any, ...]:
    return one.id, one.target, one.owner, one.place, json.dumps(one.rule), json.dumps(one.missing), one.changed


# -------------------------------------------------------------------------------- the file as it is found, in a thread


def read(file: sqlite3.Connection) -> tuple[list[SavedRule], bool]:
    """Each that makes sense, without what is a secret by today's table; and whether any of them held one."""
    return beside.read(file, "rules", f"{_ROWS} LIMIT {bounds.RULES_SAVED}", _rules)


def scrub(file: sqlite3.Connection) -> bool:
    """Write rows again that hold what is a secret by today's table; whether there were any."""
    from app.store import sqlite

    stale = [_row(one) for one, is_stale in _rules(sqlite.rows(file, "rules", _ROWS)) if is_stale]
    query = "UPDATE rules SET rule = ?, missing = ? WHERE id = ?"
    return beside.scrub(file, query, [(row[4], row[5], row[0]) for row in stale])


def _rules(rows: list[tuple[Any, ...]]) -> Iterator[tuple[SavedRule, bool]]:
    for key, target, owner, place, rule, missing, changed in rows:
        read = parse(rule.encode("utf-8", "replace"))
        if read.problem is not None or not isinstance(read.value, dict):
            logger.warning("a kept answer rule cannot be read and is left where it is")
            continue
        said, more = plain(read.value)
        left = tuple(dict.fromkeys((*pointers(missing), *more)))
        at = changed if 0 <= changed <= LAST_MOMENT else 0.0
        yield SavedRule(key, target, owner, place, said, at, left), said != read.value
