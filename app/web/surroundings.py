"""What surrounds every page of a session, as far as it lives: top bar, rail, inbox, log, and what is said aloud."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from app.core.events import Event
from app.core.folds import Entry
from app.web.asks.live import ASKS, ASKS_SAID, INBOX
from app.web.asks.live import ON as ASK_EVENTS
from app.web.calls.live import CALLS_SAID
from app.web.kit.frame import Shell, counts, shell
from app.web.kit.html import NOTHING, Html, markup
from app.web.kit.templates import fragment
from app.web.kit.words import state_words
from app.web.live.parts import Part, Said, View, partial
from app.web.live.tab import Shown
from app.web.log.row import log_rows
from app.web.models.live import DRAFTS, DRAFTS_SAID
from app.web.recorded.tape import TAPE
from app.web.sign_in.live import CARD, SAID
from app.web.sign_in.live import ON as SIGN_IN_EVENTS

_STATE: Final = ("connection.changed", "listing.changed", "options.changed", "roots.changed")


def surroundings(view: View, *, rows: bool = False) -> Shell:
    """The frame of a page, as it is now: once for all parts of it."""

    def draw() -> Shell:
        key = view.of if view.page == "tool" else None
        none: tuple[list[Entry], int | None] | None = None if rows else ([], None)
        many = view.limits.page_rows
        return shell(view.session, view.page, "", of=view.of, tool_key=key, shown=none, rows=many)

    return view.once(surroundings, (view.session.events.seq, rows), draw)


def _framed(name: str, on: Sequence[str]) -> Part:
    """A part of the frame that has a template of its own."""
    template = f"frame/_{name.replace('-', '_')}.html"
    return Part(f"#{name}", on, lambda view: fragment(template, shell=surroundings(view)))


NOTICE: Final = _framed("notice", _STATE)
"""Says above a page that there is no connection. Not where the page is about that."""


class _Rows:
    """The rows of the log."""

    def after(self, view: View, mark: int, most: int) -> tuple[Html, int, int]:
        """The next rows, how many they are, and the seq of the last."""
        log = view.session.messages
        messages = log.after(mark, most)
        if not messages:
            return NOTHING, 0, mark
        last = messages[-1].seq
        drawn = view.anywhere().once(self, (mark, last, log.findings_total), lambda: log_rows(view.session, messages))
        return partial("#log", drawn, "beforeend"), len(messages), last

    def anew(self, view: View, seqs: Sequence[int]) -> Html:
        """Rows that were sent and have changed."""
        log = view.session.messages
        found = [message for seq in seqs if (message := log.get(seq)) is not None]
        # One that may be in a fold has no row of its own there: it goes to the end, and the tab puts it in its place.
        places = [("#log", "beforeend") if one.fold else (f"#m{one.seq}", "outerHTML") for one in found]
        return markup(
            partial(target, log_rows(view.session, [one]), swap)
            for one, (target, swap) in zip(found, places, strict=True)
        )

    def whole(self, view: View) -> Html:
        """The newest rows, and where to find the earlier ones."""
        shell = surroundings(view, rows=True)
        button = fragment("log/_earlier_button.html", shell=shell)
        return partial("#log", shell.rows, "innerHTML") + partial("#earlier", button)


def _connection_words(view: View, _: Sequence[Event]) -> str:
    return f"{view.session.label}: {state_words(view.session)}"


AROUND: Final = Shown(
    live=(
        _framed("where", _STATE),
        _framed("lead", _STATE),
        _framed("waiting", (*_STATE, *ASK_EVENTS, "inbox.cleared")),
        Part(
            "#rules-on",
            ["rules.changed"],
            lambda view: fragment("frame/_rules_on.html", session=view.session),
            swap="outerHTML",  # a switch that somebody has moved by hand does not follow its markup
            version=lambda view: (view.session.asks.rules.switched, view.session.asks.rules.paused),
            everywhere=True,
        ),
        _framed("record", ("recording.changed",)),
        _framed("recorded", ("recording.changed",)),
        _framed("rail-tools", ["listing.changed"]),
        _framed("rail-nav", ["connection.changed", *SIGN_IN_EVENTS]),
        Part("#signing", SIGN_IN_EVENTS, lambda view: fragment("sign_in/_signing.html", shell=surroundings(view))),
        Said(["connection.changed"], _connection_words, version=lambda view: view.session.info.state),
        ASKS,
        INBOX,
        DRAFTS,
        ASKS_SAID,
        DRAFTS_SAID,
        CALLS_SAID,
        CARD,
        SAID,
    ),
    numbers=counts,
    rows=_Rows(),
    late=frozenset({"n-log", "log-count", "log-sum", "log-invalid", "log-findings"}),
)

KEPT: Final = replace(
    AROUND,
    live=(
        _framed("where", _STATE),
        _framed("lead", _STATE),
        _framed("rail-tools", ["listing.changed"]),
        _framed("rail-nav", ["connection.changed"]),
        TAPE,
    ),
    numbers=lambda session: {key: text for key, text in counts(session).items() if not key.startswith("inbox")},
)
"""The same around the pages of a recording, which has no inbox."""
