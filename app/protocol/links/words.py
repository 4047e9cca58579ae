"""Words for what an HTTP server answers in the place of MCP: what happened, and what to do about it.

A request that got no answer at all has its words in exchanges.py.
"""

from __future__ import annotations

from app import bounds
from app.core.errors import Trouble
from app.egress import Answer
from app.secrecy import masked_url

_BODY_SHOWN = 300

ENDED_EARLY = Trouble("cut", "The stream ended before the reply came.", "Look at the server's log, then call again.")
NOT_RESUMED = Trouble(
    "cut",
    "The stream ended before the reply came, and the server resumes no streams (405).",
    "It named an event to resume from, and must then serve it. Call again.",
)
NOT_FOUND_AGAIN = Trouble(
    "cut",
    "The stream ended before the reply came, and the server no longer knows where to resume it (404).",
    "It named an event to resume from, and must then serve it. Call again.",
)
COMPRESSED = Trouble("encoding", "The answer is compressed, though Parley asked for it not to be.", "")
FORGOTTEN = Trouble("session-gone", "The server no longer knows this session (404).", "Connect again for a new one.")


def status_trouble(status: int, url: str, answer: Answer, body: bytes) -> Trouble:
    """What to say of an HTTP status that is not a success."""
    said = "" if answer.compressed else excerpt(body)
    quoted = f" It said: {said}" if said else ""
    kind = f"http-{status}"
    after = answer.header("retry-after")
    match status:
        case 401:
            return Trouble(
                kind,
                f"The server wants to know who you are (401).{quoted}",
                "Add an Authorization header to the target. Signing in with OAuth comes with a later release.",
            )
        case 403:
            return Trouble(
                kind, f"The server refuses this client (403).{quoted}", "Check the headers and the server's rules."
            )
        case 404:
            return Trouble(
                kind, f"There is nothing at this address (404).{quoted}", "Check the path: it often ends in /mcp."
            )
        case 405:
            return Trouble(
                kind,
                f"The address takes no POST (405).{quoted}",
                "Check the path. For a server of the older kind choose the transport SSE.",
            )
        case 429:
            wait = f" Try again in {after} s." if after.isdigit() else " Try again later."
            return Trouble(kind, f"The server says there were too many requests (429).{quoted}", wait.strip())
        case _ if 300 <= status < 400:
            where = _shown_address(answer.header("location"))
            return Trouble(
                kind,
                f"The server redirects ({status}) to {where or 'nowhere'}, and Parley does not follow there.",
                "Connect to that address, if you trust it. Parley follows a 307 or 308 within the origin, once.",
            )
        case _ if status >= 500:
            return Trouble(kind, f"The server failed ({status}).{quoted}", "Look at the server's log.")
        case _:
            return Trouble(
                kind, f"The server refused the request ({status}).{quoted}", "Check the address and the headers."
            )


def content_trouble(content_type: str, body: bytes) -> Trouble:
    """What to say of a success that is no MCP answer."""
    if "html" in content_type or body.lstrip()[:1] == b"<":
        return Trouble(
            "html",
            "The address answers with a web page, not with MCP.",
            "Check the path: the MCP endpoint often ends in /mcp.",
        )
    found = f"is of the type {content_type}" if content_type else "has no content type"
    return Trouble(
        "content-type",
        f"The answer {found}; MCP answers are application/json or text/event-stream.",
        "Check the path, and that the server speaks streamable HTTP.",
    )


def _shown_address(text: str) -> str:
    """An address that a server named, as it may be shown."""
    return masked_url(text) if len(text) <= bounds.SERVER_ADDRESS else f"an address of {len(text):,} characters"


def excerpt(body: bytes) -> str:
    if body.lstrip()[:1] == b"<":
        return ""
    text = " ".join(body[:_BODY_SHOWN].decode(errors="replace").split())
    return f"“{text}”" if text else ""
