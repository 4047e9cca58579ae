"""A small CRM over stdio, as people write servers: a search with six arguments, and results of every shape.

`search_accounts` gives a list of equal objects beside two scalars; `wrapped` what FastMCP makes of a value that is no
object; `notes` Markdown; `many` columns; `nested` lists beside the list. Raw JSON-RPC with the standard library alone.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from serving import serve

NAMES = ("Alster", "Brocken", "Dollart", "Eider", "Fehmarn", "Harz", "Hunte", "Isar", "Jade", "Leine", "Mulde")
CITIES = ("Hamburg", "Wernigerode", "Emden", "Rendsburg", "Burg", "Goslar", "Munich", "Wilhelmshaven", "Hanover")
TEXT = {"type": "string"}
SEARCH = {
    "name": "search_accounts",
    "title": "Search accounts",
    "description": "Finds accounts by text, stage and value. Newest first.\n\n    Args:\n        query: the text",
    "annotations": {"readOnlyHint": True, "idempotentHint": True},
    "inputSchema": {
        "type": "object",
        "properties": {
            "query": {**TEXT, "description": "Text in name, city or notes"},
            "stage": {"enum": ["lead", "trial", "customer", "lost"]},
            "country": {**TEXT, "pattern": "^[A-Z]{2}$"},
            "min_value": {"type": "number", "title": "Minimum value"},
            "sort": {"enum": ["value", "-value", "name"]},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100_000, "default": 50},
        },
        "required": ["query"],
    },
    "outputSchema": {
        "type": "object",
        "properties": {
            "accounts": {
                "type": "array",
                "items": {"type": "object", "properties": {"renews": {**TEXT, "minLength": 1}}},
            }
        },
    },
}
ANY = {"type": "object", "properties": {"value": {}}}
TOOLS = [SEARCH, *({"name": name, "inputSchema": ANY} for name in ("wrapped", "notes", "many", "nested", "lines"))]


def account(n: int) -> dict:
    name = NAMES[n % len(NAMES)]
    return {
        "id": f"acc_{1041 + 37 * n}",
        "name": f"{name} Energy Grid" if n % 3 else f"{name} Energy",
        "stage": "customer",
        "city": CITIES[n % len(CITIES)],
        "value": 412_000 - 20_500 * (n % 19),
        "open_deals": n * 7 % 5,
        "team": ("north", "east", "south", "west")[n % 4],
        "renews": "" if n == 7 else f"2027-{n % 12 + 1:02}-28",
    }


def both(value: object) -> dict:
    """A value as structured content, and its text."""
    return {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": value}


def answer(name: str, given: dict) -> dict:
    value = given.get("value")
    if name == "search_accounts":
        accounts = [account(n) for n in range(given.get("limit", 50))]
        return both({"accounts": accounts, "total": 143, "next_cursor": "c_0020"})
    if name == "wrapped":
        items = value if isinstance(value, list) else [value]
        texts = [one if isinstance(one, str) else json.dumps(one) for one in items]
        return {"content": [{"type": "text", "text": one} for one in texts], "structuredContent": {"result": value}}
    if name == "notes":
        note = {"uri": "note://1", "mimeType": "text/markdown", "text": "# Call\n\nThey want **more** of it."}
        return {"content": [{"type": "resource", "resource": note}]}
    if name == "many":
        return both([{f"key_{column}": column * row for column in range(16)} for row in range(4)])
    if name == "nested":
        people = [{"name": "Ada", "age": 36}, {"name": "Grace", "age": 85}]
        return both({"people": people, "places": {"first": {"city": "London"}}, "ok": True})
    return {"content": [{"type": "text", "text": "\n".join(f"line {n}" for n in range(int(str(value or 300))))}]}


serve({"name": "acme-crm", "version": "1.4.0"}, TOOLS, answer)
