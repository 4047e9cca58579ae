"""Models in the page: both checkpoints by the card, tool uses by a form, and the page where models are added."""

import html
import json
import re
from typing import Any

import pytest

from app.core.asks import Ask
from app.sessions import Session
from tests.drive import call_tool, connected, until
from tests.models.conftest import Providers
from tests.models.conftest import providers as providers
from tests.web.asgi import Answer, Visitor
from tests.web.calls.test_blobs import SVG, WAV, coded, png, sha
from tests.web.models.test_drafts import Raw, asked, replied
from tests.web.models.test_models import DONE, KEY, drafted, own

HTMX = {"hx_request": "true"}
WEATHER = {
    "name": "weather",
    "description": "<b>Weather</b>",
    "inputSchema": {
        "type": "object",
        "properties": {
            "city": {"$ref": "#/$defs/place"},
            "days": {"type": "integer", "minimum": 1},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["city"],
        "$defs": {"place": {"type": "string", "minLength": 2}},
    },
}
TIDE = {"name": "tide", "inputSchema": {"type": "object", "properties": {}}}


def text(answer: Answer) -> str:
    return " ".join(html.unescape(answer.text).split())


# ------------------------------------------------------------------------------------------- pictures and sounds


@pytest.mark.requirement("R3-05", "S33")
async def test_pictures_and_sounds_of_a_request_are_shown_from_their_own_address(
    victim: Session, client: Visitor, mallory: Visitor, raw: Raw
):
    nested = {"type": "image", "mimeType": "image/png", "data": coded(png() + b"2")}
    use = {"type": "tool_use", "id": "u", "name": "tide", "input": {}}
    spoken = [
        {"type": "text", "text": "What is this?"},
        {"type": "image", "mimeType": "image/png", "data": coded(png())},
        {"type": "audio", "mimeType": "audio/wav", "data": coded(WAV)},
        {"type": "image", "mimeType": "image/svg+xml", "data": coded(SVG)},
        {"type": "image", "mimeType": "image/png", "data": coded(b"<script>alert(1)</script>")},
    ]
    messages = [
        {"role": "user", "content": spoken},
        {"role": "assistant", "content": use},
        {"role": "user", "content": [{"type": "tool_result", "toolUseId": "u", "content": [nested]}]},
    ]
    address, found = await asked(victim, raw(), messages=messages, tools=[TIDE])
    base = f"/s/{victim.id}/blobs"
    for page in (address, f"/s/{victim.id}/inbox"):
        drawn = (await client.get(page)).text
        assert drawn.count("<img ") == 2 and drawn.count("<audio ") == 1
        for shown in (png(), WAV, png() + b"2"):
            assert f'src="{base}/{sha(shown)}?ask={found.id}"' in drawn
        assert coded(png()) not in drawn or page == address, "no bytes are in the page of an inbox"
        assert "alert(1)" not in drawn and "Not shown" in drawn
    answer = await client.get(f"{base}/{sha(png())}?ask={found.id}")
    assert (answer.status, answer.body, answer.header("content-type")) == (200, png(), "image/png")
    assert answer.header("content-security-policy") == "sandbox; default-src 'none'"
    answer = await client.get(f"{base}/{sha(SVG)}?ask={found.id}")
    assert (answer.header("content-disposition") or "").startswith("attachment")
    for wrong in (f"{sha(png())}?ask=a99", f"{'0' * 64}?ask={found.id}", f"x?ask={found.id}", sha(png())):
        assert (await client.get(f"{base}/{wrong}")).status == 404
    assert (await mallory.get(f"{base}/{sha(png())}?ask={found.id}")).status == 404


# --------------------------------------------------------------------------------------------------- both checkpoints


@pytest.mark.requirement(
    "R3-02", "R3-03", "R3-10", "S001 modifications", "S001 forwardSamplingToLLM", "S001 integration 2",
    "S001 approval component", "S001 integration 3",
)  # fmt: skip
async def test_both_checkpoints_by_the_card_with_an_edit_at_each(
    victim: Session, script: Visitor, client: Visitor, raw: Raw, providers: Providers
):
    peer = raw()
    hints = {"hints": [{"name": "words"}, {"name": "nobody"}], "costPriority": 0.5}
    address, found = await asked(victim, peer, temperature=0.5, modelPreferences=hints)
    await script.post(f"/s/{victim.id}/models", own(providers))
    page = text(await client.get(address))
    assert re.search(r'value="mine" checked><code>mine</code>.*?matches hint 1', page), "the first hint that fits"
    assert "no such model here" in page and 'data-step="request"' in page and "Add a model…" in page
    typed = {"as": "model", "by": "mine", "edit-0-0": "A title?", "edit-maxTokens": "many"}
    refused = await client.form(f"{address}/draft", typed, **HTMX)
    assert refused.status == 422 and "whole number" in refused.text and 'value="many"' in refused.text
    assert 'value="model" checked' in refused.text and found.draft is None
    begun = await client.form(f"{address}/draft", {**typed, "edit-maxTokens": "30"}, **HTMX)
    assert begun.status == 204 and found.edited is not None
    await drafted(victim, found, "ready")
    body = providers.next()["body"]
    assert "A title?" in str(body) and body["max_tokens"] == 30, "the edited request is what is used"
    page = text(await client.get(address))
    assert 'data-step="answer"' in page and "<del>caption?</del><ins>title?</ins>" in page and "2 edits" in page
    assert "A boat on the fjord." in page and "words-1-2026" in page and "11 in, 5 out" in page
    sent = {"as": "model", "action": "respond", "draft": "1", "block-0": "A boat on the quiet fjord."}
    late = await client.form(f"{address}/answer", {**sent, "draft": "7"}, **HTMX)
    assert late.status == 422 and "Another draft came meanwhile" in late.text
    assert "A boat on the quiet fjord." in late.text, "what was typed stays"
    assert (await client.form(f"{address}/answer", sent, **HTMX)).status == 200
    result = (await replied(victim, peer))["result"]
    assert result["content"] == {"type": "text", "text": "A boat on the quiet fjord."}
    assert (result["model"], result["stopReason"]) == ("words-1-2026", "endTurn")
    for place in (f"/s/{victim.id}", address, f"/s/{victim.id}/calls/c1"):
        assert "answered by mine, edited" in text(await client.get(place)), place
    page = text(await client.get(address))
    assert "mine wrote it, and it was edited before it left" in page
    assert "<ins>quiet </ins>" in page and "As the server sent it" in page and "11 in, 5 out" in page
    drawn = text(await client.get(f"/s/{victim.id}/calls/c1"))
    assert "mine writes" in drawn and "the draft, to check" in drawn
    assert "mine, edited by you" in text(await client.get(f"/s/{victim.id}/timeline?view=table"))


@pytest.mark.requirement("R3-03", "R3-20", "R3-22")
async def test_what_cannot_be_sent_yet_says_so_and_either_checkpoint_denies(
    victim: Session, script: Visitor, client: Visitor, raw: Raw, providers: Providers
):
    peer = raw()
    address, found = await asked(victim, peer)
    send = {"as": "model", "action": "respond"}
    assert "Send the request to one first" in (await client.form(f"{address}/answer", send, **HTMX)).text
    await script.post(f"/s/{victim.id}/models", own(providers, "mute"))
    assert (await client.form(f"{address}/draft", {"by": "mine"})).status == 303, "without script as well"
    assert "still writing" in (await client.form(f"{address}/answer", send, **HTMX)).text
    assert "answered by" not in text(await client.get(f"/s/{victim.id}/calls/c1"))
    assert (await client.form(f"{address}/draft/stop", {"as": "model"}, **HTMX)).status == 204
    page = text(await client.get(address))
    assert "Model stopped" in page and "Another model…" in page and "Write it yourself" in page
    assert (await client.form(f"{address}/draft", {"by": "nobody"}, **HTMX)).status == 422
    assert (await client.form(f"{address}/draft", {"again": "canned"}, **HTMX)).status == 204
    await drafted(victim, found, "ready")
    assert (await client.form(f"{address}/answer", {**send, "action": "decline"}, **HTMX)).status == 200
    assert (await replied(victim, peer))["error"]["code"] == -1
    page = text(await client.get(address))
    assert "Draft of canned, not sent" in page and "denied by" not in page, "what was written stays, and was not sent"
    assert (await client.form(f"{address}/draft", {"by": "canned"}, **HTMX)).status == 409


async def test_an_answer_by_hand_is_not_the_model_s(victim: Session, client: Visitor, raw: Raw):
    address, found = await asked(victim, raw())
    await client.form(f"{address}/draft", {"by": "echo"}, **HTMX)
    await drafted(victim, found, "ready")
    typed = {"as": "text", "action": "respond", "text": "Mine alone", "model": "human"}
    assert (await client.form(f"{address}/answer", typed, **HTMX)).status == 200
    page = text(await client.get(address))
    assert "wrote it" not in page and "answered by" not in page and "Draft of echo, not sent" in page


@pytest.mark.parametrize(("how", "words"), [("limit", "Rate limit reached."), ("key", "The key was refused.")])
async def test_a_failure_is_told_in_few_words_with_the_provider_s_own_beside(
    victim: Session, script: Visitor, client: Visitor, raw: Raw, providers: Providers, how: str, words: str
):
    address, found = await asked(victim, raw())
    await script.post(f"/s/{victim.id}/models", own(providers, how))
    await client.form(f"{address}/draft", {"by": "mine"}, **HTMX)
    await drafted(victim, found, "failed")
    await client.form(f"{address}/draft", {"again": "mine"}, **HTMX)
    await drafted(victim, found, "failed")
    page = text(await client.get(address))
    assert f"<b>{words}</b>" in page and "The ask is still open." in page and "“" in page and KEY not in page
    assert "2 times" in page and ("Retry after" in page) is (how == "limit")
    assert ("Models of this session" in page) is (how == "key")


@pytest.mark.requirement("R3-08", "R3-09")
async def test_a_tool_use_of_a_model_can_be_edited_too(
    victim: Session, script: Visitor, client: Visitor, raw: Raw, providers: Providers
):
    peer = raw()
    address, found = await asked(victim, peer, tools=[WEATHER, TIDE])
    await script.post(f"/s/{victim.id}/models", own(providers, "both"))
    await client.form(f"{address}/draft", {"by": "mine"}, **HTMX)
    await drafted(victim, found, "ready")
    assert "Input of weather, as JSON" in text(await client.get(address))
    sent = {"as": "model", "action": "respond", "block-0": "Well,", "block-1": '{"city": ', "block-2": "[]"}
    wrong = text(await client.form(f"{address}/answer", sent, **HTMX))
    assert "Input of weather: That is not JSON" in wrong and "Input of tide: The input of a tool is" in wrong
    sent |= {"block-1": '{"city": "Oslo"}', "block-2": "{}"}
    assert (await client.form(f"{address}/answer", sent, **HTMX)).status == 200
    uses = (await replied(victim, peer))["result"]["content"]
    assert [one.get("input", one.get("text")) for one in uses] == ["Well,", {"city": "Oslo"}, {}]


async def test_no_words_of_a_model_become_markup(victim: Session, script: Visitor, client: Visitor, raw: Raw):
    address, found = await asked(victim, raw())
    evil = "</textarea><script>alert(1)</script>\r\n“<ins>”"
    await script.post(f"/s/{victim.id}/models", {"name": "<b>evil", "provider": "canned", "text": evil})
    await client.form(f"{address}/draft", {"by": "<b>evil"}, **HTMX)
    await drafted(victim, found, "ready")
    for place in (address, f"/s/{victim.id}", f"/s/{victim.id}/models"):
        page = (await client.get(place)).text
        assert "<script>alert" not in page and "<b>evil" not in page
    untouched = evil.replace("\r\n", "\n")
    sent = {"as": "model", "action": "respond", "block-0": untouched}
    assert (await client.form(f"{address}/answer", sent, **HTMX)).status == 200
    assert (await script.json(address))["outcome"]["draft"]["changed"] is False, "a browser's line breaks are no edit"


async def test_another_person_s_card_is_nobody_s(victim: Session, mallory: Visitor, raw: Raw):
    address, _ = await asked(victim, raw())
    for path in (f"{address}/draft", f"{address}/draft/stop", f"{address}/uses", f"/s/{victim.id}/models"):
        assert (await mallory.form(path, {"by": "echo"})).status == 404


# ------------------------------------------------------------------------------------------------- tool uses by a form


@pytest.mark.requirement("R3-06", "R3-08", "R3-09")
async def test_tool_uses_are_composed_by_forms_and_checked(victim: Session, client: Visitor, raw: Raw):
    peer = raw()
    address, _ = await asked(victim, peer, tools=[WEATHER, TIDE], toolChoice={"mode": "required"})
    begins = text(await client.get(f"{address}?uses=1", **HTMX))
    assert "Add a tool use" in begins and "wants at least one" in begins and 'name="use"' not in begins
    fields: dict[str, Any] = {"as": "tool", "uses": "1", "tool": "weather"}
    empty = await client.form(f"{address}/answer", {**fields, "action": "respond"}, **HTMX)
    assert empty.status == 422 and "Add a tool use first." in empty.text
    uses = empty.text.index(f'id="ask-{address.rpartition("/")[2]}-uses"')
    assert empty.text.count("Add a tool use first.") == 1 and empty.text.index("Add a tool use first.") > uses
    one = text(await client.form(f"{address}/uses", {**fields, "_op": "add-use"}, **HTMX))
    assert "Add a tool use first." not in one, "what was wrong goes with what it stood in"
    assert 'name="use-0/city"' in one and "<b>Weather" not in one.replace("&lt;", "<").replace("<b>Weather</b></p>", "")
    [use] = re.findall(r'name="use-0-id" value="(use_\w+)"', one)
    fields |= {"use": ["0"], "use-0-tool": "weather", "use-0-id": use, "use-0/city": "B", "use-0/days": "2"}
    fields["use-0/tags#use"] = "0"
    longer = text(await client.form(f"{address}/uses", {**fields, "_op": "add:use-0/tags"}, **HTMX))
    assert 'name="use-0/tags/0"' in longer and 'value="B"' in longer, "a button inside the form of a use"
    wrong = await client.form(f"{address}/answer", {**fields, "action": "respond"}, **HTMX)
    assert wrong.status == 422 and 'aria-invalid="true"' in wrong.text and 'value="tool" checked' in wrong.text
    two = text(await client.form(f"{address}/uses", {**fields, "tool": "tide", "_op": "add-use"}, **HTMX))
    assert 'name="use-1-tool" value="tide"' in two
    less = text(await client.form(f"{address}/uses", {**fields, "_op": "drop-use:0"}, **HTMX))
    assert 'name="use-0-tool"' not in less
    fields |= {"use": ["0", "1"], "use-1-tool": "tide", "use-1-id": "u2", "use-0/city": "Bergen", "use-text": "Hm."}
    assert (await client.form(f"{address}/answer", {**fields, "action": "respond"}, **HTMX)).status == 200
    result = (await replied(victim, peer))["result"]
    assert (result["role"], result["stopReason"]) == ("assistant", "toolUse")
    assert result["content"] == [
        {"type": "text", "text": "Hm."},
        {"type": "tool_use", "id": use, "name": "weather", "input": {"city": "Bergen", "days": 2}},
        {"type": "tool_use", "id": "u2", "name": "tide", "input": {}},
    ]


@pytest.mark.requirement("R3-08", "R3-21")
async def test_what_the_server_does_not_want_is_refused_and_rounds_are_counted(
    victim: Session, client: Visitor, raw: Raw
):
    peer = raw()
    address, _ = await asked(victim, peer)
    assert "offers no tools here" in text(await client.get(f"{address}?uses=1", **HTMX))
    address, _ = await asked(victim, peer, "n", tools=[TIDE], toolChoice={"mode": "none"})
    fields = {"as": "tool", "uses": "1", "use": "0", "use-0-tool": "tide", "use-0-id": "u", "action": "respond"}
    refused = await client.form(f"{address}/answer", fields, **HTMX)
    assert refused.status == 422 and "allows no tool use here" in text(refused)
    assert (await client.form(f"{address}/answer", {**fields, "force": "1"}, **HTMX)).status == 200, "a tester may"
    use: dict[str, Any] = {"type": "tool_use", "name": "tide", "input": {}}
    gave: dict[str, Any] = {"type": "tool_result", "content": []}
    history: list[Any] = [{"role": "user", "content": {"type": "text", "text": "Go"}}]
    page = ""
    for number in range(5):
        history += [
            {"role": "assistant", "content": {**use, "id": f"u{number}"}},
            {"role": "user", "content": {**gave, "toolUseId": f"u{number}"}},
        ]
        address, _ = await asked(victim, peer, f"r{number}", tools=[TIDE], messages=list(history))
        page = text(await client.get(address))
        assert f"round {number + 2} of 5" in page and ("This may be a loop" in page) is (number >= 3)
    assert 'name="use-0-tool" value="tide"' in page, "the form of the only tool is there at once"


# ------------------------------------------------------------------------------------------------------ the page itself


@pytest.mark.requirement("S21", "S001 forwardSamplingToLLM")
async def test_a_model_is_added_changed_and_removed_in_the_page(
    victim: Session, client: Visitor, script: Visitor, raw: Raw, providers: Providers
):
    path = f"/s/{victim.id}/models"
    page = text(await client.get(path))
    assert "Three are always there" in page and "small talk" in page and 'type="password"' in page
    assert '"Models"' in text(await script.get(f"/s/{victim.id}/palette")), "the palette leads here"
    fields = {"name": "mine", "provider": "openai", "base_url": "ftp://x", "model": "", "key": KEY, "speed": "fast"}
    refused = await client.form(path, fields)
    page = text(refused)
    assert refused.status == 422 and 'value="ftp://x"' in page and page.count('aria-invalid="true"') >= 2
    fields |= {"base_url": providers.url("openai"), "model": "words-1", "speed": "0,9"}
    added = await client.form(path, fields)
    assert added.status == 303 and (added.header("location") or "").endswith("/models")
    page = text(await client.get(path))
    assert "key in memory" in page and "on this machine" in page and "this session" in page and "Three are" not in page
    change = text(await client.get(f"{path}?name=mine"))
    assert 'value="words-1"' in change and "Change mine" in change and "Empty: the one that is known" in change
    assert (await client.form(path, {**fields, "model": "words-2", "key": ""})).status == 303
    taken = await client.form(path, {**fields, "name": "echo"})
    assert taken.status == 409 and "There is a model named" in text(taken)
    address, found = await asked(victim, raw())
    await client.form(f"{address}/draft", {"by": "mine"}, **HTMX)
    await drafted(victim, found, "ready")
    assert providers.next()["key"] == KEY and found.draft is not None
    assert found.draft.content["model"] == "words-2-2026"
    seen = [refused.text, added.text, page, change, taken.text]
    seen += [(await client.get(place)).text for place in (path, address, f"/s/{victim.id}", f"{path}?name=mine")]
    assert all(KEY not in each and KEY[3:] not in each for each in seen)
    assert (await client.form(f"{path}/mine/delete")).status == 303
    assert "mine" not in [one["name"] for one in (await script.json(path))["models"]]


async def test_a_task_says_which_model_wrote_its_answer(victim: Session, client: Visitor, raw: Raw):
    address, found = await asked(victim, raw(), task={"ttl": 600_000})
    await client.form(f"{address}/draft", {"by": "echo"}, **HTMX)
    await drafted(victim, found, "ready")
    assert "draft to check" in text(await client.get(f"/s/{victim.id}/calls/c1"))
    await client.form(f"{address}/answer", {"as": "model", "action": "respond"}, **HTMX)
    assert _task_says(found) and "written by echo" in text(await client.get(f"/s/{victim.id}/tasks/{found.task_id}"))


def _task_says(found: Ask) -> bool:
    return found.task_id is not None and found.state == "answered"


async def test_a_form_ask_has_no_way_to_a_model(victim: Session, client: Visitor, raw: Raw):
    form = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
    await connected(victim, raw().target)
    line = {"jsonrpc": "2.0", "id": "f", "method": "elicitation/create", "params": form}
    await call_tool(victim, "say", {"lines": [json.dumps(line), DONE]})
    await until(victim, lambda: victim.open_asks == 1)
    address = f"/s/{victim.id}/asks/a1"
    assert (await client.form(f"{address}/uses", {}, **HTMX)).status == 404
    assert (await client.form(f"{address}/draft", {"by": "echo"}, **HTMX)).status == 422
    assert "Answer with" not in (await client.get(address)).text
