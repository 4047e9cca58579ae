"""What both providers are sent of a request of MCP, to the letter, and what is made of each way to answer it."""

import base64
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app import bounds
from app.egress import Egress
from app.models import Finished, Model, ModelFault, Writing, written
from app.policy import Policy
from tests.models.conftest import Providers
from tests.models.test_providers import ASKED, BOTH, HANG, KEY, TOOL, answered

PICTURE = base64.b64encode(b"not really a picture").decode()
IMAGE = {"type": "image", "data": PICTURE, "mimeType": "image/png"}
SOUND = {"type": "audio", "data": PICTURE, "mimeType": "audio/wav"}
USE = {"type": "tool_use", "id": "u1", "name": "weather", "input": {"city": "Oslo"}}


def said(*blocks: Any, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


async def sent(providers: Providers, provider: str, model: str = "words", **params: Any) -> tuple[dict[str, Any], Any]:
    """The body that the provider got, and what came of it."""
    *_, last = await answered(providers, provider, model, {**ASKED, **params})
    return providers.next()["body"], last


async def refused(providers: Providers, provider: str, **params: Any) -> str:
    """Why a request was not sent at all."""
    with pytest.raises(ModelFault) as fault:
        await answered(providers, provider, "words", {**ASKED, **params})
    assert fault.value.kind == "refused"
    await answered(providers, provider, "words")
    assert "Describe the harbour" in str(providers.next()["body"]), "the first one that arrived is the next one"
    return str(fault.value)


# ---------------------------------------------------------------------------------------------------- what is asked


@BOTH
@pytest.mark.requirement("R3-08", "R3-12")
@pytest.mark.parametrize("mode", ["auto", "required", "none", None])
async def test_the_tool_choice_of_mcp_is_the_one_of_the_provider(providers: Providers, provider: str, mode: str | None):
    choice: dict[str, Any] = {} if mode is None else {"toolChoice": {"mode": mode}}
    body, _ = await sent(providers, provider, tools=[TOOL], **choice)
    wanted: Any = {"auto": "auto", "required": "any", "none": "none", None: "auto"}[mode]
    if provider == "openai":
        assert body["tool_choice"] == {"any": "required"}.get(wanted, wanted)
        assert body["tools"][0]["function"]["name"] == "weather"
        assert body["tools"][0]["function"]["parameters"]["properties"] == {"city": {}}
    else:
        assert body["tool_choice"] == {"type": wanted}
        assert body["tools"][0]["input_schema"]["properties"] == {"city": {}}


@BOTH
async def test_a_tool_choice_without_tools_is_none(providers: Providers, provider: str):
    body, _ = await sent(providers, provider, toolChoice={"mode": "required"})
    assert "tool_choice" not in body and "tools" not in body


@BOTH
@pytest.mark.requirement("R3-05", "R3-06", "R3-07")
async def test_tool_uses_and_their_results_go_round(providers: Providers, provider: str):
    gave = {
        "type": "tool_result",
        "toolUseId": "u1",
        "isError": True,
        "content": [text("rain"), {"type": "resource_link", "uri": "file:///map", "name": "map"}, IMAGE],
    }
    other = {"type": "tool_result", "toolUseId": "u2", "content": [text("x")], "structuredContent": {"metres": 2}}
    history = [
        said(text("Weather?")),
        said(text("I look"), USE, {**USE, "id": "u2", "name": "tide"}, role="assistant"),
        said(gave, other),
    ]
    body, _ = await sent(providers, provider, messages=history, tools=[TOOL, {**TOOL, "name": "tide"}])
    if provider == "openai":
        uses = body["messages"][1]["tool_calls"]
        assert [(one["id"], one["function"]["name"]) for one in uses] == [("u1", "weather"), ("u2", "tide")]
        results = [one for one in body["messages"] if one["role"] == "tool"]
        assert [one["tool_call_id"] for one in results] == ["u1", "u2"]
        assert "error" in results[0]["content"], "the model learns that the tool failed"
    else:
        uses = [one for one in body["messages"][1]["content"] if one["type"] == "tool_use"]
        assert [(one["id"], one["name"], one["input"]) for one in uses] == [
            ("u1", "weather", {"city": "Oslo"}),
            ("u2", "tide", {"city": "Oslo"}),
        ]
        results = [one for one in body["messages"][2]["content"] if one["type"] == "tool_result"]
        assert [(one["tool_use_id"], one["is_error"]) for one in results] == [("u1", True), ("u2", False)]
    for part in ("rain", "file:///map", PICTURE, "metres"):
        assert part in str(body), part


@BOTH
@pytest.mark.requirement("R3-05")
async def test_what_a_provider_cannot_carry_is_said_and_not_sent(providers: Providers, provider: str):
    ogg = {**SOUND, "mimeType": "audio/ogg"}
    for messages, words in (
        ([], "no message"),
        ([said(text("Look")), said(IMAGE, role="assistant")], "an image that the assistant said"),
        ([said({**IMAGE, "data": "%%%"})], "not base64"),
        ([said({**IMAGE, "mimeType": "text/html"})], "'text/html'"),
        ([said({"type": "video", "data": ""})], "'video'"),
        ([said(ogg)], "no sound" if provider == "anthropic" else "audio/ogg"),
    ):
        assert words in await refused(providers, provider, messages=messages), words
    if provider == "anthropic":
        assert "no sound" in await refused(providers, provider, messages=[said(SOUND)])
    else:
        body, _ = await sent(providers, provider, messages=[said(text("Hear"), SOUND)])
        assert body["messages"][0]["content"][1]["input_audio"] == {"data": PICTURE, "format": "wav"}


@BOTH
@pytest.mark.requirement("R3-11")
async def test_what_only_steers_and_cannot_be_sent_is_left_out_and_said(providers: Providers, provider: str):
    body, last = await sent(
        providers,
        provider,
        includeContext="allServers",
        metadata={"user_id": "u-1", "depth": {"a": 1}},
        _meta={"progressToken": "secret-progress"},
        modelPreferences={"hints": [{"name": "hint-hint"}]},
    )
    assert body["metadata"] == {"user_id": "u-1"}
    assert last.notes == (
        "The context of allServers was not included.",
        "The provider has no place for metadata depth, which was left out.",
    )
    assert "secret-progress" not in str(body) and "hint-hint" not in str(body)


@pytest.mark.requirement("R3-12")
async def test_what_is_compatible_gets_the_older_name_of_max_tokens(providers: Providers):
    body, _ = await sent(providers, "openai")
    assert body["max_tokens"] == 50 and "max_completion_tokens" not in body
    body, last = await sent(providers, "openai", "o3-words", temperature=0.5)
    assert body["max_completion_tokens"] == 50 and "max_tokens" not in body
    assert "temperature" not in body and last.notes == ("o3-words-1 takes no temperature, so it was left out.",)


@BOTH
async def test_a_conversation_that_the_assistant_begins_keeps_its_system_prompt(providers: Providers, provider: str):
    messages = [said(text("Hello, I am here."), role="assistant"), said(text("Go on"))]
    body, _ = await sent(providers, provider, messages=messages, systemPrompt="Be brief")
    assert "Be brief" in str(body) and "Hello, I am here." in str(body)


@BOTH
@pytest.mark.requirement("S21")
async def test_nothing_of_the_environment_goes_to_a_provider(
    providers: Providers, provider: str, monkeypatch: pytest.MonkeyPatch
):
    names = "ANTHROPIC_AUTH_TOKEN ANTHROPIC_API_KEY OPENAI_API_KEY OPENAI_ORG_ID OPENAI_PROJECT_ID OPENAI_ADMIN_KEY"
    for name in names.split():
        monkeypatch.setenv(name, f"of-the-environment-{name}")
    headers = "Authorization: Bearer of-the-environment\nX-Mine: of-the-environment"
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", headers)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://of-the-environment.invalid")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://of-the-environment.invalid")
    model = Model.model_validate({"provider": provider, "base_url": providers.url(provider), "model": "words-1"})
    for key in (KEY, ""):
        egress = Egress(Policy())
        [piece async for piece in written(model, key, ASKED, egress)]
        await egress.aclose()
        asked = providers.next()
        assert asked["key"] == key and "of-the-environment" not in str(asked)
        assert {"authorization", "x-api-key"} & set(asked["headers"]) == (
            set() if not key else {"authorization" if provider == "openai" else "x-api-key"}
        )
        assert not [name for name in asked["headers"] if "stainless" in name], "nobody learns what machine this is"


# ------------------------------------------------------------------------------------------------- what is answered


@BOTH
@pytest.mark.requirement("R3-09")
@pytest.mark.parametrize(
    ("how", "stop"), [("words", "endTurn"), ("long", "maxTokens"), ("stops", "stopSequence"), ("tool", "toolUse")]
)
async def test_the_stop_reasons_are_those_of_mcp(providers: Providers, provider: str, how: str, stop: str):
    _, last = await sent(providers, provider, how, tools=[TOOL])
    # OpenAI does not tell the end of a turn from a stop sequence.
    assert last.result["stopReason"] == ("endTurn" if (how, provider) == ("stops", "openai") else stop)
    assert last.result["role"] == "assistant" and last.result["model"].endswith("-2026"), "the model really used"


@BOTH
@pytest.mark.requirement("R3-09")
async def test_text_and_several_tool_uses_are_a_list(providers: Providers, provider: str):
    _, last = await sent(providers, provider, "both", tools=[TOOL, {**TOOL, "name": "tide"}])
    first, *uses = last.result["content"]
    assert first == text("A boat on the fjord.")
    assert [(one["type"], one["id"], one["name"], one["input"]) for one in uses] == [
        ("tool_use", "call_1", "weather", {"city": "Bergen"}),
        ("tool_use", "call_2", "tide", {"city": "Bergen"}),
    ]
    assert last.result["stopReason"] == "toolUse"


@BOTH
@pytest.mark.requirement("R3-23")
async def test_slow_tokens_are_shown_as_they_come(providers: Providers, provider: str):
    """The first words are there while the provider holds back the others."""
    model = Model.model_validate({"provider": provider, "base_url": providers.url(provider), "model": "stamp-1"})
    egress = Egress(Policy())
    with anyio.fail_after(HANG):
        pieces = written(model, KEY, ASKED, egress)
        first = await anext(pieces)
        assert isinstance(first, Writing) and first.text.startswith("at=")
        assert "body" in await anyio.to_thread.run_sync(providers.next)
        await pieces.aclose()
        assert (await anyio.to_thread.run_sync(providers.next))["left"], "closing it ends the request"
    await egress.aclose()


@BOTH
@pytest.mark.parametrize(
    ("how", "kind", "words"),
    [
        ("key", "key", "refused the key. Incorrect API key provided: •••."),
        ("limit", "limit", "too many requests. Rate limit reached for •••"),
        ("busy", "failed", "Overloaded, •••"),
        ("bad", "refused", "max_tokens: far too large for •••"),
        ("failing", "failed", "The engine broke, •••"),
        ("cut", "cut", "cut off"),
        ("filter", "filtered", "content filter"),
        ("refusal", "filtered", "content filter"),
        ("args", "failed", "weather, with input that is no JSON object"),
    ],
)
@pytest.mark.requirement("S21")
async def test_each_failure_is_a_sentence_in_the_provider_s_words_without_the_key(
    providers: Providers, provider: str, how: str, kind: str, words: str
):
    with pytest.raises(ModelFault) as failed:
        await answered(providers, provider, how, {**ASKED, "tools": [TOOL]})
    assert (failed.value.kind, words in str(failed.value)) == (kind, True), str(failed.value)
    assert KEY not in str(failed.value) and KEY[-4:] not in str(failed.value)
    assert failed.value.retry_after == (7.0 if how in ("limit", "busy") else None)


@BOTH
async def test_a_provider_that_stays_silent_is_given_up(
    providers: Providers, provider: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(bounds, "MODEL_SECONDS", 0.2)
    for how in ("mute", "stamp"):
        with pytest.raises(ModelFault) as failed:
            await answered(providers, provider, how)
        assert failed.value.kind == "timeout" and "0.2 seconds" in str(failed.value)


@BOTH
async def test_an_answer_without_end_is_given_up(providers: Providers, provider: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bounds, "MODEL_WIRE_BYTES", 100_000)
    with pytest.raises(ModelFault) as failed:
        await answered(providers, provider, "endless")
    assert failed.value.kind == "failed" and "more than Parley reads" in str(failed.value)


@BOTH
async def test_nobody_there_is_said(provider: str):
    model = Model.model_validate({"provider": provider, "base_url": "http://127.0.0.1:9/v1", "model": "m"})
    egress = Egress(Policy())
    with pytest.raises(ModelFault) as failed:
        [piece async for piece in written(model, KEY, ASKED, egress)]
    assert failed.value.kind == "unreachable" and "nothing listens" in str(failed.value)
    await egress.aclose()


async def test_a_key_that_is_none_is_said_and_not_sent():
    model = Model.model_validate({"provider": "openai", "base_url": "http://127.0.0.1:9/v1", "model": "m"})
    egress = Egress(Policy())
    for key in ("clé-secrète", "two words", "line\nbreak"):
        with pytest.raises(ModelFault) as failed:
            [piece async for piece in written(model, key, ASKED, egress)]
        assert failed.value.kind == "key" and key not in str(failed.value)


START = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": {"input_tokens": 1}}
ODD = [
    'data: {"model": "m", "choices": [{"index": 0, "delta": {"content": "A boat"}}]}\n\n',
    f"event: message_start\ndata: {json.dumps({'type': 'message_start', 'message': START})}\n\n",
    "",
    "data: [DONE]\n\n",
    "data: {\n\n",
    "data: 5\n\n",
    "data: []\n\n",
    "data: {}\n\n",
    'data: {"choices": 3}\n\n',
    'data: {"choices": [{"delta": 7}]}\n\n',
    'data: {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0}]}, "finish_reason": "tool_calls"}]}\n\n',
    'event: message_start\ndata: {"type": "message_start"}\n\n',
    'event: message_start\ndata: {"type": "message_start", "message": 1}\n\n',
    'event: content_block_delta\ndata: {"type": "content_block_delta", "index": 9, "delta": {}}\n\n',
    'event: error\ndata: "no"\n\n',
    "<html>Welcome to the hotel's network</html>",
]


@BOTH
@pytest.mark.parametrize("odd", ODD)
async def test_odd_bytes_are_a_failure_in_a_sentence(providers: Providers, provider: str, odd: str):
    asked = {**ASKED, "messages": [said(text(odd or " "))]}
    with pytest.raises(ModelFault) as failed:
        await answered(providers, provider, "raw", asked)
    assert failed.value.kind in ("cut", "failed", "refused") and str(failed.value).rstrip("•").strip()


TOKENS = st.sampled_from(
    ["data: ", "event: ", "\n", "\n\n", "{", "}", "[", "]", '"choices"', '"type"', ":", ",", '"', "0"]
)


async def test_a_provider_that_never_says_why_an_answer_ends_is_taken_at_its_word(providers: Providers):
    chunk = 'data: {"model": "m", "choices": [{"index": 0, "delta": {"content": "A boat"}}]}\n\n'
    _, last = await sent(providers, "openai", "raw", messages=[said(text(f"{chunk}data: [DONE]\n\n"))])
    assert (last.result["content"], last.result["stopReason"]) == (text("A boat"), "endTurn")
    assert last.notes == ("The provider did not say why the answer ends.",)


@BOTH
@given(pieces=st.lists(st.one_of(TOKENS, st.text(max_size=8)), max_size=30))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_provider_sends_there_is_an_answer_or_a_sentence(
    providers: Providers, provider: str, pieces: list[str]
):
    async def run() -> None:
        asked = {**ASKED, "messages": [said(text("".join(pieces) or " "))]}
        try:
            *_, last = await answered(providers, provider, "raw", asked)
            assert isinstance(last, Finished)
        except ModelFault as fault:
            assert str(fault)

    anyio.run(run)


# ------------------------------------------------------------------------------------------- the way out, the import


@pytest.mark.parametrize(
    ("url", "mode", "words"),
    [
        ("http://169.254.169.254/v1", "local", "metadata"),
        ("http://[fd00:ec2::254]/v1", "local", "metadata"),
        ("http://0.0.0.0:11434/v1", "local", "not the address of one machine"),
        ("http://127.0.0.1:6280/v1", "local", "this Parley itself"),
        ("http://127.0.0.1:11434/v1", "team", "not a public address"),
        ("http://10.0.0.7/v1", "team", "not a public address"),
        ("http://192.168.1.4/v1", "team", "not a public address"),
        ("http://127.0.0.1:11434/v1", "demo", "dials no addresses"),
    ],
)
@pytest.mark.requirement("S23")
async def test_a_provider_is_dialled_where_a_server_would_be(url: str, mode: Any, words: str):
    egress = Egress(Policy(mode=mode, own_ports={6280}))
    for provider in ("openai", "anthropic"):
        model = Model.model_validate({"provider": provider, "base_url": url, "model": "m"})
        with pytest.raises(ModelFault) as failed:
            [piece async for piece in written(model, KEY, ASKED, egress)]
        assert failed.value.kind == "unreachable" and words in str(failed.value)


def test_a_model_on_loopback_may_be_dialled_in_local_mode():
    assert Policy().refusal("localhost", "127.0.0.1", 11434) is None
    assert Policy().refusal("localhost", "::1", 11434) is None


async def test_without_the_extra_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch):
    ours = ("app.models.provider", "app.models.asking", "app.models.by_openai", "app.models.by_anthropic")
    for name in [name for name in sys.modules if name in ours]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    model = Model(provider="openai", model="m")
    with pytest.raises(ModelFault) as missing:
        [piece async for piece in written(model, KEY, ASKED, Egress(Policy()))]
    assert missing.value.kind == "missing" and "pip install" in str(missing.value)
    *_, last = [piece async for piece in written(Model(provider="echo"), "", ASKED, Egress(Policy()))]
    assert isinstance(last, Finished), "offline ones work without it"


def test_nobody_who_has_no_model_imports_the_clients():
    code = (
        "import sys, app.cli, app.server, app.web.app, app.web.routes, app.sessions, app.models\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('pydantic_ai', 'openai', 'anthropic')])"
    )
    root = Path(importlib.import_module("app").__file__ or "").parents[1]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, env={**os.environ})
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr
