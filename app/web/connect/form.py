"""The connect form with every option: what it shows, for the first page and for a session."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from app import secrecy
from app.core.auth import ClientCredentials, OAuth
from app.core.options import LEVELS, Options
from app.core.placeholders import Blank
from app.core.revisions import HANDSHAKE_VERSIONS
from app.core.targets import AnyTarget, HttpTarget, StdioTarget, typed_line
from app.protocol.links.stdio import child_environment
from app.sessions import Identity, SessionRegistry, Workspace
from app.store import Kept
from app.web.connect.mcp_json import Entry
from app.web.kit import format
from app.web.kit.frame import Shell, shell
from app.web.kit.request_bodies import COMMAND_LINE_LONGEST, Body
from app.web.kit.templates import Context
from app.web.kit.words import transport_words


class PairRow(NamedTuple):
    """One variable or header in the form. The value of a secret never comes back to a page."""

    name: str
    value: str = ""
    secret: bool = False
    kept: bool = False
    """Leaving it blank keeps the value that it has."""


class Blanks(NamedTuple):
    """Placeholders of a target, what it is remembered by until they are filled in, and the kept one it came from."""

    each: list[Blank]
    digest: str
    kept: str
    name: str


AUTH_KINDS = {
    "": "OAuth when asked",
    "oauth": "OAuth, as below",
    "bearer": "Bearer token",
    "client-credentials": "Client credentials",
    "none": "None",
}
"""How a server learns who one is; "" is what happens where nothing is said."""
_ELSEWHERE = frozenset({"http-401", "tls", "redirect"})
"""Troubles that bring a field or a button of their own."""
_FIELDS = {
    "/target/command_line": "command_line",
    "/target/cwd": "cwd",
    "/target/env": "env",
    "/target/url": "url",
    "/target/headers": "header",
    "/target/auth/token": "auth_token",
    "/target/auth/client_id": "auth_client_id",
    "/target/auth/client_secret": "auth_client_secret",
    "/target/auth/private_key": "auth_private_key",
    "/target/auth/scopes": "auth_scopes",
    "/target/auth": "auth_client_secret",
    "/target/tls/ca": "tls_ca",
    "/target/tls/fingerprint": "tls_fingerprint",
    "/mcp_json": "mcp_json",
    "/name": "name",
}


def field_of(pointer: str) -> str:
    """The field of the form at which something is said about this part of the body; "" for the whole form."""
    if pointer.startswith("/options/"):
        return f"option-{pointer.split('/')[2]}"
    return next((field for start, field in _FIELDS.items() if (pointer + "/").startswith(start + "/")), "")


@dataclass(slots=True)
class ConnectFields:
    """The connect form, for home and for a session: what was typed, else what it begins with."""

    session: Workspace | None
    source: Kept | Workspace | None
    """The kept target that was named, else the session: its secrets stay when they are left blank."""
    trouble: str
    """Why nothing can be saved."""
    typed: dict[str, Any]
    errors: dict[str, str]
    choices: Sequence[tuple[Entry, str]]
    """The servers of a pasted file, each with the digest that chooses it."""
    blanks: Blanks | None = None
    """What is to be filled in before anything starts."""
    editing: Kept | None = None
    """The kept target that is changed here."""

    levels: ClassVar = LEVELS
    versions: ClassVar = HANDSHAKE_VERSIONS

    @property
    def failed(self) -> Workspace | None:
        """The session whose first connection failed: this form is its next attempt."""
        return self.session if self.session is not None and self.session.never_connected else None

    @property
    def wrong(self) -> dict[str, str]:
        """What is wrong, by the field at which it is said; "" for the whole."""
        found: dict[str, list[str]] = {}
        for pointer, text in self.errors.items():
            found.setdefault(field_of(pointer), []).append(text)
        return {field: " ".join(texts) for field, texts in found.items()}

    @property
    def focus(self) -> str:
        """The field that a person has to look at."""
        if self.errors:
            return next((field for field in self.wrong if field), "")
        trouble = None if self.failed is None else self.failed.info.trouble
        if trouble is None or trouble.kind in _ELSEWHERE:
            return ""
        if self.transport in ("http", "sse"):
            return "url"
        return "cwd" if trouble.kind == "cwd" else "command_line"

    @property
    def inherited(self) -> str:
        """The variables that every child gets from us."""
        return ", ".join(sorted(child_environment({})))

    @property
    def here(self) -> str:
        """Where a command starts that names no directory."""
        return str(Path.cwd())

    @property
    def action(self) -> str:
        return "/s" if self.session is None else f"{self.session.base}/connect"

    @property
    def target(self) -> AnyTarget | None:
        return None if self.source is None else self.source.target

    @property
    def options(self) -> Options:
        return Options() if self.source is None else self.source.options

    @property
    def missing(self) -> tuple[str, ...]:
        return self.source.missing_names if isinstance(self.source, Kept) else ()

    @property
    def masks_kept(self) -> bool:
        """Whether the secrets behind the masks of the line or the address are still known."""
        return not isinstance(self.source, Kept) or self.missing == self.source.missing

    @property
    def transport(self) -> str:
        chosen = _typed(self.typed, "transport", "stdio" if self.target is None else self.target.transport)
        return chosen if chosen in {"stdio", "http", "sse", "demo", "mcpjson"} else "stdio"

    @property
    def values(self) -> dict[str, str]:
        """The fields of one text each."""
        fill = {"command_line": "", "cwd": "", "url": "", "tls_ca": "", "tls_fingerprint": ""}
        fill |= {"auth_kind": "", "auth_client_id": "", "auth_scopes": ""}
        if isinstance(self.target, StdioTarget):
            fill |= {"command_line": self.target.command_line, "cwd": self.target.cwd or ""}
        elif isinstance(self.target, HttpTarget):
            fill["url"] = self.target.shown_url
            if (tls := self.target.tls) is not None:
                fill |= {"tls_ca": tls.ca, "tls_fingerprint": tls.fingerprint}
            if (auth := self.target.auth) is not None:
                fill["auth_kind"] = auth.kind
            if isinstance(auth, OAuth | ClientCredentials):
                fill |= {"auth_client_id": auth.client_id, "auth_scopes": " ".join(auth.scopes)}
        return fill | _typed_texts(self.typed, fill)

    auth_kinds: ClassVar = AUTH_KINDS

    @property
    def auth_words(self) -> str:
        """How the server learns who one is, in a word or two."""
        return AUTH_KINDS.get(self.values["auth_kind"], "")

    def keeps_auth(self, name: str) -> bool:
        """Whether leaving this secret blank keeps the value that it has."""
        return isinstance(self.target, HttpTarget) and bool(getattr(self.target.auth, name, ""))

    def rows(self, kind: str) -> list[PairRow]:
        """The variables (`env`) or the headers (`header`)."""
        known = _pairs(self.target, kind, self.missing)
        return _typed_pairs(self.typed, kind, known) or known

    @property
    def changed(self) -> int:
        """How many options are not at their default, but for the protocol, which is in sight."""
        return len(self.options.model_dump(exclude_defaults=True, exclude={"era"}))

    def option(self, key: str) -> str:
        """The text of an option: as it was typed, else as it is."""
        typed = self.typed.get(f"option.{key}")
        typed = typed[-1] if isinstance(typed, list) and typed else typed
        value = typed if isinstance(typed, str) else getattr(self.options, key)
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, dict):
            return format.pretty(value) if value else ""
        return "" if value is None else str(value)


def _typed(values: dict[str, Any], name: str, otherwise: str) -> str:
    given = values.get(name, otherwise)
    return str(given[-1] if isinstance(given, list) and given else given)


def _pairs(target: AnyTarget | None, kind: str, missing: tuple[str, ...]) -> list[PairRow]:
    """The variables or headers that a target has, and those it had before it went to disk."""
    held: dict[str, str] = {}
    if kind == "env" and isinstance(target, StdioTarget):
        held = target.env
    elif kind == "header" and isinstance(target, HttpTarget):
        held = target.headers
    else:
        return []
    secret = target.secret_names
    rows = [
        PairRow(name, "" if name in secret else value, name in secret, name in secret)
        for name, value in sorted(held.items())
    ]
    return rows + [PairRow(name, secret=True) for name in missing if name not in held]


def _typed_pairs(values: dict[str, Any], kind: str, known: list[PairRow]) -> list[PairRow]:
    """The rows as they were typed, without the values of secrets."""
    kept = {row.name for row in known if row.kept}
    sounds = secrecy.is_secret_variable if kind == "env" else secrecy.is_secret_header
    rows = []
    for name, value, mark in Body(values, is_form=True).rows(f"{kind}_name", f"{kind}_value", f"{kind}_secret"):
        secret = bool(mark) or sounds(name, value)
        rows.append(PairRow(name, "" if secret else value, secret, name in kept))
    return rows


def _typed_texts(values: dict[str, Any], fill: dict[str, str]) -> dict[str, str]:
    """The fields as they were typed. A secret that was typed does not come back: its place says so."""
    typed = {name: _typed(values, name, "") for name in fill if name in values}
    if "url" in typed:
        typed["url"] = _unfilled(typed["url"], secrecy.in_url(typed["url"]))
    if "command_line" in typed:
        typed["command_line"] = _unfilled_line(typed["command_line"])
    return typed


def _unfilled(text: str, found: Sequence[secrecy.Hidden]) -> str:
    """A text with a request to type each secret again; what was masked before stays so."""
    kept = (secrecy.MASK, secrecy.AGAIN)
    return secrecy.replaced(text, [one for one in found if text[one.start : one.end] not in kept], lambda _: kept[1])


def _unfilled_line(line: str) -> str:
    try:
        argv = tuple(shlex.split(line)) if len(line) <= COMMAND_LINE_LONGEST else ()
    except ValueError:
        argv = ()
    if not argv:
        return _unfilled(line, secrecy.in_text(line))
    shown = tuple(_unfilled(text, found) for text, found in zip(argv, secrecy.in_arguments(argv), strict=True))
    return line if shown == argv else typed_line(shown)


def connect_fields(
    registry: SessionRegistry,
    identity: Identity,
    session: Workspace | None,
    values: dict[str, Any] | None = None,
    *,
    errors: dict[str, list[str]] | None = None,
    choices: Sequence[tuple[Entry, str]] = (),
    blanks: Blanks | None = None,
    edit: bool = False,
) -> ConnectFields:
    """The connect form, with what was typed and what was wrong with it, or with what was pasted to choose from."""
    typed = values or {}
    kept = registry.store.find(identity.id, _typed(typed, "like", ""))
    return ConnectFields(
        session,
        session if kept is None else kept,
        registry.store.trouble,
        typed,
        {pointer: " ".join(texts) for pointer, texts in (errors or {}).items()},
        choices,
        blanks,
        kept if edit else registry.store.find(identity.id, _typed(typed, "edit", "")),
    )


@dataclass(slots=True)
class ConnectForm(Context):
    """The connect form on a page of a session."""

    template: ClassVar[str] = "connect/page.html"

    shell: Shell | None
    form: ConnectFields
    heading: str
    connected: bool


def connect_page(form: ConnectFields) -> ConnectForm:
    """The form on a page of its session."""
    session = form.session
    return ConnectForm(
        shell=None if session is None else shell(session, "connect", "Connect"),
        form=form,
        heading="Connect to a server" if session is None or session.target is None else "Change and reconnect",
        connected=session is not None and session.info.state in {"ready", "connecting"},
    )


def connect_json(form: ConnectFields) -> dict[str, Any]:
    """What there is to choose from, when several servers were pasted; what is wrong, else."""
    if form.choices:
        return {"choices": [_choice_json(*one) for one in form.choices]}
    fields_json = {pointer: [text] for pointer, text in form.errors.items()}
    return {"error": {"kind": "invalid", "message": "Some fields need another value.", "fields": fields_json}}


def _choice_json(entry: Entry, digest: str) -> dict[str, Any]:
    return {
        "name": entry.name,
        "digest": digest,
        "label": "" if entry.target is None else entry.target.label,
        "transport": transport_words(entry.target),
        "names": entry.names,
        "problem": entry.problem,
        "note": entry.note,
    }
