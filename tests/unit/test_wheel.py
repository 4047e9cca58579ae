"""What a user gets: the wheel, installed into an empty virtual environment with the pinned dependencies, starts from
anywhere, finds its templates and static files, and ends when told to.
"""

import os
import re
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import httpx2
import pytest

from tests.store.files import old_file

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).parent / "uv"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=150)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The bin folder of a virtual environment that holds the wheel and nothing that it does not ask for."""
    environment = tmp_path_factory.mktemp("venv")
    python = environment / "bin" / "python"
    run(UV, "venv", "--quiet", "--clear", "--python", sys.executable, environment)
    lock = ROOT / ".lock" / "runtime.txt"
    run(UV, "pip", "install", "--quiet", "--python", python, "--only-binary", ":all:", "--require-hashes", "-r", lock)
    run(UV, "pip", "install", "--quiet", "--python", python, "--no-deps", "--offline", wheel)
    run(UV, "pip", "check", "--quiet", "--python", python)
    return environment / "bin"


def test_the_wheel_holds_the_package_its_templates_and_its_static_files(wheel):
    assert wheel.name == "mcp_parley-0.1.0-py3-none-any.whl"
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder in ("templates", "static"):
        files = [path for path in (ROOT / folder).rglob("*") if path.is_file() and not path.name.startswith(".")]
        assert files
        assert {f"app/{path.relative_to(ROOT).as_posix()}" for path in files} <= names
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "app").rglob("*.py")}
    assert "app/store/migrations/env.py" in modules
    assert modules <= names
    assert {name.split("/")[0] for name in names} == {"app", "mcp_parley-0.1.0.dist-info"}
    assert not [name for name in names if "__pycache__" in name or "node_modules" in name]


def test_the_installed_wheel_starts_serves_and_ends(installed, tmp_path):
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PARLEY_"))}
    process = subprocess.Popen(
        [installed / "parley", "--no-open", "--port", "0"],
        cwd=tmp_path,  # nothing of the source tree is in reach
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with process:
        try:
            launch = launch_url(process)
            with httpx2.Client(base_url=launch.join("/"), timeout=60, trust_env=False) as client:
                assert client.get("/healthz").status_code == 200
                stylesheet = client.get("/static/app.css")
                assert stylesheet.status_code == 200
                assert stylesheet.content == (ROOT / "static" / "app.css").read_bytes()
                page = client.get(launch, follow_redirects=True)
                assert page.status_code == 200
                assert page.headers["content-type"].startswith("text/html")
            process.send_signal(signal.SIGTERM)
            rest, _ = process.communicate(timeout=50)
        finally:
            process.kill()
    assert "Traceback" not in rest
    # Either is a clean end: an exit of its own, or uvicorn's, which shuts down and then lets the signal have its way.
    assert process.returncode in (0, -signal.SIGTERM)


def test_the_installed_wheel_brings_an_old_file_up_to_date(installed, tmp_path):
    old_file(tmp_path)
    code = """
import sys, anyio
from pathlib import Path
from app.store import Store

store = Store(Path(sys.argv[1]))
anyio.run(store.open)
assert "site-packages" in sys.modules["app.store"].__file__
print(store.trouble or len(store.of("local")))
"""
    assert run(installed / "python", "-I", "-c", code, tmp_path, cwd=tmp_path).strip() == "3"
    assert (tmp_path / "parley.db.v1.bak").exists()


def launch_url(process: subprocess.Popen[str]) -> httpx2.URL:
    """The address that Parley prints when it listens."""
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if found := re.search(r"http://127\.0\.0\.1:[1-9]\d*/login\?code=\S+", line):
            return httpx2.URL(found[0])
    pytest.fail("Parley ended without printing its address:\n" + "".join(seen))
