"""Sampling by a model, as a person sees it: both checkpoints, a draft that comes, one that is stopped, and tool uses by
form; wide and on a phone. The model is a stand-in on loopback that speaks a provider's format.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.browser.conftest import Watch
from tests.browser.desk import Desk, opened, visit
from tests.browser.parley import Parley
from tests.browser.test_inbox import act, settled, the, unfold
from tests.browser.test_looks import axe
from tests.models.conftest import Providers
from tests.models.conftest import providers as providers

KEY = "sk-page-canary-31d0c0ffee7a"
WAYS = {"Text": "text", "Tool use": "tool", "JSON": "json", "Model": "model"}
WIDTHS = pytest.mark.parametrize("width", [1440, 390])
REQUEST: dict[str, Any] = {
    "systemPrompt": "You write for a ferry company.",
    "messages": [{"role": "user", "content": {"type": "text", "text": "A caption for the harbour. Make it funny."}}],
    "maxTokens": 200,
    "modelPreferences": {"hints": [{"name": "SLOW"}, {"name": "gpt-mini"}], "speedPriority": 0.8},
}
HEARD = """() => {
  window.said = [];
  const heard = () => said.push(announce.textContent);
  new MutationObserver(heard).observe(announce, { childList: true, characterData: true, subtree: true });
}"""
TOOLS = [
    {
        "name": "weather",
        "description": "The weather somewhere",
        "inputSchema": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
            "required": ["city"],
        },
    },
    {
        "name": "tide",
        "inputSchema": {"type": "object", "properties": {"notes": {"type": "array", "items": {"type": "string"}}}},
    },
]


@pytest.fixture
def page(context: BrowserContext, width: int) -> Iterator[Page]:
    opened = context.new_page()
    opened.set_viewport_size({"width": width, "height": 900 if width > 1000 else 844})
    yield opened


def sampling(page: Page, desk: Desk, **params: Any) -> Locator:
    desk.say(
        {
            "id": f"s{len(desk.get('/inbox')['settled'])}",
            "method": "sampling/createMessage",
            "params": {**REQUEST, **params},
        }
    )
    return the(page, "Sampling")


def choose(card: Locator, way: str) -> None:
    card.locator(".by label", has_text=way).click()
    expect(card.locator(f"[name=as][value={WAYS[way]}]")).to_be_checked()


def narrow(page: Page) -> None:
    """Nothing is wider than the page."""
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), page.url


@WIDTHS
@pytest.mark.requirement(
    "R3-02", "R3-03", "R3-10", "R3-23", "S21", "S001 modifications", "S001 forwardSamplingToLLM", "S001 integration 1",
    "S001 integration 2", "S001 integration 3",
)  # fmt: skip
def test_both_checkpoints_with_an_edit_at_each(
    page: Page, context: BrowserContext, raw_desk: Desk, providers: Providers, width: int
):
    desk = raw_desk
    visit(page, desk)
    card = sampling(page, desk)
    choose(card, "Model")
    expect(card.locator(".flow > [aria-current]")).to_have_text("Check request")
    expect(card).to_contain_text("gpt-mini no such model here")
    # A model of this session, its key typed in the page.
    card.get_by_role("link", name="Add a model…").click()
    main = page.locator("#main")
    main.get_by_label("Name", exact=True).fill("mine")
    main.get_by_label("Base URL").fill(providers.url("openai"))
    main.get_by_label("Model", exact=True).fill("slow-1")
    main.get_by_label("Key", exact=True).fill(KEY)
    main.get_by_role("button", name="Add the model").click()
    expect(main.locator("#models")).to_contain_text("key in memory")
    expect(main.get_by_label("Key", exact=True)).to_have_value("")
    narrow(page)
    expect(card.locator("[name=as][value=model]")).to_be_checked()  # the way that was chosen is kept
    expect(card.get_by_label("mine")).to_be_checked()  # the hint chooses it
    # The first checkpoint: the request is changed, marked in place, and can be taken back.
    card.get_by_text("Edit prompt (local only)").click()
    card.get_by_label("Message 1, user").fill("A caption for the harbour. No puns.")
    card.get_by_label("Max tokens").fill("120")
    act(card, "Use this request")
    expect(card.locator(".asked del")).to_have_text("Make it funny.")
    expect(card.locator(".asked ins")).to_have_text(["No puns.", "120"])
    expect(card.locator(".asked .chip").first).to_have_text("2 edits")
    act(card, "Undo edits")
    expect(card.locator("ins")).to_have_count(0)
    card.get_by_text("Edit prompt (local only)").click()
    card.get_by_label("Message 1, user").fill("A caption for the harbour. No puns.")
    other = context.new_page()
    visit(other, desk)
    theirs = the(other, "Sampling")
    page.bring_to_front()
    page.evaluate(HEARD)
    # What is typed and not yet in force goes along.
    card.get_by_role("button", name="Send to model").click()
    expect(card.locator(".flow > [aria-current]")).to_have_text("Model writes", timeout=180_000)
    expect(card.get_by_role("button", name="Stop")).to_be_focused()
    expect(card.locator("[data-draft]")).to_contain_text("A boat", timeout=180_000)
    assert page.evaluate("document.querySelector('[data-draft]').childNodes.length") == 1, "one text, which grows"
    expect(theirs.locator("[data-draft]")).to_contain_text("A boat")  # also where nobody asked for it
    expect(card.locator(".asked")).to_be_hidden()
    expect(card.locator(".req > summary")).to_contain_text("1 edit")
    narrow(page)
    # The second checkpoint: the answer is changed before it leaves.
    box = card.get_by_label("Answer", exact=True)
    expect(box).to_be_focused()
    expect(box).to_have_value("A boat on the fjord.")
    assert page.evaluate("said.filter((one) => one === 'Draft ready').length") == 1, "said once"
    expect(card.locator(".sums")).to_contain_text("slow-1-2026")
    expect(card.locator(".sums")).to_contain_text("11 in, 5 out")
    box.fill("A boat on the quiet fjord.")
    expect(card.locator("[data-marked] ins")).to_have_text("quiet ")
    card.get_by_role("button", name="Undo edit").click()
    expect(box).to_have_value("A boat on the fjord.")
    box.fill("A boat on the quiet fjord.")
    expect(theirs.get_by_label("Answer", exact=True)).to_have_value("A boat on the fjord.")
    narrow(page)
    if width == 1440:
        assert axe(page, widths=(1440, 900, 360)) == []
    box.press("Control+Enter")
    settled(card, "answered")
    expect(card.locator(".kind")).to_have_text("Sampling answered by mine, edited")
    settled(theirs, "answered")
    told = desk.get("/asks/a1")
    assert told["outcome"]["result"]["content"]["text"] == "A boat on the quiet fjord."
    assert told["edited"]["messages"][0]["content"]["text"].endswith("No puns.") and told["params"] == REQUEST
    page.goto(f"{desk.url}/asks/a1")
    expect(page.locator(".record ins")).to_have_text("quiet ")
    expect(page.locator("#main")).to_contain_text("mine wrote it, and it was edited before it left")
    narrow(page)
    page.goto(f"{desk.url}/calls/c1")
    expect(page.locator("#main")).to_contain_text("answered by mine, edited")
    seen = [page.content(), other.content(), str(desk.get("/log")), str(desk.get("/models"))]
    assert all(KEY not in each and KEY[3:] not in each for each in seen)
    asked = providers.next()
    assert asked["key"] == KEY and asked["body"]["max_tokens"] == 200 and "No puns." in str(asked["body"])


@WIDTHS
@pytest.mark.requirement("R3-22", "S001 forwardSamplingToLLM", "S001 Q3")
def test_a_draft_is_stopped_another_model_writes_and_a_failure_leaves_the_ask_open(
    page: Page, raw_desk: Desk, providers: Providers, width: int, watch: Watch
):
    desk = raw_desk
    for name, how in (("slow", "slow"), ("limited", "limit")):
        more = {"provider": "openai", "base_url": providers.url("openai"), "model": f"{how}-1", "key": "k"}
        desk.parley.script("POST", f"{desk.base}/models", name=name, **more)
    visit(page, desk)
    card = sampling(page, desk)
    choose(card, "Model")
    expect(card.get_by_label("slow")).to_be_checked()
    card.get_by_role("button", name="Send to model").click()
    expect(card.locator("[data-draft]")).to_contain_text("A boat", timeout=180_000)
    page.keyboard.press("Enter")  # on Stop, where the keyboard went
    expect(card.locator(".flow > [aria-current]")).to_have_text("Model stopped")
    expect(card.locator("[data-draft]")).to_contain_text("A boat")  # what was written stays
    assert providers.next()["body"]["model"] == "slow-1" and providers.next()["left"]
    # Another one, which refuses.
    card.get_by_text("Another model…").click()
    card.get_by_label("limited").check()
    card.get_by_role("button", name="Send to this model").click()
    expect(card.locator(".fault")).to_contain_text("Rate limit reached.")
    expect(card.locator(".fault")).to_contain_text("The ask is still open.")
    expect(card.locator("time[data-over]")).to_have_text(re.compile("0:0[0-7] left|now"))
    narrow(page)
    if width == 390:
        assert axe(page, widths=(390,)) == []
    expect(card.get_by_role("button", name="Try again")).to_be_focused()
    card.get_by_role("button", name="Try again").click()
    expect(card.locator("dl.kv").last).to_contain_text("3 times")
    # By hand: it begins with nothing, for nothing was written.
    card.get_by_role("button", name="Write it yourself").click()
    expect(card.get_by_label("Your answer")).to_be_focused()
    expect(card.locator("time[data-over]")).to_have_text("now", timeout=40_000)
    expect(card.get_by_label("Your answer")).to_be_visible()
    choose(card, "Model")
    card.get_by_text("Another model…").click()
    card.get_by_label("small talk").check()
    card.get_by_role("button", name="Send to this model").click()
    box = card.get_by_label("Answer", exact=True)
    expect(box).to_have_value(re.compile("^Here is a short answer"))
    page.reload()
    expect(box).to_have_value(re.compile("^Here is a short answer"))
    box.fill("Edited before a reload")
    page.reload()
    expect(box).to_have_value("Edited before a reload")
    card.get_by_role("button", name="Try again").click()
    expect(box).to_have_value(re.compile("^Here is a short answer"))
    act(card, "Send answer")
    settled(card, "answered")
    expect(card.locator(".kind")).to_have_text("Sampling answered by small talk")
    assert desk.get("/asks/a1")["outcome"]["draft"]["changed"] is False
    # A server that takes its ask back while a model writes: the draft stays, grey, and nothing was sent.
    card = sampling(page, desk)
    choose(card, "Model")
    card.get_by_role("button", name="Send to model").click()
    expect(card.locator("[data-draft]")).to_contain_text("A boat", timeout=180_000)
    desk.say({"method": "notifications/cancelled", "params": {"requestId": "s1"}})
    settled(card, "withdrawn")
    expect(card.locator("[data-draft]")).to_contain_text("A boat")
    expect(card.get_by_role("button", name="Stop")).to_be_hidden()
    act(card, "Dismiss")
    unfold(page) if width == 1440 else page.locator("#past > summary").click()
    past = page.locator("#settled > .ask", has_text="withdrawn")
    past.locator("summary").first.click()
    expect(past).to_contain_text("Draft of slow, not sent")


@WIDTHS
@pytest.mark.requirement("R3-06", "R3-08", "R3-09")
def test_tool_uses_by_form(page: Page, raw_desk: Desk, width: int, watch: Watch):
    watch.allow("422")
    desk = raw_desk
    visit(page, desk)
    card = sampling(page, desk, tools=TOOLS, toolChoice={"mode": "required"})
    choose(card, "Tool use")
    expect(card.locator(".uses")).to_contain_text("The server wants at least one tool use.")
    page.reload()  # the way that was chosen is kept, and what it needs is there
    expect(card.locator(".uses")).to_contain_text("The server wants at least one tool use.")
    act(card, "Approve and send")
    expect(card.locator(".err").first).to_have_text("Add a tool use first.")
    act(card, "Add a tool use")
    card.get_by_label("days").fill("0")
    act(card, "Approve and send")
    expect(card.locator("[aria-invalid=true]")).to_have_count(1)
    card.get_by_label("city").fill("Bergen")
    card.get_by_label("days").fill("3")
    card.locator("[name=tool]").select_option("tide")
    act(card, "Add another")
    expect(card.locator(".use")).to_have_count(2)
    expect(card.get_by_label("city")).to_have_value("Bergen")
    card.locator(".use").nth(1).get_by_role("button", name="Add note").click()
    card.locator(".use").nth(1).locator("ol input:not([type=hidden])").fill("high")
    narrow(page)
    if width == 1440:
        assert axe(page, widths=(1440, 360)) == []
    act(card, "Approve and send")
    settled(card, "answered")
    result = desk.get("/asks/a1")["outcome"]["result"]
    assert result["stopReason"] == "toolUse"
    assert [(one["name"], one["input"]) for one in result["content"]] == [
        ("weather", {"city": "Bergen", "days": 3}),
        ("tide", {"notes": ["high"]}),
    ]


@pytest.mark.parametrize("width", [1440])
@pytest.mark.requirement("S001 modifications")
def test_beside_the_call_that_asks_a_prompt_is_edited_and_the_call_says_how_far_the_answer_is(
    page: Page, parley: Parley
):
    desk = opened(parley, {"transport": "demo"})
    visit(page, desk, "/tools/write_caption")
    page.locator("#main").get_by_role("button", name="Call write_caption").click()
    card = the(page, "Sampling")
    choose(card, "Model")
    send = card.get_by_role("button", name="Send to model")
    expect(send).to_be_in_viewport(ratio=1)  # however long the request is
    row = page.locator("#calls .asks tbody tr")
    expect(row).to_contain_text("none yet")
    card.get_by_text("Edit prompt (local only)").click()
    card.get_by_label("Message 3, user").fill("Brevity.")
    act(card, "Use this request")
    expect(card.locator(".asked ins")).to_have_text("Brevity.")
    expect(row).to_contain_text("Write a caption of at most twelve words")  # what the server asked
    send.click()
    expect(row).to_contain_text("draft to check")
    act(card, "Send answer")
    expect(row).to_contain_text("small talk")
