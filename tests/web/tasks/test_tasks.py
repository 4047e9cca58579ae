"""Tasks that run on the server, in the page and for scripts: buttons and reasons, pages, drawings, events."""

import json
import re
from html.parser import HTMLParser
from typing import Any

import anyio
import pytest
from starlette.applications import Starlette

from app.sessions import Session
from app.web.calls.card import CallCard
from app.web.kit.templates import fragment
from app.web.live import stream
from app.web.tasks import sequence
from app.web.tasks.running import RunningCard
from tests.drive import ME, call_tool, connected, settled, until
from tests.drive_tasks import DONE, begin, task_of, task_peer
from tests.web.asgi import Visitor
from tests.web.tabs import tab_of

HTMX = {"hx_request": "true"}


class Buttons(HTMLParser):
    """The buttons of a page by their id, with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: dict[str, dict[str, str | None]] = {}
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        fields = dict(attrs)
        if tag == "button" and fields.get("id"):
            self.found[str(fields["id"])] = fields

    def enabled(self, name: str) -> bool:
        return name in self.found and "disabled" not in self.found[name]


async def test_a_script_that_is_quicker_than_the_list_of_tools_gets_its_task(victim: Session, script: Visitor):
    with task_peer(support={"may": "optional"}) as peer:
        await connected(victim, peer.target)
        listed, victim.tools.items, victim.tools.state = victim.tools.items, [], "loading"
        body = {"method": "tools/call", "params": {"name": "may", "arguments": {}}, "as_task": True}

        async def call() -> None:
            assert (await script.post(f"/s/{victim.id}/calls", body)).status == 202

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await anyio.wait_all_tasks_blocked()
            victim.tools.items, victim.tools.state = listed, "ready"
            victim.changed("listing.changed", "tools")
        await until(victim, lambda: victim.client_tasks.tasks)


@pytest.mark.requirement("R2-01", "R2-02", "R2-03", "R2-04", "S003 Tool hints", "S003 Overview")
async def test_a_tool_has_the_right_button_and_the_reason_why_the_other_is_not(victim: Session, client: Visitor):
    support = {"needs": "required", "may": "optional", "never": "forbidden", "silent": None}
    with task_peer(support=support) as peer:
        await connected(victim, peer.target)
        expected = {
            "needs": (False, True, "only as a task", "runs only as a task"),
            "may": (True, True, "can run as a task", ""),
            "never": (True, False, "never as a task", "taskSupport: forbidden"),
            "silent": (True, False, "tasks: not supported", "not supported by this tool"),
        }
        for name, (plain, as_task, badge, reason) in expected.items():
            page = (await client.get(f"/s/{victim.id}/tools/{name}")).text
            buttons = Buttons(page)
            assert (buttons.enabled("call-go"), buttons.enabled("call-task")) == (plain, as_task), name
            assert not [one for one in buttons.found.values() if "disabled" in one], "what cannot be has no button"
            assert badge in page and reason in page and ("Task TTL" in page) == as_task, name
        listed = (await client.get(f"/s/{victim.id}/tools")).text
        assert all(word in listed for word in ("only as a task", "can run as a task", "never as a task"))
    with task_peer(support=support, capabilities={}) as peer:
        await victim.disconnect()
        await connected(victim, peer.target)
        page = (await client.get(f"/s/{victim.id}/tools/may")).text
        assert "call-task" not in Buttons(page).found and "tasks.requests.tools.call" in page
        assert "call-task" not in Buttons((await client.get(f"/s/{victim.id}/tools/silent")).text).found
        tasks = (await client.get(f"/s/{victim.id}/tasks")).text
        assert "declared no <code>tasks</code>" in tasks and "Call as a task" not in tasks


@pytest.mark.requirement("R2-06")
async def test_the_form_sends_a_task_with_the_ttl_that_was_typed(victim: Session, client: Visitor):
    with task_peer(support={"needs": "required", "may": "optional"}, script=[["finish", DONE]]) as peer:
        await connected(victim, peer.target)
        path = f"/s/{victim.id}/tools/call"
        wrong = await client.form(f"{path}/may", {"_mode": "form", "_task": "1", "_ttl": "soon"}, **HTMX)
        assert wrong.status == 422 and "whole number of milliseconds" in wrong.text and 'value="soon"' in wrong.text
        assert (await client.form(f"{path}/may", {"_mode": "form", "_task": "1", "_ttl": "4000"}, **HTMX)).status == 204
        assert (await client.form(f"{path}/needs", {"_mode": "form", "_task": "1", "_ttl": ""}, **HTMX)).status == 204
        assert (await client.form(f"{path}/may", {"_mode": "form"}, **HTMX)).status == 204
        refused = await client.form(f"{path}/needs", {"_mode": "form"}, **HTMX)
        assert refused.status == 422 and "runs only as a task" in refused.text
        await settled(victim, *victim.calls.values())
        sent = [each["params"].get("task") for each in peer.received("tools/call")]
        assert sent == [{"ttl": 4000}, {}, None]


@pytest.mark.requirement("R2-21", "R2-40", "R2-42", "R2-45", "S002 Experimental warning")
async def test_a_script_follows_a_task_from_its_call_to_its_result(victim: Session, script: Visitor, client: Visitor):
    with task_peer(script=[["elicit"], ["finish", DONE]]) as peer:
        await connected(victim, peer.target)
        base = f"/s/{victim.id}"
        body: dict[str, Any] = {"method": "tools/call", "params": {"name": "work", "arguments": {}}}
        assert (await script.post(f"{base}/calls", {**body, "ttl": 5})).status == 422
        made = await script.post(f"{base}/calls", {**body, "as_task": True, "ttl": 30_000})
        assert made.status == 202
        call = await script.json(f"{made.json()['url']}?wait=60")
        assert (call["state"], call["as_task"]) == ("waiting", True)
        task = await script.json(f"{base}/tasks/{call['task_id']}")
        assert (task["status"], task["ttl"], task["requested_ttl"]) == ("input_required", 30_000, 30_000)
        assert (task["call_id"], task["tool"], task["waiting"]) == (call["id"], "work", True)
        assert {"taskId", "createdAt", "lastUpdatedAt", "pollInterval", "expires_at", "history"} <= set(task)
        listed = await script.json(f"{base}/tasks")
        assert [one["id"] for one in listed["client"]] == [call["task_id"]]
        assert listed["capabilities"] == {"list": True, "cancel": True, "toolCall": True}

        for page in (f"{base}/tasks", f"{base}/tasks/{call['task_id']}", f"{base}/calls/{call['id']}"):
            html = (await client.get(page)).text
            assert "experimental (2025-11-25)" in html and "needs an answer" in html, page
        [ask] = (await script.json(f"{base}/inbox"))["open"]
        assert ask["task_id"] == call["task_id"]
        answer = {"action": "accept", "content": {"name": "Ines"}}
        assert (await script.post(f"{base}/asks/{ask['id']}/answer", answer)).status == 200
        await until(victim, lambda: victim.calls[call["id"]].settled)
        done = await script.json(made.json()["url"])
        assert done["state"] == "done" and done["result"]["content"][0]["text"] == "done for Ines"

        again = await script.post(f"{base}/tasks/{call['task_id']}/result")
        assert again.status == 202
        fetched = await script.json(f"{again.json()['url']}?wait=60")
        assert fetched["result"]["content"] == done["result"]["content"]
        assert "done for Ines" in (await client.get(again.json()["url"])).text
        await until(victim, lambda: not victim.client_tasks.tasks[call["task_id"]].live)
        late = await script.post(f"{base}/tasks/{call['task_id']}/cancel")
        assert late.status == 409 and "completed already" in late.error["message"]
        assert (await script.post(f"{base}/tasks/{call['task_id']}/stop")).status == 409
        assert (await script.post(f"{base}/tasks/{call['task_id']}/poll")).status == 202
        assert (await script.post(f"{base}/tasks/refresh")).status == 202
        assert (await script.post(f"{base}/tasks/t99/poll")).status == 404
        assert (await script.post(f"{base}/tasks/{call['task_id']}/poll", {"odd": 1})).status == 422


@pytest.mark.requirement(
    "S003 Event-based API", "S003 Lifecycle event payloads", "S003 SDK integration", "S003 Decision 2"
)
async def test_the_json_stream_has_the_events_by_the_names_of_the_founding_note(victim: Session, app: Starlette):
    async def events(of: str = "") -> list[dict[str, Any]]:
        content = stream.JsonContent(victim, 0, victim.limits, of)
        lines = b"".join([part async for part in content.now()]).decode().splitlines()
        return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]

    with task_peer(script=[["status", "working", "half"], ["finish", DONE]]) as peer:
        await connected(victim, peer.target)
        await until(victim, lambda: victim.client_tasks.listing.state == "ready")
        started = begin(victim)
        await settled(victim, started)
        found = [one for one in await events() if "event" in one]
        names = [one["event"] for one in found]
        mine = [one["event"] for one in found if one["subject"] in (started.id, started.task_id)]
        assert (mine[0], mine[-2:]) == ("taskCreated", ["taskStatusChange", "toolCallResultChange"])
        assert mine.index("taskStatusChange") < mine.index("taskCompleted") and "tasksChange" in names
        assert mine.count("taskCreated") == mine.count("taskCompleted") == 1
        task = victim.client_tasks.tasks[started.task_id or ""]
        created = next(one for one in found if one["event"] == "taskCreated")
        assert (created["taskId"], created["callId"]) == (task.task_id, started.id)
        assert created["task"]["taskId"] == task.task_id and "ttl" in created["task"]
        assert found[-1]["toolName"] == "work" and found[-1]["taskId"] == task.task_id
        alone = await events(started.id)  # one stream of events per call
        assert {one["subject"] for one in alone} == {started.id, started.task_id}
        assert [one["event"] for one in alone if "event" in one] == mine


# ---- the drawing


async def drawn(session: Session) -> tuple[sequence.Drawing, sequence.Drawing]:
    """The drawings of a call as a task with a question in the middle, while the question waits and after it."""
    started = begin(session)
    task = await task_of(session, started)
    await until(session, lambda: session.open_asks)
    during = sequence.of_call(session, started)
    assert fragment("tasks/_sequence.html", card=CallCard(session, started)).count('aria-current="step"') == 1
    await session.asks.answer(session.inbox.open[0], {"action": "accept", "content": {"name": "Ines"}}, ME)
    await settled(session, started)
    await until(session, lambda: not task.live)
    return during, sequence.of_client_task(session, task)


async def test_a_task_is_drawn_between_you_parley_and_the_server(victim: Session, client: Visitor):
    with task_peer(script=[["progress", 1, 2], ["elicit"], ["finish", DONE]]) as peer:
        await connected(victim, peer.target)
        during, after = await drawn(victim)
        assert during.live and not after.live
        said = [(turn.source, turn.target, turn.code) for turn in after.turns]
        for wanted in (
            ("person", "parley", ""),
            ("parley", "server", "tools/call"),
            ("server", "parley", "notifications/progress"),
            ("parley", "server", "tasks/result"),
            ("server", "parley", "elicitation/create"),
            ("parley", "person", ""),
        ):
            assert wanted in said, (wanted, said)
        assert [turn.at for turn in after.turns] == sorted(turn.at for turn in after.turns)
        [call] = [one for one in victim.calls.values() if one.task_id]
        for page in (f"/s/{victim.id}/calls/{call.id}", f"/s/{victim.id}/tasks/{call.task_id}"):
            html = (await client.get(page)).text
            svg = html[html.index('<svg class="seq"') : html.index("</svg></div>")]
            labelled = re.search(r'role="img" aria-labelledby="(\S+) (\S+)"', svg)
            assert labelled and f'<title id="{labelled[1]}">' in svg and f'<desc id="{labelled[2]}">' in svg
            assert "The same as a list" in html and "Server to Parley: elicitation/create" in html
            assert 'aria-current="step"' not in html
            assert "style=" not in svg and svg.count("<g class=") == len(after.turns)


async def test_many_polls_are_folded_in_the_life_and_in_the_drawing(victim: Session):
    with task_peer(poll=500, script=[["hold"], ["finish", DONE]]) as peer:
        await connected(victim, peer.target)
        started = begin(victim)
        task = await task_of(victim, started)
        for number in range(1, 7):
            victim.client_tasks.poll_now(task)
            await until(victim, lambda wanted=number: task.polls >= wanted)  # type: ignore[misc]
        turns = sequence.of_client_task(victim, task).turns
        assert sum(turn.code == "tasks/get" for turn in turns) == 3
        assert any(turn.kind == "fold" and "more of these" in turn.words for turn in turns)
        life = RunningCard(victim, task).life
        assert [step.side for step in life].count("fold") == 1
        await call_tool(victim, "release")
        await settled(victim, started)


async def test_a_plain_call_and_a_receiver_task_are_drawn_too(victim: Session, client: Visitor, raw: Any):
    evil = "<script>alert(1)</script>"
    with task_peer(support={evil: "optional"}) as peer:
        await connected(victim, peer.target)
        plain = await call_tool(victim, evil)
        html = (await client.get(f"/s/{victim.id}/calls/{plain.id}")).text
        assert '<svg class="seq"' in html and "Parley to Server: tools/call" in html
        assert evil not in html and "&lt;script&gt;" in html
    asked = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}, "task": {"ttl": 60_000}}
    line = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "elicitation/create", "params": asked})
    await victim.disconnect()
    await connected(victim, raw(then=[line]).target)
    await until(victim, lambda: victim.open_asks)
    [task] = victim.asks.tasks.values()
    await until(victim, lambda: task.status == "input_required")
    drawing = sequence.of_receiver_task(task)
    assert drawing.live and drawing.turns[0].code == "elicitation/create"
    html = (await client.get(f"/s/{victim.id}/tasks/{task.id}")).text
    assert '<svg class="seq"' in html and "Parley to You: the ask" in html
    patch = tab_of(victim, "task", task.id).patch()
    assert patch is not None and 'hx-target="#sequence"' in patch.html


async def test_the_stream_patches_the_task_its_drawing_and_the_list(victim: Session):
    with task_peer(script=[["elicit"], ["finish", DONE]]) as peer:
        await connected(victim, peer.target)
        started = begin(victim)
        task = await task_of(victim, started)
        await until(victim, lambda: victim.open_asks)
        for page, of, wanted in (
            ("tasks", "", ['hx-target="#tasks"', "needs an answer"]),
            ("task", task.id, [f'hx-target="#task-{task.id}"', 'hx-target="#sequence"', "tasks/result"]),
            ("call", started.id, [f'hx-target="#call-{started.id}"', 'hx-target="#sequence"', "as a task"]),
        ):
            tab = tab_of(victim, page, of)
            patch = tab.patch()
            assert patch is not None and all(text in patch.html for text in wanted), page
            whole = tab.snapshot()
            assert all(text in whole.html for text in wanted), page
        await victim.asks.answer(victim.inbox.open[0], {"action": "decline"}, ME)
        await settled(victim, started)
