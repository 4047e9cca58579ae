"""Two sessions page by page: everything that can be reached below an address, as text and as JSON, but for acts."""

import json
import re
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote, urldefrag

from tests.web.asgi import Visitor

_VOID = {"input", "br", "img", "meta", "link", "hr", "rect", "path", "use", "wbr", "line", "circle", "col", "source"}
_ACTS = {"form", "button", "script", "style", "noscript", "template", "select", "textarea"}
"""What does something."""
_ACT_CLASSES = {"acts", "menu", "argform", "more2", "compare-link", "only-empty", "empty", "make-rule", "how-to"}
_ACT_WORDS = {"Send this round again…"}
_ACT_SECTIONS = {"ping-title", "next-title", "edit-title", "level-title", "any-title", "listen-title"}
ACTING = ("/connect", "/compose", "/stage", "/saved", "/rules", "/models")
"""Below a session: where something is done."""
_PLACE = re.compile(r"/(?:s|r)/[A-Za-z0-9_-]+")


class Page(HTMLParser):
    """The words of the main part, with where its links lead; and every address of this session in the page."""

    def __init__(self, base: str) -> None:
        super().__init__()
        self.base, self.words, self.links = base, list[str](), set[str]()
        self._open: list[tuple[str, bool]] = []
        self._main = 0

    @property
    def _skips(self) -> bool:
        return any(skip for _, skip in self._open)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        here = given.get("href") or ""
        acts = here.startswith(tuple(self.base + one for one in ACTING)) or "?from=" in here
        if not acts and here.startswith(self.base) and "download" not in given:
            self.links.add(urldefrag(here)[0])
        classes = set((given.get("class") or "").split())
        about = given.get("aria-labelledby") or ""
        skip = tag in _ACTS or bool(classes & _ACT_CLASSES) or "hidden" in given or about in _ACT_SECTIONS or acts
        if tag == "main":
            self._main += 1
        if self._main and not self._skips and not skip and here and not here.startswith("/static/"):
            self.words.append(f"[{_PLACE.sub('/X', here)}]")
        if tag not in _VOID:
            self._open.append((tag, skip))

    def handle_endtag(self, tag: str) -> None:
        while any(one == tag for one, _ in self._open):
            last, _ = self._open.pop()
            if last == tag:
                break
        if tag == "main":
            self._main -= 1

    def handle_data(self, data: str) -> None:
        words = " ".join(_PLACE.sub("/X", data).split())
        if self._main and not self._skips and words and words not in _ACT_WORDS:
            self.words.append(words)


async def crawled(client: Visitor, base: str, leave: tuple[str, ...]) -> dict[str, list[str]]:
    """Every page below an address that links lead to, by its path below it."""
    found: dict[str, list[str]] = {}
    waiting = [base]
    while waiting:
        path = waiting.pop()
        below = path.removeprefix(base)
        if below in found or below.startswith(leave):
            continue
        answer = await client.get(_decoded(path))
        assert answer.status == 200, (path, answer.status, answer.text[:300])
        if not (answer.header("content-type") or "").startswith("text/html"):
            found[below] = [_PLACE.sub("/X", answer.text)]
            continue
        page = Page(base)
        page.feed(answer.text)
        found[below] = page.words
        waiting += sorted(page.links)
    return found


def _decoded(path: str) -> str:
    """As a server hands it on: a name in a path may hold a space."""
    path, mark, query = path.partition("?")
    return f"{unquote(path)}{mark}{query}"


async def told(script: Visitor, base: str, paths: list[str]) -> dict[str, Any]:
    """The same as JSON, where there is JSON."""
    found = {}
    for below in paths:
        answer = await script.get(_decoded(base + below))
        if answer.status == 200 and (answer.header("content-type") or "") == "application/json":
            found[below] = json.loads(_PLACE.sub("/X", answer.text))
    return found
