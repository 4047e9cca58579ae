"""The era of a command on pages and in JSON: what is remembered, probing again, and what stderr says of the probe."""

from typing import Any

import pytest
from starlette.applications import Starlette

from app.settings import Limits
from tests.drive import HANG, raw_target
from tests.web.asgi import Visitor

REPORT = "1 validation error for ClientRequest\nPingRequest.method\n  not 'server/discover'\n"


@pytest.fixture
def limits() -> Limits:
    return Limits(probe_seconds=20, nudge_seconds=0.2)


async def ready(script: Visitor, path: str) -> Any:
    overview = await script.json(f"{path}?wait={HANG:.0f}")
    assert overview["connection"]["state"] == "ready", overview["connection"]["error"]
    return overview


@pytest.mark.requirement("B01")
async def test_b01_a_script_reads_where_the_era_is_from_and_has_it_probed_again(script: Visitor):
    target = raw_target(numb=["server/discover"]).model_dump(mode="json")
    path = (await script.post("/s", {"target": target})).json()["url"]
    assert (await ready(script, path))["connection"]["era_from"] == "probe"
    for probe, wanted in ((None, "memory"), (False, "memory"), (True, "probe")):
        await script.post(f"{path}/disconnect", {})
        body = {"target": target} if probe is None else {"target": target, "probe": probe}
        assert (await script.post(f"{path}/connect", body)).status == 202
        assert (await ready(script, path))["connection"]["era_from"] == wanted
    refused = await script.post(f"{path}/connect", {"target": target, "probe": "perhaps"})
    assert refused.status == 422 and "/probe" in refused.error["fields"]


@pytest.mark.requirement("B01")
async def test_b01_the_overview_has_a_button_that_probes_again(app: Starlette, client: Visitor, script: Visitor):
    target = raw_target(numb=["server/discover"]).model_dump(mode="json")
    path = (await script.post("/s", {"target": target})).json()["url"]
    await ready(script, path)
    assert "Probe again" not in (await client.get(path)).text, "it was found out a moment ago"
    await client.form(f"{path}/connect", {"again": "1"})
    assert (await ready(script, path))["connection"]["era_from"] == "memory"
    page = (await client.get(path)).text
    assert 'name="again" value="probe"' in page and "Probe again" in page
    await client.form(f"{path}/connect", {"again": "probe"})
    assert (await ready(script, path))["connection"]["era_from"] == "probe"


@pytest.mark.requirement("B20")
async def test_b20_stderr_says_which_lines_our_probe_caused(client: Visitor, script: Visitor):
    complaint = f"open for business\n{REPORT}"
    target = raw_target(complains=["server/discover"], complaint=complaint).model_dump(mode="json")
    path = (await script.post("/s", {"target": target})).json()["url"]
    overview = await ready(script, path)
    lines = (await script.json(f"{path}/stderr"))["lines"]
    while len(lines) < 4:
        lines = (await script.json(f"{path}/stderr"))["lines"]
    assert [one["by_probe"] for one in lines] == [False, True, True, True]
    overview = await script.json(path)
    assert (overview["counts"]["stderr_lines"], overview["counts"]["stderr_lines_by_probe"]) == (4, 3)
    page = (await client.get(f"{path}/stderr")).text
    assert page.count('class="probed"') == 3 and "3 lines caused by Parley" in page
    assert 'id="n-stderr">1<' in page
    logging = (await client.get(f"{path}/logging")).text
    assert "<span>open for business</span>" in logging and "<span>1 validation" not in logging


@pytest.mark.requirement("B20")
async def test_b20_the_page_says_how_long_it_waits_and_how_to_wait_longer(client: Visitor, script: Visitor):
    target = raw_target(silent=["initialize"]).model_dump(mode="json")
    options = {"era": "legacy", "handshake_timeout_ms": 45_000}
    path = (await script.post("/s", {"target": target, "options": options})).json()["url"]
    page = ""
    while "at most" not in page:
        page = (await client.get(path)).text
    assert "Waiting for the server to answer, 45 s at most." in page
    form = (await client.get(f"{path}/connect")).text
    assert 'name="option.handshake_timeout_ms" value="45000"' in form
    await script.post(f"{path}/close", {})
    for wrong in (0, -1, 86_400_001, "soon"):
        body = {"target": target, "options": {"handshake_timeout_ms": wrong}}
        refused = await script.post("/s", body)
        assert refused.status == 422 and "/options/handshake_timeout_ms" in refused.error["fields"]
