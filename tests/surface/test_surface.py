"""The promised surface is as it was: a walk over a real process against `surface.json`.

What is new is written down by `python -m tests.surface --write`, and read in the diff. What is gone, or has another
type, status or kind, breaks somebody's script: it must not happen.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.web.routes import routes
from tests.browser.parley import running
from tests.drive import ROOT
from tests.surface import GOLDEN
from tests.surface.journey import walk
from tests.surface.shapes import differences, merge, shape_of

SURFACE: dict[str, Any] = json.loads(GOLDEN.read_text(encoding="utf-8"))
SOMETIMES = {"ask.withdrawn"}
"""Kinds of events that depend on which of two things comes first."""
VARIABLES = {"PARLEY_CONFIG", "PARLEY_DATA_DIR", "PARLEY_HOST", "PARLEY_PORT", "PARLEY_TOKEN"}
STORAGE = {
    "parley-alerted", "parley-alerts", "parley-clock", "parley-draft", "parley-drawer", "parley-inbox", "parley-log",
    "parley-theme",
}  # fmt: skip
OPTIONS: dict[str, Any] = {
    "era": "auto",
    "protocol_version": None,
    "sampling": True,
    "sampling_tools": True,
    "sampling_context": False,
    "elicitation_form": True,
    "elicitation_url": True,
    "roots": True,
    "ask_roots": False,
    "receiver_tasks": True,
    "receiver_task_ttl_ms": 60000,
    "receiver_task_max_ttl_ms": 3600000,
    "poll_interval_ms": 2000,
    "awaiting_user_status": "input_required",
    "send_status_notifications": True,
    "unattended_limit_ms": None,
    "request_timeout_ms": 60000,
    "reset_timeout_on_progress": True,
    "max_total_timeout_ms": None,
    "log_level": None,
    "meta": {},
    "extensions": {},
}


@pytest.mark.slow
def test_every_route_answers_as_it_did() -> None:
    with running("--room", "127.0.0.1:0") as parley:
        seen = walk(parley).as_json()
        told = parley.script("POST", "/s")
        options = parley.script("GET", told["url"])["options"]
    broken = []
    for route, kinds in SURFACE["answers"].items():
        answers = seen["answers"].get(route, {})
        broken += [f"{route}, {kind}: does not happen any more" for kind in kinds if kind not in answers]
        broken += [f"{route}, {kind}: is new" for kind in answers if kind not in kinds]
        for kind, shape in kinds.items():
            if kind in answers:
                broken += [f"{route}, {kind}: {each}" for each in differences(shape, answers[kind])]
    broken += [f"{route}: is new" for route in seen["answers"] if route not in SURFACE["answers"]]
    for stream, names in SURFACE["events"].items():
        gone = set(names) - set(seen["events"].get(stream, ())) - SOMETIMES
        new = set(seen["events"].get(stream, ())) - set(names)
        broken += [f"{stream}: {each} is gone" for each in gone] + [f"{stream}: {each} is new" for each in new]
    assert broken == [], "see tests/surface/test_surface.py for what to do"
    assert {key: options[key] for key in OPTIONS} == OPTIONS


def test_the_walk_covers_the_route_table() -> None:
    table = {f"{min((route.methods or set()) - {'HEAD'})} {route.path.replace(':path}', '}')}" for route in routes()}
    # What is read of a recording is answered by the handler of the session's address: one visit is for both.
    twins = {
        one.replace("GET /s/{sid}", "GET /r/{rid}") for one in SURFACE["answers"] if one.startswith("GET /s/{sid}")
    }
    assert table - set(SURFACE["answers"]) - twins == set(), "add a visit to tests/surface/journey.py"


def test_variables_keep_their_names() -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "app").rglob("*.py"))
    assert set(re.findall(r"PARLEY_[A-Z_]+[A-Z]", sources)) >= VARIABLES


def test_what_a_browser_keeps_has_its_names() -> None:
    scripts = [path for path in (ROOT / "static").rglob("*.js") if "vendor" not in path.parts]
    text = "\n".join(path.read_text(encoding="utf-8") for path in scripts)
    assert set(re.findall(r"['\"`](parley-[a-z]+)", text)) >= STORAGE


def test_a_store_of_the_first_version_opens(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "parley.db") as old:
        old.executescript(Path(__file__).with_name("old_parley_db.sql").read_text(encoding="utf-8"))
    old.close()
    with running("--data-dir", str(tmp_path)) as parley:
        targets = {each["name"]: each for each in parley.script("GET", "/")["targets"]}
    assert set(targets) == {"My server", "Over HTTP", None}
    mine = targets["My server"]
    assert (mine["transport"], mine["command"], mine["args"]) == ("stdio", "python3", ["server.py", "--verbose"])
    assert (mine["cwd"], mine["env"], mine["options"]["era"]) == ("/srv", ["MODE"], "legacy")
    assert targets["Over HTTP"]["missing"] == ["Authorization"]
    assert targets["Over HTTP"]["used_at"] == "2026-11-17T02:16:18.389Z"


def _exit(*arguments: str, **env: str) -> int:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PARLEY_")}
    ran = subprocess.run(
        [sys.executable, "-m", "app", *arguments],
        cwd=ROOT,
        env={**clean, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=60,
    )
    return ran.returncode


def test_exit_codes_mean_what_they_meant(tmp_path: Path) -> None:
    assert _exit("--version") == 0
    assert _exit("--no-such-option") == 2
    assert _exit("--no-open", "--host", "0.0.0.0") == 2
    assert _exit("--no-open", PARLEY_TOKEN="short") == 2
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert _exit("--no-open", "--port", str(taken.getsockname()[1]), "--data-dir", str(tmp_path)) == 1
    with running("--room", "127.0.0.1:0") as parley:
        parley.process.send_signal(signal.SIGINT)
        assert parley.process.wait(60) == 0


def test_shapes_tell_what_breaks_a_script() -> None:
    golden = merge(shape_of({"id": 1, "name": "x", "more": [{"a": None}]}), shape_of({"id": 2, "more": [{"a": "b"}]}))
    assert golden == {"id": "number", "name?": "string", "more": [{"a": "null|string"}]}
    assert differences(golden, shape_of({"id": 3, "more": []})) == []
    assert differences(golden, shape_of({"id": "3", "more": [{"a": 1}], "new": 1})) == [
        "/id: string is new",
        "/more[]/a: number is new",
        "/new: is new",
    ]
    assert differences(golden, shape_of({"more": []})) == ["/id: is gone"]
