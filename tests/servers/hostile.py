"""A server that attacks the page: markup, htmx attributes and SSE lines in every text it can send (S29-S32).

Raw JSON-RPC over stdio with the standard library alone, so that nothing cleans what it says.
"""

import json
import sys

ATTACKS = [
    "<script>window.pwned=1</script>",
    '<img src=x onerror="window.pwned=2">',
    '"><svg onload=window.pwned=3>',
    "{{7*7}}${7*7}",
    "</textarea><script>window.pwned=4</script>",
    '<div hx-get="/about" hx-trigger="load" hx-on:load="window.pwned=5" data-hx-get="/about">x</div>',
    '<hx-partial hx-target="body" hx-swap="innerHTML">gone</hx-partial>',
    '<template hx type="partial" hx-target="body">gone</template>',
    "line\n\nevent: bye\ndata: closed\n\nid: 1\r\rdata: <b>\u2028\u2029x",
    "javascript:window.pwned=6",
    "'\" onfocus=window.pwned=7 autofocus x='",
    "<head><title>stolen</title></head>",
    "\u202eevil\u202c \ufeff \x1b[31mred\x07",
    '<a href="javascript:window.pwned=8">click</a><iframe srcdoc="<script>parent.pwned=9</script>"></iframe>',
]
ALL = " ".join(ATTACKS)


def tools() -> list[object]:
    schema = {
        "type": "object",
        "title": ALL,
        "description": ALL,
        "properties": {
            attack: {"type": "string", "title": attack, "description": attack, "default": attack, "enum": [attack]}
            for attack in ATTACKS
        },
        "required": ATTACKS,
    }
    named = [
        {"name": attack, "title": attack, "description": ALL, "inputSchema": schema, "annotations": {"title": attack}}
        for attack in ATTACKS
    ]
    odd = ["", ".", "..", "~1", "a/b", "same", "same", "a?b#c", "../../about", "x" * 3000]
    plain = {"type": "object"}
    return [*named, *({"name": name, "inputSchema": plain} for name in odd), "not an object", None, {"name": 7}]


def say(**message: object) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(message: dict) -> None:
    method, rpc_id = message.get("method"), message.get("id")
    if method == "initialize":
        info = {"name": ALL, "title": ATTACKS[0], "version": ATTACKS[1], "description": ALL, "websiteUrl": ATTACKS[9]}
        capabilities = {"tools": {}, "logging": {}, ATTACKS[0]: {ATTACKS[5]: True}}
        version = message["params"]["protocolVersion"]
        result = {"protocolVersion": version, "serverInfo": info, "capabilities": capabilities, "instructions": ALL}
        say(id=rpc_id, result=result)
        print(ALL, file=sys.stderr, flush=True)
    elif method == "notifications/initialized":
        sys.stdout.write(ALL.replace("\n", " ") + "\n")
        sys.stdout.flush()
        say(method=ATTACKS[0], params={"data": ALL})
        say(id=ATTACKS[6], method=ATTACKS[5], params={"message": ALL})
    elif method == "tools/list":
        say(id=rpc_id, result={"tools": tools()})
    elif method == "tools/call":
        token = message["params"].get("_meta", {}).get("progressToken")
        if token is not None:
            say(method="notifications/progress", params={"progressToken": token, "progress": 1, "message": ALL})
        say(method="notifications/message", params={"level": ATTACKS[0], "logger": ALL, "data": ALL})
        if message["params"].get("name") == ATTACKS[1]:
            say(id=rpc_id, error={"code": -32000, "message": ALL, "data": {ALL: ALL}})
            return
        content = [
            *({"type": "text", "text": attack} for attack in ATTACKS),
            {"type": "image", "mimeType": ATTACKS[1], "data": ALL},
            {"type": "resource_link", "uri": ATTACKS[9], "name": ALL},
            {"type": "resource", "resource": {"uri": ATTACKS[0], "mimeType": ATTACKS[2], "text": ALL}},
            {"type": ATTACKS[0]},
            ATTACKS[0],
        ]
        say(id=rpc_id, result={"content": content, "structuredContent": {ALL: [ALL, {ATTACKS[6]: ALL}]}})
    elif rpc_id is not None:
        say(id=rpc_id, error={"code": -32601, "message": ALL})


for line in sys.stdin:
    received = json.loads(line)
    if "method" in received:
        answer(received)
