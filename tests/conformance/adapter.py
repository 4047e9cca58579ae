"""Parley as the client of one scenario of the public conformance suite: `python -m tests.conformance.adapter URL`.

The suite starts this with the address of its mock server, and says by the environment which scenario it plays. Here a
Parley of its own is started, and driven by nothing but its JSON interface, as a script would: connect, list, call,
answer what is asked. Ends with 0 when Parley did what was wanted of it; the suite judges what crossed the wire.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "a-token-for-the-conformance-suite"
WAIT = 20
DOCUMENT = "https://conformance-test.local/client-metadata.json"
"""The client id metadata document that `auth/basic-cimd` wants to see as a client id."""
REQUEST_STATE = ("test_mrtr_echo_state", "test_mrtr_unrelated", "test_mrtr_no_state", "test_mrtr_no_result_type")
"""What `sep-2322-client-request-state` wants called, in this order."""


@contextmanager
def parley() -> Iterator[httpx2.Client]:
    """A Parley process of its own, or the one that the environment names, and a client with its token."""
    if running := os.environ.get("CONFORMANCE_PARLEY"):
        with _client(running) as client:
            yield client
        return
    env = {name: value for name, value in os.environ.items() if not name.startswith("PARLEY_")}
    with tempfile.TemporaryDirectory(prefix="parley-conformance-") as data:
        config = Path(data) / "parley.toml"
        config.write_text(f'client_metadata_url = "{DOCUMENT}"\n', encoding="utf-8")
        command = [sys.executable, "-m", "app", "--no-open", "--port", "0", "--data-dir", data, "--config", str(config)]
        with subprocess.Popen(
            command, cwd=ROOT, env={**env, "PARLEY_TOKEN": TOKEN}, stdout=subprocess.PIPE, text=True
        ) as process:
            try:
                assert process.stdout is not None
                found = next(match for line in process.stdout if (match := re.search(r"http://127\.0\.0\.1:\d+", line)))
                with _client(found[0]) as client:
                    yield client
            finally:
                process.terminate()
                process.wait(WAIT)


def _client(address: str) -> httpx2.Client:
    headers = {"authorization": f"Bearer {TOKEN}", "accept": "application/json"}
    return httpx2.Client(base_url=address, headers=headers, timeout=2 * WAIT, trust_env=False)


class Script:
    """What a person would do, said to the JSON interface of one session."""

    def __init__(self, client: httpx2.Client, url: str, version: str, context: dict[str, Any]) -> None:
        self._client = client
        # A scenario of the newer revision is met as people meet it: Parley finds out what the server speaks.
        options = {"era": "auto" if version >= "2026-07-28" else "legacy"}
        target: dict[str, Any] = {"transport": "http", "url": url}
        if "client_id" in context:
            target["auth"] = auth(context)
        self._at = self._send("/s", {"target": target, "options": options})["url"]
        connection = self.get(f"?wait={WAIT}")["connection"]
        while connection["state"] != "ready":
            if connection["state"] == "lost" and not self.signs_in():
                sys.exit(f"not connected: {connection['error']}")
            connection = self.get(f"?wait={WAIT}")["connection"]
        print(f"connected: {connection['protocol_version']}", file=sys.stderr)

    def _send(self, path: str, body: dict[str, Any]) -> Any:
        reply = self._client.post(path, json=body)
        reply.raise_for_status()
        return reply.json()

    def get(self, path: str) -> Any:
        reply = self._client.get(f"{self._at}{path}")
        reply.raise_for_status()
        return reply.json()

    def signs_in(self) -> bool:
        """Be the person's browser, when one is waited for: open the address, and hand in where it leads. False when
        the sign-in has failed, or nobody wants one."""
        found = self.get(f"/sign-in?wait={WAIT}")
        if found["state"] == "waiting":
            reply = httpx2.get(found["authorization_url"], follow_redirects=False, timeout=WAIT, trust_env=False)
            self._send(f"{self._at}/sign-in", {"callback_url": reply.headers["location"]})
            found = self.get(f"/sign-in?wait={WAIT}")
        print(f"sign-in: {found['state']} {found.get('failure') or ''}", file=sys.stderr)
        return found["state"] in ("waiting", "signed_in")

    def listed(self, path: str, key: str) -> list[dict[str, Any]]:
        """A list of the server's; empty when it has none."""
        found = self.get(path)
        while found["state"] == "loading":
            if self.get("/inbox")["sign_in"]:
                self.signs_in()
            found = self.get(path)
        items: list[dict[str, Any]] = found[key]
        return items

    def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """One call to its end; asks that come with it are answered as `answer` says."""
        place = self._send(f"{self._at}/calls", {"method": method, "params": params})["id"]
        while True:
            call: dict[str, Any] = self.get(f"/calls/{place}?wait=1")
            inbox = self.get("/inbox")
            if inbox["sign_in"] and call["state"] == "running":
                self.signs_in()
            elif call["state"] == "waiting" or inbox["open"]:
                for ask in inbox["open"]:
                    self._send(f"{self._at}/asks/{ask['id']}/answer", answer(ask))
            elif call["state"] != "running":
                print(f"{method} {params.get('name', '')}: {call['state']} {call['error'] or ''}", file=sys.stderr)
                return call

    def end(self) -> None:
        self._send(f"{self._at}/close", {})


def auth(context: dict[str, Any]) -> dict[str, Any]:
    """What a scenario gives its client to prove itself with."""
    names = {"client_id": "client_id", "client_secret": "client_secret", "private_key_pem": "private_key"}
    given = {ours: context[theirs] for theirs, ours in names.items() if theirs in context}
    program = str(context.get("name", "")).startswith("auth/client-credentials")
    return {"kind": "client-credentials" if program else "oauth", **given}


def answer(ask: dict[str, Any]) -> dict[str, Any]:
    """The form as Parley has filled it in, with what is still missing; a text for sampling."""
    if ask["kind"] == "sampling":
        result = {"role": "assistant", "content": {"type": "text", "text": "Ahoy."}, "model": "human"}
        return {"action": "respond", "result": result}
    schema = ask["params"].get("requestedSchema", {})
    content = {one["name"]: one["value"] for one in ask["fields"] if one.get("value") is not None}
    return {"action": "accept", "content": {**stub(schema), **content}}


def stub(schema: dict[str, Any]) -> dict[str, Any]:
    """Something for each property that is required."""
    some = {"string": "text", "number": 5, "integer": 5, "boolean": True, "array": [], "object": {}, "null": None}
    properties = schema.get("properties", {})
    return {name: some.get(properties.get(name, {}).get("type"), "text") for name in schema.get("required", [])}


def play(script: Script, scenario: str, context: dict[str, Any]) -> None:
    """What a scenario wants from its client."""
    tools = script.listed("/tools", "tools")
    if "toolCalls" in context:
        for one in context["toolCalls"]:
            script.call("tools/call", {"name": one["name"], "arguments": one.get("arguments", {})})
    elif scenario == "sep-2322-client-request-state":
        for name in REQUEST_STATE:
            script.call("tools/call", {"name": name, "arguments": {}})
    else:
        for tool in tools:
            script.call("tools/call", {"name": tool["name"], "arguments": stub(tool.get("inputSchema", {}))})
    if scenario == "http-standard-headers":
        for resource in script.listed("/resources", "resources"):
            script.call("resources/read", {"uri": resource["uri"]})
        for prompt in script.listed("/prompts", "prompts"):
            wanted = {one["name"]: "text" for one in prompt.get("arguments", []) if one.get("required")}
            script.call("prompts/get", {"name": prompt["name"], "arguments": wanted})


def main(arguments: list[str]) -> int:
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    version = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "2025-11-25")
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    with parley() as client:
        script = Script(client, arguments[-1], version, context)
        play(script, scenario, context)
        script.end()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
