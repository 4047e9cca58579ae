"""A stdio server of raw JSON lines that asks, and measures how soon it is answered.

Started as `python -I -S asker.py`. Its tools, each with `count` and `per_second`: `by_task` asks by a task, waits for
the task object, and returns the seconds that each took; `plainly` writes a log notification (`n=NUMBER at=SECONDS`)
and, half a turn later, asks with a form (`ask=NUMBER at=SECONDS`), so that both are seen under the same conditions.
Every ask is taken back before the next, so that nobody needs to answer.
"""

import json
import sys
import time

FORM = {"type": "object", "properties": {"name": {"type": "string"}, "seats": {"type": "integer", "default": 1}}}


def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def reply_to(number):
    """The next answer to a request of ours; what else comes meanwhile is of no interest."""
    for text in sys.stdin:
        message = json.loads(text)
        if message.get("id") == number and "method" not in message:
            return message
    raise SystemExit


def by_task(count, per_second):
    took = []
    for number in range(count):
        params = {"message": "By a task", "requestedSchema": FORM, "task": {"ttl": 60000}}
        began = time.perf_counter()
        send(id=f"t{number}", method="elicitation/create", params=params)
        task = reply_to(f"t{number}")["result"]["task"]
        took.append(time.perf_counter() - began)
        send(id=f"c{number}", method="tasks/cancel", params={"taskId": task["taskId"]})
        reply_to(f"c{number}")
        time.sleep(1 / per_second)
    return took


def plainly(count, per_second):
    for number in range(count):
        time.sleep(0.5 / per_second)
        send(method="notifications/message", params={"level": "info", "data": f"n={number} at={time.time():.6f}"})
        time.sleep(0.5 / per_second)
        message = f"ask={number} at={time.time():.6f}"
        send(id=f"q{number}", method="elicitation/create", params={"message": message, "requestedSchema": FORM})
        time.sleep(0.5 / per_second)
        send(method="notifications/cancelled", params={"requestId": f"q{number}"})
    return []


def call(params):
    given = params["arguments"]
    took = {"by_task": by_task, "plainly": plainly}[params["name"]](given["count"], given["per_second"])
    return {"content": [{"type": "text", "text": json.dumps(took)}]}


METHODS = {
    "initialize": lambda params: {
        "protocolVersion": params["protocolVersion"],
        "capabilities": {"tools": {}, "logging": {}},
        "serverInfo": {"name": "asker", "version": "1.0"},
    },
    "ping": lambda params: {},
    "tools/list": lambda params: {
        "tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("by_task", "plainly")]
    },
    "tools/call": call,
}

for text in sys.stdin:
    request = json.loads(text)
    if "id" in request and "method" in request:
        if request["method"] in METHODS:
            send(id=request["id"], result=METHODS[request["method"]](request.get("params") or {}))
        else:
            send(id=request["id"], error={"code": -32601, "message": "Method not found"})
