"""The loop of a small server over stdio, for those that only bring tools: raw JSON-RPC, the standard library alone.

A script that is started alone finds it beside itself: `sys.path.insert(0, str(Path(__file__).parent))`.
"""

import json
import sys
from collections.abc import Callable
from typing import Any


class Refused(Exception):
    """What a tool answers with an error of the protocol."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__()
        self.error = error


def serve(info: dict[str, Any], tools: list[dict[str, Any]], answer: Callable[[str, dict[str, Any]], Any]) -> None:
    """Speak with a client until it ends: `answer` is given the name of a tool and its arguments."""
    for line in sys.stdin:
        message = json.loads(line)
        method, params = message.get("method"), message.get("params") or {}
        said: dict[str, Any] = {"jsonrpc": "2.0", "id": message.get("id")}
        if method == "initialize":
            version = params["protocolVersion"]
            said["result"] = {"protocolVersion": version, "serverInfo": info, "capabilities": {"tools": {}}}
        elif method == "tools/list":
            said["result"] = {"tools": tools}
        elif method == "tools/call":
            try:
                said["result"] = answer(params["name"], params.get("arguments", {}))
            except Refused as fault:
                said["error"] = fault.error
        elif method == "ping":
            said["result"] = {}
        elif "id" in message:
            said["error"] = {"code": -32601, "message": "Method not found"}
        else:
            continue
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()
