"""Process settings and every size limit of Parley, in one place.

Owns the defaults of each mode; knows nothing of the command line, the web or the protocol. A plain frozen pydantic
model: unknown keys fail, and importing it costs no more than pydantic itself.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

MIB = 1024 * 1024


class Limits(BaseModel):
    """Bounded everything: no queue, buffer, list or wait in Parley is larger than a number here, or than one of those
    in `app.bounds`, which nobody can set."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    message_bytes: int = Field(default=8 * MIB, gt=0)
    """One frame on the wire. A longer one ends the connection, with its first bytes kept."""
    kept_prefix_bytes: int = Field(default=4096, gt=0)
    """How much of a refused frame is kept to look at."""
    log_messages: int = Field(default=20_000, gt=0)
    log_bytes: int = Field(default=32 * MIB, gt=0)
    """Raw bodies kept per session; the oldest are dropped first, their rows stay."""
    events: int = Field(default=25_000, gt=0)
    """Events kept for replay to a tab that comes back."""
    stderr_lines: int = Field(default=2_000, gt=0)
    stderr_line_bytes: int = Field(default=16_384, gt=0)
    stderr_last_words: int = Field(default=4096, gt=0)
    calls: int = Field(default=500, gt=0)
    """Calls remembered per session; the oldest settled ones are forgotten first."""
    calls_running: int = Field(default=200, gt=0)
    call_logs: int = Field(default=200, gt=0)
    call_log_bytes: int = Field(default=256 * 1024, gt=0)
    """Log messages kept with one call, by number and size; all of them stand in the log."""
    exchanges: int = Field(default=2_000, gt=0)
    """HTTP requests of ours in the list of the log; a row that is kept keeps its own."""
    exchange_messages: int = Field(default=200, gt=0)
    """Messages that one of them names: a stream may carry any number."""
    findings_per_message: int = Field(default=50, gt=0)
    """Beside one message, and about one thing where it brings several, like questions by their keys."""
    findings: int = Field(default=2_000, gt=0)
    """Messages with findings, of the rows that are kept."""
    findings_outlived: int = Field(default=2_000, gt=0)
    """Messages with findings whose rows have left, and that a call, an ask, a task or a list still refers to."""
    list_pages: int = Field(default=100, gt=0)
    """Pages of a listing followed before we stop believing the cursor."""
    list_items: int = Field(default=10_000, gt=0)
    relist_seconds: float = Field(default=60, gt=0)
    """The longest pause before a list is read again that changes whenever it is read; it begins with one second."""
    known_eras: int = Field(default=1_000, gt=0)
    """Commands whose era is remembered; the ones that were learned first are forgotten first."""
    roots: int = Field(default=200, gt=0)
    open_asks: int = Field(default=100, gt=0)
    open_ask_bytes: int = Field(default=64 * MIB, gt=0)
    """What all open asks may be together: a server chooses how large its questions are."""
    settled_asks: int = Field(default=200, gt=0)
    settled_ask_bytes: int = Field(default=16 * MIB, gt=0)
    """Answered, withdrawn, expired and lost asks kept to look at, by number and size."""
    draft_bytes: int = Field(default=64 * 1024, gt=0)
    """What somebody would answer, shown with an ask before it is sent."""
    receiver_tasks: int = Field(default=1_000, gt=0)
    server_requests: int = Field(default=200, gt=0)
    """Server requests handled at the same time on one connection; the next gets an error."""
    sessions_per_identity: int = Field(default=20, gt=0)
    sessions_over: int = Field(default=20, gt=0)
    """Sessions beside these whose connection failed or was lost: they do not count. Of more than so many, the one that
    nobody has looked at for the longest time is let go of."""
    sessions: int = Field(default=200, gt=0)
    calls_per_minute: int = Field(default=0, ge=0)
    """Calls that one person begins in a minute; 0 is no limit, as on one's own machine."""
    open_asks_per_identity: int = Field(default=2_000, gt=0)
    """Questions that wait for one person, over all of their sessions."""
    requests_per_identity: int = Field(default=1_000, gt=0)
    """Requests of one person, or from one address of somebody unknown, that are answered at the same time."""
    requests_per_minute: int = Field(default=0, ge=0)
    """The same in a minute, but for files of the page; 0 is no limit, as on one's own machine. Counted for a team."""
    closed_sessions: int = Field(default=5, gt=0)
    closed_bytes: int = Field(default=64 * MIB, gt=0)
    """Closed sessions that may come back, by number and by the memory that they hold."""
    reopen_seconds: float = Field(default=30, gt=0)
    """How long closing a session can be taken back."""
    streams_per_browser: int = Field(default=4, gt=0)
    streams_per_identity: int = Field(default=400, gt=0)
    """Of one person, by all their browsers and scripts."""
    streams: int = Field(default=400, gt=0)
    """Of everybody. Then whoever has most of them loses the oldest to who has fewer."""
    open_files: int = Field(default=4096, ge=64)
    """What Parley asks the system for at its start; its children get the limit back that it had before."""
    connections: int = Field(default=1_000, ge=32)
    """Open connections of browsers and scripts, and at most half of the open files that the system allows. Before it
    is reached, those that have been silent the longest are closed."""
    keep_alive_seconds: int = Field(default=15, gt=0)
    """How long a connection may be silent after an answer."""
    head_seconds: float = Field(default=10, gt=0)
    """How long a connection may take to send the head of a request, from its beginning or its first byte."""
    body_seconds: float = Field(default=30, gt=0)
    body_bytes_per_second: int = Field(default=1024, gt=0)
    """A body gets the time above, and one more second for each of these many bytes that have arrived."""
    unread_seconds: float = Field(default=30, gt=0)
    """How long nothing of an answer may be taken by whoever asked for it."""
    body_bytes: int = Field(default=9 * MIB, gt=0)
    """One request body of a browser or a script."""
    form_fields: int = Field(default=2_000, gt=0)
    form_files: int = Field(default=20, gt=0)
    login_failures_per_minute: int = Field(default=10, gt=0)
    login_pause_seconds: float = Field(default=1.0, gt=0)
    """How long each wrong code or token beyond that waits for its answer."""
    login_waiting: int = Field(default=50, gt=0)
    """How many of those wait at the same time; one more is answered at once, and its connection closed."""
    launch_code_seconds: float = Field(default=600, gt=0)
    logins: int = Field(default=200, gt=0)
    """Browsers that stay logged in; the one that was used least recently is forgotten first."""
    login_seconds: float = Field(default=30 * 86_400, gt=0)
    """How long a browser stays logged in that is not used."""
    idle_seconds: float = Field(default=30 * 60, gt=0)
    """How long a session stays open that nobody needs."""
    idle_notice_seconds: float = Field(default=5 * 60, gt=0)
    """How long before that the list of sessions says so."""
    ask_seconds: float = Field(default=24 * 3600, gt=0)
    handshake_seconds: float = Field(default=30, gt=0)
    """How long a server may take to answer `initialize`, unless the options of a connection say otherwise."""
    probe_seconds: float = Field(default=8, gt=0)
    """How long a server may be silent to `server/discover` before it is taken for one of the older era (R6-10)."""
    nudge_seconds: float = Field(default=2, gt=0)
    """How long a process may be silent to `server/discover` before it gets a `ping`, which ends one that died of it."""
    renewed_session_seconds: float = Field(default=60, gt=0)
    """How long a session that was begun anew must last before one that the server forgets is begun anew again."""
    rounds: int = Field(default=10, gt=0)
    """How often a call goes back to a server that asks for input again and again; a person may raise it (R6-31)."""
    most_rounds: int = Field(default=1_000, gt=0)
    """What a person may raise it to."""
    round_states: int = Field(default=5_000, gt=0)
    round_state_bytes: int = Field(default=16 * MIB, gt=0)
    """The `requestState` of rounds that are over, kept per session to be sent again, by number and size."""
    stdin_close_seconds: float = Field(default=1.0, gt=0)
    terminate_seconds: float = Field(default=1.5, gt=0)
    kill_seconds: float = Field(default=1.0, gt=0)
    """After SIGKILL: how long to wait for the system to reap the child."""
    wait_seconds: float = Field(default=60, gt=0)
    """The longest `?wait=` of the JSON interface."""
    stream_window_seconds: float = Field(default=0.033, gt=0)
    stream_rows: int = Field(default=250, gt=0)
    stream_behind: int = Field(default=1_000, gt=0)
    """Messages a tab may be behind before it gets a snapshot instead."""
    stream_send_seconds: float = Field(default=5, gt=0)
    stream_ping_seconds: int = Field(default=15, gt=0)
    log_repeats_per_minute: int = Field(default=20, gt=0)
    """Lines of one kind in Parley's own log; how many more there were is said once a minute."""
    log_lines_per_minute: int = Field(default=600, gt=0)
    """Lines of all kinds together."""
    page_rows: int = Field(default=200, gt=0)
    """Log rows in a freshly loaded page."""
    recording_bytes: int = Field(default=512 * MIB, gt=0)
    """One recording; it ends there, and says so."""
    recordings_bytes: int = Field(default=4096 * MIB, gt=0)
    """All recordings together; then none begins before one is deleted."""
    recordings_per_identity: int = Field(default=10_000, gt=0)
    recordings_bytes_per_identity: int = Field(default=4096 * MIB, gt=0)
    """Those of one person, by number and size."""
    recording_days: float = Field(default=90, gt=0)
    """How old a recording may get; older ones are deleted at the start of Parley."""


class Settings(BaseModel):
    """What one Parley process was started with. Shown read-only at `/about`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: Literal["local", "team", "demo"] = "local"
    host: str = "127.0.0.1"
    port: int = Field(default=6280, ge=0, le=65535)
    published_on_loopback: bool = False
    """A container publishes our port on the loopback of its host: binding elsewhere is allowed."""
    open_browser: bool = True
    token: str | None = Field(default=None, min_length=16, repr=False, exclude=True)
    """What scripts send as `Authorization: Bearer`; None turns script access off."""
    roots: tuple[str, ...] = ()
    """`file://` URIs a new session offers to its server."""
    models: dict[str, dict[str, Any]] = {}
    """Models that may write drafts, by name; read by whoever knows what a model is. No key stands here."""
    public_url: str | None = Field(default=None, max_length=2048)
    """Where browsers find this Parley, when that is not its own port: authorization servers send them back there."""
    client_metadata_url: str | None = Field(default=None, max_length=2048)
    """The client id metadata document that says who this Parley is, for authorization servers that read one (R5-55)."""
    keep_sign_ins: bool = False
    """Tokens of sign-ins to servers outlive the process, encrypted, in the data directory."""
    sign_ins_key: str | None = Field(default=None, repr=False, exclude=True)
    """What they are encrypted with; None makes a key in a file that only its owner can read."""
    data_dir: Path | None = None
    """Where saved targets are kept; None keeps them in memory only."""
    replica: str = Field(default="r0", pattern=r"^r[0-9]{1,4}$")
    """What this process is called among those of a team; its sessions have that in their ids."""
    store_url: str | None = Field(default=None, repr=False, exclude=True)
    """The PostgreSQL of a team; None keeps everything in a file of the data directory."""
    record: Literal["ask", "always"] = "ask"
    """Whether a session is recorded when somebody asks for it, or each one from its first connection on."""
    recordings_in: Literal["files", "database"] = "files"
    """Where the bytes of recordings are kept: files below the data directory, or chunks in the database."""
    limits: Limits = Limits()

    @property
    def owner_mark(self) -> str:
        """What begins the codes that only this process knows, such as those of answer links: where several serve one
        team, the proxy finds it by that. Empty for one alone."""
        return f"{self.replica}-" if self.store_url else ""

    @field_validator("public_url", "client_metadata_url")
    @classmethod
    def _plain_address(cls, value: str | None, info: ValidationInfo) -> str | None:
        """An address without a query, which others are built on; a document of a client is https and has a path."""
        if value is None:
            return None
        scheme, _, rest = value.partition("://")
        host, _, path = rest.partition("/")
        document = info.field_name == "client_metadata_url"
        plain = host and not set(value) & set("?#@\\ ") and value.isascii() and value.isprintable()
        if not plain or scheme not in ({"https"} if document else {"http", "https"}) or (document and not path):
            example = "https://example.com/parley.json" if document else "https://parley.example.com"
            raise ValueError(f"must be an address like {example}")
        return value if document else value.rstrip("/")


def default_data_dir() -> Path:
    """Where programs of this user keep their data, on this system."""
    home = os.environ.get("XDG_DATA_HOME", "")
    if home and Path(home).is_absolute():
        return Path(home) / "parley"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "parley"
    return Path.home() / ".local" / "share" / "parley"


def local(**changes: object) -> Settings:
    """The preset of local mode: one developer on their own machine."""
    return Settings.model_validate({"mode": "local", **changes})


def demo(**changes: object) -> Settings:
    """The preset of a public demo: anybody, one session each, small limits, nothing kept."""
    limits = Limits(
        message_bytes=256 * 1024,
        body_bytes=256 * 1024,
        log_messages=1_000,
        log_bytes=MIB,
        events=2_000,
        calls=40,
        calls_running=5,
        open_asks=10,
        settled_asks=40,
        sessions_per_identity=1,
        sessions_over=1,
        sessions=100,
        closed_sessions=1,
        closed_bytes=MIB,
        streams_per_browser=2,
        streams=200,
        idle_seconds=5 * 60,
        ask_seconds=10 * 60,
    )
    given = {"mode": "demo", "open_browser": False, "limits": limits, "data_dir": None, "token": None}
    return Settings.model_validate({**changes, **given})
