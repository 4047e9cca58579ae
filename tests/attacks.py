"""`make attacks`: every attack and every odd server that Parley promises to withstand, as one table.

The rows are those of requirements.toml whose ids begin with S (promises of safety), H and M (what an attack found,
serious and minor) and B (what servers found that nobody here wrote); the tests that carry an id show its row. Fails
when a test fails, and when a row has no test that ran.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
ROW = re.compile(r"[SHMB][0-9]{2}")


def ids_of(item: pytest.Item) -> set[str]:
    """The rows that a test shows."""
    return {each for mark in item.iter_markers("requirement") for each in mark.args if ROW.fullmatch(each)}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep only the tests that show a row; each says which, also from another process."""
    kept = [item for item in items if ids_of(item)]
    for item in kept:
        item.user_properties.append(("rows", sorted(ids_of(item))))
    config.hook.pytest_deselected(items=[item for item in items if not ids_of(item)])
    items[:] = kept


class Rows:
    """Counts the outcomes of the tests by row."""

    def __init__(self, wanted: set[str]) -> None:
        self.outcomes: dict[str, Counter[str]] = {each: Counter() for each in wanted}
        self.failures: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.failed or report.skipped:
            if report.failed:
                self.failures.append(report.nodeid)
            shown = next((value for name, value in report.user_properties if name == "rows"), None)
            for each in shown if isinstance(shown, list) else ():
                if each in self.outcomes:
                    self.outcomes[each][report.outcome] += 1


def table(sentences: dict[str, str], outcomes: dict[str, Counter[str]]) -> str:
    """One line a row: its id, whether it holds, how many tests show it, and what it promises."""
    lines = []
    for each in sorted(sentences, key=lambda one: ("SHMB".index(one[0]), one)):
        counted = outcomes[each]
        state = "FAILED" if counted["failed"] else "holds" if counted["passed"] else "NO TEST"
        sentence = sentences[each]
        short = sentence if len(sentence) <= 100 else sentence[:99] + "…"
        lines.append(f"{each}  {state:<8} {sum(counted.values()):>4}  {short}")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    claimed = tomllib.loads((TESTS / "requirements.toml").read_text(encoding="utf-8"))["claimed"]
    sentences = {each: text for each, text in claimed.items() if ROW.fullmatch(each)}
    runs, code = [], 0
    # Two runs, as in `make test`: Playwright holds an event loop in its process.
    for where in (["tests", "--ignore=tests/browser", "--ignore=tests/old_peers"], ["tests/browser"]):
        rows = Rows(set(sentences))
        shared = ["-q", "-p", "tests.attacks", "-n", "3" if "tests" in where else "2", "--dist", "worksteal"]
        ended = pytest.main([*where, *shared, *arguments], plugins=[rows])
        code = code or (0 if ended == pytest.ExitCode.NO_TESTS_COLLECTED else int(ended))
        runs.append(rows)
    outcomes = {each: sum((run.outcomes[each] for run in runs), Counter()) for each in sentences}
    print(f"\n{table(sentences, outcomes)}\n")
    for failure in [one for run in runs for one in run.failures]:
        print(f"failed: {failure}")
    held = sum(bool(one["passed"]) and not one["failed"] for one in outcomes.values())
    print(f"{held} of {len(sentences)} rows hold.")
    return code or (0 if held == len(sentences) else 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
