"""A page of a server in its frame, in a real Chromium: whatever it tries, nobody is connected to."""

import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests import chromium
from tests.browser.conftest import Watch
from tests.browser.parley import Parley
from tests.drive import raw_target

ELSEWHERE = "http://127.0.0.1:{port}"
LINKS = [
    '<link rel="preconnect" href="@">',
    "<LINK/REL=preconnect\nHREF=@/upper>",
    '<link\trel="preconnect" href="@/tab" crossorigin>',
    '<link rel="dns-prefetch" href="@/dns">',
    '<link rel="prefetch" href="@/prefetch"><link rel="preload" as="image" href="@/preload">',
    '<link rel="prerender" href="@/prerender"><link rel="modulepreload" href="@/module">',
    '<link rel="stylesheet" href="@/style.css"><link rel="icon" href="@/icon"><link rel="manifest" href="@/manifest">',
    '<noscript><link rel="preconnect" href="@/noscript"></noscript>',
    '<svg><foreignObject><link rel="preconnect" href="@/svg"></foreignObject></svg>',
    '<svg><link xmlns="http://www.w3.org/1999/xhtml" rel="preconnect" href="@/namespace"/></svg>',
    '<math><annotation-xml encoding="text/html"><link rel="preconnect" href="@/math"></annotation-xml></math>',
    '<table><link rel="preconnect" href="@/table"></table><select><link rel="preconnect" href="@/select"></select>',
    '<!-- > --><x/><link rel="preconnect" href="@/comment">',
    '<title></title><style></style><link rel="preconnect" href="@/head">',
]
OTHERS = [
    '<meta http-equiv="x-dns-prefetch-control" content="on"><a href="@/anchor">an anchor</a>',
    '<meta http-equiv="refresh" content="0; url=@/refresh">',
    '<meta http-equiv="Link" content="<@/equiv>; rel=preconnect">',
    '<meta name="referrer" content="unsafe-url"><base href="@/base/">',
    '<script type="speculationrules">{"prerender":[{"urls":["@/rules"]}]}</script><script src="@/script"></script>',
    '<img src="@/img" srcset="@/srcset 2x"><picture><source srcset="@/picture"><img></picture>',
    '<video poster="@/poster" src="@/video" autoplay></video><audio src="@/audio" autoplay></audio>',
    '<video><track src="@/track" default></video><input type="image" src="@/input">',
    '<object data="@/object"></object><embed src="@/embed"><applet code="@/applet"></applet>',
    '<iframe src="@/iframe"></iframe><IFRAME srcdoc="{nested}"></IFRAME>',
    '<iframe src="data:text/html,{nested}"></iframe><iframe/srcdoc="{nested}"></iframe >',
    '</head><frameset><frame src="@/frameset"><frame src="data:text/html,{nested}"></frameset>',
    '<svg><use href="@/use.svg#x"/><image href="@/image"/><feImage href="@/fe"/><a href="@/a"><text>x</text></a></svg>',
    '<math href="@/math"><mtext>x</mtext></math>',
    '<style>@import "@/import.css"; @font-face { font-family: f; src: url(@/font) } '
    'p { background: url(@/css); font-family: f; cursor: url(@/cursor), auto; content: image-set("@/set" 1x) }</style>',
    '<p style="background: url(@/attribute)" background="@/background">the end</p><body background="@/body">',
    '<form action="@/form"><button>send</button></form>',
]
CLICKED = [
    '<a id="go" href="@/click" ping="@/ping">go there</a>',
    "<a id=go title='>' HREF\n=\n'@/click'>go there</a>",
    '<a id="go" href="@/click" target="_blank">go there</a><a href="@/top" target="_top">or there</a>',
    '<a id="go" download href="&#104;ttp://{host}/click">go there</a>',
    '<svg width="99" height="40"><a xlink:href="@/click"><text id="go" y="20">go there</text></a></svg>',
    '<svg width="99" height="40"><a><set attributeName="href" to="@/set"/><text id="go" y="20">go</text></a></svg>',
    '<svg width="99" height="40"><a><animate attributeName=&#104;ref values="@/animate"/>'
    '<text id="go" y="20">go</text></a></svg>',
    '<svg width="99" height="40"><a><animate attributeName="xlink:href" values="@/animate;@/x" dur="1s"/>'
    '<text id="go" y="20">go</text></a></svg>',
    '<img id="go" usemap="#m" width="50" height="50" alt="x"><map name="m"><area shape="default" href="@/area"></map>',
    '<form action="@/form" target="_blank"><button id="go">send</button></form>',
    '<form><button id="go" formaction="@/formaction">send</button><input type="image" src="@/image"></form>',
]


class Listener:
    """A socket that counts who connects, whether or not they say anything."""

    def __init__(self) -> None:
        self.count = 0
        self.came = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = ELSEWHERE.format(port=self._socket.getsockname()[1])
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self) -> None:
        while True:
            try:
                peer = self._socket.accept()[0]
            except OSError:
                return
            self.count += 1
            self.came.set()
            peer.close()

    def close(self) -> None:
        self._socket.close()


@contextmanager
def listening() -> Iterator[Listener]:
    listener = Listener()
    try:
        yield listener
    finally:
        listener.close()


def server(parley: Parley) -> str:
    """A session with a server that sends what it is told to; its path."""
    path: str = parley.script("POST", "/s", target=raw_target().model_dump(), options={"era": "legacy"})["url"]
    assert parley.script("GET", f"{path}?wait=30")["connection"]["state"] == "ready"
    return path


def shown(page: Page, parley: Parley, path: str, html: str) -> None:
    """Have the server send this page, and show it in its frame."""
    content = {"type": "resource", "resource": {"uri": "ui://page", "mimeType": "text/html", "text": html}}
    line = f'{{"jsonrpc":"2.0","id":$ID,"result":{json.dumps({"content": [content]})}}}'
    params = {"name": "say", "arguments": {"lines": [line]}}
    call = parley.script("POST", f"{path}/calls", method="tools/call", params=params)["id"]
    assert parley.script("GET", f"{path}/calls/{call}?wait=30")["state"] == "done"
    page.goto(f"{parley.origin}{path}/calls/{call}")
    page.get_by_role("button", name="In a frame").click()


@pytest.fixture(scope="module")
def profile(
    chromium_browser: Browser, parley_process: Parley, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrowserContext]:
    """A browser with a profile of its own, as people have: one without does not connect ahead."""
    context = chromium_browser.browser_type.launch_persistent_context(
        tmp_path_factory.mktemp("profile"),
        executable_path=str(chromium.find(whole=True)),
        args=["--no-sandbox", "--disable-gpu"],
    )
    context.set_default_timeout(60_000)
    parley_process.login(context.new_page())
    yield context
    context.close()


def really_connects(page: Page, last: Listener) -> None:
    """The same browser does connect ahead to where a page tells it to: what was asked for before has happened, or
    never will."""
    page.goto(f"data:text/html,<link rel=preconnect href={last.url}>")
    assert last.came.wait(60)


@pytest.mark.requirement("M02", "S33")
@pytest.mark.parametrize("parts", [LINKS, OTHERS, CLICKED], ids=["links", "others", "clicked"])
def test_m02_a_framed_page_connects_to_nobody(parts: list[str], profile: BrowserContext, parley: Parley):
    path = server(parley)
    assert [part for part in parts if connects(part, profile, parley, path)] == []


def connects(part: str, profile: BrowserContext, parley: Parley, path: str) -> int:
    """How often somebody is connected to when a page with this part is shown, and clicked on."""
    page = profile.new_page()
    with listening() as elsewhere, listening() as last:
        nested = escape(f'<link rel="preconnect" href="{elsewhere.url}/nested">')
        html = re.sub("@(?!import|font)", elsewhere.url, part).replace("{nested}", nested)
        html = html.replace("{host}", elsewhere.url.removeprefix("http://"))
        shown(page, parley, path, f"<!doctype html><html><head>{html}</head><body>{html}<h1>shown</h1></body></html>")
        inside = page.locator("iframe").content_frame
        if "frameset" not in part:
            expect(inside.locator("h1")).to_have_text("shown")
        if part in CLICKED:
            inside.locator("#go").last.click()
        really_connects(page, last)
        page.close()
        return elsewhere.count


@pytest.mark.requirement("M02", "S33")
def test_m02_a_framed_page_looks_as_it_did(page: Page, parley: Parley, watch: Watch):
    """What is taken out leaves no trace in the page: same head, same body, same styles, same drawing."""
    watch.allow("sandbox|Content Security Policy|CSP |refused|ERR_|Refused")
    html = """<!doctype html><html><head><meta charset=utf-8><link rel=stylesheet href=/x><title>t</title>
    <style>body > p:first-child { color: rgb(1, 2, 3) } rect { fill: rgb(4, 5, 6) }</style></head><body><p>one
    &lt;link rel=x&gt; &amp; <code>&lt;iframe&gt;</code></p><iframe src=/y>inside</iframe><svg width=9 height=9><rect
    width=9 height=9 /></svg><linked id=two>two</linked><a href="#two">down</a>
    <metal>three</metal><p title="<b>">four</p></body></html>"""
    shown(page, parley, server(parley), html)
    inside = page.locator("iframe").content_frame
    first = inside.locator("body > p").first
    expect(first).to_contain_text("one")
    assert first.evaluate("one => one.textContent.replace(/\\s+/g, ' ')") == "one <link rel=x> & <iframe>"
    assert first.evaluate("one => getComputedStyle(one).color") == "rgb(1, 2, 3)"
    assert inside.locator("rect").evaluate("one => getComputedStyle(one).fill") == "rgb(4, 5, 6)"
    assert inside.locator("linked, metal").all_text_contents() == ["two", "three"]
    assert inside.locator("body").evaluate("one => one.innerText.includes('inside')") is False
    assert inside.locator("iframe, [http-equiv], [href]:not([href^='#'])").count() == 0
    assert inside.locator("a").evaluate("one => one.getAttribute('href')") == "#two"
