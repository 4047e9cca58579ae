"""Resource templates: the list, a field for each variable of one, the URI that they make, and reading it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from starlette.requests import Request
from starlette.responses import Response

from app.core.uritemplate import BadTemplate, UriTemplate, Value, Variable
from app.sessions.lists import ListName
from app.web.door.denied import invalid
from app.web.kit import format, request_bodies
from app.web.kit.completion import FieldView
from app.web.kit.frame import Shell, shell
from app.web.kit.responses import go, in_html, in_json, show, show_page, started, wants_json
from app.web.kit.templates import Context, fragment
from app.web.lists.item import Item
from app.web.lists.routes import ListRoutes
from app.web.live.page import page
from app.web.resources.routes import resource_href


@dataclass(slots=True, frozen=True)
class Template(Item):
    """One resource template."""

    list_name: ClassVar[ListName] = "templates"
    path: ClassVar[str] = "resources/templates"
    kind: ClassVar[str] = "resource template"
    heading: ClassVar[str] = "Resource templates"
    about: ClassVar[str] = "URI templates (RFC 6570): fill in the variables, then read."
    none: ClassVar[str] = "The server declared `resources` and listed no templates."

    @property
    def label(self) -> str:
        return self.text("uriTemplate") or "(without a template)"

    @property
    def title(self) -> str:
        return self.text("title") or self.name


TEMPLATES = ListRoutes(Template)


@dataclass(slots=True)
class TemplatePage(Context):
    """One template: a field for each of its variables, and the URI that they make."""

    template: ClassVar[str] = "resources/template.html"
    part: ClassVar[str | None] = "resources/_template_form.html"

    shell: Shell
    one: Template
    fields: list[FieldView]
    problem: str
    uri: str
    refused: str


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


def _page(one: Template, values: dict[str, str], refused: str = "") -> TemplatePage:
    text = one.text("uriTemplate")
    problem, fields, uri = "", list[FieldView](), ""
    try:
        parsed = UriTemplate.parse(text)
        for number, each in enumerate(parsed.variables):
            help_text = "one value on each line, or name=value" if each.explode else ""
            if each.prefix is not None:
                help_text = f"only the first {format.plural(each.prefix, 'character')} are used somewhere"
            typed = values.get(each.name, "")
            fields.append(FieldView(each.name, f"arg-{number}", typed, help=help_text, many=each.explode))
        given = {each.name: value for each in parsed.variables if (value := value_of(each, values.get(each.name, "")))}
        uri = parsed.expand(given)
    except BadTemplate as fault:
        problem = str(fault)
    surroundings = shell(one.session, "template", text or one.key, of=one.key)
    return TemplatePage(surroundings, one, fields, problem, uri, refused)


def _typed(body: request_bodies.Body) -> dict[str, str]:
    """The fields of a form that hold arguments; of a JSON body its `arguments`."""
    if body.is_form:
        return body.arguments
    given = body.data.get("arguments")
    return {name: text for name, text in given.items() if isinstance(text, str)} if isinstance(given, dict) else {}


@page("template")
async def template(request: Request) -> Response:
    """The page of a template; values of variables may stand in the query."""
    one = await Template.named(request)
    made = _page(one, {name[4:]: text for name, text in request.query_params.items() if name.startswith("arg.")})
    names = [each.name for each in made.fields]
    return await show(
        request, made, lambda: {"template": one.said, "key": one.key, "variables": names, "uri": made.uri}
    )


async def expand(request: Request) -> Response:
    """The URI that the values make, while they are typed."""
    made = _page(await Template.named(request), _typed(await request_bodies.read(request)))
    if wants_json(request):
        return await in_json(lambda: {"uri": made.uri, "error": made.problem or None})
    return in_html(fragment("resources/_expanded.html", uri=made.uri, problem=made.problem))


async def read_template(request: Request) -> Response:
    """Expand the template and read what it names: on to the page of that resource."""
    one = await Template.named(request)
    typed = _typed(await request_bodies.read(request))
    made = _page(one, typed)
    if made.problem or not made.uri or (made.fields and not any(typed.get(each.name) for each in made.fields)):
        words = made.problem or "Type a value for at least one variable."
        if wants_json(request):
            raise invalid({"/arguments": [words]})
        return await show_page(request, _page(one, typed, words), 422)
    call = one.session.start_call("resources/read", {"uri": made.uri}, by=request.state.identity)
    url = resource_href(one.session, made.uri)
    return await started(request, one.session, call, then=go, url=url, uri=made.uri)
