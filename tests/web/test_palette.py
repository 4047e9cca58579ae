"""The palette: everything that can be opened by typing its name."""

from typing import Any


async def test_the_palette_knows_resources_templates_and_prompts(opened: Any):
    one = await opened()
    items = (await one.json("/palette"))["items"]
    by_kind = {kind: [each for each in items if each["kind"] == kind] for kind in ("resource", "template", "prompt")}
    assert by_kind["resource"][0]["href"].endswith("/resources/one?uri=shelf%3A%2F%2Fannotated")
    assert by_kind["template"][0]["href"].endswith("/resources/templates/book")
    assert by_kind["prompt"][0]["href"].endswith("/prompts/letter")
    assert any(each["label"] == "Compose a request" for each in items)
