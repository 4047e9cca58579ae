"""A recording that is open: a workspace that nobody fills any more, as its index tells it.

The log is read from the index whenever somebody looks; of all other nouns the last state is put back where a live
session has it. So every page that shows a session shows this one. Nothing can be done in it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import TypeAdapter, ValidationError

from app import bounds
from app.core.asks import Ask
from app.core.calls import Call
from app.core.connection import ConnectionInfo
from app.core.json.text import parse
from app.core.lists import Listing
from app.core.log import MessageLog
from app.core.options import Options, Root
from app.core.targets import AnyTarget, Target
from app.core.tasks.received import ReceiverTask
from app.core.tasks.running import ClientTask
from app.core.wire import Message, StderrLine
from app.recordings.indexing import Reader
from app.recordings.lines import Broken, read_line
from app.recordings.log import RecordedLog
from app.recordings.nouns import (
    End,
    Header,
    ListState,
    LogState,
    Masked,
    MaskState,
    OptionsState,
    PingState,
    RootsState,
    State,
    Totals,
)
from app.sessions.calls import Calls
from app.sessions.identity import Identity, Right
from app.sessions.lists import LISTS
from app.sessions.resources import Watched
from app.sessions.subscriptions import Subscription
from app.sessions.workspace import Workspace
from app.store.index_file import IndexFile
from app.store.recordings import Recording

if TYPE_CHECKING:
    from app.sessions.registry import SessionRegistry

_Noun = TypeVar("_Noun")
_WATCH: Final[frozenset[Right]] = frozenset({"watch"})
_TARGET: Final = TypeAdapter[AnyTarget](Target)


@dataclass(slots=True)
class Loaded:
    """The last state of every noun."""

    header: Header | None = None
    info: ConnectionInfo | None = None
    calls: list[Call] = field(default_factory=list)
    asks: list[Ask] = field(default_factory=list)
    client_tasks: list[ClientTask] = field(default_factory=list)
    receiver_tasks: list[ReceiverTask] = field(default_factory=list)
    subscriptions: list[Subscription] = field(default_factory=list)
    resources: list[Watched] = field(default_factory=list)
    stderr: list[StderrLine] = field(default_factory=list)
    lists: dict[str, tuple[Listing, bool]] = field(default_factory=dict)
    ping: PingState | None = None
    roots: RootsState | None = None
    options: OptionsState | None = None
    server_log: LogState | None = None
    totals: Totals | None = None
    masked: list[Masked] = field(default_factory=list)
    end: End | None = None
    logged: list[tuple[Message, bytes]] = field(default_factory=list)
    """What the server said by `notifications/message`."""
    seq: int = 0
    at: float = 0.0


class RecordedCalls(Calls):
    """The newest calls; older ones are read when somebody asks for one."""

    def __init__(self, session: Workspace, older: Callable[[str], Call | None]) -> None:
        super().__init__(session)
        self._older = older

    def __getitem__(self, cid: str) -> Call:
        known = self._calls.get(cid) or self._older(cid)
        if known is None:
            raise KeyError(cid)
        return known

    def put(self, calls: list[Call]) -> None:
        self._calls = {call.id: call for call in calls}


class RecordedSession(Workspace):
    """A session that is over, as it was written down."""

    read_only = True

    def __init__(
        self, row: Recording, owner: Identity, registry: SessionRegistry, index: IndexFile, reader: Reader
    ) -> None:
        self._at = registry.wall()
        self._index = index
        self.reader, self.row = reader, row
        self.header: Header | None = None
        self.masked: list[Masked] = []
        self.end: End | None = None
        super().__init__(row.id, 0, owner, registry, wall=lambda: self._at, mono=lambda: self._at)
        self.roots = []
        # While it is read, its events count where no live one ever comes to: a tab that saw some of them knows nothing
        # of the whole, and gets all of it.
        self.events.seq = bounds.LARGEST_SEQ // 10
        self._last_seq = 0

    def _new_log(self) -> MessageLog:
        self._recorded = RecordedLog(self.limits, self.events, self._index)
        return self._recorded

    def _new_calls(self) -> Calls:
        self._kept_calls = RecordedCalls(self, self._older_call)
        return self._kept_calls

    # ---- who it is

    @property
    def base(self) -> str:
        return f"/r/{self.id}"

    @property
    def counts(self) -> bool:
        return False

    def rights_of(self, identity: Identity) -> frozenset[Right]:
        return super().rights_of(identity) & _WATCH

    @property
    def index(self) -> IndexFile:
        """What it is read from."""
        return self._index

    @property
    def reading(self) -> bool:
        """Whether it is still being indexed."""
        return not self.reader.progress.done

    def registry_wall(self) -> float:
        """The time now; that of the recording itself stands still."""
        return self._registry.wall()

    @property
    def ended_at(self) -> float:
        """When the last of it happened."""
        return self._at

    def idle_for(self) -> float:
        return 0.0 if self._streams else self._registry.mono() - self._seen

    def progressed(self, *, over: bool) -> None:
        """More of it is read. Once all of it is, whoever looks begins anew: what was there may mean something else."""
        self.changed("recording.changed", "recording")
        if over:
            self.events.forget()
            self.events.seq = self._last_seq

    def end_of_reading(self) -> None:
        """Nobody reads it any more."""
        self.closed = True
        self.changed("session.closed", "session")

    # ---- what it holds

    def refresh(self, whole: bool) -> Loaded | None:
        """Look what the index has now, with all nouns or with the log alone; blocks."""
        self._recorded.refresh()
        return self._load() if whole else None

    def _states(self, kind: str, of: type[_Noun], newest: int) -> Iterator[tuple[State, _Noun]]:
        for line in self._index.states(kind, newest):
            found = self._state(line)
            if found is not None and isinstance(found.noun, of):
                yield found, found.noun

    def _nouns(self, kind: str, of: type[_Noun], newest: int) -> list[_Noun]:
        return [noun for _, noun in self._states(kind, of, newest)]

    def _only(self, kind: str, of: type[_Noun]) -> _Noun | None:
        return next(iter(self._nouns(kind, of, 1)), None)

    def _state(self, line: bytes) -> State | None:
        try:
            found = read_line(line, self.messages)
        except Broken:  # it was read when it was indexed, by another version
            return None
        return found if isinstance(found, State) else None

    def _load(self) -> Loaded:
        index, limits = self._index, self.limits
        made = Loaded()
        text = index.fact("header")
        if text is not None:
            found = read_line(text.encode())
            made.header = found if isinstance(found, Header) else None
        infos = self._nouns("connection", ConnectionInfo, bounds.RECORDED_CONNECTIONS)
        made.info = max(infos, key=lambda one: one.number, default=None)
        calls = sorted(self._states("call", Call, limits.calls), key=lambda one: (one[1].started_at, len(one[1].id)))
        left = limits.log_bytes
        for state, call in reversed(calls):
            left = self._with_reply(call, state, left)
        made.calls = [call for _, call in calls]
        # They were written down in the order in which they changed; people know them in that in which they began.
        made.asks = sorted(self._nouns("ask", Ask, bounds.RECORDED_ASKS), key=lambda one: (one.asked_at, len(one.id)))
        theirs = self._nouns("client_task", ClientTask, bounds.TASKS_KEPT)
        made.client_tasks = sorted(theirs, key=lambda one: (one.began_at, len(one.id)))
        ours = self._nouns("receiver_task", ReceiverTask, bounds.TASKS_KEPT)
        made.receiver_tasks = sorted(ours, key=lambda one: (one.began_at, len(one.id)))
        made.subscriptions = sorted(
            self._nouns("subscription", Subscription, bounds.TASKS_KEPT), key=lambda one: (one.at, len(one.id))
        )
        made.resources = self._nouns("resource", Watched, bounds.WATCHED_RESOURCES)
        made.stderr = sorted(self._nouns("stderr", StderrLine, limits.stderr_lines), key=lambda one: one.number)
        for state, listed in self._states("list", ListState, bounds.RECORDED_CONNECTIONS):
            made.lists[state.id] = self._listing(state.id, listed), listed.by_page
        made.ping, made.roots = self._only("ping", PingState), self._only("roots", RootsState)
        made.options, made.server_log = self._only("options", OptionsState), self._only("server_log", LogState)
        made.end = self._only("end", End)
        made.totals = self._only("totals", Totals) if made.end is None else made.end.totals
        masks = self._only("masked", MaskState)
        made.masked = made.end.masked if made.end is not None else [] if masks is None else masks.masked
        made.logged = index.notified("notifications/message", bounds.SERVER_LOG_LINES)
        made.seq, made.at = index.last_moment()
        return made

    def _with_reply(self, call: Call, state: State, left: int) -> int:
        """Give a call its reply, so long as not too much is held already; says how much is left."""
        if not state.reply_kept or left <= 0:
            return left
        reply = state.reply
        if reply is None and call.legs and call.legs[-1].reply_seq is not None:
            reply = self.messages.raw(call.legs[-1].reply_seq)
        call.reply = reply
        return left - len(reply or b"")

    def _older_call(self, cid: str) -> Call | None:
        line = self._index.state("call", cid)
        state = None if line is None else self._state(line)
        if state is None or not isinstance(state.noun, Call):
            return None
        self._with_reply(state.noun, state, self.limits.log_bytes)
        return state.noun

    def _listing(self, name: str, state: ListState) -> Listing:
        """A list with its items, which stand in the frames that brought them."""
        listing = state.listing
        key = next((one.key for known, one in LISTS.items() if known == name), None)
        if key is None or not state.items_from:
            return listing
        items: list[Any] = []
        for seq in state.items_from[: self.limits.list_pages]:
            value = parse(self.messages.raw(seq) or b"").value
            result = value.get("result") if isinstance(value, dict) else None
            found = result.get(key) if isinstance(result, dict) else None
            items += found if isinstance(found, list) else []
        refused = [one for one, _ in listing.rejected]
        listing.items = [one for one in items if one not in refused] if refused else items
        return listing

    def put(self, made: Loaded | None) -> None:
        """Put everything in its place."""
        if made is None:
            return
        header = self.header = made.header
        self.masked, self.end = made.masked, made.end
        self._at = made.at or self._at
        self.created_at = self._began(made)
        self.info = made.info or ConnectionInfo()
        if header is not None:
            self.target = target_of(header.target)
        said = {} if header is None else header.options
        self.options = _options(said if made.options is None else made.options.options)
        self.roots = _roots(made.roots)
        self._kept_calls.put(made.calls)
        self.inbox.asks = {ask.id: ask for ask in made.asks}
        for key, kept in (("client", made.client_tasks), ("receiver", made.receiver_tasks)):
            held: Any = self.client_tasks.tasks if key == "client" else self.asks.tasks
            held.clear()
            held.update((task.id, task) for task in kept)
        self.client_tasks.known = {
            task.task_id: task for task in made.client_tasks if task.connection == self.info.number
        }
        self.subscriptions.all.clear()
        self.subscriptions.all.update((one.id, one) for one in made.subscriptions)
        self.resources.by_uri = {one.uri: one for one in made.resources}
        for name, (listing, by_page) in made.lists.items():
            self.lists.put(name, listing, by_page=by_page)
            if name == "tasks":
                self.client_tasks.listing = listing
        if made.ping is not None:
            self.pings.last, self.pings.sent = made.ping.last, made.ping.sent
            self.pings.failed, self.pings.every_ms = made.ping.failed, made.ping.every_ms
        self._put_lines(made)
        if made.totals is not None:
            self._recorded.counted(made.totals)
        self._last_seq = made.seq

    def _put_lines(self, made: Loaded) -> None:
        self.stderr.put(made.stderr)
        before = [] if made.server_log is None else made.server_log.lines
        self.server_log.put(before, len(before), {})
        for message, raw in made.logged:
            value = parse(raw).value
            params = value.get("params") if isinstance(value, dict) else None
            self.server_log.write(params if isinstance(params, dict) else {}, message.seq, message.at)
        if made.server_log is not None:
            # People know the lines by their numbers, which count from the end of what the live one had counted.
            first = made.server_log.count - self.server_log.count
            lines = [replace(one, number=one.number + first) for one in self.server_log.lines()]
            self.server_log.put(lines, made.server_log.count, made.server_log.loggers)

    def _began(self, made: Loaded) -> float:
        if made.header is None:
            return self._at
        return made.header.session_began or made.header.began


def target_of(value: dict[str, Any] | None) -> AnyTarget | None:
    """What was recorded of the target, if it is one."""
    try:
        return None if value is None else _TARGET.validate_python(value)
    except (ValidationError, ValueError):
        return None


def _options(value: dict[str, Any]) -> Options:
    try:
        return Options.model_validate(value)
    except (ValidationError, ValueError):
        return Options()


def _roots(state: RootsState | None) -> list[Root]:
    found = deque[Root](maxlen=bounds.WATCHED_RESOURCES)
    for one in () if state is None else state.roots:
        try:
            found.append(Root.model_validate(one))
        except (ValidationError, ValueError):
            continue
    return list(found)
