"""Words for what an HTTP server answers in the place of MCP: what happened, and what to do about it.

A request that got no answer at all has its words in exchanges.py.
"""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urldefrag, urljoin

from app import bounds
from app.core.challenges import challenges
from app.core.errors import Trouble
from app.egress import Answer, EgressError, split
from app.secrecy import masked_url, without

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
    403: ("The server refuses this client", "Check the headers and the server's rules."),
    404: ("There is nothing at this address", "Check the path: it often ends in /mcp."),
    405: ("The address takes no POST", "Check the path. For a server of the older kind choose the transport SSE."),
    429: ("The server says there were too many requests", "Try again later."),
}
_CREDENTIALS = "Sign in, where the server says how; or connect with a token or an Authorization header of your own."
_FAILED = ("The server failed", "Look at the server's log.")
_REFUSED = ("The server refused the request", "Check the address and the headers.")


def status_trouble(answer: Answer, body: bytes, url: str = "", secrets: Collection[str] = ()) -> Trouble:
    """What to say of an HTTP status that is not a success, in answer to a request to `url` with these secrets."""
    status, kind = answer.status, f"http-{answer.status}"
    if 300 <= status < 400:
        named = answer.header("location")
        where = without(_shown_address(named), secrets)
        return Trouble(
            kind,
            f"The server redirects ({status}) to {where or 'nowhere'}, and Parley does not follow there.",
            "Connect to that address, if you trust it. Parley follows a 307 or 308 within the origin, once.",
            redirect=_address(url, named),
        )
    said = "" if answer.compressed else excerpt(body, secrets)
    if status in (401, 403):
        wanted = challenges(without(text, secrets) for name, text in answer.headers if name == "www-authenticate")
        if status == 401 or wanted:
            heading = "401 Unauthorized: credentials needed" if status == 401 else "403 Forbidden: more rights needed"
            message = f"{heading}." + (f" It said: {said}" if said else "")
            return Trouble(kind, message, _CREDENTIALS, heading=heading, challenges=wanted)
    what, advice = _REFUSALS.get(status, _FAILED if status >= 500 else _REFUSED)
    after = answer.header("retry-after")
    if status == 429 and after.isdigit():
        advice = f"Try again in {after} s."
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


def _address(url: str, named: str) -> str:
    """Where a redirect leads, in full; empty when it leads nowhere that could be dialled."""
    if not named or len(named) > bounds.SERVER_ADDRESS:
        return ""
    try:
        where = urldefrag(urljoin(url, named)).url
        split(where)
    except (EgressError, ValueError):
        return ""
    return "" if where == url else where


def excerpt(body: bytes, secrets: Collection[str] = ()) -> str:
    """The beginning of what a server said, without what it may not say."""
    if body.lstrip()[:1] == b"<":
        return ""
    said = without(body[: bounds.BODY_QUOTED].decode(errors="replace"), secrets)
    text = " ".join(said[:_BODY_SHOWN].split())
    return f"“{text}”" if text else ""
