"""Saved requests of a tool: what its form holds is saved under a name, and a form is filled from one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from starlette.requests import Request
from starlette.responses import Response

from app.core.errors import Invalid
from app.core.forms import Entries
from app.sessions import Workspace
from app.store import SavedRequest
from app.web.door.denied import Denied, invalid, unknown
from app.web.kit import request_bodies
from app.web.kit.responses import back, by_htmx, show_page, wants_json
from app.web.kit.templates import Context
from app.web.lists.keys import find_item
from app.web.tools.form import Drawn, from_form, off
from app.web.tools.tool import HEAVY, Tool


@dataclass(slots=True)
class SavedPart(Context):
    """The menu of saved requests and the box that saves one, after it was pressed."""

    template: ClassVar[str] = "tools/_saved_now.html"
    part: ClassVar[str | None] = "tools/_saved_now.html"

    tool: Tool
    form: Drawn
    saved_now: SavedRequest | None
    """What was just saved."""
    save_name: str
    save_fault: str
    """Why it was not."""


async def save(request: Request) -> Response:
    """Save what the form holds, fitting or not: it is checked when it is sent."""
    tool = await Tool.named(request)
    if not request_bodies.is_form(request):
        raise invalid({"": ["Scripts save a request by POST /targets/{target}/requests."]})
    pairs = await request_bodies.pairs(request)
    entries = Entries(pairs)
    name = entries.first("save-name") or ""
    if entries.first("_mode") is None:
        raise invalid({"": ["The arguments did not come along: this needs the script of the page."]})
    much = sum(len(text) for _, text in pairs) > HEAVY
    drawn = await off(tool.heavy or much, lambda: from_form(tool.schema, entries))
    fault, made = "", None
    if drawn.unreadable:
        where, words = next(iter(drawn.unreadable.items()))
        fault = f"Not saved: {where + ' ' if where else ''}{words[0]}"
    else:
        try:
            params = {"name": tool.name, "arguments": drawn.arguments}
            made = await tool.session.saved.save(name, "tools/call", params)
        except Invalid as no:
            fault = " ".join(words for sentences in no.fields.values() for words in sentences)
    if made is not None and tool.session.saved.trouble:
        fault = f"Saved until Parley ends, but it could not be written: {tool.session.saved.trouble}"
    if wants_json(request):
        if made is None:
            raise invalid({"/name": [fault]})
        return await back(request, tool.href(), lambda: {"id": made.id})
    if not by_htmx(request):
        if made is None:
            raise Denied(422, "invalid", fault)
        return await back(request, f"{tool.href()}?saved={made.id}", dict)
    part = SavedPart(tool, drawn, made, "" if made is not None else name, fault)
    return await show_page(request, part, 200 if made is not None else 422)


async def open_saved(request: Request) -> Response:
    """On to the page on which a saved request can be looked at, changed and sent."""
    session: Workspace = request.state.session
    found = session.saved.find(request.path_params["request"])
    if found is None:
        raise unknown("There is no such saved request of this server. It may have been deleted.")
    url = place_of(session, found)
    return await back(request, url, lambda: {"id": found.id, "url": url})


def place_of(session: Workspace, one: SavedRequest) -> str:
    """The page of its tool with the form filled; for all else, and for a tool that is not there, the composer."""
    if one.method == "tools/call":
        index = find_item(session.tools, one.subject)
        if index is not None and session.tools.items[index].get("name") == one.subject:
            return f"{Tool.at(session, index).href()}?saved={one.id}"
    return f"{session.base}/compose?saved={one.id}"
