"""Answering in the page: every kind of ask, in any order, in two tabs, after a reload, too late, by keyboard, by phone.

Most asks come from the demo server, which also tells what it got; a raw script asks what a demo server would not.
Calls are started by a script, so that these tests are about the inbox only.
"""

import json
import re
import socketserver
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests import peers
from tests.browser.conftest import Watch
from tests.browser.desk import Desk, opened, visit
from tests.browser.parley import Parley
from tests.browser.test_looks import WIDTHS, axe
from tests.drive import SERVERS
from tests.drive_http import started

FORM: dict[str, Any] = {
    "message": "Which traveller?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": "Full name"},
            "age": {"type": "integer", "title": "Age", "minimum": 0},
        },
        "required": ["name"],
    },
}


@pytest.fixture
def page(context: BrowserContext) -> Page:
    """A page that is nowhere yet: each test begins in its session."""
    return context.new_page()


def cards(page: Page, kind: str = "") -> Locator:
    return page.locator("#asks > .ask", has=page.locator(".kind", has_text=kind))


def the(page: Page, kind: str = "") -> Locator:
    """The newest open ask of a kind, wherever its card goes when it is over."""
    found = page.locator("#asks > .ask[data-s=open]", has=page.locator(".kind", has_text=kind)).last
    found.wait_for()
    return page.locator(f"#{found.get_attribute('id')}")


def unfold(page: Page) -> None:
    """Show what was answered: an inbox in which nothing waits is a strip."""
    page.locator("#inbox-open").click()
    page.locator("#past > summary").click()


def act(card: Locator, name: str) -> None:
    card.get_by_role("button", name=name, exact=True).click()


def settled(card: Locator, state: str) -> None:
    expect(card).to_have_attribute("data-s", state)


# ---- each kind


@pytest.mark.requirement("R4-04", "R4-07", "R4-30", "R1-11", "S001 overview", "S001 test server")
@pytest.mark.parametrize("as_task", [False, True], ids=["request", "task"])
def test_a_form_with_its_defaults(page: Page, desk: Desk, as_task: bool, watch: Watch):
    watch.allow("422")
    visit(page, desk)
    call = desk.call("preferences", as_task=as_task)
    card = the(page, "Form")
    expect(card.get_by_role("radiogroup", name="includeTimestamps").get_by_label("true")).to_be_checked()
    act(card, "Accept")
    expect(card.locator("[aria-invalid=true]")).to_have_count(1)
    expect(card.locator(".err").first).to_be_visible()
    card.get_by_label("outputFormat").select_option(label="markdown")
    act(card, "Accept")
    settled(card, "answered")
    expect(card).to_contain_text("You accepted.")
    answer = desk.answer_of(call)
    assert answer["action"] == "accept"
    assert answer["content"] == {"outputFormat": "markdown", "includeTimestamps": True}
    expect(page.locator("#waiting")).to_have_attribute("data-n", "0")


@pytest.mark.requirement("R4-05", "R4-06", "R4-07", "S001 elicitation types")
def test_every_kind_of_field_comes_back_as_it_was_filled_in(page: Page, desk: Desk):
    visit(page, desk)
    call = desk.call("every_field")
    card = the(page, "Form")
    card.get_by_label("Name", exact=False).first.fill("Ines")
    ask = desk.asks()[0]
    for field in ask["fields"]:
        if field["required"] and "value" not in field and field["name"] != "name":
            control = card.get_by_label(field["label"], exact=False).first
            if field["kind"] in ("integer", "number"):
                control.fill("1")
    act(card, "Accept")
    settled(card, "answered")
    content = desk.answer_of(call)["content"]
    prefilled = {field["name"]: field["value"] for field in ask["fields"] if "value" in field}
    assert {name: content[name] for name in prefilled} == prefilled
    assert content["name"] == "Ines"


@pytest.mark.requirement("R4-30")
@pytest.mark.parametrize(("button", "action"), [("Decline", "decline"), ("Cancel", "cancel")])
def test_a_form_is_declined_or_dismissed(page: Page, desk: Desk, button: str, action: str):
    visit(page, desk)
    call = desk.call("preferences")
    card = the(page, "Form")
    act(card, button)
    settled(card, "answered")
    assert desk.answer_of(call) == {"action": action}


@pytest.mark.requirement("R1-41", "R1-25")
def test_an_ask_is_failed_with_an_error_of_choice(page: Page, desk: Desk, watch: Watch):
    watch.allow("422")
    visit(page, desk)
    call = desk.call("preferences", as_task=True)
    card = the(page, "Form")
    card.get_by_text("Fail…").click()
    card.get_by_label("Code").fill("soon")
    card.get_by_label("Message").fill("The desk is closed")
    act(card, "Fail with this error")
    expect(card.locator(".err").first).to_contain_text("whole number")
    expect(card.get_by_label("Message")).to_have_value("The desk is closed")
    card.get_by_label("Code").fill("-32077")
    act(card, "Fail with this error")
    settled(card, "answered")
    told = desk.result(call)["structuredContent"]
    assert told["error"]["code"] == -32077 and told["error"]["message"] == "The desk is closed", told
    assert desk.get("/tasks")["receiver"][0]["status"] == "failed"


@pytest.mark.requirement("R3-09", "R3-20", "S001 what sampling does", "S001 approval component", "R3-02", "R3-03")
def test_sampling_is_answered_by_hand_as_json_and_denied(page: Page, desk: Desk, watch: Watch):
    watch.allow("422")
    visit(page, desk)
    call = desk.call("write_caption")
    card = the(page, "Sampling")
    for words in ("System prompt", "Max tokens", "Temperature", "Stop at", "Prefers", "Speed"):
        expect(card).to_contain_text(words)
    card.get_by_label("Your answer").fill("A quiet harbour.\nTwo boats.")
    card.locator(".how > summary").click()
    card.get_by_label("Model name", exact=True).fill("somebody")
    card.get_by_label("Stop reason").select_option("maxTokens")
    act(card, "Approve and send")
    settled(card, "answered")
    text = {"type": "text", "text": "A quiet harbour.\nTwo boats."}
    wanted = {"role": "assistant", "content": text, "model": "somebody", "stopReason": "maxTokens"}
    assert desk.answer_of(call) == wanted

    call = desk.call("write_caption", as_task=True)
    card = the(page, "Sampling")
    card.get_by_label("JSON", exact=True).check()
    box = card.get_by_label("The whole result")
    box.fill('{"role": ')
    act(card, "Approve and send")
    expect(card.locator(".err").first).to_contain_text("not JSON")
    expect(box).to_have_value('{"role": ')
    blocks = {**wanted, "content": [text, {"type": "text", "text": "And a gull."}]}
    box.fill(json.dumps(blocks))
    act(card, "Approve and send")
    settled(card, "answered")
    answer = desk.answer_of(call)
    assert {key: answer[key] for key in blocks} == blocks

    call = desk.call("write_caption")
    card = the(page, "Sampling")
    act(card, "Deny")
    settled(card, "answered")
    assert desk.result(call)["structuredContent"]["error"]["code"] == -1


@pytest.mark.requirement("R3-06", "R3-07")
def test_sampling_with_tools_goes_on_after_a_tool_was_used(page: Page, desk: Desk):
    visit(page, desk)
    call = desk.call("ask_with_tools")
    card = the(page, "Sampling")
    tool = card.locator("dl.kv details summary code").first.inner_text()
    card.get_by_label("JSON", exact=True).check()
    use = {"type": "tool_use", "id": "u1", "name": tool, "input": {"destination": "kestrelholm"}}
    result = {"role": "assistant", "content": [use], "model": "human", "stopReason": "toolUse"}
    card.get_by_label("The whole result").fill(json.dumps(result))
    act(card, "Approve and send")
    waiting = page.locator("#asks > .ask[data-s=open]")
    second = waiting.filter(has_text="tool result")  # for a moment the first one may still stand beside it
    expect(second).to_contain_text("tool use")
    expect(waiting).to_have_count(1)
    second.get_by_label("Your answer").fill("Bring a raincoat.")
    act(second, "Approve and send")
    assert desk.result(call)["structuredContent"]["tools_used"] == [tool]


@pytest.mark.requirement("R5-20")
def test_roots_are_asked_for_when_the_options_say_so(page: Page, parley: Parley):
    desk = opened(parley, {"transport": "demo"}, ask_roots=True)
    parley.script("POST", f"{desk.base}/roots", roots=[{"uri": "file:///srv/data", "name": "data"}])
    visit(page, desk)
    call = desk.call("list_roots")
    card = the(page, "Roots")
    expect(card).to_contain_text("file:///srv/data")
    act(card, "Send the list")
    settled(card, "answered")
    assert desk.answer_of(call)["roots"] == [{"uri": "file:///srv/data", "name": "data"}]


class Canary(ThreadingHTTPServer):
    """Notes who opened it, and what their browser said about where they came from."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str | None]] = []
        seen = self.seen

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                seen.append((self.path, self.headers.get("referer")))
                self.send_response(200)
                self.send_header("content-type", "text/html")
                self.end_headers()
                self.wfile.write(b"<!doctype html><title>Canary</title><link rel=icon href=data:,>")
                self.wfile.write(b"<form><label>Secret <input name=secret></label><button>Go</button></form>")

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing on the terminal."""

        super().__init__(("127.0.0.1", 0), Handler)


@pytest.fixture
def canary() -> Iterator[Canary]:
    with Canary() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join(5)


def link(canary: socketserver.TCPServer, rpc_id: str, elicitation_id: str = "e1") -> dict[str, Any]:
    address = f"http://127.0.0.1:{canary.server_address[1]}/in?state=1"
    params = {"mode": "url", "message": "Sign in", "url": address, "elicitationId": elicitation_id}
    return {"id": rpc_id, "method": "elicitation/create", "params": params}


@pytest.mark.requirement("R4-40", "R4-41", "R4-42", "R4-45", "R4-46", "R4-50", "S32")
def test_a_link_is_opened_only_after_consent_and_without_an_opener(
    page: Page, context: BrowserContext, raw_desk: Desk, canary: Canary
):
    visit(page, raw_desk)
    raw_desk.say(link(canary, "q"))
    card = the(page, "Link")
    expect(card.locator(".url b")).to_have_text("127.0.0.1")
    expect(card.locator(".url")).to_have_text(f"http://127.0.0.1:{canary.server_address[1]}/in?state=1")
    door = card.get_by_role("link", name="Open and accept")
    expect(door).to_be_hidden()
    expect(card.get_by_role("button", name="Open and accept")).to_be_disabled()
    card.locator(".url").hover()
    page.wait_for_timeout(300)
    assert canary.seen == [], "never fetched before consent"
    card.get_by_label("I know this site and want to open it").check()
    door.hover()
    page.wait_for_timeout(200)
    assert canary.seen == [], "nor by looking at the link"
    with context.expect_page() as opening:
        door.click()
    window = opening.value
    window.wait_for_load_state("load")
    assert window.evaluate("window.opener") is None
    assert canary.seen == [("/in?state=1", None)], "no referrer"
    settled(card, "answered")
    assert raw_desk.get("/inbox")["settled"][0]["outcome"]["result"] == {"action": "accept"}
    # What is typed there stays there: no log, no page and no terminal of Parley knows it.
    window.get_by_label("Secret").fill("hunter2-canary")
    window.get_by_role("button", name="Go").click()
    expect(window).to_have_url(re.compile("secret=hunter2-canary"))
    raw_desk.say({"method": "notifications/elicitation/complete", "params": {"elicitationId": "e1"}})
    expect(card).to_contain_text("reported that you are done there")
    told = [json.dumps(raw_desk.get(path)) for path in ("", "/inbox", "/log", "/calls")]
    assert not [text for text in [*told, *raw_desk.parley.output, page.content()] if "hunter2" in text]
    page.reload()
    unfold(page)
    past = page.locator("#settled > .ask")
    past.locator("summary").first.click()
    expect(past).to_contain_text("reported that you are done there")


@pytest.mark.requirement("R4-41", "R4-45")
def test_a_link_that_was_taken_back_opens_no_more(page: Page, raw_desk: Desk, canary: Canary):
    visit(page, raw_desk)
    raw_desk.say(link(canary, "q"), {**link(canary, "r", "e2")})
    first, second = (page.locator(f"#ask-{ask['id']}") for ask in raw_desk.asks())
    first.get_by_label("I know this site and want to open it").check()
    raw_desk.say({"method": "notifications/cancelled", "params": {"requestId": "q"}})
    settled(first, "withdrawn")
    expect(first.get_by_role("link", name="Open and accept")).to_be_hidden()
    act(second, "Accept without opening")
    settled(second, "answered")
    assert canary.seen == []


@pytest.mark.requirement("R4-44", "S32")
def test_an_address_that_may_not_be_opened_is_text(page: Page, raw_desk: Desk):
    visit(page, raw_desk)
    params = {"mode": "url", "message": "<img src=x onerror=alert(1)>", "url": "javascript:alert(1)"}
    raw_desk.say({"id": "q", "method": "elicitation/create", "params": {**params, "elicitationId": "e"}})
    card = the(page, "Link")
    expect(card.locator(".url")).to_have_text("javascript:alert(1)")
    expect(card.locator("a[href^=javascript]")).to_have_count(0)
    expect(card.locator("img")).to_have_count(0)
    expect(card.locator(".says")).to_have_text("<img src=x onerror=alert(1)>")
    act(card, "Decline")
    settled(card, "answered")


# ---- two tabs, a reload, too late


@pytest.mark.requirement("S39", "S001 integration 1")
def test_what_one_tab_answers_the_other_one_says_at_once(
    page: Page, context: BrowserContext, raw_desk: Desk, watch: Watch
):
    watch.allow("409")
    other = context.new_page()
    visit(page, raw_desk)
    visit(other, raw_desk)
    page.bring_to_front()  # the browser lets a tab behind another one draw once a second
    raw_desk.say({"id": "q", "method": "elicitation/create", "params": FORM})
    mine, theirs = the(page, "Form"), the(other, "Form")
    theirs.get_by_label("Full name").fill("typed in the other tab")
    mine.get_by_label("Full name").fill("Ines")
    act(mine, "Accept")
    settled(mine, "answered")
    settled(theirs, "answered")
    expect(theirs.get_by_text("Answered in another tab at")).to_be_visible()
    expect(theirs.locator(".says.us")).to_have_text("name: Ines")
    expect(theirs.locator(".tail")).to_have_text("Not sent, typed here:")
    expect(theirs.get_by_role("button", name="Copy")).to_be_visible()
    expect(theirs.get_by_label("Full name")).to_be_disabled()
    expect(theirs.get_by_label("Full name")).to_have_value("typed in the other tab")
    expect(other.locator("#waiting")).to_have_attribute("data-n", "0")
    theirs.locator("fieldset.plain-set").first.evaluate("set => { set.disabled = false; }")
    theirs.locator("form").evaluate("form => form.requestSubmit(form.querySelector('[value=accept]'))")
    expect(other.locator(".toast")).to_contain_text("answered already")
    expect(other.locator(".toast")).to_contain_text("not sent")
    expect(theirs.get_by_label("Full name")).to_have_value("typed in the other tab")
    assert raw_desk.get("/inbox")["settled"][0]["outcome"]["content"] == {"name": "Ines"}


@pytest.mark.requirement("R1-30", "R1-40")
def test_a_reload_in_the_middle_keeps_the_ask_and_the_draft(page: Page, desk: Desk):
    visit(page, desk)
    call = desk.call("write_caption", as_task=True, ttl_ms=60_000)
    card = the(page, "Sampling")
    card.get_by_label("Your answer").fill("Half a sen")
    card.locator(".how > summary").click()
    card.get_by_label("Model name", exact=True).fill("me")
    page.reload()
    card = the(page, "Sampling")
    expect(card.get_by_label("Your answer")).to_have_value("Half a sen")
    expect(card.get_by_label("Model name", exact=True)).to_have_value("me")
    card.get_by_label("Your answer").fill("A whole sentence.")
    act(card, "Approve and send")
    settled(card, "answered")
    answer = desk.answer_of(call)
    assert (answer["content"]["text"], answer["model"]) == ("A whole sentence.", "me")
    page.reload()
    call = desk.call("write_caption")
    expect(cards(page, "Sampling").get_by_label("Your answer")).to_have_value("")


@pytest.mark.requirement("F19", "R1-60", "S004 B-1", "IT-4")
@pytest.mark.parametrize("as_task", [False, True], ids=["request", "task"])
def test_an_ask_that_is_taken_back_while_somebody_types(page: Page, desk: Desk, as_task: bool):
    visit(page, desk)
    desk.call("changes_its_mind", after_seconds=3, as_task=as_task, about="caption")
    card = the(page, "Sampling")
    box = card.get_by_label("Your answer")
    box.fill("I was ")
    box.press_sequentially("still wri")
    settled(card, "withdrawn")
    expect(card.locator(".ask-state")).to_contain_text("The server withdrew it after")
    expect(box).to_have_value(re.compile("^I was "))
    expect(box).to_be_disabled()
    expect(card.get_by_role("button")).to_have_text(["Copy", "Dismiss"])
    expect(page.locator("#waiting")).to_have_attribute("data-n", "0")
    expect(card.locator("progress")).to_have_count(0)
    expect(card.locator("summary use").first).to_have_attribute("href", re.compile("#back$"))
    # A reload keeps it; dismissed, it stands among the answered ones, still with what was typed, also after a reload.
    typed = box.input_value()
    page.reload()
    expect(page.locator("#kept [data-typed] pre")).to_have_text(typed)
    act(page.locator("#kept > .ask"), "Dismiss")
    expect(page.locator(":is(#asks, #kept) > .ask")).to_have_count(0)
    expect(page.locator("#n-settled")).to_have_text("1")
    page.reload()
    unfold(page)
    past = page.locator("#settled > .ask")
    past.locator("summary").first.click()
    expect(past.locator("[data-typed] pre")).to_have_text(typed)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    act(past, "Copy")
    expect(past.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == typed


@pytest.mark.requirement("R1-83", "R1-84", "S000 §2 use case", "S001 Q4")
def test_a_short_life_is_counted_down_and_ends(page: Page, desk: Desk):
    visit(page, desk)
    call = desk.call("preferences", as_task=True, ttl_ms=3000, collect="block")
    card = the(page, "Form")
    expect(card.locator("time[data-deadline]")).to_have_text(re.compile(r"0:0[123] left"))
    expect(card.locator("progress.ttl")).to_have_class(re.compile("soon"))
    card.get_by_label("Verbosity").select_option(index=1)
    settled(card, "expired")
    expect(card.locator(".ask-state")).to_contain_text("The time was up")
    expect(card.get_by_label("Verbosity")).to_be_disabled()
    assert card.get_by_label("Verbosity").input_value() != ""
    assert desk.result(call)["structuredContent"]["error"]["code"] == -32602


def test_asks_are_lost_with_their_connection(page: Page, desk: Desk):
    visit(page, desk)
    desk.call("write_caption", as_task=True)
    card = the(page, "Sampling")
    card.get_by_label("Your answer").fill("too late")
    desk.parley.script("POST", f"{desk.base}/disconnect")
    settled(card, "lost")
    expect(card.get_by_label("Your answer")).to_have_value("too late")
    expect(card.locator(".ask-state")).to_contain_text("The connection ended")


def test_a_double_click_sends_one_answer_and_complains_of_nothing(page: Page, raw_desk: Desk):
    visit(page, raw_desk)
    raw_desk.say({"id": "q", "method": "elicitation/create", "params": FORM})
    card = the(page, "Form")
    card.get_by_label("Full name").fill("Ines")
    card.get_by_role("button", name="Accept", exact=True).dblclick()
    settled(card, "answered")
    page.wait_for_timeout(300)
    expect(page.locator(".toast")).to_have_count(0)


@pytest.mark.parametrize("where", ["Full name", "Message"])
def test_enter_sends_what_it_stands_beside(page: Page, raw_desk: Desk, where: str):
    visit(page, raw_desk)
    raw_desk.say({"id": "q", "method": "elicitation/create", "params": FORM})
    card = the(page, "Form")
    card.get_by_label("Full name").fill("Ines")
    card.get_by_text("Fail…").click()
    card.get_by_label(where).press("Enter")
    settled(card, "answered")
    outcome = raw_desk.get("/inbox")["settled"][0]["outcome"]
    assert outcome["action"] == ("accept" if where == "Full name" else "fail")


# ---- several


@pytest.mark.requirement("FR-6")
def test_four_asks_are_answered_in_reverse_while_calls_return(page: Page, desk: Desk):
    visit(page, desk)
    calls = [
        desk.call("write_caption"),
        desk.call("preferences"),
        desk.call("every_field"),
        desk.call("preferences", as_task=True),
    ]
    expect(page.locator("#asks > .ask[data-s=open]")).to_have_count(4)
    expect(page.locator("#waiting")).to_have_attribute("data-n", "4")
    expect(page).to_have_title(re.compile(r"^\(4\) "))
    order = [ask["id"] for ask in desk.asks()]
    for left, aid in zip(range(3, -1, -1), reversed(order), strict=True):
        assert desk.result(desk.call("echo", message=f"{left}"))["content"][0]["text"] == f"{left}"
        card = page.locator(f"#ask-{aid}")
        if not card.locator("details").first.evaluate("one => one.open"):
            card.locator("summary").first.click()
        act(card, "Deny" if "Sampling" in card.locator(".kind").inner_text() else "Decline")
        settled(card, "answered")
        expect(page.locator("#waiting")).to_have_attribute("data-n", str(left))
    expect(page).to_have_title(re.compile(r"^[^(]"))
    for call in calls:
        desk.result(call)
    assert [ask["id"] for ask in desk.get("/inbox")["settled"]] == order


@pytest.mark.requirement("S001 ask pattern")
def test_an_ask_is_announced_counted_and_linked_from_its_call(page: Page, desk: Desk):
    visit(page, desk, "/calls")
    call = desk.call("preferences")
    expect(page.locator("#announce")).to_have_text("The server asks something, 1 waiting")
    expect(page.locator("#inbox-sum")).to_have_text("1 waiting")
    expect(page).to_have_title(re.compile(r"^\(1\) "))
    card = the(page, "Form")
    expect(card).to_contain_text("from preferences")
    card.get_by_role("link", name=f"call {call[1:]}").click()
    expect(page.locator(f"#call-{call} .asks")).to_contain_text("waiting")
    page.locator(f"#call-{call} .asks a").click()
    expect(cards(page, "Form").get_by_label("outputFormat")).to_be_focused()
    act(cards(page, "Form"), "Decline")
    expect(page.locator(f"#call-{call} .st")).to_have_text("Done")
    expect(page.locator("#inbox-sum")).to_have_text("nothing waiting")


@pytest.mark.timeout(120)
@pytest.mark.requirement("F10")
def test_a_hundred_asks_and_the_page_is_still_there(page: Page, raw_desk: Desk):
    visit(page, raw_desk)
    params = [{**FORM, "message": f"Question {n}"} for n in range(1000)]
    raw_desk.say(*({"id": f"q{n}", "method": "elicitation/create", "params": one} for n, one in enumerate(params)))
    expect(page.locator("#waiting")).to_have_attribute("data-n", "100")
    expect(page.locator("#asks > .ask")).to_have_count(100)
    expect(page.locator("#inbox-refused")).to_have_text("900 asks were refused: at most 100 may be open.")
    last = page.locator(f"#{page.locator('#asks > .ask').last.get_attribute('id')}")
    last.locator("summary").first.click()
    last.get_by_label("Full name").fill("Ines")
    began = time.monotonic()
    act(last, "Accept")
    settled(last, "answered")
    took = time.monotonic() - began
    print(f"answered the last of 100 in {took * 1000:.0f} ms")
    assert took < 30
    assert raw_desk.result(raw_desk.call("echo", message="still here"))["content"][0]["text"] == "still here"
    page.reload()
    expect(page.locator("#asks > .ask")).to_have_count(99)
    expect(page.locator("#asks > .ask > details[open]")).to_have_count(1)


# ---- a link that an error asks for


@pytest.mark.requirement("R4-47", "R4-48", "R4-40", "R4-41", "R4-42")
def test_error_32042_is_opened_after_consent_and_called_again(page: Page, context: BrowserContext, desk: Desk):
    call = desk.call("needs_sign_in")
    visit(page, desk, f"/calls/{call}")
    needs = page.locator(f"#call-{call} .needs")
    expect(needs.locator(".url b")).to_have_text("sign-in.nordwind.example")
    door = needs.get_by_role("link", name="Open it in a new window")
    expect(door).to_be_hidden()
    consent = needs.get_by_label("I know this site and want to open it")
    consent.check()
    context.route("**/sign-in.nordwind.example/**", lambda route: route.fulfill(body="<title>Harbour</title>"))
    with context.expect_page() as opening:
        door.click()
    assert opening.value.evaluate("window.opener") is None
    opening.value.close()
    desk.result(desk.call("confirm_sign_in"))
    expect(needs).to_contain_text("reported that you are done there")
    expect(consent).to_be_checked()
    needs.get_by_role("button", name="Call again").click()
    expect(page.locator("#main")).to_contain_text(f"A retry of call {call[1:]}")
    expect(page.locator("#main .call")).to_contain_text("Here are your tickets")


# ---- a request that is edited


@pytest.mark.requirement("R3-02", "R3-03", "S001 modifications")
def test_a_request_is_edited_in_one_tab_seen_in_the_other_and_kept_with_the_answer(
    page: Page, context: BrowserContext, desk: Desk
):
    other = context.new_page()
    visit(page, desk)
    visit(other, desk)
    page.bring_to_front()
    call = desk.call("write_caption")
    mine, theirs = the(page, "Sampling"), the(other, "Sampling")
    theirs.get_by_label("Your answer").fill("typed in the other tab")
    mine.get_by_label("Your answer").fill("A quiet harbour.")
    mine.get_by_text("Edit prompt (local only)").click()
    mine.get_by_label("System prompt").fill("Be terse.")
    mine.get_by_label("Max tokens").fill("7")
    mine.get_by_label("Max tokens").press("Enter")
    for card in (mine, theirs):
        expect(card.locator(".talk")).to_contain_text("Be terse.")
        expect(card.locator(".talk ins")).to_have_text("Be terse.")
        expect(card.locator("dl.kv")).to_contain_text("7 was 200")
    expect(mine.get_by_label("Your answer")).to_have_value("A quiet harbour.")
    expect(theirs.get_by_label("Your answer")).to_have_value("typed in the other tab")
    [ask] = desk.asks()
    assert ask["edited"]["maxTokens"] == 7 and ask["params"]["maxTokens"] == 200
    page.reload()
    expect(mine.locator(".talk")).to_contain_text("Be terse.")
    expect(mine.get_by_label("Your answer")).to_have_value("A quiet harbour.")
    act(mine, "Approve and send")
    settled(mine, "answered")
    assert desk.answer_of(call)["content"]["text"] == "A quiet harbour."
    expect(mine).to_contain_text("The request was edited before it was used")
    assert desk.get("/inbox")["settled"][0]["outcome"]["request"]["systemPrompt"] == "Be terse."


# ---- when the whole list comes anew


@pytest.mark.requirement("F19", "F20")
def test_a_tab_that_comes_back_keeps_what_was_typed_into_an_ask_that_is_over(
    page: Page, context: BrowserContext, raw_desk: Desk, watch: Watch
):
    """The tab is cut off while an ask is taken back and more happens than can be replayed: it gets a snapshot."""
    watch.allow("ERR_INTERNET_DISCONNECTED|ERR_FAILED|Failed to fetch|network")
    visit(page, raw_desk)
    raw_desk.say(*({"id": rpc_id, "method": "elicitation/create", "params": FORM} for rpc_id in "qr"))
    gone, stays = (page.locator(f"#ask-{ask['id']}") for ask in raw_desk.asks())
    gone.get_by_label("Full name").fill("Ines, half")
    stays.get_by_label("Full name").fill("Ida")
    context.set_offline(True)
    page.evaluate("document.querySelector('#stream')._htmx.sse.reader.cancel()")
    expect(page.locator("#pill")).not_to_have_attribute("data-state", "live")
    raw_desk.say({"method": "notifications/cancelled", "params": {"requestId": "q"}})
    for _ in range(3):
        raw_desk.say(*({"method": "notifications/message", "params": {"level": "info", "data": n}} for n in range(400)))
    raw_desk.say({"id": "s", "method": "elicitation/create", "params": FORM})
    context.set_offline(False)
    expect(page.locator("#pill")).to_have_attribute("data-state", "live")
    expect(page.locator("#asks > .ask[data-s=open]")).to_have_count(2)
    over = page.locator("#kept > .ask[data-s=withdrawn]")
    expect(over).to_contain_text("The server withdrew it")
    expect(over.locator("[data-typed] pre")).to_have_text("Full name: Ines, half")
    expect(over.get_by_role("button", name="Copy")).to_be_visible()
    expect(page.locator("#asks > .ask[data-s=open]").first.get_by_label("Full name")).to_have_value("Ida")


def test_what_is_answered_elsewhere_joins_the_settled_ones_at_once(page: Page, desk: Desk):
    """Roots from the list never wait, so nobody sees them open; the list of an open tab has them all the same."""
    visit(page, desk)
    expect(page.locator("#past")).to_be_hidden()
    desk.result(desk.call("list_roots"))
    expect(page.locator("#n-settled")).to_have_text("1")
    unfold(page)
    expect(page.locator("#settled > .ask .kind")).to_have_text("Roots sent")


# ---- a sound and a notification


def test_alerts_are_off_until_one_switch_is_pressed_and_are_remembered(page: Page, context: BrowserContext, desk: Desk):
    page.add_init_script(
        """window.heard = []; window.asked = 0;
        window.AudioContext = class {
          state = 'running'; currentTime = 0; destination = {};
          createOscillator() {
            return { frequency: {}, connect: (to) => to, start: (at) => heard.push(at), stop() {} };
          }
          createGain() {
            return { gain: { setValueAtTime() {}, exponentialRampToValueAtTime() {} }, connect: (to) => to };
          }
        };
        window.Notification = class {
          static permission = 'default';
          static async requestPermission() { asked += 1; Notification.permission = 'granted'; return 'granted'; }
        };"""
    )
    visit(page, desk)
    page.locator("#inbox-open").click()
    switch = page.get_by_role("button", name="Alerts")
    expect(switch).to_have_attribute("aria-pressed", "false")
    desk.call("preferences")
    card = the(page, "Form")
    act(card, "Decline")
    settled(card, "answered")
    assert page.evaluate("[heard.length, asked]") == [0, 0], "off by default, and nothing is asked for"
    switch.click()
    expect(switch).to_have_attribute("aria-pressed", "true")
    assert page.evaluate("[heard.length, asked]") == [2, 1], "the person hears how it will sound"
    page.reload()
    expect(switch).to_have_attribute("aria-pressed", "true")
    assert page.evaluate("[heard.length, asked]") == [0, 0]
    desk.call("preferences")
    expect(page.locator("#asks > .ask[data-s=open]")).to_have_count(1)
    page.wait_for_function("() => heard.length === 2")
    switch.click()
    expect(switch).to_have_attribute("aria-pressed", "false")


# ---- the stage


@pytest.mark.requirement("S001 test server")
def test_the_parade_is_started_and_answered_on_the_stage(page: Page, parley: Parley):
    desk = opened(parley, {"transport": "demo"})
    page.set_viewport_size({"width": 1920, "height": 1080})
    visit(page, desk)
    page.get_by_role("link", name="See the parade").click()
    expect(page.locator("#pill")).to_have_attribute("data-state", "live")
    page.get_by_role("button", name="Start the parade").click()
    expect(page.locator(".act")).to_contain_text("Act 2 of 10")
    card = page.locator("#asks > .ask[data-s=open]")
    size = float(card.locator(".says").first.evaluate("one => getComputedStyle(one).fontSize").removesuffix("px"))
    assert size >= 24, "to be read from the last row"
    act(card, "Decline")
    expect(page.locator(".act")).to_contain_text("Act 3 of 10")
    expect(page.locator(".scenes > li")).to_have_count(3)
    expect(page.locator(".scenes > li").last).to_contain_text("waiting")
    page.get_by_role("button", name="Stop the parade").click()
    expect(page.locator(".scenes > li").last).to_contain_text("withdrawn")
    expect(page.get_by_role("button", name="Once more")).to_be_visible()
    assert axe(page) == []


# ---- keyboard and phone


def test_everything_by_keyboard(page: Page, desk: Desk):
    visit(page, desk)
    call = desk.call("preferences")
    expect(page.locator("#asks > .ask[data-s=open]")).to_have_count(1)
    second = desk.call("write_caption")
    expect(page.locator("#asks > .ask[data-s=open]")).to_have_count(2)
    page.keyboard.press("n")
    expect(cards(page, "Form").get_by_label("outputFormat")).to_be_focused()
    page.keyboard.press("ArrowDown")
    for _ in range(8):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "Accept":
            break
    form, sampling = the(page, "Form"), the(page, "Sampling")
    page.keyboard.press("Enter")
    settled(form, "answered")
    assert desk.answer_of(call)["action"] == "accept"
    expect(sampling.get_by_label("Your answer")).to_be_focused()
    page.locator("#theme").focus()
    page.locator("#waiting").focus()
    page.keyboard.press("Enter")
    expect(sampling.get_by_label("Your answer")).to_be_focused()
    page.keyboard.type("nothing new, no")
    page.keyboard.press("Control+Enter")
    settled(sampling, "answered")
    assert desk.answer_of(second)["content"]["text"] == "nothing new, no"


def test_a_form_is_answered_on_a_phone(page: Page, desk: Desk):
    page.set_viewport_size({"width": 390, "height": 844})
    visit(page, desk, "/tools")
    call = desk.call("preferences")
    expect(page.locator("#waiting")).to_be_visible()
    card = the(page, "Form")
    card.get_by_label("outputFormat").select_option(index=1)
    accept = card.get_by_role("button", name="Accept", exact=True)
    box = accept.bounding_box()
    assert box is not None and box["height"] >= 44 and box["width"] > 300
    accept.click()
    settled(card, "answered")
    assert desk.answer_of(call)["action"] == "accept"
    for path in ("/inbox", f"/asks/{desk.get('/inbox')['settled'][0]['id']}", "/tasks", "/log"):
        visit(page, desk, path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
    assert page.locator("#log .peek", has_text="preferences").first.is_visible(), "what is in a message, too"
    page.locator("#waiting").click()  # there is no inbox on this page
    page.wait_for_url("**/inbox")


def test_on_a_phone_one_ask_is_open_and_the_page_is_near(page: Page, raw_desk: Desk, watch: Watch):
    watch.allow("422")
    page.set_viewport_size({"width": 390, "height": 844})
    visit(page, raw_desk, "/tools")
    long = {"type": "object", "properties": {"x": {"type": "string", "title": "Long " * 80, "description": "y" * 400}}}
    strict = {"type": "object", "properties": {"name": {"type": "string", "title": "Full name", "minLength": 2}}}
    params = [{"message": "W" * 300, "requestedSchema": long}]
    params += [{"message": f"Q{n}", "requestedSchema": {**strict, "required": ["name"]}} for n in (1, 2)]
    raw_desk.say(*({"id": f"q{n}", "method": "elicitation/create", "params": one} for n, one in enumerate(params)))
    for _ in range(2):  # as they arrive, and as they are found
        expect(cards(page)).to_have_count(3)
        expect(page.locator("#asks > .ask > details[open]")).to_have_count(1)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.reload()
    second = cards(page).nth(1)
    second.locator("summary").first.click()
    act(second, "Accept")  # refused, for the name is missing: what somebody works on stays open
    expect(second.locator("[role=alert]").first).to_be_visible()
    expect(second.get_by_label("Full name")).to_be_visible()


# ---- the tasks' own pages


@pytest.mark.requirement("R1-87", "S000 overview")
def test_the_life_of_a_task_is_told_as_it_happens(page: Page, desk: Desk):
    call = desk.call("preferences", as_task=True)
    visit(page, desk, "/tasks")
    row = page.locator("#tasks tr", has_text="elicitation/create")
    expect(row).to_contain_text("with you")
    row.get_by_role("link").click()
    expect(page.locator(".life")).to_contain_text("input_required")
    expect(page.locator(".life")).to_contain_text("more polls")
    expect(page.locator("svg.seq g.fold")).to_be_attached()
    first = page.locator(".life a").first
    seq = int((first.get_attribute("href") or "").rpartition("/")[2])
    expect(first).to_have_text(next(str(one["number"]) for one in desk.get("/log")["messages"] if one["seq"] == seq))
    cards(page, "Form").get_by_label("outputFormat").select_option(index=1)
    act(cards(page, "Form"), "Accept")
    expect(page.locator(".life")).to_contain_text("tasks/result")
    expect(page.locator(".sums")).to_contain_text("completed")
    expect(page.get_by_text("What the server gets")).to_be_visible()
    expect(page.locator(".good")).to_contain_text(["Kept to the interval", "Fetched the result"])
    desk.result(call)
    visit(page, desk, "/tasks")
    expect(row).to_contain_text("completed")


COVERED = """() => [...document.querySelectorAll('#asks > .ask')].filter((card) => {
  const [words, acts] = ['.says', 'form.in .acts'].map((one) => card.querySelector(one).getBoundingClientRect());
  return acts.top < words.bottom;
}).length"""


@pytest.mark.parametrize("path", ["/inbox", "/tools/three_at_once"])
def test_the_words_of_an_ask_stand_above_its_buttons(page: Page, desk: Desk, path: str):
    desk.call("three_at_once", ttl_ms=600_000)
    visit(page, desk, path)
    expect(page.locator("#asks > .ask")).to_have_count(3)
    for height in (900, 760, 640):  # a card that begins at the end of the screen
        page.set_viewport_size({"width": 1440, "height": height})
        assert page.evaluate(COVERED) == 0, height


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_axe_finds_nothing_while_asks_are_open(page: Page, desk: Desk):
    desk.call("three_at_once", ttl_ms=600_000)
    desk.call("every_field", as_task=True, ttl_ms=600_000)
    desk.call("ask_with_tools")
    desk.call("changes_its_mind", after_seconds=0.3)
    for _ in range(100):
        if len(desk.asks()) == 5 and desk.get("/inbox")["settled"]:
            break
        time.sleep(0.1)
    asks = desk.asks()
    gone = desk.get("/inbox")["settled"][0]["id"]
    task = next(ask["task_id"] for ask in asks if ask["task_id"])
    signing_in = desk.call("needs_sign_in")
    complaints = {}
    pages = ("", "/inbox", f"/asks/{asks[0]['id']}", f"/asks/{gone}", "/tasks", f"/tasks/{task}", "/stage")
    for path in (*pages, f"/calls/{signing_in}"):
        visit(page, desk, path)
        folded = page.locator(".ask details:not([open]) > summary, #past > summary")
        folded.evaluate_all("all => all.filter((one) => one.checkVisibility()).forEach((one) => one.click())")
        widths = WIDTHS if path in ("/inbox", "/stage") else WIDTHS[:1]  # the same cards stand on the other pages
        if found := axe(page, around=path == "", widths=widths):
            complaints[path] = found
    assert complaints == {}


# ---- a server written by others


@pytest.mark.peers
@pytest.mark.requirement("R1-11", "R1-30", "R1-40")
def test_a_task_of_the_previous_sdk_is_answered_after_a_reload_over_http(page: Page, parley: Parley):
    argv = [peers.mcp1_python(), str(SERVERS / "sdk1_tasks.py"), "http"]
    with started(argv) as peer:
        desk = opened(parley, {"transport": "http", "url": peer.url()}, poll_interval_ms=100)
        visit(page, desk)
        call = desk.call("elicit_as_task")
        card = the(page, "Form")
        card.get_by_label("Full name").fill("Ines Mar")
        page.reload()
        expect(card.get_by_label("Full name")).to_have_value("Ines Mar")
        card.get_by_label("Full name").fill("Ines Marquardt")
        card.get_by_label("Bags").fill("0")
        act(card, "Accept")
        settled(card, "answered")
        got = json.loads(desk.result(call)["content"][0]["text"])
        assert got["action"] == "accept"
        assert got["content"] == {"name": "Ines Marquardt", "bags": 0, "window": False}
