"""A stdio server of raw JSON lines that is faster than anything it talks to, and writes at the pace it is told.

Started as `python -I -S pace.py`; on no SDK, which would write about 1,000 messages a second. Its tools: `echo`;
`pace` with `count` and `per_second` (0: as fast as the pipe takes them), which sends log notifications whose text is
`n=NUMBER at=SECONDS`, the wall time at which it was written; and `objects` with `count` and `how` (`text`,
`structured`), a result of so many small objects whose `_meta` has the wall time at which it was ready to be written.
"""

import json
import sys
import time

LINES_AT_ONCE = 100


def send(*lines):
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def line(number):
    params = f'{{"level":"info","logger":"pace","data":"n={number} at={time.time():.6f}"}}'
    return f'{{"jsonrpc":"2.0","method":"notifications/message","params":{params}}}'


def pace(count, per_second):
    if not per_second:
        for start in range(0, count, LINES_AT_ONCE):
            send(*(line(number) for number in range(start, min(start + LINES_AT_ONCE, count))))
        return
    began = time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, began + number / per_second - time.monotonic()))
        send(line(number))


def objects(count, how):
    """The result as a text of JSON, which the caller puts into the line as it is."""
    items = [{"id": n, "name": f"item {n}", "price": n / 2, "tags": ["a", f"t{n % 7}"]} for n in range(count)]
    body = f'"content":[],"structuredContent":{json.dumps({"items": items})}'
    if how == "text":
        body = f'"content":[{{"type":"text","text":{json.dumps(json.dumps(items))}}}]'
    return f'{{{body},"_meta":{{"at":{time.time():.6f}}}}}'


def call(params):
    """`echo` says its message, `pace` when it began and when it had written everything."""
    given, began = params.get("arguments") or {}, time.time()
    if params["name"] == "pace":
        pace(given["count"], given["per_second"])
        return {"content": [{"type": "text", "text": json.dumps([began, time.time()])}]}
    return {"content": [{"type": "text", "text": given["message"]}]}


TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("echo", "pace", "objects")]
METHODS = {
    "initialize": lambda params: {
        "protocolVersion": params["protocolVersion"],
        "capabilities": {"tools": {}, "logging": {}},
        "serverInfo": {"name": "pace", "version": "1.0"},
    },
    "ping": lambda params: {},
    "tools/list": lambda params: {"tools": TOOLS},
    "tools/call": call,
}

for text in sys.stdin:
    request = json.loads(text)
    if "id" in request and request.get("method") == "tools/call" and request["params"]["name"] == "objects":
        given = request["params"]["arguments"]
        number, result = json.dumps(request["id"]), objects(given["count"], given["how"])
        send(f'{{"jsonrpc":"2.0","id":{number},"result":{result}}}')
    elif "id" in request and request.get("method") in METHODS:
        result = METHODS[request["method"]](request.get("params") or {})
        send(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}))
    elif "id" in request and "method" in request:
        error = {"code": -32601, "message": "Method not found"}
        send(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}))
