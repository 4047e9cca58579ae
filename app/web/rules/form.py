"""What was typed into the editor of an answer rule, in the shape that a script would post."""

from __future__ import annotations

from typing import Any

from app.web.kit.request_bodies import Body, json_field
from app.web.rules.view import EMPTY


def typed(form: Body) -> dict[str, str]:
    """Every field of the editor; one that did not come along is as nobody has typed."""
    return {name: form.text(name) if name in form.data else first for name, first in EMPTY.items()}


def rule_of_form(form: Body) -> dict[str, Any]:
    """A rule. Raises FormErrors for JSON that is none."""
    said = {name: text.strip() for name, text in typed(form).items()}
    when: dict[str, Any] = {name: said[name] for name in ("server", "kind", "origin", "tool", "message") if said[name]}
    if fields := [one.strip() for one in said["fields"].split(",") if one.strip()]:
        when["fields"] = fields
    limits = {name: said[name] for name in ("delay_ms", "most", "per_minute") if said[name]}
    return {"name": said["name"], "on": bool(form.text("on")), "when": when, "do": _do(form, said), **limits}


def _do(form: Body, said: dict[str, str]) -> dict[str, Any]:
    match said["action"]:
        case "accept" if said["kind"] != "roots":
            values = said["content_as"] != "defaults"
            return {"action": "accept", "content": json_field(said["content"], "/do/content") if values else "defaults"}
        case "respond" if said["respond_as"] == "result":
            return {"action": "respond", "result": json_field(said["result"], "/do/result")}
        case "respond":
            return {"action": "respond", "text": form.text("text")}
        case "fail":
            return {"action": "fail", "code": said["code"], "message": said["fail_message"]}
        case "model" if said["model"]:
            return {"action": "model", "model": said["model"]}
        case action:
            return {"action": action}
