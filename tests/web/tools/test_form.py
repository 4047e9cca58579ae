"""The form of a tool: drawn from its schema, switched without loss, checked, sent, and sent anyway."""

import json
import re
from typing import Any

import anyio
import pytest

from app.core.forms import MISSING, Entries
from app.sessions import Session
from app.web.kit.templates import jinja
from app.web.tools.form import from_form, from_value, switched
from app.web.tools.tool import weighs
from tests.drive import raw_target
from tests.unit.form_browser import entries
from tests.web.asgi import Visitor

HTMX = {"hx_request": "true"}
SCHEMA = {
    "type": "object",
    "properties": {
        "message": {"type": "string", "minLength": 1},
        "count": {"type": "integer", "minimum": 1, "maximum": 5},
        "people": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
        "where": {"oneOf": [{"type": "string"}, {"type": "object", "properties": {"lat": {"type": "number"}}}]},
    },
    "required": ["message"],
}
EVIL = '"><script>alert(1)</script></textarea>'


@pytest.fixture
def listed(victim: Session) -> Session:
    """A session with tools, not connected."""
    victim.tools.state = "ready"
    victim.tools.items = [
        {"name": "echo", "inputSchema": SCHEMA},
        {"name": "a/b c", "inputSchema": {"type": "object", "properties": {"x": {"type": "string"}}}},
        {"name": "same", "inputSchema": {}},
        {"name": "same", "inputSchema": {}},
        {"name": "evil", "inputSchema": {"type": "object", "properties": {EVIL: {"type": "string", "title": EVIL}}}},
        {"name": "none"},
        {"name": "bomb", "inputSchema": {"type": "object", "properties": {f"p{n}": {} for n in range(20_000)}}},
        "not an object",
    ]
    return victim


def json_form(text: str, **more: str) -> dict[str, str]:
    return {"_mode": "json", "_text": text, **more}


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"message": "hi", "count": 3},
        {"message": "", "people": [{"name": "Ines"}, {}, {"name": "", "else": [1, None]}]},
        {"message": "12345", "count": 12345678901234567890123, "where": {"lat": 1.5}},
        {"message": None, "count": "three", "where": [1], "__proto__": {"x": 1}, "unknown/key~": {"deep": [[]]}},
    ],
)
def test_form_and_json_say_the_same_in_both_directions(value: dict[str, Any]):
    drawn = from_value(SCHEMA, value)
    assert drawn.mode == "form"
    assert drawn.tree is not None
    submitted = from_form(SCHEMA, Entries([("_mode", "form"), *entries(drawn.tree)]))
    as_json = switched(SCHEMA, submitted, "json")
    assert as_json.mode == "json"
    assert json.loads(as_json.text) == value
    back = switched(SCHEMA, from_form(SCHEMA, Entries(json_form(as_json.text).items())), "form")
    assert back.mode == "form"
    assert back.tree is not None
    assert from_form(SCHEMA, Entries(entries(back.tree))).value == value


def test_what_json_cannot_say_keeps_the_form_with_what_was_typed():
    typed = Entries([("_mode", "form"), ("/message", "hi"), ("/count", "three and a half")])
    stayed = switched(SCHEMA, from_form(SCHEMA, typed), "json")
    assert stayed.mode == "form"
    assert stayed.tree is not None
    assert any(one.text == "three and a half" and one.errors for one in stayed.tree.walk())


def test_arguments_that_are_no_object_stand_in_the_box():
    drawn = from_value(SCHEMA, [1, 2])
    assert (drawn.mode, json.loads(drawn.text)) == ("json", [1, 2])
    assert switched(SCHEMA, drawn, "form").mode == "json"
    assert from_value(SCHEMA, MISSING).mode == "form"


def test_only_much_text_is_heavy():
    assert not weighs(SCHEMA)
    assert weighs({"enum": ["x" * 1000] * 100})
    assert weighs([{"a": [1] * 50_000}])


async def test_every_tool_has_a_form(client: Visitor, listed: Session):
    for key in ("echo", "a/b c", "~2", "~3", "evil", "none", "bomb", "~7"):
        page = await client.get(f"/s/{listed.id}/tools/{key}")
        assert page.status == 200, key
        assert 'id="tool-form"' in page.text, key
        assert "<script>alert" not in page.text
        boxed = await client.get(f"/s/{listed.id}/tools/{key}?as=json")
        assert 'id="arguments"' in boxed.text, key
    assert (await client.get(f"/s/{listed.id}/tools/absent")).status == 404


async def test_the_form_is_drawn_anew_for_its_buttons(client: Visitor, listed: Session):
    here = f"/s/{listed.id}/tools/form/echo"
    added = await client.form(
        here, {"_mode": "form", "/message": "half", "/people#use": "0", "_op": "add:/people"}, **HTMX
    )
    assert added.status == 200
    assert 'name="/people#item" value="0"' in added.text
    assert 'value="half"' in added.text
    other = await client.form(here, {"_mode": "form", "/where#alt": "1", "/where#was": "0", "/where": "x"}, **HTMX)
    assert "lat" in other.text
    as_json = await client.form(here, {"_mode": "form", "/message": "half", "_to": "json"}, **HTMX)
    assert "&#34;message&#34;: &#34;half&#34;" in as_json.text
    back = await client.form(here, json_form('{"message": "from a paste"}', _to="form"), **HTMX)
    assert 'value="from a paste"' in back.text
    broken = await client.form(here, json_form('{"message": ', _to="form"), **HTMX)
    assert "Not JSON: line 1, column 13" in broken.text
    whole = await client.form(here, {"_mode": "form", "/message": "half", "_to": "json"})
    assert "<html" in whole.text
    assert "half" in whole.text


async def test_names_with_slashes_and_names_in_doubt_reach_their_tool(client: Visitor, listed: Session):
    for key in ("a/b c", "~2", "~7"):
        where = f"/s/{listed.id}/tools/form/{key}"
        assert (await client.form(where, {"_mode": "form", "_to": "json"}, **HTMX)).status == 200
    assert (await client.form(f"/s/{listed.id}/tools/form/absent", {"_mode": "form"}, **HTMX)).status == 404


async def test_json_is_checked_while_it_is_typed(client: Visitor, listed: Session):
    here = f"/s/{listed.id}/tools/check/echo"
    broken = await client.form(here, {"_text": '{"message": "x",\n  oops}'}, **HTMX)
    assert broken.status == 200
    assert "line 2, column 3" in broken.text
    assert 'data-line="2"' in broken.text
    wrong = await client.form(here, {"_text": '{"message": "x", "count": 9}'}, **HTMX)
    assert "/count" in wrong.text
    assert "Fits the input schema" in (await client.form(here, {"_text": '{"message": "x"}'}, **HTMX)).text
    assert "JSON object" in (await client.form(here, {"_text": "[1]"}, **HTMX)).text
    hostile = await client.form(here, {"_text": json.dumps({"count": EVIL})}, **HTMX)
    assert "<script>" not in hostile.text


@pytest.mark.requirement("S40")
async def test_what_does_not_fit_comes_back_with_sentences_beside_the_fields(client: Visitor, listed: Session):
    here = f"/s/{listed.id}/tools/call/echo"
    for typed in ({"/count": "9"}, {"/message": "x", "/count": "NaN"}, {"/message": "x", "/count": "1e400"}):
        refused = await client.form(here, {"_mode": "form", **typed}, **HTMX)
        assert refused.status == 422, typed
        assert 'aria-invalid="true"' in refused.text
        assert "Send anyway" in refused.text
    assert not listed.calls
    for text in ('{"message": ', "{'a': 1}", "NaN", '{"message": 1e400}'):
        refused = await client.form(here, json_form(text, _force="1"), **HTMX)
        assert refused.status == 422
        assert "Send anyway" not in refused.text
    said = await client.form(here, {"_mode": "form", "/count": "9"}, accept="application/json")
    assert set(said.error["fields"]) == {"/message", "/count"}


async def test_fields_that_the_schema_does_not_name_are_dropped(client: Visitor, listed: Session):
    drawn = from_form(SCHEMA, Entries([("/message", "x"), ("/__proto__/x", "1"), ("/nobody", "2")]))
    assert drawn.value == {"message": "x"}


async def test_without_a_connection_nothing_is_sent(client: Visitor, listed: Session):
    sent = await client.form(f"/s/{listed.id}/tools/call/echo", {"_mode": "form", "/message": "x"}, **HTMX)
    assert sent.status == 409
    assert (await client.post(f"/s/{listed.id}/tools/call/echo", {"message": "x"})).status in {422, 400}


# ------------------------------------------------------------------------------------------------------ with a server


@pytest.mark.usefixtures("processes")
async def test_calls_are_sent_remembered_and_forced(client: Visitor, script: Visitor, victim: Session):
    path = f"/s/{victim.id}"
    began = await script.post(f"{path}/connect", {"target": raw_target().model_dump(mode="json")})
    assert began.status == 202, began.text
    assert (await script.json(f"{path}?wait=20"))["connection"]["state"] == "ready"
    assert (await script.post(f"{path}/tools/refresh")).status == 200
    victim.tools.items = [{"name": "echo", "inputSchema": SCHEMA}]
    first = await client.form(f"{path}/tools/call/echo", {"_mode": "form", "/message": "once"}, **HTMX)
    assert first.status == 204, first.text
    cid = (await client.get(f"{path}/calls", accept="application/json")).json()["calls"][0]["id"]
    done = (await client.get(f"{path}/calls/{cid}?wait=20", accept="application/json")).json()
    assert done["params"]["arguments"] == {"message": "once"}
    page = (await client.get(f"{path}/tools/echo")).text
    assert "once" in re.split("Recent calls", page)[0]
    assert f"?from={cid}" in page
    again = await client.form(f"{path}/tools/form/echo", {"_mode": "form", "_fill": "last"}, **HTMX)
    assert "once" in again.text
    fresh = await client.form(f"{path}/tools/form/echo", {"_mode": "form", "_fill": "new"}, **HTMX)
    assert "once" not in fresh.text

    odd = json_form('{"message": 7}')
    here = f"{path}/tools/call/echo"
    refused = await client.form(here, odd, **HTMX)
    assert refused.status == 422
    forced = await client.form(here, {**odd, "_force": "1", "_refused": "1"}, **HTMX)
    assert forced.status == 200
    assert "Not sent" not in forced.text
    call = (await client.get(f"{path}/calls", accept="application/json")).json()["calls"][0]
    assert call["params"]["arguments"] == {"message": 7}
    assert any("on purpose" in one["text"] for one in call["findings"])


async def test_a_tool_whose_list_is_still_being_read_is_waited_for(client: Visitor, victim: Session):
    victim.tools.state = "loading"
    found: list[int] = []

    async def look() -> None:
        found.append((await client.get(f"/s/{victim.id}/tools/echo")).status)

    async with anyio.create_task_group() as group:
        group.start_soon(look)
        await anyio.wait_all_tasks_blocked()
        assert found == [], "a 404 would say that there is no such tool"
        victim.tools.items, victim.tools.state = [{"name": "echo", "inputSchema": SCHEMA}], "ready"
        victim.changed("listing.changed", "tools")
    assert found == [200]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["to"], "to is required and empty. Send without it?"),
        (["to", "tone"], "to and tone are required and empty. Send without them?"),
        (["to", "tone", "place"], "to and 2 more are required and empty. Send without them?"),
    ],
)
def test_what_is_required_and_empty_is_named(names: list[str], said: str):
    macros: Any = jinja.get_template("macros/callbar.html").module
    question = re.sub(r"<[^>]+>", "", str(macros.question(names, "arg-to", "out")).split("</p>")[0])
    assert " ".join(question.split()) == said
