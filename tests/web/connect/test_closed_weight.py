"""A closed session that may come back is counted with all that it holds, not with its log alone."""

from typing import Any

import anyio
import pytest
from starlette.applications import Starlette

from app import bounds
from app.core.weight import weight
from app.sessions import Session
from app.sessions.identity import LOCAL
from app.settings import Limits
from tests.web.asgi import Visitor

pytestmark = pytest.mark.requirement("U-S8")


def listed(session: Session) -> None:
    session.lists["tools"].items = [{"name": f"t{at}", "description": str(at) * 1000} for at in range(100)]


def answered(session: Session) -> None:
    call = session.calls
    call._latest = (b"x" * 100_000, None)


def noted(session: Session) -> None:
    for _ in range(100):
        session.stderr.write(b"y" * 1000)


@pytest.mark.parametrize("held", [listed, answered, noted])
async def test_a_closed_session_that_holds_too_much_does_not_come_back(app: Starlette, script: Visitor, held: Any):
    registry = app.state.registry
    registry.closed._limits = Limits(closed_bytes=80_000)
    small, large = registry.open(LOCAL), registry.open(LOCAL)
    held(large)
    for session in (small, large):
        await script.post(f"/s/{session.id}/close")
        if (kept := registry.closed._kept.get(session.id)) is not None:
            with anyio.fail_after(10):
                await kept.weighed.wait()
            await anyio.lowlevel.checkpoint()
    assert large.messages.body_bytes == 0
    assert (await script.post(f"/s/{large.id}/reopen")).status == 404


async def test_one_that_holds_little_comes_back(app: Starlette, script: Visitor):
    session = app.state.registry.open(LOCAL)
    await script.post(f"/s/{session.id}/close")
    kept = app.state.registry.closed._kept[session.id]
    with anyio.fail_after(10):
        await kept.weighed.wait()
    assert 0 < kept.size < 100_000, "what all sessions share is not held by one"
    assert (await script.post(f"/s/{session.id}/reopen")).status == 200


def test_a_weight_counts_each_thing_once_and_has_an_end(monkeypatch: pytest.MonkeyPatch):
    text = "x" * 1000
    assert 1000 < weight([text] * 50, 10**6) < 2000
    assert weight({"a": [{"b": (text,)}]}, 10**6) > 1000
    ring: list[Any] = [text]
    ring.append(ring)
    assert weight(ring, 10**6) < 2000
    assert weight([text], 10**6, without=[text]) < 200
    assert weight([text], 500) == 501
    monkeypatch.setattr(bounds, "WEIGHED_THINGS", 10)
    assert weight([[at] for at in range(100)], 10**6) == 10**6 + 1
