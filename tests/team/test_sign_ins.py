"""Signing in to servers by OAuth in a team: each person has their own tokens, encrypted, and nobody signs in for
somebody else. And a file that somebody brings takes no more than it may."""

import gzip
from collections.abc import Iterator
from urllib.parse import parse_qsl, urlsplit

import anyio
import pytest
from starlette.applications import Starlette

from app.sessions import Identity
from app.store.vault import FILE as VAULT
from app.team_settings import TeamSettings
from app.web.team.house import House
from tests.drive import ROOT
from tests.drive_oauth import Harbour, protected
from tests.team.conftest import ORIGIN, Enters
from tests.web.sign_in.going import begun, rested


@pytest.fixture(scope="module")
def harbour(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harbour]:
    with protected(tmp_path_factory.mktemp("tls")) as running:
        yield running


@pytest.fixture
def settings(settings: TeamSettings, harbour: Harbour) -> TeamSettings:
    """The protected server and its authorization servers are internal ones that an admin allowed."""
    places = {urlsplit(one).netloc for one in (harbour.resource, *harbour.issuers.values())}
    bounded = {"recording_bytes": 1_000_000, "recordings_bytes_per_identity": 2_000_000}
    small = settings.limits.model_copy(update=bounded)
    return settings.model_copy(update={"allow": tuple(sorted(places)), "limits": small})


@pytest.mark.requirement("S19", "S20", "S21", "T08")
async def test_each_person_signs_in_for_themselves(
    enters: Enters, app: Starlette, house: House, harbour: Harbour, caplog: pytest.LogCaptureFixture
):
    grace, mallory, boss = await enters("Grace"), await enters("Mallory"), await enters("boss", "admin")
    path = await begun(grace, harbour)
    waiting = await rested(grace, path)
    assert waiting["redirect_uri"] == f"{ORIGIN}/oauth/callback"
    final = urlsplit(harbour.allow(waiting["authorization_url"]))
    back = f"{final.path}?{final.query}"
    # Mallory was led to the answer of Grace's sign-in, or leads Grace to the answer of his own: neither counts.
    assert (await mallory.get(back)).status == 400
    assert (await rested(grace, path))["state"] == "waiting"
    links = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document", "origin": None}
    assert (await grace.send("GET", back, links)).status == 200, "as an authorization server sends a browser back"
    assert (await rested(grace, path))["state"] == "signed_in"
    assert (await grace.json(f"{path}?wait=30"))["connection"]["state"] == "ready"
    theirs = await begun(mallory, harbour)
    assert (await rested(mallory, theirs))["state"] == "waiting", "what Grace has is not Mallory's"
    assert (await grace.get(f"{final.path}?state=unknown&code=x")).status == 400
    # Signed in before, Grace needs nobody the second time.
    again = await begun(grace, harbour)
    assert (await rested(grace, again))["state"] == "signed_in"
    seen = []
    for guest, where in (
        *((grace, f"{path}{page}") for page in ("", "/log", "/log.jsonl", "/sign-in", "/connect")),
        *((boss, page) for page in ("/audit", "/audit.jsonl", "/isolation", "/people", "/catalogue")),
        (mallory, theirs),
    ):
        seen += [(await guest.send("GET", where, {"accept": kind})).text for kind in ("text/html", "application/json")]
    app.state.registry.vault.write()
    files = {one.name: one.read_bytes() for one in house.settings.data_dir.rglob("*") if one.is_file()}
    assert VAULT in files
    told = "\n".join(seen) + caplog.text + b"".join(files.values()).decode("latin-1")
    tokens = [one for one in harbour.secrets if len(one) > 8]
    assert tokens and not [one for one in tokens if one in told]


@pytest.mark.requirement("S20", "T08")
async def test_a_session_that_is_handed_over_takes_no_sign_in_along(enters: Enters, app: Starlette, harbour: Harbour):
    grace, heir = await enters("Ada"), await enters("Heir")
    path = await begun(grace, harbour)
    waiting = await rested(grace, path)
    assert waiting["state"] == "waiting"
    assert (await grace.post(f"{path}/hand-over", {"person": "Heir"})).status == 200
    final = urlsplit(harbour.allow(waiting["authorization_url"]))
    for guest in (grace, heir):
        assert (await guest.get(f"{final.path}?{final.query}")).status == 400, "what she began ends with her"
    for kind in ("text/html", "application/json"):
        told = await heir.send("GET", f"{path}/sign-in", {"accept": kind})
        assert dict(parse_qsl(final.query))["state"] not in told.text
    assert app.state.registry.callbacks == {}
    assert (await heir.json(path))["connection"]["state"] != "ready"


@pytest.mark.requirement("S42")
async def test_a_file_that_somebody_brings_is_bounded_and_names_no_place(enters: Enters, app: Starlette, house: House):
    grace, mallory = await enters("Grace"), await enters("Mallory")
    kind = {"content-type": "application/gzip", "accept": "application/json", "x-file-name": "..%2F..%2Fetc%2Fpasswd"}
    whole = (ROOT / "tests" / "recordings" / "v1-legacy.jsonl").read_bytes()
    head, *lines = whole.splitlines(keepends=True)
    assert (await grace.send("POST", "/recordings", kind, gzip.compress(whole))).status == 201
    before = {one.name for one in house.settings.data_dir.rglob("*") if one.is_file()}
    bomb = gzip.compress(head + lines[0] * (40_000_000 // len(lines[0])))
    assert len(bomb) < 400_000
    refused = await grace.send("POST", "/recordings", kind, bomb)
    assert (refused.status, "and this one has more" in refused.text) == (403, True), refused.text
    deep = await grace.send("POST", "/recordings", {**kind, "content-type": "application/json"}, b"[" * 500_000)
    assert deep.status in (400, 413, 422)
    left = {one.name for one in house.settings.data_dir.rglob("*") if one.is_file()}
    assert left <= before, "nothing of it is left, and nothing was written by its name"
    assert (await mallory.get("/r/rec-of-somebody")).status == 404


@pytest.mark.requirement("S42", "T20")
async def test_several_files_at_the_same_time_take_no_more_than_one_after_the_other(enters: Enters, app: Starlette):
    mallory = await enters("Mallory")
    assert mallory.person is not None
    kind = {"content-type": "application/gzip", "accept": "application/json"}
    head, line, *_ = (ROOT / "tests" / "recordings" / "v1-legacy.jsonl").read_bytes().splitlines(keepends=True)
    large, answers = gzip.compress(head + line * (900_000 // len(line))), list[int]()

    async def bring() -> None:
        answers.append((await mallory.send("POST", "/recordings", kind, large)).status)

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(bring)
    store = app.state.registry.store.recordings
    assert 201 in answers and 403 in answers and store.left(mallory.person.id)[0] >= 0, answers
    for one in store.of(mallory.person.id):
        assert (await mallory.post(f"/r/{one.id}/delete")).status == 200
    assert (await mallory.send("POST", "/recordings", kind, large)).status == 201, "what did not arrive takes no room"


@pytest.mark.requirement("T03")
async def test_a_model_leads_to_no_host_of_the_catalogue(enters: Enters, app: Starlette, house: House):
    grace = await enters("Grace")
    assert grace.person is not None
    session = app.state.registry.open(Identity(grace.person.id, "Grace", role="user"))
    model = {"name": "mine", "provider": "openai", "model": "m", "key": "k"}
    at = f"/s/{session.id}/models"
    for url in ("http://wiki.internal:8080/mcp", "http://WIKI.internal.:8080/admin", "http://x@wiki.internal:8080"):
        refused = await grace.post(at, {**model, "base_url": url})
        assert (refused.status, "from the catalogue" in refused.text) == (403, True), url
    assert (await grace.post(at, {**model, "base_url": "https://models.example/v1"})).status == 201
    house.settings = house.settings.model_copy(update={"free_http": False})
    assert (await grace.post(at, {**model, "base_url": "https://models.example/v2"})).status == 403
