"""The connect form and the kept targets, as a person meets them."""

import json
import re
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.parley import Parley, running
from tests.browser.test_looks import axe

SERVERS = {
    "mcpServers": {"desk": {"command": "uv", "env": {"API_KEY": "canary"}}, "far": {"url": "http://127.0.0.1:9/mcp"}}
}


def test_a_secret_is_masked_and_marked_by_its_name(page: Page):
    row = page.locator(".by-stdio .trio").first
    value = row.locator("[name=env_value]")
    row.locator("[name=env_name]").fill("DESK_DB")
    expect(value).to_have_attribute("type", "text")
    row.locator("[name=env_name]").fill("API_KEY")
    expect(value).to_have_attribute("type", "password")
    row.locator("select").select_option("shown")
    expect(value).to_have_attribute("type", "text")
    page.get_by_role("button", name="Add variable").click()
    expect(page.locator(".by-stdio .trio")).to_have_count(2)


def test_a_server_is_saved_edited_renamed_and_forgotten(page: Page):
    page.fill("#command_line", f"{sys.executable} server.py")
    row = page.locator(".by-stdio .trio").first
    row.locator("[name=env_name]").fill("API_KEY")
    row.locator("[name=env_value]").fill("canary")
    page.get_by_role("button", name="Save", exact=True).click()
    saved = page.locator(".srv li")
    expect(saved).to_contain_text("server.py")
    saved.get_by_role("link", name="Edit").click()
    expect(page.locator("#command_line")).to_have_value(re.compile("server.py"))
    expect(page.locator("[name=env_value]").first).to_have_value("")
    expect(page.locator("[name=env_value]").first).to_have_attribute("placeholder", "kept; type to replace it")
    assert "canary" not in page.content()
    page.fill("#name", "Travel desk")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".srv b")).to_have_text("Travel desk")
    page.get_by_role("button", name="Forget Travel desk").click()
    expect(saved).to_contain_text("Forgotten.")
    undo = page.get_by_role("button", name="Undo Travel desk")
    expect(undo).to_be_focused()
    undo.press("Enter")
    expect(page.get_by_role("button", name="Forget Travel desk")).to_be_visible()


def test_a_pasted_file_gives_a_choice(page: Page):
    page.locator(".seg label", has_text="mcp.json").click()
    page.fill("#mcp_json", '{"mcpServers": {')
    page.get_by_role("button", name="Connect", exact=True).click()
    expect(page.locator("#mcp_json-error")).to_contain_text("not JSON")
    expect(page.locator("#mcp_json")).to_be_focused()
    expect(page.locator("#mcp_json")).to_have_value('{"mcpServers": {')
    page.fill("#mcp_json", json.dumps(SERVERS))
    expect(page.locator("#mcp_json-error")).to_be_empty()
    page.get_by_role("button", name="Connect", exact=True).click()
    expect(page.locator("#choices-title")).to_have_text("2 servers in what you pasted")
    assert "canary" not in page.content()
    page.get_by_role("button", name="Connect desk").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Start this command?")


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_axe_finds_nothing_in_the_form_and_the_list(page: Page, parley: Parley):
    parley.script("POST", "/targets", name="Desk", target={"transport": "stdio", "command": "x", "env": {"A_KEY": "1"}})
    page.goto(f"{parley.origin}/?target={parley.script('GET', '/')['targets'][0]['id']}")
    assert axe(page) == []
    page.locator(".seg label", has_text="mcp.json").click()
    page.fill("#mcp_json", json.dumps(SERVERS))
    page.get_by_role("button", name="Connect", exact=True).click()
    expect(page.locator("#choices-title")).to_be_visible()
    assert axe(page) == []


@pytest.mark.requirement("F25")
def test_a_damaged_file_is_said_and_the_demo_runs(chromium_browser: Browser, tmp_path: Path):
    (tmp_path / "parley.db").write_bytes(b"no database " * 1000)
    with running("--data-dir", str(tmp_path)) as parley:
        context = chromium_browser.new_context()
        page = context.new_page()
        parley.login(page)
        expect(page.locator("#saving-off")).to_contain_text("Saving is off")
        page.get_by_role("button", name="Start the demo server").click()
        expect(page.locator("#where .lamp")).to_have_attribute("data-s", "ready")
        context.close()
