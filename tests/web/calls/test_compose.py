"""Requests written by hand, calls that run again, and several at once."""

import re
from typing import Any

import anyio
import pytest

from tests.drive import HANG
from tests.web.shelf import HTMX


@pytest.mark.requirement("R5-04")
async def test_the_composer_checks_warns_sends_and_marks_what_was_forced(opened: Any):
    one = await opened(capabilities={"tools": {}})
    page = await one.page("/compose?method=resources/read")
    assert '"uri": ""' in page and "Not offered." in page and '<option value="tools/call"' in page
    checked = await one.form("/compose/check", {"method": "tools/list", "params": '{"a": }'}, **HTMX)
    assert "That is not JSON" in checked.text and "column 7" in checked.text and "forced" not in checked.text
    assert "a JSON object" in (await one.form("/compose/check", {"method": "x/y", "params": "[1]"}, **HTMX)).text
    refused = await one.form("/compose", {"method": "x/y", "params": "{nope"}, **HTMX)
    assert refused.status == 422 and "{nope" in refused.text and "Not sent:" in refused.text
    sent = await one.form(
        "/compose", {"method": "resources/read", "params": '{"uri": "shelf://json"}', "as": "request"}
    )
    told = await one.json((sent.header("location") or "").removeprefix(one.path) + "?wait=20")
    assert told["state"] == "done" and [each["id"] for each in told["findings"]] == ["R5-04"]
    quiet = await one.form("/compose", {"method": "notifications/x", "params": "", "as": "notification"}, **HTMX)
    assert (quiet.header("hx-redirect") or "").startswith(f"{one.path}/calls/")
    assert await one.seen("notifications/x") == [{}] and await one.seen("x/y") == []
    prefilled = await one.page(f"/compose?from={told['id']}")
    assert 'value="resources/read"' in prefilled and '"uri": "shelf://json"' in prefilled


async def test_any_call_runs_again_or_is_edited_first(opened: Any):
    one = await opened()
    await one.json("/prompts")
    for method, params, edit in (
        ("tools/call", {"name": "tool_1", "arguments": {"a": 1}}, "/tools/tool_1?from="),
        ("prompts/get", {"name": "letter", "arguments": {"to": "Ada"}}, "/prompts/letter?from="),
        ("resources/read", {"uri": "shelf://json"}, "/compose?from="),
        ("x/unknown", {"a": [1]}, "/compose?from="),
    ):
        told = await one.call(method, **params)
        page = await one.page(f"/calls/{told['id']}")
        assert f'href="{one.path}{edit}{told["id"]}"' in page, method
        again = await one.form(f"/calls/{told['id']}/retry")
        second = await one.json((again.header("location") or "").removeprefix(one.path) + "?wait=20")
        assert (second["method"], second["params"]) == (method, params) and second["id"] != told["id"]
    assert 'value="Ada"' in await one.page(
        f"/prompts/letter?from={(await one.call('prompts/get', name='letter', arguments={'to': 'Ada'}))['id']}"
    )


async def test_several_calls_run_at_once_each_with_its_own_line(opened: Any):
    one = await opened()
    started = [
        (await one.post("/calls", method="tools/call", params={"name": f"tool_{n}"})).json()["id"] for n in range(3)
    ]
    with anyio.fail_after(HANG):
        for each in started:
            assert (await one.json(f"/calls/{each}?wait=20"))["state"] == "done"
    page = await one.page("/calls")
    for number in range(3):
        assert f"tool_{number}" in page
    assert re.search(r'<span class="z opt">\d+ B</span>', page)
    assert [each["id"] for each in (await one.json("/calls"))["calls"]] == started[::-1]
