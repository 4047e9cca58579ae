"""What a person waits for: a click on *Call* until the result stands in the page, and large results on screen.

A large result counts from the moment the server had it ready to write, by the wall time that it puts into the result,
until the tab has painted its table or tree. Both clocks are this machine's. `echo` counts inside the tab alone.
"""

import json
import time
from typing import Any

from playwright.sync_api import APIRequestContext, Page, sync_playwright

from tests.bench.processes import PACE_TARGET, WAIT, Failed, saving
from tests.bench.table import Part, Say, ms, p50, p95
from tests.browser.parley import TOKEN, Parley, launch

ECHOES, WARM = 60, 10
MOST_ECHO = 0.040
LARGE = ((1_000, 0.3), (20_000, 1.0))
RUNS = 5

ECHO = """([text]) => new Promise((done) => {
  const calls = document.querySelector('#calls'), button = document.querySelector('#call-go');
  let began = 0;
  const watch = new MutationObserver(() => {
    if (calls.firstElementChild?.querySelector('.result pre.text')?.textContent !== text) return;
    watch.disconnect();
    done((performance.now() - began) / 1000);
  });
  watch.observe(calls, { childList: true, subtree: true, characterData: true });
  addEventListener('click', () => { began = performance.now(); }, { capture: true, once: true });
  button.click();
})"""
LARGE_ONE = """() => new Promise((done) => {
  const calls = document.querySelector('#calls');
  const watch = new MutationObserver(() => {
    if (!calls.firstElementChild?.querySelector('.result .block > :is(.json, .tbl) [data-k]')) return;
    watch.disconnect();
    // A frame is painted after its callbacks: the first task behind it is when a person can see it.
    requestAnimationFrame(() => setTimeout(() => done((performance.timeOrigin + performance.now()) / 1000)));
  });
  watch.observe(calls, { childList: true, subtree: true });
  document.querySelector('#call-go').click();
})"""


def measure(say: Say) -> Part:
    part = Part("results (a real tab on a tool)")
    with saving() as parley, sync_playwright() as playwright:
        headers = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json"}
        api = playwright.request.new_context(base_url=parley.server, extra_http_headers=headers)
        browser = launch(playwright)
        page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        parley.login(page)
        bench = Bench(parley, page, api)
        say(f"{ECHOES} clicks on Call")
        echoes = bench.echoes()
        middle = p50(echoes)
        what = f"click on Call to the result of `echo` in the DOM ({ECHOES} times)"
        part.judge(what, ms(middle), f"< {MOST_ECHO * 1000:.0f} ms", middle < MOST_ECHO, p95=ms(p95(echoes)))
        for count, most in LARGE:
            for how, words in (("text", "JSON text"), ("structured", "structured content")):
                say(f"{count} objects as {words}")
                values = [bench.objects(count, how) for _ in range(RUNS)]
                figure, worst = p50(values), max(values)
                what = f"{count:,} objects as {words}, from arrival to the screen"
                part.judge(what, ms(figure), f"< {most:.1f} s", figure < most, p95=ms(worst))
        part.notes.append(f"{RUNS} results of each size: the median, and under p95 the slowest")
        browser.close()
    return part


class Bench:
    """One tab, with a session of its own for each measurement: a page with twenty large cards is another question."""

    def __init__(self, parley: Parley, page: Page, api: APIRequestContext) -> None:
        self._parley, self._page, self._api = parley, page, api

    def _json(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._api.fetch(path, method=method, data=body, timeout=WAIT * 1000)
        if not answer.ok:
            raise Failed(f"{method} {path}: {answer.status} {answer.text()[:300]}")
        return answer.json() if answer.body() else None

    def _open(self, tool: str, arguments: dict[str, Any]) -> str:
        session: str = self._json("POST", "/s", {"target": PACE_TARGET})["url"]
        if self._json("GET", f"{session}?wait={WAIT}")["connection"]["state"] != "ready":
            raise Failed("the session did not connect")
        self._json("POST", f"{session}/tools/refresh", {})
        self._page.goto(f"{self._parley.origin}{session}/tools/{tool}?as=json")
        self._page.wait_for_selector("#pill[data-state=live]", state="attached")
        self._page.fill("#arguments", json.dumps(arguments))
        self._page.wait_for_selector("#args-said > *", state="attached")
        return session

    def _close(self, session: str) -> None:
        self._page.goto(f"{self._parley.origin}/about")
        self._json("POST", f"{session}/close", {})

    def echoes(self) -> list[float]:
        """Seconds from the click to the result, in the tab; the first few do not count."""
        session, found = self._open("echo", {"message": ""}), []
        for number in range(WARM + ECHOES):
            text = f"echo {number}"
            if number:
                self._page.locator("[data-edit]").first.click()  # the form has folded with the call before
            self._page.fill("#arguments", json.dumps({"message": text}))
            self._page.wait_for_timeout(300)  # The box is checked a moment after it was typed into.
            found.append(self._page.evaluate(ECHO, [text]))
        self._close(session)
        return found[WARM:]

    def objects(self, count: int, how: str) -> float:
        """Seconds from the arrival of a large result until it is on screen."""
        session = self._open("objects", {"count": count, "how": how})
        time.sleep(0.3)
        seen = self._page.evaluate(LARGE_ONE)
        call = self._json("GET", f"{session}/calls")["calls"][0]["id"]
        result = self._json("GET", f"{session}/calls/{call}")["result"]
        self._close(session)
        return float(seen - result["_meta"]["at"])
