"""Eight scenarios of the public conformance suite, one of each kind; `make conformance` runs them all."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.__main__ import WANTED, expected, run
from tests.conformance.adapter import parley

pytestmark = [pytest.mark.peers, pytest.mark.usefixtures("processes")]
SOME = [
    ("2025-11-25", "initialize"),
    ("2025-11-25", "tools_call"),
    ("2025-11-25", "elicitation-sep1034-client-defaults"),
    ("2025-11-25", "sse-retry"),
    ("2025-11-25", "auth/metadata-default"),
    ("2026-07-28", "auth/scope-step-up"),
    ("2026-07-28", "auth/iss-supported"),
    ("2026-07-28", "request-metadata"),
]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """One Parley for all of them: it is most of the time that a scenario takes."""
    with parley() as client:
        yield str(client.base_url)


@pytest.mark.requirement("R5-51", "R5-60", "R5-63")
@pytest.mark.parametrize(("revision", "name"), SOME)
def test_a_scenario_of_the_public_suite_holds(revision: str, name: str, address: str, tmp_path: Path):
    outcome = run(name, revision, tmp_path / "first", CONFORMANCE_PARLEY=address)
    if not outcome.holds:  # the suite has time limits of its own, and other tests run beside this one
        outcome = run(name, revision, tmp_path / "second", CONFORMANCE_PARLEY=address)
    assert outcome.holds, outcome.words


def test_what_every_scored_scenario_has_to_show_is_written_down():
    checks, failures = expected()
    for revision, number in WANTED.items():
        assert len(checks[revision]) == number and all(least > 0 for least in checks[revision].values())
        assert failures.get(revision, {}).keys() <= checks[revision].keys()
        assert all(reason.strip() for reason in failures.get(revision, {}).values())
