"""Requests of MCP put to stand-ins of both providers' wire formats: what is asked, what is answered, how it fails."""

import base64
import itertools
from typing import Any

import anyio
import pytest

from app.egress import Egress
from app.models import Finished, Model, ModelFault, Writing, written
from app.policy import Policy
from tests.models.conftest import Providers

BOTH = pytest.mark.parametrize("provider", ["openai", "anthropic"])
HANG = 300
"""The clients of providers are imported on first use, which takes its time on a busy machine."""
KEY = "sk-canary-0123456789abcdef"
ASKED: dict[str, Any] = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "Describe the harbour"}}],
    "maxTokens": 50,
}
TOOL = {"name": "weather", "description": "Tells it", "inputSchema": {"type": "object", "properties": {"city": {}}}}


async def answered(providers: Providers, provider: str, how: str, params: dict[str, Any] | None = None) -> list[Any]:
    model = Model.model_validate({"provider": provider, "base_url": providers.url(provider), "model": f"{how}-1"})
    egress = Egress(Policy())
    try:
        with anyio.fail_after(HANG):
            return [piece async for piece in written(model, KEY, params or ASKED, egress)]
    finally:
        await egress.aclose()


@BOTH
@pytest.mark.requirement("R3-09")
async def test_the_text_comes_in_pieces_and_then_whole(providers: Providers, provider: str):
    *pieces, last = await answered(providers, provider, "words")
    texts = [piece.text for piece in pieces if isinstance(piece, Writing)]
    assert len(texts) >= 3 and texts[-1] == "A boat on the fjord."
    assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(texts))
    assert isinstance(last, Finished)
    assert last.result == {
        "role": "assistant",
        "content": {"type": "text", "text": "A boat on the fjord."},
        "model": "words-1-2026",
        "stopReason": "endTurn",
    }
    assert (last.usage.input_tokens, last.usage.output_tokens) == (11, 5)
    asked = providers.next()
    assert asked["key"] == KEY and asked["body"]["stream"] is True
    assert 50 in (asked["body"].get("max_tokens"), asked["body"].get("max_completion_tokens"))


@BOTH
@pytest.mark.requirement("R3-05", "R3-06", "R3-07")
async def test_everything_that_mcp_asks_for_reaches_the_provider(providers: Providers, provider: str):
    picture = base64.b64encode(b"not really a picture").decode()
    use = {"type": "tool_use", "id": "u1", "name": "weather", "input": {"city": "Oslo"}}
    gave = {"type": "tool_result", "toolUseId": "u1", "content": [{"type": "text", "text": "rain"}]}
    await answered(
        providers,
        provider,
        "words",
        {
            "systemPrompt": "Be brief",
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "Look"},
                        {"type": "image", "data": picture, "mimeType": "image/png"},
                    ],
                },
                {"role": "assistant", "content": [{"type": "text", "text": "I ask"}, use]},
                {"role": "user", "content": [gave]},
            ],
            "maxTokens": 50,
            "temperature": 0.25,
            "stopSequences": ["END"],
            "tools": [TOOL],
            "toolChoice": {"mode": "required"},
        },
    )
    body = providers.next()["body"]
    text = str(body)
    for part in ("Be brief", "Look", picture, "I ask", "Oslo", "rain", "weather", "Tells it"):
        assert part in text, part
    assert body["temperature"] == 0.25
    assert body.get("stop", body.get("stop_sequences")) == ["END"]
    assert body["tool_choice"] in ("required", {"type": "any"}) or body["tool_choice"]["type"] == "any"


@BOTH
@pytest.mark.requirement("R3-08", "R3-09")
async def test_a_tool_use_is_one_of_mcp(providers: Providers, provider: str):
    *_, last = await answered(providers, provider, "tool", {**ASKED, "tools": [TOOL]})
    assert isinstance(last, Finished)
    assert last.result["stopReason"] == "toolUse"
    assert last.result["content"] == {
        "type": "tool_use",
        "id": "call_1",
        "name": "weather",
        "input": {"city": "Bergen"},
    }


@BOTH
@pytest.mark.parametrize(
    ("how", "kind", "words"),
    [
        ("key", "key", "refused the key"),
        ("limit", "limit", "too many requests"),
        ("cut", "cut", "cut off"),
        ("filter", "filtered", "content filter"),
    ],
)
async def test_what_fails_says_why_and_never_the_key(
    providers: Providers, provider: str, how: str, kind: str, words: str
):
    with pytest.raises(ModelFault) as failed:
        await answered(providers, provider, how)
    assert (failed.value.kind, words in str(failed.value)) == (kind, True), str(failed.value)
    assert KEY not in str(failed.value) and KEY[-4:] not in str(failed.value)
    providers.next()


@BOTH
async def test_one_attempt_and_no_other(providers: Providers, provider: str):
    with pytest.raises(ModelFault):
        await answered(providers, provider, "limit-a")
    assert providers.next()["body"]["model"] == "limit-a-1"
    await answered(providers, provider, "words")
    assert providers.next()["body"]["model"] == "words-1", "the refused one was not sent again"


@BOTH
@pytest.mark.requirement("R1-60")
async def test_who_stops_listening_ends_the_request(providers: Providers, provider: str):
    model = Model.model_validate({"provider": provider, "base_url": providers.url(provider), "model": "mute-1"})
    egress = Egress(Policy())
    async with anyio.create_task_group() as group:

        async def listen() -> None:
            async for _ in written(model, KEY, ASKED, egress):
                raise AssertionError("it says nothing")

        group.start_soon(listen)
        asked = await anyio.to_thread.run_sync(providers.next)
        assert asked["body"]["model"] == "mute-1"
        group.cancel_scope.cancel()
    with anyio.fail_after(30):
        assert (await anyio.to_thread.run_sync(providers.next))["left"]
    await egress.aclose()


@BOTH
async def test_a_model_is_dialled_by_the_guard_of_servers(provider: str):
    model = Model.model_validate({"provider": provider, "base_url": "http://169.254.169.254/v1", "model": "m"})
    egress = Egress(Policy())
    with pytest.raises(ModelFault) as refused:
        [piece async for piece in written(model, KEY, ASKED, egress)]
    assert refused.value.kind == "unreachable" and "metadata" in str(refused.value)


async def test_offline_models_need_nobody():
    egress = Egress(Policy(mode="demo"))
    for provider, wanted in (("echo", "Describe the harbour"), ("canned", "This is the canned answer.")):
        *pieces, last = [
            piece async for piece in written(Model.model_validate({"provider": provider}), "", ASKED, egress)
        ]
        assert isinstance(last, Finished) and last.result["content"]["text"] == wanted
        assert last.result["model"] == f"parley-{provider}"
        assert [piece.text for piece in pieces if isinstance(piece, Writing)][-1] == wanted
    *_, last = [
        piece
        async for piece in written(Model.model_validate({"provider": "script"}), "", {**ASKED, "maxTokens": 3}, egress)
    ]
    assert isinstance(last, Finished)
    assert last.result["stopReason"] == "maxTokens" and len(last.result["content"]["text"].split()) == 3
