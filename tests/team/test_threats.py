"""The threat model, row by row, for one person on their own machine and for a team: what each mode does unless told
otherwise. Each cell is observed, so that no default drifts away from what is promised. `test_threats_demo.py` has the
same rows for an audience."""

import stat
from pathlib import Path
from typing import Any

import pytest

from app import server
from app.cli import main
from app.core.catalogue import Catalogue, Entry
from app.core.targets import StdioTarget
from app.isolation import Isolation, Walls
from app.policy import Policy
from app.protocol.links import open_link
from app.sessions import Identity, SessionRegistry
from app.sessions.identity import LOCAL
from app.settings import Settings, local
from app.team_settings import TeamSettings, refusals
from app.web.door.visitors import Visitors
from app.web.team.app import create_team_app
from app.web.team.house import House
from tests.drive import ROOT

pytestmark = pytest.mark.requirement("T10")
COMMAND = StdioTarget(command="sh", args=("-c", "id"))
ADDRESSES = {
    "this machine": "127.0.0.1",
    "an inner network": "10.0.0.7",
    "a metadata service": "169.254.169.254",
    "the internet": "93.184.216.34",
}
ROWS: dict[str, tuple[Any, Any]] = {
    # row: (local, team)
    "listens on": ("127.0.0.1 alone", "127.0.0.1 alone, for its proxy"),
    "elsewhere": ("refused without a flag", "refused without the address of a proxy"),
    "people": ("one, whoever has the launch code", "those who were let in, each by a login of their own"),
    "cookie": ("parley_6280, of this port", "__Host-parley, Secure, HttpOnly, Path=/"),
    "a login lasts": ("30 days", "12 hours, 2 without use"),
    "a command that somebody types": ("confirmed before its first run", "refused, whoever asks"),
    "a command of the catalogue": ("there is none", "fixed; values become its environment, never arguments"),
    "dials": (["this machine", "an inner network", "the internet"], ["the internet"]),
    "dials itself": (False, False),
    "walls around children": ("none: they are the person's own programs", "all that the machine has"),
    "storage": ("a file for its owner alone, secrets left out", "a file for its owner alone, secrets encrypted"),
    "sessions of one person": (20, 5),
    "calls a minute of one person": ("no limit", 20),
    "open asks of one person": (2000, 100),
    "tabs of one browser that are live": (4, 4),
    "the largest message": (8 * 2**20, 8 * 2**20),
    "somebody else's session": ("there is nobody else", 404),
    "the residual risk in README.md": (
        "Another process of the same user",
        "A catalogue server is trusted with its user",
    ),
}


@pytest.fixture
def team(tmp_path: Path) -> TeamSettings:
    """The preset of a team: what has to be said, and nothing else."""
    return TeamSettings(public_url="https://parley.example", data_dir=tmp_path / "team")


def test_the_table_row_by_row(team: TeamSettings, tmp_path: Path):
    seen = _local(local(data_dir=tmp_path / "local"))
    hosted = _team(team)
    assert seen.keys() == hosted.keys() == ROWS.keys()
    for row, (mine, theirs) in ROWS.items():
        assert seen[row] == mine, f"local: {row}"
        assert hosted[row] == theirs, f"team: {row}"


def _bound(settings: Settings) -> str:
    sockets = server.bind(settings.model_copy(update={"port": 0}))
    try:
        return " and ".join(sorted({one.getsockname()[0] for one in sockets} - {"::1"})) + " alone"
    finally:
        for one in sockets:
            one.close()


def _dialled(mode: Any) -> tuple[list[str], bool]:
    policy = Policy(mode, own_ports={6280})
    allowed = [name for name, address in ADDRESSES.items() if policy.refusal("x.example", address, 443) is None]
    return allowed, policy.refusal("localhost", "127.0.0.1", 6280) is None


def _readme(words: str) -> str:
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    return words if words.lower() in text.lower() else "not said"


def _local(settings: Settings) -> dict[str, Any]:
    visitors = Visitors(settings)
    registry = SessionRegistry(settings)
    dials, itself = _dialled("local")
    refused = main(("--host", "0.0.0.0", "--port", "0", "--no-open")) == 2
    return {
        "listens on": _bound(settings),
        "elsewhere": "refused without a flag" if refused else "taken",
        "people": "one, whoever has the launch code" if LOCAL.role == "" else "several",
        "cookie": f"{visitors.cookie_name}, of this port",
        "a login lasts": f"{registry.remembered.login_seconds / 86_400:g} days",
        "a command that somebody types": "started"
        if registry.consented(LOCAL, COMMAND)
        else "confirmed before its first run",
        "a command of the catalogue": "there is none" if registry.gate is None else "there is one",
        "dials": dials,
        "dials itself": itself,
        "walls around children": "none: they are the person's own programs"
        if registry.open_link is open_link
        else "some",
        "storage": _storage(settings, encrypted=settings.keep_sign_ins),
        "sessions of one person": settings.limits.sessions_per_identity,
        "calls a minute of one person": settings.limits.calls_per_minute or "no limit",
        "open asks of one person": settings.limits.open_asks_per_identity,
        "tabs of one browser that are live": settings.limits.streams_per_browser,
        "the largest message": settings.limits.message_bytes,
        "somebody else's session": "there is nobody else",
        "the residual risk in README.md": _readme("Another process of the same user"),
    }


def _storage(settings: Settings, *, encrypted: bool) -> str:
    assert settings.data_dir is not None
    from app.store.database import _made

    _made(settings.data_dir / "parley.db")
    mode = stat.S_IMODE((settings.data_dir / "parley.db").stat().st_mode) | stat.S_IMODE(
        settings.data_dir.stat().st_mode
    )
    whose = "a file for its owner alone" if not mode & 0o077 else "a file that others read"
    return f"{whose}, secrets {'encrypted' if encrypted else 'left out'}"


def _team(settings: TeamSettings) -> dict[str, Any]:
    settings.data_dir.mkdir(mode=0o700)
    house = House(settings, Isolation(Walls(), ()))
    app = create_team_app(house)
    registry, process = app.state.registry, settings.process()
    catalogue = Catalogue((Entry(id="x", name="x", transport="stdio", command="/opt/x", args=("--stdio",)),))
    refusal = {catalogue.refusal(role, COMMAND) for role in ("viewer", "user", "admin")}
    wide = settings.model_copy(update={"host": "0.0.0.0", "child_user": "61000"})
    unsafe = any("is open to the network" in one for one in refusals(wide, {}))
    cookie = app.state.visitors.cookie("x")
    parts = [part for part in ("Secure", "HttpOnly", "Path=/") if f"; {part}" in cookie and "Domain" not in cookie]
    dials, itself = _dialled("team")
    return {
        "listens on": f"{_bound(process)}, for its proxy" if settings.trusted_proxies == ("127.0.0.1", "::1") else "",
        "elsewhere": "refused without the address of a proxy" if unsafe else "taken",
        "people": "those who were let in, each by a login of their own" if house.people.all() == [] else "",
        "cookie": f"{cookie.partition('=')[0]}, {', '.join(parts)}",
        "a login lasts": f"{settings.login_hours:g} hours, {settings.login_idle_hours:g} without use",
        "a command that somebody types": "refused, whoever asks" if None not in refusal else "taken",
        "a command of the catalogue": _fixed(catalogue.entries[0]),
        "dials": dials,
        "dials itself": itself,
        "walls around children": "all that the machine has" if registry.open_link is not open_link else "none",
        "storage": _storage(process, encrypted=process.keep_sign_ins),
        "sessions of one person": settings.limits.sessions_per_identity,
        "calls a minute of one person": settings.limits.calls_per_minute or "no limit",
        "open asks of one person": settings.limits.open_asks_per_identity,
        "tabs of one browser that are live": settings.limits.streams_per_browser,
        "the largest message": settings.limits.message_bytes,
        "somebody else's session": _foreign(registry),
        "the residual risk in README.md": _readme("A catalogue server is trusted with its user"),
    }


def _fixed(entry: Entry) -> str:
    target = entry.target({})
    assert isinstance(target, StdioTarget)
    plain = (target.command, target.args, target.cwd) == ("catalogue:x", (), None)
    return "fixed; values become its environment, never arguments" if plain else str(target)


def _foreign(registry: SessionRegistry) -> Any:
    session = registry.open(Identity("p1", "one", role="user"))
    other = [registry.find(Identity("p2", "two", role=role), session.id) for role in ("viewer", "user", "admin")]
    return 404 if other == [None] * 3 else "found"
