"""`make load-room`: three hundred phones answer one question within ten seconds, on whatever this machine has.

Real sockets, a real stage in Chromium: none of the answers may be lost, the stage keeps moving, and nobody waits.
Prints what was measured, and ends with 1 when a figure is missed.
"""

from __future__ import annotations

import asyncio
import re
import statistics
import sys
import threading
import time
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import sync_playwright

from tests.browser.parley import Parley, launch, running

PHONES = 300
SECONDS = 10.0
FRAME_MS = 200
POST_MS = 500
_FRAMES = """() => {
  window.gaps = [];
  let last = performance.now();
  const step = (now) => { window.gaps.push(now - last); last = now; requestAnimationFrame(step); };
  requestAnimationFrame(step);
}"""


class Phone:
    """One phone: it comes, looks at the question, chooses after a while, and sends. Each has its own connections."""

    def __init__(self, host: str, port: int, path: str) -> None:
        self.host, self.port, self.path = host, port, path
        self.cookie = ""

    async def ask(self, method: str, path: str, body: str = "") -> tuple[int, str, str]:
        reader, writer = await asyncio.open_connection(self.host, self.port)
        lines = [f"{method} {path} HTTP/1.1", f"host: {self.host}:{self.port}", "connection: close"]
        lines += [f"cookie: {self.cookie}"] if self.cookie else []
        if method == "POST":
            lines += ["content-type: application/x-www-form-urlencoded", f"content-length: {len(body)}"]
            lines += [f"origin: http://{self.host}:{self.port}"]
        writer.write(("\r\n".join(lines) + "\r\n\r\n" + body).encode())
        text = (await reader.read()).decode()
        writer.close()
        head, _, rest = text.partition("\r\n\r\n")
        given = re.search(r"set-cookie: ([^;\r]+)", head)
        if given:
            self.cookie = given[1]
        return int(head.split()[1]), rest, head

    async def answers(self, after: float, choice: int) -> tuple[int, float]:
        """Look at the question, send a choice after so long; the status, and how long the sending took."""
        status, page, _ = await self.ask("GET", self.path)
        seen = re.search(r'name="seen" value="([^"]+)"', page)
        assert status == 200 and seen, (status, page[:200])
        await asyncio.sleep(after)  # noqa: TID251 - somebody thinks
        began = time.monotonic()
        status, page, _ = await self.ask("POST", self.path, f"seen={seen[1]}&%2FoutputFormat={choice}")
        took = time.monotonic() - began
        return (status if "Thank you" in page else 0), took


async def crowd(host: str, port: int, path: str) -> tuple[list[tuple[int, float]], float]:
    """What became of each phone's answer, and how long all of them took, once everybody was in the room."""
    phones = [Phone(host, port, path) for _ in range(PHONES)]
    for phone in phones:
        await phone.ask("GET", path)
        await asyncio.sleep(0.005)  # noqa: TID251 - they come one after the other
    waits = [(at * 7919 % PHONES) / PHONES * (SECONDS - 2) for at in range(PHONES)]
    began = time.monotonic()
    told = await asyncio.gather(
        *(phone.answers(wait, at % 3) for at, (phone, wait) in enumerate(zip(phones, waits, strict=True)))
    )
    return told, time.monotonic() - began


def main() -> int:
    """Measure, print, and say whether it was good enough."""
    with running("demo", "--room", "127.0.0.1:0") as parley, sync_playwright() as playwright:
        browser = launch(playwright)
        page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        page.goto(parley.code())
        base: str = parley.script("POST", "/s", target={"transport": "demo"}, options={"era": "legacy"})["url"]
        parley.script("GET", f"{base}?wait=20")
        page.goto(f"{parley.origin}{base}/stage")
        room = parley.script("POST", f"{base}/room")
        call = {"name": "preferences", "arguments": {}}
        parley.script("POST", f"{base}/calls", method="tools/call", params=call)
        page.wait_for_selector("#room[data-poll]")
        page.evaluate(_FRAMES)
        told: list[tuple[list[tuple[int, float]], float]] = []
        where = urlsplit(room["address"])
        assert where.hostname is not None and where.port is not None
        thread = threading.Thread(
            target=lambda: told.append(asyncio.run(crowd(where.hostname or "", where.port or 0, where.path)))
        )
        thread.start()
        while thread.is_alive():
            page.wait_for_timeout(100)
        page.wait_for_timeout(400)
        gaps: list[float] = page.evaluate("window.gaps")
        shown = int(page.locator("#room-answers").inner_text())
        counted: dict[str, Any] = parley.script("GET", f"{base}/room")["poll"]
        parley.script("POST", f"{base}/room/act", do="confirm")
        browser.close()
        return report(*told[0], gaps, shown, counted, memory(parley))


def memory(parley: Parley) -> float:
    import psutil

    found: float = psutil.Process(parley.process.pid).memory_info().rss / 2**20
    return found


def report(
    told: list[tuple[int, float]], took: float, gaps: list[float], shown: int, counted: dict[str, Any], rss: float
) -> int:
    """Print what was measured; 1 when one of the promised figures is missed."""
    posts = sorted(seconds * 1000 for _, seconds in told)
    p95 = posts[int(len(posts) * 0.95)]
    sent = sum(status == 200 for status, _ in told)
    good = {
        f"{sent} of {PHONES} phones were thanked": sent == PHONES,
        f"{counted['answers']} answers counted, {shown} on the stage": counted["answers"] == shown == PHONES,
        f"within {took:.1f} s (at most {SECONDS:g})": took <= SECONDS,
        f"largest gap between two frames of the stage {max(gaps):.0f} ms (at most {FRAME_MS})": max(gaps) <= FRAME_MS,
        f"p95 of a phone's POST {p95:.0f} ms (at most {POST_MS}), median {statistics.median(posts):.0f} ms": p95
        <= POST_MS,
    }
    for words, fine in good.items():
        print(f"{'ok  ' if fine else 'MISS'} {words}")
    print(f"     {rss:.0f} MB resident afterwards, {len(gaps)} frames")
    return 0 if all(good.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
