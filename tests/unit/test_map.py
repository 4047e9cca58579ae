"""The maps are held to the code: every package is named, every path is there, every symbol too, no link is dead."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
APP = ROOT / "app"
MAP, TESTS = APP / "README.md", ROOT / "tests" / "README.md"
ELSEWHERE = ("templates/", "static/", "tests/", "CHANGELOG.md")
EXAMPLES = (
    "the countdown of an ask",
    "the sentence of a finding",
    "the size limit of a message",
    "how the form of a tool is drawn",
    "who may open a route",
    "the words at the head of the inbox",
    "what happens when a tab is parked",
)


def code(text: str) -> list[str]:
    """What stands between backticks in the running text."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


def path_of(name: str) -> Path | None:
    """The file or folder that a name stands for; None for what is no path."""
    file = name.partition(":")[0]
    if " " in file or not (file.endswith(("/", ".py", ".md", ".toml", ".js", ".html"))):
        return None
    return (ROOT if file.startswith(ELSEWHERE) else APP) / file


def has(file: Path, name: str) -> bool:
    """Whether a module has something of this name: a function, a class, a value, or a member of a class."""
    nodes: list[ast.stmt] = ast.parse(file.read_text(encoding="utf-8")).body
    for part in name.split("."):
        for node in nodes:
            names = {getattr(node, "name", None)}
            if isinstance(node, ast.AnnAssign):
                names.add(getattr(node.target, "id", None))
            elif isinstance(node, ast.Assign):
                names |= {getattr(target, "id", None) for target in node.targets}
            if part in names:
                nodes = getattr(node, "body", [])
                break
        else:
            return False
    return True


def packages() -> list[str]:
    found = (folder for folder in APP.rglob("*") if folder.is_dir() and any(folder.glob("*.py")))
    return sorted(f"{folder.relative_to(APP).as_posix()}/" for folder in found if folder.name != "versions")


@pytest.mark.parametrize("package", packages())
def test_the_map_names_every_package(package: str):
    assert any(name == package or name.startswith(package) for name in code(MAP.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", [MAP, TESTS, ROOT / "README.md"], ids=["app", "tests", "top"])
def test_no_link_is_dead(page: Path):
    text = page.read_text(encoding="utf-8")
    linked = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    assert [link for link in linked if link and not (page.parent / link).exists()] == []


def test_every_path_and_symbol_of_the_map_exists():
    named = [(name, path) for name in code(MAP.read_text(encoding="utf-8")) if (path := path_of(name)) is not None]
    assert len(named) > 60
    assert [name for name, path in named if not path.exists()] == []
    symbols = [(path, name.partition(":")[2]) for name, path in named if ":" in name]
    assert len(symbols) > 15
    assert [f"{path.name}:{name}" for path, name in symbols if not has(path, name)] == []


def test_every_file_of_the_walks_exists():
    walks = re.findall(r"```\n(.*?)```", MAP.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(walks) == 6
    files = [name for walk in walks for name in re.findall(r"^  ([a-z_]+/[\w/.]+)", walk, flags=re.MULTILINE)]
    assert len(files) > 15
    assert [name for name in files if not ((ROOT if name.startswith(ELSEWHERE) else APP) / name).exists()] == []


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_worked_example_names_symbols_that_exist(example: str):
    row = next(line for line in MAP.read_text(encoding="utf-8").splitlines() if line.startswith(f"| {example} |"))
    named = [(name, path) for name in code(row) if (path := path_of(name)) is not None]
    assert named
    for name, path in named:
        assert path.exists(), name
        assert not (symbol := name.partition(":")[2]) or has(path, symbol), name


def test_a_symbol_that_is_gone_is_noticed(tmp_path: Path):
    file = tmp_path / "one.py"
    file.write_text("class A:\n    b: int = 1\n\n    def c(self): ...\n\n\nd = 2\n", encoding="utf-8")
    assert [has(file, name) for name in ("A", "A.b", "A.c", "d", "A.d", "b", "e")] == [True] * 4 + [False] * 3


def test_the_map_of_the_tests_names_every_folder_of_tests():
    text = TESTS.read_text(encoding="utf-8")
    folders = {folder.name for folder in (ROOT / "tests").iterdir() if folder.is_dir() and any(folder.glob("*.py"))}
    named = {part for name in code(text) for part in re.split(r"[/, ]", name)}
    assert folders - named == set()
