"""The page of answer rules: list, editor and trial as forms, what is wrong at its field, the rule from an answer."""

from typing import Any

import pytest

from app.sessions import Session
from tests.web.asgi import Answer, Visitor
from tests.web.rules.test_rules import ANN, FORM, asked, request
from tests.web.shelf import HTMX

EDITOR = {"name": "ann", "kind": "form", "action": "accept", "content_as": "values", "content": '{"name": "Ann"}'}
BAD = '<img src=x onerror="alert(1)">'


async def form(visitor: Visitor, path: str, **fields: str) -> Answer:
    return await visitor.form(path, fields)


async def by_htmx(visitor: Visitor, path: str, **fields: str) -> Answer:
    return await visitor.form(path, fields, **HTMX)


async def test_the_editor_saves_and_says_what_is_wrong_at_its_field(victim: Session, client: Visitor):
    path = f"/s/{victim.id}/rules"
    page = await client.get(path)
    assert page.status == 200 and "No rules yet." in page.text
    for wrong, place, words in (
        ({"name": ""}, "rule-name-e", "This is required."),
        ({"content": "{"}, "rule-content-e", "That is not JSON"),
        ({"content": "[]"}, "rule-content-e", "must be a JSON object"),
        ({"delay_ms": "soon"}, "rule-delay_ms-e", "valid integer"),
        ({"most": "0"}, "rule-most-e", "greater than or equal to 1"),
        ({"message": "x" * 201}, "rule-message-e", "at most 200"),
    ):
        refused = await form(client, path, **{**EDITOR, **wrong})
        assert refused.status == 422 and f'id="{place}"' in refused.text and words in refused.text, refused.text
    assert not victim.asks.rules.all
    saved = await form(client, path, **EDITOR, tool="say*", fields="name, *", per_minute="5")
    assert saved.status == 303 and str(saved.header("location")).endswith("/rules/r1?saved=1")
    kept = victim.asks.rules.all["r1"]
    assert kept.rule.model_dump(mode="json", exclude_unset=True) == {
        "name": "ann",
        "on": False,
        "when": {"kind": "form", "tool": "say*", "fields": ["name", "*"]},
        "do": ANN,
        "per_minute": 5,
        "delay_ms": 0,
    }
    page = await client.get(f"{path}/r1?saved=1")
    assert "Saved, off" in page.text and "say*" in page.text
    assert (await form(client, f"{path}/r1", **EDITOR, then="on")).status == 303
    assert kept.rule.on and kept.rule.when.tool is None
    assert (await form(client, f"{path}/r1", switch="1")).status == 303 and not kept.rule.on
    for action, more, do in (
        ("respond", {"text": "Hi"}, {"action": "respond", "text": "Hi"}),
        ("respond", {"respond_as": "result", "result": '{"role": "assistant"}'}, {"action": "respond"}),
        ("model", {"model": "scripted"}, {"action": "model", "model": "scripted"}),
        ("fail", {"code": "-7", "fail_message": "no"}, {"action": "fail", "code": -7, "message": "no"}),
    ):
        said = {"name": "s", "kind": "sampling", "action": action, **more}
        assert (await form(client, f"{path}/r1", **said)).status == 303
        assert do.items() <= kept.rule.do.model_dump(mode="json", exclude_unset=True).items()
    assert (
        "a form cannot be answered with respond"
        in (await form(client, f"{path}/r1", **EDITOR | {"action": "respond"})).text
    )
    for name in ("b", "c"):
        await form(client, path, **EDITOR | {"name": name})
    await form(client, f"{path}/r3/move", by="-2")
    await form(client, f"{path}/r3/move", by="-1")
    assert list(victim.asks.rules.all) == ["r3", "r1", "r2"]
    assert (await form(client, f"{path}/r3/delete")).status == 303
    assert list(victim.asks.rules.all) == ["r1", "r2"]


async def test_what_a_server_or_a_person_wrote_is_text(victim: Session, client: Visitor, raw: Any):
    await asked(victim, raw(), request("one", "elicitation/create", {**FORM, "message": BAD}))
    [ask] = victim.inbox.open
    await form(client, f"/s/{victim.id}/asks/{ask.id}/answer", action="decline")
    path = f"/s/{victim.id}/rules"
    await form(client, path, **EDITOR | {"name": BAD, "message": BAD, "tool": BAD}, then="on")
    for address in (path, f"{path}/r1", f"{path}/new?from={ask.id}", f"/s/{victim.id}/asks/{ask.id}/rule"):
        page = await client.get(address)
        assert page.status == 200 and "onerror" in page.text and "<img" not in page.text


@pytest.mark.requirement("U-M24")
async def test_a_rule_from_an_answer_is_shown_first_and_is_saved_off(victim: Session, client: Visitor, raw: Any):
    peer = raw()
    await asked(victim, peer, request("one", "elicitation/create", FORM))
    [ask] = victim.inbox.open
    here = f"/s/{victim.id}/asks/{ask.id}/rule"
    assert (await client.get(here)).status == 422, "nobody has answered it yet"
    assert "Make a rule" not in (await client.get(f"/s/{victim.id}/asks/{ask.id}")).text
    await form(client, f"/s/{victim.id}/asks/{ask.id}/answer", **{"action": "accept", "/name": "Ann"})
    assert "Make a rule" in (await client.get(f"/s/{victim.id}/asks/{ask.id}")).text
    offer = (await client.get(here)).text
    assert "off; would have answered 1 of 1" in offer and 'value="Who?"' in offer
    assert not victim.asks.rules.all
    refused = await by_htmx(client, here, name="x" * 201)
    assert refused.status == 422 and 'aria-invalid="true"' in refused.text
    made = await by_htmx(client, here, name="Always Ann")
    assert made.status == 200 and "Saved. It answers once it is switched on." in made.text
    [kept] = victim.asks.rules.all.values()
    assert (kept.rule.name, kept.rule.on) == ("Always Ann", False)
    trial = await by_htmx(client, f"/s/{victim.id}/rules/try", **EDITOR, message="who*")
    assert "Would have answered 1 of 1" in trial.text and "Ann" in trial.text
    trial = await by_htmx(client, f"/s/{victim.id}/rules/try", **EDITOR | {"content": "{"})
    assert trial.status == 200 and "No rule yet" in trial.text


async def test_the_header_says_that_rules_are_on_only_then(victim: Session, client: Visitor):
    path, here = f"/s/{victim.id}/rules", f"/s/{victim.id}/tools"
    await form(client, path, **EDITOR)
    assert 'id="rules-switch"' not in (await client.get(here)).text
    await form(client, f"{path}/r1", switch="1", on="1")
    assert 'role="switch" id="rules-switch" name="on" value="1" aria-label="Rules on" checked' in (
        await client.get(here)
    ).text.replace("\n", " ")
    await form(client, f"{path}/pause")
    assert victim.asks.rules.paused and "data-paused" in (await client.get(here)).text
    await form(client, f"{path}/pause", on="1")
    assert not victim.asks.rules.paused
