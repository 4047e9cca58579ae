"""Elicitation: what a server may ask of a person by a form or a link, and what may be answered (R4).

Pure decisions about JSON. Knows the protocol's rules; knows no ask, no wire and no page.
"""

from __future__ import annotations

import re
from typing import Any

from app import secret_names
from app.core import forms
from app.core.errors import INVALID_PARAMS, RpcError
from app.core.json.pointer import escape
from app.core.links import url_findings
from app.core.rules import catalogue
from app.core.rules.frames import null_members
from app.core.wire import Finding


def admit(params: dict[str, Any], capabilities: dict[str, Any], *, stateless: bool) -> list[Finding]:
    """What to remark about an elicitation that may be put to a person. Raises RpcError for one that may not."""
    mode = "form" if params.get("mode") is None else params["mode"]
    offered = capabilities.get("elicitation") or {}
    modes = set(offered) & {"form", "url"} or {"form"}
    if mode not in ("form", "url"):
        raise RpcError(INVALID_PARAMS, f"There is no elicitation mode {mode!r}", rule="R4-02")
    if mode not in modes:
        raise RpcError(INVALID_PARAMS, f"This client did not declare elicitation mode {mode!r}", rule="R4-03")
    if not isinstance(params.get("message"), str):
        raise RpcError(INVALID_PARAMS, "elicitation/create needs a string `message`", rule="R4-04")
    if mode == "url":
        return _admit_url(params, stateless=stateless)
    if not isinstance(params.get("requestedSchema"), dict):
        raise RpcError(
            INVALID_PARAMS, "elicitation/create in form mode needs an object `requestedSchema`", rule="R4-04"
        )
    return null_members(params, "R4-02", "mode") + schema_findings(params["requestedSchema"]) + secret_findings(params)


def _admit_url(params: dict[str, Any], *, stateless: bool) -> list[Finding]:
    if not isinstance(params.get("url"), str):
        raise RpcError(INVALID_PARAMS, "elicitation/create in url mode needs a string `url`", rule="R4-40")
    if not stateless and not isinstance(params.get("elicitationId"), str):
        raise RpcError(INVALID_PARAMS, "elicitation/create in url mode needs a string `elicitationId`", rule="R4-46")
    return url_findings(params["url"])


_NO_BEFORE = re.compile(r"\b(not|never|no|nor|neither|without|instead of|rather than|avoid)\b|n['’]t\b", re.IGNORECASE)
_NO_AFTER = re.compile(r"\b(not|never|n['’]t)\b.{0,20}\b(need|ask|requir|necess|want|share|type|enter)", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?;:])\s+|\n+")


def secret_findings(params: dict[str, Any]) -> list[Finding]:
    """A form that seems to ask for a secret, which a server must not do (R4-13).

    What counts is something to type into: a field whose name or title is that of a secret, else one beside words that
    ask for one. "Do not tell us your PIN" is good advice, so a sentence that says no is not held against the form."""
    properties = params["requestedSchema"].get("properties")
    typed = {
        str(name): below
        for name, below in (properties.items() if isinstance(properties, dict) else ())
        if isinstance(below, dict) and _takes_typing(below)
    }
    found = None
    for name, below in typed.items():
        named = [secret_names.spaced(name[:500]), below.get("title")]
        found = next((hit for text in named if isinstance(text, str) and (hit := secret_names.spoken_of(text))), None)
        if found is None:
            found = _asked_for(below.get("description"))
        if found is not None:
            break
    if found is None and typed:
        found = _asked_for(params.get("message"))
    return [] if found is None else [catalogue.asks_for_secret(secret=found.group())]


def _takes_typing(schema: dict[str, Any]) -> bool:
    """Whether a secret could be typed here: not into a switch, nor where there is a choice of values."""
    if schema.get("type") not in ("string", "integer", "number"):
        return False
    return not any(key in schema for key in ("enum", "oneOf", "const"))


def _asked_for(text: Any) -> re.Match[str] | None:
    """The secret that a sentence of this text asks for; sentences that say no do not ask."""
    if not isinstance(text, str):
        return None
    for sentence in _SENTENCE.split(text[:20_000]):
        found = secret_names.spoken_of(sentence)
        if found is None:
            continue
        before, after = sentence[: found.start()], sentence[found.end() :]
        if _NO_BEFORE.search(before) is None and _NO_AFTER.search(after) is None:
            return found
    return None


def schema_findings(schema: dict[str, Any]) -> list[Finding]:
    """Whether a requested schema stays within what elicitation allows: one flat object (R4-04, R4-10)."""
    properties = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(properties, dict):
        return [catalogue.schema_no_object()]
    odd = [name for name, below in properties.items() if not _primitive(below)]
    if not odd:
        return []
    shown = ", ".join(str(name)[:40] for name in odd[:3])
    names = f"{shown} {'is' if len(odd) == 1 else 'are'}"
    return [catalogue.schema_not_flat(names=names)]


def _primitive(schema: Any) -> bool:
    if not isinstance(schema, dict) or "$ref" in schema:
        return False
    if schema.get("type") in ("string", "number", "integer", "boolean"):
        return True
    items = schema.get("items")
    return schema.get("type") == "array" and isinstance(items, dict) and ("enum" in items or "anyOf" in items)


def misfits(params: dict[str, Any], result: dict[str, Any]) -> dict[str, list[str]]:
    """What is wrong with the content of an answer, by pointer; a link, a refusal and a dismissal have none."""
    if result.get("action") != "accept" or params.get("mode") == "url":
        return {}
    content = result.get("content")
    if not isinstance(content, dict):
        return {"": ["The content must be an object."]}
    errors = forms.validate(params.get("requestedSchema"), content)
    for name, value in content.items():
        if not _plain(value):
            words = "Only texts, numbers, true, false and lists of texts may be sent."
            errors.setdefault(f"/{escape(name)}", []).append(words)
    return errors


def _plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(each, str) for each in value)
    return isinstance(value, str | int | float | bool)
