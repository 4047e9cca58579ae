"""The files of the page itself: small where a page names them, as they lie here where a person asks for them."""

import gzip
import itertools
import re
from pathlib import Path

import pytest

from app.sessions import Session
from app.web.door.files import bare, is_module, whole
from app.web.door.modules import bundles
from app.web.kit.html import asset
from tests.web.asgi import Answer, Visitor

STATIC = Path(__file__).parents[3] / "static"
OURS = sorted(path for kind in ("*.js", "*.css") for path in STATIC.rglob(kind) if "vendor" not in path.parts)
BUNDLES = bundles(STATIC / "js")
PACKED = [file for file in OURS if not is_module(file) or file.stem in BUNDLES]
SCRIPTS, STYLES = [file for file in OURS if file.suffix == ".js"], [file for file in OURS if file.suffix == ".css"]
ARMOUR = ("content-security-policy", "referrer-policy", "cross-origin-opener-policy")


def named(file: Path) -> str:
    """A file below `static/`."""
    return file.relative_to(STATIC).as_posix()


def source(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def names(answer: Answer) -> set[str]:
    return {name for name, _ in answer.headers}


@pytest.mark.parametrize("file", PACKED, ids=named)
async def test_what_a_page_names_comes_without_what_is_for_people(file: Path, stranger: Visitor):
    written = source(file)
    packed = await stranger.get(asset(named(file)))
    assert packed.status == 200
    begins = [line[:2] for line in packed.text.split("\n")]
    assert not {"//", "/*", "  "} & set(begins)
    if file.suffix == ".js":
        assert len(begins) == whole(file).count("\n") + 1, "a line is as far from the begin of its module as here"
    assert (await stranger.get(f"/static/{named(file)}")).text == written


@pytest.mark.parametrize("file", [file for file in OURS if file not in PACKED], ids=named)
async def test_a_module_that_comes_with_another_one_does_not_come_alone(file: Path, stranger: Visitor):
    """It would run a second time."""
    assert (await stranger.get(asset(named(file)))).status == 404
    assert (await stranger.get(f"/static/{named(file)}")).text == source(file)


async def test_a_style_brings_along_what_it_imports(stranger: Visitor):
    """What a browser would fetch by `@import`, had it the files as they lie: each once, in its layer, in this order."""
    brought = []
    for style in (named(file) for file in STYLES if file.parent == STATIC):
        imported = re.findall(r'^@import "(.+)" layer\((.+)\);$', source(STATIC / style), re.MULTILINE)
        packed = await stranger.get(asset(style))
        assert "@import" not in packed.text
        at = [
            packed.text.index(bare(f"@layer {layer} {{\n{source(STATIC / path)}}}", is_script=False))
            for path, layer in imported
        ]
        assert at == sorted(at)
        brought += [path for path, _ in imported]
    assert sorted(brought) == [named(file) for file in STYLES if file.parent.name == "css"]


def test_what_is_bare_has_lost_comments_and_indentation_and_nothing_else():
    script = (
        "// one\n/** two */\nconst a = () => {\n  // three\n  return 'x // y' + b; // four\n};\n/* 5\n   6 */ a();\n"
    )
    wanted = "\n\nconst a = () => {\n\nreturn 'x // y' + b; // four\n};\n\na();\n"
    assert bare(script, is_script=True) == wanted
    assert bare("a {\n  /* b\n   * c\n   */\n  d: e;\n}\n", is_script=False) == "a{d:e;}"
    assert bare("a,\nb:hover {\n  c:\n    'd  e'\n    1;\n}\n", is_script=False) == "a,b:hover{c:\n'd  e'\n1;}"
    assert bare("//example\n", is_script=False) == "//example\n", "no comment in a style"


@pytest.mark.parametrize("file", SCRIPTS, ids=named)
def test_no_text_of_a_script_goes_over_several_lines(file: Path):
    """Else a line of such a text could be taken for a comment, or for indented."""
    for line in bare(source(file), is_script=True).split("\n"):
        assert line.count("`") % 2 == 0, line
        assert not line.endswith("\\"), line


@pytest.mark.parametrize("file", STYLES, ids=named)
def test_a_text_of_a_style_goes_on_at_the_begin_of_its_line(file: Path):
    lines = source(file).split("\n")
    for before, line in itertools.pairwise(lines):
        assert not before.endswith("\\") or not line.startswith((" ", "/*")), line


@pytest.mark.parametrize("path", ["vendor/htmx-4.0.0.min.js", "vendor/hx-sse-4.0.0.min.js"])
async def test_what_others_wrote_comes_as_they_published_it(path: str, stranger: Visitor):
    assert (await stranger.get(asset(path))).text == source(STATIC / path)


async def test_it_is_compressed_for_who_can_read_that(stranger: Visitor):
    plain = await stranger.get(asset("app.css"))
    small = await stranger.get(asset("app.css"), accept_encoding="gzip, br")
    assert plain.header("content-encoding") is None
    assert small.header("content-encoding") == "gzip"
    assert gzip.decompress(small.body) == plain.body
    assert plain.header("vary") == small.header("vary") == "Accept-Encoding"
    assert small.header("content-length") == str(len(small.body))


async def test_who_has_it_already_gets_nothing(stranger: Visitor):
    tag = (await stranger.get(asset("js/page.js"))).header("etag")
    again = await stranger.get(asset("js/page.js"), if_none_match=tag)
    assert (again.status, again.body) == (304, b"")
    assert again.header("cache-control") == "public, max-age=31536000, immutable"
    assert (await stranger.get(asset("js/page.js"), if_none_match='"another"')).status == 200


@pytest.mark.parametrize("path", ["app.css", "theme.js", "js/page.js", "vendor/htmx-4.0.0.min.js"])
@pytest.mark.requirement("S34")
async def test_a_part_of_a_page_carries_only_what_counts_for_it(path: str, stranger: Visitor):
    answer = await stranger.get(asset(path))
    assert answer.status == 200
    assert answer.header("x-content-type-options") == "nosniff"
    assert answer.header("cross-origin-resource-policy") == "same-origin"
    assert answer.header("cache-control") == "public, max-age=31536000, immutable"
    assert (answer.header("content-type") or "").startswith(("text/javascript;", "text/css;"))
    assert not names(answer) & set(ARMOUR)


@pytest.mark.parametrize(
    "path",
    [
        "icons.svg?v=1",
        "favicon.svg?v=1",
        "vendor/LICENSE-htmx.txt?v=1",
        "app.css",
        "js/page.js",
        "nothing.js?v=1",
        "js-00000000/nothing.js",
        "js-00000000/../icons.svg",
        "js-00000000/../../pyproject.toml",
        "js-00000000/../../app/web/app.py?v=1",
    ],
)
@pytest.mark.requirement("S34")
async def test_everything_else_keeps_its_armour(path: str, stranger: Visitor):
    """A picture is a document where it is opened alone, and so is a refusal."""
    answer = await stranger.get(f"/static/{path}")
    assert set(ARMOUR) <= names(answer), answer.status


async def test_a_page_names_every_module_it_needs(client: Visitor, stranger: Visitor, victim: Session):
    """Then they are fetched in one round, not one round for each import of an import."""
    for path in ("/", f"/s/{victim.id}/log"):
        page = await client.get(path)
        named_here = set(re.findall(r'"(/static/js-[0-9a-f]{8}/[a-z]+\.js)"', page.text))
        assert named_here
        needed = set(named_here)
        for address in named_here:
            script = (await stranger.get(address)).text
            folder = address.rpartition("/")[0]
            needed |= {
                f"{folder}/{name}" for name in re.findall(r"^import .*'\./([a-z]+\.js)';$", script, re.MULTILINE)
            }
        assert needed == named_here, path


@pytest.mark.parametrize(
    ("path", "most_files", "most_bytes"), [("/", 7, 39_000), ("/s/{sid}", 9, 60_000), ("/s/{sid}/log", 9, 58_000)]
)
async def test_a_page_is_light(
    path: str, most_files: int, most_bytes: int, client: Visitor, stranger: Visitor, victim: Session
):
    """What it makes a browser fetch the first time, with the headers; README says as much."""
    address = path.replace("{sid}", victim.id)
    page = (await client.get(address)).text
    files = {found.partition("#")[0] for found in re.findall(r'(?:href|src)="(/static/[^"]+)"', page)}
    answers = [await stranger.get(file, accept_encoding="gzip") for file in files]
    answers.append(await client.get(address, accept_encoding="gzip"))
    weight = sum(len(f"{name}: {value}\r\n") for answer in answers for name, value in answer.headers)
    assert len(files) <= most_files, sorted(files)
    assert weight + sum(len(answer.body) for answer in answers) < most_bytes
