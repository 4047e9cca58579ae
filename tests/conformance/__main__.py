"""`make conformance`: the scored client scenarios of the public suite that need no OAuth, one after the other.

The suite says which scenarios a revision scores; those below `auth/` wait for OAuth. A scenario holds when the suite is
content (no failure, no warning, the client ended with 0) and has at least one check that succeeded: some are content
with a client that does nothing. Serial, because in parallel the suite's own time limits fail on a busy machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests import peers

WANTED = {"2025-11-25": 4, "2026-07-28": 7}
"""How many scenarios each revision scores without OAuth; fewer means that the suite has changed its list."""
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


def scored(revision: str) -> list[str]:
    """The client scenarios that a revision scores, without those of OAuth."""
    listed = _suite("list", "--client", "--requirements", revision).stdout
    _, _, clients = listed.partition("Client scenarios")
    block = clients.partition("\n\n")[0]
    names = [line.strip().removeprefix("- ").split()[0] for line in block.splitlines() if line.strip().startswith("- ")]
    return [name for name in names if not name.startswith("auth/")]


def run(name: str, revision: str, folder: Path) -> Outcome:
    """One scenario, with Parley as its client."""
    # The suite splits the command at blanks, and knows no quotes: a path without the way to here has the fewest.
    python = os.path.relpath(sys.executable, peers.ROOT)
    command = f"{python} -m tests.conformance.adapter"
    began = time.monotonic()
    ended = _suite(
        "client", "--command", command, "--scenario", name, "--spec-version", revision,
        "--timeout", str(SECONDS * 1000), "-o", str(folder),
    )  # fmt: skip
    found = [one for path in folder.rglob("checks.json") for one in json.loads(path.read_text(encoding="utf-8"))]
    checks = Counter(str(one.get("status")) for one in found)
    wrong = [f"{one.get('id')}: {one.get('errorMessage') or one.get('description')}" for one in found
             if one.get("status") not in CONTENT]  # fmt: skip
    holds = ended.returncode == 0 and checks["SUCCESS"] > 0 and not wrong
    words = "" if holds else "\n".join(wrong) or (ended.stdout + ended.stderr)[-2000:]
    return Outcome(name, holds, checks, time.monotonic() - began, words)


def _suite(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*peers.conformance_suite(), *arguments],
        cwd=peers.ROOT,
        env={**os.environ, **peers.node_env()},
        capture_output=True,
        text=True,
        check=False,
        timeout=3 * SECONDS,
    )


def main() -> int:
    code = 0
    for revision, wanted in WANTED.items():
        names = scored(revision)
        outcomes: list[Outcome] = []
        for name in names:
            with tempfile.TemporaryDirectory(prefix="parley-conformance-") as folder:
                outcome = run(name, revision, Path(folder))
            outcomes.append(outcome)
            counted = ", ".join(f"{number} {word.lower()}" for word, number in sorted(outcome.checks.items()))
            state = "holds" if outcome.holds else "FAILED"
            print(f"{revision}  {state:<7} {name:<38} {outcome.seconds:5.1f} s  {counted}", flush=True)
            for line in outcome.words.splitlines():
                print(f"            {line}")
        held = sum(one.holds for one in outcomes)
        print(f"{revision}  {held} of {wanted} scored client scenarios without OAuth hold.\n", flush=True)
        code = code or (0 if held == len(names) == wanted else 1)
    return code


if __name__ == "__main__":
    try:
        sys.exit(main())
    except peers.NotInstalled as missing:
        sys.exit(str(missing))
