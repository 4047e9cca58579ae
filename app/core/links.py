"""Addresses that a server wants a person to open: which may become a link, what to warn of, and error -32042.

Nothing here opens or fetches anything: an address is judged by its letters alone (R4-41). Knows no ask and no page.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from app.core.model import CallError, Finding, RequiredLink

URL_ELICITATION_REQUIRED = -32042
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_MOST = 20


def safe_link(url: str) -> str | None:
    """The address when it may become a link: http or https, strictly read; None for anything else (R4-44, S32)."""
    if any(ord(char) <= 32 or ord(char) == 127 for char in url):
        return None
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return url if parts.scheme in ("http", "https") and parts.hostname else None


def around_host(url: str) -> tuple[str, str, str]:
    """What stands before, in and after the host, so that a page can stress it."""
    host = urlsplit(url).hostname or ""
    at = url.lower().find(host, url.find("//") + 2)
    return (url[:at], url[at : at + len(host)], url[at + len(host) :]) if at >= 0 else (url, "", "")


def url_findings(url: str) -> list[Finding]:
    """What to warn of before a person opens an address (R4-43)."""
    if safe_link(url) is None:
        return [
            Finding(
                "R4-44",
                "must",
                "This is not an http or https address, so it cannot be opened from here.",
                "Decline it.",
            )
        ]
    parts = urlsplit(url)
    host = parts.hostname or ""
    findings = []
    if parts.username is not None or parts.password is not None:
        findings.append(
            Finding("R4-43", "should", "The address has a user name before the host, as tricks do.", "Look twice.")
        )
    if not host.isascii() or any(label.startswith("xn--") for label in host.split(".")):
        findings.append(
            Finding(
                "R4-43",
                "should",
                f"The host is written in other letters: {_punycode(host)}.",
                "It may imitate another one.",
            )
        )
    if parts.scheme == "http" and host not in _LOOPBACK:
        findings.append(
            Finding("R4-43", "should", "The address is not encrypted (http).", "Type nothing secret there.")
        )
    if parts.port is not None and parts.port not in (80, 443) and host not in _LOOPBACK:
        findings.append(Finding("R4-43", "note", f"The address uses the unusual port {parts.port}.", ""))
    return findings


def _punycode(host: str) -> str:
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        return host.encode("ascii", "backslashreplace").decode()


def required_links(error: CallError) -> tuple[list[RequiredLink], list[Finding]]:
    """What error -32042 wants opened before the call is tried again, and what is wrong with how it says so (R4-48).

    No other error has any. An entry that cannot be read is a finding, never a link."""
    if error.code != URL_ELICITATION_REQUIRED:
        return [], []
    listed = error.data.get("elicitations") if isinstance(error.data, dict) else None
    if not isinstance(listed, list) or not listed:
        what = "Error -32042 names no address: `data.elicitations` must be a list with at least one."
        return [], [Finding("R4-48", "must", what, "Ask whoever runs the server where to sign in.")]
    links: list[RequiredLink] = []
    findings: list[Finding] = []
    for at, entry in enumerate(listed[:_MOST]):
        problem = _problem(entry)
        if problem:
            findings.append(Finding("R4-48", "must", f"`/data/elicitations/{at}` {problem}", "It cannot be opened."))
            continue
        message = entry.get("message")
        if not isinstance(message, str):
            what = f"`/data/elicitations/{at}` says no `message`, so nobody knows what it is for."
            findings.append(Finding("R4-48", "must", what, "Look twice before you open it."))
        links.append(RequiredLink(entry["elicitationId"], message if isinstance(message, str) else "", entry["url"]))
    if len(listed) > _MOST:
        findings.append(Finding("R4-48", "note", f"It names {len(listed)} addresses; {_MOST} are shown.", ""))
    return links, findings


def _problem(entry: Any) -> str:
    if not isinstance(entry, dict):
        return "is no object."
    if entry.get("mode") != "url":
        return "is no elicitation in url mode."
    if not isinstance(entry.get("url"), str):
        return "has no `url`."
    if not isinstance(entry.get("elicitationId"), str):
        return "has no `elicitationId`."
    return ""


def links_json(links: list[RequiredLink]) -> list[dict[str, Any]]:
    """The addresses of a call for a script; `opens` says whether a page would make a link of it."""
    return [
        {
            "elicitation_id": link.elicitation_id,
            "message": link.message,
            "url": link.url,
            "opens": safe_link(link.url) is not None,
            "completed": link.completed,
            "findings": [
                {"id": one.id, "level": one.level, "text": one.text, "advice": one.advice}
                for one in url_findings(link.url)
            ],
        }
        for link in links
    ]
