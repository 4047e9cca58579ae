"""A finding leads to the section of the specification that it speaks of, and to the same one as the manifest does."""

import re
import tomllib
from pathlib import Path

import pytest

from app.core.rules.catalogue import entries
from app.core.rules.spec import SECTIONS, section

ROOT = Path(__file__).parents[2]
CLAIMED = tomllib.loads((ROOT / "tests" / "requirements.toml").read_text(encoding="utf-8"))["claimed"]
RULE = re.compile(r"[\"'](R\d-\d\d)[\"']")
"""A rule in the source: where a finding's rule is no text of the catalogue, its caller writes it."""
CODE = [*(ROOT / "app").rglob("*.py"), *(ROOT / "templates").rglob("*.html")]


def named() -> set[str]:
    """Every rule of the protocol that code names."""
    found = {rule for file in CODE if file.name != "spec.py" for rule in RULE.findall(file.read_text(encoding="utf-8"))}
    return found | {one.rule for one in entries().values() if one.rule.startswith("R")}


@pytest.mark.requirement("U-P19")
def test_every_rule_that_a_finding_names_has_its_section_and_no_other_has_one():
    assert sorted(SECTIONS) == sorted(named())


@pytest.mark.parametrize("rule", sorted(SECTIONS))
@pytest.mark.requirement("U-P19")
def test_the_section_is_the_one_of_the_manifest(rule: str):
    found = section(rule)
    assert found is not None
    if rule in CLAIMED:
        assert found.url == CLAIMED[rule][1]
    assert found.url.startswith(("https://modelcontextprotocol.io/", "https://github.com/modelcontextprotocol/"))
    assert found.words
    assert found.words == found.words.strip()


def test_the_words_are_those_of_page_and_section():
    found = section("R5-40")
    assert found is not None
    assert found.words == "transports, stdio"
    assert section("H08") is None, "what is our own remark leads nowhere"
