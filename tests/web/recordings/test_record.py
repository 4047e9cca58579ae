"""A session is recorded by its button or by a script: listed, masked, masked further, downloaded, deleted."""

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from app.sessions.identity import LOCAL
from app.settings import Limits, Settings, local
from tests.drive import SERVERS, until
from tests.recordings.drive import read_text
from tests.web.asgi import PORT, TOKEN, Visitor

CANARY = "c4nary-never-written"
"""Begins every secret that is typed here."""


@pytest.fixture
def settings(limits: Limits, tmp_path: Path, request: pytest.FixtureRequest) -> Settings:
    kept_in = getattr(request, "param", "files")
    return local(port=PORT, token=TOKEN, limits=limits, data_dir=tmp_path / "data", recordings_in=kept_in)


def blabber() -> dict[str, Any]:
    """A server that is started with secrets, and repeats them."""
    args = [str(SERVERS / "blabber.py"), "--token", f"{CANARY}-argument", f"--dsn=postgres://me:{CANARY}-dsn@db/x"]
    env = {"API_KEY": f"{CANARY}-variable", "MARKED_KEYED": f"{CANARY}-marked"}
    return {"transport": "stdio", "command": sys.executable, "args": args, "env": env, "secret": ["MARKED_KEYED"]}


async def told(app: Starlette, script: Visitor) -> tuple[str, Any]:
    """A session with that server in which secrets were typed everywhere, and its recording."""
    options = {"era": "legacy", "meta": {"apiKey": f"{CANARY}-option"}}
    target = blabber()
    asked = (await script.post("/s", {"target": target, "options": options})).json()
    if "error" in asked:
        confirm = asked["error"]["confirm"]
        asked = (await script.post("/s", {"target": target, "options": options, "confirm": confirm})).json()
    path = asked["url"]
    assert (await script.json(f"{path}?wait=20"))["connection"]["state"] == "ready"
    recording = (await script.post(f"{path}/record", {"on": True})).json()
    session = app.state.registry._sessions[path.removeprefix("/s/")]
    arguments = {"password": f"{CANARY}-told", "deep": {"secret": {"inner": f"{CANARY}-deep"}}, "city": "Lisbon"}
    call = session.start_call("tools/call", {"name": "tell", "arguments": arguments}, by=LOCAL)
    await until(session, lambda: session.inbox.open)
    ask = session.inbox.open[0]
    content = {"password": f"{CANARY}-answered", "city": "Porto Alegre"}
    answered = await script.post(f"{path}/asks/{ask.id}/answer", {"action": "accept", "content": content})
    assert answered.status == 200, answered.text
    await until(session, lambda: call.settled)
    return path, recording


@pytest.mark.requirement("U-C02", "U-C04")
@pytest.mark.parametrize("settings", ["files", "database"], indirect=True)
async def test_a_canary_typed_anywhere_is_in_no_recording(app: Starlette, script: Visitor, settings: Settings):
    path, recording = await told(app, script)
    assert recording["on"] is True
    assert recording["rid"]
    ended = (await script.post(f"{path}/record", {"on": False})).json()
    assert (ended["on"], ended["rid"], ended["trouble"]) == (False, recording["rid"], None)
    url = f"/r/{recording['rid']}"
    body = (await script.get(f"{url}/file")).body
    assert [line for line in body.splitlines() if CANARY.encode() in line] == []
    read = read_text(body)
    assert "Lisbon" in str([frame.raw for frame in read.frames])  # what is no secret is there
    masked = {one["pointer"]: one for one in (await script.json(f"{url}/masks"))["masked"]}
    assert masked["/params/arguments/password"]["name"] == "password"
    assert masked["/result/content/password"]["count"] == 1
    assert read.end is not None
    assert {one.pointer for one in read.end.masked} == set(masked)
    assert all(json.loads(frame.raw or b"") for frame in read.frames), "JSON stays JSON"
    for file in (settings.data_dir or Path()).rglob("*"):
        assert not file.is_file() or CANARY.encode() not in file.read_bytes(), file
    (row,) = (await script.json("/recordings"))["recordings"]
    assert (row["rid"], row["state"], row["title"]) == (recording["rid"], "complete", "blabber")
    assert (row["calls"], row["asks"], row["size"]) == (1, 1, len(body))
    assert row["messages"] == len(read.frames)
    zipped = await script.get(f"{url}/file?gzip")
    assert gzip.decompress(zipped.body) == body
    assert (zipped.header("content-disposition") or "").startswith('attachment; filename="blabber-20')


@pytest.mark.requirement("U-C02")
async def test_more_is_masked_after_the_matches_were_shown(app: Starlette, script: Visitor, client: Visitor):
    path, recording = await told(app, script)
    url = f"/r/{recording['rid']}"
    assert (await script.post(f"{url}/masks", {"names": ["city"]})).status == 409  # still recorded
    page = await client.get(path)
    assert 'aria-pressed="true"' in page.text
    await script.post(f"{path}/record", {"on": False})
    before = (await script.get(f"{url}/file")).body
    seen = (await script.post(f"{url}/masks", {"names": ["city"], "pointers": ["/params/message"]})).json()
    assert (seen["saved"], (await script.get(f"{url}/file")).body == before) == (False, True)
    assert ("/params/arguments/city", "city") in {(one["pointer"], one["name"]) for one in seen["matches"]}
    shown = await client.form(f"{url}/masks", {"names": "city", "pointers": "/params/message"})
    assert "This would be masked" in shown.text
    assert "/params/arguments/city" in shown.text
    done = (await script.post(f"{url}/masks", {"names": ["city"], "save": True})).json()
    assert done["saved"] is True
    after = (await script.get(f"{url}/file")).body
    read = read_text(after)
    assert b"Lisbon" not in after
    assert b"Porto Alegre" not in after
    assert b"Who are you?" in after
    assert read.end is not None
    places = {one.pointer for one in read.end.masked}
    assert {"/params/arguments/city", "/params/arguments/password"} <= places
    assert {one["pointer"] for one in (await script.json(f"{url}/masks"))["masked"]} == places
    assert "Masked values" in (await client.get(f"{url}/masks")).text
    wrong = await client.form(f"{url}/masks", {"names": "", "pointers": "no-slash"})
    assert (wrong.status, "begins with a slash" in wrong.text) == (422, True)
    again = await client.get(path)
    assert f"/r/{recording['rid']}" in again.text
    assert "Recorded, " in again.text


@pytest.mark.requirement("U-C04")
async def test_only_its_owner_has_a_recording_and_delete_deletes(
    app: Starlette, script: Visitor, client: Visitor, mallory: Visitor, settings: Settings
):
    path, recording = await told(app, script)
    url, folder = f"/r/{recording['rid']}", (settings.data_dir or Path()) / "recordings"
    assert (await script.post(f"{url}/delete")).status == 409
    assert (await script.post(f"{path}/record", {"on": True})).json()["rid"] == recording["rid"], "once is enough"
    await client.form(f"{path}/record", {"on": ""})
    for other in (f"{url}/file", f"{url}/masks"):
        assert (await mallory.get(other)).status == 404
    assert (await mallory.post(f"{url}/delete", {})).status == 404
    named = (await script.post(url, {"title": "A title", "notes": "n", "tags": ["x"]})).json()
    assert (named["title"], named["notes"], named["tags"]) == ("A title", "n", ["x"])
    assert (await script.post(url, {"title": ""})).status == 422
    listed = await script.json("/recordings")
    assert listed["limits"]["bytes"] == listed["recordings"][0]["size"]
    assert (await script.post(f"{url}/delete")).json() == {"rid": recording["rid"], "deleted": True}
    assert (await script.post(f"{url}/delete")).status == 404
    assert [one for one in folder.iterdir() if one.name.startswith(recording["rid"])] == []
    assert (await script.json("/recordings"))["recordings"] == []
