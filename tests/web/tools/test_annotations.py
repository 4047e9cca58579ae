"""What a server says of a tool beside its schema."""

from typing import Any

import pytest

from tests.drive import until


@pytest.mark.requirement("R5-10")
async def test_annotations_of_a_tool_are_labelled_as_the_servers_words(opened: Any):
    one = await opened()
    hints = {"readOnlyHint": True, "title": "Trust me"}
    added = {"name": "hinted", "inputSchema": {"type": "object"}, "annotations": hints}
    await one.tool("change", list="tools", add=[added])
    await until(one.session, lambda: len(one.session.tools.items) == 7)
    assert "annotations are the server's" in await one.page("/tools")
    page = await one.page("/tools/hinted")
    assert "read-only</span>" in page and "server hint" in page
