"""A run of pytest whose failures get a second look: `python -m tests.again [arguments of pytest]`.

On a crowded machine a test that waits for a real process or a browser fails now and then, and one such test of ten
thousand must not cost a whole day's work. So what failed, if it is little, runs once more, alone. What fails then too
is a failure; what passes is named at the end as shaky, and is a fault to mend: of the test or, as often, of Parley.
Nothing but passing counts: what is skipped then, or not found any more, stays a failure, and a run that stopped at its
first failure has not seen the rest. To know that, pytest loads this file as a plugin too.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

MOST = 5
"""Failures that get a second look. More are no accident."""
PASSED, WHOLE = "again/passed", "again/whole"
"""Names in the cache of a run: what passed, and something when it was not stopped."""
FAILED = 1
"""What pytest ends with when tests failed; anything else is not about tests."""


def run(arguments: Sequence[str]) -> int:
    """What pytest ends with; 0 also when all that failed passes alone, which is then said."""
    with tempfile.TemporaryDirectory(prefix="parley-again-") as folder:
        command = [sys.executable, "-m", "pytest", "-p", "tests.again", "-o", f"cache_dir={folder}"]
        code = subprocess.run([*command, *arguments], check=False).returncode
        failed, whole = _left(folder, "cache/lastfailed"), _left(folder, WHOLE)
        if code != FAILED or not whole or not 0 < len(failed) <= MOST:
            return code
        print(f"\nOnce more, alone: {len(failed)} that failed", flush=True)
        code = subprocess.run([*command, *arguments, "-n", "0", "--last-failed"], check=False).returncode
        missing = sorted(set(failed) - set(_left(folder, PASSED)))
    if code == 0 and missing:
        print("\nFailed, and did not pass alone: skipped, or not found again:", *missing, sep="\n  ")
        return FAILED
    if code == 0:
        print("\nSHAKY: failed beside other tests and passed alone. Each is a fault to mend:", *failed, sep="\n  ")
    return code


def _left(folder: str, name: str) -> list[str]:
    """What a run has left in its cache."""
    try:
        return sorted(json.loads((Path(folder) / "v" / name).read_text()))
    except OSError:
        return []


# ---- inside of pytest, in the process that has the whole run

_passed: list[str] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" and report.passed:
        _passed.append(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    cache = getattr(session.config, "cache", None)
    if cache is not None and not hasattr(session.config, "workerinput"):
        cache.set(PASSED, _passed)
        cache.set(WHOLE, [] if session.shouldfail or session.shouldstop else ["whole"])


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
