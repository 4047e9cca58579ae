"""Pages carry no pictures of asks, and neither pages nor JSON are made for somebody who asked for the other (H12)."""

import base64
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from app.core.json import text as jsontext
from app.sessions import Session
from app.settings import Limits
from app.web.calls import result
from app.web.kit import frame
from tests.drive import RawPeer, call_tool, connected, until
from tests.web.asgi import Visitor
from tests.web.tabs import tab_of

Raw = Callable[..., RawPeer]
PICTURE = base64.b64encode(bytes(range(256)) * 4096).decode()
SAMPLE = {
    "messages": [
        {"role": "user", "content": {"type": "image", "mimeType": "image/png", "data": PICTURE}},
        {"role": "user", "content": {"type": "text", "text": "What is on it?"}},
    ],
    "maxTokens": 50,
}
LIGHT = 100_000


@pytest.fixture
async def pictured(victim: Session, raw: Raw) -> str:
    """A server that asks for a sampling with a picture of 1 MiB; the address of the ask."""
    ask = json.dumps({"jsonrpc": "2.0", "id": "q", "method": "sampling/createMessage", "params": SAMPLE})
    await connected(victim, raw().target)
    done = await call_tool(victim, "say", {"lines": [ask, '{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}']})
    assert done.state == "done"
    await until(victim, lambda: victim.open_asks == 1)
    return f"/s/{victim.id}/asks/{victim.inbox.open[0].id}"


@pytest.mark.requirement("H12")
async def test_h12_a_picture_in_a_sampling_request_is_in_no_page_but_its_own(
    victim: Session, client: Visitor, script: Visitor, limits: Limits, pictured: str
):
    for path in ("", "/calls", "/inbox", "/tools"):
        page = await client.get(f"/s/{victim.id}{path}")
        assert len(page.body) < LIGHT and PICTURE[:2000] not in page.text, path
        assert "What is on it?" in page.text and "image/png, 1.0 MB" in page.text
    tab = tab_of(victim, "overview", "", 0, limits)
    patch = tab.patch()
    assert patch is not None and "What is on it?" in patch.html and len(patch.html) < LIGHT
    assert len(tab.snapshot().html) < LIGHT
    fetched = await client.get(f"{pictured}?edit=1", hx_request="true")
    assert fetched.status == 200 and PICTURE in fetched.text and 'name="edit-maxTokens"' in fetched.text
    assert PICTURE in (await client.get(pictured)).text, "its own page has everything, also without JavaScript"
    assert (await script.json(pictured))["params"] == SAMPLE


@pytest.mark.requirement("H12", "R3-02")
async def test_h12_a_request_is_answered_and_edited_without_its_picture_on_the_page(
    victim: Session, client: Visitor, script: Visitor, pictured: str
):
    edited = {**SAMPLE, "maxTokens": 7}
    assert (await script.post(f"{pictured}/request", {"request": edited})).status == 200
    answer = await client.form(f"{pictured}/answer", {"action": "respond", "text": "A cat", "model": "me"})
    assert answer.status == 303
    ask = await script.json(pictured)
    assert ask["state"] == "answered" and ask["outcome"]["request"] == edited
    page = await client.get(f"/s/{victim.id}")
    assert "The request was edited before it was used" in page.text and len(page.body) < LIGHT
    assert (await client.get(f"{pictured}?edit=1", hx_request="true")).status == 404


@pytest.mark.requirement("H12")
@pytest.mark.parametrize(
    "path",
    [
        *(
            "",
            "/calls",
            "/calls/{call}",
            "/tasks",
            "/tools",
            "/resources",
            "/resources/templates",
            "/prompts",
            "/roots",
        ),
        *("/log", "/log/{seq}", "/logging", "/stderr", "/inbox", "/subscriptions", "/resources/one?uri=file:///a"),
    ],
)
async def test_h12_a_page_makes_no_json_and_json_makes_no_page(
    victim: Session, client: Visitor, script: Visitor, raw: Raw, monkeypatch: pytest.MonkeyPatch, path: str
):
    await connected(victim, raw().target)
    reply = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}'
    done = await call_tool(victim, "say", {"lines": [reply]})
    seq = victim.messages.last(1)[0].seq
    address = f"/s/{victim.id}{path.format(call=done.id, seq=seq)}"
    before = await script.json(address)

    def unwanted(*_: Any, **__: Any) -> Any:
        raise AssertionError("nobody asked for this")

    rooms = [module for name, module in list(sys.modules.items()) if name.startswith("app.web.")]
    askers = {"wants_json", "in_json", "is_json", "mcp_json"}
    json_makers = [
        (module, name)
        for module in rooms
        for name in vars(module)
        if name.endswith("_json") and name not in askers and not module.__name__.startswith("app.web.kit.")
    ]
    page_makers = [(module, "shell") for module in rooms if module is not frame and "shell" in vars(module)]
    page_makers.append((result, "shown_of"))
    assert len(json_makers) > 20 and len(page_makers) > 10
    with monkeypatch.context() as patched:
        for module, name in json_makers:
            patched.setattr(module, name, unwanted)
        assert (await client.get(address)).status == 200
    for module, name in page_makers:
        monkeypatch.setattr(module, name, unwanted)
    assert (await script.json(address)).keys() == before.keys()


@pytest.mark.requirement("H12")
async def test_h12_the_page_of_calls_parses_no_reply(
    victim: Session, client: Visitor, raw: Raw, monkeypatch: pytest.MonkeyPatch
):
    await connected(victim, raw().target)
    for _ in range(5):
        await call_tool(victim, "say", {"lines": ['{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}']})
    read: list[bytes] = []
    monkeypatch.setattr(jsontext, "parse", read.append)
    page = await client.get(f"/s/{victim.id}/calls")
    assert page.status == 200 and page.text.count('id="call-c') == 5
    assert read == []


@pytest.mark.requirement("H11", "H12")
async def test_h11_asks_with_very_much_in_them_do_not_make_every_page_heavy(
    victim: Session, client: Visitor, script: Visitor, raw: Raw
):
    """What a server writes into its asks stands on every page: a part of it there, the rest on the ask's own."""
    long = "a\u200b" * 15_000
    talk = [{"role": "user", "content": {"type": "text", "text": f"Turn {number}"}} for number in range(20_000)]
    form = {"message": long, "requestedSchema": {"type": "object", "properties": {}}}
    asked = [("elicitation/create", form)] * 30 + [("sampling/createMessage", {"messages": talk, "maxTokens": 5})]
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": f"q{number}", "method": method, "params": params})
        for number, (method, params) in enumerate(asked)
    ]
    await connected(victim, raw().target)
    for line in lines:
        await call_tool(victim, "say", {"lines": [line, '{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}']})
    await until(victim, lambda: victim.open_asks == len(asked))
    page = await client.get(f"/s/{victim.id}")
    assert len(page.body) < 2_500_000, len(page.body)
    assert "more characters" in page.text and "19 960 earlier messages are not shown here" in page.text.replace(
        "\u202f", " "
    )
    assert "Turn 19999" in page.text and "Turn 19000<" not in page.text
    sampling = next(ask for ask in victim.inbox.open if ask.kind == "sampling")
    alone = await client.get(f"/s/{victim.id}/asks/{sampling.id}")
    assert "Turn 19000" in alone.text
    assert (await script.json(f"/s/{victim.id}/asks/{sampling.id}"))["params"]["messages"] == talk
