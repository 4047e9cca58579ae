"""`parley auth URL` with a real process: the table, the JSON, and the exit codes."""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.drive import ROOT
from tests.drive_oauth import Harbour, protected

WAIT = 60


@pytest.fixture(scope="module")
def harbour() -> Iterator[Harbour]:
    with protected(jwt=True) as running:
        yield running


def auth(*arguments: str, harbour: Harbour | None = None, **env: str) -> tuple[int, str, str]:
    """Exit code, what it printed, and what it complained of; the person agrees when there is somebody to ask."""
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("PARLEY_", "DISPLAY", "WAYLAND"))
    }
    command = [sys.executable, "-m", "app", "auth", *arguments]
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, env={**clean, **env}, text=True, **pipes) as process:
        assert process.stdout is not None and process.stderr is not None
        said = ""
        if harbour is not None:
            for line in process.stderr if "--json" in arguments else process.stdout:
                said += line
                if line.startswith("  http"):
                    back = harbour.allow(line.strip())
                    wrong = back.replace("state=", "state=x")
                    with pytest.raises(urllib.error.HTTPError), urllib.request.urlopen(wrong, timeout=WAIT):
                        pass
                    with urllib.request.urlopen(back, timeout=WAIT) as page:
                        assert b"close this window" in page.read()
                    break
        out, err = process.communicate(timeout=WAIT)
        return process.returncode, (said if "--json" not in arguments else "") + out, err


def test_the_steps_are_printed_and_no_token(harbour: Harbour):
    code, out, _ = auth(harbour.resource, harbour=harbour)
    assert code == 0 and f"Signed in to {harbour.resource} at {harbour.issuer}" in out
    names = ["Challenge", "Protected resource metadata", "Authorization server metadata", "Client registration",
             "Authorization request", "Authorization response", "Token request"]  # fmt: skip
    assert [name for name in names if f"ok       {name} " in out] == names and 'sub: "ada"' in out
    assert not [secret for secret in harbour.secrets if secret in out]


def test_as_json_it_is_what_a_session_says(harbour: Harbour):
    code, out, _ = auth(harbour.resource, "--json", "--scope", "boat:write", harbour=harbour)
    told = json.loads(out)
    assert code == 0 and told["state"] == "signed_in" and told["scopes"] == ["boat:write"]
    assert [step["state"] for step in told["steps"]] == ["done"] * 7
    assert not [secret for secret in harbour.secrets if secret in out]


def test_a_no_is_1_a_machine_that_is_not_there_3_and_a_wrong_line_2(harbour: Harbour):
    harbour.set(fault="no PKCE")
    code, out, _ = auth(harbour.resource)
    assert code == 1 and "PKCE (S256)" in out and "FAILED   Authorization request" in out
    harbour.set(fault=None)
    code, out, _ = auth("--json", "--wait", "0.2", harbour.resource)
    assert code == 1 and json.loads(out)["failure"]["code"] == "no-answer"
    code, out, _ = auth(harbour.issuers["closed"] + "/mcp")
    assert code == 3 and "cannot be reached" in out
    harbour.set(open=["initialize"])
    code, out, _ = auth(harbour.resource)
    assert code == 0 and "nothing to sign in to" in out
    for line in (["demo"], ["nonsense"], [], [harbour.resource, "--no-such"], [harbour.resource, "--wait", "x"]):
        code, _, err = auth(*line)
        assert code == 2 and err.startswith("parley: ") and err.count("\n") == 1, line
        assert line[:1] not in (["demo"], ["nonsense"]) or "like: parley auth https://" in err, err
    code, _, err = auth(harbour.resource, PARLEY_CLIENT_SECRET="can4ry")
    assert code == 2 and "--client-id" in err and "can4ry" not in err
