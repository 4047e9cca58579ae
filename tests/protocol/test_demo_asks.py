"""What the demo server asks, seen from the client: a scripted client plays Parley's part as the receiver of its tasks.

Over stdio the client is raw JSON lines; over HTTP it is the SDK's, whose dispatcher lets the same script answer.
"""

import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from subprocess import PIPE
from typing import Any, TypeVar

import anyio
import anyio.abc
import mcp_types as types
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "app.demo.server"]
START_SECONDS = 60  # generous: a loaded machine imports the SDK slowly
SOON_SECONDS = 30
TERMINAL = {"completed", "failed", "cancelled"}
RELATED = "io.modelcontextprotocol/related-task"
EVERYTHING: dict[str, Any] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}},
    "roots": {"listChanged": True},
    "tasks": {
        "list": {},
        "cancel": {},
        "requests": {"elicitation": {"create": {}}, "sampling": {"createMessage": {}}},
    },
}
WORDS = {"role": "assistant", "content": {"type": "text", "text": "A lighthouse hums."}, "model": "hand"}
ANSWERS: dict[str, dict[str, Any]] = {
    "form": {"action": "accept", "content": {"outputFormat": "json", "includeTimestamps": True}},
    "link": {"action": "accept"},
    "sampling": WORDS,
    "roots": {"roots": [{"uri": "file:///tmp/quay", "name": "Quay"}]},
}
ASKING_TOOLS = [
    "preferences",
    "every_field",
    "sign_in",
    "needs_sign_in",
    "write_caption",
    "describe_postcard",
    "ask_with_tools",
    "list_roots",
    "three_at_once",
    "changes_its_mind",
    "parade",
]

FoundT = TypeVar("FoundT")
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]


# --- the script: what the client answers, and the tasks it executes


class Fault(Exception):
    """A JSON-RPC error to answer with."""

    def __init__(self, code: int, message: str = "no") -> None:
        super().__init__(message)
        self.code, self.message = code, message


@dataclass
class ClientTask:
    """A task that the client executes for the server."""

    task_id: str
    kind: str
    ttl: Any
    poll_interval: int
    status: str = "working"
    polls: list[float] = field(default_factory=list)
    ended: anyio.Event = field(default_factory=anyio.Event)

    def wire(self) -> dict[str, Any]:
        times = {"createdAt": "2027-03-01T06:30:00Z", "lastUpdatedAt": "2027-03-01T06:30:01Z"}
        task = {"taskId": self.task_id, "status": self.status, "ttl": self.ttl, "pollInterval": self.poll_interval}
        return {**task, **times}


@dataclass
class Script:
    """A client that answers each kind of ask as told, and keeps tasks until somebody cancels or expires them."""

    answers: dict[str, dict[str, Any] | Fault] = field(default_factory=lambda: dict[str, Any](ANSWERS))
    asleep: bool = False
    """Nobody answers: requests and tasks stay open until the server takes them back."""
    poll_interval: int = 5
    tasks: dict[str, ClientTask] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    told: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    held: dict[str, anyio.Event] = field(default_factory=dict)
    """Kinds of plain asks that wait until the test says so."""
    news: anyio.Event = field(default_factory=anyio.Event)

    async def until(self, look: Callable[[], FoundT | None]) -> FoundT:
        """Wait for messages until the test finds what it looks for."""
        with anyio.fail_after(SOON_SECONDS):
            while not (found := look()):
                await self.news.wait()
            return found

    def happened(self) -> None:
        self.news.set()
        self.news = anyio.Event()

    def sent(self, method: str) -> list[dict[str, Any]]:
        return [params for name, params in self.asked if name == method]

    def notices(self, method: str) -> list[dict[str, Any]]:
        return [params for name, params in self.told if name == method]

    def hear(self, method: str, params: dict[str, Any]) -> None:
        self.told.append((method, params))
        self.happened()

    async def serve(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Answer one request of the server, or raise the Fault to answer with."""
        self.asked.append((method, params))
        self.happened()
        if method in ("elicitation/create", "sampling/createMessage", "roots/list"):
            return await self.asks(method, params)
        if method == "tasks/list":
            return self.page(params.get("cursor"))
        if method not in ("tasks/get", "tasks/result", "tasks/cancel"):
            raise Fault(-32601, "Method not found")
        task = self.tasks.get(params.get("taskId", ""))
        if task is None:
            raise Fault(-32602, "No such task")
        return await {"tasks/get": self.get, "tasks/result": self.result, "tasks/cancel": self.cancel}[method](task)

    async def asks(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        kind = {"elicitation/create": "form", "sampling/createMessage": "sampling", "roots/list": "roots"}[method]
        kind = "link" if params.get("mode") == "url" else kind
        if "task" in params:
            ttl = params["task"].get("ttl")
            if ttl is not None and (not isinstance(ttl, int) or ttl < 0):
                raise Fault(-32602, "Bad ttl")
            task = ClientTask(f"task-{len(self.tasks) + 1}", kind, ttl, self.poll_interval)
            self.tasks[task.task_id] = task
            return {"task": task.wire()}
        if self.asleep:
            await anyio.sleep_forever()
        if kind in self.held:
            await self.held[kind].wait()
        return self.answer(kind)

    def answer(self, kind: str) -> dict[str, Any]:
        answer = self.answers[kind]
        if isinstance(answer, Fault):
            raise answer
        return answer

    def settle(self, task: ClientTask) -> None:
        task.status = "failed" if isinstance(self.answers[task.kind], Fault) else "completed"
        task.ended.set()

    def expire(self, task_id: str) -> None:
        self.tasks.pop(task_id).ended.set()

    async def get(self, task: ClientTask) -> dict[str, Any]:
        task.polls.append(anyio.current_time())
        if task.status == "working":
            task.status = "input_required"
        elif task.status == "input_required" and not self.asleep and task.kind not in self.held:
            self.settle(task)
        return task.wire()

    async def result(self, task: ClientTask) -> dict[str, Any]:
        if not self.asleep and task.status not in TERMINAL:
            self.settle(task)
        await task.ended.wait()
        if task.task_id not in self.tasks:
            raise Fault(-32602, "The task has expired")
        if task.status == "cancelled":
            raise Fault(-32603, "The task was cancelled")
        return {**self.answer(task.kind), "_meta": {RELATED: {"taskId": task.task_id}}}

    async def cancel(self, task: ClientTask) -> dict[str, Any]:
        if task.status in TERMINAL:
            raise Fault(-32602, "It has ended")
        task.status = "cancelled"
        task.ended.set()
        return task.wire()

    def page(self, cursor: str | None) -> dict[str, Any]:
        """One task per page."""
        tasks = [task.wire() for task in self.tasks.values()]
        if cursor is not None and (not cursor.isdecimal() or int(cursor) >= len(tasks)):
            raise Fault(-32602, "Bad cursor")
        start = int(cursor or 0)
        following = {"nextCursor": str(start + 1)} if start + 1 < len(tasks) else {}
        return {"tasks": tasks[start : start + 1], **following}


# --- the script on raw JSON lines


class Guest:
    """The demo server as a child process, and the script at the other end of its pipes."""

    def __init__(self, process: anyio.abc.Process, group: anyio.abc.TaskGroup, script: Script) -> None:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self.process, self.group, self.script = process, group, script
        self.stdin, self.stderr = process.stdin, process.stderr
        self.stdout = BufferedByteReceiveStream(process.stdout)
        self.answers: dict[int, dict[str, Any]] = {}
        self.open: dict[Any, anyio.CancelScope] = {}
        self.last_id = 0

    async def send(self, message: dict[str, Any]) -> None:
        await self.stdin.send(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        await self.send({"method": method, "params": params or {}})

    async def request(self, method: str, params: dict[str, Any]) -> int:
        self.last_id += 1
        await self.send({"id": self.last_id, "method": method, "params": params})
        return self.last_id

    async def start(self, name: str, arguments: dict[str, Any]) -> int:
        """A tool call, not waited for; its id is also its progress token."""
        meta = {"progressToken": self.last_id + 1}
        return await self.request("tools/call", {"name": name, "arguments": arguments, "_meta": meta})

    async def outcome(self, number: int) -> dict[str, Any]:
        return await self.script.until(lambda: self.answers.get(number))

    async def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        return await self.result(await self.start(name, arguments))

    async def result(self, number: int) -> dict[str, Any]:
        """The structured content of a call that went well."""
        result = (await self.outcome(number))["result"]
        assert not result.get("isError"), result["content"][0]["text"]
        told: dict[str, Any] = result["structuredContent"]
        return told

    async def read(self) -> None:
        """The reading loop: sort what comes, and serve each request in a task of its own."""
        while True:
            try:
                message = json.loads(await self.stdout.receive_until(b"\n", 10_000_000))
            except (anyio.IncompleteRead, anyio.EndOfStream):
                return
            method, params = message.get("method"), message.get("params", {})
            if method is None:
                self.answers[message["id"]] = message
                self.script.happened()
            elif "id" in message:
                self.open[message["id"]] = anyio.CancelScope()
                self.group.start_soon(self.serve, message["id"], method, params)
            else:
                if method == "notifications/cancelled":
                    self.open[params["requestId"]].cancel()
                self.script.hear(method, params)

    async def serve(self, number: Any, method: str, params: dict[str, Any]) -> None:
        with self.open[number], suppress(anyio.ClosedResourceError):
            try:
                answer = {"result": await self.script.serve(method, params)}
            except Fault as fault:
                answer = {"error": {"code": fault.code, "message": fault.message}}
            await self.send({"id": number, **answer})


@asynccontextmanager
async def guest(
    script: Script, capabilities: dict[str, Any] | None = None, revision: str = "2025-11-25"
) -> AsyncIterator[Guest]:
    """The scripted client, connected."""
    declared = EVERYTHING if capabilities is None else capabilities
    params = {"protocolVersion": revision, "capabilities": declared, "clientInfo": {"name": "raw", "version": "1"}}
    async with (
        await anyio.open_process(COMMAND, cwd=ROOT, stdin=PIPE, stdout=PIPE, stderr=PIPE) as child,
        anyio.create_task_group() as group,
    ):
        try:
            visitor = Guest(child, group, script)
            group.start_soon(visitor.read)
            with anyio.fail_after(START_SECONDS):
                number = await visitor.request("initialize", params)
                while number not in visitor.answers:
                    await script.news.wait()
            await visitor.notify("notifications/initialized")
            yield visitor
            group.cancel_scope.cancel()
        finally:
            if child.returncode is None:
                child.kill()


# --- elicitation


async def test_the_preferences_form_is_asked_and_its_answer_told() -> None:
    script = Script()
    async with guest(script) as visitor:
        for answer in (ANSWERS["form"], {"action": "decline"}, {"action": "cancel"}):
            script.answers["form"] = answer
            told = await visitor.call("preferences")
            assert (told["outcome"], told["answer"], told["task"]) == ("answered", answer, None)
    asked = script.sent("elicitation/create")[0]
    schema = asked["requestedSchema"]
    assert "mode" not in asked and "task" not in asked and asked["message"]
    assert list(schema["properties"]) == ["outputFormat", "verbosity", "includeTimestamps"]
    assert schema["required"] == ["outputFormat"]
    assert schema["properties"]["outputFormat"]["enum"] and schema["properties"]["verbosity"]["enum"]
    assert schema["properties"]["includeTimestamps"]["default"] is True


def kinds(properties: dict[str, dict[str, Any]]) -> Iterator[str]:
    """What kind of field each property is, by the words of R4-04 to R4-07."""
    for schema in properties.values():
        items = schema.get("items", {})
        yield str(schema["type"])
        yield from (f"format {schema['format']}",) if "format" in schema else ()
        yield from (f"titled {word}" for word in ("oneOf",) if word in schema)
        yield from (f"{word}" for word in ("minLength", "maxLength", "minItems", "maxItems") if word in schema)
        yield from (f"several {word}" for word in ("enum", "anyOf") if word in items)
        if "enum" in schema:
            yield "enumNames" if "enumNames" in schema else "enum"
        if "default" in schema:
            yield f"default {type(schema['default']).__name__}"
        yield from (f"default {value}" for value in ("False", "0") if str(schema.get("default")) == value)


async def test_the_long_form_has_every_kind_of_field() -> None:
    script = Script()
    async with guest(script) as visitor:
        await visitor.call("every_field")
        await visitor.call("every_field", defaults=False)
    full, bare = script.sent("elicitation/create")
    assert full["mode"] == "form"
    found = set(kinds(full["requestedSchema"]["properties"]))
    assert found == {
        *("string", "number", "integer", "boolean", "array", "minLength", "maxLength", "minItems", "maxItems"),
        *("format email", "format uri", "format date", "format date-time"),
        *("enum", "titled oneOf", "enumNames", "several enum", "several anyOf"),
        *("default str", "default int", "default float", "default bool", "default list", "default False", "default 0"),
    }
    assert not any(kind.startswith("default") for kind in kinds(bare["requestedSchema"]["properties"]))
    assert set(full["requestedSchema"]["required"]) <= set(full["requestedSchema"]["properties"])


async def test_a_link_is_completed_on_confirmation_or_by_itself() -> None:
    script = Script()
    async with guest(script) as visitor:
        assert (await visitor.call("sign_in"))["answer"] == {"action": "accept"}
        (asked,) = script.sent("elicitation/create")
        assert asked["mode"] == "url" and asked["elicitationId"] in asked["url"]
        assert not script.notices("notifications/elicitation/complete")
        assert (await visitor.call("confirm_sign_in"))["completed"] == [asked["elicitationId"]]
        assert script.notices("notifications/elicitation/complete") == [{"elicitationId": asked["elicitationId"]}]
        assert (await visitor.outcome(await visitor.start("confirm_sign_in", {})))["result"]["isError"]

        await visitor.call("sign_in", completes_after=0.01)
        later = script.sent("elicitation/create")[-1]["elicitationId"]
        await script.until(lambda: {"elicitationId": later} in script.notices("notifications/elicitation/complete"))

        script.answers["link"] = {"action": "decline"}
        await visitor.call("sign_in", completes_after=0.01)
        assert (await visitor.outcome(await visitor.start("confirm_sign_in", {})))["result"]["isError"]


async def test_tickets_are_an_error_with_a_link_until_the_sign_in_is_confirmed() -> None:
    script = Script()
    async with guest(script) as visitor:
        error = (await visitor.outcome(await visitor.start("needs_sign_in", {})))["error"]
        assert error["code"] == -32042
        (elicitation,) = error["data"]["elicitations"]
        assert elicitation["mode"] == "url" and elicitation["url"] and elicitation["message"]
        again = (await visitor.outcome(await visitor.start("needs_sign_in", {})))["error"]
        assert again["data"] == error["data"]
        assert (await visitor.call("confirm_sign_in"))["completed"] == [elicitation["elicitationId"]]
        for forget in (False, True):
            tickets = (await visitor.outcome(await visitor.start("needs_sign_in", {"forget": forget})))["result"]
            assert "tickets" in tickets["content"][0]["text"]
        assert (await visitor.outcome(await visitor.start("needs_sign_in", {})))["error"]["code"] == -32042
        assert not script.asked


# --- sampling and roots


async def test_a_caption_carries_everything_that_sampling_may_carry() -> None:
    script = Script()
    async with guest(script) as visitor:
        assert (await visitor.call("write_caption"))["answer"] == WORDS
        script.answers["sampling"] = Fault(-1, "User rejected sampling request")
        denied = await visitor.call("write_caption", destination="tindra")
    assert (denied["outcome"], denied["error"]["code"]) == ("refused", -1)
    asked = script.sent("sampling/createMessage")[0]
    for word in ("systemPrompt", "modelPreferences", "includeContext", "temperature", "stopSequences", "metadata"):
        assert asked[word] not in (None, "", [], {}), word
    assert asked["maxTokens"] > 0 and "tools" not in asked
    assert {message["role"] for message in asked["messages"]} == {"user", "assistant"}


@pytest.mark.parametrize(("revision", "messages"), [("2025-11-25", 1), ("2025-06-18", 3), ("2024-11-05", 2)])
async def test_a_postcard_is_shown_to_the_model(revision: str, messages: int) -> None:
    script = Script()
    async with guest(script, {"sampling": {}}, revision) as visitor:
        await visitor.outcome(await visitor.start("describe_postcard", {}))
    (asked,) = script.sent("sampling/createMessage")
    assert len(asked["messages"]) == messages
    contents = [message["content"] for message in asked["messages"]]
    blocks = contents[0] if isinstance(contents[0], list) else contents
    expected = ["text", "image", "audio"] if revision > "2024-11-05" else ["text", "image"]
    assert [block["type"] for block in blocks] == expected


async def test_a_model_that_uses_a_tool_gets_its_result_and_is_asked_again() -> None:
    script = Script()
    use = {"type": "tool_use", "id": "use-1", "name": "find_ferry", "input": {"destination": "tindra"}}
    unknown = {"type": "tool_use", "id": "use-2", "name": "teleport", "input": {}}
    script.answers["sampling"] = {**WORDS, "content": [use, unknown], "stopReason": "toolUse"}
    async with guest(script) as visitor:
        told = await visitor.call("ask_with_tools", tool_choice="required", rounds=2)
        first, second = script.sent("sampling/createMessage")
        assert [tool["name"] for tool in first["tools"]] == ["find_ferry", "weather"]
        assert (first["toolChoice"], second["toolChoice"]) == ({"mode": "required"}, {"mode": "none"})
        opening, reply, results = second["messages"]
        assert [opening] == first["messages"] and reply == {"role": "assistant", "content": [use, unknown]}
        assert [result["toolUseId"] for result in results["content"]] == ["use-1", "use-2"]
        assert [result.get("isError", False) for result in results["content"]] == [False, True]
        assert told["tools_used"] == ["find_ferry", "teleport"] and len(told["rounds"]) == 2

        script.answers["sampling"] = WORDS
        assert len((await visitor.call("ask_with_tools"))["rounds"]) == 1


async def test_the_roots_are_told_as_they_were_given() -> None:
    script = Script()
    async with guest(script) as visitor:
        assert (await visitor.call("list_roots"))["answer"] == script.answers["roots"]
        script.answers["roots"] = Fault(-32601)
        assert (await visitor.call("list_roots"))["error"]["code"] == -32601


# --- tasks


async def test_every_ask_can_be_a_task_that_the_desk_polls() -> None:
    script = Script(poll_interval=40)
    async with guest(script) as visitor:
        for name in ("preferences", "every_field", "sign_in", "write_caption", "describe_postcard"):
            script.asked.clear()
            told = await visitor.call(name, as_task=True, ttl_ms=4321)
            task = list(script.tasks.values())[-1]
            assert script.asked[0][1]["task"] == {"ttl": 4321}
            assert [method for method, _ in script.asked[1:]] == ["tasks/get", "tasks/get", "tasks/result"]
            assert all(params == {"taskId": task.task_id} for _, params in script.asked[1:])
            assert task.polls[1] - task.polls[0] >= 0.035  # a timer may be a little early by another clock
            assert told["statuses"] == ["working", "input_required", "completed"]
            assert (told["outcome"], told["polls"], told["task"]) == ("answered", 2, task.wire())
            assert told["answer"] == {**script.answer(task.kind), "_meta": {RELATED: {"taskId": task.task_id}}}
        conversation = await visitor.call("ask_with_tools", as_task=True)
        assert conversation["rounds"][0]["task"]["status"] == "completed"


async def test_a_task_can_be_collected_by_blocking_in_its_result() -> None:
    script = Script()
    async with guest(script) as visitor:
        told = await visitor.call("preferences", as_task=True, collect="block")
        assert [method for method, _ in script.asked[1:]] == ["tasks/result", "tasks/get"]
        assert script.asked[0][1]["task"] == {}
        assert (told["outcome"], told["statuses"]) == ("answered", ["working", "completed"])
        script.answers["sampling"] = Fault(-1, "User rejected sampling request")
        for collect in ("block", "poll"):
            told = await visitor.call("write_caption", as_task=True, collect=collect)
            assert (told["outcome"], told["error"]["code"], told["task"]["status"]) == ("refused", -1, "failed")


async def test_a_client_may_ignore_the_task() -> None:
    script = Script()

    async def ignore(method: str, params: dict[str, Any]) -> dict[str, Any]:
        script.asked.append((method, params))
        return script.answer("form")

    script.asks = ignore  # type: ignore[method-assign]
    async with guest(script) as visitor:
        told = await visitor.call("preferences", as_task=True)
    assert (told["outcome"], told["answer"], told["task"]) == ("answered", script.answers["form"], None)


async def test_three_asks_at_once_are_settled_in_any_order_while_calls_go_on() -> None:
    script = Script()
    script.held = {kind: anyio.Event() for kind in ("form", "link", "sampling")}

    def settled(subject: str) -> bool:
        return any(f"The {subject} " in report["message"] for report in script.notices("notifications/progress"))

    async with guest(script) as visitor:
        number = await visitor.start("three_at_once", {})
        asked = await script.until(lambda: script.asked if len(script.tasks) == 2 and len(script.asked) > 3 else None)
        plain = [params for method, params in asked if method == "elicitation/create" and "task" not in params]
        assert [params["mode"] for params in plain] == ["url"]
        echo = await visitor.outcome(await visitor.start("echo", {"message": "still here"}))
        assert echo["result"]["content"][0]["text"] == "still here"
        for subject, kind in (("caption", "sampling"), ("link", "link"), ("form", "form")):
            script.held.pop(kind).set()
            await script.until(partial(settled, subject))
        told = await visitor.result(number)
    assert told["order"] == ["caption", "link", "form"]
    assert {told[subject]["outcome"] for subject in told["order"]} == {"answered"}


async def test_a_change_of_mind_takes_the_ask_back() -> None:
    script = Script(asleep=True)
    async with guest(script) as visitor:
        for about in ("form", "link", "caption"):
            told = await visitor.call("changes_its_mind", about=about, after_seconds=0.01)
            assert told["outcome"] == "withdrawn"
            cancelled = script.notices("notifications/cancelled")[-1]
            assert visitor.open[cancelled["requestId"]].cancel_called
            assert script.asked[-1][0] != "tasks/cancel"

            told = await visitor.call("changes_its_mind", about=about, after_seconds=0.01, as_task=True)
            task = list(script.tasks.values())[-1]
            assert (told["outcome"], told["task"]["status"]) == ("withdrawn", "cancelled")
            assert script.asked[-1] == ("tasks/cancel", {"taskId": task.task_id})

        script.asleep = False
        assert (await visitor.call("changes_its_mind", after_seconds=600))["outcome"] == "answered"


async def test_a_task_that_expires_is_gone() -> None:
    script = Script(asleep=True)
    async with guest(script) as visitor:
        for collect, method in (("block", "tasks/result"), ("poll", "tasks/get")):
            script.asked.clear()
            number = await visitor.start("preferences", {"as_task": True, "ttl_ms": 3000, "collect": collect})
            await script.until(partial(script.sent, method))
            (task_id,) = script.tasks
            assert script.asked[0][1]["task"] == {"ttl": 3000}
            script.expire(task_id)
            told = await visitor.result(number)
            assert (told["outcome"], told["error"]["code"]) == ("gone", -32602)


# --- the parade


@pytest.mark.parametrize("together", [False, True])
async def test_the_parade_asks_everything_with_progress(together: bool) -> None:
    script = Script()
    async with guest(script) as visitor:
        told = await visitor.call("parade", together=together)
    assert len(told["acts"]) == 10 and told["skipped"] == {}
    assert {one["outcome"] for act in told["acts"] for one in act["told"]} == {"answered"}
    reports = [params["progress"] for params in script.notices("notifications/progress")]
    assert reports == list(range(11))
    asked = {(method, "task" in params, params.get("mode")) for method, params in script.asked}
    assert {("elicitation/create", True, "form"), ("elicitation/create", False, "url")} <= asked
    assert {("sampling/createMessage", True, None), ("sampling/createMessage", False, None)} <= asked
    assert ("roots/list", False, None) in asked
    links = [params["elicitationId"] for params in script.sent("elicitation/create") if "elicitationId" in params]
    assert len(set(links)) == 2
    (completed,) = script.notices("notifications/elicitation/complete")
    assert completed["elicitationId"] in links


async def test_the_parade_leaves_out_what_the_client_does_not_offer() -> None:
    script = Script()
    async with guest(script, {"sampling": {}, "elicitation": {}}, "2025-06-18") as visitor:
        told = await visitor.call("parade")
    assert [act["title"] for act in told["acts"]] == [
        "a form",
        "a caption",
        "a picture and a sound",
        "a change of mind",
    ]
    assert "roots" in told["skipped"]["your roots"] and "2025-11-25" in told["skipped"]["a link"]


# --- what is missing, what is taken back, and what is lost


async def test_nothing_is_asked_that_the_client_did_not_offer() -> None:
    script = Script()
    needs = {
        "sign_in": "elicitation.url",
        "needs_sign_in": "elicitation.url",
        "write_caption": "sampling",
        "describe_postcard": "sampling",
        "ask_with_tools": "sampling.tools",
        "list_roots": "roots",
        "parade": "roots",
    }
    async with guest(script, {}) as visitor:
        for name in ASKING_TOOLS:
            result = (await visitor.outcome(await visitor.start(name, {})))["result"]
            assert result["isError"]
            assert f"`{needs.get(name, 'elicitation.form')}`" in result["content"][0]["text"], name
    declared: dict[str, Any] = {"elicitation": {}, "sampling": {}}
    async with guest(script, declared) as visitor:
        for name in ("sign_in", "needs_sign_in", "ask_with_tools", "list_roots"):
            result = (await visitor.outcome(await visitor.start(name, {})))["result"]
            assert result["isError"] and f"`{needs[name]}`" in result["content"][0]["text"]
        for name, method in (("write_caption", "sampling.createMessage"), ("preferences", "elicitation.create")):
            asked = await visitor.outcome(await visitor.start(name, {"as_task": True}))
            assert f"`tasks.requests.{method}`" in asked["result"]["content"][0]["text"]
    assert not script.asked


async def test_a_modern_client_without_the_capability_is_told_which_one() -> None:
    server = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], cwd=ROOT)
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        with anyio.fail_after(START_SECONDS):
            await session.discover()
            with pytest.raises(MCPError) as refused:
                await session.call_tool("preferences", {})
            result = await session.call_tool("preferences", {"as_task": True})
    assert refused.value.code == -32021 and "elicitation.form" in refused.value.message
    assert result.is_error and "2025-11-25" in str(result.content)


@pytest.mark.parametrize("as_task", [False, True])
async def test_a_cancelled_call_takes_its_ask_back(as_task: bool) -> None:
    script = Script(asleep=True)
    async with guest(script) as visitor:
        number = await visitor.start("preferences", {"as_task": as_task})
        await script.until(lambda: script.sent("tasks/get" if as_task else "elicitation/create"))
        await visitor.notify("notifications/cancelled", {"requestId": number, "reason": "enough"})
        if as_task:
            await script.until(lambda: script.sent("tasks/cancel"))
            assert [task.status for task in script.tasks.values()] == ["cancelled"]
        else:
            await script.until(lambda: script.notices("notifications/cancelled"))
        await visitor.outcome(await visitor.request("ping", {}))
        assert number not in visitor.answers


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("preferences", {}), ("preferences", {"as_task": True, "collect": "block"}), ("parade", {"together": True})],
)
async def test_the_desk_goes_home_when_the_connection_ends_in_the_middle(name: str, arguments: dict[str, Any]) -> None:
    script = Script(asleep=True)
    async with guest(script) as visitor:
        await visitor.start(name, arguments)
        await script.until(lambda: script.sent("tasks/result") or (not arguments and script.asked))
        with anyio.fail_after(SOON_SECONDS):
            await visitor.stdin.aclose()
            assert await visitor.process.wait() == 0
            complaint = b"".join([chunk async for chunk in visitor.stderr])
        assert b"Traceback" not in complaint


# --- streamable HTTP


@asynccontextmanager
async def http_desk() -> AsyncIterator[str]:
    """The demo server on a free port; its address."""
    command = [*COMMAND, "--http", "--port", "0"]
    async with await anyio.open_process(command, cwd=ROOT, stdout=PIPE, stderr=PIPE) as child:
        try:
            assert child.stdout is not None
            with anyio.fail_after(START_SECONDS):
                yield (await BufferedByteReceiveStream(child.stdout).receive_until(b"\n", 200)).decode()
        finally:
            child.kill()


async def test_the_plain_asks_travel_over_http() -> None:
    completed = anyio.Event()
    links: list[str] = []

    async def on_elicit(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        if isinstance(params, types.ElicitRequestURLParams):
            links.append(params.url)
            return types.ElicitResult(action="accept")
        return types.ElicitResult(action="accept", content={"outputFormat": "plain"})

    async def on_sample(context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        text = types.TextContent(text=f"{len(params.messages)} messages")
        return types.CreateMessageResult(role="assistant", content=text, model="hand")

    async def on_roots(context: Any) -> types.ListRootsResult:
        return types.ListRootsResult.model_validate({"roots": [{"uri": "file:///tmp/quay"}]})

    async def on_message(message: Any) -> None:
        if isinstance(message, types.ElicitCompleteNotification):
            completed.set()

    async with (
        http_desk() as url,
        streamable_http_client(url) as streams,
        ClientSession(
            *streams,
            elicitation_callback=on_elicit,
            sampling_callback=on_sample,
            list_roots_callback=on_roots,
            message_handler=on_message,
        ) as session,
    ):
        await session.initialize()

        async def told(name: str, **arguments: Any) -> dict[str, Any]:
            result = await session.call_tool(name, arguments)
            assert result.structured_content is not None, result.content
            return result.structured_content

        assert (await told("preferences"))["answer"]["content"] == {"outputFormat": "plain"}
        assert (await told("write_caption"))["answer"]["content"]["text"] == "3 messages"
        assert (await told("describe_postcard"))["answer"]["content"]["text"] == "1 messages"
        assert (await told("list_roots"))["answer"]["roots"] == [{"uri": "file:///tmp/quay"}]
        with pytest.raises(MCPError) as error:
            await session.call_tool("needs_sign_in", {})
        assert error.value.code == -32042
        await told("sign_in")
        assert await told("confirm_sign_in") and len(links) == 1
        await completed.wait()
        completed = anyio.Event()
        await told("sign_in", completes_after=0.01)
        await completed.wait()
        assert len((await told("parade", together=True))["acts"]) == 6


async def test_tasks_travel_over_http_and_visitors_do_not_see_each_other() -> None:
    async with http_desk() as url:
        for _ in range(2):
            script = Script()

            async def on_request(context: Any, method: str, params: Any, script: Script = script) -> dict[str, Any]:
                try:
                    return await script.serve(method, dict(params or {}))
                except Fault as fault:
                    raise MCPError(fault.code, fault.message) from None

            async def on_notify(context: Any, method: str, params: Any, script: Script = script) -> None:
                script.hear(method, dict(params or {}))

            async with streamable_http_client(url) as streams, anyio.create_task_group() as group:
                dispatcher: JSONRPCDispatcher[Any] = JSONRPCDispatcher(*streams)
                await group.start(dispatcher.run, on_request, on_notify)
                client = {"name": "raw", "version": "1"}
                hello = {"protocolVersion": "2025-11-25", "capabilities": EVERYTHING, "clientInfo": client}
                await dispatcher.send_raw_request("initialize", hello)
                await dispatcher.notify("notifications/initialized", None)

                async def told(name: str, speak: Any = dispatcher.send_raw_request, **arguments: Any) -> dict[str, Any]:
                    result = await speak("tools/call", {"name": name, "arguments": arguments})
                    assert not result.get("isError"), result
                    return result["structuredContent"]

                for collect in ("poll", "block"):
                    answer = await told("preferences", as_task=True, collect=collect)
                    assert (answer["outcome"], answer["task"]["status"]) == ("answered", "completed")
                assert (await told("three_at_once"))["caption"]["outcome"] == "answered"
                assert list(script.tasks) == [f"task-{number}" for number in range(1, 5)]
                # The sign-in of the visitor before is none of this one's; three_at_once began one.
                (link,) = [params for params in script.sent("elicitation/create") if "elicitationId" in params]
                assert (await told("confirm_sign_in"))["completed"] == [link["elicitationId"]]
                assert await told("sign_in", as_task=True)  # and leaves one behind for the next visitor to not see
                group.cancel_scope.cancel()
