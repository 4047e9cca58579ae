"""Prompts: the list, a form for the arguments of each, and what the server made of them as a conversation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.requests import Request
from starlette.responses import Response

from app.core.calls import Call
from app.core.rules import catalogue
from app.sessions.lists import ListName
from app.web.calls.card import CARDS, CallCard, cards_of, recent_calls
from app.web.calls.live import cards
from app.web.door.denied import invalid
from app.web.kit import request_bodies
from app.web.kit.completion import FieldView
from app.web.kit.frame import Shell, shell
from app.web.kit.responses import by_htmx, show, show_page, started, wants_json
from app.web.kit.templates import Context
from app.web.kit.words import text_of
from app.web.lists.item import Item
from app.web.lists.keys import name_of
from app.web.lists.routes import ListRoutes
from app.web.live.page import page

_ARGUMENTS = 200
_WANTED = "The server wants a value here."


@dataclass(slots=True, frozen=True)
class Prompt(Item):
    """One prompt of a session."""

    list_name: ClassVar[ListName] = "prompts"
    path: ClassVar[str] = "prompts"
    kind: ClassVar[str] = "prompt"
    heading: ClassVar[str] = "Prompts"
    about: ClassVar[str] = "Prompt templates. Names and descriptions are the server's."
    none: ClassVar[str] = "The server declared `prompts` and listed none."

    @property
    def arguments(self) -> list[dict[str, Any]]:
        given = self.said.get("arguments")
        return [one for one in given[:_ARGUMENTS] if isinstance(one, dict)] if isinstance(given, list) else []

    @property
    def detail(self) -> str:
        """The names of its arguments."""
        return ", ".join([text_of(one.get("name")) for one in self.arguments][:12]) or "no arguments"

    @property
    def notes(self) -> tuple[str, ...]:
        return ()


PROMPTS = ListRoutes(Prompt)


# --------------------------------------------------------------------------------------------------------- one prompt


@dataclass(slots=True)
class PromptPage(Context):
    """One prompt: what it says of itself, the form of its arguments, and the conversations it made."""

    template: ClassVar[str] = "prompts/prompt.html"
    part: ClassVar[str | None] = "prompts/_form.html"

    shell: Shell
    prompt: Prompt
    fields: list[FieldView]
    filled_from: str
    refused: bool
    cards: list[CallCard]


def is_get_of(call: Call, name: Any) -> bool:
    """Whether a call asked for the prompt of this name."""
    return call.method == "prompts/get" and call.params is not None and call.params.get("name") == name


def _page(prompt: Prompt, values: dict[str, str], missing: list[str], filled_from: str = "") -> PromptPage:
    fields = [
        FieldView(
            name=name,
            id=f"arg-{number}",
            value=values.get(name, ""),
            title=text_of(one.get("title")),
            help=text_of(one.get("description")),
            required=one.get("required") is True,
            error=_WANTED if name in missing else "",
        )
        for number, one in enumerate(prompt.arguments)
        if (name := text_of(one.get("name")))
    ]
    recent = [call for call in recent_calls(prompt.session) if is_get_of(call, prompt.said.get("name"))]
    return PromptPage(
        shell=shell(prompt.session, "prompt", prompt.name or prompt.key, of=prompt.key),
        prompt=prompt,
        fields=fields,
        filled_from=filled_from,
        refused=bool(missing),
        cards=cards_of(prompt.session, recent[:CARDS]),
    )


@page(
    "prompt",
    cards(lambda view, call: not call.quiet and is_get_of(call, name_of(view.session.lists["prompts"], view.of))),
)
async def prompt(request: Request) -> Response:
    """The page of a prompt; with `from` its form as in that call."""
    prompt = await Prompt.named(request)
    call = prompt.session.calls.get(request.query_params.get("from", ""))
    given = (call.params or {}).get("arguments") if call and is_get_of(call, prompt.said.get("name")) else None
    values = {name: text for name, text in given.items() if isinstance(text, str)} if isinstance(given, dict) else {}
    number = call.id.lstrip("c") if call is not None and values else ""
    return await show(
        request,
        lambda: _page(prompt, values, [], number),
        lambda: {"prompt": prompt.said, "key": prompt.key},
    )


async def get(request: Request) -> Response:
    """Ask for the prompt. An argument that must be there and is not comes back with a sentence, unless it is forced."""
    prompt = await Prompt.named(request)
    if not request_bodies.is_form(request):
        raise invalid({"": ["Scripts get a prompt by POST /s/{sid}/calls with the method prompts/get."]})
    body = await request_bodies.read(request)
    typed = body.arguments
    required = [text_of(one.get("name")) for one in prompt.arguments if one.get("required") is True]
    missing = [name for name in required if not typed.get(name)]
    if missing and not body.text("_force"):
        if wants_json(request):
            raise invalid({f"/arguments/{name}": [_WANTED] for name in missing})
        return await show_page(request, _page(prompt, typed, missing), 422)
    arguments = {name: text for name, text in typed.items() if text}
    params: dict[str, Any] = {"name": prompt.said.get("name")} | ({"arguments": arguments} if arguments else {})
    call = prompt.session.start_call("prompts/get", params, by=request.state.identity)
    if missing:
        prompt.session.calls.note(call, catalogue.required_argument_left_out(missing=", ".join(missing)))
    if wants_json(request) or not by_htmx(request) or not body.text("_refused"):
        return await started(request, prompt.session, call)
    return await show_page(request, _page(prompt, typed, []))
