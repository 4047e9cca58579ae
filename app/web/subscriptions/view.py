"""What the page shows of subscriptions (2026-07-28): what was asked for, what was granted, and what was heard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.core.times import wire_time
from app.web.kit import format
from app.web.kit.templates import jinja
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


def asked_words(asked: dict[str, Any]) -> str:
    """What was asked for."""
    found = [words for key, words in WORDS.items() if asked.get(key)]
    found += [f"changes of {uri}"[:300] for uri in asked.get("resourceSubscriptions") or []]
    count = len(asked.get("taskIds") or [])
    return ", ".join([*found, format.plural(count, "task")] if count else found)


def granted_words(one: Subscription) -> str:
    """What was granted of it."""
    if one.granted is None:
        return "not acknowledged yet"
    return f"less than that: not {', '.join(one.refused)}"[:400] if one.refused else "all of it"


jinja.filters.update(asked_words=asked_words, granted_words=granted_words)
jinja.globals.update(SUBSCRIPTION_STATES=STATES)


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
