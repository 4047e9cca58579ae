"""No number that a person, a server or a file gives breaks a page (H12)."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.options import Options
from app.core.targets import DemoTarget
from app.core.times import moment, wire_time
from app.sessions import Session
from app.settings import Limits
from app.store import FILE, Store
from app.web.kit import format, html
from tests.drive import RawPeer, call_tool, connected, until
from tests.web.asgi import Visitor
from tests.web.tabs import tab_of

Raw = Callable[..., RawPeer]
HUGE = 10**18
MILLISECONDS = sorted(name for name in Options.model_fields if name.endswith("_ms"))
ASK = {
    "message": "Name?",
    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
    "task": {"ttl": HUGE},
}


@pytest.mark.requirement("H12")
@pytest.mark.parametrize("name", MILLISECONDS)
async def test_h12_a_time_option_beyond_all_dates_is_refused_with_a_sentence(
    victim: Session, script: Visitor, name: str
):
    assert "receiver_task_ttl_ms" in MILLISECONDS
    answer = await script.post(f"/s/{victim.id}/options", {name: HUGE})
    assert answer.status == 422
    [sentence] = next(texts for pointer, texts in answer.error["fields"].items() if pointer.endswith(name))
    assert sentence.startswith("At most ")
    assert victim.options == Options()
    answer = await script.post("/s", {"target": {"transport": "demo"}, "options": {name: HUGE}})
    assert answer.status == 422 and "At most" in json.dumps(answer.error["fields"])


@pytest.mark.requirement("H12")
async def test_h12_a_task_that_lives_beyond_all_dates_breaks_no_page(
    victim: Session, client: Visitor, script: Visitor, raw: Raw, limits: Limits
):
    huge = {"receiver_task_ttl_ms": HUGE, "receiver_task_max_ttl_ms": HUGE}
    await connected(victim, raw().target)
    victim.options = Options().model_copy(update=huge)  # as an earlier Parley took it
    ask = json.dumps({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": ASK})
    await call_tool(victim, "say", {"lines": [ask, '{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}']})
    await until(victim, lambda: victim.open_asks == 1)
    [task] = victim.asks.tasks.values()
    assert task.ttl == HUGE
    for path in ("", "/inbox", "/tasks", f"/tasks/{task.id}", f"/asks/{victim.inbox.open[0].id}", "/calls"):
        assert (await client.get(f"/s/{victim.id}{path}")).status == 200, path
        await script.json(f"/s/{victim.id}{path}")
    assert (await script.json(f"/s/{victim.id}/tasks/{task.id}"))["expires_at"].startswith("9999-12-31T")
    for page in ("overview", "tasks", "task"):
        assert tab_of(victim, page, task.id, None, limits).snapshot().html


@pytest.mark.requirement("H12")
@given(st.floats() | st.integers(-(10**30), 10**30))
def test_h12_every_number_is_some_moment(at: float):
    assert wire_time(at).endswith("Z") and moment(at).year <= 9999
    assert format.clock(at) and html.time_of_day(at)


@pytest.mark.requirement("H12")
async def test_h12_options_that_are_too_large_now_do_not_lose_a_saved_target(tmp_path: Path):
    store = Store(tmp_path)
    await store.open()
    await store.save("me", DemoTarget(), Options(poll_interval_ms=7), "mine")
    await store.close()
    with sqlite3.connect(tmp_path / FILE) as file:
        kept = json.dumps({"receiver_task_ttl_ms": HUGE, "poll_interval_ms": 7})
        file.execute("UPDATE targets SET options = ?", (kept,))
    file.close()
    store = Store(tmp_path)
    await store.open()
    [one] = store.of("me")
    await store.close()
    assert one.options == Options(poll_interval_ms=7)
