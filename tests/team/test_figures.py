"""Figures, the log and signs of life of a team: for whoever runs it, and with nobody's name in them."""

import json
import logging
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import anyio.to_thread
import pytest
from starlette.applications import Starlette

from app.team_log import JsonLines
from app.team_settings import TeamSettings
from app.web.team.house import House
from tests.drive import ROOT
from tests.drive_http import free_port
from tests.team.conftest import Enters, Guest

pytestmark = pytest.mark.requirement("T21")
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def fetched(address: str, **headers: str) -> tuple[int, str]:
    try:
        with _OPENER.open(urllib.request.Request(address, headers=headers), timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


class TestMetrics:
    @pytest.fixture
    def settings(self, settings: TeamSettings) -> TeamSettings:
        return settings.model_copy(update={"metrics_port": free_port()})

    async def test_numbers_alone_and_for_this_machine_alone(
        self, app: Starlette, house: House, enters: Enters, stranger: Guest
    ):
        grace = await enters("Grace Canary")
        assert grace.person is not None
        assert (await grace.get("/")).status == 200
        assert (await stranger.get("/")).status == 401
        address = f"http://127.0.0.1:{house.settings.metrics_port}"
        status, text = await anyio.to_thread.run_sync(fetched, f"{address}/metrics")
        assert status == 200
        found = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        for name in ("sessions", "connections", "open_asks", "streams", "people", "loop_lag_seconds"):
            assert f"parley_{name}" in found, name
        assert (found["parley_people"], found["parley_calls_total"]) == ("1.0", "0.0")
        assert float(found['parley_refused_total{status="401"}']) == 1.0
        assert {*re.findall(r"(\w+)=\"", text)} <= {"status"}
        assert grace.person.id not in text and "Canary" not in text
        if sys.platform == "linux":
            assert float(found["process_resident_memory_bytes"]) > 2**20
        evil = await anyio.to_thread.run_sync(lambda: fetched(f"{address}/metrics", Host="evil.example"))
        assert evil == (400, "Figures are for this machine only.\n")
        assert (await anyio.to_thread.run_sync(fetched, f"{address}/"))[0] == 404
        # The other port does not have them.
        assert (await stranger.get("/metrics")).status == 401


async def test_ready_means_that_people_can_be_served(app: Starlette, house: House, stranger: Guest):
    bare = Guest(app)  # asked by the proxy itself, or by whoever watches the process: no headers of a browser
    for path in ("/healthz", "/readyz"):
        answer = await bare.get(path)
        assert (answer.status, answer.json()) == (200, {"ready": True})
    house._database.trouble = "the disk is full"
    assert ((await bare.get("/readyz")).status, (await bare.get("/healthz")).status) == (503, 200)
    house._database.trouble = ""
    app.state.registry.closing = True
    draining = await bare.get("/readyz")
    assert (draining.status, draining.json()) == (503, {"ready": False})
    app.state.registry.closing = False


def test_a_line_is_one_object_and_masks_what_looks_like_a_secret():
    record = logging.LogRecord("parley.x", logging.WARNING, "", 1, "it said %s", ("two\nlines \x1b[1m",), None)
    line = JsonLines().format(record)
    said = json.loads(line)
    assert (said["level"], said["from"], said["message"]) == ("warning", "parley.x", "it said two\\nlines \\x1b[1m")
    assert "\n" not in line and said["at"].endswith("+00:00")
    secret = "Authorization: Bearer canary-4f0d1f7f9a1b2c3d4e5f"
    try:
        raise ValueError(secret)
    except ValueError:
        record = logging.LogRecord("parley.x", logging.ERROR, "", 1, f"failed: {secret}", (), sys.exc_info())
    line = JsonLines().format(record)
    assert "canary-4f0d" not in line and "\n" not in line and "ValueError" in json.loads(line)["trace"]


@pytest.mark.requirement("T06")
def test_a_process_with_all_of_it_begins_and_ends(tmp_path: Path):
    """With nobody signed in yet: it says where it is, is ready, has figures, and every line of its log is JSON."""
    (tmp_path / "data").mkdir(mode=0o700)
    port, metrics = free_port(), free_port()
    (tmp_path / "team.toml").write_text(
        f'public_url = "https://parley.example"\ndata_dir = "{tmp_path}/data"\nport = {port}\nlog = "json"\n'
        f'metrics_port = {metrics}\nchild_user = "61000-61009"\n'
    )
    env = {name: value for name, value in os.environ.items() if not name.startswith("PARLEY_")}
    command = [sys.executable, "-m", "app", "team", "--config", str(tmp_path / "team.toml")]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if line.startswith("Parley for a team is at"):
                break
        host = {"Host": "parley.example"}
        ready: tuple[int, str] = (0, "")
        for _ in range(600):
            ready = fetched(f"http://127.0.0.1:{port}/readyz", **host)
            if ready[0] == 200:
                break
        assert ready == (200, '{"ready":true}')
        status, text = fetched(f"http://127.0.0.1:{metrics}/metrics")
        assert status == 200 and "parley_sessions 0.0" in text
        code = re.search(r"/invite/(\S+)", "".join(said))
        assert code is not None
        again = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert (again.returncode, f"port {port} is taken" in again.stderr) == (1, True), again.stderr
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
    written = (tmp_path / "log").read_text()
    assert all({"at", "level", "from", "message"} <= json.loads(line).keys() for line in written.splitlines())
    assert code[1] not in written
