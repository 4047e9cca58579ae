"""Prompts: the list, a form for the arguments of each, and what the server made of them as a conversation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from app.core.calls import Call
from app.core.rules import catalogue
from app.sessions import Workspace
from app.web.calls.card import CARDS, CallCard, recent_calls
from app.web.calls.live import cards
from app.web.door.denied import invalid
from app.web.kit import json_tree, request_bodies
from app.web.kit.completion import FieldView
from app.web.kit.frame import Shell, shell
from app.web.kit.html import Html
from app.web.kit.responses import by_htmx, show, show_page, started, wants_json
from app.web.kit.templates import Context
from app.web.kit.words import text_of
from app.web.lists.keys import LOOK_SECONDS, find_item, keys_of, listed
from app.web.lists.live import refetched
from app.web.lists.routes import read_again, read_on
from app.web.lists.view import Entry, ListView, Window, icon_text, list_json, list_view
from app.web.live.page import page

_ARGUMENTS = 200


def prompts_view(session: Workspace, window: Window) -> ListView:
    """The prompts; also a part of the stream (`#prompts`)."""
    keys = keys_of(session.lists["prompts"])

    def entry(index: int, item: dict[str, Any]) -> Entry:
        names = [text_of(one.get("name")) for one in _arguments(item)]
        return Entry(
            name=text_of(item.get("name")) or f"(prompt {index}, without a name)",
            href=prompt_href(session, keys[index]),
            title=text_of(item.get("title")),
            description=text_of(item.get("description")),
            detail=", ".join(names[:12]) or "no arguments",
        )

    return list_view(session, "prompts", window, entry, href=f"/s/{session.id}/prompts")


def prompt_href(session: Workspace, key: str) -> str:
    return f"/s/{session.id}/prompts/{quote(key, safe='~')}"


def _arguments(item: dict[str, Any]) -> list[dict[str, Any]]:
    given = item.get("arguments")
    return [one for one in given[:_ARGUMENTS] if isinstance(one, dict)] if isinstance(given, list) else []


@dataclass(slots=True)
class Prompts(Context):
    """Every prompt the server listed."""

    template: ClassVar[str] = "prompts/page.html"
    part: ClassVar[str | None] = "prompts/_list.html"

    shell: Shell
    prompts: ListView


def _json(session: Workspace) -> dict[str, Any]:
    return list_json(session, "prompts", "prompts") | {"keys": keys_of(session.lists["prompts"])}


@page("prompts", refetched("prompts", "prompts"))
async def prompts(request: Request) -> Response:
    """The list of prompts. Looking at it is what has it read."""
    session: Workspace = request.state.session
    seconds = session.options.request_timeout_ms / 1000 if wants_json(request) else LOOK_SECONDS
    await session.lists.known("prompts", seconds)
    window = Window.of(request.query_params)
    return await show(
        request,
        lambda: Prompts(shell(session, "prompts", "Prompts"), prompts_view(session, window)),
        lambda: _json(session),
    )


async def refresh(request: Request) -> Response:
    return await read_again(request, "prompts", "prompts", _json)


async def more(request: Request) -> Response:
    return await read_on(request, "prompts", "prompts", _json)


# --------------------------------------------------------------------------------------------------------- one prompt


@dataclass(slots=True)
class Prompt(Context):
    """One prompt: what it says of itself, the form of its arguments, and the conversations it made."""

    template: ClassVar[str] = "prompts/prompt.html"
    part: ClassVar[str | None] = "prompts/_form.html"

    shell: Shell
    key: str
    name: str
    title: str
    description: str
    icons: str
    fields: list[FieldView]
    filled_from: str
    refused: bool
    completes: bool
    get_href: str
    complete_href: str
    listed: Html
    cards: list[CallCard]


def is_get_of(call: Call, name: Any) -> bool:
    """Whether a call asked for the prompt of this name."""
    return call.method == "prompts/get" and call.params is not None and call.params.get("name") == name


def name_of(session: Workspace, key: str) -> Any:
    """The name of the prompt that a key stands for; None when there is none."""
    listing = session.lists["prompts"]
    index = find_item(listing, key)
    item = listing.items[index] if index is not None else None
    return item.get("name") if isinstance(item, dict) else None


async def _find(request: Request) -> tuple[Workspace, str, dict[str, Any]]:
    session: Workspace = request.state.session
    return session, *await listed(session, "prompts", request.path_params["name"])


def _page(
    session: Workspace,
    key: str,
    item: dict[str, Any],
    values: dict[str, str],
    *,
    missing: list[str] | None = None,
    filled_from: str = "",
) -> Prompt:
    fields = [
        FieldView(
            name=name,
            id=f"arg-{number}",
            value=values.get(name, ""),
            title=text_of(one.get("title")),
            help=text_of(one.get("description")),
            required=one.get("required") is True,
            error="The server wants a value here." if name in (missing or ()) else "",
        )
        for number, one in enumerate(_arguments(item))
        if (name := text_of(one.get("name")))
    ]
    name = text_of(item.get("name"))
    recent = [call for call in recent_calls(session) if is_get_of(call, item.get("name"))]
    return Prompt(
        shell=shell(session, "prompt", name or key, of=key),
        key=key,
        name=name,
        title=text_of(item.get("title")) or name or key,
        description=text_of(item.get("description")),
        icons=icon_text(item),
        fields=fields,
        filled_from=filled_from,
        refused=bool(missing),
        completes=session.info.offers("completions"),
        get_href=f"/s/{session.id}/prompts/get/{quote(key, safe='~')}",
        complete_href=f"/s/{session.id}/complete",
        listed=json_tree.tree(item, open_depth=2, label="As listed"),
        cards=[CallCard(session, call) for call in recent[:CARDS]],
    )


@page("prompt", cards(lambda view, call: not call.quiet and is_get_of(call, name_of(view.session, view.of))))
async def prompt(request: Request) -> Response:
    """The page of a prompt; with `from` its form as in that call."""
    session, key, item = await _find(request)
    call = session.calls.get(request.query_params.get("from", ""))
    values: dict[str, str] = {}
    if call is not None and is_get_of(call, item.get("name")):
        given = (call.params or {}).get("arguments")
        values = (
            {name: text for name, text in given.items() if isinstance(text, str)} if isinstance(given, dict) else {}
        )
    number = call.id.lstrip("c") if call is not None and values else ""
    return await show(
        request,
        lambda: _page(session, key, item, values, filled_from=number),
        lambda: {"prompt": item, "key": key},
    )


async def get(request: Request) -> Response:
    """Ask for the prompt. An argument that must be there and is not comes back with a sentence, unless it is forced."""
    session, key, item = await _find(request)
    if not request_bodies.is_form(request):
        raise invalid({"": ["Scripts get a prompt by POST /s/{sid}/calls with the method prompts/get."]})
    body = await request_bodies.read(request)
    typed = {name.removeprefix("arg."): body.text(name) for name in body.data if name.startswith("arg.")}
    required = [text_of(one.get("name")) for one in _arguments(item) if one.get("required") is True]
    missing = [name for name in required if not typed.get(name)]
    if missing and not body.text("_force"):
        if wants_json(request):
            raise invalid({f"/arguments/{name}": ["The server wants a value here."] for name in missing})
        return await show_page(request, _page(session, key, item, typed, missing=missing), 422)
    arguments = {name: text for name, text in typed.items() if text}
    params: dict[str, Any] = {"name": item.get("name")} | ({"arguments": arguments} if arguments else {})
    call = session.start_call("prompts/get", params, by=request.state.identity)
    if missing:
        session.calls.note(call, catalogue.required_argument_left_out(missing=", ".join(missing)))
    if wants_json(request) or not by_htmx(request) or not body.text("_refused"):
        return await started(request, session, call)
    return await show_page(request, _page(session, key, item, typed))
