"""Long lists: a server with 5,000 tools and 10,000 resources, looked at and searched in a real tab.

A first page counts from the moment the last reply of the list was recorded, by the time in the log, until its rows
stand in the tab. Both clocks are this machine's. A search counts inside the tab, from the request until the rows are
swapped in; the pause after the last key comes before it.
"""

import json
import sys
import time
from datetime import datetime
from typing import Any

from playwright.sync_api import Page, sync_playwright

from tests.bench.processes import WAIT, saving
from tests.bench.table import Part, Say, ms, p50, p95
from tests.browser.parley import ROOT, Parley, launch

TOOLS, RESOURCES, PAGE = 5_000, 10_000, 500
RUNS, SEARCHES = 3, 20
MOST_FIRST, MOST_SEARCH = 0.5, 0.1

SEARCH = """async ([url, target]) => {
  const began = performance.now();
  const answer = await fetch(url, { headers: { 'HX-Request': 'true' } });
  document.querySelector(target).outerHTML = await answer.text();
  const rows = document.querySelectorAll(`${target} ul > li`).length;
  return [(performance.now() - began) / 1000, rows];
}"""
ROWS = "(list) => document.querySelectorAll(`${list} li`).length === 100"


def target() -> dict[str, Any]:
    # One page more than Parley follows would end the list early: the resources are 20 pages, the tools 11.
    settings = json.dumps({"tools": TOOLS, "resources": RESOURCES - 1, "page": PAGE})
    args = ["-I", "-S", str(ROOT / "tests" / "servers" / "shelf.py"), "--with", settings]
    return {"transport": "stdio", "command": sys.executable, "args": args}


def measure(say: Say) -> Part:
    part = Part(f"long lists ({TOOLS:,} tools, {RESOURCES:,} resources, a real tab)")
    firsts: dict[str, list[float]] = {"tools": [], "resources": []}
    searches: dict[str, list[float]] = {"tools": [], "resources": []}
    with saving() as parley, sync_playwright() as playwright:
        browser = launch(playwright)
        page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        page.set_default_timeout(WAIT * 1000)
        parley.login(page)
        for number in range(RUNS):
            say(f"first pages, {number + 1} of {RUNS}")
            path = parley.script("POST", "/s")["url"]
            page.goto(f"{parley.origin}{path}/tools")
            page.wait_for_selector("#pill[data-state=live]")
            parley.script("POST", f"{path}/connect", target=target(), options={"era": "legacy"})
            firsts["tools"].append(_first(page, parley, path, "#tool-list", "tools/list"))
            page.goto(f"{parley.origin}{path}/resources")
            firsts["resources"].append(_first(page, parley, path, "#resource-list", "resources/list"))
            say(f"searches, {number + 1} of {RUNS}")
            for name, word in (("resources", "book"), ("tools", "number")):
                page.goto(f"{parley.origin}{path}/{name}")
                for at in range(SEARCHES):
                    url = f"{parley.origin}{path}/{name}?q={word}+{at * 211 + 7}"
                    took, rows = page.evaluate(SEARCH, [url, f"#{name}"])
                    assert rows >= 1, url
                    searches[name].append(took)
            parley.script("POST", f"{path}/close")
        browser.close()
    for name, many in (("tools", TOOLS), ("resources", RESOURCES)):
        values = firsts[name]
        what = f"last reply of {many:,} {name} to the first page on screen ({RUNS} times)"
        part.judge(what, ms(p50(values)), "< 500 ms", max(values) < MOST_FIRST, p95=ms(max(values)))
        values = searches[name]
        what = f"search in {many:,} {name}, request to rows in the tab ({len(values)} times)"
        part.judge(what, ms(p50(values)), "< 100 ms", p95(values) < MOST_SEARCH, p95=ms(p95(values)))
    part.notes.append(
        "the pause after the last key, 120 ms, is not counted; a page shows 100 items, p95 of three is the slowest"
    )
    return part


def _first(page: Page, parley: Parley, path: str, rows: str, method: str) -> float:
    """Seconds from the last reply of a list until its first rows stand in the tab."""
    page.wait_for_function(ROWS, arg=rows, polling=5)
    shown = time.time()
    log = parley.script("GET", f"{path}/log?limit=200")["messages"]
    last = [each["time"] for each in log if each["direction"] == "in" and each["method"] == method][-1]
    return shown - datetime.fromisoformat(last).timestamp()
