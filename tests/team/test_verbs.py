"""`parley team` and `parley invite` as somebody types them, in processes of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.cli import main
from tests.drive import ROOT
from tests.store.files import asked

pytestmark = pytest.mark.requirement("T06")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("PARLEY_")]:
        monkeypatch.delenv(name)
    (tmp_path / "data").mkdir(mode=0o700)
    file = tmp_path / "team.toml"
    file.write_text(
        f'public_url = "https://parley.example"\ndata_dir = "{tmp_path}/data"\nchild_user = "61000-61009"\n'
    )
    return file


def typed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    try:
        code = main(words)
    except SystemExit as ended:  # --help
        code = int(ended.code or 0)
    return code, *capsys.readouterr()


def test_an_invitation_is_one_line_with_a_link_that_the_file_does_not_have(
    config: Path, capsys: pytest.CaptureFixture[str]
):
    code, out, err = typed(capsys, "invite", "Grace Hopper", "--role", "admin", "--config", str(config))
    assert (code, err) == (0, "")
    [line] = out.splitlines()
    assert line.startswith(
        "Invitation for Grace Hopper (admin), works once and for 24 hours: https://parley.example/invite/"
    )
    secret = line.rpartition("/")[2]
    assert len(secret) > 40
    data = config.parent / "data"
    assert secret.encode() not in b"".join(path.read_bytes() for path in data.iterdir())
    assert asked(data / "parley.db", "SELECT who, act, what FROM audit") == [
        ("the command line", "invited", "Grace Hopper as admin")
    ]
    assert typed(capsys, "invite", "\u202e", "--config", str(config))[::2] == (1, "parley: This name cannot be used\n")


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("team",), 2, "a team has its settings in a file; name it with --config team.toml"),
        (("invite",), 2, "the following arguments are required: NAME; see parley invite --help"),
        (("invite", "x", "--role", "boss"), 2, "invalid choice: 'boss'"),
        (("team", "--config", "/not/there"), 1, "the config file /not/there cannot be read: No such file or directory"),
        (("team", "--verbose"), 2, "unrecognized arguments: --verbose"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    words: tuple[str, ...], code: int, sentence: str, config: Path, capsys: pytest.CaptureFixture[str]
):
    found, out, err = typed(capsys, *words)
    assert (found, out, err.count("\n")) == (code, "", 1)
    assert err.startswith("parley: ") and sentence in err


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("surprise = 1", "there is no setting surprise in "),
        ("port = 70000", "must be at most 65535"),
        ('door = "proxy"', 'door = "proxy" needs proxy_header'),
        ('host = "0.0.0.0"', "is open to the network"),
        ("[", "is not TOML"),
        ("[limits]\nsurprise = 1", "there is no setting limits.surprise in "),
        ('allow = ["wiki"]', "is no name with its port"),
    ],
)
def test_a_file_that_is_not_safe_is_refused_before_anything_is_made(
    line: str, sentence: str, config: Path, capsys: pytest.CaptureFixture[str]
):
    config.write_text(config.read_text() + line + "\n")
    code, out, err = typed(capsys, "team", "--config", str(config))
    assert (code in (1, 2), out, err.count("\n")) == (True, "", 1)
    assert sentence in err
    assert list((config.parent / "data").iterdir()) == []


def test_a_look_says_what_there_is_and_what_is_missing(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    code, out, err = typed(capsys, "team", "--config", str(config), "--check")
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == "The settings are safe; people would find Parley at https://parley.example"
    assert "on       Environment: Own HOME" in out
    gone = '[catalogue.gone]\nname = "Gone"\ntransport = "stdio"\ncommand = "/nowhere/server"\n'
    before = config.read_text()
    config.write_text(before + gone)
    code, out, err = typed(capsys, "team", "--config", str(config), "--check")
    assert (code, err) == (0, ""), "it stops nothing else"
    assert "CANNOT START  Gone: /nowhere/server: No such file or directory. Install it, or correct the entry." in out
    config.write_text(before)
    monkeypatch.setenv("PATH", str(tmp_path))
    config.write_text(config.read_text() + 'isolation = "required"\n')
    code, out, err = typed(capsys, "team", "--config", str(config), "--check")
    assert (code, err.count("\n")) == (2, 1)
    assert "MISSING  Sandbox: bwrap is not installed" in out
    assert err.startswith('parley: isolation = "required" refuses to start')


def test_local_mode_cannot_be_made_a_team_by_a_setting(config: Path, capsys: pytest.CaptureFixture[str]):
    config.write_text('mode = "team"\n')
    code, _, err = typed(capsys, "--no-open", "--config", str(config))
    assert (code, "must be 'local'; a team is served by: parley team" in err) == (2, True)


def test_a_team_imports_the_sign_in_service_and_the_figures_only_where_they_are_set(config: Path):
    code = f"""
import sys, anyio
from pathlib import Path
from app.isolation import Isolation, Walls
from app.team_settings import TeamSettings
from app.web.team.app import create_team_app
from app.web.team.house import House

async def main():
    app = create_team_app(House(TeamSettings(public_url="https://x.example", data_dir={str(config.parent / "data")!r}),
                                Isolation(Walls(), [])))
    async with app.router.lifespan_context(app):
        await app.state.loaded.wait()
        await app.state.registry.until_ready()

anyio.run(main)
print([name for name in sys.modules if name.startswith(("authlib", "joserfc", "prometheus_client"))])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.strip() == "[]"


def test_local_mode_imports_nothing_of_a_team():
    code = """
import sys, anyio
from app.settings import local
from app.web.app import create_app

async def main():
    app = create_app(local(port=0))
    async with app.router.lifespan_context(app):
        await app.state.loaded.wait()
        await app.state.registry.until_ready()

anyio.run(main)
team = ("app.team", "app.isolation", "app.core.catalogue", "app.core.people", "app.store.people", "app.store.audit",
        "authlib", "joserfc", "prometheus_client", "app.core.rate",
        "app.store.entries", "app.store.sealed", "app.store.team_tables", "app.protocol.links.confined", "app.web.team")
print([name for name in sys.modules if name.startswith(team)])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.strip() == "[]"
