"""Two calls side by side over HTTP: their steps, their asks answered there, both again; for scripts and for pages."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from starlette.applications import Starlette

from app.core.asks import Ask
from app.core.calls import Call
from app.core.targets import DemoTarget
from app.sessions import Identity, Session
from app.sessions.identity import LOCAL
from tests.drive import call_tool, connected, raw_target, settled, until
from tests.drive_modern import TELLS, ask_form, ask_sampling, modern_stdio, needs, reach
from tests.web.asgi import Visitor

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("U-S9")]
JSON = {"outputFormat": "json", "includeTimestamps": True}


@pytest.fixture
def session(app: Starlette) -> Session:
    opened: Session = app.state.registry.open(LOCAL)
    return opened


@pytest.fixture
def other(app: Starlette) -> Session:
    opened: Session = app.state.registry.open(LOCAL)
    return opened


async def asking(session: Session, name: str, asks: int = 1) -> tuple[Call, list[Ask]]:
    """A call of a tool that now waits for this many answers."""
    call = session.start_call("tools/call", {"name": name, "arguments": {}}, by=LOCAL)
    mine: list[Ask] = []

    def came() -> bool:
        mine[:] = [ask for ask in session.inbox.open if ask.call_id == call.id and ask.state == "open"]
        return len(mine) >= asks

    await until(session, came)
    return call, mine


async def preferred(session: Session, content: dict[str, Any]) -> Call:
    """A call of `preferences`, answered with this."""
    call, (ask,) = await asking(session, "preferences")
    await session.asks.answer(ask, {"action": "accept", "content": content}, LOCAL)
    await settled(session, call)
    return call


def url(session: Session, left: Call | str, right: Call | str = "", more: str = "") -> str:
    refs = [one if isinstance(one, str) else one.id for one in (left, right)]
    return f"/s/{session.id}/compare?left={quote(refs[0])}&right={quote(refs[1])}{more}"


async def test_two_calls_of_a_tool_step_by_step(script: Visitor, client: Visitor, session: Session) -> None:
    await connected(session, DemoTarget(), era="legacy")
    first = await preferred(session, JSON)
    second = await preferred(session, {"outputFormat": "plain", "verbosity": "quiet", "includeTimestamps": True})
    told = await script.json(url(session, first, second))
    assert (told["left"]["call"], told["right"]["call"], told["settled"]) == (first.id, second.id, True)
    assert told["left"]["method"] == "tools/call" and told["left"]["subject"] == "preferences"
    assert told["arguments"] == {"equal": True, "left": {}, "right": {}}
    (ask,) = told["asks"]
    assert ask["verdict"] == "answer" and ask["left"]["question"] == ask["right"]["question"]
    assert "outputFormat json" in ask["left"]["answer"] and "verbosity quiet" in ask["right"]["answer"]
    lines = told["result"]["differences"]
    assert {"kind": "changed", "left": 'outputFormat: "json"', "right": 'outputFormat: "plain"'}.items() <= next(
        one for one in lines if "outputFormat" in (one["left"] or "")
    ).items()
    assert told["result"]["verdict"] == f"≠ {len(lines)} lines" and told["messages"]["left"]["count"] == 4
    page = (await client.get(url(session, first, second))).text
    for words in ("≠ answer", "<mark>plain</mark>", "Call both again", "Swap", "Export", "All 2", "equal lines"):
        assert words in page, words
    assert 'id="inbox"' not in page and 'aria-current="page"' in page
    same = await script.json(url(session, first, first))
    assert same["result"]["verdict"] == "equal" and same["asks"][0]["verdict"] == "equal"


async def test_ids_and_times_are_ignored_until_somebody_wants_to_see_them(script: Visitor, session: Session) -> None:
    await connected(session, raw_target())
    calls = []
    for id_, at in (("x1", "2026-11-17T10:00:00Z"), ("x2", "2026-11-17T11:00:00Z")):
        said = {"content": [], "structuredContent": {"order_id": id_, "at": at, "state": "open"}}
        line = json.dumps({"jsonrpc": "2.0", "id": 0, "result": said}).replace('"id": 0', '"id": $ID', 1)
        calls.append(await call_tool(session, "say", {"lines": [line]}))
    told = (await script.json(url(session, calls[0], calls[1])))["result"]
    assert (told["verdict"], told["ignored"], told["different"]) == ("equal, 2 ignored", 2, 0)
    shown = (await script.json(url(session, calls[0], calls[1], "&ids=1")))["result"]
    assert (shown["verdict"], shown["ignored"], shown["different"]) == ("≠ 2 lines", 0, 2)


async def test_without_the_other_the_one_before_is_meant(script: Visitor, client: Visitor, session: Session) -> None:
    await connected(session, raw_target())
    first = await call_tool(session, "echo", {"n": 1})
    alone = await client.get(url(session, first))
    assert alone.status == 200 and "There is no other call of" in alone.text and "Call again" in alone.text
    assert (await script.get(url(session, first))).status == 404
    await call_tool(session, "say", {"lines": []}, timeout_ms=1)  # another tool
    second = await call_tool(session, "echo", {"n": 2})
    told = await script.json(url(session, second))
    assert (told["left"]["call"], told["right"]["call"]) == (first.id, second.id)
    assert told["arguments"]["equal"] is False
    refused = await script.get(
        url(session, first, next(one for one in session.calls.values() if one.method != "tools/call"))
    )
    assert refused.status == 422 and "different methods" in refused.error["message"]
    for wrong in (url(session, "c999"), url(session, first, "c999"), url(session, first, "r0-no:c1"), url(session, "")):
        assert (await script.get(wrong)).status == 404, wrong
    export = await client.get(url(session, first, second, "&export=1"))
    assert export.json()["left"]["call"] == first.id and "attachment" in (export.header("content-disposition") or "")


async def test_a_call_of_somebody_else_is_no_call(app: Starlette, script: Visitor, session: Session) -> None:
    await connected(session, raw_target())
    mine = await call_tool(session, "echo")
    theirs: Session = app.state.registry.open(Identity("mallory", "Mallory"))
    await connected(theirs, raw_target())
    other = await call_tool(theirs, "echo")
    assert (await script.get(url(session, mine, f"{theirs.id}:{other.id}"))).status == 404


async def test_what_a_server_says_is_text(client: Visitor, session: Session) -> None:
    await connected(session, raw_target())
    calls = []
    for word in ("<b>one</b>", "<b>two</b>"):
        said = {"content": [{"type": "text", "text": word}], "structuredContent": {"<i>k</i>": word}}
        line = json.dumps({"jsonrpc": "2.0", "id": 0, "result": said}).replace('"id": 0', '"id": $ID', 1)
        calls.append(await call_tool(session, "say", {"lines": [line], "<u>a</u>": word}))
    page = (await client.get(url(session, calls[0], calls[1]))).text
    assert "&lt;b&gt;two" in page and "&lt;i&gt;k" in page and "&lt;u&gt;a" in page
    assert not any(tag in page for tag in ("<b>one", "<b>two", "<i>k", "<u>a"))


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_open_asks_stand_in_the_page_filled_in_and_get_the_same_answers(
    script: Visitor, client: Visitor, session: Session, era: str
) -> None:
    await connected(session, DemoTarget(), era=era)
    first = await preferred(session, JSON)
    second, (ask,) = await asking(session, "preferences")
    page = (await client.get(url(session, first, second))).text
    assert f"Call {second.id[1:]} waits for you" in page and "Give the same answers" in page
    assert f"Filled in as in call {first.id[1:]}" in page and page.count(f'id="ask-{ask.id}"') == 1
    assert '<option value="0" selected>json' in " ".join(page.split())
    assert not ask.settled  # nothing is sent until somebody presses
    body = {"left": first.id, "right": second.id, "side": "right"}
    answered = await script.post(f"/s/{session.id}/compare/same", body)
    assert answered.json() == {"answered": [ask.id], "open": [], "later": False}
    await settled(session, second)
    assert ask.answer is not None and ask.answer.by.kind == "script"  # as it is: a script pressed
    told = await script.json(url(session, first, second))
    assert told["asks"][0]["verdict"] == "equal"
    again = await script.post(f"/s/{session.id}/compare/same", body)
    assert again.json()["answered"] == []


async def test_later_asks_get_the_same_answers_when_the_question_is_the_same(
    script: Visitor, session: Session, tmp_path: Path
) -> None:
    rounds = [
        needs("1", a=ask_form("Who?")),
        needs("2", b=ask_sampling("Write")),
        needs("3", c=ask_form("Sure?")),
        TELLS,
    ]
    changed = [rounds[0], rounds[1], needs("3", c=ask_form("Quite sure?")), TELLS]
    peer = modern_stdio(tmp_path / "record", scripts={"ask": rounds, "again": changed})
    await reach(session, peer)
    before, _ = await asking(session, "ask")
    result = {"role": "assistant", "content": {"type": "text", "text": "Ahoy"}, "model": "human"}
    for _ in range(3):
        (ask,) = [one for one in session.inbox.open if one.state == "open"]
        said = (
            {"action": "respond", "result": result}
            if ask.kind == "sampling"
            else {"action": "accept", "content": {"name": "A"}}
        )
        await session.asks.answer(ask, said, LOCAL)
        await until(session, lambda: before.settled or any(one.state == "open" for one in session.inbox.open))
    await settled(session, before)
    after, (first,) = await asking(session, "again")
    body = {"left": before.id, "right": after.id, "side": "right", "later": True}
    assert (await script.post(f"/s/{session.id}/compare/same", body)).json()["answered"] == [first.id]
    await until(
        session, lambda: any(one.state == "open" and one.message == "Quite sure?" for one in session.inbox.open)
    )
    asked = [one for one in session.inbox.asks.values() if one.call_id == after.id]
    assert [one.state for one in asked] == ["answered", "answered", "open"]  # other words are left to the person
    assert asked[1].answer is not None and asked[1].answer.result == result
    told = await script.json(url(session, before, after))
    assert [one["verdict"] for one in told["asks"]] == ["equal", "equal", "waiting"]


async def test_both_are_called_again_one_after_the_other_where_asks_would_be_anybodys(
    script: Visitor, client: Visitor, session: Session
) -> None:
    await connected(session, DemoTarget(), era="legacy")
    first, second = await preferred(session, JSON), await preferred(session, {"outputFormat": "plain"})
    begun = await script.post(f"/s/{session.id}/compare/again", {"left": first.id, "right": second.id})
    assert begun.status == 202 and begun.header("location") == begun.json()["url"]
    left, right = begun.json()["left"], begun.json()["right"]
    assert right == f"{second.id}~{left}"
    here = begun.json()["url"]
    await until(session, lambda: session.inbox.open)
    told = await script.json(here)
    assert told["pending"] is True and told["left"]["call"] == left and told["right"]["call"] == second.id
    assert "is called again once call" in (await client.get(here)).text
    await session.asks.answer(session.inbox.open[0], {"action": "accept", "content": JSON}, LOCAL)
    await until(session, lambda: session.calls[left].settled and session.inbox.open)
    told = await script.json(here)
    assert told["pending"] is False and session.calls[told["right"]["call"]].retry_of == second.id
    assert told["asks"][0]["verdict"] == "waiting"


async def test_both_are_called_again_at_once_where_each_ask_says_whose_it_is(script: Visitor, session: Session) -> None:
    await connected(session, DemoTarget(), era="modern")
    first, second = await preferred(session, JSON), await preferred(session, {"outputFormat": "plain"})
    begun = await script.post(f"/s/{session.id}/compare/again", {"left": first.id, "right": second.id})
    await until(session, lambda: len(session.inbox.open) == 2)
    told = await script.json(begun.json()["url"])
    assert [len(told[side]["open_asks"]) for side in ("left", "right")] == [1, 1]
    await session.disconnect()
    assert (await script.post(f"/s/{session.id}/compare/again", {"left": first.id, "right": second.id})).status == 409


async def test_asks_of_two_sessions_have_two_names(
    script: Visitor, client: Visitor, session: Session, other: Session
) -> None:
    """Both sessions have an ask a1: each form leads to its own."""
    await connected(session, DemoTarget(), era="modern")
    await connected(other, DemoTarget(), era="legacy")
    here, (mine,) = await asking(session, "preferences")
    there, (theirs,) = await asking(other, "preferences")
    assert mine.id == theirs.id
    page = (await client.get(url(session, here, f"{other.id}:{there.id}"))).text
    name = f"x{other.number}-{theirs.id}"
    assert page.count(f'id="ask-{mine.id}"') == 1 and page.count(f'id="ask-{name}"') == 1
    assert f'hx-post="/s/{other.id}/asks/{name}/answer"' in page
    wrong = await client.form(f"/s/{other.id}/asks/{name}/answer", {"action": "accept"})
    assert wrong.status == 422 and f'id="ask-{name}"' in wrong.text and f'id="ask-{mine.id}"' not in wrong.text
    assert (await client.form(f"/s/{other.id}/asks/{name}/answer", {"action": "decline"})).status == 303
    assert theirs.settled and not mine.settled
    assert (await script.get(f"/s/{session.id}/asks/{name}")).status == 404  # it is of another session
    told = await script.json(url(session, here, f"{other.id}:{there.id}"))
    assert (told["left"]["version"], told["right"]["version"]) == ("2026-07-28", "2025-11-25")


async def test_a_change_in_the_other_session_is_told_here(client: Visitor, session: Session, other: Session) -> None:
    await connected(session, DemoTarget(), era="modern")
    await connected(other, DemoTarget(), era="legacy")
    here = await preferred(session, JSON)
    there, (ask,) = await asking(other, "preferences")
    await client.get(url(session, here, f"{other.id}:{there.id}"))
    before = session.events.seq
    await other.asks.answer(ask, {"action": "decline"}, LOCAL)
    await until(session, lambda: session.events.seq > before)
    heard = session.events.since(before)
    assert heard is not None and {event.kind for event in heard} == {"comparison.changed"}


async def test_the_session_that_was_made_for_it_says_so_and_does_not_stay(
    app: Starlette, script: Visitor, client: Visitor, session: Session
) -> None:
    await connected(session, DemoTarget(), era="modern")
    done = await call_tool(session, "add", {"a": 1, "b": 2})
    base = f"/s/{session.id}/calls/{done.id}/compare"
    partner = (await script.post(base)).json()["other_session"]
    await until(session, lambda: session.comparisons.by_call[done.id].differences)
    labels = {one["id"]: one["label"] for one in (await script.json("/"))["sessions"]}
    assert labels[partner].endswith(f", compared with call {done.id[1:]}")
    page = (await client.get(base)).text
    assert "A second session was opened for this comparison." in page and f'action="{base}/close"' in page
    closed = await client.form(f"{base}/close", {})
    assert closed.status == 303 and app.state.registry.find(LOCAL, partner) is None
    assert "The other session was closed" in (await client.get(base)).text
    partner = (await script.post(base)).json()["other_session"]
    await script.post(f"/s/{session.id}/close")
    home = await script.json("/")
    with_time = [one["id"] for one in home["sessions"]]
    assert session.id not in with_time
    found = app.state.registry.find(LOCAL, partner)
    if found is not None:  # it is being closed
        await until(found, lambda: found.closed)
