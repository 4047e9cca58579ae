"""The banner above every page of a recording: what it is, whether all of it is there, and what can be done with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from app.core.figures import grouped
from app.sessions import Workspace
from app.web.kit import format
from app.web.kit.frame import shell
from app.web.kit.html import Html, markup, shown
from app.web.kit.templates import fragment, jinja
from app.web.live.parts import Part, View
from app.web.recordings.rows import lasted, when

if TYPE_CHECKING:
    from app.recordings.recording import RecordedSession

_MIB = 1024 * 1024


class Tape:
    """What the banner says."""

    def __init__(self, session: RecordedSession) -> None:
        self.session, self.row = session, session.row
        self.progress = session.reader.progress

    @property
    def heading(self) -> Html:
        """`Recorded yesterday, 14:02 to 14:11.`"""
        row, now = self.row, self.session.registry_wall()
        what = "A moment, from" if row.origin == "moment" else "Recorded"
        return markup([shown(f"{what} "), when(row, now), shown(".")])

    @property
    def facts(self) -> str:
        """`312 messages, 6 calls, 9 asks`"""
        log, session = self.session.messages, self.session
        calls = sum(not call.quiet for call in session.calls.values())
        said = [format.plural(log.count, "message"), format.plural(calls, "call")]
        asks = len(session.inbox.asks)
        return ", ".join([*said, *([format.plural(asks, "ask")] if asks else [])])

    @property
    def lead(self) -> str:
        """`yesterday, 9 min 12 s, 1.3 MB`"""
        row = self.row
        parts = [format.day(row.began, self.session.registry_wall()), lasted(row), format.size(row.size)]
        return ", ".join(part for part in parts if part)

    @property
    def masked_words(self) -> str:
        many = sum(int(one.get("count", 0)) for one in self.row.masked) or sum(one.count for one in self.session.masked)
        return f"{format.plural(many, 'value')} masked" if many else ""

    @property
    def note(self) -> str:
        """What whoever made a moment wrote with it."""
        header = self.session.header
        return "" if header is None else header.note

    @property
    def reading(self) -> bool:
        return self.session.reading

    @property
    def read_words(self) -> str:
        """`Reading 31 of 100 MB`"""
        done, size = self.progress.read, max(1, self.progress.size)
        if size < _MIB:
            return f"Reading {done * 100 // size} %"
        return f"Reading {grouped(done // _MIB)} of {grouped(size // _MIB)} MB"

    @property
    def troubles(self) -> list[str]:
        """What is missing, and what could not be read."""
        row, progress, session = self.row, self.progress, self.session
        said = []
        if progress.newer:
            said.append(f"The header {progress.newer}. What this version knows of it is shown.")
        elif session.header is None and not self.reading:
            said.append("It has no header: when and from which server it is cannot be known.")
        if progress.skipped:
            lines = format.plural(progress.skipped, "line")
            verb = "was" if progress.skipped == 1 else "were"
            said.append(f"{lines} could not be read and {verb} passed over: the first one {progress.problem}.")
        if progress.twice:
            again = format.plural(progress.twice, "message")
            said.append(f"{again} had a number that was taken already; the first one counts.")
        if progress.missing:
            missing = format.plural(progress.missing, "message")
            said.append(f"{missing} {'is' if progress.missing == 1 else 'are'} missing: the disk was too slow.")
        if not self.reading and session.end is None and row.state != "recording":
            said.append(
                "It breaks off: Parley ended while it was recording, or the file was cut. What is there is shown."
            )
        elif row.words:
            said.append(row.words)
        header = session.header
        if header is not None and header.left.rows:
            said.append(f"{format.plural(header.left.rows, 'older message')} had left the log before it began.")
        return said


def tape(session: Workspace) -> Tape:
    """The banner of a recording."""
    return Tape(cast("RecordedSession", session))


jinja.filters.update(tape=tape)


def _draw(view: View) -> Html:
    return fragment("recorded/_tape.html", shell=shell(view.session, view.page, "", of=view.of, shown=([], None)))


TAPE = Part("#tape", ["recording.changed"], _draw)
