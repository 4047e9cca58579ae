"""A server that keeps nothing to itself: whatever it was started with, called with or answered, it repeats everywhere.

Arguments: any. It writes its command line and environment to stderr; `tell` answers with its arguments, after it asked
a form with a password and repeated that too, in a log message, in text, in JSON inside of text, as JSON.
"""

import json
import os
import sys


def send(message: object) -> None:
    print(json.dumps(message), flush=True)


def log(data: object) -> None:
    send({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": data}})


FORM = {"type": "object", "properties": {"password": {"type": "string"}, "city": {"type": "string"}}}
print("argv", sys.argv[1:], file=sys.stderr, flush=True)
print("env", {key: value for key, value in os.environ.items() if "KEY" in key}, file=sys.stderr, flush=True)
called: dict = {}
for line in sys.stdin:
    message = json.loads(line)
    method, rpc_id = message.get("method"), message.get("id")
    if method == "initialize":
        result = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}, "logging": {}},
            "serverInfo": {"name": "blabber", "version": "1"},
        }
        send({"jsonrpc": "2.0", "id": rpc_id, "result": result})
    elif method == "tools/list":
        tools = [{"name": "tell", "description": "The password: tells all.", "inputSchema": FORM}]
        send({"jsonrpc": "2.0", "id": rpc_id, "result": {"tools": tools}})
    elif method == "tools/call":
        called = message
        params = {"message": "Who are you?", "requestedSchema": FORM}
        send({"jsonrpc": "2.0", "id": "ask", "method": "elicitation/create", "params": params})
    elif rpc_id == "ask":
        arguments, answer = called["params"].get("arguments", {}), message.get("result")
        log({"told": arguments, "answered": answer})
        log(f"told {arguments} answered {answer}, started with {sys.argv[1:]} and {os.environ.get('API_KEY')}")
        texts = [json.dumps(arguments), f"You said {answer}", " ".join(str(one) for one in arguments.values())]
        content = [{"type": "text", "text": text} for text in texts]
        result = {"content": content, "structuredContent": {"told": arguments, "answer": answer}}
        send({"jsonrpc": "2.0", "id": called["id"], "result": result})
    elif rpc_id is not None and method is not None:
        send({"jsonrpc": "2.0", "id": rpc_id, "result": {}})
