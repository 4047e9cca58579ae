"""What surrounds every page of a session, as far as it lives: top bar, rail, inbox, log, and what is said aloud."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.core.events import Event
from app.core.wire import Message
from app.web.asks.live import ASKS, ASKS_SAID, INBOX
from app.web.asks.live import ON as ASK_EVENTS
from app.web.calls.live import CALLS_SAID
from app.web.kit.frame import Shell, counts, shell
from app.web.kit.html import NOTHING, Html, markup
from app.web.kit.templates import fragment
from app.web.kit.words import STATE_WORDS
from app.web.live.parts import Part, Said, View, partial
from app.web.live.tab import Shown
from app.web.log.row import log_rows

_STATE: Final = ("connection.changed", "listing.changed", "options.changed", "roots.changed")


def surroundings(view: View, *, rows: bool = False) -> Shell:
    """The frame of a page, as it is now: once for all parts of it."""

    def draw() -> Shell:
        key = view.of if view.page == "tool" else None
        messages: list[Message] | None = None if rows else []
        many = view.limits.page_rows
        return shell(view.session, view.page, "", of=view.of, tool_key=key, messages=messages, rows=many)

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
        return markup(partial(f"#m{one.seq}", log_rows(view.session, [one]), "outerHTML") for one in found)

    def whole(self, view: View) -> Html:
        """The newest rows, and where to find the earlier ones."""
        shell = surroundings(view, rows=True)
        button = fragment("log/_earlier_button.html", shell=shell)
        return partial("#log", shell.rows, "innerHTML") + partial("#earlier", button)


def _connection_words(view: View, _: Sequence[Event]) -> str:
    return f"{view.session.label}: {STATE_WORDS[view.session.info.state]}"


AROUND: Final = Shown(
    live=(
        _framed("where", _STATE),
        _framed("lead", _STATE),
        _framed("waiting", (*_STATE, *ASK_EVENTS, "inbox.cleared")),
        _framed("rail-tools", ["listing.changed"]),
        _framed("rail-nav", ["connection.changed"]),
        Said(["connection.changed"], _connection_words, version=lambda view: view.session.info.state),
        ASKS,
        INBOX,
        ASKS_SAID,
        CALLS_SAID,
    ),
    numbers=counts,
    rows=_Rows(),
    late=frozenset({"n-log", "log-count", "log-sum"}),
)
