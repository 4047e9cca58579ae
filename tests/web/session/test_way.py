"""Finding the way: the overview says how much there is and what to do next, the rail shows what a page is about, the
header leads to other sessions, and the palette knows acts and messages."""

import re
from typing import Any

import pytest

from tests.drive import until
from tests.web.asgi import Visitor
from tests.web.shelf import HTMX


@pytest.mark.requirement("U-M15")
async def test_the_overview_counts_what_the_server_offers_and_says_what_to_do_next(opened: Any):
    one = await opened()
    before = await one.page("")
    assert "/counts" in before, "the page has the lists read that it counts"
    told = await one.json("/counts")
    assert told == {"tools": len((await one.json("/tools"))["tools"]), "resources": 4, "prompts": 2}
    page = await one.page("")
    assert "/counts" not in page, "once they are known, nobody asks again"
    assert ">4 resources</a>" in page and ">2 prompts</a>" in page
    following = page.split('id="next-title"')[1].split("</section>")[0]
    assert "Call a tool" in following and "All 4 resources" in following and "/prompts/letter" in following
    assert re.search(r'id="findings-total" href="[^"]*/log\?findings=1"', page), "a number leads to what it counts"
    assert "as declared" not in page and "Experimental" not in page


@pytest.mark.requirement("U-M15")
async def test_reading_the_overview_as_a_script_reads_no_list(opened: Any):
    one = await opened()
    await one.json("")
    assert await one.seen("resources/list") == []


@pytest.mark.requirement("U-M16")
@pytest.mark.parametrize(
    ("page", "heading", "current"),
    [
        ("/resources", "Resources", ""),
        ("/resources/one?uri=shelf%3A%2F%2Fbook%2F2", "Resources", "shelf://book/2"),
        ("/resources/templates/book", "Resource templates", "shelf://book/{number}"),
        ("/prompts/letter", "Prompts", "letter"),
        ("/tools/seen", "Tools", "seen"),
        ("/log", "Tools", ""),
    ],
)
async def test_the_rail_shows_what_the_page_is_about(opened: Any, page: str, heading: str, current: str):
    one = await opened()
    await one.json("/resources")
    await one.json("/resources/templates")
    await one.json("/prompts")
    rail = (await one.page(page)).split('id="rail-tools"')[1].split("</nav>")[0]
    assert f"<h2>{heading}</h2>" in rail
    marked = re.findall(r'aria-current="true"\s*><span class="mono" title="([^"]*)"', rail)
    assert marked == ([current] if current else [])


@pytest.mark.requirement("U-M16")
async def test_a_tool_far_down_the_list_stands_in_the_rail_of_its_page(opened: Any):
    one = await opened(tools=250)
    name = (await one.json("/tools"))["tools"][-1]["name"]
    rail = (await one.page(f"/tools/{name}")).split('id="rail-tools"')[1].split("</nav>")[0]
    assert rail.count("<li>") == 202, "the first two hundred, this one, and the way to all"
    assert re.search(rf'aria-current="true"\s*><span class="mono" title="{name}"', rail)


@pytest.mark.requirement("U-M16")
async def test_a_list_is_sorted_by_name_and_names_that_begin_alike_stand_below_a_heading(opened: Any):
    one = await opened(tools=12)
    given = [each["name"] for each in (await one.json("/tools"))["tools"]]
    page = await one.page("/tools?sort=name")
    listed = re.findall(r'<code class="name">([^<]*)<', page)
    assert sorted(listed) == sorted(given) and listed != given
    numbered = [name for name in listed if name.startswith("tool_")]
    assert numbered == [f"tool_{n}" for n in range(12)], "ten stands behind nine"
    assert "<code>tool</code>" in page
    assert "<code>tool</code>" not in await one.page("/tools")
    found = await one.page("/tools?sort=name&q=thing", **HTMX)
    assert re.findall(r'<code class="name">([^<]*)<', found) == numbered


@pytest.mark.requirement("U-M16")
async def test_the_menu_of_sessions_has_ones_own_and_nobody_elses(
    opened: Any, client: Visitor, mallory: Visitor, stranger: Visitor
):
    one = await opened()
    await opened()
    menu = await client.get(f"/sessions?here={one.session.id}")
    assert menu.status == 200 and menu.text.count("<li>") == 2
    assert re.search(rf'/s/{one.session.id}" aria-current="page"', menu.text)
    assert len(re.findall(r"MCP 2025-11-25, since <time", menu.text)) == 2, "which of the two it is"
    assert (await mallory.get("/sessions")).text.count("<li>") == 0
    assert (await stranger.get("/sessions")).status == 401
    told = await one.script.json("/sessions")
    assert {each["id"] for each in told["sessions"]} >= {one.session.id}


@pytest.mark.requirement("U-M16")
async def test_the_palette_knows_acts_and_messages(opened: Any):
    one = await opened()
    await one.tool("seen")
    items = (await one.json("/palette"))["items"]
    acts = {each["label"]: each for each in items if each["kind"] == "act"}
    assert {"Reconnect", "Disconnect", "Call seen again", "Close this session", "Export the log"} <= set(acts)
    assert acts["Reconnect"]["post"] == {"again": "1"} and acts["Reconnect"]["href"].endswith("/connect")
    assert acts["Switch the theme"]["press"] == "#theme"
    messages = [each for each in items if each["kind"] == "message"]
    newest = (await one.json("/log"))["messages"][-1]
    assert messages[0]["label"] == newest["method"] and messages[0]["href"].endswith(f"/log/{newest['seq']}")
    again = acts["Call seen again"]
    before = len((await one.json("/calls"))["calls"])
    assert (await one.form(again["href"].removeprefix(one.path), list(again["post"].items()))).status == 303
    await until(one.session, lambda: len(one.session.calls) > before)
    await one.post("/disconnect")
    left = {each["label"] for each in (await one.json("/palette"))["items"] if each["kind"] == "act"}
    assert "Reconnect" in left and not {"Disconnect", "Call seen again"} & left
