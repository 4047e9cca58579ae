"""Options of a connection: what may change while it lives, and what was said in the handshake."""

from collections.abc import Callable
from typing import Any

import pytest

from app.core.errors import Invalid
from app.core.options import LIVE_OPTIONS, Options
from app.sessions import Session
from tests.drive import ME, RawPeer, call, connected, flushed, raw_target, until

Raw = Callable[..., RawPeer]


@pytest.mark.requirement("R5-05", "R5-22")
async def test_live_options_change_the_next_call(session: Session, raw: Raw):
    peer = raw()
    await connected(session, peer.target)
    await session.change_options({"request_timeout_ms": 30, "meta": {"k": 1}, "log_level": "error"})
    late = await call(session, "x/hold", {})
    assert late.error is not None and late.error.message == "No answer within 0.03 s."
    await session.change_options({"request_timeout_ms": 60_000})
    await flushed(session)
    assert peer.received("x/hold")[0]["params"] == {"_meta": {"k": 1}}
    assert peer.received("logging/setLevel")[0]["params"] == {"level": "error", "_meta": {"k": 1}}
    assert session.options.log_level == "error" and session.options.roots is True


@pytest.mark.requirement("R5-02")
@pytest.mark.parametrize("key", sorted(set(Options.model_fields) - LIVE_OPTIONS))
async def test_what_the_handshake_said_is_fixed_while_connected(session: Session, key: str):
    await connected(session, raw_target())
    before = session.options
    with pytest.raises(Invalid, match="Reconnect to change them") as refused:
        await session.change_options({key: getattr(before, key), "request_timeout_ms": 5})
    assert refused.value.fields == {f"/{key}": ["Fixed while connected."]}
    assert session.options == before, "all or nothing"


async def test_everything_may_change_while_not_connected(session: Session):
    await session.change_options({"roots": False, "protocol_version": "2024-11-05"})
    assert (session.options.roots, session.options.protocol_version) == (False, "2024-11-05")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"unknown": 1}, "/unknown"),
        ({"request_timeout_ms": 0}, "/request_timeout_ms"),
        ({"request_timeout_ms": "soon"}, "/request_timeout_ms"),
        ({"log_level": "loud"}, "/log_level"),
        ({"meta": [1]}, "/meta"),
        ({"protocol_version": "2026-07-28"}, "/protocol_version"),
    ],
)
async def test_what_cannot_be_is_refused_with_its_field(session: Session, changes: dict[str, Any], field: str):
    with pytest.raises(Invalid) as refused:
        await session.change_options(changes)
    assert list(refused.value.fields) == [field]
    assert session.options == Options()


async def test_changes_are_events(session: Session):
    mark = session.events.seq
    await session.change_options({"poll_interval_ms": 5})
    await session.set_roots([])
    assert [each.kind for each in session.events.since(mark) or []] == ["options.changed", "roots.changed"]


@pytest.mark.requirement("R5-05")
async def test_a_changed_limit_does_not_touch_a_running_call(session: Session):
    await connected(session, raw_target(), request_timeout_ms=60_000)
    held = session.start_call("x/hold", {}, by=ME)
    await until(session, lambda: held.legs)
    await session.change_options({"request_timeout_ms": 1})
    await session.change_options({"request_timeout_ms": 60_000})
    await call(session, "x/release")
    await until(session, lambda: held.settled)
    assert held.state == "done"
