"""`make conformance`: every client scenario that the public suite scores, in both revisions, one after the other.

A scenario holds when the suite is content (no failure, no warning, the client ended with 0) and has at least as many
checks that succeeded as it had when it was first seen to hold: some are content with a client that does nothing, and a
suite that stops checking something would go unnoticed. Serial, because in parallel the suite's own time limits fail on
a busy machine. What is known to fail stands in expected.toml, with a reason; an entry that holds is a failure too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests import peers

HERE = Path(__file__).parent
WANTED = {"2025-11-25": 18, "2026-07-28": 32}
"""How many scenarios each revision scores; fewer means that the suite has changed its list."""
SECONDS = 60
CONTENT = frozenset({"SUCCESS", "SKIPPED", "INFO"})


@dataclass(frozen=True)
class Outcome:
    """What became of one scenario."""

    name: str
    holds: bool
    checks: Counter[str]
    seconds: float
    words: str = ""


def expected() -> tuple[dict[str, dict[str, int]], dict[str, dict[str, str]]]:
    """How many checks succeed at least, and what fails for which reason, by revision and scenario."""
    found = tomllib.loads((HERE / "expected.toml").read_text(encoding="utf-8"))
    return found["checks"], found.get("failures", {})


def scored(revision: str) -> list[str]:
    """The client scenarios that a revision scores."""
    listed = _suite("list", "--client", "--requirements", revision).stdout
    _, _, clients = listed.partition("Client scenarios")
    block = clients.partition("\n\n")[0]
    return [line.strip().removeprefix("- ").split()[0] for line in block.splitlines() if line.strip().startswith("- ")]


def run(name: str, revision: str, folder: Path, **env: str) -> Outcome:
    """One scenario, with Parley as its client."""
    # The suite splits the command at blanks, and knows no quotes: a path without the way to here has the fewest.
    python = os.path.relpath(sys.executable, peers.ROOT)
    command = f"{python} -m tests.conformance.adapter"
    began = time.monotonic()
    ended = _suite(
        "client", "--command", command, "--scenario", name, "--spec-version", revision,
        "--timeout", str(SECONDS * 1000), "-o", str(folder), **env,
    )  # fmt: skip
    found = [one for path in folder.rglob("checks.json") for one in json.loads(path.read_text(encoding="utf-8"))]
    checks = Counter(str(one.get("status")) for one in found)
    wrong = [f"{one.get('id')}: {one.get('errorMessage') or one.get('description')}" for one in found
             if one.get("status") not in CONTENT]  # fmt: skip
    least = expected()[0].get(revision, {}).get(name, 1)
    if checks["SUCCESS"] < least:
        wrong.append(f"{checks['SUCCESS']} checks succeeded, and {least} did before")
    holds = ended.returncode == 0 and not wrong
    words = "" if holds else "\n".join(wrong) or (ended.stdout + ended.stderr)[-2000:]
    return Outcome(name, holds, checks, time.monotonic() - began, words)


def _suite(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*peers.conformance_suite(), *arguments],
        cwd=peers.ROOT,
        env={**os.environ, **peers.node_env(), **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=3 * SECONDS,
    )


def main() -> int:
    code = 0
    for revision, wanted in WANTED.items():
        names, failures = scored(revision), expected()[1].get(revision, {})
        outcomes: list[Outcome] = []
        for name in names:
            with tempfile.TemporaryDirectory(prefix="parley-conformance-") as folder:
                outcome = run(name, revision, Path(folder))
            outcomes.append(outcome)
            counted = ", ".join(f"{number} {word.lower()}" for word, number in sorted(outcome.checks.items()))
            known = name in failures
            state = "holds" if outcome.holds else "expected" if known else "FAILED"
            print(f"{revision}  {state:<8} {name:<42} {outcome.seconds:5.1f} s  {counted}", flush=True)
            for line in [failures[name]] if known else outcome.words.splitlines():
                print(f"            {line}")
            if outcome.holds is known:
                code = 1
                print("            It holds: take it out of expected.toml." if known else "", flush=True)
        held = sum(one.holds for one in outcomes)
        print(f"{revision}  {held} of {wanted} scored client scenarios hold.\n", flush=True)
        code = code or (0 if len(names) == wanted else 1)
    return code


if __name__ == "__main__":
    try:
        sys.exit(main())
    except peers.NotInstalled as missing:
        sys.exit(str(missing))
