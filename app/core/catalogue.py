"""The catalogue of a team: the servers that people may use, who may, and what each still wants to be told.

An admin fixes commands and addresses; a person picks by name and fills declared variables, which become values of the
environment or of headers and never arguments. What a session is given instead of a command is the name of an entry, so
nobody who uses it learns where things lie on the machine, and what was taken out of the catalogue starts no more.
Pure: it knows no store, no page and no process.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, field_validator, model_validator

from app import team_bounds as bounds
from app.core.errors import Invalid
from app.core.strict import Strict
from app.core.targets import AnyTarget, DemoTarget, HttpTarget, StdioTarget

Role = Literal["viewer", "user", "admin"]
ROLES: Final[tuple[Role, ...]] = ("viewer", "user", "admin")
PREFIX: Final = "catalogue:"
"""Before the id of an entry, where a command would stand."""

NEW: Final = "new"
"""Where the page of an entry that is still being written stands."""

_OURS: Final = frozenset(
    ("HOME", "PATH", "TMPDIR", "SHELL", "USER", "LOGNAME", "PWD", "OLDPWD", "TERM", "LANG", "IFS", "ENV")
)
_LOADERS: Final = ("LD_", "DYLD_", "GLIBC_", "GCONV_", "MALLOC_", "STARTED_BY_", "OPENED_BY_", "PARLEY_")
"""They change what the programs do that put the walls up, or are ours."""
_INTERPRETERS: Final = (
    "BASH_",
    "GIT_",
    "JAVA_",
    "JDK_",
    "LUA_",
    "NODE_",
    "NPM_",
    "OPENSSL_",
    "PERL",
    "PHP",
    "PIP_",
    "PYTHON",
    "RUBY",
    "SSL_",
    "UV_",
    "XDG_",
    "_JAVA_",
)
"""They let a program run or trust something else than its admin chose."""


def refused_variable(name: str, *, fixed: bool = False) -> str:
    """Why this can be no variable of a server; empty when it can. An admin may fix more than a person may fill in."""
    if not name or len(name) > bounds.VARIABLE_NAME or not name.isascii():
        return "is no name of a variable"
    if not name.replace("_", "a").isalnum() or name[0].isdecimal():
        return "is no name of a variable: letters, digits and underscores"
    known = name.upper()
    if known in _OURS or known.startswith(_LOADERS):
        return "is a variable that Parley or the system sets"
    if not fixed and (known.startswith(_INTERPRETERS) or known.endswith(("_PROXY", "RUBYOPT"))):
        return "would change which code runs or where it connects: only an admin fixes it, in env"
    return ""


class Variable(Strict):
    """What an entry wants to be told before it is used."""

    name: str = Field(min_length=1, max_length=bounds.VARIABLE_NAME)
    """Of an environment variable; with an HTTP server, of a header."""
    description: str = Field(default="", max_length=bounds.ENTRY_DESCRIPTION)
    values: tuple[str, ...] = Field(default=(), max_length=bounds.VARIABLE_VALUES)
    """The only ones that are taken, when there are any."""
    required: bool = True
    secret: bool = False
    file: str = Field(default="", max_length=bounds.ENTRY_PATH)
    """Where an admin keeps the value, which nobody is asked for then and nobody sees."""
    kept: bool = False
    """An admin typed the value on the page of the catalogue: it is kept encrypted, and nobody is asked or shown it."""

    @property
    def by_admin(self) -> bool:
        """Whether the value is an admin's, and no business of who uses the server."""
        return bool(self.file) or self.kept

    def misfit(self, value: str) -> str:
        """Why this value is not taken; empty when it is. It is never looked into: no shell will read it."""
        if "\0" in value:
            return "A value cannot contain a NUL character."
        if len(value.encode("utf-8", "replace")) > bounds.VARIABLE_VALUE:
            return f"At most {bounds.VARIABLE_VALUE // bounds.KIB} KiB."
        if self.values and value not in self.values:
            return f"One of: {', '.join(self.values)}."
        return ""


class Entry(Strict):
    """One server that people may use."""

    id: str = Field(min_length=1, max_length=bounds.ENTRY_ID)
    name: str = Field(min_length=1, max_length=bounds.ENTRY_NAME)
    description: str = Field(default="", max_length=bounds.ENTRY_DESCRIPTION)
    transport: Literal["stdio", "http", "sse", "demo"]
    roles: tuple[Role, ...] = ("user", "admin")
    """Who may use it."""
    enabled: bool = True
    variables: tuple[Variable, ...] = Field(default=(), max_length=bounds.ENTRY_VARIABLES)
    # ---- of a command
    command: str = Field(default="", max_length=bounds.ENTRY_PATH)
    args: tuple[str, ...] = Field(default=(), max_length=1000)
    env: dict[str, str] = Field(default_factory=dict, max_length=200)
    cwd: str = Field(default="", max_length=bounds.ENTRY_PATH)
    path: str = Field(default="", max_length=bounds.ENTRY_PATH)
    """Where its command and what that starts are looked for."""
    reads: tuple[str, ...] = Field(default=(), max_length=bounds.ENTRY_VARIABLES)
    """Directories that it may read, beside those of the system and its own."""
    network: bool = False
    memory_mib: int = Field(default=bounds.CHILD_MEMORY // bounds.MIB, ge=16, le=64 * 1024)
    processes: int = Field(default=bounds.CHILD_PROCESSES, ge=1, le=4096)
    cpu_seconds: int = Field(default=bounds.CHILD_CPU_SECONDS, ge=1, le=1_000_000)
    open_files: int = Field(default=bounds.CHILD_OPEN_FILES, ge=16, le=65_536)
    file_mib: int = Field(default=bounds.CHILD_FILE // bounds.MIB, ge=1, le=1024 * 1024)
    # ---- of an address
    url: str = Field(default="", max_length=4096)

    @field_validator("id")
    @classmethod
    def _slug(cls, value: str) -> str:
        if not value.isascii() or not value.replace("-", "a").isalnum() or value != value.lower():
            raise ValueError("an id has small letters, digits and dashes")
        if value == NEW:
            raise ValueError(f"{NEW} is no id: an entry that is being written has it")
        return value

    @field_validator("name")
    @classmethod
    def _one_line(cls, value: str) -> str:
        if value != " ".join(value.split()):
            raise ValueError("a name is one line, without blanks around it")
        return value

    @field_validator("roles")
    @classmethod
    def _known(cls, value: tuple[Role, ...]) -> tuple[Role, ...]:
        return tuple(role for role in ROLES if role in value)

    @field_validator("url")
    @classmethod
    def _dialled(cls, value: str) -> str:
        try:
            return HttpTarget(transport="http", url=value).url if value else value
        except ValidationError as fault:
            words = fault.errors(include_url=False)[0]
            said = words["msg"].removeprefix("Value error, ")
            scheme = words["type"] == "string_pattern_mismatch"
            raise ValueError("a URL begins with http:// or https://" if scheme else said) from None

    @field_validator("cwd", "reads", "path")
    @classmethod
    def _absolute(cls, value: Any) -> Any:
        parts = value.split(":") if isinstance(value, str) else value
        if any(part and (not part.startswith("/") or ".." in part.split("/") or "\0" in part) for part in parts):
            raise ValueError("must be absolute paths, without .. in them")
        return value

    @field_validator("env")
    @classmethod
    def _fixed(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if why := refused_variable(name, fixed=True):
                raise ValueError(f"{name[:60]!r} {why}")
        return value

    @model_validator(mode="after")
    def _whole(self) -> Self:
        child = {"command", "args", "env", "cwd", "path", "reads", "network"} & self.model_fields_set
        if self.transport == "stdio" and not self.command:
            raise ValueError("a server over stdio needs a command")
        if self.transport != "stdio" and child:
            raise ValueError(f"{sorted(child)[0]} is for a server over stdio only")
        if (self.transport in ("http", "sse")) is not bool(self.url):
            raise ValueError("a server over HTTP has a url, and no other one has")
        if self.transport == "demo" and self.variables:
            raise ValueError("the demo server takes no variables")
        if self.transport != "stdio" and any(one.by_admin for one in self.variables):
            raise ValueError("a value of an admin is for a server over stdio; people give their own headers")
        if any(one.file and one.kept for one in self.variables):
            raise ValueError("a value of an admin stands in a file or is kept here, not both")
        names = [variable.name.lower() for variable in self.variables]
        if len(set(names)) < len(names) or set(names) & {name.lower() for name in self.env}:
            raise ValueError("a variable stands there twice")
        if self.transport == "stdio":
            for variable in self.variables:
                if why := refused_variable(variable.name):
                    raise ValueError(f"the variable {variable.name[:60]!r} {why}")
        # Whatever else is wrong with a target is said by the target: an address, a header, a NUL.
        self._as_started()
        if self.transport in ("http", "sse"):
            self.target({one.name: one.values[0] if one.values else "x" for one in self.wanted})
        return self

    def _as_started(self) -> None:
        if self.transport == "stdio":
            StdioTarget(command=self.command, args=self.args, env=self.env, cwd=self.cwd or None)

    @property
    def wanted(self) -> tuple[Variable, ...]:
        """What a person is asked for."""
        return tuple(one for one in self.variables if not one.by_admin)

    @property
    def origin(self) -> tuple[str, int] | None:
        """Name and port of its address."""
        return origin_of(self.url) if self.url else None

    @property
    def leads_to(self) -> str:
        """What it starts or dials: a secret that was given for this goes nowhere else."""
        if self.transport != "stdio":
            return f"{self.transport} {self.url}"
        # `npx one` and `npx another` are not the same server.
        return f"stdio {json.dumps([self.command, self.args, self.env, self.cwd, self.path])}"

    def target(self, given: Mapping[str, str]) -> AnyTarget:
        """What a session connects to when somebody picks this entry. Raises Invalid for what they filled in."""
        if wrong := self.misfits(given):
            raise Invalid("Some values cannot be used.", wrong)
        if self.transport == "demo":
            return DemoTarget()
        values = {one.name: given[one.name] for one in self.wanted if given.get(one.name)}
        secret = tuple(one.name for one in self.wanted if one.secret and one.name in values)
        try:
            if self.transport == "stdio":
                return StdioTarget(command=PREFIX + self.id, env=values, secret=secret)
            return HttpTarget(transport=self.transport, url=self.url, headers=values, secret=secret)
        except ValidationError as fault:
            words = fault.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
            raise Invalid("Some values cannot be used.", {"/variables": [words]}) from None

    def misfits(self, given: Mapping[str, str]) -> dict[str, list[str]]:
        """What is wrong with the values that somebody filled in, by their place."""
        wanted = {one.name: one for one in self.wanted}
        wrong = {f"/variables/{name}": ["There is no such variable."] for name in given if name not in wanted}
        for name, variable in wanted.items():
            value = given.get(name, "")
            if variable.required and not value:
                wrong[f"/variables/{name}"] = ["This server needs it."]
            elif value and (why := variable.misfit(value)):
                wrong[f"/variables/{name}"] = [why]
        return wrong


def origin_of(url: str) -> tuple[str, int] | None:
    """Name and port of an address, as they are held against a list; None when it is none."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if not parts.hostname:
        return None
    return parts.hostname.rstrip(".").lower(), port or (443 if parts.scheme == "https" else 80)


def read_allowed(text: str) -> tuple[str, int]:
    """An entry of the allow-list, `name:port`. Raises ValueError with the reason."""
    name, _, port = text.rpartition(":")
    plain = name.strip("[]").rstrip(".").lower()
    if not plain or not port.isdecimal() or not 1 <= int(port) <= 65_535 or any(char in plain for char in "/@* \t"):
        raise ValueError(f"{text[:100]!r} is no name with its port, like wiki.internal:443")
    return plain, int(port)


OFF: Final = "Commands of your own are switched off here. Pick a server of the catalogue, or ask an admin to add one."


@dataclass(slots=True, frozen=True)
class Catalogue:
    """All entries, and what beside them may be dialled."""

    entries: tuple[Entry, ...] = ()
    allowed: Set[tuple[str, int]] = field(default_factory=frozenset)
    """Internal names that anybody may type, each with its port."""
    free_http: bool = True
    """Whether people may type public addresses."""

    def visible(self, role: Role) -> list[Entry]:
        """What somebody with this role may use, in the order in which admins list it."""
        return [one for one in self.entries if one.enabled and role in one.roles]

    def find(self, role: Role, key: str) -> Entry | None:
        """One of these; any other is as unknown as one that never was (S26)."""
        return next((one for one in self.visible(role) if one.id == key), None)

    def dialled(self) -> frozenset[tuple[str, int]]:
        """Names and ports that may lead inwards: what was allowed, and the addresses of the catalogue."""
        return frozenset(self.allowed) | {one.origin for one in self.entries if one.enabled and one.origin is not None}

    def refusal(self, role: Role, target: AnyTarget) -> str | None:
        """Why somebody with this role may not connect to a target; None when they may (S25). Whether an address leads
        inwards is decided where it is dialled, on what it resolved to."""
        if isinstance(target, StdioTarget):
            return self._refused_command(role, target)
        if isinstance(target, DemoTarget):
            return None if any(one.transport == "demo" for one in self.visible(role)) else OFF
        if any(one.url == target.url and one.transport == target.transport for one in self.visible(role)):
            return None
        return self.refused_address(target.url)

    def refused_address(self, url: str) -> str | None:
        """Why nobody may type this address, of a server or of whatever else is dialled for them; None when they may."""
        origin = origin_of(url)
        if origin in self.allowed:
            return None
        if any(one.origin == origin for one in self.entries):
            return "Servers of that host are picked from the catalogue here."
        return (
            None if self.free_http else "Addresses of your own are switched off here. Pick a server of the catalogue."
        )

    def entry_of(self, target: AnyTarget) -> Entry | None:
        """The entry that a target was picked from, whatever it says now; None for what somebody typed."""
        if isinstance(target, StdioTarget):
            return next((one for one in self.entries if one.id == target.command.removeprefix(PREFIX)), None)
        if isinstance(target, DemoTarget):
            return next((one for one in self.entries if one.transport == "demo"), None)
        fits = (one for one in self.entries if (one.url, one.transport) == (target.url, target.transport))
        return next(fits, None)

    def withdrawn(self, role: Role, target: AnyTarget) -> bool:
        """Whether somebody with this role may use the server of a target no more. An entry that was changed is still
        theirs: what runs keeps what it was started with."""
        if isinstance(target, StdioTarget):
            return self.find(role, target.command.removeprefix(PREFIX)) is None
        return self.refusal(role, target) is not None

    def _refused_command(self, role: Role, target: StdioTarget) -> str | None:
        prefix, found, key = target.command.partition(PREFIX)
        if prefix or not found or target.args or target.cwd is not None:
            return OFF
        entry = self.find(role, key)
        if entry is None or entry.transport != "stdio":
            return "There is no such server in the catalogue. Pick another one."
        wrong = entry.misfits(target.env)
        return None if not wrong else f"{next(iter(wrong)).rpartition('/')[2]}: {next(iter(wrong.values()))[0]}"

    def started_by(self, target: StdioTarget) -> Entry | None:
        """The entry that a target names, whoever asks; None when the catalogue has none, or has it no more."""
        roles = (role for role in ROLES if self._refused_command(role, target) is None)
        role = next(roles, None)
        return None if role is None else self.find(role, target.command.removeprefix(PREFIX))


class CatalogueFault(Exception):
    """A file says something of a server that cannot be. One sentence for its author."""


def read_entries(tables: Mapping[str, Any]) -> tuple[Entry, ...]:
    """The entries of a settings file: `[catalogue.ID]`. Raises CatalogueFault."""
    return tuple(_read_entry(key, table) for key, table in tables.items())


def _read_entry(key: str, table: Any) -> Entry:
    if not isinstance(table, dict):
        raise CatalogueFault(f"catalogue.{key[:60]} must be a table, like: [catalogue.weather]")
    try:
        entry = Entry.model_validate({"name": key, **table, "id": key})
        if any(one.kept for one in entry.variables):
            raise CatalogueFault(
                f"catalogue.{key}: kept is for entries of the page; a value of this file stands in file"
            )
        return entry
    except ValidationError as fault:
        error = fault.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in ("catalogue", key, *error["loc"]))
        if error["type"] == "extra_forbidden":
            raise CatalogueFault(f"there is no setting {where}") from None
        raise CatalogueFault(f"{where}: {error['msg'].removeprefix('Value error, ')}") from None


def merged(fixed: Iterable[Entry], kept: Iterable[Entry]) -> tuple[Entry, ...]:
    """Entries of the file, then those of the page whose ids the file does not have."""
    found = {one.id: one for one in fixed}
    return (*found.values(), *(one for one in kept if one.id not in found))
