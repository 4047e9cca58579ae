"""A desk that asks one question, as one for a room is: a choice, and a word why. Raw JSON-RPC over stdio, no SDK."""

import json
import sys

QUESTION = {
    "message": "We have four free days in May. Where should the team go?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "destination": {
                "type": "string",
                "title": "Destination",
                "enum": ["Bergen", "Porto", "Ljubljana", "Stay home"],
            },
            "why": {"type": "string", "title": "Why?"},
        },
        "required": ["destination"],
    },
}
TOOL = {"name": "holiday", "description": "Asks where to go.", "inputSchema": {"type": "object"}}


def say(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


waiting, asked = {}, 0
for line in sys.stdin:
    message = json.loads(line)
    method, rpc_id = message.get("method"), message.get("id")
    if method == "initialize":
        info = {"name": "travel-desk", "title": "Nordwind Travel Desk", "version": "1.0.0"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
        say(id=rpc_id, result=result)
    elif method == "tools/list":
        say(id=rpc_id, result={"tools": [TOOL]})
    elif method == "tools/call":
        asked += 1
        waiting[f"ask-{asked}"] = rpc_id
        say(id=f"ask-{asked}", method="elicitation/create", params=QUESTION)
    elif method is None and rpc_id in waiting:
        told = json.dumps(message.get("result"))
        say(id=waiting.pop(rpc_id), result={"content": [{"type": "text", "text": told}]})
    elif method is not None and rpc_id is not None:
        say(id=rpc_id, error={"code": -32601, "message": "Method not found"})
