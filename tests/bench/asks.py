"""What a server and a person wait for when something is asked: the task object, and the card in a real tab.

The server measures its own wait for `CreateTaskResult`, with the page open and nobody touching it. For the card it
writes the wall time into its question, and the tab takes its own when the card is there; log rows of the same run,
half a turn apart, are the plain figure beside it. Both clocks are this machine's.
"""

import json
import sys
from typing import Any

from playwright.sync_api import Page, sync_playwright

from tests.bench.processes import SERVERS, WAIT, Failed, saving
from tests.bench.table import Part, Say, ms, p50, p95
from tests.browser.parley import Parley, launch

COUNT, RATE = 50, 5
MOST_TASK = 0.050
MOST_CARD = 0.030
TARGET = {"transport": "stdio", "command": sys.executable, "args": ["-I", "-S", str(SERVERS / "asker.py")]}

OBSERVE = r"""() => {
  const bench = window.bench = { cards: [], rows: [] };
  const watch = (selector, found, pattern) => new MutationObserver((records) => {
    const now = (performance.timeOrigin + performance.now()) / 1000;
    for (const record of records) for (const node of record.addedNodes) {
      const said = pattern.exec(node.textContent);
      if (said) found.push([+said[1], now - +said[2]]);
    }
  }).observe(document.querySelector(selector), { childList: true });
  watch('#asks', bench.cards, /ask=(\d+) at=([\d.]+)/);
  watch('#log', bench.rows, /\bn=(\d+) at=([\d.]+)/);
}"""


def measure(say: Say) -> Part:
    part = Part("asks (a real tab, untouched)")
    with saving() as parley, sync_playwright() as playwright:
        browser = launch(playwright)
        page = browser.new_context().new_page()
        parley.login(page)
        session: str = parley.script("POST", "/s", target=TARGET, options={"era": "legacy"})["url"]
        if parley.script("GET", f"{session}?wait=20")["connection"]["state"] != "ready":
            raise Failed("the session did not connect")
        page.goto(parley.origin + session)
        page.wait_for_selector("#pill[data-state=live]", state="attached")
        page.evaluate(OBSERVE)
        _called(parley, page, session, "by_task", 5)
        say(f"{COUNT} asks by a task at {RATE}/s")
        took = _called(parley, page, session, "by_task", COUNT)
        say(f"{COUNT} asks and {COUNT} log rows at {RATE}/s")
        _called(parley, page, session, "plainly", COUNT)
        seen: dict[str, list[Any]] = page.evaluate("bench")
        part.notes.append(f"{browser.browser_type.name} {browser.version} without a window")
        browser.close()
    worst = max(took)
    what = f"CreateTaskResult, as the server waits for it ({len(took)} of {COUNT}), the slowest"
    part.judge(what, ms(worst), f"< {MOST_TASK * 1000:.0f} ms", worst < MOST_TASK)
    part.add("CreateTaskResult, median", ms(p50(took)), p95=ms(p95(took)))
    cards, rows = _first(seen["cards"]), _first(seen["rows"])
    middle, plain = p50(cards), p50(rows)
    what = f"ask to card in the DOM ({len(cards)} of {COUNT} at {RATE}/s)"
    part.judge(what, ms(middle), f"< {MOST_CARD * 1000:.0f} ms", middle < MOST_CARD, p95=ms(p95(cards)))
    part.add(f"message to row in the DOM, same run ({len(rows)} of {COUNT})", ms(plain), p95=ms(p95(rows)))
    return part


def _called(parley: Parley, page: Page, session: str, tool: str, count: int) -> list[float]:
    """Have the server ask; what it measured. The tab is not spoken to meanwhile."""
    params = {"name": tool, "arguments": {"count": count, "per_second": RATE}}
    call = parley.script("POST", f"{session}/calls", method="tools/call", params=params, timeout_ms=120_000)["id"]
    found: Any = None
    for _ in range(12):
        page.wait_for_timeout(WAIT * 1000 / 12 if count > 5 else 1500)
        found = parley.script("GET", f"{session}/calls/{call}")
        if found["state"] == "done":
            return list(json.loads(found["result"]["content"][0]["text"]))
        if found["state"] in ("failed", "cancelled"):
            break
    raise Failed(f"{tool} did not come to its end: {found['state']}")


def _first(pairs: list[Any]) -> list[float]:
    """Each number once, as it was first seen."""
    found: dict[int, float] = {}
    for number, seconds in pairs:
        found.setdefault(number, seconds)
    return list(found.values())
