"""What is always needed together comes as one file, and means the same as the modules that it was made of."""

import re
import subprocess
from pathlib import Path

import pytest

from app.web.door.modules import ALWAYS, bundled, bundles, needed
from tests import peers

SCRIPTS = Path(__file__).parents[3] / "static" / "js"
FILES = {
    "page": "import { twice } from './sums.js';\n\nsay('page');\nexport const $ = (text) => `${twice(2)} ${text}`;\n",
    "sums": "say('sums');\nconst by = 2;\nexport const twice = (n) => n * by;\nexport class Sum {\n  by = by;\n}\n",
    "session": "import { $ } from './page.js';\nimport { marks as many, one } from './marks.js';\n"
    "import './side.js';\n\n"
    "const by = 'session';\nsay(by, $('a'), many, one());\n"
    "setTimeout(() => import('./later.js').then(({ late }) => late()));\n",
    "marks": "export const marks = 3;\nexport const one = () => marks - 2;\nsay('marks');\n",
    "side": "import {\n  Sum,\n} from './sums.js';\n\nconst by = 'side';\nsay(by, new Sum().by);\n",
    "other": "import { one } from './marks.js';\n\nsay('other', one());\n",
    "later": "import './session.js';\nimport { one } from './marks.js';\n\n"
    "say('later');\nexport const late = () => say('late', one());\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    written = tmp_path / "written"
    written.mkdir()
    for name, text in FILES.items():
        (written / f"{name}.js").write_text(text)
    return written


def run(folder: Path, *names: str) -> list[str]:
    """What modules say, run one after the other in one Node."""
    (folder / "package.json").write_text('{"type": "module"}')
    imports = "".join(f"await import('./{name}.js');" for name in names)
    (folder / "main.mjs").write_text(f"globalThis.say = (...all) => console.log(...all);\n{imports}\n")
    done = subprocess.run([peers.node(), "main.mjs"], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_a_bundle_has_what_nobody_else_needs(folder: Path):
    found = {name: (set(each.modules), set(each.needs)) for name, each in bundles(folder).items()}
    assert found == {
        "page": ({"page", "sums"}, set()),
        "session": ({"session", "side"}, {"page", "marks"}),
        "marks": ({"marks"}, set()),
        "other": ({"other"}, {"marks"}),
        "later": ({"later"}, {"session", "marks"}),
    }
    assert needed(folder, "later")[-1] == "later"
    assert set(needed(folder, "later")) == {"later", "session", "page", "marks"}


def test_bundles_do_what_the_modules_do(folder: Path, tmp_path: Path):
    """Each runs once, names do not meet, and what is exported arrives, under another name and by `import()` too."""
    packed = tmp_path / "packed"
    packed.mkdir()
    for name in bundles(folder):
        (packed / f"{name}.js").write_text(bundled(folder, name))
    said = run(packed, "session", "other")
    assert sorted(said) == sorted(run(folder, "session", "other"))
    assert "session 4 a 3 1" in said
    assert said[-1] == "late 1"
    assert said.index("sums") < said.index("page") < said.index("session 4 a 3 1")


@pytest.mark.parametrize(
    "text",
    [
        "export let a = 1;\n",
        "export default 1;\n",
        "import * as a from './page.js';\n",
        "import a from './page.js';\n",
        "await 1;\n",
        "const a = 1;\nexport { a };\n",
    ],
)
def test_what_a_bundle_could_not_keep_is_refused(text: str, folder: Path):
    (folder / "odd.js").write_text(text)
    with pytest.raises(ValueError, match=r"odd\.js"):
        bundled(folder, "odd")


def test_modules_that_import_each_other_are_refused(folder: Path):
    (folder / "marks.js").write_text("import './other.js';\n")
    with pytest.raises(ValueError, match="imports itself"):
        bundles(folder)


def test_every_script_of_ours_comes_in_one_bundle():
    found = bundles(SCRIPTS)
    assert sorted(name for each in found.values() for name in each.modules) == sorted(
        file.stem for file in SCRIPTS.glob("*.js")
    )
    assert ALWAYS in found
    for name in found:
        text = bundled(SCRIPTS, name)
        for used in re.findall(r"\$([a-z]+) = \(\(\) =>", text):
            written = (SCRIPTS / f"{used}.js").read_text(encoding="utf-8")
            assert not re.search(rf"\$(?:{'|'.join(file.stem for file in SCRIPTS.glob('*.js'))})\b", written), used
