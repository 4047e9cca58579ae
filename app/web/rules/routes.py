"""Answer rules: their page and its editor, one of them, their order, the switch over all, trying one on past asks,
and taking them along as JSON."""

from __future__ import annotations

from typing import Any, Final

from pydantic import Field, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from app import bounds
from app.core import answer_rules
from app.core.answer_rules import Rule
from app.core.errors import Conflict, Invalid
from app.core.strict import Closed
from app.sessions import Workspace
from app.sessions.answerers.rules import Kept, Trial
from app.store.rules import plain
from app.web.asks.routes import find as find_ask
from app.web.door.denied import Denied, unknown
from app.web.kit import request_bodies
from app.web.kit.errors import field_errors
from app.web.kit.frame import shell
from app.web.kit.html import Html
from app.web.kit.request_bodies import Body, FormErrors
from app.web.kit.responses import back, by_htmx, done, in_html, in_json, show, show_page, wants_json
from app.web.kit.templates import fragment
from app.web.live.page import page
from app.web.live.parts import Part, View
from app.web.rules.form import rule_of_form, typed
from app.web.rules.view import EMPTY, Editor, RulesPage, RulesView, Tried, editor_of, made_words, tried, typed_of


class RulesBody(Closed):
    """One rule, or several at once: what an export says, an import takes."""

    rules: list[Rule] = Field(max_length=bounds.RULES)
    left_out: list[str] = Field(default=[], max_length=bounds.RULES * bounds.REQUEST_MISSING)
    """Secrets that an export has not taken along, by their places."""


class OrderBody(Closed):
    order: list[str]


class MoveBody(Closed):
    by: int = Field(ge=-bounds.RULES, le=bounds.RULES)


class PauseBody(Closed):
    paused: bool


class TryBody(Closed):
    """A rule to try; `id` names the one that it would take the place of."""

    rule: Rule
    id: str | None = None


# --------------------------------------------------------------------------------------------------------------- page


def _list(view: View) -> Html:
    session = view.session
    kept = session.asks.rules.all.get(view.of)
    editor = None if kept is None else editor_of(session, kept)
    return fragment("rules/_list.html", view=RulesView(session, editor, alone=view.page == "rule"))


def _known(view: View) -> Html:
    return fragment("rules/_known.html", view=RulesView(view.session))


LIST: Final = Part("#rules", ["rules.changed"], _list)
KNOWN: Final = Part("#rules-known", ["ask.added", "ask.settled", "ask.withdrawn", "inbox.cleared"], _known)
"""How many asks there are to try a rule on: the page tries it anew when there are others."""


def _page(session: Workspace, editor: Editor | None, *, alone: bool, **more: Any) -> RulesPage:
    title, of = ("Rules", "") if editor is None or not alone else (editor.name or "New rule", editor.id or "new")
    frame = shell(session, "rule", title, of=of) if alone else shell(session, "rules", title, of=of)
    return RulesPage(frame, RulesView(session, editor, _trial(session, editor), alone=alone, **more))


def _trial(session: Workspace, editor: Editor | None) -> Tried | None:
    """What the rule in the editor would have done, as far as it is one."""
    if editor is None:
        return None
    form = Body({**editor.typed, **({"on": "1"} if editor.on else {})}, is_form=True)
    return _tried(session, form, editor.id)


def _tried(session: Workspace, form: Body, rid: str) -> Tried:
    try:
        rule = form.read(Rule, rule_of_form)
    except FormErrors as fault:
        return Tried(0, 0, [], [], False, " ".join(text for texts in fault.fields.values() for text in texts))
    return tried(session, rule, session.asks.rules.all.get(rid))


@page("rules", LIST, KNOWN)
async def rules(request: Request) -> Response:
    """All rules in their order, the first of them in the editor where there is room for it."""
    session: Workspace = request.state.session

    def made() -> RulesPage:
        first = next(iter(session.asks.rules.all.values()), None)
        return _page(session, None if first is None else editor_of(session, first), alone=False)

    return await show(request, made, lambda: rules_json(session))


@page("rule", LIST, KNOWN)
async def rule(request: Request) -> Response:
    """One rule, to change it and to try it."""
    session, kept = request.state.session, _kept(request)
    saved = "saved" in request.query_params
    return await show(
        request, lambda: _page(session, editor_of(session, kept, saved=saved), alone=True), lambda: rule_json(kept)
    )


async def blank(request: Request) -> Response:
    """A new rule: empty, or as an ask was answered (`from`)."""
    session: Workspace = request.state.session
    editor = Editor("", "", False, dict(EMPTY))
    if (aid := request.query_params.get("from")) is not None:
        made = _from(session, aid, request.query_params.get("name", ""))
        editor = Editor("", made.name, False, typed_of(made), asked=aid)
    wanted = rule_of_form(Body(dict(editor.typed), is_form=True))
    return await show(request, lambda: _page(session, editor, alone=True), lambda: {"rule": wanted})


# --------------------------------------------------------------------------------------------------- what is done


async def add(request: Request) -> Response:
    """One more rule, or all of an export, behind those that are there."""
    session: Workspace = request.state.session
    body = await request_bodies.read(request)
    if body.is_form:
        return await _save(request, session, body, None)
    wanted = body.read(RulesBody, _no_form).rules if "rules" in body.data else [body.read(Rule, _no_form)]
    kept = [session.asks.rules.add(rule) for rule in wanted]
    await session.kept_rules.write(new=True)
    return await in_json(lambda: {**rules_json(session), "added": [one.id for one in kept]}, 201)


async def change(request: Request) -> Response:
    """Another text for a rule, whole; the switch alone is a body of `on`."""
    session, kept = request.state.session, _kept(request)
    body = await request_bodies.read(request)
    if body.is_form and "switch" not in body.data:
        return await _save(request, session, body, kept)
    if body.is_form:
        session.asks.rules.switch(kept, bool(body.text("on")))
    elif body.data.keys() == {"on"}:
        body.data = {**kept.rule.model_dump(mode="json"), "on": body.data["on"]}
        session.asks.rules.change(kept, body.read(Rule, _no_form))
    else:
        session.asks.rules.change(kept, body.read(Rule, _no_form))
    await session.kept_rules.write()
    return await done(request, f"/s/{session.id}/rules", lambda: rule_json(kept))


async def _save(request: Request, session: Workspace, form: Body, kept: Kept | None) -> Response:
    """What was typed into the editor; back to it, with what is wrong beside each field or with what was saved."""
    rules = session.asks.rules
    on = form.text("then") == "on" or (kept is not None and kept.rule.on)
    form.data["on"] = "1" if on else ""
    try:
        wanted = form.read(Rule, rule_of_form)
        if kept is None:
            made = rules.add(wanted)
        else:
            made = kept
            rules.change(kept, wanted)
    except (FormErrors, Invalid) as fault:
        if wants_json(request):
            raise
        more: dict[str, Any] = {"typed": typed(form), "errors": fault.fields}
        editor = Editor("", "", False, **more) if kept is None else editor_of(session, kept, **more)
        return await show_page(request, _page(session, editor, alone=True), 422)
    await session.kept_rules.write(new=kept is None)
    return await back(request, f"/s/{session.id}/rules/{made.id}?saved=1", lambda: rule_json(made))


async def delete(request: Request) -> Response:
    session, kept = request.state.session, _kept(request)
    await request_bodies.nothing(request)
    session.asks.rules.remove(kept)
    await session.kept_rules.write()
    return await back(request, f"/s/{session.id}/rules", lambda: rules_json(session))


async def order(request: Request) -> Response:
    """The order in which rules are asked: the first that matches answers."""
    session: Workspace = request.state.session
    session.asks.rules.order((await request_bodies.read(request)).read(OrderBody, _no_form).order)
    await session.kept_rules.write()
    return await in_json(lambda: rules_json(session))


async def move(request: Request) -> Response:
    """One rule so many places up or down."""
    session, kept = request.state.session, _kept(request)
    wanted = (await request_bodies.read(request)).read(MoveBody, lambda form: {"by": form.text("by")})
    session.asks.rules.move(kept, wanted.by)
    await session.kept_rules.write()
    return await done(request, f"/s/{session.id}/rules/{kept.id}", lambda: rules_json(session))


async def pause(request: Request) -> Response:
    """The switch over all rules; each keeps its own."""
    session: Workspace = request.state.session
    body = await request_bodies.read(request)
    wanted = body.read(PauseBody, lambda form: {"paused": not form.text("on")})
    session.asks.rules.pause(wanted.paused)
    return await done(request, f"/s/{session.id}/rules", lambda: rules_json(session))


async def resume(request: Request) -> Response:
    """Switch those on again that were on when somebody left this server."""
    session: Workspace = request.state.session
    await request_bodies.nothing(request)
    session.asks.rules.resume()
    await session.kept_rules.write()
    return await done(request, f"/s/{session.id}/rules", lambda: rules_json(session))


async def attempt(request: Request) -> Response:
    """What a rule would have answered to the asks that are known. Nothing is sent."""
    session: Workspace = request.state.session
    body = await request_bodies.read(request)
    if body.is_form and not wants_json(request):
        return in_html(fragment("rules/_trial.html", session=session, tried=_tried(session, body, body.text("id"))))
    wanted = body.read(TryBody, lambda form: {"rule": rule_of_form(form), "id": form.text("id") or None})
    rules = session.asks.rules
    trials = rules.tried(wanted.rule, list(session.inbox.asks.values()), before=rules.all.get(wanted.id or ""))
    return await in_json(
        lambda: {
            "of": len(trials),
            "answered": sum(one.answer is not None for one in trials),
            "asks": [_trial_json(one) for one in trials],
        }
    )


# ------------------------------------------------------------------------------------------------------ taking along


async def export(request: Request) -> Response:
    """Every rule as a file, without its secrets; what was left out is named by its place."""
    session: Workspace = request.state.session
    headers = {"content-disposition": 'attachment; filename="parley-rules.json"', "cache-control": "no-store"}
    return await in_json(lambda: exported(session), headers=headers)


def exported(session: Workspace) -> dict[str, Any]:
    """What an import takes."""
    found, left = [], []
    for number, one in enumerate(session.asks.rules.all.values()):
        said, missing = plain(one.rule.model_dump(mode="json", exclude_unset=True))
        found.append(said)
        left += [f"/rules/{number}{place}" for place in dict.fromkeys((*one.missing, *missing))]
    return {"rules": found, **({"left_out": left} if left else {})}


async def take(request: Request) -> Response:
    """Take rules over from an export, behind those that are there; each is off. All of them, or none."""
    session: Workspace = request.state.session
    body = await request_bodies.read(request)
    rules, pasted = session.asks.rules, body.text("text")
    try:
        data = request_bodies.strict_json(pasted) if body.is_form else body.data
        if not isinstance(data, dict):
            raise FormErrors({"": ["An export is an object with rules."]})
        wanted = RulesBody.model_validate(data)
        if len(rules.all) + len(wanted.rules) > bounds.RULES:
            raise Conflict(f"At most {bounds.RULES} rules. Delete some first.")
        for rule in wanted.rules:
            rules.check(rule)
    except (Denied, ValidationError, Invalid, Conflict) as fault:
        if not body.is_form or wants_json(request):
            raise
        refused = _sentence(fault)
        return await show_page(request, _page(session, None, alone=False, pasted=pasted, refused=refused), 422)
    kept = []
    for number, rule in enumerate(wanted.rules):
        start = f"/rules/{number}/"
        left = tuple(one[len(start) - 1 :] for one in wanted.left_out if one.startswith(start))
        kept.append(rules.add(rule.model_copy(update={"on": False})))
        kept[-1].missing = left
    await session.kept_rules.write(new=True)
    said = {"added": [one.id for one in kept]}
    return await back(request, f"/s/{session.id}/rules", lambda: {**rules_json(session), **said}, 201)


def _sentence(fault: Exception) -> str:
    """Why an import was refused, with the first places."""
    if isinstance(fault, Denied) and not fault.fields:
        return fault.message
    fields = field_errors(fault) if isinstance(fault, ValidationError) else getattr(fault, "fields", {})
    found = [f"{place} {texts[0]}".strip() for place, texts in list(fields.items())[:3]]
    return "; ".join(found) or str(fault)


# ----------------------------------------------------------------------------------------------------- from an ask


async def offer(request: Request) -> Response:
    """The rule that would answer as an ask was answered, before anybody has made it."""
    session, ask = find_ask(request)
    made = _from(session, ask.id)
    if wants_json(request):
        return await in_json(lambda: {"rule": made.model_dump(mode="json")})
    return in_html(_offer(session, ask.id, made))


async def from_ask(request: Request) -> Response:
    """A rule that answers as an ask was answered; it is off."""
    session, ask = find_ask(request)
    body = await request_bodies.read(request)
    if not body.is_form:
        body.read(request_bodies.Nothing, _no_form)
    name = " ".join(body.text("name").split())
    try:
        kept = session.asks.rules.add(_from(session, ask.id, name))
    except ValidationError as fault:
        if wants_json(request):
            raise
        wrong = _sentence(fault).removeprefix("/name ")
        return in_html(_offer(session, ask.id, _from(session, ask.id), typed=name, wrong=wrong), 422)
    await session.kept_rules.write(new=True)
    if by_htmx(request) and not wants_json(request):
        return in_html(fragment("rules/_made.html", session=session, kept=kept, ask=ask.id))
    return await back(request, f"/s/{session.id}/rules/{kept.id}", lambda: rule_json(kept), 201)


def _offer(session: Workspace, aid: str, rule: Rule, *, typed: str | None = None, wrong: str = "") -> Html:
    when, do, starts = made_words(session, rule)
    name = rule.name if typed is None else typed
    said = {"when": when, "do": do, "starts": starts, "name": name, "wrong": wrong}
    return fragment("rules/_offer.html", session=session, ask=aid, **said)


def _from(session: Workspace, aid: str, name: str = "") -> Rule:
    found = session.inbox.asks.get(aid)
    if found is None:
        raise unknown("There is no such ask. The oldest settled ones are forgotten first.")
    return answer_rules.from_answer(found, session.asks.about(found).tool, name)


# ------------------------------------------------------------------------------------------------------------- JSON


def _no_form(body: Body) -> dict[str, Any]:
    return body.data


def _kept(request: Request) -> Kept:
    found: Kept | None = request.state.session.asks.rules.all.get(request.path_params["rid"])
    if found is None:
        raise unknown("There is no such rule.")
    return found


def rules_json(session: Workspace) -> dict[str, Any]:
    """The rules in their order. `rules` is also what an import takes."""
    rules = session.asks.rules
    return {
        "paused": rules.paused,
        "active": len(rules.active),
        "rules": [one.rule.model_dump(mode="json", exclude_unset=True) for one in rules.all.values()],
        "kept": [rule_json(one) for one in rules.all.values()],
    }


def rule_json(kept: Kept) -> dict[str, Any]:
    return {
        "id": kept.id,
        "rule": kept.rule.model_dump(mode="json"),
        "answered": kept.answered,
        "used_up": kept.used_up,
        "problem": kept.problem,
        "missing": list(kept.missing),
        "was_on": kept.was_on,
    }


def _trial_json(trial: Trial) -> dict[str, Any]:
    ask, answer = trial.ask, trial.answer
    said: dict[str, Any] | None = None
    if answer is not None:
        said = {"action": answer.action}
        said |= {"error": answer.error.wire()} if answer.error is not None else {"result": answer.result}
    question = answer_rules.question(ask)[:200]
    return {"ask": ask.id, "kind": ask.kind, "question": question, "answer": said, "reason": trial.reason}
