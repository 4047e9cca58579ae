"""Figures of this process for Prometheus, on a loopback port of their own. Numbers alone: no name, no id, no address.

Asked for by a program of the same machine, so nobody signs in; a page of a browser is refused by its Host header.
Imported only where `metrics_port` is set.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import anyio
import anyio.abc
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.applications import Starlette

from app import team_bounds as bounds
from app.web.door.guard import host_name
from app.web.team.house import House

_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_HOSTS = frozenset(("127.0.0.1", "localhost", "[::1]"))


class _State(Collector):
    """What there is at the moment of asking."""

    def __init__(self, app: Starlette, house: House) -> None:
        self._app, self._house = app, house

    def collect(self) -> Iterable[GaugeMetricFamily | CounterMetricFamily]:
        state, figures = self._app.state, self._house.figures
        sessions = state.registry.everybodys() if state.loaded.is_set() else []
        yield _gauge("sessions", "Open sessions", len(sessions))
        ready = sum(one.info.state == "ready" for one in sessions)
        yield _gauge("connections", "Sessions that are connected to a server", ready)
        yield _gauge("open_asks", "Questions of servers that wait for a person", sum(one.open_asks for one in sessions))
        streams = len(state.streams) if state.loaded.is_set() else 0
        yield _gauge("streams", "Open event streams of tabs and scripts", streams)
        yield _gauge("people", "People who may sign in", sum(one.off is None for one in self._house.people.all()))
        yield _gauge("loop_lag_seconds", "How late the event loop was at the last look", figures.lag)
        yield _gauge("loop_lag_max_seconds", "The longest it ever was", figures.most_lag)
        yield CounterMetricFamily("parley_calls", "Calls that people began", value=figures.calls)
        yield CounterMetricFamily("parley_calls_refused", "Calls over somebody's limit", value=figures.over)
        answers = CounterMetricFamily("parley_answers", "Answered requests by status", labels=["status"])
        refused = CounterMetricFamily("parley_refused", "Refused requests by status", labels=["status"])
        for status, many in sorted(figures.answers.items()):
            answers.add_metric([str(status)], many)
            if status in {400, 401, 403, 404, 405, 413, 429, 503}:
                refused.add_metric([str(status)], many)
        yield answers
        yield refused


def _gauge(name: str, words: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"parley_{name}", words, value=value)


class Metrics:
    """Answers whoever asks for the figures."""

    def __init__(self, app: Starlette, house: House) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_State(app, house))
        ProcessCollector(registry=self._registry)
        self._port, self._room = house.settings.metrics_port, anyio.CapacityLimiter(bounds.METRICS_AT_ONCE)

    async def serve(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Listen until cancelled."""
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=self._port)
        async with listener:
            task_status.started()
            await listener.serve(self._answer)

    async def _answer(self, client: anyio.abc.SocketStream) -> None:
        async with client:
            with suppress(anyio.BrokenResourceError, anyio.EndOfStream, anyio.ClosedResourceError):
                with anyio.move_on_after(bounds.METRICS_SECONDS):
                    async with self._room:
                        await client.send(self._said(await _head(client)))

    def _said(self, head: list[str]) -> bytes:
        words = head[0].split(" ") if head else []
        hosts = [line.partition(":")[2].strip() for line in head[1:] if line.lower().startswith("host:")]
        if len(words) != 3 or words[0] != "GET" or words[1] != "/metrics":
            return _response(404, b"Figures are at /metrics.\n")
        if len(hosts) != 1 or host_name(hosts[0]) not in _HOSTS:
            return _response(400, b"Figures are for this machine only.\n")
        return _response(200, generate_latest(self._registry))


async def _head(client: anyio.abc.SocketStream) -> list[str]:
    got = b""
    while b"\r\n\r\n" not in got and len(got) < bounds.METRICS_HEAD:
        got += await client.receive()
    return got.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")


def _response(status: int, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status} {'OK' if status == 200 else 'Refused'}\r\ncontent-type: {_TYPE}\r\n"
    rest = f"content-length: {len(body)}\r\nconnection: close\r\nx-content-type-options: nosniff\r\n\r\n"
    return (head + rest).encode() + body
