"""Writes down the input schemas of the demo server and of server-everything: `python -m tests.unit.schemas.record`.

Run it when one of the two has changed; the tests read what it wrote.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests import peers

HERE = Path(__file__).parent


def schemas(command: list[str]) -> dict[str, Any]:
    """The input schemas of a server by tool, asked for over stdio as any client would."""
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {"sampling": {}, "elicitation": {}, "roots": {}},
        "clientInfo": {"name": "record", "version": "1"},
    }
    asked = (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    )
    env = {"TERM": "dumb", "PATH": os.environ["PATH"], **peers.node_env()}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env, text=True
    ) as child:
        assert child.stdin is not None and child.stdout is not None
        for each in asked:
            child.stdin.write(json.dumps(each) + "\n")
            child.stdin.flush()
        for line in child.stdout:
            message = json.loads(line)
            if message.get("id") == 2 and "result" in message:
                child.terminate()
                return {tool["name"]: tool["inputSchema"] for tool in message["result"]["tools"]}
    raise RuntimeError(f"{command} did not answer")


if __name__ == "__main__":
    for name, command in (
        ("demo", [sys.executable, "-m", "app.demo.server"]),
        ("everything", peers.everything_stdio()),
    ):
        text = json.dumps(schemas(command), indent=1, ensure_ascii=False)
        (HERE / f"{name}.json").write_text(text + "\n", encoding="utf-8")
