"""A server with shelves: as many tools, resources, templates and prompts as a test wants, in pages; it remembers all.

    python shelf.py [--with JSON]

Raw JSON-RPC over stdio with the standard library alone. Its tool `seen` tells every message it read, `change` puts
other things on a shelf and says so, `send` writes what a test wants to arrive. With `restless`, {method: "before" or
"after"}, it says so whenever that list is read.
"""

import base64
import json
import sys
import time

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(40)).decode()
PDF = base64.b64encode(b"%PDF-1.4\n%%EOF\n").decode()
CAPABILITIES = {
    "tools": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "prompts": {"listChanged": True},
    "completions": {},
    "logging": {},
}
KEYS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}


def tool(number):
    words = f"Does thing number {number} with great care."
    return {"name": f"tool_{number}", "description": words, "inputSchema": {"type": "object", "properties": {"a": {}}}}


def resource(number):
    return {"uri": f"shelf://book/{number}", "name": f"book {number}", "mimeType": "text/plain", "size": 40 + number}


SPECIAL = [
    {
        "uri": "shelf://annotated",
        "name": "annotated",
        "title": "An annotated one",
        "description": "It says <b>much</b> of itself.",
        "mimeType": "text/markdown",
        "size": 2048,
        "annotations": {"audience": ["user"], "priority": 0.75, "lastModified": "2026-01-02T03:04:05Z"},
        "icons": [{"src": "https://icons.example/i.png", "mimeType": "image/png"}],
        "_meta": {"example.org/unknown": {"kept": True}},
    }
]
CONTENTS = {
    "shelf://annotated": [{"text": "# Heading\n\nSome *Markdown*.", "mimeType": "text/markdown"}],
    "shelf://json": [{"text": '{"a": [1, 2]}', "mimeType": "application/json"}],
    "shelf://html": [{"text": "<h1>Hello</h1><script>parent.pwned=1</script>", "mimeType": "text/html"}],
    "shelf://picture": [{"blob": PNG, "mimeType": "image/png"}],
    "shelf://paper": [{"blob": PDF, "mimeType": "application/pdf"}],
    "shelf://several": [{"text": "one", "mimeType": "text/plain"}, {"text": "two", "mimeType": "text/plain"}],
}
PROMPTS = [
    {
        "name": "letter",
        "title": "A letter",
        "description": "With everything in it.",
        "arguments": [
            {"name": "to", "description": "Whom it is for.", "required": True},
            {"name": "tone", "title": "Tone"},
        ],
    },
    {"name": "plain"},
]
MESSAGES = [
    {"role": "user", "content": {"type": "text", "text": "Dear $to"}},
    {"role": "user", "content": {"type": "image", "data": PNG, "mimeType": "image/png"}},
    {"role": "assistant", "content": {"type": "resource_link", "uri": "shelf://json", "name": "a link"}},
    {"role": "assistant", "content": {"type": "resource", "resource": {"uri": "shelf://x", "text": "embedded"}}},
    {"role": "user", "content": {"type": "audio", "data": PNG, "mimeType": "audio/wav"}},
]
TEMPLATES = [
    {"name": "book", "uriTemplate": "shelf://book/{number}", "description": "One book.", "mimeType": "text/plain"},
    {"name": "search", "uriTemplate": "shelf://find/{topic}{?tags*,year}"},
    {"name": "broken", "uriTemplate": "shelf://{oops"},
]


class Shelf:
    def __init__(self, settings):
        self.settings = settings
        self.seen = []
        own = [{"name": name, "inputSchema": {"type": "object"}} for name in ("seen", "change", "send")]
        self.lists = {
            "tools": own + [tool(number) for number in range(settings.get("tools", 3))],
            "resources": SPECIAL + [resource(number) for number in range(settings.get("resources", 3))],
            "resourceTemplates": list(TEMPLATES),
            "prompts": list(PROMPTS),
        }

    def write(self, message):
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()

    def page(self, key, cursor):
        items, size = self.lists[key], self.settings.get("page", 1_000)
        start = int(cursor or 0)
        result = {key: items[start : start + size]}
        if start + size < len(items) or self.settings.get("endless"):
            result["nextCursor"] = str((start + size) % max(1, len(items)))
        return result

    def call(self, name, given):
        if name == "seen":
            return {"content": [], "structuredContent": {"seen": self.seen}}
        if name == "change":
            key = given["list"]
            gone = set(given.get("remove", []))
            self.lists[key] = [one for one in self.lists[key] if one.get("name") not in gone] + given.get("add", [])
            for one in self.lists[key]:
                one.update(given.get("patch", {}).get(one.get("name"), {}))
            kind = "resources" if key == "resourceTemplates" else key
            self.write({"method": f"notifications/{kind}/list_changed"})
        if name == "send":
            for message in given["messages"]:
                self.write(message)
        return {"content": [{"type": "text", "text": name}]}

    def answer(self, method, params):
        """The result, or an error."""
        if method == "initialize":
            capabilities = self.settings.get("capabilities", CAPABILITIES)
            info = {"name": "shelf", "version": "1"}
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": capabilities,
                "serverInfo": info,
            }, None
        if method in KEYS:
            return self.page(KEYS[method], params.get("cursor")), None
        if method == "tools/call":
            return self.call(params["name"], params.get("arguments") or {}), None
        if method == "resources/read":
            uri = params["uri"]
            if uri.startswith("shelf://missing"):
                return None, {"code": -32002, "message": "Resource not found", "data": {"uri": uri}}
            found = CONTENTS.get(uri, [{"text": f"content of {uri}, read {len(self.seen)}", "mimeType": "text/plain"}])
            return {"contents": [{"uri": uri, **one} for one in found]}, None
        if method == "prompts/get":
            to = (params.get("arguments") or {}).get("to", "nobody")
            return {"messages": json.loads(json.dumps(MESSAGES).replace("$to", to))}, None
        if method == "completion/complete":
            typed = params["argument"]["value"]
            many = self.settings.get("suggestions", 5)
            values = [f"{typed}{number}" for number in range(many)]
            return {"completion": {"values": values, "total": 250, "hasMore": True}}, None
        if method in {"ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}:
            return {}, None
        return None, {"code": -32601, "message": "Method not found"}

    def serve(self):
        sys.stderr.write("shelf is open\n")
        sys.stderr.flush()
        for line in sys.stdin:
            message = json.loads(line)
            method, params = message.get("method"), message.get("params") or {}
            self.seen.append({"method": method, "params": {k: v for k, v in params.items() if k != "_meta"}})
            if "id" not in message or method is None or method in self.settings.get("silent", []):
                continue
            time.sleep(self.settings.get("slow", 0))
            result, error = self.answer(method, params)
            restless = self.settings.get("restless", {}).get(method)
            changed = {"method": f"notifications/{method.partition('/')[0]}/list_changed"}
            if restless == "before":
                self.write(changed)
            self.write({"id": message["id"], **({"error": error} if error else {"result": result})})
            if restless == "after":
                self.write(changed)


if __name__ == "__main__":
    Shelf(json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}).serve()
