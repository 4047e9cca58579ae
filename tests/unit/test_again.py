"""The second look that `make test` takes at what failed."""

from pathlib import Path

import pytest

from tests import again


def _tests(folder: Path, body: str) -> list[str]:
    path = folder / "test_it.py"
    path.write_text(f"from pathlib import Path\n\nSEEN = Path({str(folder / 'seen')!r})\n\n\n{body}\n")
    return ["-n", "0", "-q", "-c", "/dev/null", "--rootdir", str(folder), str(path)]


SHAKY = "def test_it():\n    seen = SEEN.exists()\n    SEEN.touch()\n    assert seen"


def test_what_fails_once_is_named_and_costs_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    assert again.run(_tests(tmp_path, SHAKY)) == 0
    said = capfd.readouterr().out
    assert said.index("1 failed") < said.index("1 passed") < said.index("SHAKY") < said.rindex("test_it.py::test_it")


def test_what_fails_twice_is_a_failure(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    assert again.run(_tests(tmp_path, "def test_it():\n    assert False")) == 1
    assert "SHAKY" not in capfd.readouterr().out


def test_many_failures_are_no_accident(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    many = "\n\n".join(
        SHAKY.replace("test_it", f"test_{at}").replace("SEEN", f"(SEEN.parent / '{at}')") for at in range(6)
    )
    assert again.run(_tests(tmp_path, many)) == 1
    assert "Once more" not in capfd.readouterr().out


def test_a_run_without_tests_is_not_repeated(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    assert again.run([*_tests(tmp_path, "def test_it():\n    assert True"), "-k", "nothing"]) == 5
    assert "Once more" not in capfd.readouterr().out


SKIPS = "import unittest\n\n\n" + SHAKY.replace(
    "assert seen", "if seen:\n        raise unittest.SkipTest('no')\n    assert seen"
)
RENAMED = (
    "import pytest\n\n\n"
    "@pytest.mark.parametrize('it', ['b' if SEEN.exists() else 'a'])\n"
    "def test_named(it):\n    SEEN.touch()\n    assert it == 'b'\n\n\n"
    + SHAKY.replace("test_it", "test_other").replace("SEEN", "(SEEN.parent / 'other')")
)


@pytest.mark.parametrize("body", [SKIPS, RENAMED], ids=["skipped", "another name"])
def test_only_what_ran_and_passed_alone_is_forgiven(tmp_path: Path, capfd: pytest.CaptureFixture[str], body: str):
    assert again.run(_tests(tmp_path, body)) == 1
    said = capfd.readouterr().out
    assert ("Once more" in said, "SHAKY" in said, "did not pass" in said) == (True, False, True)


@pytest.mark.parametrize("stop", ["-x", "--maxfail=1"])
def test_a_run_that_stopped_early_has_not_seen_the_rest(tmp_path: Path, capfd: pytest.CaptureFixture[str], stop: str):
    body = f"{SHAKY}\n\n\ndef test_rest():\n    assert False"
    assert again.run([*_tests(tmp_path, body), stop]) == 1
    assert "SHAKY" not in capfd.readouterr().out
