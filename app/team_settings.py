"""What a Parley for a team is started with, and which combinations of that are not safe.

Read from one file and from nowhere else: what a team relies on stands in one place that can be looked through. A
combination that would let somebody in who should not be, or let a server out, refuses to start, each with a sentence of
its own. Imported by team mode alone.
"""

from __future__ import annotations

import ipaddress
import os
import stat
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, model_validator

from app import team_bounds as bounds
from app.core.catalogue import CatalogueFault, Entry, read_allowed, read_entries
from app.isolation import Isolation
from app.settings import MIB, Limits, Settings
from app.team_oidc import Oidc
from app.team_oidc import refusals as oidc_refusals

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
TEAM_LIMITS: Mapping[str, Any] = {
    "sessions_per_identity": 5,
    "sessions_over": 5,
    "calls_per_minute": 20,
    "open_asks_per_identity": 100,
    "requests_per_identity": 64,
    "requests_per_minute": 1200,
    "streams_per_browser": 4,
    "streams_per_identity": 20,
    "recordings_per_identity": 200,
    "recordings_bytes_per_identity": 512 * MIB,
}
"""Where a team is stricter than one person on their own machine."""


class StoreSettings(BaseModel):
    """Where the people, sessions and recordings of a team are kept: nothing said, in a file of the data directory."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    url: str = Field(default="", max_length=2048, repr=False)
    """The PostgreSQL that all replicas share, without a password: `postgresql://parley@db.internal/parley`."""
    url_file: Path | None = None
    """The same with its password: the first line of a file that only Parley can read."""
    url_env: str = Field(default="", max_length=100)
    """The same with its password: the name of a variable of Parley's environment."""

    def address(self, environment: Mapping[str, str]) -> str:
        """The address; empty where none is given. Raises ValueError, which says nothing of it."""
        if self.url_file is not None:
            try:
                found = self.url_file.read_text(encoding="utf-8").partition("\n")[0].strip()
            except (OSError, UnicodeDecodeError) as fault:
                why = getattr(fault, "strerror", None) or "it is no text"
                raise ValueError(f"store.url_file = {str(self.url_file)!r} cannot be read: {why}") from None
        elif self.url_env:
            found = environment.get(self.url_env, "").strip()
        else:
            return self.url.strip()
        if not found:
            raise ValueError("store names a file or a variable for its address, and there is nothing in it")
        return found


class TeamSettings(BaseModel):
    """Every setting of `team.toml`. `.deploy/team.toml` explains each to whoever writes one."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    public_url: str
    """Where people find Parley: the address of the proxy that has the certificate."""
    host: str = "127.0.0.1"
    """The address to listen on, behind the proxy."""
    port: int = Field(default=6281, ge=0, le=65535)
    """The port to listen on."""
    trusted_proxies: tuple[str, ...] = ("127.0.0.1", "::1")
    """Addresses or networks of the proxy. A request from anywhere else is refused."""
    data_dir: Path
    """Where people, the catalogue and the audit log are kept."""
    key_file: str = Field(default="", max_length=bounds.ENTRY_PATH)
    """The file of the key that encrypts secrets of people; without it Parley makes `people.key` in `data_dir`."""
    door: Literal["invitation", "oidc", "proxy"] = "invitation"
    """How people come in: by invitations, by a sign-in service (`[oidc]`), or by a header of the proxy, which has asked
    who they are. With `[oidc]` and `door = "invitation"`, by both of these."""
    oidc: Oidc | None = None
    """A sign-in service that speaks OpenID Connect: a table, `[oidc]`."""
    proxy_header: str = Field(default="", max_length=100)
    """The header in which the proxy says who somebody is, with `door = "proxy"`."""
    proxy_secret_file: str = Field(default="", max_length=bounds.ENTRY_PATH)
    """The file of a secret that the proxy sends in `X-Parley-Proxy`, with `door = "proxy"`. A proxy on this machine
    needs it: servers of the catalogue run there too, and would pose as it."""
    proxy_role: Literal["viewer", "user"] = "user"
    """The role of somebody whom the proxy names for the first time."""
    proxy_admins: tuple[str, ...] = Field(default=(), max_length=100)
    """Whom the proxy names and who are admins when they come for the first time."""
    invitation_hours: float = Field(default=24, gt=0, le=24 * 30)
    """How long an invitation works."""
    login_hours: float = Field(default=12, gt=0, le=24 * 31)
    """How long a browser stays signed in."""
    login_idle_hours: float = Field(default=2, gt=0, le=24 * 31)
    """How long a browser stays signed in that is not used."""
    isolation: Literal["best", "required"] = "best"
    """Whether Parley starts on a machine that lacks some protection of what it starts."""
    child_user: str = Field(default="", max_length=100)
    """Whom servers run as: a user, or a range of numbers of which each running server has one for itself."""
    free_http: bool = True
    """Whether people may type public addresses; otherwise only those of the catalogue and of `allow` are dialled."""
    allow: tuple[str, ...] = Field(default=(), max_length=1000)
    """Internal servers that people may type: names with their ports. They may resolve to private addresses."""
    replica: str = Field(default="r0", pattern=r"^r[0-9]{1,4}$")
    """What this process is called, `r0`, `r1` and so on: its sessions have that in their addresses, and the proxy sends
    whoever asks for one to it. `--replica` says it too, where several share one file."""
    store: StoreSettings = StoreSettings()
    """One PostgreSQL for all replicas of a team on several machines."""
    record: Literal["always", "ask"] = "always"
    """Whether every session is recorded, so that its history outlives the process that holds it."""
    drain_minutes: float = Field(default=30, gt=0, le=24 * 60)
    """How long a replica that is drained waits for its sessions to end."""
    audit_days: float = Field(default=bounds.AUDIT_DAYS, gt=0, le=3660)
    """How long the audit log remembers."""
    metrics_port: int = Field(default=0, ge=0, le=65535)
    """The loopback port on which Prometheus asks for figures, at `/metrics`; 0 for none."""
    log: Literal["text", "json"] = "text"
    """How Parley writes its own log: lines for people, or a JSON object each line."""
    limits: Limits = Limits(**TEAM_LIMITS)
    """Every size and time limit by its name; a person has 5 sessions unless told."""
    catalogue: dict[str, Any] = Field(default_factory=dict, max_length=bounds.ENTRIES)
    """Servers that people pick by name, each a table: `[catalogue.weather]`."""

    @model_validator(mode="before")
    @classmethod
    def _stricter(cls, given: Any) -> Any:
        if isinstance(given, dict) and isinstance(given.get("limits"), dict):
            return {**given, "limits": {**TEAM_LIMITS, **given["limits"]}}
        return given

    @model_validator(mode="after")
    def _listed(self) -> Self:
        for text in self.allow:
            read_allowed(text)
        _ = self.proxies
        return self

    @property
    def origin(self) -> str:
        """The public address as a browser says it."""
        return self.public_url.rstrip("/")

    @property
    def public_port(self) -> int:
        return urlsplit(self.public_url).port or 443

    @property
    def public_host(self) -> str:
        """The name in it, as the Host header has it without its port."""
        host = urlsplit(self.public_url).hostname or ""
        return f"[{host}]" if ":" in host else host

    @property
    def proxies(self) -> tuple[Network, ...]:
        """Who may talk to us."""
        try:
            return tuple(ipaddress.ip_network(text) for text in self.trusted_proxies)
        except ValueError as fault:
            raise ValueError(f"trusted_proxies takes addresses like 127.0.0.1 or 10.0.3.0/28: {fault}") from None

    def proxy_secret(self) -> str:
        """What the proxy has to send along; empty for nothing. Blocks. Raises OSError, ValueError."""
        if not self.proxy_secret_file:
            return ""
        if not (found := Path(self.proxy_secret_file).read_text(encoding="ascii").strip()):
            raise ValueError("it is empty")
        return found

    @property
    def allowed(self) -> frozenset[tuple[str, int]]:
        return frozenset(read_allowed(text) for text in self.allow)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The catalogue of the file. Raises CatalogueFault."""
        return read_entries(self.catalogue)

    def process(self, key: str = "") -> Settings:
        """What of it is the same in every mode. Sign-ins to servers are kept, encrypted with this key."""
        url = self.store.address(os.environ)
        return Settings(
            mode="team",
            host=self.host,
            port=self.port,
            open_browser=False,
            public_url=self.origin,
            keep_sign_ins=True,
            sign_ins_key=key or None,
            data_dir=self.data_dir,
            limits=self.limits,
            replica=self.replica,
            store_url=url or None,
            record=self.record,
            recordings_in="database" if url else "files",
        )


# ----------------------------------------------------------------------------------------------------------- refusals


class Unsafe(Exception):
    """Parley for a team does not start like this. One sentence."""


def check(settings: TeamSettings, environment: Mapping[str, str]) -> None:
    """Raise Unsafe for the first combination that is not safe."""
    for refusal in refusals(settings, environment):
        raise Unsafe(refusal)


def refusals(settings: TeamSettings, environment: Mapping[str, str]) -> Iterator[str]:
    """Everything that is not safe, a sentence each."""
    yield from _address(settings)
    yield from _proxy(settings)
    if environment.get("PARLEY_TOKEN"):
        yield "PARLEY_TOKEN is the one token of local mode; unset it: people of a team make tokens of their own"
    if os.geteuid() == 0 and not settings.child_user:
        yield "Parley runs as root and child_user names nobody, so servers would be root; name a range like 61000-61199"
    yield from _single_sign_on(settings, environment)
    if settings.metrics_port and settings.metrics_port in {settings.port, settings.public_port}:
        yield "metrics_port is the port of Parley or of its proxy; figures have one of their own"
    yield from _directory(settings)
    yield from _key(settings)
    yield from _store(settings, environment)
    yield from _listed(settings)


def _address(settings: TeamSettings) -> Iterator[str]:
    try:
        parts = urlsplit(settings.public_url)
        port = parts.port
    except ValueError:
        yield f"public_url = {settings.public_url[:100]!r} is no address; write it like https://parley.example"
        return
    if parts.scheme != "https":
        yield "public_url must begin with https://: cookies and tokens of people would cross the network in the open"
    elif (
        not parts.hostname or parts.username is not None or parts.path not in {"", "/"} or parts.query or parts.fragment
    ):
        yield "public_url is a scheme and a name, without a path; write it like https://parley.example"
    elif parts.netloc != parts.netloc.lower():
        yield "public_url is written in small letters, as browsers send it"
    elif (parts.hostname, port or 443) in settings.allowed:
        yield "allow names the public_url of this Parley, which is never its own target"


def _proxy(settings: TeamSettings) -> Iterator[str]:
    try:
        bound = ipaddress.ip_address(settings.host)
    except ValueError:
        yield f"host takes an address like 127.0.0.1, not {settings.host[:100]!r}"
        return
    if not settings.proxies:
        yield "trusted_proxies is empty, so nobody could come in; name the address of the proxy"
    if any(net.num_addresses > 2**16 for net in settings.proxies):
        yield "trusted_proxies names a network so wide that anybody could pose as the proxy; name its own address"
    if not bound.is_loopback and all(net.is_loopback for net in settings.proxies):
        open_to = f"host = {settings.host!r} is open to the network and trusted_proxies names this machine only"
        yield f"{open_to}; listen on 127.0.0.1, or name the proxy"
    if settings.door == "proxy" and not settings.proxy_header:
        yield 'door = "proxy" needs proxy_header, the header in which the proxy says who somebody is'
    if settings.door == "proxy" and not settings.proxy_admins:
        yield 'door = "proxy" needs proxy_admins: otherwise nobody could become an admin'
    if settings.door == "proxy" and settings.proxy_header:
        name = settings.proxy_header.lower()
        if not name.isascii() or not name.replace("-", "a").isalnum() or not name.startswith(("x-", "remote-")):
            yield "proxy_header must be a header that browsers do not send, like X-Forwarded-User or Remote-User"
        if name in _TAKEN:
            yield f"proxy_header = {settings.proxy_header!r} says something else already; take X-Forwarded-User"
    if settings.door == "proxy" and not settings.proxy_secret_file and any(net.is_loopback for net in settings.proxies):
        yield 'door = "proxy" with a proxy on this machine needs proxy_secret_file: a server could pose as the proxy'
    if settings.proxy_secret_file:
        yield from _proxy_secret(settings)
    if settings.door != "proxy" and settings.proxy_header:
        yield 'proxy_header is set and door is not "proxy": say which of the two is meant'


def _proxy_secret(settings: TeamSettings) -> Iterator[str]:
    if settings.door != "proxy":
        yield 'proxy_secret_file is set and door is not "proxy": say which of the two is meant'
        return
    if wrong := list(_secret("proxy_secret_file", Path(settings.proxy_secret_file))):
        yield from wrong
        return
    try:
        found = settings.proxy_secret()
    except (OSError, ValueError):
        found = ""
    if len(found) < _SECRET_LENGTH or not found.isprintable() or " " in found:
        how = "make one with: openssl rand -hex 32"
        yield f"proxy_secret_file holds no secret of {_SECRET_LENGTH} letters or more; {how}"


_SECRET_LENGTH = 24
_TAKEN = frozenset(
    ("x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port", "x-real-ip", "x-requested-with")
) | {"x-parley-proxy"}


def _single_sign_on(settings: TeamSettings, environment: Mapping[str, str]) -> Iterator[str]:
    if settings.door == "oidc" and settings.oidc is None:
        yield 'door = "oidc" needs the table [oidc], which says who vouches for people'
    if settings.oidc is None:
        return
    if settings.door == "proxy":
        yield '[oidc] is set and door is "proxy": say which of the two is meant'
    yield from oidc_refusals(settings.oidc, environment)
    if settings.oidc.client_secret_file is not None and not settings.oidc.client_secret_env:
        yield from _secret("oidc.client_secret_file", settings.oidc.client_secret_file)


def _directory(settings: TeamSettings) -> Iterator[str]:
    where = settings.data_dir
    if not where.is_absolute():
        yield "data_dir must be an absolute path, so that every start finds the same people"
        return
    try:
        mode = where.stat().st_mode
    except FileNotFoundError:
        return  # it will be made, for its owner alone
    except OSError as fault:
        yield f"data_dir = {str(where)!r} cannot be used: {fault.strerror}"
        return
    if not stat.S_ISDIR(mode):
        yield f"data_dir = {str(where)!r} is no directory"
    elif stat.S_IMODE(mode) & 0o077:
        how = f"make it yours with: chmod 700 {where}"
        yield f"data_dir = {str(where)!r} is open to other users, servers among them; {how}"


def _key(settings: TeamSettings) -> Iterator[str]:
    if not settings.key_file:
        return
    file = Path(settings.key_file)
    if not file.is_absolute():
        yield "key_file must be an absolute path, so that every start finds the same key"
        return
    if wrong := list(_secret("key_file", file)):
        yield from wrong
        return
    from cryptography.fernet import Fernet, MultiFernet

    try:
        MultiFernet([Fernet(one) for one in file.read_text(encoding="ascii").split()])
    except (OSError, ValueError):
        how = "python -c 'from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())'"
        yield f"key_file = {settings.key_file!r} holds no key; make one with: {how}"


def _store(settings: TeamSettings, environment: Mapping[str, str]) -> Iterator[str]:
    store = settings.store
    if sum(map(bool, (store.url, store.url_file, store.url_env))) > 1:
        yield "store names its address more than once; keep one of url, url_file and url_env"
        return
    if store.url_file is not None:
        yield from _secret("store.url_file", store.url_file)
    try:
        given = store.address(environment)
        parts = urlsplit(given)
        secret = parts.password or "password" in parts.query
    except ValueError as fault:
        yield str(fault) if "store" in str(fault) else "the address of the store is none"
        return
    if not given:
        return
    if parts.scheme not in {"postgresql", "postgres"} or not parts.path.strip("/"):
        yield "the store wants an address like postgresql://parley@db.internal/parley"
    elif store.url and secret:
        yield "store.url holds a password; write the address into a file for Parley alone and name it as url_file"
    if not settings.key_file:
        yield "store is shared by all replicas, so they need one key: name it as key_file, the same for each of them"
    if find_spec("psycopg") is None:
        yield "store names a PostgreSQL, and its driver is not installed: pip install 'mcp-parley[postgres]'"


def _listed(settings: TeamSettings) -> Iterator[str]:
    try:
        entries = settings.entries
    except CatalogueFault as fault:
        yield str(fault)
        return
    for entry in entries:
        for place in too_much_read(settings, entry):
            yield f"catalogue.{entry.id} may read {place}, where Parley keeps its people; give it another directory"
        for variable in entry.variables:
            if variable.file:
                yield from _secret(f"catalogue.{entry.id}: the file of {variable.name}", Path(variable.file))


def too_much_read(settings: TeamSettings, entry: Entry) -> Iterator[str]:
    """Directories of an entry in which Parley itself keeps something."""
    files = [settings.data_dir, *([Path(settings.key_file)] if settings.key_file else [])]
    own = [Path(os.path.realpath(one)) for one in files]
    places = (entry.cwd, *entry.reads, *entry.path.split(":"), str(Path(entry.command).parent))
    for place in dict.fromkeys(filter(lambda one: one.startswith("/"), places)):
        if any(one.is_relative_to(os.path.realpath(place)) for one in own):
            yield place


def _secret(what: str, file: Path) -> Iterator[str]:
    try:
        mode = file.stat().st_mode
    except OSError as fault:
        yield f"{what} cannot be read: {fault.strerror}"
        return
    if stat.S_IMODE(mode) & 0o007:
        yield f"{what} can be read by everybody on this machine; make it yours with: chmod 600 {file}"


def check_isolation(settings: TeamSettings, found: Isolation) -> None:
    """Raise Unsafe when walls are missing that the settings require."""
    if settings.isolation == "required" and found.refusal:
        raise Unsafe(found.refusal)
