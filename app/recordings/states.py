"""What a session is right now, noun by noun, as it is written down. Reads a workspace and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from app.core.events import EventKind
from app.core.lists import Listing
from app.recordings.lines import (
    Beside,
    InboxState,
    ListState,
    LogState,
    Noun,
    OptionsState,
    PingState,
    RootsState,
    Totals,
)
from app.sessions.lists import LISTS
from app.sessions.workspace import Workspace

Named = tuple[str, Noun]
"""What a noun is known by among its kind, and the noun."""
TASK_LIST: Final = "tasks"
"""The list of the server's tasks, beside `tools`, `resources`, `templates` and `prompts`."""


def of_call(space: Workspace, cid: str) -> Iterator[Named]:
    """A call, and what was remarked about how it was made."""
    call = space.calls.get(cid)
    if call is not None:
        yield call.id, call
        yield from notes(space, call.id)


def of_ask(space: Workspace, aid: str) -> Iterator[Named]:
    """An ask, and the call and the task that know of it."""
    ask = space.inbox.asks.get(aid)
    if ask is not None:
        yield ask.id, ask
        yield from of_call(space, ask.call_id or "")
        yield from of_task(space, ask.task_id or "")


def of_task(space: Workspace, tid: str) -> Iterator[Named]:
    """A task of either kind."""
    task = space.client_tasks.tasks.get(tid) or space.asks.tasks.get(tid)
    if task is not None:
        yield task.id, task
        yield from notes(space, task.id)


def notes(space: Workspace, subject: str) -> Iterator[Named]:
    """What was remarked of it and stands beside no message."""
    if space.messages.is_noted(subject):
        yield subject, Beside(space.messages.findings_of((), [subject]))


def of_message(space: Workspace, seq: str) -> Iterator[Named]:
    """What was remarked beside a message; the message itself is a frame."""
    findings = space.messages.findings_of([int(seq)])
    if findings:
        yield seq, Beside(findings)


def of_list(space: Workspace, name: str) -> Iterator[Named]:
    """One list of the server."""
    for each in LISTS:
        if each == name:
            listing = space.lists[each]
            yield name, ListState(listing, _items_from(space, listing), each in space.lists.by_page)


def of_task_list(space: Workspace, _: str) -> Iterator[Named]:
    """The list of the server's tasks, whose items are our ids."""
    yield TASK_LIST, ListState(space.client_tasks.listing)


def _items_from(space: Workspace, listing: Listing) -> tuple[int, ...]:
    """The replies in which all items of a list stand; none when one of them is no longer kept."""
    found, log = [], space.messages
    for seq in sorted(listing.seqs):
        message = log.get(seq)
        if message is None or log.raw(seq) is None:
            return ()
        if message.kind == "response":
            found.append(seq)
    return tuple(found)


def of_subscription(space: Workspace, key: str) -> Iterator[Named]:
    one = space.subscriptions.all.get(key)
    if one is not None:
        yield key, one


def of_resource(space: Workspace, uri: str) -> Iterator[Named]:
    one = space.resources.by_uri.get(uri)
    if one is not None:
        yield uri, one


def connection(space: Workspace, _: str = "") -> Iterator[Named]:
    """The connection, which belongs to its number: a session may have several, one after the other."""
    yield str(space.info.number), space.info


def ping(space: Workspace, _: str = "") -> Iterator[Named]:
    pings = space.pings
    yield "", PingState(pings.last, pings.sent, pings.failed, pings.every_ms)


def roots(space: Workspace, _: str = "") -> Iterator[Named]:
    yield "", RootsState([root.wire() for root in space.roots])


def options(space: Workspace, _: str = "") -> Iterator[Named]:
    yield "", OptionsState(space.options.model_dump(mode="json", exclude_defaults=True))


def inbox(space: Workspace, cleared: int) -> Iterator[Named]:
    yield "", InboxState(space.inbox.refused, cleared)


def server_log(space: Workspace, first: int) -> Iterator[Named]:
    """What the server logged; in words only what came before the frame `first`."""
    log = space.server_log
    if log.count:
        yield "", LogState(log.count, dict(log.loggers), [line for line in log.lines() if line.seq < first])


def totals(space: Workspace) -> Totals:
    """What the log has counted."""
    log = space.messages
    return Totals(
        count=log.count,
        invalid=log.invalid,
        bytes_total=log.bytes_total,
        inbound=log.inbound,
        outbound=log.outbound,
        findings_total=log.findings_total,
        calls=next((int(call.id[1:]) for call in space.calls.newest if not call.quiet), 0),
        asks=next((int(aid[1:]) for aid in reversed(space.inbox.asks)), 0),
        stderr=space.stderr.count,
    )


OF_EVENT: Final[dict[EventKind, Callable[[Workspace, str], Iterator[Named]]]] = {
    "finding.raised": of_message,
    "connection.changed": connection,
    "call.added": of_call,
    "call.changed": of_call,
    "call.settled": of_call,
    "ask.added": of_ask,
    "ask.changed": of_ask,
    "ask.draft": of_ask,
    "ask.reopened": of_ask,
    "ask.settled": of_ask,
    "ask.withdrawn": of_ask,
    "task.created": of_task,
    "task.changed": of_task,
    "task.completed": of_task,
    "task.failed": of_task,
    "task.cancelled": of_task,
    "tasks.listed": of_task_list,
    "listing.changed": of_list,
    "subscription.changed": of_subscription,
    "resource.changed": of_resource,
    "ping.settled": ping,
    "roots.changed": roots,
    "options.changed": options,
}
"""What an event says has changed. Messages, exchanges, stderr and the log of the server are followed by their own
numbers; comparisons, models and rules belong to the installation and not to what was said on the wire."""


def everything(space: Workspace) -> Iterator[Named]:
    """Every noun but frames, exchanges and lines of stderr, as it is now."""
    if space.info.number:
        yield from connection(space)
    yield from roots(space)
    yield from options(space)
    for name in LISTS:
        if space.lists[name].state != "none":
            yield from of_list(space, name)
    if space.client_tasks.listing.state != "none":
        yield from of_task_list(space, "")
    for cid in list(space.calls):
        yield from of_call(space, cid)
    for tid in [*space.client_tasks.tasks, *space.asks.tasks]:
        yield from of_task(space, tid)
    for ask in list(space.inbox.asks.values()):
        yield ask.id, ask
    for key in list(space.subscriptions.all):
        yield from of_subscription(space, key)
    for uri in list(space.resources.by_uri):
        yield from of_resource(space, uri)
    if space.pings.sent or space.pings.every_ms is not None:
        yield from ping(space)
    for message in space.messages.back():
        yield from of_message(space, str(message.seq))
