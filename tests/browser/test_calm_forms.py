"""Calm forms in a real tab: keys as labels, set or not set, one menu, buttons that lead on, the bar that asks."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Watch
from tests.browser.parley import Parley
from tests.browser.test_looks import axe

SERVER = Path(__file__).parents[1] / "servers" / "accounts.py"


class Crm:
    """A session with the server of accounts, and a tab in it."""

    def __init__(self, page: Page, parley: Parley) -> None:
        self.page, self.parley = page, parley
        target = {"transport": "stdio", "command": sys.executable, "args": ["-I", "-S", str(SERVER)]}
        self.session = parley.script("POST", "/s", target=target)["url"]
        parley.script("GET", f"{self.session}?wait=30")

    def visit(self, path: str) -> None:
        self.page.goto(f"{self.parley.origin}{self.session}{path}")
        expect(self.page.locator("#pill")).to_have_attribute("data-state", "live")

    def field(self, name: str) -> Locator:
        return self.page.locator(f"#tool-form [name='{name}']:not([type=hidden])").first

    def box(self, name: str) -> Locator:
        """The whole field: its label, its control, its menu."""
        return self.page.locator("#tool-form [data-f]").filter(has=self.page.locator(f"[name='{name}']")).last

    def sent(self) -> Any:
        """The arguments of the newest call, when it is done."""
        expect(self.page.locator("#calls > article .st").first).to_have_text("Done")
        newest = self.parley.script("GET", f"{self.session}/calls")["calls"][0]
        return newest["params"].get("arguments")


@pytest.fixture
def crm(page: Page, parley: Parley) -> Crm:
    return Crm(page, parley)


@pytest.mark.requirement("U-S5")
def test_a_label_is_the_key_and_what_a_value_has_to_be_is_said_before_it_fails(page: Page, crm: Crm):
    crm.visit("/tools/create_account")
    expect(page.locator("label[for='arg-_2f_name']")).to_have_text("name")
    expect(page.locator("label[for='arg-_2f_vat_5f_id']")).to_have_text("vat_id VAT number")
    expect(crm.box("/vat_id")).to_contain_text(r"Pattern ^[A-Z]{2}\d{9}$")
    expect(crm.box("/address/zip")).to_contain_text(r"Pattern ^\d{5}$")
    page.locator("details.more > summary").click()
    expect(crm.box("/discount")).to_contain_text("0 to 90")
    expect(crm.box("/discount")).not_to_contain_text("Discount")
    expect(crm.box("/renews")).to_contain_text("Format 2027-01-31")
    expect(page.locator(".head .desc code").first).to_have_text("vat_id")
    page.get_by_text("More", exact=True).click()
    expect(page.locator(".head .rest .desc")).to_have_text("Args:\n    name: **the** name", use_inner_text=True)
    expect(page.locator(".head .hints")).to_contain_text("non-destructive")
    expect(page.locator(".head .hints")).to_contain_text("server hint")


@pytest.mark.requirement("U-S5")
def test_what_is_not_set_is_not_sent_and_a_menu_sends_empty_or_null(page: Page, crm: Crm):
    crm.visit("/tools/search_accounts")
    low = crm.field("/min_value")
    expect(low).to_have_attribute("placeholder", "not set, default 20")
    expect(crm.box("/min_value")).to_have_attribute("data-as", "out")
    expect(page.locator("#sends")).to_have_text("Sends 1 of 4 fields")
    crm.field("/query").fill("acme")
    low.fill("7")
    expect(crm.box("/min_value")).to_have_attribute("data-as", "")
    low.fill("")
    expect(crm.box("/min_value")).to_have_attribute("data-as", "out")
    archived = page.get_by_role("radiogroup", name="archived")
    expect(archived.get_by_role("radio")).to_have_count(2)
    expect(archived.locator(":checked")).to_have_count(0)
    exact = page.get_by_role("radiogroup", name="exact")
    expect(exact.get_by_role("radio")).to_have_count(3)
    expect(exact.get_by_label("not set")).to_be_checked()
    archived.get_by_label("false").check()
    expect(page.locator("#sends")).to_have_text("Sends 2 of 4 fields")
    page.keyboard.press("Control+Enter")  # on a radio, not only in a text
    assert crm.sent() == {"query": "acme", "archived": False}

    crm.visit("/tools/create_account")
    crm.field("/name").fill("Hafen")
    crm.field("/vat_id").fill("DE811234567")
    crm.field("/stage").select_option(label="lead")
    source = crm.field("/source")
    expect(source).to_have_attribute("placeholder", "not set, default web")
    source.focus()
    page.keyboard.press("Alt+ArrowDown")
    menu = page.locator(".menu:popover-open")
    expect(menu.get_by_label("Leave out")).to_be_checked()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(menu.get_by_label("Null")).to_be_checked()
    page.keyboard.press("Enter")
    expect(source).to_be_focused()
    expect(source).to_have_attribute("placeholder", "null")
    page.click("#call-go")
    assert crm.sent() == {"name": "Hafen", "vat_id": "DE811234567", "stage": "lead", "source": None, "address": {}}
    page.locator("[data-edit]").click()
    expect(crm.box("/source")).to_have_attribute("data-as", "null")
    crm.box("/source").locator(".ty").click()
    page.locator(".menu:popover-open").get_by_text("Empty text").click()
    expect(menu).to_have_count(0)
    expect(crm.box("/source")).to_have_attribute("data-as", "empty")
    page.click("#call-go")
    expect(page.locator("#calls > article")).to_have_count(2)
    assert crm.sent()["source"] == ""


@pytest.mark.requirement("U-S5")
def test_a_required_text_that_is_empty_is_asked_about_and_enter_fills_it_in(page: Page, crm: Crm, watch: Watch):
    watch.allow("422")
    crm.visit("/tools/search_accounts")
    page.get_by_role("radiogroup", name="archived").get_by_label("true").check()
    page.click("#call-go")
    question = page.get_by_role("alertdialog")
    expect(question).to_contain_text('query is required and empty. Send "" anyway?')
    expect(page.get_by_role("button", name="Fill in query")).to_be_focused()
    expect(crm.field("/query")).to_have_attribute("aria-invalid", "true")
    page.keyboard.press("Enter")
    expect(crm.field("/query")).to_be_focused()
    page.keyboard.press("Enter")  # a second time it is asked again, and not sent
    expect(page.get_by_role("button", name="Fill in query")).to_be_focused()
    assert page.locator("#calls > article").count() == 0
    page.get_by_role("button", name='Send ""').click()
    assert crm.sent() == {"query": "", "archived": True}
    expect(question).to_have_count(0)
    crm.visit("/tools/search_accounts")  # what was sent on purpose is not asked about again
    page.locator("[data-edit]").click()
    page.click("#call-go")
    expect(page.locator("#calls > article")).to_have_count(2)


@pytest.mark.requirement("U-S5")
def test_buttons_add_and_remove_and_the_focus_goes_on(page: Page, crm: Crm):
    crm.visit("/tools/create_account")
    page.locator("details.more > summary").click()
    page.get_by_role("button", name="Add contact").click()
    expect(crm.field("/contacts/0/email")).to_be_focused()
    page.keyboard.type("a@example.org")
    page.get_by_role("button", name="Add contact").click()
    expect(crm.field("/contacts/1/email")).to_be_focused()
    page.keyboard.type("b@example.org")
    assert page.locator(".items > .part").count() == 2
    expect(page.locator("details.more")).to_have_attribute("open", "")
    page.get_by_role("button", name="Remove contact 0").click()
    expect(page.get_by_role("button", name="Remove contact 0")).to_be_focused()
    expect(crm.field("/contacts/0/email")).to_have_value("b@example.org")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Add contact")).to_be_focused()
    page.get_by_role("button", name="Add tag").click()
    expect(page.get_by_label("tags 0")).to_be_focused()


@pytest.mark.requirement("U-S5")
def test_many_fields_are_folded_and_the_bar_stays_in_sight(page: Page, crm: Crm):
    crm.visit("/tools/create_account")
    fold = page.locator("details.more")
    expect(fold.locator("summary")).to_contain_text("none set")
    expect(fold.locator("summary")).to_contain_text("billing_email")
    expect(page.locator("#tool-form .top-fields > .fields > [data-f]")).to_have_count(8)
    page.set_viewport_size({"width": 1280, "height": 640})
    bar, room = page.locator("#callbar").bounding_box(), page.locator("main").bounding_box()
    assert bar is not None and room is not None
    assert abs(bar["y"] + bar["height"] - room["y"] - room["height"]) < 2, "at the bottom of the page's own part"
    fold.locator("summary").click()
    crm.field("/fax").fill("none")
    expect(fold.locator("summary")).to_contain_text("1 set")
    page.click("#as-json")
    expect(page.locator("#arguments")).to_be_visible()
    page.click("#as-form")
    expect(page.locator("#tool-form .top-fields > .fields > [data-f] [name='/fax']")).to_have_value("none")
    page.click("#fill-new")
    expect(crm.field("/fax")).to_have_value("")


@pytest.mark.requirement("U-S5")
def test_the_table_beside_the_json_follows_references(page: Page, crm: Crm):
    crm.visit("/tools/create_account?as=json")
    rows = page.locator("table.args tr")
    expect(rows.filter(has=page.get_by_text("stage", exact=True))).to_contain_text("enum of 4")
    expect(rows.filter(has=page.get_by_text("address", exact=True))).to_contain_text("object")
    expect(rows.filter(has=page.get_by_text("contacts", exact=True))).to_contain_text("list of objects, up to 10")
    expect(page.locator("table.args")).not_to_contain_text("any value")
    expect(page.locator("table.args")).not_to_contain_text("Billing Email")


@pytest.mark.requirement("U-M17")
def test_control_and_enter_send_from_every_field(page: Page, crm: Crm, parley: Parley, watch: Watch):
    watch.allow("422")
    crm.visit("/prompts/plan")
    expect(page.locator("label[for='arg-1']")).to_have_text("days How long")
    page.locator("#arg-1").focus()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("alertdialog")).to_contain_text("destination is required and empty.")
    page.locator("#arg-0").fill("Oslo")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#calls > article .st")).to_have_text("Done")
    crm.visit("/tools/create_account")
    for name, value in (("/name", "Hafen"), ("/vat_id", "DE811234567")):
        crm.field(name).fill(value)
    crm.field("/stage").select_option(label="lost")
    crm.field("/stage").focus()
    page.keyboard.press("Control+Enter")
    assert crm.sent()["stage"] == "lost"
    page.goto(parley.origin + "/")
    page.evaluate("""addEventListener('submit', (event) => {
        event.preventDefault();
        document.body.dataset.by = event.submitter.className;
    }, true)""")
    page.locator("form.connect :is(input:not([type=radio], [type=hidden]), textarea):visible").first.focus()
    page.keyboard.press("Control+Enter")
    expect(page.locator("body")).to_have_attribute("data-by", "btn go")


@pytest.mark.requirement("U-S5")
def test_an_ask_has_the_same_menu_and_its_draft_comes_back(page: Page, demo: Callable[[], str], parley: Parley):
    base = demo()
    page.goto(f"{base}/calls")
    expect(page.locator("#pill")).to_have_attribute("data-state", "live")
    path = base.removeprefix(parley.origin)
    params = {"name": "every_field", "arguments": {}}
    parley.script("POST", f"{path}/calls", method="tools/call", params=params)
    card = page.locator("#asks > .ask[data-s=open]")
    expect(card).to_have_count(1)
    field = card.locator("[data-f][data-opt]:has(> input[placeholder])").first
    field.locator("input").first.fill("")
    expect(field).to_have_attribute("data-as", "out")
    field.locator("input").first.press("Alt+ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Escape")
    chosen = field.get_attribute("data-as")
    assert chosen in ("empty", "out")
    page.reload()
    expect(card.locator("[data-f][data-opt]:has(> input[placeholder])").first).to_have_attribute("data-as", chosen)


@pytest.mark.requirement("U-S5")
def test_axe_finds_nothing_and_nothing_scrolls_sideways(page: Page, crm: Crm, watch: Watch):
    watch.allow("422")
    crm.visit("/tools/create_account")
    page.locator("details.more > summary").click()
    page.get_by_role("button", name="Add contact").click()
    expect(crm.field("/contacts/0/email")).to_be_focused()
    page.get_by_role("button", name="Add tag").click()
    expect(page.get_by_label("tags 0")).to_be_focused()
    page.click("#call-go")
    expect(page.get_by_role("alertdialog")).to_be_visible()
    assert axe(page, around=False) == []
    for width in (1024, 768, 390, 360):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
