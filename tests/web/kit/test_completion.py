"""Completion of arguments while they are typed."""

from typing import Any

import pytest


@pytest.mark.requirement("R5-21")
async def test_completion_sends_the_other_arguments_and_tells_that_there_is_more(opened: Any):
    one = await opened()
    fields = {
        "_ref": "template",
        "_of": "shelf://find/{topic}",
        "_argument": "topic",
        "arg.topic": "ma",
        "arg.year": "1650",
    }
    told = (await one.form("/complete", fields, accept="application/json")).json()
    assert told["values"] == ["ma0", "ma1", "ma2", "ma3", "ma4"] and told["hasMore"] and told["total"] == 250
    fields = {"_ref": "prompt", "_of": "letter", "_argument": "to", "arg.to": "x", "arg.tone": ""}
    assert (await one.form("/complete", fields, accept="application/json")).status == 200
    assert await one.seen("completion/complete") == [
        {
            "ref": {"type": "ref/resource", "uri": "shelf://find/{topic}"},
            "argument": {"name": "topic", "value": "ma"},
            "context": {"arguments": {"year": "1650"}},
        },
        {"ref": {"type": "ref/prompt", "name": "letter"}, "argument": {"name": "to", "value": "x"}},
    ]
    assert all(call["method"] != "completion/complete" for call in (await one.json("/calls"))["calls"])


@pytest.mark.requirement("R5-21")
async def test_more_than_a_hundred_suggestions_are_cut_and_found(opened: Any):
    one = await opened(suggestions=130)
    body = {"ref": {"type": "ref/prompt", "name": "letter"}, "argument": {"name": "to", "value": ""}}
    told = (await one.post("/complete", **body)).json()
    assert len(told["values"]) == 100 and told["hasMore"]
    found = [each for row in (await one.json("/log"))["messages"] for each in row["findings"]]
    assert any(each["id"] == "R5-21" and "130 values" in each["text"] for each in found)
