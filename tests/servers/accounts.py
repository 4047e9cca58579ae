"""A server as people write them for work: tools with many optional fields, `$ref`, nested objects, lists of objects.

Raw JSON-RPC over stdio with the standard library alone. A tool answers with the arguments that it got.
"""

import json
import sys

NAMES = ("billing_email", "currency", "discount", "employees", "fax", "industry", "notes", "owner_id", "phone", "site")
STRING = {"type": "string"}
DEFINITIONS = {
    "Stage": {"type": "string", "enum": ["prospect", "lead", "customer", "lost"], "title": "Stage"},
    "Address": {
        "type": "object",
        "title": "Address",
        "properties": {
            "street": {"type": "string", "title": "Street"},
            "zip": {"type": "string", "title": "Postal code", "pattern": r"^\d{5}$"},
            "po_box": {"type": "boolean"},
        },
    },
    "Contact": {
        "type": "object",
        "title": "Contact",
        "properties": {"email": STRING, "role": {"enum": ["buyer", "technical"]}, "primary": {"type": "boolean"}},
        "required": ["email"],
    },
}
ACCOUNT = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name"},
        "vat_id": {"type": "string", "title": "VAT number", "pattern": r"^[A-Z]{2}\d{9}$"},
        "stage": {"$ref": "#/$defs/Stage"},
        "source": {"anyOf": [STRING, {"type": "null"}], "title": "Lead source", "default": "web"},
        "renews": {"type": "string", "format": "date", "title": "Renewal date"},
        "notify_team": {"anyOf": [{"type": "boolean"}, {"type": "null"}], "title": "Notify Team", "default": None},
        "address": {"$ref": "#/$defs/Address"},
        "contacts": {"type": "array", "items": {"$ref": "#/$defs/Contact"}, "maxItems": 10},
        "tags": {"type": "array", "items": STRING, "default": []},
        **{name: {"type": "string", "title": name.replace("_", " ").title()} for name in NAMES},
        "discount": {"type": "integer", "minimum": 0, "maximum": 90, "default": 5},
    },
    "required": ["name", "vat_id", "stage", "address"],
    "$defs": DEFINITIONS,
}
SEARCH = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "title": "Query"},
        "min_value": {"type": "integer", "title": "Min Value", "default": 20},
        "archived": {"type": "boolean"},
        "exact": {"type": "boolean", "default": False},
    },
    "required": ["query", "archived"],
}
DOCSTRING = """Creates one account. Fails when `vat_id` is taken.

    Args:
        name: **the** name
"""
HINTS = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
TOOLS = [
    {"name": "create_account", "description": DOCSTRING, "inputSchema": ACCOUNT, "annotations": HINTS},
    {"name": "search_accounts", "title": "Search", "inputSchema": SEARCH},
]
PROMPT = {
    "name": "plan",
    "description": "Plans a trip.",
    "arguments": [
        {"name": "destination", "title": "Destination", "required": True},
        {"name": "days", "title": "How long", "description": "In `days`."},
    ],
}


def answer(method: str, params: dict) -> dict | None:
    match method:
        case "initialize":
            able = {"tools": {}, "prompts": {}}
            info = {"name": "crm", "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": able, "serverInfo": info}
        case "tools/list":
            return {"tools": TOOLS}
        case "prompts/list":
            return {"prompts": [PROMPT]}
        case "tools/call":
            return {"content": [{"type": "text", "text": json.dumps(params.get("arguments"))}]}
        case "prompts/get":
            said = json.dumps(params.get("arguments"))
            return {"messages": [{"role": "user", "content": {"type": "text", "text": said}}]}
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = answer(message["method"], message.get("params") or {})
    error = {"code": -32601, "message": "Method not found"}
    said = {"result": result} if result is not None else {"error": error}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}), flush=True)
