"""The catalogue of a team: admins write it on the page, people pick from it, and what they give is theirs alone."""

import json
import re
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from starlette.applications import Starlette

from app.store.sealed import HOUSE, KEY_FILE
from app.web.team.house import House
from tests.drive import HANG, SERVERS, echoes, until
from tests.isolation.walls import PYTHON
from tests.store.files import asked
from tests.team.conftest import Enters, Guest, session_of

pytestmark = pytest.mark.requirement("T08")
CANARY = "canary-7-of-grace"
LINE = f"{PYTHON} -I -S {SERVERS / 'raw.py'} plain"


def typed(**more: Any) -> dict[str, Any]:
    """The form of an entry."""
    form = {"name": "Release runner", "description": "Builds. <b>Asks</b>.", "transport": "stdio", "command_line": LINE}
    return {**form, "role.user": "1", "role.admin": "1", "reads": str(SERVERS), **more}


def written(folder: Path) -> dict[str, str]:
    """Every file below a folder."""
    found = {}
    for file in (one for one in folder.rglob("*") if one.is_file()):
        found[file.name] = file.read_bytes().decode("latin-1")
        if file.name == KEY_FILE:
            assert file.stat().st_mode & 0o077 == 0, "for its owner alone"
    assert KEY_FILE in found
    return found


async def test_an_admin_adds_changes_orders_and_removes_servers(enters: Enters, house: House):
    boss, grace = await enters("boss", "admin"), await enters("Grace")
    page = await boss.get("/catalogue/new")
    assert (page.status, 'name="command_line"' in page.text) == (200, True)
    more = await boss.form("/catalogue", typed(then="row", **{"var.0.name": "REGION"}))
    assert (more.status, more.text.count('class="var"')) == (200, 2), "a row more, and nothing is saved"
    assert "Release runner" not in (await grace.get("/")).text
    variables = {"var.0.name": "REGION", "var.0.values": "north, south", "var.0.given": "person"}
    made = await boss.form("/catalogue", typed(**variables))
    assert (made.status, made.header("location")) == (303, "/catalogue/release-runner")
    seen = (await grace.get("/")).text
    assert "Builds. &lt;b&gt;Asks&lt;/b&gt;." in seen and "needs REGION" in seen and "raw.py" not in seen
    assert (await boss.form("/catalogue", typed())).status == 422, "people pick by name"
    second = await boss.post(
        "/catalogue", {"name": "Zweites Büro", "transport": "http", "url": "https://b.example/mcp"}
    )
    assert (second.status, second.json()["id"], second.json()["roles"]) == (201, "zweites-buro", ["user", "admin"])
    order = (await boss.post("/catalogue/zweites-buro/move", {"by": -5})).json()["order"]
    assert order[-2:] == ["zweites-buro", "release-runner"]
    again = Guest(boss.app, boss.headers)
    listed = (await again.json("/catalogue"))["catalogue"]
    assert [(one["id"], one["fixed"]) for one in listed][-2:] == [("zweites-buro", False), ("release-runner", False)]
    changed = await boss.form("/catalogue/release-runner", typed(**variables, description="Tags."))
    assert changed.status == 303 and "Tags." in (await grace.get("/")).text
    assert (await boss.post("/catalogue/release-runner/switch", {"on": False})).json()["enabled"] is False
    assert "Release runner" not in (await grace.get("/")).text
    assert (await grace.post("/catalogue/release-runner/connect", {"variables": {"REGION": "north"}})).status == 404
    assert (await boss.form("/catalogue/release-runner/switch", {"on": "1"})).status == 303
    shown = (await boss.get("/catalogue/release-runner")).text
    assert "raw.py" in shown and 'value="north, south"' in shown and "Delete Release runner" in shown
    assert (await boss.form("/catalogue/zweites-buro/delete")).header("location") == "/catalogue"
    told = [one.what for one in reversed(await house.audit.search(act="changed the catalogue"))]
    assert told == [
        "added Release runner",
        "added Zweites Büro",
        "moved Zweites Büro",
        "changed Release runner",
        "switched Release runner off",
        "switched Release runner on",
        "removed Zweites Büro",
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": ""}, "This is required."),
        ({"command_line": ""}, "Type the command that starts the server."),
        ({"command_line": "sh 'open"}, "cannot be split into arguments"),
        ({"env": "LD_PRELOAD=/x.so"}, "is a variable that Parley or the system sets"),
        ({"env": "nothing"}, "Each line is NAME=value"),
        ({"reads": "relative"}, "must be absolute paths"),
        ({"memory_mib": "1"}, "A whole number from 16 to 65,536."),
        ({"processes": "many"}, "A whole number from 1 to 4,096."),
        ({"var.0.name": "PATH"}, "is a variable that Parley or the system sets"),
        ({"var.0.name": "NODE_OPTIONS"}, "would change which code runs"),
        ({"var.0.name": "KEY", "var.0.given": "admin"}, "Type the value that the server gets."),
        ({"transport": "http", "url": "ftp://x/"}, "URL"),
        ({"transport": "http", "url": "https://x.example/", "var.0.name": "K", "var.0.given": "admin"}, "people give"),
        ({"reads": "/"}, "Parley keeps its people in /."),
    ],
)
@pytest.mark.requirement("S28")
async def test_what_cannot_be_is_said_at_its_field(enters: Enters, house: House, change: dict[str, Any], words: str):
    boss = await enters("boss", "admin")
    before = house.catalogue().entries
    answer = await boss.form("/catalogue", typed(**change))
    assert (answer.status, words in answer.text.replace("&#39;", "'")) == (422, True), answer.text[-4000:]
    assert 'aria-invalid="true"' in answer.text or 'role="alert"' in answer.text
    assert house.catalogue().entries == before
    if "name" not in change:
        assert 'value="Release runner"' in answer.text, "what was typed is still there"


async def test_what_the_settings_file_lists_is_read_only_and_says_so(enters: Enters):
    boss = await enters("boss", "admin")
    page = await boss.get("/catalogue/raw")
    assert "The settings file lists this server" in page.text and '<fieldset class="all" disabled>' in page.text
    for act, body in (("", typed()), ("/switch", {}), ("/move", {"by": "1"}), ("/delete", {})):
        refused = await boss.form(f"/catalogue/raw{act}", body)
        assert (refused.status, "It is changed there" in refused.text) == (403, True), act
    assert (await boss.post("/catalogue", {"id": "raw", "name": "x", "transport": "demo"})).status == 422
    file = {"name": "KEY", "file": "/etc/hostname"}
    refused = await boss.post("/catalogue", {"name": "x", "transport": "stdio", "command": "x", "variables": [file]})
    assert (refused.status, "/variables/0/file" in refused.error["fields"]) == (422, True)


async def test_the_first_page_finds_what_somebody_used_lately(enters: Enters, app: Starlette):
    ada, grace = await enters("Ada"), await enters("Grace")
    await session_of(ada, app, "raw")
    made = await ada.post("/catalogue/region/connect", {"variables": {"REGION": "north"}})
    assert made.status == 201, made.text

    async def recent(who: Guest, more: str = "") -> list[str]:
        page = (await who.get(f"/?show=recent{more}")).text
        shown = re.findall(r'<li id="entry-([\w-]+)"', page)
        if not more:
            assert [one["id"] for one in (await who.json("/?show=recent"))["catalogue"]] == shown
        return shown

    assert await recent(ada) == ["region", "raw"], "the last one first"
    assert await recent(ada, "&q=raw") == ["raw"]
    assert await recent(grace) == [], "what others use is theirs"
    assert "You have used none of them yet" in (await grace.get("/?show=recent")).text
    assert len((await grace.json("/"))["catalogue"]) == 3


async def test_where_recordings_lie_and_what_others_keep_is_nobodys_business(
    enters: Enters, app: Starlette, house: House
):
    ada, grace = await enters("Ada"), await enters("Grace")
    session = await session_of(ada, app, "raw")
    assert (await ada.post(f"/s/{session.id}/close")).status == 200
    with anyio.fail_after(HANG):
        while not (await ada.json("/recordings"))["limits"]["bytes"]:  # written a moment later
            await anyio.lowlevel.checkpoint()
    told = [(await who.json("/recordings"))["limits"] for who in (ada, grace)]
    assert told[0]["bytes"] > 0 and told[1]["bytes"] == 0
    assert {each["where"] for each in told} == {None}
    assert {each["recordings_bytes"] for each in told} == {house.settings.limits.recordings_bytes_per_identity}


async def test_a_server_that_is_taken_away_ends_and_its_session_stays(enters: Enters, app: Starlette):
    boss, grace = await enters("boss", "admin"), await enters("Grace")
    assert (await boss.form("/catalogue", typed())).status == 303
    assert grace.person is not None
    session = await session_of(grace, app, "release-runner")
    assert (await boss.form(f"/people/{grace.person.id}/role", {"role": "viewer"})).status == 303
    assert session.info.state == "lost", "a viewer may not use it"
    assert (await boss.form(f"/people/{grace.person.id}/role", {"role": "user"})).status == 303
    for act, form in (("", typed(**{"role.user": ""})), ("/switch", {}), ("/delete", {})):
        session = await session_of(grace, app, "release-runner")
        pid = session.info.pid
        page = (await boss.get("/catalogue/release-runner")).text
        assert "1 open session" in page and "Ends 1 connection now" in page
        assert (await boss.form("/catalogue/release-runner", typed(description="other"))).status == 303
        await echoes(session)  # a change leaves what runs as it was started
        assert (await boss.form(f"/catalogue/release-runner{act}", form)).status == 303
        assert session.info.state == "lost" and session.info.trouble is not None
        assert "taken this server out of the catalogue" in session.info.trouble.message
        assert pid is not None and not psutil.pid_exists(pid)
        assert (await grace.get(f"/s/{session.id}/log")).status == 200
        refused = await grace.form(f"/s/{session.id}/connect", {"again": "1"})
        assert refused.status >= 400 and session.info.state == "lost"
        if act == "/switch":
            await boss.form("/catalogue/release-runner/switch", {"on": "1"})
        elif not act:
            await boss.form("/catalogue/release-runner", typed())
        assert (await grace.form(f"/s/{session.id}/close")).status == 303


# ------------------------------------------------------------------------------------------------------------- secrets


@pytest.mark.requirement("S21", "S27")
async def test_a_secret_is_given_once_and_is_nobody_elses(
    enters: Enters, app: Starlette, house: House, settings: Any, caplog: pytest.LogCaptureFixture
):
    """Of one person and of an admin: in the environment of the child, and nowhere else."""
    boss, grace, ada = await enters("boss", "admin"), await enters("Grace"), await enters("Ada")
    assert grace.person is not None
    variables = {
        "var.0.name": "API_KEY",
        "var.0.given": "secret",
        "var.1.name": "RELEASE_TOKEN",
        "var.1.given": "admin",
    }
    admins = "canary-8-of-the-admin"
    assert (await boss.form("/catalogue", typed(**variables, **{"var.1.value": admins}))).status == 303
    assert (await boss.form("/catalogue/release-runner", typed(**variables))).status == 303, "left blank, it stays"
    page = (await grace.get("/")).text
    assert "needs API_KEY" in page and "RELEASE_TOKEN" not in page and "Add key…" in page
    picked = await grace.form("/catalogue/release-runner/connect", {"var.API_KEY": CANARY, "keep": "1"})
    first = app.state.registry.everybodys()[-1]
    await until(first, lambda: first.info.state == "ready")
    [child] = [psutil.Process(first.info.pid), *psutil.Process(first.info.pid).children(recursive=True)][-1:]
    assert (child.environ()["API_KEY"], child.environ()["RELEASE_TOKEN"]) == (CANARY, admins)
    await first.disconnect()
    seen = [picked.text, (await grace.get("/")).text]
    assert "your value is saved" in seen[1]
    again = await session_of(grace, app, "release-runner")
    await echoes(again)
    assert (await ada.post("/catalogue/release-runner/connect", {})).status == 422, "it is Grace's"
    assert (await ada.form("/catalogue/release-runner/forget")).status == 404
    base = f"/s/{again.id}"
    assert (await grace.post(f"{base}/record", {"on": True})).status == 200
    await echoes(again)
    assert (await grace.post(f"{base}/record", {"on": False})).status == 200
    for guest, path in (
        *(
            (grace, path)
            for path in ("/?entry=release-runner", "/me", "/recordings", base, f"{base}/log", f"{base}/connect")
        ),
        *((grace, path) for path in (f"{base}/log.jsonl", f"{base}/stderr", f"{base}/palette", f"{base}/calls")),
        *((boss, path) for path in ("/catalogue/release-runner", "/audit", "/audit.jsonl", "/isolation", "/people")),
        *((ada, path) for path in ("/", "/?entry=release-runner")),
    ):
        for kind in ("text/html", "application/json"):
            seen.append((await guest.send("GET", path, {"accept": kind})).text)
    await grace.form(f"{base}/close")
    await house.audit.flush()
    kept = written(settings.data_dir)
    told = "\n".join(seen) + caplog.text + "".join(kept.values())
    assert CANARY not in told and admins not in told and "echo" in told
    assert any("jsonl" in name for name in kept), "the recording is among what was looked through"
    # A row that somebody moves to another person in the file opens nothing there, and neither does another entry.
    [(sealed,)] = asked(
        settings.data_dir / "parley.db", f"SELECT sealed FROM sealed WHERE person = '{grace.person.id}'"
    )
    house.sealed._kept["mallory", "release-runner", "API_KEY"] = sealed
    entry = next(one for one in house.catalogue().entries if one.id == "release-runner")
    assert house.sealed.values("mallory", "release-runner", entry.leads_to) == {}
    assert house.sealed.values(grace.person.id, "release-runner", entry.leads_to) == {"API_KEY": CANARY}
    # It goes nowhere else: not to another program, and not to another script of the same interpreter.
    for change in ({"command": "/other"}, {"args": ("-c", "evil")}, {"path": "/evil"}, {"env": {"A": "b"}}):
        other = entry.model_copy(update=change)
        assert house.sealed.values(grace.person.id, "release-runner", other.leads_to) == {}, change
    assert (await grace.form("/catalogue/release-runner/forget")).status == 303
    assert "needs API_KEY" in (await grace.get("/")).text
    await boss.form("/catalogue/release-runner/delete")
    assert house.sealed.names(HOUSE, "release-runner") == frozenset()


async def test_what_was_kept_outlives_the_process_and_opens_with_its_key_alone(house: House, tmp_path: Path):
    await house.sealed.put("p1", "wiki", {"Authorization": "Bearer canary"}, "http x")
    key = house.key()
    other = json.loads(json.dumps(key))
    from cryptography.fernet import Fernet

    from app.store.sealed import Sealed

    for keys, found in (
        (key, {"Authorization": "Bearer canary"}),
        (Fernet.generate_key().decode() + "\n" + other, {"Authorization": "Bearer canary"}),
        (Fernet.generate_key().decode(), {}),
    ):
        again = Sealed(house._database, house.wall)
        await again.open(keys)
        assert again.values("p1", "wiki", "http x") == found
