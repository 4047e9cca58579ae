"""A recording is read in the pages of the live session, and they say the same (acceptance of recordings)."""

from typing import Any

import pytest
from starlette.applications import Starlette

from app.core.targets import StdioTarget
from app.recordings.recorders import Recorders
from app.sessions import Session
from tests import peers
from tests.drive import ME, call, call_tool, connected, settled, until
from tests.recordings.drive import lived
from tests.web.asgi import TOKEN, Visitor
from tests.web.recorded.pages import crawled, told

pytestmark = pytest.mark.usefixtures("processes")
LEAVE = (
    "/compare",
    "/moments",
    "/log?",
    "/log/1",
    "/log/2",
    "/tools?",
    "/tools/s",
    "/tools/p",
    "/tools/t",
    "/about",
    "/file",
    "/tour",
)
"""More of the same, and what a recording says of itself."""
_OWN = frozenset({"id", "url", "recording", "seq", "now"})
"""In JSON: what names the session, and what goes on in a live one."""


async def alike(app: Starlette, script: Visitor, live: str, kept: str) -> dict[str, list[str]]:
    """Every page of one is a page of the other and says the same, also as JSON."""
    reader = Visitor(app, {"authorization": f"Bearer {TOKEN}", "accept": "text/html"})
    pages, again = await crawled(reader, live, LEAVE), await crawled(reader, kept, LEAVE)
    assert sorted(again) == sorted(pages)
    for path, words in pages.items():
        assert again[path] == words, path
    paths = sorted({*pages, "/inbox", "/log?after=0"})
    ours, theirs = await told(script, live, paths), await told(script, kept, paths)
    assert sorted(theirs) == sorted(ours)
    for path, value in ours.items():
        assert _plain(theirs[path]) == _plain(value), path
    return pages


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items() if key not in _OWN or (key == "seq" and "raw" in value)}
    return [_plain(one) for one in value] if isinstance(value, list) else value


async def everything(session: Session) -> None:
    """server-everything: lists, a call with progress, an error, and an ask that makes us the receiver of a task."""
    argv = peers.everything_stdio()
    target = StdioTarget(command=argv[0], args=tuple(argv[1:]), env=peers.node_env())
    await connected(session, target, protocol_version="2025-11-25")
    for name in ("resources", "templates", "prompts"):
        await session.lists.refresh(name)
    await call_tool(session, "trigger-long-running-operation", {"duration": 0.3, "steps": 3})
    await call_tool(session, "get-sum", {"a": "no number", "b": 2})
    await call(session, "resources/read", {"uri": session.lists["resources"].items[0]["uri"]})
    asking = [
        session.start_call("tools/call", {"name": name, "arguments": arguments}, by=ME)
        for name, arguments in (
            ("trigger-elicitation-request-async", {}),
            ("trigger-sampling-request-async", {"prompt": "Say something"}),
        )
    ]
    await until(session, lambda: len(session.inbox.open) == 2 or all(one.settled for one in asking))
    for ask in list(session.inbox.open):
        await session.asks.answer(ask, {"action": "decline"}, ME)
    await settled(session, *asking)


@pytest.mark.peers
@pytest.mark.requirement("U-C05")
async def test_so_are_those_of_server_everything_and_of_a_receiver_task(
    app: Starlette, script: Visitor, victim: Session
):
    recorders = Recorders(app.state.registry)
    recorders.start(victim)
    await everything(victim)
    recording = await recorders.stop(victim)
    pages = await alike(app, script, f"/s/{victim.id}", f"/r/{recording.id}")
    assert len(victim.asks.tasks) == 2, "both asks came with a task"
    tasks = [path for path in pages if path.startswith("/tasks/")]
    assert len(tasks) >= 2, sorted(pages)


@pytest.mark.requirement("U-C05")
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_every_page_of_a_recording_is_that_of_the_session(
    app: Starlette, script: Visitor, victim: Session, era: str
):
    recorders = Recorders(app.state.registry)
    recorders.start(victim)
    await lived(victim, era=era)
    recording = await recorders.stop(victim)
    pages = await alike(app, script, f"/s/{victim.id}", f"/r/{recording.id}")
    assert len(pages) > 60
    assert any("Which roots may the server know?" in " ".join(words) for words in pages.values())
