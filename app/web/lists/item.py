"""One thing that a server listed, with the words that its line and its page show of it.

A tool, a resource, a template and a prompt are alike as far as this; each has a class of its own beside its pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from inspect import cleandoc
from typing import Any, ClassVar, Self
from urllib.parse import quote

from starlette.requests import Request

from app.core.figures import measured
from app.core.forms.words import differs
from app.core.lists import Listing
from app.sessions import Workspace
from app.sessions.lists import ListName
from app.web.door.denied import unknown
from app.web.kit import format, json_tree
from app.web.kit.html import Html
from app.web.kit.words import text_of
from app.web.lists.keys import find_item, key_at, keys_of

LOOK_SECONDS = 2.0
"""How long a page waits for a list that is still being read, or that nobody has looked at yet."""


KINDS: dict[ListName, type[Item]] = {}
"""What each list is made of; filled by the classes themselves, each in the room of its noun."""


@dataclass(slots=True, frozen=True)
class Item:
    """The server's object and how it is addressed. Anything may stand in it: what is no text counts as none."""

    list_name: ClassVar[ListName]
    path: ClassVar[str]
    """Where its list is, below the session."""
    kind: ClassVar[str]
    heading: ClassVar[str]
    """What stands above the list, what is said of it, and what when nothing is in it."""
    about: ClassVar[str]
    none: ClassVar[str]
    read_on_sight: ClassVar[bool] = True
    """Whether looking at the list is what has it read."""

    session: Workspace
    key: str
    raw: Any
    """As the server listed it; None when it did not."""

    def __init_subclass__(cls) -> None:
        KINDS[cls.list_name] = cls

    @classmethod
    def listing(cls, session: Workspace) -> Listing:
        """The list that holds all of its kind."""
        return session.lists[cls.list_name]

    @classmethod
    def at(cls, session: Workspace, index: int) -> Self:
        """The item at this place of its list."""
        listing = cls.listing(session)
        return cls(session, key_at(listing, index), listing.items[index])

    @classmethod
    def first(cls, session: Workspace, most: int) -> list[Self]:
        """The first items of the list."""
        return [cls.at(session, index) for index in range(min(most, len(cls.listing(session).items)))]

    @classmethod
    async def named(cls, request: Request) -> Self:
        """The item that an address names; waited for where the list may be on its way. Raises Denied when the server
        has nothing of that name."""
        session, key = request.state.session, request.path_params["name"]
        index = find_item(cls.listing(session), key)
        if index is None:
            index = find_item(await session.lists.known(cls.list_name, LOOK_SECONDS), key)
        if index is None:
            raise unknown(f"The server has no {cls.kind} of that name. The list may have changed since.")
        return cls.at(session, index)

    @classmethod
    def list_json(cls, session: Workspace) -> dict[str, Any]:
        """What scripts learn of the list beyond what every list says."""
        return {"keys": keys_of(cls.listing(session))}

    @property
    def said(self) -> dict[str, Any]:
        """What the server said of it."""
        return self.raw if isinstance(self.raw, dict) else {}

    def text(self, member: str) -> str:
        """A text that the server gives; "" when it gives none."""
        return text_of(self.said.get(member))

    @property
    def base(self) -> str:
        return self.session.base

    def href(self, verb: str = "") -> str:
        """Its page, or what can be done with it there."""
        return f"{self.base}/{self.path}/{verb + '/' if verb else ''}{quote(self.key, safe='~')}"

    @property
    def name(self) -> str:
        return self.text("name")

    @property
    def label(self) -> str:
        """What its line shows above all: what it is known by."""
        return self.name or f"({self.kind} {self.key[1:]}, without a name)"

    @property
    def title(self) -> str:
        return self.text("title")

    @property
    def description(self) -> str:
        return self.text("description")

    @property
    def more_title(self) -> str:
        """Its title, where that says more than what it is known by."""
        return self.title if differs(self.title, self.label) else ""

    @property
    def described(self) -> tuple[str, str]:
        """Its description, less the indentation of a docstring: the first paragraph, and the rest."""
        first, _, rest = cleandoc(self.description).partition("\n\n")
        return first, rest.strip("\n")

    @property
    def detail(self) -> str:
        """What else one wants to know before opening it, in small print: type and size, as the server says them."""
        size = self.said.get("size")
        said = format.size(size) if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else ""
        return ", ".join(part for part in (self.text("mimeType")[:80], said) if part)

    @property
    def task(self) -> str:
        """Whether it runs as a task, in words; "" for what cannot."""
        return ""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the server says about it, in words: audience, priority, last change."""
        hints = self.said.get("annotations")
        if not isinstance(hints, dict):
            return ()
        words = []
        audience = hints.get("audience")
        if isinstance(audience, list) and audience:
            named = [one[:20] if isinstance(one, str) else format.gist(one, 20) for one in audience[:3]]
            words.append("for " + " and ".join(named))
        priority = hints.get("priority")
        if isinstance(priority, int | float) and not isinstance(priority, bool):
            words.append(f"priority {measured(float(priority))}")
        if isinstance(hints.get("lastModified"), str):
            words.append(f"changed {hints['lastModified'][:40]}")
        return tuple(words)

    @property
    def tag(self) -> str:
        """One word that somebody waits for, like *updated*."""
        return ""

    @property
    def icons(self) -> str:
        """Icons in words: Parley loads nothing on a server's word, so they are named and not drawn (R5-08)."""
        icons = self.said.get("icons")
        if not isinstance(icons, list) or not icons:
            return ""
        first = icons[0] if isinstance(icons[0], dict) else {}
        source = text_of(first.get("src"))
        kind = text_of(first.get("mimeType"))[:40]
        where = "inside the listing" if source.startswith("data:") else format.gist(source, 80)
        return f"{format.plural(len(icons), 'icon')}, {kind + ', ' if kind else ''}{where}"

    def tree(self, label: str = "Raw JSON", member: str | None = None) -> Html:
        """The whole, or one member of it, to look at."""
        return json_tree.tree(self.raw if member is None else self.said[member], open_depth=2, label=label)
