"""F21: a tab that stops reading loses its stream soon, and nothing and nobody else is harmed by it."""

import logging
from typing import Any

import anyio
import pytest
from starlette.applications import Starlette

from app.core.json.text import parse
from app.sessions import Session
from app.settings import Limits
from tests.drive import HANG
from tests.web.asgi import HOST, TOKEN


@pytest.fixture
def limits() -> Limits:
    return Limits(stream_send_seconds=0.2)


def scope_of(session: Session, query: str) -> dict[str, Any]:
    headers = [("host", HOST), ("authorization", f"Bearer {TOKEN}"), ("accept", "text/event-stream")]
    path = f"/s/{session.id}/events"
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 6280),
    }


@pytest.mark.requirement("F21")
@pytest.mark.parametrize("query", ["since=0&page=log", "since=0&format=json"])
async def test_a_tab_that_stops_reading_is_let_go_without_a_word(
    app: Starlette, victim: Session, query: str, caplog: pytest.LogCaptureFixture
):
    for number in range(500):
        raw = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"%d"}}' % number
        victim.messages.record("in", raw, parse(raw))
    began = anyio.Event()

    async def receive() -> dict[str, Any]:
        await anyio.sleep_forever()
        return {}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body" and message.get("body"):
            began.set()
            await anyio.sleep_forever()  # the socket is full, and stays full

    with caplog.at_level(logging.WARNING), anyio.fail_after(HANG):
        await app(scope_of(victim, query), receive, send)
    assert began.is_set()
    assert len(app.state.streams) == 0
    assert victim.messages.count == 500
    assert [record for record in caplog.records if record.exc_info] == []
