"""One resource template: a field for each of its variables, the URI that they make, and reading it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from app.core.uritemplate import BadTemplate, UriTemplate, Value, Variable
from app.sessions import Workspace
from app.web.door.denied import invalid
from app.web.kit import format, json_tree, request_bodies
from app.web.kit.completion import FieldView
from app.web.kit.frame import Shell, shell
from app.web.kit.html import Html
from app.web.kit.responses import go, in_html, in_json, show, show_page, started, wants_json
from app.web.kit.templates import Context, fragment
from app.web.kit.words import text_of
from app.web.lists.keys import listed
from app.web.lists.view import annotation_text
from app.web.live.page import page
from app.web.resources.routes import detail, resource_href


@dataclass(slots=True)
class Template(Context):
    """One template: a field for each of its variables, and the URI that they make."""

    template: ClassVar[str] = "resources/template.html"
    part: ClassVar[str | None] = "resources/_template_form.html"

    shell: Shell
    key: str
    uri_template: str
    name: str
    title: str
    description: str
    detail: str
    notes: tuple[str, ...]
    fields: list[FieldView]
    problem: str
    uri: str
    said: str
    completes: bool
    connected: bool
    read_href: str
    expand_href: str
    complete_href: str
    listed: Html


async def _find(request: Request) -> tuple[Workspace, str, dict[str, Any]]:
    session: Workspace = request.state.session
    return session, *await listed(session, "templates", request.path_params["name"])


def value_of(variable: Variable, text: str) -> Value | None:
    """What was typed for a variable; None when nothing was. Of `{list*}` each line is one, of pairs each is `a=b`."""
    if not text:
        return None
    if not variable.explode:
        return text
    lines = [line for line in text.splitlines() if line]
    if lines and all("=" in line for line in lines):
        return dict(line.split("=", 1) for line in lines)
    return lines


def _page(session: Workspace, key: str, item: dict[str, Any], values: dict[str, str], said: str = "") -> Template:
    text = text_of(item.get("uriTemplate"))
    problem, fields, uri = "", list[FieldView](), ""
    try:
        parsed = UriTemplate.parse(text)
        for number, one in enumerate(parsed.variables):
            help_text = "one value on each line, or name=value" if one.explode else ""
            if one.prefix is not None:
                help_text = f"only the first {format.plural(one.prefix, 'character')} are used somewhere"
            typed = values.get(one.name, "")
            fields.append(FieldView(one.name, f"arg-{number}", typed, help=help_text, many=one.explode))
        given = {one.name: value for one in parsed.variables if (value := value_of(one, values.get(one.name, "")))}
        uri = parsed.expand(given)
    except BadTemplate as fault:
        problem = str(fault)
    base = f"/s/{session.id}"
    address = quote(key, safe="~")
    return Template(
        shell=shell(session, "template", text or key, of=key),
        key=key,
        uri_template=text,
        name=text_of(item.get("name")),
        title=text_of(item.get("title")) or text_of(item.get("name")) or text,
        description=text_of(item.get("description")),
        detail=detail(item),
        notes=annotation_text(item.get("annotations")),
        fields=fields,
        problem=problem,
        uri=uri,
        said=said,
        completes=session.info.offers("completions"),
        connected=session.info.state == "ready",
        read_href=f"{base}/resources/templates/read/{address}",
        expand_href=f"{base}/resources/templates/expand/{address}",
        complete_href=f"{base}/complete",
        listed=json_tree.tree(item, open_depth=2, label="As listed"),
    )


def _typed(body: request_bodies.Body) -> dict[str, str]:
    """The fields of a form that hold arguments; of a JSON body its `arguments`."""
    if body.is_form:
        return {name.removeprefix("arg."): body.text(name) for name in body.data if name.startswith("arg.")}
    given = body.data.get("arguments")
    return {name: text for name, text in given.items() if isinstance(text, str)} if isinstance(given, dict) else {}


@page("template")
async def template(request: Request) -> Response:
    """The page of a template; values of variables may stand in the query."""
    session, key, item = await _find(request)
    values = {name[4:]: text for name, text in request.query_params.items() if name.startswith("arg.")}
    made = _page(session, key, item, values)
    names = [one.name for one in made.fields]
    return await show(request, made, lambda: {"template": item, "key": key, "variables": names, "uri": made.uri})


async def expand(request: Request) -> Response:
    """The URI that the values make, while they are typed."""
    session, key, item = await _find(request)
    made = _page(session, key, item, _typed(await request_bodies.read(request)))
    if wants_json(request):
        return await in_json(lambda: {"uri": made.uri, "error": made.problem or None})
    return in_html(fragment("resources/_expanded.html", uri=made.uri, problem=made.problem))


async def read_template(request: Request) -> Response:
    """Expand the template and read what it names: on to the page of that resource."""
    session, key, item = await _find(request)
    typed = _typed(await request_bodies.read(request))
    made = _page(session, key, item, typed)
    empty = [one.name for one in made.fields if not typed.get(one.name)]
    if made.problem or not made.uri or (made.fields and len(empty) == len(made.fields)):
        words = made.problem or "Type a value for at least one variable."
        if wants_json(request):
            raise invalid({"/arguments": [words]})
        return await show_page(request, _page(session, key, item, typed, words), 422)
    call = session.start_call("resources/read", {"uri": made.uri}, by=request.state.identity)
    return await started(request, session, call, then=go, url=resource_href(session, made.uri), uri=made.uri)
