"""The catalogue of findings and the code that raises them agree, both ways."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest

from app.core.rules import catalogue
from app.core.rules.catalogue import Entry
from app.core.wire import Finding

ROOT = Path(__file__).parents[2]
MODULES = {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in sorted((ROOT / "app").rglob("*.py"))}
CATALOGUE = "app/core/rules/catalogue.py"
ENTRIES = catalogue.entries()


def places(entry: Entry) -> Iterator[tuple[str, str, str | None]]:
    """What is to be filled in an entry: its name, how it is written, and how it is made a text first."""
    for text in (entry.rule, entry.text, entry.advice):
        for _, name, written, made in Formatter().parse(text):
            if name is not None:
                yield name, written or "", made


def wrong_calls(tree: ast.AST) -> Iterator[str]:
    """What is wrong with how a module uses the catalogue."""
    called = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "app.core.rules.catalogue":
            yield f"line {node.lineno} imports entries; import the catalogue"
        if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "catalogue"):
            continue
        entry, call = ENTRIES.get(node.attr), called.get(id(node))
        if entry is None:
            yield f"line {node.lineno}: there is no entry {node.attr}"
        elif call is None or call.args:
            yield f"line {node.lineno}: {node.attr} is called at once, with names"
        elif {each.arg for each in call.keywords} - {"pointer"} != {name for name, _, _ in places(entry)}:
            yield f"line {node.lineno}: the call does not fill {node.attr}"


def names_used(tree: ast.AST) -> set[str]:
    found = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name))
    return {node.attr for node in found if isinstance(node.value, ast.Name) and node.value.id == "catalogue"}


def knows_it(tree: ast.AST) -> bool:
    """Whether a module has this catalogue: that of a team's servers goes by the same word."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return any((node.module or "").startswith("app.core.rules") for node in imports)


def test_every_call_names_an_entry_and_fills_it():
    known = {path: tree for path, tree in MODULES.items() if knows_it(tree)}
    assert len(known) > 10
    assert [f"{path}, {wrong}" for path, tree in known.items() for wrong in wrong_calls(tree)] == []


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("catalogue.late_reply(fate='lost')", []),
        ("catalogue.lte_reply(fate='lost')", ["line 1: there is no entry lte_reply"]),
        ("catalogue.late_reply()", ["line 1: the call does not fill late_reply"]),
        ("catalogue.late_reply(fate='lost', more=1)", ["line 1: the call does not fill late_reply"]),
        ("catalogue.late_reply(**values)", ["line 1: the call does not fill late_reply"]),
        ("catalogue.late_reply('lost')", ["line 1: late_reply is called at once, with names"]),
        ("said = catalogue.late_reply", ["line 1: late_reply is called at once, with names"]),
        (
            "from app.core.rules.catalogue import late_reply",
            ["line 1 imports entries; import the catalogue"],
        ),
    ],
)
def test_a_wrong_call_is_seen(source: str, wrong: list[str]):
    assert list(wrong_calls(ast.parse(source))) == wrong


def test_every_entry_is_used():
    assert ENTRIES.keys() - {name for tree in MODULES.values() for name in names_used(tree)} == set()


def test_a_finding_is_made_in_the_catalogue_alone():
    made = [
        f"{path}:{node.lineno}"
        for path, tree in MODULES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding"
    ]
    assert made and {each.split(":")[0] for each in made} == {CATALOGUE}


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_reads_well(name: str):
    entry = ENTRIES[name]
    for place, written, made in places(entry):
        assert place.isidentifier(), "a name, and nothing that is taken out of it"
        assert made == "s" or made == "r" or not written.startswith("."), "what is no text cannot be cut: write !s"
    for sentence in (entry.text, entry.advice):
        assert sentence == "" or sentence.endswith((".", "}")), sentence
    assert entry.text


def test_every_entry_speaks_of_a_requirement_that_we_know():
    manifest = tomllib.loads((ROOT / "tests" / "requirements.toml").read_text())
    known = {requirement for section in manifest.values() for requirement in section}
    assert {entry.rule for entry in ENTRIES.values()} - known == {"{rule}"}


def test_what_a_server_says_is_never_taken_for_a_place_to_fill():
    found = catalogue.unknown_reply(rpc_id='"{rpc_id} {0} {' + "x" * 100)
    assert found == Finding(
        "R5-01", "must", f'No request of ours has the id "{{rpc_id}} {{0}} {{{"x" * 45}.', "It was ignored."
    )
