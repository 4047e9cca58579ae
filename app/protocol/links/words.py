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
NO_REPLY = Trouble("no-reply", "The answer does not contain the reply.", "")
FORGOTTEN = Trouble("session-gone", "The server no longer knows this session (404).", "Connect again for a new one.")


_REFUSALS = {
    401: (
        "The server wants to know who you are",
        "Add an Authorization header to the target. Signing in with OAuth comes with a later release.",
    ),
    403: ("The server refuses this client", "Check the headers and the server's rules."),
    404: ("There is nothing at this address", "Check the path: it often ends in /mcp."),
    405: ("The address takes no POST", "Check the path. For a server of the older kind choose the transport SSE."),
    429: ("The server says there were too many requests", "Try again later."),
}
_FAILED = ("The server failed", "Look at the server's log.")
_REFUSED = ("The server refused the request", "Check the address and the headers.")


def status_trouble(answer: Answer, body: bytes) -> Trouble:
    """What to say of an HTTP status that is not a success."""
    status, kind = answer.status, f"http-{answer.status}"
    if 300 <= status < 400:
        where = _shown_address(answer.header("location"))
        return Trouble(
            kind,
            f"The server redirects ({status}) to {where or 'nowhere'}, and Parley does not follow there.",
            "Connect to that address, if you trust it. Parley follows a 307 or 308 within the origin, once.",
        )
    what, advice = _REFUSALS.get(status, _FAILED if status >= 500 else _REFUSED)
    after = answer.header("retry-after")
    if status == 429 and after.isdigit():
        advice = f"Try again in {after} s."
    said = "" if answer.compressed else excerpt(body)
    return Trouble(kind, f"{what} ({status})." + (f" It said: {said}" if said else ""), advice)


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
