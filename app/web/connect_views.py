"""The connect form with every option, and the card that stands before the first start of a command (R5-71)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from app.core.model import (
    HANDSHAKE_VERSIONS,
    DemoTarget,
    HttpTarget,
    Options,
    StdioTarget,
    target_digest,
)
from app.sessions import Identity, Session, SessionRegistry
from app.web import render as show
from app.web.shell import AnyTarget, Context, Shell, list_of, shell, target_json, transport_words


@dataclass(slots=True, frozen=True)
class TargetLine:
    """One target that was used before."""

    digest: str
    label: str
    transport: str


@dataclass(slots=True, frozen=True)
class OptionField:
    """One connection option in the form: its control, its value and one line that explains it."""

    key: str
    label: str
    kind: str
    """`bool`, `number`, `select` or `json`."""
    value: str
    help: str
    group: str
    choices: tuple[tuple[str, str], ...] = ()
    error: str = ""


@dataclass(slots=True)
class ConnectFields:
    """The values and errors of the connect form, for home and for a session."""

    action: str
    transport: str
    values: dict[str, str]
    env: list[str]
    headers: list[str]
    options: list[OptionField]
    errors: dict[str, str]
    changed: str


# ------------------------------------------------------------------------------------------------------ connect form


_ANY = ("", "not set")
_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_OPTIONS: tuple[tuple[str, str, str, str, str, tuple[tuple[str, str], ...]], ...] = (
    (
        "era",
        "Protocol era",
        "select",
        "How the conversation begins. This release speaks the handshake of 2024-11-05 to 2025-11-25.",
        "The handshake",
        (("auto", "Find out"), ("legacy", "Handshake (to 2025-11-25)"), ("modern", "2026-07-28, not yet spoken")),
    ),
    (
        "protocol_version",
        "Protocol version",
        "select",
        "Which revision Parley proposes; the server may answer with another.",
        "The handshake",
        (("", "Newest"), *((version, version) for version in HANDSHAKE_VERSIONS)),
    ),
    ("sampling", "Sampling", "bool", "The server may ask for a text from a model.", "What Parley offers", ()),
    ("sampling_tools", "with tools", "bool", "Such a request may bring tools for the model.", "What Parley offers", ()),
    (
        "sampling_context",
        "with context",
        "bool",
        "Such a request may ask for context of other servers.",
        "What Parley offers",
        (),
    ),
    ("elicitation_form", "Forms", "bool", "The server may ask you to fill in a form.", "What Parley offers", ()),
    ("elicitation_url", "Links", "bool", "The server may ask you to open a link.", "What Parley offers", ()),
    ("roots", "Roots", "bool", "The server may see which directories you work in.", "What Parley offers", ()),
    ("ask_roots", "Ask before roots", "bool", "Every question for roots waits for you.", "What Parley offers", ()),
    (
        "receiver_tasks",
        "Receiver tasks",
        "bool",
        "The server may hand over its asks as tasks.",
        "What Parley offers",
        (),
    ),
    ("request_timeout_ms", "Time limit of a call", "number", "Milliseconds.", "Patience", ()),
    (
        "reset_timeout_on_progress",
        "Progress renews it",
        "bool",
        "Each progress notification starts the time limit anew.",
        "Patience",
        (),
    ),
    ("max_total_timeout_ms", "At most in all", "number", "Milliseconds; empty means no such limit.", "Patience", ()),
    (
        "unattended_limit_ms",
        "Unattended limit",
        "number",
        "Milliseconds an ask waits when nobody is there; empty means until it expires.",
        "Patience",
        (),
    ),
    ("receiver_task_ttl_ms", "TTL of our tasks", "number", "Milliseconds, when the server names none.", "Tasks", ()),
    ("receiver_task_max_ttl_ms", "Longest TTL", "number", "Milliseconds; longer wishes are cut to this.", "Tasks", ()),
    ("poll_interval_ms", "Poll interval", "number", "Milliseconds that Parley suggests to the server.", "Tasks", ()),
    (
        "awaiting_user_status",
        "Status while you think",
        "select",
        "What tasks/get answers while an ask is open.",
        "Tasks",
        (("input_required", "input_required"), ("working", "working")),
    ),
    (
        "send_status_notifications",
        "Announce task states",
        "bool",
        "Send notifications/tasks/status when a task changes.",
        "Tasks",
        (),
    ),
    (
        "log_level",
        "Log level",
        "select",
        "Asked of the server right after the handshake; it may not support it.",
        "Extras",
        (_ANY, *((level, level) for level in _LEVELS)),
    ),
    ("meta", "_meta", "json", "A JSON object that goes with every request.", "Extras", ()),
    ("extensions", "Extensions", "json", "A JSON object of extension capabilities to declare.", "Extras", ()),
)


def _option_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return show.pretty(value) if value else ""
    return "" if value is None else str(value)


def option_fields(options: Options, values: dict[str, Any], errors: dict[str, str]) -> list[OptionField]:
    """The options as form fields, with what the person had typed."""
    built = []
    for key, label, kind, help_text, group, choices in _OPTIONS:
        typed = values.get(f"option.{key}")
        typed = typed[-1] if isinstance(typed, list) and typed else typed
        value = typed if isinstance(typed, str) else _option_value(getattr(options, key))
        error = errors.get(f"/options/{key}", "")
        built.append(OptionField(key, label, kind, value, help_text, group, choices, error))
    return built


def connect_fields(
    session: Session | None, values: dict[str, Any] | None, errors: dict[str, list[str]] | None
) -> ConnectFields:
    """The connect form: what was typed, else the session's last target. Secret values are never written back."""
    typed = values or {}
    flat = {pointer: " ".join(texts) for pointer, texts in (errors or {}).items()}
    target = session.target if session is not None else None
    fill = {"command_line": "", "cwd": "", "url": ""}
    env: list[str] = []
    headers: list[str] = []
    transport = "stdio"
    if isinstance(target, StdioTarget):
        fill |= {"command_line": target.label, "cwd": target.cwd or ""}
        env = sorted(target.env)
    elif isinstance(target, HttpTarget):
        transport = target.transport
        fill |= {"url": target.url}
        headers = sorted(target.headers)
    for name in fill:
        if name in typed:
            given = typed[name]
            fill[name] = str(given[-1] if isinstance(given, list) and given else given)
    if "transport" in typed:
        chosen = typed["transport"]
        transport = str(chosen[-1] if isinstance(chosen, list) and chosen else chosen)
    options = session.options if session is not None else Options()
    changed = [name for name, value in options.model_dump().items() if value != getattr(Options(), name)]
    return ConnectFields(
        action="/s" if session is None else f"/s/{session.id}/connect",
        transport=transport if transport in {"stdio", "http", "sse", "demo"} else "stdio",
        values=fill,
        env=[one for one in list_of(typed, "env_name") if one] or env,
        headers=[one for one in list_of(typed, "header_name") if one] or headers,
        options=option_fields(options, typed, flat),
        errors=flat,
        changed=f"{show.plural(len(changed), 'option')} changed" if changed else "",
    )


@dataclass(slots=True)
class ConnectForm(Context):
    """The connect form on its own page: for a session, or after an error."""

    template: ClassVar[str] = "pages/connect.html"

    shell: Shell | None
    form: ConnectFields
    recent: list[TargetLine]
    heading: str
    connected: bool

    def as_json(self) -> dict[str, Any]:
        fields_json = {pointer: [text] for pointer, text in self.form.errors.items()}
        return {"error": {"kind": "invalid", "message": "Some fields need another value.", "fields": fields_json}}


def connect_form(
    session: Session | None,
    registry: SessionRegistry,
    identity: Identity,
    *,
    values: dict[str, Any] | None = None,
    errors: dict[str, list[str]] | None = None,
) -> ConnectForm:
    """The connect form, with what was typed and what was wrong with it."""
    recent = [one for one in registry.recent(identity) if not isinstance(one, DemoTarget)]
    return ConnectForm(
        shell=shell(session, "connect", "Connect") if session is not None else None,
        form=connect_fields(session, values, errors),
        recent=[TargetLine(target_digest(one), one.label, transport_words(one)) for one in recent],
        heading="Change and reconnect" if session is not None and session.target is not None else "Connect to a server",
        connected=session is not None and session.info.state in {"ready", "connecting"},
    )


# ----------------------------------------------------------------------------------------------------------- consent

_WARNINGS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"^(.*/)?(sudo|doas|su|pkexec)$"), "runs something with the rights of another user, usually root"),
    (re.compile(r"\b(sudo|doas)\s"), "runs something with the rights of another user, usually root"),
    (re.compile(r"\brm\s+(-\w*[rRf]\w*\s+)+"), "deletes files without asking"),
    (re.compile(r"\b(curl|wget)\b.*\|\s*(ba|z|da|k)?sh\b", re.S), "downloads a script and runs it unread"),
    (re.compile(r"\bbase64\s+(-d|--decode|-D)\b"), "runs something that is hidden by an encoding"),
    (re.compile(r"(?i)-e(nc(odedcommand)?)?\s+[A-Za-z0-9+/=]{40,}"), "runs something that is hidden by an encoding"),
    (re.compile(r"\bdd\s+.*\bof=/dev/|\bmkfs\b"), "writes to a disk directly"),
    (re.compile(r"\bchmod\s+(-R\s+)?[0-7]*777\b"), "opens files to everybody"),
    (re.compile(r":\(\)\s*\{"), "starts copies of itself without end"),
)


@dataclass(slots=True, frozen=True)
class ConsentArgument:
    """One part of the command line, exactly, with what is remarkable about it."""

    text: str
    warning: str


def warnings_of(argv: list[str]) -> list[ConsentArgument]:
    """Each argument with a warning where it deserves one (R5-71)."""
    shown = []
    for index, text in enumerate(argv):
        warning = next((words for pattern, words in _WARNINGS if pattern.search(text)), "")
        if not warning and re.fullmatch(r"(.*/)?rm", text):
            flags = [one for one in argv[index + 1 :] if one.startswith("-")]
            if any(set(one) & set("rRf") for one in flags):
                warning = "deletes files without asking"
        if not warning and index and (text.startswith("../") or "/../" in text):
            warning = "points outside of the working directory"
        shown.append(ConsentArgument(text, warning))
    return shown


@dataclass(slots=True)
class Consent(Context):
    """The card that stands before the first start of a command (R5-71)."""

    template: ClassVar[str] = "pages/consent.html"

    shell: Shell | None
    action: str
    back: str
    argv: list[ConsentArgument]
    cwd: str | None
    env: list[str]
    digest: str
    target: dict[str, Any] | None

    def as_json(self) -> dict[str, Any]:
        return {"consent": {"target": self.target, "confirm": self.digest}}


def consent(session: Session | None, target: AnyTarget, options: Options) -> Consent:
    """What will run, in full, before it runs for the first time."""
    argv = [target.command, *target.args] if isinstance(target, StdioTarget) else [target.label]
    return Consent(
        shell=shell(session, "connect", "Start this command?") if session is not None else None,
        action="/s" if session is None else f"/s/{session.id}/connect",
        back="/" if session is None else f"/s/{session.id}/connect",
        argv=warnings_of(argv),
        cwd=target.cwd if isinstance(target, StdioTarget) else None,
        env=sorted(target.env) if isinstance(target, StdioTarget) else [],
        digest=target_digest(target),
        target=target_json(target),
    )
