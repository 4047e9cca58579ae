"""A server of large results and of every kind of content: `big` gives N objects, `fields` takes odd arguments.

Raw JSON-RPC over stdio with the standard library alone.
"""

import base64
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from serving import Refused, serve

EVIL = "</pre><img src=x onerror=window.pwned=1><script>window.pwned=2</script>"
MARKDOWN = f"# Head\n\n**bold** {EVIL} [x](javascript:window.pwned=5) ![y](https://tracker.example/y.png)"
PAGE = (
    "<style>p {color: rgb(1, 2, 3)}</style><p>A page</p><script>parent.pwned = 6; top.pwned = 7</script>"
    "<img src='https://tracker.example/z.png' onerror='parent.pwned = 8'><form action='/s'><button>Send</button></form>"
)
TOOLS = [
    {
        "name": "big",
        "inputSchema": {
            "type": "object",
            "properties": {
                "n": {"type": "integer", "minimum": 0, "default": 1000},
                "how": {"enum": ["text", "structured"], "default": "text"},
            },
        },
    },
    {
        "name": "fields",
        "inputSchema": {
            "type": "object",
            "properties": {
                "title": {"type": "string", "minLength": 2},
                "count": {"type": "integer", "maximum": 10},
                "tags": {"type": "array", "items": {"type": "string"}},
                "place": {
                    "oneOf": [
                        {"type": "string", "title": "Name"},
                        {"type": "object", "title": "Point", "properties": {"lat": {"type": "number"}}},
                    ]
                },
                "more": {"type": "object", "additionalProperties": {"type": "integer"}},
                "file": {"type": "string", "contentEncoding": "base64"},
            },
            "required": ["title"],
        },
    },
    {"name": "kinds", "inputSchema": {"type": "object"}},
    {"name": "fails", "inputSchema": {"type": "object"}},
]


def made(n: int) -> dict:
    return {"id": n, "name": f"item {n}", "ok": n % 2 == 0, "price": n * 1.5, "a/b": {EVIL: [n, {"x": n}]}}


def kinds() -> list:
    def coded(raw: bytes) -> str:
        return base64.b64encode(raw).decode()

    svg = coded(b"<svg xmlns='http://www.w3.org/2000/svg' onload='window.pwned=3'/>")
    return [
        {"type": "image", "mimeType": "image/svg+xml", "data": svg},
        {"type": "image", "mimeType": "image/png", "data": coded(EVIL.encode())},
        {"type": "resource_link", "uri": "javascript:window.pwned=4", "name": EVIL},
        {"type": "resource_link", "uri": "https://example.org/x", "name": "a link"},
        {"type": "resource", "resource": {"uri": "x://y", "text": json.dumps({EVIL: EVIL})}},
        {"type": "text", "text": EVIL},
        {"type": "text", "text": MARKDOWN},
        {"type": "resource", "resource": {"uri": "ui://page", "mimeType": "text/html", "text": PAGE}},
    ]


def answer(name: str, arguments: dict) -> dict:
    if name == "big":
        items = [made(n) for n in range(arguments.get("n", 1000))]
        if arguments.get("how") == "structured":
            return {"content": [], "structuredContent": {"items": items}}
        return {"content": [{"type": "text", "text": json.dumps(items)}]}
    if name == "kinds":
        return {"content": kinds()}
    return {"content": [{"type": "text", "text": json.dumps(arguments)}], "structuredContent": arguments}


def called(name: str, arguments: dict) -> dict:
    if name == "fails":
        raise Refused({"code": -32602, "message": EVIL, "data": {EVIL: [EVIL]}})
    return answer(name, arguments)


serve({"name": "big", "version": "1"}, TOOLS, called)
