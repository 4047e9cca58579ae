"""Pictures of an audience, part of `make screenshots`: the stage with a room, its phones, an answer link, the tour and
the public demo: `python -m tests.screenshots_room [FOLDER [NAME …]]`."""

import sys
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser.parley import Parley, launch, running
from tests.drive import ROOT, SERVERS

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WIDE, PHONE = (1440, 900), (390, 844)
DESK = {"transport": "stdio", "command": sys.executable, "args": ["-I", "-S", str(SERVERS / "room_desk.py")]}
"""A desk that asks one question for a room."""


class Hall:
    """A room in a state to be pictured."""

    def __init__(self, parley: Parley, browser: Browser, folder: Path, only: set[str]) -> None:
        self.parley, self.browser, self.folder, self.only = parley, browser, folder, only
        self.stage = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        parley.login(self.stage)
        self.base = ""

    def shoot(self, name: str, page: Page, sizes: tuple[tuple[int, int], ...]) -> None:
        if self.only and name not in self.only:
            return
        before = page.viewport_size
        for across, down in sizes:
            for scheme in SCHEMES:
                page.set_viewport_size({"width": across, "height": down})
                page.emulate_media(color_scheme=scheme)
                page.wait_for_timeout(250)
                full = across == 390 and page is self.stage
                page.screenshot(path=self.folder / f"{name}-{across}-{scheme}.png", full_page=full)
        if before is not None:
            page.set_viewport_size(before)

    def phone(self, address: str) -> Page:
        page = self.browser.new_context(viewport={"width": 390, "height": 844}).new_page()
        page.goto(address)
        return page

    def asks(self, name: str) -> None:
        params = {"name": name, "arguments": {}}
        self.parley.script("POST", f"{self.base}/calls", method="tools/call", params=params)

    def room(self) -> None:
        """The stage before a room, with one, with answers, and the phones in it."""
        self.base = self.parley.script("POST", "/s", target=DESK, options={"era": "legacy"})["url"]
        self.parley.script("GET", f"{self.base}?wait=20")
        self.stage.goto(f"{self.parley.origin}{self.base}/stage")
        self.stage.get_by_text("Let the room answer").click()
        self.shoot("room-off", self.stage, (WIDE, PHONE))
        address = self.parley.script("POST", f"{self.base}/room", seconds=120)["address"]
        phones = [self.phone(address) for _ in range(7)]
        self.shoot("phone-wait", phones[6], (PHONE,))
        expect(self.stage.locator("#room-phones")).to_have_text("7")
        self.shoot("room-idle", self.stage, (WIDE,))
        self.asks("holiday")
        late = phones[5]
        for page, (town, why) in zip(phones, TOWNS, strict=False):
            page.get_by_label(town).check()
            page.get_by_label("Why?").fill(why)
            if town == "Bergen" and page is phones[0]:
                self.shoot("phone-ask", page, (PHONE,))
            page.get_by_role("button", name="Send").click()
            expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
        self.shoot("phone-thanks", phones[0], (PHONE,))
        late.get_by_label("Porto").check()
        expect(self.stage.locator("#room-answers")).to_have_text("5")
        self.shoot("room-stage", self.stage, (WIDE, PHONE))
        self.stage.locator("#room-show").click()
        expect(self.stage.get_by_text("shown to the room")).to_be_visible()
        self.shoot("room-written", self.stage, (WIDE,))
        late.context.set_offline(True)
        expect(late.locator("#left")).to_have_text("Waiting for the network")
        self.shoot("phone-offline", late, (PHONE,))
        late.get_by_role("button", name="Send").click()
        self.stage.locator("#room-send").click()
        expect(self.stage.locator("#room[data-poll]")).to_have_count(0)
        late.context.set_offline(False)
        expect(late.get_by_role("heading", name="Too late for this one")).to_be_visible()
        self.shoot("phone-late", late, (PHONE,))
        self.stage.locator("#room-close").click()
        expect(phones[0].get_by_role("heading", name="The room is closed")).to_be_visible()
        self.shoot("phone-gone", phones[0], (PHONE,))

    def link(self) -> None:
        """The page that makes an answer link, and what a guest sees."""
        self.asks("holiday")
        ask = self.parley.script("GET", f"{self.base}/inbox?wait=20")["open"][0]["id"]
        self.stage.goto(f"{self.parley.origin}{self.base}/asks/{ask}/link")
        self.shoot("link-before", self.stage, (WIDE,))
        self.stage.get_by_role("button", name="Make an answer link").click()
        url = self.stage.locator(".addr").inner_text()
        self.shoot("link", self.stage, (WIDE, PHONE))
        guest, other = self.phone(url), self.phone(url)
        self.shoot("guest-ask", guest, (PHONE, WIDE))
        guest.get_by_label("Bergen").check()
        guest.get_by_role("button", name="Accept").click()
        expect(guest.get_by_role("heading", name="Thank you")).to_be_visible()
        self.shoot("guest-thanks", guest, (PHONE,))
        other.reload()
        self.shoot("guest-used", other, (PHONE,))

    def tour(self) -> None:
        """The list of the tour, and a step of it on its page."""
        base = self.parley.script("POST", "/s", target={"transport": "demo"}, options={"era": "legacy"})["url"]
        self.parley.script("GET", f"{base}?wait=20")
        self.stage.goto(f"{self.parley.origin}{base}/tour")
        self.shoot("tour", self.stage, (WIDE, PHONE))
        for number in (3, 6):
            self.parley.script("POST", f"{base}/tour", do="press", step=number)
        self.stage.goto(self.parley.origin + self.parley.script("GET", f"{base}/tour")["url"])
        expect(self.stage.locator(".toured")).to_have_count(1)
        self.shoot("tour-step", self.stage, (WIDE, PHONE))


TOWNS = (
    ("Bergen", "Ferries, obviously"),
    ("Bergen", "The fish market"),
    ("Porto", ""),
    ("Bergen", "Rain is fine with us"),
    ("Stay home", "Never been north"),
)


def take(folder: Path, only: set[str]) -> None:
    """All of them."""
    with running("--room", "127.0.0.1:0") as parley, sync_playwright() as playwright:
        browser = launch(playwright)
        hall = Hall(parley, browser, folder, only)
        hall.room()
        hall.link()
        hall.tour()
        browser.close()


if __name__ == "__main__":
    where = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / ".screenshots"
    where.mkdir(exist_ok=True)
    take(where, set(sys.argv[2:]))
    print(f"{len(list(where.glob('*.png')))} pictures in {where}")
