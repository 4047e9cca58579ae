"""The first page of a session: who the server is, what both sides offer, how it came about, what went wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, cast

import anyio
from starlette.requests import Request
from starlette.responses import Response

from app.core.certificates import Certificate
from app.core.targets import HttpTarget
from app.core.times import wire_time
from app.secrecy import masked_url, without
from app.sessions import Workspace
from app.sessions.lists import LISTS, ListName
from app.web.kit import format, json_tree
from app.web.kit.frame import Shell, figures, shell
from app.web.kit.html import Html
from app.web.kit.request_bodies import waiting_seconds
from app.web.kit.responses import in_json, show
from app.web.kit.templates import Context, fragment
from app.web.kit.words import target_json, text_of
from app.web.lists.item import KINDS, LOOK_SECONDS, Item
from app.web.live.page import page
from app.web.live.parts import Part
from app.web.session.ping import PING
from app.web.session.recording import record_json
from app.web.sign_in.card import SignInCard, card_of

DEPRECATED = "deprecated since 2026-07-28"
"""Roots, sampling and logging: they work, and nobody should begin with them (R6-53)."""
_EITHER = {"extensions": "Extensions", "experimental": "Experimental"}
_THEIRS = _EITHER | {"resources": "Resources", "prompts": "Prompts", "logging": "Logging", "tasks": "Tasks"}
_OURS = _EITHER | {"sampling": "Sampling", "elicitation": "Elicitation", "tasks": "Receiver tasks"}


COUNTED: tuple[ListName, ...] = ("tools", "resources", "prompts")
_NEXT: dict[ListName, str] = {"tools": "Call a tool", "resources": "Read a resource", "prompts": "Use a prompt"}
NEXT_SHOWN = 4


class Offer(NamedTuple):
    """One capability in words."""

    label: str
    detail: str
    href: str = ""
    note: str = ""
    """What is true of it in newer revisions than the connection's: to read on demand."""


class Step(NamedTuple):
    """What one may do next: in words, with the first few things to do it with, and where all of them are."""

    label: str
    items: list[Item]
    all_words: str
    all_href: str


@dataclass(slots=True)
class ConnectionCard:
    """The connection in words, whatever state it is in: the body of the overview, and a part of the stream
    (`#connection`)."""

    session: Workspace

    @property
    def server(self) -> dict[str, str]:
        """What the server says of itself, as far as it is text."""
        given = self.session.info.server_info
        known = given if isinstance(given, dict) else {}
        return {key: text_of(known.get(key)) for key in ("name", "version", "description")}

    @property
    def traffic(self) -> str:
        return figures(self.session)["traffic"]

    @property
    def server_offers(self) -> list[Offer]:
        given = self.session.info.server_capabilities
        declared = list(given.items())[:60] if isinstance(given, dict) else []
        return [self._server_offer(*one) for one in declared if not _says_nothing(*one)]

    def _many(self, name: ListName) -> str:
        """How many of a list there are, in words; "" until it was read."""
        listing, words = self.session.lists[name], LISTS[name].words
        if listing.at is None:
            return ""
        return format.plural(len(listing.items), words[:-1], words) + (" and more" if listing.next_cursor else "")

    def _aged(self, offer: Offer) -> Offer:
        """With the note that it is deprecated: in its line where the connection speaks a revision that says so."""
        version = self.session.info.protocol_version
        if version is not None and version >= "2026-07-28":
            return offer._replace(detail="; ".join(filter(None, [offer.detail, DEPRECATED])))
        return offer._replace(note=DEPRECATED)

    @property
    def sign_in(self) -> SignInCard | None:
        """The sign-in, when the session has a token by it."""
        card = card_of(self.session)
        return card if card is not None and card.token is not None and not card.found.open else None

    @property
    def counted(self) -> bool:
        """Whether it is known how many there are of everything that the server offers."""
        lists = self.session.lists
        return all(lists[name].at is not None or not lists.offered(name) for name in COUNTED)

    @property
    def steps(self) -> list[Step]:
        """What to do next with what the server has."""
        found = []
        for name, words in _NEXT.items():
            of = KINDS[name]
            if items := of.first(self.session, NEXT_SHOWN):
                found.append(Step(words, list(items), f"All {self._many(name)}", f"{self.session.base}/{of.path}"))
        return found

    def _server_offer(self, key: str, value: Any) -> Offer:
        label, here = _THEIRS.get(key, key[:80]), f"{self.session.base}/{key}"
        if key in {"tools", "resources", "prompts"}:
            label = self._many(cast("ListName", key)) or label
            members = {"subscribe": "subscriptions"} if key == "resources" else {}
            said = _said(value, {**members, "listChanged": "list changes announced"})
            return Offer(label, said or "list changes not announced", here)
        if key == "logging":
            return self._aged(Offer(label, "log messages, level on request", here))
        if key == "completions":
            return Offer("Completion", "of prompt and template arguments")
        if isinstance(value, dict):
            return Offer(label, ", ".join(str(one)[:60] for one in list(value)[:8]))
        return Offer(key[:80], format.gist(value, 60))

    @property
    def our_offers(self) -> list[Offer]:
        given = self.session.info.client_capabilities
        offers = []
        for key, value in given.items() if isinstance(given, dict) else ():
            if key == "roots":
                said = _said(value, {"listChanged": "changes announced"})
                many = len(self.session.roots)
                roots = format.plural(many, "root") if many else "Roots, none set"
                offers.append(self._aged(Offer(roots, said, f"{self.session.base}/roots")))
            elif isinstance(value, dict) and not _says_nothing(key, value):
                offer = Offer(_OURS.get(key, str(key)), ", ".join(str(one) for one in value))
                offers.append(self._aged(offer) if key == "sampling" else offer)
        return offers

    @property
    def server_tree(self) -> Html:
        return json_tree.tree(self.session.info.server_capabilities, open_depth=1, label="Server capabilities")

    @property
    def client_tree(self) -> Html:
        return json_tree.tree(self.session.info.client_capabilities, open_depth=1, label="Client capabilities")


def _says_nothing(key: str, value: Any) -> bool:
    """Whether a capability is declared and means nothing: an empty object of extensions."""
    return key in _EITHER and value == {}


def _said(value: Any, words: dict[str, str]) -> str:
    """What a capability declares of this, in words."""
    return ", ".join(text for key, text in words.items() if value.get(key)) if isinstance(value, dict) else ""


@dataclass(slots=True)
class Overview(Context):
    """The connection: who the server is, what both sides offer, how it came about, what went wrong."""

    template: ClassVar[str] = "session/page.html"
    part: ClassVar[str | None] = "session/_connection.html"

    shell: Shell
    connection: ConnectionCard
    first: Html


def _first(session: Workspace) -> Html:
    """Where a tab goes that watches a first connection fail."""
    ended = session.info.ended_at
    return fragment("session/_first.html", session=session, ago=0 if ended is None else round(session.wall() - ended))


def connection_json(session: Workspace) -> dict[str, Any]:
    """The `connection` object that scripts rely on."""
    info, trouble = session.info, session.info.trouble
    return {
        "state": info.state,
        "number": info.number,
        "era": info.era,
        "era_from": info.era_from,
        "protocol_version": info.protocol_version,
        "server_info": info.server_info,
        "server_capabilities": info.server_capabilities,
        "client_capabilities": info.client_capabilities,
        "instructions": info.instructions,
        "pid": info.pid,
        "connect_ms": info.connect_ms,
        "steps": [
            {
                "after_ms": one.after_ms,
                "side": one.side,
                "code": one.code,
                "text": one.text,
                "seq": one.seq,
                "start": one.start,
            }
            for one in info.steps
        ],
        "renewed": info.renewed,
        "error": None
        if trouble is None
        else {
            "kind": trouble.kind,
            "message": trouble.message,
            "advice": trouble.advice,
            "exit_code": trouble.exit_code,
            "last_words": trouble.last_words,
            "heading": trouble.heading or trouble.message,
            "challenges": [{"scheme": one.scheme, "parameters": dict(one.parameters)} for one in trouble.challenges],
            "redirect": _redirect(session, trouble.redirect),
            "certificate": certificate_json(trouble.certificate),
        },
    }


def _redirect(session: Workspace, url: str) -> str | None:
    values = session.target.secret_values if isinstance(session.target, HttpTarget) else ()
    return without(masked_url(url), values) or None


def certificate_json(shown: Certificate | None) -> dict[str, Any] | None:
    """A certificate that was not trusted, for scripts."""
    if shown is None:
        return None
    return {
        "fingerprint": shown.fingerprint,
        "subject": shown.subject,
        "issuer": shown.issuer,
        "not_before": None if shown.not_before is None else wire_time(shown.not_before),
        "not_after": None if shown.not_after is None else wire_time(shown.not_after),
        "names": list(shown.names),
    }


def overview_page(session: Workspace) -> Overview:
    """The first page of a session."""
    return Overview(shell(session, "overview", session.label), ConnectionCard(session), _first(session))


def overview_json(session: Workspace) -> dict[str, Any]:
    """The session, by the names that scripts rely on."""
    log = session.messages
    return {
        "id": session.id,
        "url": session.base,
        "label": session.label,
        "connection": connection_json(session),
        "recording": record_json(session),
        "target": target_json(session.target),
        "options": session.options.model_dump(mode="json"),
        "open_asks": session.open_asks,
        "counts": {
            "messages": log.count,
            "bytes": log.bytes_total,
            "in": log.inbound,
            "out": log.outbound,
            "findings": log.findings_total,
            "stderr_lines": session.stderr.count,
            "stderr_lines_by_probe": session.stderr.by_probe,
            "stderr_lines_earlier_start": session.stderr.earlier,
            "tools": len(session.tools.items),
            "calls": sum(not call.quiet for call in session.calls.values()),
            "running": sum(not call.settled for call in session.calls.values()),
        },
        "seq": session.events.seq,
    }


_CONNECTION = Part(
    "#connection",
    ("connection.changed", "listing.changed", "options.changed", "roots.changed", "sign_in.changed"),
    lambda view: fragment("session/_connection.html", connection=ConnectionCard(view.session)),
)


_FIRST = Part("#first", ("connection.changed",), lambda view: _first(view.session))


@page("overview", _CONNECTION, _FIRST, PING, numbers=figures, notice=False)
async def overview(request: Request) -> Response:
    session: Workspace = request.state.session
    if seconds := waiting_seconds(request):
        await session.wait_connection(seconds)
    return await show(request, lambda: overview_page(session), lambda: overview_json(session))


async def listed(request: Request) -> Response:
    """How many there are of each; looking is what has the lists read."""
    session: Workspace = request.state.session
    async with anyio.create_task_group() as group:
        for name in COUNTED:
            group.start_soon(session.lists.known, name, LOOK_SECONDS)
    lists = session.lists
    return await in_json(lambda: {name: None if lists[name].at is None else len(lists[name].items) for name in COUNTED})
