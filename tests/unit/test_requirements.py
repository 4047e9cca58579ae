"""The manifest (tests/requirements.toml) and the tests agree, both ways.

Every requirement we claim has a test that carries its id, and every id that a test carries is one we claim, so a
reader can go from a row of the design to the test that shows it, and back.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
MANIFEST = tomllib.loads((TESTS / "requirements.toml").read_text())
ALL: dict[str, str | list[str]] = MANIFEST["claimed"] | MANIFEST["vacuous"]
SPECIFICATION = "https://modelcontextprotocol.io/specification/"
EXTENSION = "https://github.com/modelcontextprotocol/ext-tasks/blob/main/specification/2026-07-28/tasks.md"
GUIDE = "https://modelcontextprotocol.io/docs/2026-07-28/tutorials/security/security_best_practices"
LINK = re.compile(
    rf"({SPECIFICATION}(2025-11-25|2026-07-28)(/[a-z_-]+)+|{GUIDE}|{EXTENSION})(#[a-z0-9]+(-[a-z0-9]+)*)?".replace(
        ".", r"\."
    )
)
ELSEWHERE = re.compile(r"…$|\b(R[1-7]-[0-9]{2}|S00[0-4]|(SC|N?FR|[UI]T)-[0-9]+|D[0-9]{1,2})\b|DECIDE|PEER|\bseed")
ID = re.compile(r"(R[1-7]-[0-9]{2}|[SFHMBT][0-9]{2}|U-[CSMP][0-9]{1,2}|SC-[0-9]+|N?FR-[0-9]+|[UI]T-[0-9]+|S00[0-4] .+)")


def carried(path: Path) -> Iterator[tuple[str, int]]:
    """The ids in every `pytest.mark.requirement(...)` of a file, with their lines."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requirement":
            for argument in node.args:
                assert isinstance(argument, ast.Constant), f"{path.name}:{node.lineno}: write ids as plain texts"
                assert isinstance(argument.value, str)
                yield argument.value, node.lineno


def all_carried() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        if "node_modules" not in path.parts:
            for requirement, line in carried(path):
                found.setdefault(requirement, []).append(f"{path.relative_to(TESTS)}:{line}")
    return found


def test_every_claimed_requirement_has_a_test() -> None:
    tested = all_carried()
    assert [each for each in MANIFEST["claimed"] if each not in tested] == []


def test_every_id_that_a_test_carries_is_claimed() -> None:
    claimed = MANIFEST["claimed"]
    assert {each: where for each, where in all_carried().items() if each not in claimed} == {}


def test_what_is_vacuous_is_not_claimed_and_carried_by_no_test() -> None:
    assert not MANIFEST["vacuous"].keys() & (MANIFEST["claimed"].keys() | all_carried().keys())


def test_parley_reports_no_progress_of_its_own() -> None:
    """Why R1-73 and R1-74 are vacuous: nothing in Parley sends `notifications/progress`."""
    senders = []
    for path in (TESTS.parent / "app").rglob("*.py"):
        if "demo" in path.parts or "web" in path.parts:  # the demo is a server, a page only names it
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                texts = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
                senders += [f"{path.name}:{node.lineno}" for text in texts if text == "notifications/progress"]
    assert senders == []


def test_ids_are_well_formed() -> None:
    assert [each for each in ALL if not ID.fullmatch(each)] == []


def test_each_requirement_says_what_it_means() -> None:
    """A whole sentence that can be read alone: not cut off, not by pointing to another id or to a note elsewhere."""
    for requirement, said in ALL.items():
        sentence = said if isinstance(said, str) else said[0]
        assert len(sentence) > 20 and sentence.endswith(".") and not sentence.endswith(".."), requirement
        assert ELSEWHERE.search(sentence) is None, f"{requirement}: {sentence}"


def test_requirements_of_the_protocol_lead_to_its_specification_and_others_nowhere() -> None:
    """R1 to R3 are about 2025-11-25, R6 is about 2026-07-28, R7 about the extension; R4 and R5 are about both."""
    old, new = f"{SPECIFICATION}2025-11-25/", f"{SPECIFICATION}2026-07-28/"
    homes = {"R1": old, "R2": old, "R3": old, "R4": "", "R5": "", "R6": new, "R7": EXTENSION}
    for requirement, said in ALL.items():
        if requirement[:2] in homes:
            assert isinstance(said, list) and len(said) == 2, f"{requirement}: a sentence and a link"
            assert LINK.fullmatch(said[1]), f"{requirement}: {said[1]}"
            assert said[1].startswith(homes[requirement[:2]]), f"{requirement}: {said[1]}"
        else:
            assert isinstance(said, str), f"{requirement}: a link is for what the protocol asks"


def test_no_test_is_skipped_in_silence() -> None:
    """A missing peer or browser is a failure with a sentence, never a skip. What one system alone has may be left out
    on others, with the reason."""
    for path in TESTS.rglob("test_*.py"):
        if "node_modules" in path.parts or path == Path(__file__):
            continue
        text = path.read_text().replace('mark.skipif(sys.platform != "linux", reason=', "")
        for word in ("pytest.skip(", "mark.skip", "importorskip", "mark.xfail"):
            assert word not in text, f"{path.relative_to(TESTS)} uses {word}"
