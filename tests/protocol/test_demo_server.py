"""The demo server, driven as a real process: by the SDK's client, and by raw JSON lines where the SDK hides things."""

import base64
import io
import json
import os
import signal
import struct
import sys
import wave
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE
from typing import Any

import anyio
import anyio.abc
import mcp_types as types
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "app.demo.server"]
REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
START_SECONDS = 60  # generous: a loaded machine imports the SDK slowly
SOON_SECONDS = 30

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


# --- a peer of raw JSON lines


@dataclass
class RawPeer:
    """The demo server as a child process, one JSON object per line."""

    process: anyio.abc.Process
    last_id: int = 0
    received: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        assert self.process.stderr is not None
        if self.process.stdout is not None:
            self.stdout = BufferedByteReceiveStream(self.process.stdout)
        self.stderr = BufferedByteReceiveStream(self.process.stderr)

    async def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        await self.process.stdin.send(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def request(self, method: str, params: dict[str, Any] | None = None) -> int:
        self.last_id += 1
        await self.send({"id": self.last_id, "method": method, "params": params or {}})
        return self.last_id

    async def receive(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(await self.stdout.receive_until(b"\n", 10_000_000))
        self.received.append(message)
        return message

    async def until(self, **wanted: Any) -> dict[str, Any]:
        while True:
            message = await self.receive()
            if all(message.get(key) == value for key, value in wanted.items()):
                return message

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        return await self.until(id=await self.request(method, params))

    async def handshake(self, revision: str) -> dict[str, Any]:
        client = {"name": "raw", "version": "1"}
        params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": client}
        with anyio.fail_after(START_SECONDS):
            answer = await self.ask("initialize", params)
        await self.send({"method": "notifications/initialized"})
        result: dict[str, Any] = answer["result"]
        return result

    async def stderr_line(self) -> str:
        return (await self.stderr.receive_until(b"\n", 65536)).decode()

    async def stderr_rest(self) -> str:
        text = b""
        try:
            while True:
                text += await self.stderr.receive()
        except anyio.EndOfStream:
            return text.decode()


@asynccontextmanager
async def raw_peer(*arguments: str, stdout: int = PIPE) -> AsyncIterator[RawPeer]:
    command = [*COMMAND, *arguments]
    async with await anyio.open_process(command, cwd=ROOT, stdin=PIPE, stdout=stdout, stderr=PIPE) as child:
        try:
            yield RawPeer(child)
        finally:
            if child.returncode is None:
                child.kill()


async def start_slow_call(peer: RawPeer) -> int:
    """A call that would take a minute, certainly running when this returns."""
    await peer.ask("logging/setLevel", {"level": "debug"})
    number = await peer.request("tools/call", {"name": "slow_count", "arguments": {"steps": 1, "delay": 60}})
    await peer.until(method="notifications/message")
    return number


@pytest.mark.parametrize("revision", REVISIONS)
async def test_every_handshake_revision_is_spoken(revision: str) -> None:
    async with raw_peer() as peer:
        result = await peer.handshake(revision)
        assert result["protocolVersion"] == revision
        assert result["serverInfo"]["name"] == "nordwind-travel-desk"
        tasks = {"tasks"} if revision == "2025-11-25" else set()
        assert set(result["capabilities"]) == {"completions", "logging", "prompts", "resources", "tools"} | tasks
        assert "Nordwind" in result["instructions"]
        with anyio.fail_after(SOON_SECONDS):
            tools = (await peer.ask("tools/list"))["result"]["tools"]
            assert "echo" in {tool["name"] for tool in tools}
            card = await peer.ask("tools/call", {"name": "postcard", "arguments": {}})
        kinds = {block["type"] for block in card["result"]["content"]}
        known = {"text", "image", "resource"}
        known |= {"audio"} if revision >= "2025-03-26" else set()
        known |= {"resource_link"} if revision >= "2025-06-18" else set()
        assert kinds == known


async def test_an_unknown_revision_is_answered_with_the_newest() -> None:
    async with raw_peer() as peer:
        assert (await peer.handshake("1999-12-31"))["protocolVersion"] == REVISIONS[-1]


async def test_a_cancelled_call_stops_at_once_and_is_never_answered() -> None:
    async with raw_peer() as peer:
        assert "open on stdio" in await peer.stderr_line()
        await peer.handshake("2025-11-25")
        with anyio.fail_after(SOON_SECONDS):
            number = await start_slow_call(peer)
            await peer.send({"method": "notifications/cancelled", "params": {"requestId": number, "reason": "enough"}})
            assert "cancelled at wave 1 of 1" in await peer.stderr_line()
            await peer.ask("ping")
        assert number not in [message.get("id") for message in peer.received]


async def test_it_leaves_when_stdin_closes_even_in_the_middle_of_a_call() -> None:
    async with raw_peer() as peer:
        await peer.handshake("2025-11-25")
        with anyio.fail_after(SOON_SECONDS):
            await start_slow_call(peer)
            assert peer.process.stdin is not None
            await peer.process.stdin.aclose()
            assert await peer.process.wait() == 0
            assert "Traceback" not in await peer.stderr_rest()


async def test_it_leaves_when_nobody_reads_stdout_any_more() -> None:
    read_end, write_end = os.pipe()
    async with raw_peer(stdout=write_end) as peer:
        os.close(write_end)
        os.close(read_end)
        await peer.request("ping")
        assert peer.process.stdin is not None
        await peer.process.stdin.aclose()
        with anyio.fail_after(START_SECONDS):
            assert await peer.process.wait() == 0
            complaint = await peer.stderr_rest()
        assert "Nobody reads stdout" in complaint and "Traceback" not in complaint


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_leaves_on_a_signal_with_stdin_still_open(number: signal.Signals) -> None:
    async with raw_peer() as peer:
        await peer.handshake("2025-11-25")
        with anyio.fail_after(SOON_SECONDS):
            await start_slow_call(peer)
            peer.process.send_signal(number)
            assert await peer.process.wait() == 0
            assert "Traceback" not in await peer.stderr_rest()


# --- the SDK's client


@dataclass
class Visit:
    """A connected client session and what arrived beside the answers."""

    session: ClientSession
    logs: list[types.LoggingMessageNotificationParams]
    updated: anyio.Event

    async def call(self, name: str, **arguments: Any) -> types.CallToolResult:
        return await self.session.call_tool(name, arguments)


@asynccontextmanager
async def visit(read_stream: Any, write_stream: Any) -> AsyncIterator[Visit]:
    logs: list[types.LoggingMessageNotificationParams] = []
    updated = anyio.Event()

    async def on_log(params: types.LoggingMessageNotificationParams) -> None:
        logs.append(params)

    async def on_message(message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification) and message.params.uri == "desk://board":
            updated.set()

    async with ClientSession(read_stream, write_stream, logging_callback=on_log, message_handler=on_message) as session:
        with anyio.fail_after(START_SECONDS):
            await session.initialize()
        with anyio.fail_after(START_SECONDS):
            yield Visit(session, logs, updated)


@asynccontextmanager
async def stdio_visit() -> AsyncIterator[Visit]:
    server = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], cwd=ROOT)
    async with stdio_client(server) as (read_stream, write_stream), visit(read_stream, write_stream) as guest:
        yield guest


def text_of(result: types.CallToolResult) -> str:
    assert isinstance(result.content[0], types.TextContent)
    return result.content[0].text


async def test_every_tool_explains_itself() -> None:
    async with stdio_visit() as guest:
        tools = (await guest.session.list_tools()).tools
    assert [tool.name for tool in tools] == [
        "echo",
        "add",
        "slow_count",
        "tool_error",
        "protocol_error",
        "postcard",
        "timetable",
        "plan_trip",
        "advance_board",
        "preferences",
        "every_field",
        "sign_in",
        "confirm_sign_in",
        "needs_sign_in",
        "write_caption",
        "describe_postcard",
        "ask_with_tools",
        "list_roots",
        "three_at_once",
        "book_ferry",
        "changes_its_mind",
        "parade",
        "voyage",
        "charter",
    ]
    changing = {"advance_board", "book_ferry", "sign_in", "confirm_sign_in", "needs_sign_in"}
    for tool in tools:
        assert tool.title and tool.description and tool.annotations, tool.name
        assert tool.annotations.read_only_hint is (tool.name not in changing)
        for name, schema in tool.input_schema["properties"].items():
            assert schema.get("description"), f"{tool.name}.{name}"
            assert "default" in schema or name in tool.input_schema["required"], f"{tool.name}.{name}"


async def test_tools_answer_with_text_with_data_and_with_errors() -> None:
    async with stdio_visit() as guest:
        assert text_of(await guest.call("echo", message="Ahoi ⚓")) == "Ahoi ⚓"
        assert (await guest.call("add", a=2, b=3)).structured_content == {"sum": 5}
        assert (await guest.call("add", a=0.5, b=1)).structured_content == {"sum": 1.5}
        assert (await guest.call("add", a=1e308, b=1e308)).is_error

        wrong = await guest.call("add", a="two", surprise=1)
        assert wrong.is_error
        for word in ("a", "b", "surprise"):
            assert f"- {word}" in text_of(wrong)

        failure = await guest.call("tool_error", reason="No wind.")
        assert failure.is_error and text_of(failure) == "No wind."
        with pytest.raises(MCPError, match="lunch") as abrupt:
            await guest.call("protocol_error")
        assert abrupt.value.code == -32000
        with pytest.raises(MCPError, match="Unknown tool") as unknown:
            await guest.call("teleport")
        assert unknown.value.code == types.INVALID_PARAMS


async def test_the_timetable_is_as_long_as_you_like() -> None:
    async with stdio_visit() as guest:
        usual = await guest.call("timetable")
        assert usual.structured_content is not None
        assert len(usual.structured_content["departures"]) == 1000
        assert json.loads(text_of(usual)) == usual.structured_content
        short = await guest.call("timetable", count=3)
        assert short.structured_content == {"departures": usual.structured_content["departures"][:3]}


async def test_a_trip_is_planned_from_a_nested_form() -> None:
    form: dict[str, Any] = {
        "destination": "tindra",
        "leaves_on": "2027-03-01",
        "returns_on": "2027-03-05",
        "wake_up_at": "06:30:00",
        "cabin": "suite",
        "travellers": [
            {"name": "Ida Vester", "born": "1990-05-04", "meals": "vegan"},
            {"name": "Bo", "born": "2019-01-01"},
        ],
        "stops": ["saltmere"],
        "budget": {"amount": 1000, "currency": "NOK"},
    }
    async with stdio_visit() as guest:
        plan = await guest.call("plan_trip", **form)
        assert plan.structured_content == {
            "reference": "NW-270301-TIN",
            "nights": 4,
            "travellers": 2,
            "legs": ["Nordwind Quay to Saltmere", "Saltmere to Tindra"],
            "total": 900.0,
            "currency": "NOK",
            "within_budget": True,
        }
        assert (await guest.call("plan_trip", **{**form, "returns_on": "2027-02-01"})).is_error
        assert (await guest.call("plan_trip", **{**form, "travellers": []})).is_error


async def test_a_postcard_carries_a_real_picture_and_a_real_sound() -> None:
    async with stdio_visit() as guest:
        text, image, sound, link, board, embedded = (await guest.call("postcard", destination="saltmere")).content
        assert isinstance(text, types.TextContent) and "Saltmere" in text.text
        assert isinstance(image, types.ImageContent) and isinstance(sound, types.AudioContent)
        picture = base64.b64decode(image.data)
        assert picture.startswith(b"\x89PNG\r\n\x1a\n") and picture.endswith(b"IEND\xaeB`\x82")
        assert struct.unpack(">II", picture[16:24]) == (240, 150)
        with wave.open(io.BytesIO(base64.b64decode(sound.data))) as recording:
            assert recording.getnframes() == 4800
        assert isinstance(link, types.ResourceLink) and isinstance(board, types.ResourceLink)
        assert isinstance(embedded, types.EmbeddedResource)
        for uri in (link.uri, board.uri, embedded.resource.uri):
            assert (await guest.session.read_resource(uri)).contents
        assert len((await guest.call("postcard", include=[])).content) == 1


async def test_slow_work_reports_progress_and_logs_as_loudly_as_asked() -> None:
    reports: list[tuple[float, float | None, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        reports.append((progress, total, message))

    async with stdio_visit() as guest:
        arguments = {"steps": 3, "delay": 0}
        result = await guest.session.call_tool("slow_count", arguments, progress_callback=on_progress)
        assert text_of(result) == "Counted 3 waves."
        await guest.session.send_ping()
        assert reports == [(1, 3, "Wave 1 of 3"), (2, 3, "Wave 2 of 3"), (3, 3, "Wave 3 of 3")]
        assert [entry.level for entry in guest.logs] == ["info", "info", "info", "notice"]
        assert {entry.logger for entry in guest.logs} == {"nordwind.desk"}
        expectations: list[tuple[types.LoggingLevel, list[str]]] = [
            ("notice", ["notice"]),
            ("error", []),
            ("debug", ["debug", "info", "info", "info", "notice"]),
        ]
        for level, expected in expectations:
            guest.logs.clear()
            await guest.session.set_logging_level(level)
            await guest.call("slow_count", **arguments)
            await guest.session.send_ping()
            assert [entry.level for entry in guest.logs] == expected


async def test_resources_are_listed_in_pages_and_read() -> None:
    async with stdio_visit() as guest:
        listed: list[types.Resource] = []
        pages, cursor = 0, None
        while pages == 0 or cursor is not None:
            page = await guest.session.list_resources(params=types.PaginatedRequestParams(cursor=cursor))
            listed, cursor, pages = listed + page.resources, page.next_cursor, pages + 1
        assert pages == 2
        expected = ["guide", "hours", "destinations", "board", "diary", "poster.png", "chime.wav"]
        assert [resource.name for resource in listed] == expected
        for resource in (each for each in listed if each.name != "diary"):  # that one asks first
            (content,) = (await guest.session.read_resource(resource.uri)).contents
            assert content.mime_type == resource.mime_type and content.uri == resource.uri
            binary = resource.uri.endswith((".png", ".wav"))
            assert isinstance(content, types.BlobResourceContents if binary else types.TextResourceContents)
        with pytest.raises(MCPError, match="cursor"):
            await guest.session.list_resources(params=types.PaginatedRequestParams(cursor="the middle"))

        templates = (await guest.session.list_resource_templates()).resource_templates
        assert [template.uri_template for template in templates] == [
            "desk://destinations/{slug}",
            "desk://departures/{slug}/{weekday}",
        ]
        (sailings,) = (await guest.session.read_resource("desk://departures/tindra/saturday")).contents
        assert isinstance(sailings, types.TextResourceContents)
        assert {line["destination"] for line in json.loads(sailings.text)} == {"Tindra"}
        for missing in ("desk://destinations/atlantis", "desk://nothing"):
            with pytest.raises(MCPError) as error:
                await guest.session.read_resource(missing)
            assert (error.value.code, error.value.data) == (-32002, {"uri": missing})


async def test_a_subscriber_hears_that_the_board_has_changed() -> None:
    async with stdio_visit() as guest:
        assert (await guest.call("advance_board")).structured_content == {"step": 1, "notified": 0}
        await guest.session.subscribe_resource("desk://board")
        assert (await guest.call("advance_board", steps=2)).structured_content == {"step": 3, "notified": 1}
        await guest.updated.wait()
        (board,) = (await guest.session.read_resource("desk://board")).contents
        assert isinstance(board, types.TextResourceContents)
        assert json.loads(board.text)["step"] == 3
        await guest.session.unsubscribe_resource("desk://board")
        assert (await guest.call("advance_board")).structured_content == {"step": 4, "notified": 0}


async def test_prompts_take_arguments_and_their_values_are_completed() -> None:
    async with stdio_visit() as guest:
        prompts = (await guest.session.list_prompts()).prompts
        assert [prompt.name for prompt in prompts] == [
            "plan_weekend",
            "caption_picture",
            "packing_list",
            "phrase_of_the_day",
        ]
        weekend = await guest.session.get_prompt("plan_weekend", {"destination": "saltmere", "mood": "festive"})
        wish = weekend.messages[0].content
        assert isinstance(wish, types.TextContent) and "Saltmere" in wish.text and "festive" in wish.text
        caption = await guest.session.get_prompt("caption_picture", {"destination": "tindra"})
        kinds = [message.content.type for message in caption.messages]
        assert kinds == ["text", "image", "resource", "text", "text"]
        assert len((await guest.session.get_prompt("phrase_of_the_day")).messages) == 1
        for name, arguments in (("plan_weekend", {}), ("plan_weekend", {"destination": "mars"}), ("nothing", {})):
            with pytest.raises(MCPError) as error:
                await guest.session.get_prompt(name, arguments)
            assert error.value.code == types.INVALID_PARAMS

        async def completed(
            ref: types.PromptReference | types.ResourceTemplateReference, name: str, value: str, **earlier: str
        ) -> list[str]:
            argument = {"name": name, "value": value}
            return (await guest.session.complete(ref, argument, context_arguments=earlier or None)).completion.values

        prompt = types.PromptReference(name="plan_weekend")
        template = types.ResourceTemplateReference(uri="desk://departures/{slug}/{weekday}")
        assert await completed(prompt, "destination", "S") == ["saltmere"]
        assert await completed(prompt, "mood", "") == ["festive", "quiet", "windswept"]
        assert await completed(template, "slug", "k") == ["kestrelholm"]
        assert await completed(template, "weekday", "", slug="tindra") == ["saturday"]
        assert await completed(template, "weekday", "s") == ["saturday", "sunday"]
        assert await completed(template, "nothing", "") == []


# --- streamable HTTP


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_http_serves_several_clients_and_leaves_while_they_are_connected(number: signal.Signals) -> None:
    async with raw_peer("--http", "--port", "0") as peer:
        with anyio.fail_after(START_SECONDS):
            url = (await peer.stdout.receive_until(b"\n", 200)).decode()
            assert url in await peer.stderr_line()
        assert url.startswith("http://127.0.0.1:") and url.endswith("/mcp")
        try:
            async with (
                streamable_http_client(url) as (read_one, write_one),
                visit(read_one, write_one) as one,
                streamable_http_client(url) as (read_two, write_two),
                visit(read_two, write_two) as two,
            ):
                assert text_of(await one.call("echo", message="hello")) == "hello"
                await one.session.set_logging_level("error")
                for guest in (one, two):
                    await guest.call("slow_count", steps=1, delay=0)
                    await guest.session.send_ping()
                assert (len(one.logs), len(two.logs)) == (0, 2)
                await two.session.subscribe_resource("desk://board")
                assert (await one.call("advance_board")).structured_content == {"step": 1, "notified": 1}
                await two.updated.wait()
                with anyio.fail_after(SOON_SECONDS):
                    peer.process.send_signal(number)
                    assert await peer.process.wait() == 0
                    assert "Traceback" not in await peer.stderr_rest()
        except* Exception as group:  # the clients lose their server: only a failed assertion is a failure
            if failures := group.subgroup((AssertionError, TimeoutError)):
                raise failures from None


async def test_a_taken_port_is_one_sentence() -> None:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        async with raw_peer("--http", "--port", str(port)) as peer:
            with anyio.fail_after(START_SECONDS):
                assert await peer.process.wait() == 1
                complaint = await peer.stderr_rest()
        assert str(port) in complaint and len(complaint.splitlines()) == 1
