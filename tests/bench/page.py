"""What a person sees: how soon a message is in the DOM of a real tab, and what a burst does to that tab.

The server under the page writes the wall time into each message; the tab takes its own when the row is there. Both
clocks are this machine's, and the run checks that the tab's agrees.
"""

import json
import time
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import APIRequestContext, Page, sync_playwright

from tests.bench.processes import PACE_TARGET, WAIT, Failed, saving
from tests.bench.table import Part, Say, ms, p50, p95
from tests.browser.parley import TOKEN, Parley, launch

IDLE, IDLE_RATE = 200, 20
LOADED, LOADED_RATE = 5_000, 1_000
BURST, BURSTS = 10_000, 3
MOST_LATENCY = 0.010
MOST_GAP = 0.200
SETTLE = 1.0

OBSERVE = r"""() => {
  const bench = window.bench = { rows: [], tasks: [], gaps: [], counting: false };
  new MutationObserver((records) => {
    const now = performance.timeOrigin + performance.now();
    for (const record of records) for (const row of record.addedNodes) {
      const said = /n=(\d+) at=([\d.]+)/.exec(row.textContent);
      if (said) bench.rows.push([+said[1], +said[2], now / 1000]);
    }
  }).observe(document.querySelector('#log'), { childList: true });
  new PerformanceObserver((list) => { for (const one of list.getEntries()) bench.tasks.push(one.duration / 1000); })
    .observe({ type: 'longtask' });
}"""
COUNT_FRAMES = """() => {
  let last = performance.now();
  bench.counting = true;
  const frame = () => {
    const now = performance.now();
    bench.gaps.push((now - last) / 1000);
    last = now;
    if (bench.counting) requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}"""
COLLECT = "() => { bench.counting = false; return bench; }"
SHOWN = """() => ({
  count: +document.querySelector('#log-count').textContent.replace(/[^0-9]/g, ''),
  seqs: [...document.querySelectorAll('#log > li')].map((row) => +row.id.slice(1)),
})"""


def measure(say: Say) -> Part:
    part = Part("page (a real tab on the log)")
    with saving() as parley, sync_playwright() as playwright:
        headers = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json"}
        api = playwright.request.new_context(base_url=parley.server, extra_http_headers=headers)
        browser = launch(playwright)
        page = browser.new_context().new_page()
        parley.login(page)
        tab = Tab(parley, page, api)
        say(f"{IDLE} messages at {IDLE_RATE}/s")
        _idle(part, tab)
        say(f"{LOADED} messages at {LOADED_RATE}/s")
        _loaded(part, tab)
        bursts = []
        for number in range(BURSTS):
            say(f"burst {number + 1} of {BURSTS}, {BURST} messages")
            bursts.append(tab.burst())
        _burst(part, bursts)
        part.notes.append(
            f"{browser.browser_type.name} {browser.version} without a window; the server's clock and the tab's agree "
            f"within {ms(tab.clock_error)}"
        )
        browser.close()
    return part


@dataclass(slots=True)
class Burst:
    """What one burst did."""

    kept: int
    """Messages of the burst in the server's log."""
    consistent: bool
    """The page's count is the server's, and its rows are the newest of the server's, in order."""
    written: float
    caught_up: float
    gap: float
    task: float


class Tab:
    """One tab, and the sessions it looks at one after the other."""

    def __init__(self, parley: Parley, page: Page, api: APIRequestContext) -> None:
        self._parley, self._page, self._api = parley, page, api
        self.clock_error = 0.0

    def _json(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._api.fetch(path, method=method, data=body, timeout=WAIT * 1000)
        if not answer.ok:
            raise Failed(f"{method} {path}: {answer.status} {answer.text()[:300]}")
        return answer.json() if answer.body() else None

    def open(self) -> str:
        """A new session with the pace server, its log in the tab, the stream connected."""
        session: str = self._json("POST", "/s", {"target": PACE_TARGET})["url"]
        if self._json("GET", f"{session}?wait={WAIT}")["connection"]["state"] != "ready":
            raise Failed("the session did not connect")
        self._json("POST", f"{session}/tools/refresh", {})
        self._page.goto(f"{self._parley.origin}{session}/log")
        self._page.wait_for_selector("#pill[data-state=live]", state="attached")
        self._page.evaluate(OBSERVE)
        self._page.wait_for_timeout(SETTLE * 1000)
        self._check_clock()
        return session

    def close(self, session: str) -> None:
        self._page.goto(f"{self._parley.origin}/about")
        self._json("POST", f"{session}/close", {})

    def _check_clock(self) -> None:
        """How far the tab's clock is from ours, at most: half of the quickest round trip, and what is beyond it."""
        errors = []
        for _ in range(10):
            before = time.time()
            there = self._page.evaluate("(performance.timeOrigin + performance.now()) / 1000")
            after = time.time()
            errors.append(max(before - there, there - after, 0.0))
        self.clock_error = max(self.clock_error, min(errors))

    def pace(self, session: str, count: int, per_second: int) -> str:
        """Have the server write; the path of the call."""
        params = {"name": "pace", "arguments": {"count": count, "per_second": per_second}}
        cid = self._json("POST", f"{session}/calls", {"method": "tools/call", "params": params})["id"]
        return f"{session}/calls/{cid}"

    def paced(self, count: int, per_second: int, *, frames: bool) -> Any:
        """What the tab saw of so many messages at that pace. Without a word to it meanwhile: that would cost it."""
        session = self.open()
        if frames:
            self._page.evaluate(COUNT_FRAMES)
        call = self.pace(session, count, per_second)
        time.sleep(count / per_second)
        if self._json("GET", f"{call}?wait={WAIT}")["state"] != "done":
            raise Failed("the server did not keep its pace")
        self._page.wait_for_timeout(SETTLE * 1000)
        found = self._page.evaluate(COLLECT)
        self.close(session)
        return found

    def burst(self) -> Burst:
        session = self.open()
        self._page.evaluate(COUNT_FRAMES)
        call = self._json("GET", f"{self.pace(session, BURST, 0)}?wait={WAIT}")
        began, ended = json.loads(call["result"]["content"][0]["text"])
        self._page.wait_for_timeout(SETTLE * 1000)
        total = self._json("GET", session)["counts"]["messages"]
        end = time.monotonic() + WAIT
        while (shown := self._page.evaluate(SHOWN))["count"] != total and time.monotonic() < end:
            self._page.wait_for_timeout(100)
        found = self._page.evaluate(COLLECT)
        log = self._log(session)
        kept = [json.loads(each["raw"]) for each in log if each["method"] == "notifications/message"]
        numbers = [int(each["params"]["data"].split()[0][2:]) for each in kept]
        seqs = [each["seq"] for each in log]
        arrived = [at for number, _, at in found["rows"] if number == BURST - 1]
        result = Burst(
            kept=sum(number == place for place, number in enumerate(numbers)),
            consistent=shown["count"] == len(log)
            and bool(arrived)
            and len(shown["seqs"]) > 0
            and shown["seqs"] == seqs[-len(shown["seqs"]) :],
            written=ended - began,
            caught_up=(arrived[0] if arrived else time.time()) - began,
            gap=max(found["gaps"][1:]),
            task=max(found["tasks"], default=0.0),
        )
        self.close(session)
        return result

    def _log(self, session: str) -> list[Any]:
        messages: list[Any] = []
        while True:
            after = messages[-1]["seq"] if messages else 0
            portion = self._json("GET", f"{session}/log?after={after}&limit=1000")["messages"]
            if not portion:
                return messages
            messages += portion


# ---- rows


def _latencies(found: Any) -> list[float]:
    first: dict[int, float] = {}
    for number, sent, seen in found["rows"]:
        first.setdefault(number, seen - sent)
    return list(first.values())


def _idle(part: Part, tab: Tab) -> None:
    values = _latencies(tab.paced(IDLE, IDLE_RATE, frames=False))
    what = f"message to DOM, idle ({len(values)} of {IDLE} at {IDLE_RATE}/s)"
    middle = p50(values)
    part.judge(what, ms(middle), f"< {MOST_LATENCY * 1000:.0f} ms", middle < MOST_LATENCY, p95=ms(p95(values)))


def _loaded(part: Part, tab: Tab) -> None:
    found = tab.paced(LOADED, LOADED_RATE, frames=True)
    values = _latencies(found)
    part.add(
        f"message to DOM, loaded ({len(values):,} of {LOADED:,} at {LOADED_RATE:,}/s)",
        ms(p50(values)),
        p95=ms(p95(values)),
    )
    part.add("worst frame gap under that load", ms(max(found["gaps"][1:])))


def _burst(part: Part, bursts: list[Burst]) -> None:
    least = min(burst.kept for burst in bursts)
    whole = least == BURST and all(burst.consistent for burst in bursts)
    part.judge("burst, messages kept and page consistent", f"{least:,} of {BURST:,}", "all", whole)
    if not all(burst.consistent for burst in bursts):
        part.notes.append("AFTER A BURST THE PAGE DID NOT SHOW WHAT THE SERVER HAS")
    gap = max(burst.gap for burst in bursts)
    part.judge("burst, worst frame gap", ms(gap), f"< {MOST_GAP * 1000:.0f} ms", gap < MOST_GAP)
    task = max(burst.task for burst in bursts)
    part.add("burst, longest task of the tab", ms(task) if task else "none > 50 ms")
    part.add("burst, until the tab had caught up", ms(p50([burst.caught_up for burst in bursts])))
    part.add("burst, of that the server's writing", ms(p50([burst.written for burst in bursts])))
    part.notes.append(f"{BURSTS} bursts of {BURST:,} messages: the worst gap and task of all, the median of the times")
