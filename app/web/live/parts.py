"""Parts: what of a page is live. A page declares them beside what draws it, and a tab is a loop over them.

A part says which events touch it and how it is drawn then; it is drawn from the current state, so it may be drawn too
often and never wrongly. What is drawn for one tab serves every other tab that shows the same to a reader who may do the
same: a part learns of its reader by a `View` alone, and all of the view is in the key.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar, get_args

from app import bounds
from app.core.events import Event, EventKind
from app.sessions import Workspace
from app.sessions.identity import Right
from app.settings import Limits
from app.web.door.reader import reader
from app.web.door.root import at, root
from app.web.kit.html import NOTHING, Html, esc, esc_exact, markup, rendered, shown

Drawn = TypeVar("Drawn")
KINDS: Final[tuple[EventKind, ...]] = get_args(EventKind)


class TooMany(Exception):
    """More has changed than one message carries, so the tab gets a snapshot."""


class Drawings:
    """What was drawn for one tab of a session and serves its other tabs."""

    def __init__(self) -> None:
        self.tabs = 0
        self.made = 0
        """How often something was drawn."""
        self._kept: OrderedDict[Hashable, tuple[object, int]] = OrderedDict()
        self._size = 0

    def once(self, key: Hashable, draw: Callable[[], Drawn]) -> Drawn:
        """What stands for this key, drawn when it is asked for the first time."""
        found = self._kept.get(key)
        if found is not None:
            return found[0]  # type: ignore[return-value]  # one key is drawn by one part, which knows the type
        drawn = draw()
        self.made += 1
        size = len(drawn) if isinstance(drawn, str) else 0
        self._kept[key] = (drawn, size)
        self._size += size
        while self._size > bounds.DRAWN_CHARACTERS or len(self._kept) > bounds.DRAWN_PARTS:
            self._size -= self._kept.popitem(last=False)[1][1]
        return drawn

    def rest(self) -> None:
        """A message is made. A tab alone keeps nothing beyond it."""
        if self.tabs < 2:
            self._kept.clear()
            self._size = 0

    def opened(self) -> None:
        """One tab more."""
        self.tabs += 1

    def closed(self) -> None:
        """One tab less."""
        self.tabs -= 1
        self.rest()


@dataclass(slots=True, frozen=True)
class View:
    """What a tab shows, and to whom: a page of a session, its subject, and what its reader may do."""

    session: Workspace
    page: str
    of: str
    rights: frozenset[Right]
    limits: Limits
    drawings: Drawings = field(default_factory=Drawings, compare=False)
    reader: str = field(default_factory=lambda: reader().person)
    """Who, in a team: what is in somebody's own hands looks different to others."""

    def may(self, right: Right) -> bool:
        """Whether the reader may do this."""
        return right in self.rights

    @property
    def base(self) -> str:
        """Where the addresses of this session begin."""
        return self.session.base

    def once(self, part: object, version: Hashable, draw: Callable[[], Drawn]) -> Drawn:
        """Something drawn for this view, or for an equal one: the same page and subject, the same rights."""
        return self.drawings.once((part, self.page, self.of, self.rights, self.reader, root(), version), draw)

    def anywhere(self) -> View:
        """The same for whatever looks alike on every page."""
        return View(self.session, "", "", self.rights, self.limits, self.drawings, self.reader)


class Live(Protocol):
    """Something of a page that lives."""

    on: frozenset[EventKind]

    def changed(self, view: View, events: Sequence[Event], seen: dict[object, Hashable]) -> Html:
        """What to say of these events, which are all of kinds that it is `on`. `seen` is what the tab remembers by
        part. Raises TooMany when a snapshot says it better."""

    def whole(self, view: View, seen: dict[object, Hashable]) -> Html:
        """Everything that it shows, for a tab that knows nothing."""


def kinds(*patterns: str) -> frozenset[EventKind]:
    """The kinds of events that these name: one, or all of a noun by `task.*`. Raises ValueError when one names none."""
    found = {
        pattern: [kind for kind in KINDS if kind == pattern or (pattern == f"{kind.partition('.')[0]}.*")]
        for pattern in patterns
    }
    for pattern, named in found.items():
        if not named:
            raise ValueError(f"there is no event {pattern}")
    return frozenset(kind for named in found.values() for kind in named)


def partial(target: str, html: Html, swap: str = "outerMorph") -> Html:
    """One instruction of a patch."""
    return rendered(f'<hx-partial hx-target="{esc_exact(target)}" hx-swap="{esc(swap)}">{html}</hx-partial>')


def refetch(url: str, target: str, include: str = "") -> Html:
    """Ask the tab to fetch a part itself, by an element that loads as soon as it is inserted."""
    goal = f'hx-target="{esc_exact(target)}" hx-swap="outerMorph"'
    more = f' hx-include="{esc_exact(include)}"' if include else ""
    getter = rendered(f'<span hx-get="{esc_exact(at(url))}" hx-trigger="load" {goal}{more}></span>')
    return partial("#fetches", getter, "innerHTML")


def announce(text: str) -> Html:
    """Words for those who listen to the page."""
    return partial("#announce", shown(text), "textContent")


class Part:
    """One element, drawn anew when one of its events happens.

    With a `version` only when that is another one than the tab has seen: where an event is frequent and seldom means
    this part. `everywhere` looks alike on every page, and is drawn once for all of them."""

    def __init__(
        self,
        target: str | Callable[[View], str],
        on: Iterable[str],
        draw: Callable[[View], Html],
        *,
        swap: str = "outerMorph",
        version: Callable[[View], Hashable] | None = None,
        everywhere: bool = False,
    ) -> None:
        self.on = kinds(*on)
        self._target, self._draw, self._swap = target, draw, swap
        self._version, self._everywhere = version, everywhere

    def changed(self, view: View, events: Sequence[Event], seen: dict[object, Hashable]) -> Html:
        """The element, unless the tab has seen it as it is."""
        if self._version is None:
            return self._drawn(view, events[-1].seq)
        version = self._version(view)
        return NOTHING if seen.get(self) == version else self._drawn(view, version, seen)

    def whole(self, view: View, seen: dict[object, Hashable]) -> Html:
        """The element."""
        return self._drawn(view, view.session.events.seq if self._version is None else self._version(view), seen)

    def _drawn(self, view: View, version: Hashable, seen: dict[object, Hashable] | None = None) -> Html:
        if seen is not None and self._version is not None:
            seen[self] = version
        here = view.anywhere() if self._everywhere else view

        def draw() -> Html:
            target = self._target if isinstance(self._target, str) else self._target(here)
            return partial(target, self._draw(here), self._swap)

        return here.once(self, version, draw)


class Each:
    """One element for each subject: a card, a row. Its instructions may be several, and are its own business.

    `subject` says which of them an event means, None for none of this page; `draw` gets the kinds of what happened to
    it, the oldest first; `whole` draws all of them."""

    def __init__(
        self,
        on: Iterable[str],
        subject: Callable[[View, Event], str | None],
        draw: Callable[[View, str, tuple[EventKind, ...]], Html],
        whole: Callable[[View], Html],
        *,
        everywhere: bool = False,
    ) -> None:
        self.on = kinds(*on)
        self._subject, self._draw, self._whole, self._everywhere = subject, draw, whole, everywhere

    def changed(self, view: View, events: Sequence[Event], seen: dict[object, Hashable]) -> Html:
        """What became of each."""
        here = view.anywhere() if self._everywhere else view
        touched: dict[str, list[Event]] = {}
        for event in events:
            subject = self._subject(here, event)
            if subject is not None:
                touched.setdefault(subject, []).append(event)
        if len(touched) > bounds.PARTS_PER_PATCH:
            raise TooMany
        return markup(self._one(here, subject, heard) for subject, heard in touched.items())

    def _one(self, view: View, subject: str, heard: list[Event]) -> Html:
        happened = tuple(event.kind for event in heard)
        return view.once(self, (subject, happened, heard[-1].seq), lambda: self._draw(view, subject, happened))

    def whole(self, view: View, seen: dict[object, Hashable]) -> Html:
        """All of them."""
        here = view.anywhere() if self._everywhere else view
        return here.once(self, view.session.events.seq, lambda: self._whole(here))


class Said:
    """Words for those who listen to the page; never part of a snapshot. With a `version`, only when that is new."""

    def __init__(
        self,
        on: Iterable[str],
        words: Callable[[View, Sequence[Event]], str],
        *,
        version: Callable[[View], Hashable] = lambda view: view.session.events.seq,
    ) -> None:
        self.on = kinds(*on)
        self._words, self._version = words, version

    def changed(self, view: View, events: Sequence[Event], seen: dict[object, Hashable]) -> Html:
        """The words, unless there are none or they have been said."""
        version = self._version(view)
        known, seen[self] = seen.get(self), version
        words = "" if known == version else self._words(view, events)
        return announce(words) if words else NOTHING

    def whole(self, view: View, seen: dict[object, Hashable]) -> Html:
        """Nothing: whoever knows nothing has missed nothing."""
        seen[self] = self._version(view)
        return NOTHING


class Lines:
    """Lines that are only ever added. The first time all of them, because nobody knows which the page had.

    `state` is how many there are and what stays the same while those that were drawn stay as they are; `draw` gets how
    many the tab has, None for all."""

    def __init__(
        self,
        target: str,
        on: Iterable[str],
        state: Callable[[View], tuple[int, Hashable]],
        draw: Callable[[View, int | None], Html],
    ) -> None:
        self.on = kinds(*on)
        self._target, self._state, self._draw = target, state, draw

    def changed(self, view: View, events: Sequence[Event], seen: dict[object, Hashable]) -> Html:
        """What is new."""
        count, same = self._state(view)
        known = seen.get(self)
        seen[self] = (count, same)
        had = known[0] if isinstance(known, tuple) and known[1] == same else None
        html = view.once(self, (had, count, same), lambda: self._draw(view, had))
        return partial(self._target, html, "innerHTML" if had is None else "beforeend")

    def whole(self, view: View, seen: dict[object, Hashable]) -> Html:
        """All of them."""
        seen.pop(self, None)
        return self.changed(view, (), seen)
