"""What a person waits for when a model writes, and a provider when its request is not wanted any more.

A stand-in writes the wall time at which its first word leaves into that word, and then stays silent; the tab takes its
own time when the word can be read in the card of the ask. Then the server takes its ask back, and the stand-in says
when its connection was gone. All clocks are this machine's. What models cost who has none stands at the end.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Page, sync_playwright

from tests.bench.processes import WAIT, Failed, busy, resident, saving
from tests.bench.table import Part, Say, mb, ms, p50, p95
from tests.browser.parley import ROOT, Parley, launch
from tests.drive import SERVERS, raw_target

COUNT = 20
MOST_WORD = 0.030
MOST_CANCEL = 0.100
READS = 200
"""Milliseconds until somebody who sees a card asks a model: nobody presses what has not come, and while the parts of an
ask come, one to a frame, the word would stand behind them."""
SAMPLING = {"messages": [{"role": "user", "content": {"type": "text", "text": "A caption?"}}], "maxTokens": 40}
DONE = '{"jsonrpc": "2.0", "id": "$ID", "result": {"content": []}}'

OBSERVE = r"""() => {
  window.bench = [];
  const seen = new Set();
  new MutationObserver(() => {
    const now = (performance.timeOrigin + performance.now()) / 1000;
    for (const place of document.querySelectorAll('.ask [data-draft]')) {
      const said = /\bat=(\d+\.\d+)/.exec(place.textContent);
      if (!said || seen.has(said[1]) || !place.checkVisibility()) continue;
      seen.add(said[1]);
      window.bench.push(now - +said[1]);
    }
  }).observe(document.body, { childList: true, characterData: true, subtree: true });
}"""


class StandIn:
    """The providers of the tests, and what they say happened."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.port: int = self.next()["port"]

    def next(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())


@contextmanager
def _stand_in() -> Iterator[StandIn]:
    command = [sys.executable, "-I", str(SERVERS / "providers.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield StandIn(process)
        finally:
            process.kill()


def measure(say: Say) -> Part:
    part = Part("models (a stand-in, a real tab)")
    say("what models cost who has none")
    _without(part)
    with _stand_in() as providers, saving() as parley, sync_playwright() as playwright:
        browser = launch(playwright)
        page = browser.new_context().new_page()
        parley.login(page)
        target = raw_target().model_dump(mode="json")
        session: str = parley.script("POST", "/s", target=target, options={"era": "legacy"})["url"]
        if parley.script("GET", f"{session}?wait=20")["connection"]["state"] != "ready":
            raise Failed("the session did not connect")
        page.goto(parley.origin + session)
        page.wait_for_selector("#pill[data-state=live]", state="attached")
        page.evaluate(OBSERVE)
        idle = resident(parley.process.pid)
        words: dict[str, list[float]] = {}
        ends: list[float] = []
        for provider, base in (("openai", "/v1"), ("anthropic", "")):
            address = f"http://127.0.0.1:{providers.port}{base}"
            more = {"provider": provider, "base_url": address, "model": "stamp-1", "key": "k"}
            parley.script("POST", f"{session}/models", name=provider, **more)
            say(f"{COUNT} drafts in the format of {provider}")
            for number in range(COUNT + 1):
                found, ended = _once(parley, page, providers, session, provider, f"{provider}-{number}")
                if number:
                    words.setdefault(provider, []).append(found)
                    ends.append(ended)
        loaded = resident(parley.process.pid)
        browser.close()
    for provider, values in words.items():
        what = f"first word in the card after it left, format of {provider} ({len(values)})"
        middle = p50(values)
        part.judge(what, ms(middle), f"<= {MOST_WORD * 1000:.0f} ms", middle <= MOST_WORD, p95=ms(p95(values)))
    what, middle = f"server's cancel until the provider's connection is gone ({len(ends)})", p50(ends)
    part.judge(what, ms(middle), f"<= {MOST_CANCEL * 1000:.0f} ms", middle <= MOST_CANCEL, p95=ms(p95(ends)))
    part.add("memory that the clients of providers take, from the first draft on", mb(loaded - idle))
    part.notes.append(
        "a cancel begins when the server writes it, and ends when the stand-in sees its connection closed"
    )
    return part


def _once(parley: Parley, page: Page, providers: StandIn, session: str, model: str, rpc_id: str) -> tuple[float, float]:
    """One draft that a cancel of the server ends: the wait of the person, and that of the provider."""
    line = {"jsonrpc": "2.0", "id": rpc_id, "method": "sampling/createMessage", "params": SAMPLING}
    _say(parley, session, line)
    [ask] = parley.script("GET", f"{session}/inbox?wait=20")["open"]
    page.wait_for_selector(f"#ask-{ask['id']}")
    page.wait_for_timeout(READS)
    before: int = page.evaluate("bench.length")
    parley.script("POST", f"{session}/asks/{ask['id']}/draft", model=model)
    providers.next()
    page.wait_for_function("before => bench.length > before", arg=before, timeout=WAIT * 1000)
    found: float = page.evaluate("bench.at(-1)")
    params = {"requestId": rpc_id, "reason": "$NOW"}
    _say(parley, session, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    left: float = providers.next()["at"]
    ended = left - float(parley.script("GET", f"{session}/asks/{ask['id']}")["reason"])
    # What was withdrawn is kept in the page with its draft, until somebody dismisses it.
    page.locator("#kept > .ask [data-put-away]").click()
    page.wait_for_selector("#kept > .ask", state="detached")
    parley.script("POST", f"{session}/inbox/clear")
    return found, ended


def _say(parley: Parley, session: str, line: dict[str, Any]) -> None:
    params = {"name": "say", "arguments": {"lines": [json.dumps(line), DONE]}}
    parley.script("POST", f"{session}/calls", method="tools/call", params=params)


def _without(part: Part) -> None:
    """Nobody who names no model imports what talks to one."""
    code = (
        "import sys, app.cli, app.server, app.web.app, app.web.routes, app.sessions\n"
        "print(sum(name.split('.')[0] in ('pydantic_ai', 'openai', 'anthropic') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    many = int(done.stdout)
    part.judge("modules of providers' clients imported at the start", str(many), "0", many == 0)
    with saving() as parley:
        time.sleep(1)
        part.add("memory when idle, the extra installed and no model named, RSS", mb(resident(parley.process.pid)))
        part.add("start without a model, CPU", ms(busy(parley.process.pid)))
