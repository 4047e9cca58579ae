"""Keys of models in a real process: by a script, by the form of the page, from the environment; none of them comes out
anywhere (S21)."""

import http.client
import json
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.cli.test_command_line import Parley, Start
from tests.cli.test_command_line import parley as parley
from tests.drive import raw_target
from tests.models.conftest import Providers
from tests.models.conftest import providers as providers
from tests.web.asgi import TOKEN

TYPED, FROM_ENVIRONMENT = "sk-typed-canary-77aa11ee5c", "sk-environment-canary-0d0d99"
IN_THE_PAGE = "sk-by-a-form-canary-4b61d9c2"
SAMPLING = {"messages": [{"role": "user", "content": {"type": "text", "text": "A caption?"}}], "maxTokens": 40}
DONE = '{"jsonrpc": "2.0", "id": "$ID", "result": {"content": []}}'
PAGES = [
    "", "/connect", "/inbox", "/models", "/models?name=by+hand", "/timeline", "/rules", "/calls", "/calls/c1",
    "/log", "/log.jsonl", "/tasks", "/stage",
    "/palette", "/compose", "/stderr", "/asks/a1", "/asks/a1?edit", "/asks/a1/models",
    "/calls/c1/snippet?as=json", "/calls/c1/snippet?as=python", "/calls/c1/snippet?as=curl",
]  # fmt: skip


class Stream:
    """What an open tab is sent."""

    def __init__(self, one: Parley, path: str) -> None:
        self.heard = ""
        self._connection = http.client.HTTPConnection("127.0.0.1", one.port, timeout=60)
        headers = {"authorization": f"Bearer {TOKEN}", "accept": "text/event-stream"}
        self._connection.request("GET", path, headers=headers)
        self._answer = self._connection.getresponse()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            while chunk := self._answer.read1(65536):
                self.heard += chunk.decode(errors="replace")
        except (OSError, ValueError):
            return

    def ended(self) -> None:
        self._reader.join(60)
        self._connection.close()


def drafted(one: Parley, path: str, model: str, state: str) -> Any:
    """Let a model write, and wait until that has come to this. The clients of providers take their time to import."""
    one.script("POST", f"{path}/draft", json.dumps({"model": model}))
    end = time.monotonic() + 150
    while (told := one.script("GET", path))["draft"]["state"] == "streaming":
        assert time.monotonic() < end, told
    assert told["draft"]["state"] == state, told["draft"]
    return told


@pytest.mark.requirement("S21", "R3-21")
@pytest.mark.slow
def test_no_key_is_in_a_page_a_stream_a_log_an_export_a_snippet_or_a_file(
    parley: Start, providers: Providers, tmp_path: Path
):
    config = tmp_path / "parley.toml"
    config.write_text(
        f"""[models.house]
provider = "anthropic"
base_url = "{providers.url("anthropic")}"
model = "key-1"
key_env = "HOUSE_KEY"
"""
    )
    data = tmp_path / "data"
    loud = {"OPENAI_LOG": "debug", "ANTHROPIC_LOG": "debug", "HOUSE_KEY": FROM_ENVIRONMENT}
    one = parley("--config", str(config), "--data-dir", str(data), PARLEY_TOKEN=TOKEN, **loud)
    target = raw_target().model_dump(mode="json")
    base = one.script("POST", "/s", json.dumps({"target": target, "options": {"era": "legacy"}}))["url"]
    assert one.script("GET", f"{base}?wait=20")["connection"]["state"] == "ready"
    stream = Stream(one, f"{base}/events?since=0&page=overview")
    line = {"jsonrpc": "2.0", "id": "s", "method": "sampling/createMessage", "params": SAMPLING}
    params = {"name": "say", "arguments": {"lines": [json.dumps(line), DONE]}}
    one.script("POST", f"{base}/calls", json.dumps({"method": "tools/call", "params": params}))
    [ask] = one.script("GET", f"{base}/inbox?wait=20")["open"]
    path = f"{base}/asks/{ask['id']}"
    mine = {"name": "mine", "provider": "openai", "base_url": providers.url("openai"), "model": "limit-1", "key": TYPED}
    seen = {"answer": json.dumps(one.script("POST", f"{base}/models", json.dumps(mine)))}
    for odd in ({**mine, "speed": 7}, {**mine, "name": "house"}, {**mine, "keys": TYPED}):
        seen[f"refused {odd}"[:20]] = one.ask(
            "POST",
            f"{base}/models",
            json.dumps(odd),
            authorization=f"Bearer {TOKEN}",
            accept="application/json",
            content_type="application/json",
        )[2]
    typed = urlencode({**mine, "name": "by hand", "key": IN_THE_PAGE})
    for fields in (typed, typed + "&speed=fast", typed.replace("by+hand", "house")):
        status, _, seen[f"form {fields[-20:]}"] = one.ask(
            "POST",
            f"{base}/models",
            fields,
            authorization=f"Bearer {TOKEN}",
            accept="text/html",
            content_type="application/x-www-form-urlencoded",
        )
        assert status in (303, 409, 422), status
    do = {"name": "by mine", "do": {"action": "model", "model": "mine"}}
    one.script("POST", f"{base}/rules", json.dumps(do))
    for model, key in (("mine", TYPED), ("by hand", IN_THE_PAGE), ("house", FROM_ENVIRONMENT)):
        told = drafted(one, path, model, "failed")
        assert "•••" in told["draft"]["problem"] and providers.next()["key"] == key, "it was used, and quoted"
    one.script("POST", f"{base}/models", json.dumps({**mine, "model": "words-1", "key": ""}))
    ready = drafted(one, path, "mine", "ready")
    assert providers.next()["key"] == TYPED, "an empty key keeps the one that is known"
    said = {"action": "respond", "result": ready["draft"]["content"]}
    one.script("POST", f"{path}/answer", json.dumps(said))
    for accept in ("application/json", "text/html"):
        for page in ["/", "/about", *(base + each for each in PAGES)]:
            status, headers, text = one.ask("GET", page, authorization=f"Bearer {TOKEN}", accept=accept)
            assert status in (200, 404, 409), (page, status)
            seen[f"{accept} {page}"] = text + json.dumps(headers)
    assert "words-1-2026" in seen[f"application/json {base}/log"] + seen[f"application/json {base}/log.jsonl"]
    one.script("POST", "/targets", json.dumps({"target": target, "name": "Kept"}))
    assert one.end()[0] == 0
    stream.ended()
    seen |= {"stream": stream.heard, "terminal": "".join(one.out), "errors": "".join(one.err)}
    assert stream.heard, "something was heard"
    files = [each for each in data.rglob("*") if each.is_file()]
    assert files
    seen |= {str(each): each.read_bytes().decode(errors="replace") for each in files}
    for canary in (TYPED, IN_THE_PAGE, FROM_ENVIRONMENT):
        for part in (canary, canary[3:], canary[-12:]):
            assert [where for where, text in seen.items() if part in text] == []
    assert "Traceback" not in seen["errors"], seen["errors"]
