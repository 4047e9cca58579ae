"""An MCP server that lets nobody in without a token, in both eras, in raw JSON; authorization.py starts it.

`read_tide` needs the scope `tide:read`, as does everything else; `move_boat` needs `boat:write` besides.
"""

from starlette.responses import JSONResponse, Response

READ, WRITE = "tide:read", "boat:write"
PREFIX = "io.modelcontextprotocol/"
MODERN = "2026-07-28"
INFO = {"name": "Harbour office", "version": "1.0"}
TOOLS = [
    {"name": "read_tide", "description": "The height of the tide.", "inputSchema": {"type": "object"}},
    {
        "name": "move_boat",
        "description": "Moves a boat to another berth. Needs boat:write.",
        "inputSchema": {"type": "object", "properties": {"berth": {"type": "string"}}},
    },
]


class Protected:
    """What it answers to whom."""

    def __init__(self, world):
        self.world = world

    def answer(self, request, metadata):
        if request.method != "POST":
            return Response(status_code=405)
        message = request.state.json or {}
        method, params = message.get("method", ""), message.get("params") or {}
        if method not in self.world.settings["open"]:
            refusal = self.refusal(request, params, metadata)
            if refusal is not None:
                return refusal
        if "id" not in message:
            return Response(status_code=202)
        modern = f"{PREFIX}protocolVersion" in (params.get("_meta") or {})
        if modern and MODERN not in self.world.settings["eras"]:
            return self.reply(message, 400, error={"code": -32600, "message": "Unsupported protocol version"})
        if not modern and self.world.settings["eras"] == [MODERN]:
            return self.reply(
                message, 400, error={"code": -32022, "message": "Unsupported", "data": {"supported": [MODERN]}}
            )
        result = self.result(method, params, modern)
        if result is None:
            error = {"code": -32601, "message": "Method not found"}
            return self.reply(message, 404 if modern else 200, error=error)
        return self.reply(message, 200, result={**result, **({"resultType": "complete"} if modern else {})})

    def refusal(self, request, params, metadata):
        """Why this request is not answered; None when it may be."""
        settings, words = self.world.settings, request.headers.get("authorization", "")
        scheme, _, value = words.partition(" ")
        token = self.world.token(value) if scheme.lower() == "bearer" else None
        pointer = f', resource_metadata="{metadata}"' if settings["points"] else ""
        if token is None or token.resource not in (self.world.resource, settings["resource"].get("resource")):
            why = ', error="invalid_token", error_description="The token is not good (any more)"' if words else ""
            honest = f'Bearer realm="harbour", scope="{READ}"{why}{pointer}'
            challenge = honest if settings["challenge"] is None else settings["challenge"]
            return self.refused(401, challenge)
        has, needs = set(token.scope.split()), {READ}
        if params.get("name") == "move_boat":
            needs = {READ, WRITE}
        if needs <= has and settings["enough"]:
            return None
        more = " ".join(sorted(needs - has)) or WRITE
        return self.refused(403, f'Bearer error="insufficient_scope", scope="{more}"{pointer}')

    def refused(self, status, challenge):
        body = {"error": "invalid_token" if status == 401 else "insufficient_scope"}
        return JSONResponse(body, status, {"www-authenticate": challenge} if challenge else {})

    def result(self, method, params, modern):
        fresh = {"ttlMs": 0, "cacheScope": "private"} if modern else {}
        if method == "initialize":
            return {"protocolVersion": "2025-11-25", "serverInfo": INFO, "capabilities": {"tools": {}}}
        if method == "server/discover" and modern:
            about = {f"{PREFIX}serverInfo": INFO}
            return {"supportedVersions": [MODERN], "capabilities": {"tools": {}}, "_meta": about, **fresh}
        if method == "tools/list":
            return {"tools": TOOLS, **fresh}
        if method == "ping":
            return {}
        if method == "tools/call":
            berth = (params.get("arguments") or {}).get("berth", "4")
            said = {"read_tide": "The tide is at 2.4 m.", "move_boat": f"The boat lies at berth {berth}."}
            text = said.get(params.get("name"), "There is no such tool.")
            return {"content": [{"type": "text", "text": text}], "isError": params.get("name") not in said}
        return None

    def reply(self, message, status, **body):
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], **body}, status)
