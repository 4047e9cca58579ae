"""The template engine: every address gets its root, nothing that a server wrote can hide or fill a page.

A context says which template it fills and which part of it stands alone. Knows no session and no route.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Final

import anyio
import anyio.to_thread
from jinja2 import ChoiceLoader, Environment, FileSystemLoader, StrictUndefined, meta
from jinja2.ext import Extension
from jinja2.filters import do_xmlattr
from jinja2.nodes import EvalContext
from jinja2.utils import pass_eval_context

from app import secrecy
from app.core.figures import grouped, measured
from app.core.rules import spec
from app.core.times import wire_time
from app.web.door.reader import fixed, may, reader
from app.web.door.root import at, degraded, root
from app.web.kit import format, html
from app.web.kit.fault import fault_of
from app.web.kit.html import Html
from app.web.kit.words import (
    ASK_KINDS,
    ASK_MARKS,
    ASK_STATES,
    CALL_WORDS,
    LAMPS,
    LEVEL_WORDS,
    STATE_WORDS,
    VIEW_WORDS,
    state_words,
    transport_words,
)

_ADDRESSES = frozenset(
    {"href", "src", "action", "formaction", "hx-get", "hx-post", "hx-sse:connect"}
    | {"data-base", "data-complete", "data-copy", "data-form", "data-home", "data-root", "data-src"}
)
"""Attributes that hold an address."""
_ADDRESS = re.compile(rf'(\s(?:{"|".join(sorted(_ADDRESSES))})=")(?:(?=/)|{{{{(.+?)}}}})')


class Rooted(Extension):
    """Every address in a template gets the root of whoever asked in front of it, when it is one of ours.

    Here and not by each template, so that none can forget it: `href="/about"` and `href="{{ one.href }}"` are written
    as if Parley began at `/`.
    """

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        return _ADDRESS.sub(
            lambda found: f"{found[1]}{{{{ ({found[2]})|at }}}}" if found[2] else f"{found[1]}{{{{ root() }}}}", source
        )


class Unindented(Extension):
    """Templates are indented for people; pages are sent without. So a break after `%}` is nothing at all, wherever the
    next line begins, and one before `{%-` likewise."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        return "\n".join(line.lstrip(" ") for line in source.split("\n"))


@pass_eval_context
def _attributes(context: EvalContext, values: dict[str, Any]) -> str:
    """`xmlattr`, with the root before addresses."""
    return do_xmlattr(context, {name: at(one) if name in _ADDRESSES else one for name, one in values.items()})


class Exact(str):
    """Text that goes into a form field and comes back: nothing in it may be written out as an escape."""

    __slots__ = ()


class Name(str):
    """What a server calls something: even what is ordinary in other texts is marked, so that two names differ (H08)."""

    __slots__ = ()


def _finalized(value: Any) -> Any:
    """Nothing that a template writes can hide or fill the page, unless it says that it must be exact."""
    if type(value) is str:
        return html.marked(html.cut(value))
    if isinstance(value, Name):
        return html.marked(html.cut(value, html.MAX_NAME), strict=True)
    return html.exact(value) if isinstance(value, Exact) else value


class Remembering(Environment):
    """Knows which templates each one names, from when it was compiled."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.named: dict[str, tuple[str, ...]] = {}

    def _parse(self, source: str, name: str | None, filename: str | None) -> Any:
        tree = super()._parse(source, name, filename)
        if name is not None:
            self.named[name] = tuple(found for found in meta.find_referenced_templates(tree) if found is not None)
        return tree


_folders = ChoiceLoader([FileSystemLoader(html.directory("templates"))])
jinja = Remembering(
    loader=_folders,
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
    extensions=[Rooted, Unindented],
    finalize=_finalized,
)
jinja.filters.update(
    size=format.size,
    number=grouped,
    stamp=html.stamp,
    time_of_day=html.time_of_day,
    wire_time=wire_time,
    duration=format.duration,
    ago=format.ago,
    prose=html.prose,
    told=html.told,
    gist=format.gist,
    plural=format.plural,
    type_words=format.type_words,
    pretty=format.pretty,
    transport=transport_words,
    state_words=state_words,
    fault=fault_of,
    figure=measured,
    section=spec.section,
)


jinja.filters.update(exact=Exact, name=Name, at=at, xmlattr=_attributes, fixed=fixed)
jinja.globals.update(asset=html.asset, script=html.script, icons=html.ICONS, inline=html.inline, root=root)
jinja.globals.update(degraded=degraded)
jinja.globals.update(may=may, reader=reader)
jinja.globals.update(MASK=secrecy.MASK, AGAIN=secrecy.AGAIN)
jinja.globals.update(
    ASK_KINDS=ASK_KINDS,
    ASK_MARKS=ASK_MARKS,
    ASK_STATES=ASK_STATES,
    CALL_WORDS=CALL_WORDS,
    LEVEL_WORDS=LEVEL_WORDS,
    STATE_WORDS=STATE_WORDS,
    VIEW_WORDS=VIEW_WORDS,
    LAMPS=LAMPS,
)


def also_from(directory: Path) -> None:
    """Look for templates here too: a page that is not part of Parley brings its own."""
    _folders.loaders = [*_folders.loaders, FileSystemLoader(directory)]


_ready: Final = set[str]()
_compiling: Final = anyio.Lock()


async def ready(template: str) -> None:
    """Have a template compiled, and all that it names, in a thread: the first page of its kind takes a quarter of a
    second, in which everybody else would wait."""
    if template in _ready:
        return
    async with _compiling:  # once, however many ask
        if template not in _ready:
            await anyio.to_thread.run_sync(_compile, template)
            _ready.add(template)


def _compile(template: str) -> None:
    left, seen = [template], {template}
    while left:
        name = left.pop()
        jinja.get_template(name)
        new = set(jinja.named.get(name, ())) - seen
        seen |= new
        left += new


def fragment(template: str, /, **context: Any) -> Html:
    """One template as markup; parts for the stream and for htmx."""
    return html.rendered(jinja.get_template(template).render(context))


@dataclass(slots=True)
class Context:
    """The base of every context: which template it fills, and which part of it stands alone."""

    template: ClassVar[str]
    part: ClassVar[str | None] = None

    def values(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}
