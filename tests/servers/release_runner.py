"""A server as an admin of a team lists one: it is told its region by the environment and asks before it acts.

Raw JSON-RPC over stdio with the standard library alone, so that any python3 of a machine runs it, as any user.
"""

import json
import os
import sys

TOOLS = [
    {
        "name": "build",
        "description": "Builds a release. Asks before it tags.",
        "inputSchema": {"type": "object", "properties": {"version": {"type": "string"}}},
    }
]
FORM = {
    "type": "object",
    "properties": {"tag": {"type": "string", "title": "Tag"}},
    "required": ["tag"],
}


def say(**message: object) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def main() -> None:
    waiting = None
    for line in sys.stdin:
        message = json.loads(line)
        method, key = message.get("method"), message.get("id")
        if method == "initialize":
            version = message["params"]["protocolVersion"]
            about = {"name": "release-runner", "version": "2.1"}
            say(id=key, result={"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about})
        elif method == "tools/list":
            say(id=key, result={"tools": TOOLS})
        elif method == "tools/call":
            waiting = key
            region = os.environ.get("REGION", "nowhere")
            words = {"message": f"Which tag does the build in {region} get?", "requestedSchema": FORM}
            say(id="ask-1", method="elicitation/create", params=words)
        elif method is None and key == "ask-1" and waiting is not None:
            tag = message.get("result", {}).get("content", {}).get("tag", "none")
            say(id=waiting, result={"content": [{"type": "text", "text": f"tagged {tag}"}]})
        elif method is not None and key is not None:
            say(id=key, error={"code": -32601, "message": "Method not found"})


main()
