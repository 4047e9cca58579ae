"""Routes of asks: GET shows one, POST answers it. An answer is checked, sent, and the card says what became
of it; a form that does not fit comes back with a sentence beside each field, and what was typed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import anyio
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from app.core import forms
from app.core.asks import Ask
from app.core.errors import Invalid
from app.core.forms import Entries
from app.core.strict import Closed
from app.sessions import Workspace
from app.sessions.asks import claimant
from app.web.asks import drafting
from app.web.asks.card import TYPED, AskCard, ask_json
from app.web.asks.room import ROOM, room_of
from app.web.asks.sampling import edited, typed_edits
from app.web.asks.stage import STAGE, StagePage, stage_json, stage_of
from app.web.asks.uses import Uses, answered, composed
from app.web.door.denied import Denied, invalid, unknown
from app.web.kit import request_bodies
from app.web.kit.frame import Shell, shell
from app.web.kit.request_bodies import waiting_seconds
from app.web.kit.responses import back, by_htmx, done, in_html, in_json, show, show_page, wants_json
from app.web.kit.templates import Context, fragment
from app.web.kit.words import ASK_KINDS
from app.web.live.page import page
from app.web.sign_in.shown import open_json


class TouchBody(Closed):
    """What somebody who is at an ask may say."""

    keep: bool = False
    take_over: bool = False


@dataclass(slots=True)
class InboxPage(Context):
    """The inbox alone: for a phone, and for scripts."""

    template: ClassVar[str] = "asks/page.html"
    part: ClassVar[str | None] = "asks/_inbox.html"
    shell: Shell


def inbox_json(session: Workspace) -> dict[str, Any]:
    """What waits, and what is settled, for scripts."""
    inbox = session.inbox
    return {
        "open": [ask_json(ask) for ask in inbox.open],
        "settled": [ask_json(ask) for ask in inbox.settled],
        "sign_in": open_json(session),
    }


@dataclass(slots=True)
class AskPage(Context):
    """One ask."""

    template: ClassVar[str] = "asks/ask.html"
    part: ClassVar[str | None] = "asks/_card.html"
    shell: Shell
    card: AskCard


def ask_page(request: Request, session: Workspace, ask: Ask, **typed: Any) -> AskPage:
    """The page of an ask, with what was typed into its card when that is shown again."""
    name = request.path_params["aid"] if request.path_params["aid"] != ask.id else ""
    return AskPage(shell(session, "ask", ASK_KINDS[ask.kind][1], of=ask.id), AskCard(session, ask, name=name, **typed))


# -------------------------------------------------------------------------------------------------------------- GET


@page("inbox")
async def inbox(request: Request) -> Response:
    """What waits for an answer, then what is settled; with `count` only the number."""
    session: Workspace = request.state.session
    with anyio.move_on_after(waiting_seconds(request)):
        while not session.open_asks and not session.closed:
            await session.events.wait(session.events.seq)
    if "count" in request.query_params:
        return PlainTextResponse(str(session.open_asks))
    return await show(request, lambda: InboxPage(shell(session, "inbox", "Inbox")), lambda: inbox_json(session))


@page("ask")
async def ask(request: Request) -> Response:
    """One ask; with `edit` only the form that changes its request, with `uses` only the one that composes tool uses:
    no page brings them along (H12)."""
    session, found = find(request)
    parts = {"edit": "asks/_edit_fields.html", "uses": "asks/_uses.html"}
    part = next((name for name in parts if name in request.query_params), "")
    if not part or wants_json(request):
        return await show(request, lambda: ask_page(request, session, found, whole=True), lambda: ask_json(found))
    if found.kind != "sampling" or found.settled:
        raise unknown("There is no request to edit any more.")
    return in_html(fragment(parts[part], card=ask_page(request, session, found).card))


@page("stage", STAGE, ROOM)
async def stage(request: Request) -> Response:
    """The sequence of asks at the size of a projector, the inbox in the middle."""
    session: Workspace = request.state.session
    return await show(
        request,
        lambda: StagePage(shell(session, "stage", "Stage"), stage_of(session), room_of(session)),
        lambda: stage_json(session),
    )


# ------------------------------------------------------------------------------------------------------------- POST


async def answer(request: Request) -> Response:
    """Answer an ask. 422 with what is wrong, 409 when it is no longer open."""
    session, found = find(request)
    if not request_bodies.is_form(request):
        said = (await request_bodies.read(request)).data
        await session.asks.answer(found, said, request.state.identity)
        return await in_json(lambda: ask_json(found))
    form = Entries(await request_bodies.pairs(request))
    made = composed(found.request, found.tool_round, form) if form.first("as") == "tool" else None
    tree, said, errors = _said(found, form, made)
    try:
        if errors:
            raise Invalid("Please fix the marked fields.", errors)
        await session.asks.answer(found, said, request.state.identity)
    except Invalid as refused:
        homeless = (forms.place(tree, refused.fields) if tree is not None else flat(refused)) or [refused.message]
        again = {"filled": tree, "errors": homeless, "typed": typed_of(form), "composing": made}
        return await show(request, lambda: ask_page(request, session, found, **again), dict, 422)
    if by_htmx(request) and not wants_json(request):
        return await show_page(request, ask_page(request, session, found, whole=True, folded=found.settled))
    return await back(request, f"{session.base}/asks/{found.id}", lambda: ask_json(found))


async def touch(request: Request) -> Response:
    """Somebody is at an ask: for a minute neither a rule nor a model answers it, and none ever when they keep it. In a
    team nobody else does either, unless they take it over: 409 says who has it."""
    session, found = find(request)
    body = await request_bodies.read(request)
    said = body.read(TouchBody, lambda form: {key: bool(form.text(key)) for key in ("keep", "take_over")})
    session.asks.touch(found, keep=said.keep, by=request.state.identity, take_over=said.take_over)
    return Response(status_code=204) if not wants_json(request) else await in_json(lambda: ask_json(found))


async def form(request: Request) -> Response:
    """A button inside the form: add, remove, another alternative. Nothing is sent to the server."""
    session, found = find(request)
    entries = Entries(await request_bodies.pairs(request))
    operation = entries.first("_op")
    if operation is not None:
        forms.operate(entries, operation)
    return await show(
        request, lambda: ask_page(request, session, found, filled=forms.build(found.schema, form=entries)), dict
    )


async def uses(request: Request) -> Response:
    """A button of the form that composes tool uses: one more, one less, or inside one. Nothing is sent."""
    session, found = find(request)
    if found.kind != "sampling":
        raise unknown(f"A {found.kind} is not answered with tool uses.")
    entries = Entries(await request_bodies.pairs(request))
    made, typed = composed(found.request, found.tool_round, entries), typed_of(entries) | {"as": "tool"}
    page = ask_page(request, session, found, composing=made, typed=typed)
    if by_htmx(request):
        return in_html(fragment("asks/_uses.html", card=page.card))
    return await show(request, page, dict)


async def request(request: Request) -> Response:
    """Change a sampling request before it is used, or take the changes back. Nothing is sent to the server (R3-02)."""
    session, found = find(request)
    if not request_bodies.is_form(request):
        said = (await request_bodies.read(request)).data
        if "request" not in said:
            raise invalid({"/request": ["Say the request, or null for the one that came."]})
        session.asks.edit(found, said["request"])
        return await in_json(lambda: ask_json(found))
    form = Entries(await request_bodies.pairs(request))
    typed = typed_of(form)
    made = composed(found.request, found.tool_round, form) if form.first("as") == "tool" else None
    errors: list[str] = []
    try:
        if form.first("edit") == "original":
            session.asks.edit(found, None)
        else:
            changed, wrong = edited(found.request, typed_edits(form), found.params)
            if wrong:
                raise Invalid("Please fix the marked fields.", wrong)
            session.asks.edit(found, changed)
        typed = {name: text for name, text in typed.items() if not name.startswith("edit-")}
    except Invalid as refused:
        errors = flat(refused)
    again, status = {"errors": errors, "typed": typed, "composing": made}, 422 if errors else 200
    return await show(request, lambda: ask_page(request, session, found, **again), lambda: ask_json(found), status)


async def clear(request: Request) -> Response:
    """Forget what is settled."""
    session: Workspace = request.state.session
    await request_bodies.nothing(request)
    session.inbox.clear()
    return await back(request, session.base, lambda: {"open": session.open_asks})


async def reopen(request: Request) -> Response:
    """Take back an answer that waits for the others of its round."""
    session, ask = find(request)
    await request_bodies.nothing(request)
    session.rounds.reopen(ask, claimant(request.state.identity))
    return await done(request, f"{session.base}/asks/{ask.id}", lambda: {"id": ask.id, "state": ask.state})


def _said(
    found: Ask, form: Entries, made: Uses | None
) -> tuple[forms.Field | None, dict[str, Any], dict[str, list[str]]]:
    """What the fields of a card say, in the shape that a script would send."""
    # Enter in a field presses no button that has a name: it means the main one.
    action = form.first("action") or {"form": "accept", "sampling": "respond"}.get(found.kind)
    said: dict[str, Any] = {"action": action}
    if form.first("force"):
        said["force"] = True
    if action == "fail":
        code = (form.first("code") or "").strip()
        said["code"] = int(code) if code.lstrip("-").isdecimal() and len(code) < 12 else code
        said["message"] = form.first("message") or ""
    if found.kind == "sampling" and action == "respond":
        return None, said, _sampled(found, form, made, said)
    if found.kind != "form":
        return None, said, {}
    tree = forms.build(found.schema, form=form)
    if action != "accept":
        return tree, said, {}
    read = forms.read(tree)
    said["content"] = value = {} if read.value is forms.MISSING else read.value
    if read.errors and form.first("force"):
        return tree, said, _as_typed(tree, value, read.errors)
    # What can be read is checked all the same, so that every field says at once what is wrong with it.
    return tree, said, {**forms.validate(found.schema, value), **read.errors} if read.errors else {}


def _as_typed(tree: forms.Field, value: Any, errors: dict[str, list[str]]) -> dict[str, list[str]]:
    """Put what cannot be read into the value as the text that was typed: on purpose nothing is dropped.

    What is still wrong, because there is no place for it."""
    left = dict(errors)
    for child in tree.children:
        if child.pointer in left and child.text and isinstance(value, dict) and child.key not in value:
            value[child.key] = child.text
            del left[child.pointer]
    return {
        pointer: [*texts, "It cannot be sent anyway: nothing says what it means."] for pointer, texts in left.items()
    }


def _sampled(found: Ask, form: Entries, made: Uses | None, said: dict[str, Any]) -> dict[str, list[str]]:
    """The answer to a sampling, and the request as it was edited beside it; what cannot be read."""
    if typed := typed_edits(form):
        request, wrong = edited(found.request, typed, found.params)
        if wrong:
            return wrong
        if request != found.request:
            said["request"] = request
    # The card says which way is meant; a form without that means the one that is filled in.
    text, chosen = form.first("json") or "", form.first("as")
    if chosen == "model":
        said["result"], wrong = drafting.answered(found, form)
        return wrong
    if made is not None:
        said["result"], wrong = answered(made, form.first("model") or "")
        return {} if form.first("force") and "/content" not in wrong else wrong
    if chosen == "json" or (chosen is None and text.strip()):
        try:
            said["result"] = request_bodies.strict_json(text)
        except Denied as fault:
            return {"/json": [fault.message]}
        return {}
    content = {"type": "text", "text": form.first("text") or ""}
    said["result"] = {"role": "assistant", "content": content, "model": form.first("model") or ""}
    if form.first("stopReason"):
        said["result"]["stopReason"] = form.first("stopReason")
    return {}


def typed_of(form: Entries) -> dict[str, str]:
    """What a card has beside the fields of a form, as it was typed."""
    typed = {name: text for name in TYPED if (text := form.first(name)) is not None}
    typed |= {name: text for name, text in form.pairs() if name.startswith("block-")}
    return typed | typed_edits(form)


def flat(refused: Invalid) -> list[str]:
    return [sentence for sentences in refused.fields.values() for sentence in sentences]


def find(request: Request) -> tuple[Workspace, Ask]:
    """The ask that an address names. Raises Denied when there is none."""
    session: Workspace = request.state.session
    # In a page of two sessions an ask goes by a name that says of which it is: two may have the same number.
    aid = request.path_params["aid"].removeprefix(f"x{session.number}-")
    found = session.inbox.asks.get(aid)
    if found is None:
        raise unknown("There is no such ask. Answered ones are forgotten after a while.")
    return session, found
