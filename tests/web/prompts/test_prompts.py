"""Prompts: a form for their arguments, and the conversation that comes back."""

from typing import Any

import pytest

from tests.drive import until
from tests.web.shelf import HTMX


@pytest.mark.requirement("R5-30")
async def test_a_prompt_is_a_form_and_then_a_conversation(opened: Any):
    one = await opened()
    page = await one.page("/prompts/letter")
    assert "Whom it is for." in page and 'role="combobox"' in page and 'name="arg.tone"' in page
    refused = await one.form("/prompts/get/letter", {"arg.to": "", "arg.tone": "warm"}, **HTMX)
    assert refused.status == 422 and "The server wants a value here." in refused.text and "warm" in refused.text
    assert await one.seen("prompts/get") == []
    assert (await one.form("/prompts/get/letter", {"arg.to": "Ada", "arg.tone": ""}, **HTMX)).status == 204
    assert await one.seen("prompts/get") == [{"name": "letter", "arguments": {"to": "Ada"}}]
    await until(one.session, lambda: all(call.settled for call in one.session.calls.values()))
    page = await one.page("/prompts/letter")
    talk = page.split('id="calls"')[1]
    assert talk.count('class="turn" data-role="user"') == 3 and talk.count('data-role="assistant"') == 2
    assert "Dear Ada" in talk and "<img src=" in talk and "To the resource" in talk and "embedded" in talk
    assert "audio/wav" in talk
    forced = await one.form("/prompts/get/letter", {"arg.to": "", "_force": "1"})
    told = await one.json((forced.header("location") or "").removeprefix(one.path) + "?wait=20")
    assert told["params"] == {"name": "letter"} and told["findings"][0]["id"] == "R5-30"
    again = await one.page(f"/prompts/letter?from={told['id']}")
    assert "Arguments" in again
    assert "It takes no arguments." in await one.page("/prompts/plain")
