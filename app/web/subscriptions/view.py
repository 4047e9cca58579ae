"""What the page shows of subscriptions (2026-07-28): what was asked for, what was granted, and what was heard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.core.times import wire_time
from app.core.wire import Finding
from app.web.kit import format
from app.web.kit.words import finding_json

if TYPE_CHECKING:
    from app.sessions import Workspace
    from app.sessions.subscriptions import Subscription

WORDS = {
    "toolsListChanged": "changes of the list of tools",
    "promptsListChanged": "changes of the list of prompts",
    "resourcesListChanged": "changes of the list of resources",
}
STATES = {
    "opening": "being opened",
    "open": "open",
    "ended": "ended by the server",
    "lost": "lost",
    "stopped": "stopped",
    "refused": "refused",
}
_EVENTS = 50


@dataclass(slots=True, frozen=True)
class SubscriptionCard:
    """One subscription."""

    id: str
    number: str
    state: str
    state_word: str
    live: bool
    wants: list[str]
    granted: str
    words: str
    heard: int
    events: list[tuple[str, str, str, int]]
    """When, what, about which, and the message."""
    findings: list[Finding]
    request_seq: int | None


@dataclass(slots=True, frozen=True)
class SubscriptionsView:
    """All of them, the newest first."""

    base: str
    cards: list[SubscriptionCard]
    connected: bool
    modern: bool
    tasks: int
    """How many tasks run that could tell of themselves."""


def _wants(asked: dict[str, Any]) -> list[str]:
    found = [words for key, words in WORDS.items() if asked.get(key)]
    found += [f"changes of {uri}"[:300] for uri in asked.get("resourceSubscriptions") or []]
    count = len(asked.get("taskIds") or [])
    return [*found, f"{count} task{'s' if count != 1 else ''}"] if count else found


def card(one: Subscription) -> SubscriptionCard:
    refused = one.refused
    newest = list(one.events)[: -_EVENTS - 1 : -1]
    granted = "not acknowledged yet" if one.granted is None else "all of it" if not refused else "less than that"
    return SubscriptionCard(
        id=one.id,
        number=one.id[1:],
        state=one.state,
        state_word=STATES[one.state],
        live=one.live,
        wants=_wants(one.asked),
        granted=f"{granted}: not {', '.join(refused)}"[:400] if refused else granted,
        words=one.words,
        heard=one.heard,
        events=[(format.clock(each.at), each.method, each.about, each.seq) for each in newest],
        findings=one.findings[-20:],
        request_seq=one.request_seq,
    )


def subscriptions_view(session: Workspace) -> SubscriptionsView:
    """Everything the page shows."""
    return SubscriptionsView(
        base=f"/s/{session.id}",
        cards=[card(one) for one in reversed(session.subscriptions.all.values())],
        connected=session.info.state == "ready",
        modern=session.wire.listens,
        tasks=len(task_ids(session)),
    )


def task_ids(session: Workspace) -> list[str]:
    """The server's ids of the tasks that run and can be listened to."""
    return [
        task.task_id
        for task in session.client_tasks.tasks.values()
        if task.live and task.wire.notification == "notifications/tasks"
    ]


def subscription_json(one: Subscription) -> dict[str, Any]:
    """One subscription, as scripts read it."""
    return {
        "id": one.id,
        "state": one.state,
        "asked": one.asked,
        "granted": one.granted,
        "refused": one.refused,
        "words": one.words,
        "heard": one.heard,
        "events": [
            {"at": wire_time(each.at), "method": each.method, "about": each.about, "seq": each.seq}
            for each in one.events
        ],
        "request_seq": one.request_seq,
        "findings": [finding_json(each) for each in one.findings],
    }
