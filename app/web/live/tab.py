"""Patches: what changed in a session, as parts of the page that a tab shows.

A tab is a cursor in the session's event log and has no queue of its own. State goes first and whole, log rows follow in
portions, and a tab that is too far behind gets one snapshot. Knows the parts of each page; renders them by `views`.
`stream` brings them to the tab.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from app.core.calls import Call
from app.core.events import Event, EventKind
from app.core.wire import Message
from app.sessions import Workspace
from app.settings import Limits
from app.web.asks import stage as stage_views
from app.web.asks.card import FOLDED_ABOVE, ask_card, inbox_view, summary
from app.web.calls.card import CARDS, call_card, call_line, is_call_of, recent_calls
from app.web.calls.result import is_large
from app.web.door.root import at
from app.web.kit.frame import Shell, counts, figures, shell
from app.web.kit.html import NOTHING, Html, esc, esc_exact, markup, rendered, shown
from app.web.kit.templates import fragment
from app.web.kit.words import CALL_WORDS, STATE_WORDS
from app.web.lists.keys import find_item
from app.web.log.row import log_row
from app.web.log.server_log import Wanted, logging_view
from app.web.prompts.routes import is_get_of, name_of
from app.web.resources.routes import is_read_of, reads, watch_view
from app.web.session.overview import connection_view
from app.web.session.ping import ping_view
from app.web.subscriptions.view import subscriptions_view
from app.web.tasks import sequence
from app.web.tasks.received import received_card, received_cards
from app.web.tasks.running import running_card, running_view

PARTS_PER_PATCH: Final = 60
"""Cards or rows of calls that one message carries at most; more than that makes it a snapshot."""
_LOG_NUMBERS = frozenset({"n-log", "log-count", "log-sum"})
"""They say what the rows show, so they wait for the last of the rows that are on their way."""
_ON_STAGE: Final[frozenset[EventKind]] = frozenset(
    {
        "ask.added",
        "ask.changed",
        "ask.reopened",
        "ask.settled",
        "ask.withdrawn",
        "call.added",
        "call.changed",
        "call.settled",
        "connection.changed",
        "listing.changed",
    }
)
_LIST_PAGES: Final = {
    "tools": "tools",
    "resources": "resources",
    "templates": "resources/templates",
    "prompts": "prompts",
}
"""Pages that show a list, and their addresses; the element has the page's name."""
_NUMBERS_ONLY = frozenset({"message.recorded", "log.trimmed", "stderr.written", "exchange.recorded"})


@dataclass(slots=True, frozen=True)
class Patch:
    """One message for a tab: what to put where, and the seq up to which the tab then knows everything."""

    html: Html
    seq: int


def partial(target: str, html: Html, swap: str = "outerMorph") -> Html:
    """One instruction of a patch."""
    return rendered(f'<hx-partial hx-target="{esc_exact(target)}" hx-swap="{esc(swap)}">{html}</hx-partial>')


class Tab:
    """What one tab knows: two cursors, because state must not wait behind log rows."""

    def __init__(self, session: Workspace, page: str, of: str, since: int | None, limits: Limits) -> None:
        self.session, self.page, self.of, self._limits = session, page, of, limits
        self._state_mark = self._row_mark = -1 if since is None else since
        self._unsent = 0
        self._numbers: dict[str, str] = {}
        self._stderr_mark: int | None = None
        self._stderr_redrawn = 0
        self._heard: tuple[int, int] | None = None
        self._connection_state = session.info.state

    @property
    def mark(self) -> int:
        """The newest event that this tab's state includes."""
        return self._state_mark

    def patch(self) -> Patch | None:
        """What the tab should hear next; None when it knows everything."""
        events = self.session.events.since(self._state_mark)
        if events is None:
            return self.snapshot()
        if not events and not self._unsent:
            return None
        self._unsent += sum(event.kind == "message.recorded" for event in events)
        if self._unsent > self._limits.stream_behind:
            return self.snapshot()
        state = self._state(events)
        if state is None:
            return self.snapshot()
        state += self._new_numbers()
        newest = self.session.events.seq
        self._state_mark = newest
        rows = self.session.messages.after(self._row_mark, self._limits.stream_rows) if self._unsent else []
        if rows:
            base, log = f"/s/{self.session.id}", self.session.messages
            html = markup(log_row(message, log.findings(message.seq), base) for message in rows)
            state.append(partial("#log", html, "beforeend"))
        self._unsent = self._unsent - len(rows) if len(rows) == self._limits.stream_rows else 0
        self._row_mark = rows[-1].seq if rows and self._unsent else newest
        return Patch(markup(state), self._row_mark)

    def snapshot(self) -> Patch:
        """Everything this page shows that can change, in one message."""
        newest = self.session.events.seq
        self._state_mark = self._row_mark = newest
        self._unsent = 0
        self._numbers = {}
        shell = self._shell(rows=True)
        values = {"shell": shell}
        parts = [
            *self._new_numbers(),
            *self._surroundings(shell),
            partial("#rail-tools", _part("frame/_rail_tools", values)),
        ]
        parts.append(partial("#rail-nav", _part("frame/_rail_nav", values)))
        parts += [partial("#log", shell.rows, "innerHTML"), partial("#earlier", _part("log/_earlier_button", values))]
        parts += self._inbox()
        parts += self._page_whole()
        return Patch(markup(parts), newest)

    # ---- state

    def _state(self, events: list[Event]) -> list[Html] | None:
        """The parts that these events touch, each once; None when they are too many."""
        parts: list[Html] = []
        kinds = {event.kind for event in events}
        if self.page == "logging" and kinds & {"message.recorded", "stderr.written"}:
            parts += self._server_log()
        if kinds <= _NUMBERS_ONLY and not ("stderr.written" in kinds and self.page == "stderr"):
            return parts
        remarked = {
            int(event.subject)
            for event in events
            if event.kind == "finding.raised" and event.subject.isdecimal() and int(event.subject) <= self._row_mark
        }
        if len(remarked) > self._limits.stream_rows:
            return None
        for seq in sorted(remarked):
            message = self.session.messages.get(seq)
            if message is not None:
                row = log_row(message, self.session.messages.findings(seq), f"/s/{self.session.id}")
                parts.append(partial(f"#m{seq}", row, "outerHTML"))
        if kinds & {"connection.changed", "listing.changed", "options.changed", "roots.changed"}:
            parts += self._connection_parts(kinds)
        if self.page in {"overview", "logging"} and kinds & {"ping.settled", "connection.changed"}:
            parts.append(partial("#ping", _part("session/_ping", {"ping": ping_view(self.session)})))
        if "resource.changed" in kinds or (self.page == "resource" and "connection.changed" in kinds):
            parts += self._resource({event.subject for event in events if event.kind == "resource.changed"})
        if self.page == "compare" and kinds & {"comparison.changed", "call.changed", "call.settled"}:
            parts.append(self._compare())
        if self.page == "subscriptions" and kinds & {"subscription.changed", "connection.changed"}:
            parts.append(self._subscriptions())
        if kinds & {"roots.changed"} and self.page == "roots":
            parts.append(partial("#roots", _part("session/_roots", {"roots": self.session.roots})))
        if "stderr.written" in kinds and self.page == "stderr":
            parts.append(self._stderr())
        if self.page == "stage" and kinds & _ON_STAGE:
            parts.append(self._stage())
        calls, asks = self._calls(events), self._asks(events)
        if calls is None or asks is None:
            return None
        return parts + asks + calls

    def _new_numbers(self) -> list[Html]:
        now = counts(self.session)
        if self.page == "overview":
            now |= figures(self.session)
        if self._unsent > self._limits.stream_rows:
            now = {key: text for key, text in now.items() if key not in _LOG_NUMBERS}
        changed = {key: text for key, text in now.items() if self._numbers.get(key) != text}
        self._numbers |= now
        return [partial(f"#{key}", shown(text), "textContent") for key, text in changed.items()]

    def _shell(self, *, rows: bool = False) -> Shell:
        many = self._limits.page_rows
        messages: list[Message] | None = None if rows else []
        key = self.of if self.page == "tool" else None
        return shell(self.session, self.page, "", of=self.of, tool_key=key, messages=messages, rows=many)

    def _surroundings(self, shell: Shell) -> list[Html]:
        values = {"shell": shell}
        parts = [partial(f"#{name}", _part(f"frame/_{name}", values)) for name in ("where", "lead", "waiting")]
        if self.page not in {"overview", "connect", "log"}:
            parts.append(partial("#notice", _part("frame/_notice", values)))
        return parts

    def _overview(self) -> Html:
        return partial("#connection", _part("session/_connection", {"connection": connection_view(self.session)}))

    def _connection_parts(self, kinds: set[EventKind]) -> list[Html]:
        shell = self._shell()
        parts = self._surroundings(shell)
        if "listing.changed" in kinds:
            parts.append(partial("#rail-tools", _part("frame/_rail_tools", {"shell": shell})))
        if "connection.changed" in kinds:
            parts.append(partial("#rail-nav", _part("frame/_rail_nav", {"shell": shell})))
        if self.page == "overview":
            parts.append(self._overview())
        if self.page in _LIST_PAGES and kinds & {"listing.changed", "connection.changed"}:
            parts.append(self._list())
        state = self.session.info.state
        if state != self._connection_state:
            self._connection_state = state
            parts.append(_announce(f"{shell.label}: {STATE_WORDS[state]}"))
        return parts

    def _list(self) -> Html:
        """The list that this page shows: the tab fetches it, for only the tab knows what is searched in it."""
        return _refetch(f"/s/{self.session.id}/{_LIST_PAGES[self.page]}", f"#{self.page}", "#list-q, #list-page")

    # ---- resources, and what the server logs

    def _resource(self, touched: set[str]) -> list[Html]:
        if self.page == "resources" and touched:
            return [self._list()]
        if self.page == "resource":
            return [partial("#watch", _part("resources/_watch", {"watch": watch_view(self.session, self.of)}))]
        return []

    def _server_log(self) -> list[Html]:
        now = (self.session.server_log.count, self.session.stderr.count)
        if now == self._heard:
            return []
        self._heard = now
        view = logging_view(self.session, Wanted.of_query(self.of))
        return [partial("#server-log", _part("log/_server_log", {"log": view}))]

    # ---- asks and tasks

    def _asks(self, events: list[Event]) -> list[Html] | None:
        """Asks that came or were settled. A card that is open is never replaced: somebody may be typing in it."""
        touched: dict[str, str] = {}
        tasks: set[str] = set()
        for event in events:
            if event.kind in {"ask.added", "ask.changed", "ask.reopened", "ask.settled", "ask.withdrawn"}:
                drawn = touched.get(event.subject)
                touched[event.subject] = drawn if drawn in ("added", "reopened") else event.kind[4:]
            elif event.kind.startswith(("task.", "tasks.")):
                tasks.add(event.subject)
        if len(touched) > PARTS_PER_PATCH:
            return None
        parts = [part for aid, how in touched.items() for part in self._ask(aid, how)]
        cleared = any(event.kind == "inbox.cleared" for event in events)
        if cleared:
            parts += self._inbox()
        if touched or cleared:
            parts.append(partial("#waiting", _part("frame/_waiting", {"shell": self._shell()})))
            if "added" in touched.values():
                parts.append(_announce(f"The server asks something, {summary(self.session)}"))
        if self.page == "tasks" and tasks:
            parts.append(self._tasks())
        if self.page == "task" and (tasks or touched or any(event.kind.startswith("call.") for event in events)):
            parts += self._task(tasks)
        return parts

    def _ask(self, aid: str, how: str) -> list[Html]:
        ask = self.session.inbox.asks.get(aid)
        if ask is None:
            return []
        if how in ("added", "reopened") and not ask.settled:
            # Deleted first: a tab that comes back may hear of the same ask twice.
            card = ask_card(self.session, ask, folded=self.session.open_asks > FOLDED_ABOVE)
            return [
                partial(f"#ask-{aid}", NOTHING, "delete"),
                partial("#asks", _part("asks/_card", {"ask": card}), "beforeend"),
            ]
        card = ask_card(self.session, ask, folded=ask.settled)
        if ask.settled and (how == "added" or ask.recorded):
            # Nobody saw it open here, so there is no card to settle: it goes straight to the others.
            html = _part("asks/_card", {"ask": card})
            return [partial(f"#ask-{aid}", NOTHING, "delete"), partial("#settled", html, "afterbegin")]
        parts = [partial(f"#ask-{aid}-state", _part("asks/_state", {"ask": card}), "innerHTML")]
        if ask.kind == "sampling" and ask.state == "open":
            parts.append(partial(f"#ask-{aid}-request", _part("asks/_request", {"ask": card}), "innerHTML"))
        return parts

    def _compare(self) -> Html:
        """Two conversations, one of them of another session: the tab fetches both."""
        return _refetch(f"/s/{self.session.id}/calls/{quote(self.of, safe='')}/compare", "#compare")

    def _subscriptions(self) -> Html:
        return partial(
            "#subscriptions", _part("subscriptions/_subscriptions", {"subscriptions": subscriptions_view(self.session)})
        )

    def _stage(self) -> Html:
        return partial("#stage", _part("asks/_stage", {"stage": stage_views.stage_view(self.session)}))

    def _tasks(self) -> Html:
        cards, running = received_cards(self.session), running_view(self.session)
        return partial("#tasks", _part("tasks/_tasks", {"tasks": cards, "running": running}))

    def _task(self, touched: set[str] | None = None) -> list[Html]:
        """The task that this page shows, and its drawing; a task on the server also moves with its call."""
        session, here = self.session, f"#task-{self.of}"
        received, task = session.asks.tasks.get(self.of), session.client_tasks.tasks.get(self.of)
        if received is not None and (touched is None or self.of in touched):
            card = received_card(session, received)
            drawn = sequence.of_receiver_task(session, received)
            return [partial(here, _part("tasks/_received", {"task": card})), _sequence(drawn)]
        if task is not None:
            html = _part("tasks/_running", {"task": running_card(session, task, alone=True)})
            return [partial(here, html), _sequence(sequence.of_client_task(session, task))]
        return []

    def _inbox(self) -> list[Html]:
        """The whole column. Cards that are open on the page stay as they are, with what was typed in them."""
        view = inbox_view(self.session)
        opened = markup(_part("asks/_card", {"ask": card}) for card in view.open)
        settled = markup(_part("asks/_card", {"ask": card}) for card in view.settled)
        return [partial("#asks", opened, "innerMorph"), partial("#settled", settled, "innerMorph")]

    # ---- calls

    def _concerned(self, calls: Iterable[Call]) -> list[Call]:
        """Those of the calls that this page shows."""
        if self.page == "call":
            return [call for call in calls if call.id == self.of]
        if self.page == "tool":
            index = find_item(self.session.tools, self.of)
            tool = self.session.tools.items[index] if index is not None else None
            name = tool.get("name") if isinstance(tool, dict) else None
            return [call for call in calls if is_call_of(call, name)]
        if self.page == "prompt":
            name = name_of(self.session, self.of)
            return [call for call in calls if is_get_of(call, name)]
        if self.page == "resource":
            return [call for call in calls if is_read_of(call, self.of)]
        return list(calls) if self.page == "calls" else []

    def _card(self, call: Call) -> Html:
        if self.page == "calls":
            return _part("calls/_line", {"line": call_line(self.session, call)})
        return _part("calls/_card", {"call": call_card(self.session, call)})

    def _call_alone(self, call: Call) -> Html:
        return self._call_card(call) + _sequence(sequence.of_call(self.session, call))

    def _call_card(self, call: Call) -> Html:
        if is_large(call):
            # This page shows it whole, and a large one is read in a thread: the tab fetches it by itself.
            return _refetch(f"/s/{self.session.id}/calls/{call.id}", f"#call-{call.id}")
        card = call_card(self.session, call, alone=True)
        return partial(f"#call-{call.id}", _part("calls/_card", {"call": card}))

    def _calls(self, events: list[Event]) -> list[Html] | None:
        touched: dict[str, bool] = {}
        settled: list[Call] = []
        for event in events:
            if event.kind in {"call.added", "call.changed", "call.settled"} or event.kind == "finding.raised":
                call = self.session.calls.get(event.subject)
            elif event.kind.startswith("task.") and event.subject in self.session.client_tasks.tasks:
                call = self.session.calls.get(self.session.client_tasks.tasks[event.subject].call_id or "")
            else:
                continue
            if call is None or (call.quiet and not (self.page == "resource" and is_read_of(call, self.of))):
                continue
            touched[call.id] = touched.get(call.id, False) or event.kind == "call.added"
            if event.kind == "call.settled":
                settled.append(call)
        concerned = self._concerned(self.session.calls[cid] for cid in touched)
        if len(concerned) > PARTS_PER_PATCH:
            return None
        parts = []
        for call in concerned:
            here = f"#call-{call.id}"
            if self.page == "call":
                parts.append(self._call_alone(call))
            elif touched[call.id]:
                # Deleted first: a tab that comes back may hear of the same call twice.
                parts.append(partial(here, NOTHING, "delete") + partial("#calls", self._card(call), "afterbegin"))
            else:
                parts.append(partial(here, self._card(call)))
        if settled:
            last = settled[-1]
            word = CALL_WORDS[last.state][1].lower()
            parts.append(_announce(f"Call {last.id.lstrip('c')}: {word}"))
        return parts

    # ---- whole pages

    def _page_whole(self) -> list[Html]:
        session, page = self.session, self.page
        if page == "overview":
            return [self._overview()]
        if page in _LIST_PAGES:
            return [self._list()]
        if page == "logging":
            self._heard = None
            return self._server_log()
        if page == "roots":
            return [partial("#roots", _part("session/_roots", {"roots": session.roots}))]
        if page == "stage":
            return [self._stage()]
        if page == "subscriptions":
            return [self._subscriptions()]
        if page == "compare":
            return [self._compare()]
        if page == "tasks":
            return [self._tasks()]
        if page == "task":
            return self._task()
        if page == "stderr":
            self._stderr_mark = None
            return [self._stderr()]
        if page == "resource":
            cards = [call_card(session, one) for one in reads(session, self.of)]
            return [*self._resource(set()), partial("#calls", _part("calls/_cards", {"cards": cards}))]
        calls = self._concerned(recent_calls(session))
        if page == "calls":
            return [partial("#calls", _part("calls/_lines", {"lines": [call_line(session, one) for one in calls]}))]
        if page in {"tool", "prompt"}:
            cards = [call_card(session, one) for one in calls[:CARDS]]
            return [partial("#calls", _part("calls/_cards", {"cards": cards}))]
        if page == "call":
            return [self._call_alone(one) for one in calls]
        return []

    def _stderr(self) -> Html:
        """The first time the whole list, because nobody knows which lines the page had; then only what is new."""
        stderr = self.session.stderr
        # Lines that turned out to be of another kind than they were drawn as are drawn anew, with all others.
        known = self._stderr_mark if self._stderr_redrawn == stderr.redrawn else None
        fresh = [line for line in stderr.lines() if known is None or line.number > known]
        self._stderr_mark, self._stderr_redrawn = stderr.count, stderr.redrawn
        html = _part("session/_stderr_lines", {"lines": fresh})
        lines = partial("#stderr", html, "innerHTML" if known is None else "beforeend")
        return lines + partial("#stderr-probe", _part("session/_stderr_probe", {"by_probe": stderr.by_probe}))


def _part(name: str, values: dict[str, Any]) -> Html:
    return fragment(f"{name}.html", **values)


def _sequence(drawn: sequence.Drawing) -> Html:
    return partial("#sequence", _part("tasks/_sequence", {"sequence": drawn}))


def _announce(text: str) -> Html:
    return partial("#announce", shown(text), "textContent")


def _refetch(url: str, target: str, include: str = "") -> Html:
    """Ask the tab to fetch a part itself, by an element that loads as soon as it is inserted."""
    goal = f'hx-target="{esc_exact(target)}" hx-swap="outerMorph"'
    more = f' hx-include="{esc_exact(include)}"' if include else ""
    getter = rendered(f'<span hx-get="{esc_exact(at(url))}" hx-trigger="load" {goal}{more}></span>')
    return partial("#fetches", getter, "innerHTML")
