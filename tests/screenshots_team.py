"""Pictures of the pages of a team, part of `make screenshots`: `python -m tests.screenshots_team [FOLDER [NAME …]]`."""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.browser import team_house
from tests.browser.team_house import ORIGIN, SERVER
from tests.drive import ROOT
from tests.isolation.walls import PYTHON

SIZES = {1440: (1440, 900), 390: (390, 844)}
PAGES = {
    "team-home": "/",
    "team-home-recent": "/?show=recent",
    "team-home-fill": "/?entry=release-runner",
    "team-me": "/me",
    "team-people": "/people",
    "team-catalogue": "/catalogue",
    "team-catalogue-entry": "/catalogue/release-runner",
    "team-catalogue-fixed": "/catalogue/nordwind",
    "team-catalogue-new": "/catalogue/new",
    "team-audit": "/audit",
    "team-isolation": "/isolation",
    "team-limits": "/limits",
    "team-recordings": "/recordings",
}
FIXED = f"""
[catalogue.nordwind]
name = "Nordwind Travel Desk"
description = "The demo server: every kind of ask, both protocol versions."
transport = "stdio"
command = "{PYTHON}"
args = ["-I", "-S", "{SERVER}"]
reads = ["{SERVER.parent}"]
roles = ["viewer", "user", "admin"]

[catalogue.billing]
name = "Billing sandbox"
description = "Invoices and refunds on test data. Resets every night."
transport = "http"
url = "https://billing.internal.example/mcp"
roles = ["viewer", "user", "admin"]
[[catalogue.billing.variables]]
name = "Authorization"
description = "Bearer and your token"
secret = true
"""


def furnish(page: Page) -> None:
    """A catalogue, two invitations, and a session."""
    page.goto(f"{ORIGIN}/catalogue/new")
    page.get_by_label("Name", exact=True).first.fill("Release runner")
    page.get_by_label("Description").fill("Builds and tags. Asks before every step.")
    page.get_by_label("Command").fill("/opt/mcp/release-runner --stdio")
    row = page.get_by_role("group", name="Variable 1")
    row.get_by_label("Name").fill("REGION")
    row.get_by_label("Allowed values").fill("north, south")
    row.get_by_label("What people are told").fill("Where to build")
    page.get_by_role("button", name="Add variable").click()
    row = page.get_by_role("group", name="Variable 2")
    row.get_by_label("Name").fill("RELEASE_TOKEN")
    row.get_by_label("Given by").select_option("admin")
    row.get_by_label("Value", exact=True).fill("saved and not shown")
    page.get_by_role("button", name="Save entry").last.click()
    page.wait_for_url(f"{ORIGIN}/catalogue/release-runner")
    page.goto(f"{ORIGIN}/people")
    page.get_by_label("Name", exact=True).fill("Grace Hopper")
    page.get_by_role("button", name="Make invite link").click()
    page.goto(f"{ORIGIN}/")
    page.get_by_role("button", name="Connect Nordwind Travel Desk").click()
    page.wait_for_url(f"{ORIGIN}/s/**")
    page.get_by_role("link", name="build").first.wait_for()


def take(folder: Path, only: set[str]) -> None:
    """Every page of a team, at both widths, light and dark. Says so where no proxy can be started."""
    found = team_house.tools()
    if found is None:
        print("No pictures of a team: nginx, openssl or python3 is missing.", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        with (
            team_house.proxy(place, *found) as (inner, tls),
            team_house.team(place, inner, FIXED) as link,
            sync_playwright() as playwright,
        ):
            browser = team_house.browser(playwright, tls)
            page = browser.new_context(ignore_https_errors=True).new_page()
            page.goto(link)
            page.get_by_role("button", name="Sign in").click()
            page.wait_for_url(f"{ORIGIN}/")
            furnish(page)
            for width, (across, down) in SIZES.items():
                for scheme in ("light", "dark"):
                    page.set_viewport_size({"width": across, "height": down})
                    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
                    for each, address in PAGES.items():
                        if not only or each in only:
                            page.goto(ORIGIN + address)
                            page.wait_for_timeout(150)
                            page.screenshot(path=folder / f"{each}-{width}-{scheme}.png", full_page=width == 390)
            browser.close()


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / ".screenshots"
    target.mkdir(exist_ok=True)
    (target / ".gitignore").write_text("*\n", encoding="utf-8")
    take(target, set(sys.argv[2:]))
