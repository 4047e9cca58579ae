"""What a session connects to: a command, an address, or the demo server."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from app import bounds, secrecy
from app.core.auth import Auth, secrets_of
from app.core.strict import Strict
from app.secrecy import Mark


def _no_nul(value: str) -> str:
    if "\0" in value:
        raise ValueError("must not contain a NUL character")
    return value


class StdioTarget(Strict):
    """A server that Parley starts as a child process. Never a shell: `args` reach the program as they are."""

    transport: Literal["stdio"] = "stdio"
    command: str = Field(min_length=1, max_length=4096)
    args: tuple[str, ...] = Field(default=(), max_length=1000)
    env: dict[str, str] = Field(default_factory=dict, max_length=200)
    cwd: str | None = Field(default=None, max_length=4096)
    secret: tuple[Annotated[str, Field(max_length=bounds.TARGET_NAME)], ...] = Field(default=(), max_length=200)
    """Names of variables whose values are never shown and never written to disk."""
    secret_args: tuple[Mark, ...] = Field(default=(), max_length=bounds.TARGET_MARKS)
    """The parts of arguments that are treated alike: which argument, and from where to where in it."""

    @model_serializer(mode="wrap")
    def _as_ever(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A target without marks is written as it was before there were any, and has the same digest."""
        found: dict[str, Any] = plain(self)
        return found if self.secret_args else {key: value for key, value in found.items() if key != "secret_args"}

    @field_validator("secret_args")
    @classmethod
    def _only_needed(cls, value: tuple[Mark, ...], info: ValidationInfo) -> tuple[Mark, ...]:
        args: tuple[str, ...] = info.data.get("args", ())
        if "command" not in info.data or "args" not in info.data:
            return ()
        _within(value, args)
        return secrecy.needed(value, secrecy.in_arguments((info.data["command"], *args))[1:])

    @field_validator("command", "cwd")
    @classmethod
    def _clean(cls, value: str | None) -> str | None:
        return value if value is None else _no_nul(value)

    @field_validator("args")
    @classmethod
    def _clean_args(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if sum(len(arg) for arg in value) > bounds.TARGET_ARGUMENTS:
            raise ValueError("the arguments are longer than 128 KiB together")
        return tuple(_no_nul(arg) for arg in value)

    @field_validator("env")
    @classmethod
    def _clean_env(cls, value: dict[str, str]) -> dict[str, str]:
        if sum(len(name) + len(text) for name, text in value.items()) > bounds.TARGET_ENVIRONMENT:
            raise ValueError("the environment is longer than 1 MiB together")
        for name, text in value.items():
            if not name or "=" in name or "\0" in name or len(name) > bounds.TARGET_NAME:
                raise ValueError(f"{name[:60]!r} is not a name for an environment variable")
            if len(text) > 128 * 1024:
                raise ValueError(f"the value of {name} is longer than 128 KiB")
            _no_nul(text)
        return value

    @property
    def argv(self) -> tuple[str, ...]:
        """The command and its arguments."""
        return (self.command, *self.args)

    @property
    def shown_argv(self) -> tuple[str, ...]:
        """The command and its arguments, with `•••` where a secret stands."""
        return secrecy.masked_places(self.argv, self.places)

    @property
    def places(self) -> secrecy.Places:
        """Where secrets stand in the command and its arguments."""
        marks = ((at + 1, start, end) for at, start, end in self.secret_args)
        return secrecy.with_marks(secrecy.in_arguments(self.argv), marks)

    @property
    def command_line(self) -> str:
        """All of it as a person would type it, with `•••` where a secret stands."""
        return typed_line(self.shown_argv)

    @property
    def label(self) -> str:
        return _cut(self.command_line)

    @property
    def secret_names(self) -> set[str]:
        """The variables whose values nobody may see or write down: marked as such, or secret by the one table."""
        marked = {name.lower() for name in self.secret}
        return {
            name
            for name, value in self.env.items()
            if name.lower() in marked or secrecy.is_secret_variable(name, value)
        }


def _within(marks: Iterable[Mark], texts: Sequence[str]) -> None:
    for at, start, end in marks:
        if not 0 <= at < len(texts) or not 0 <= start < end <= len(texts[at]):
            raise ValueError("there is nothing where this says that a secret stands")


class DemoTarget(Strict):
    """The built-in demo server, started over stdio."""

    transport: Literal["demo"] = "demo"

    @property
    def label(self) -> str:
        return "the demo server"

    @property
    def secret_names(self) -> set[str]:
        return set()


class Tls(Strict):
    """How a server proves who it is, where the authorities that this machine trusts do not vouch for it."""

    ca: str = Field(default="", max_length=bounds.TARGET_CA)
    """Certificates of further authorities, as PEM."""
    fingerprint: str = Field(default="", max_length=200)
    """The one certificate to accept: `sha256:` and 64 hexadecimal digits. It takes the place of every other check."""

    @field_validator("ca")
    @classmethod
    def _readable(cls, value: str) -> str:
        value = value.strip()
        if "PRIVATE KEY" in value:
            raise ValueError("there is a private key in it: paste the certificate alone")
        if value:
            import ssl  # most targets have none

            try:
                ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=value)
            except (ssl.SSLError, ValueError):
                raise ValueError("this is no certificate in PEM: it begins with -----BEGIN CERTIFICATE-----") from None
        return value

    @field_validator("fingerprint")
    @classmethod
    def _plain(cls, value: str) -> str:
        """However it is written by whoever prints one: with colons or blanks, in large letters, with its name."""
        digits = value.strip().lower().rpartition("=")[2].removeprefix("sha256:").replace(":", "").replace(" ", "")
        if digits and (len(digits) != 64 or not set(digits) <= set("0123456789abcdef")):
            raise ValueError("a fingerprint is SHA-256, 64 hexadecimal digits")
        return f"sha256:{digits}" if digits else ""


class HttpTarget(Strict):
    """A server that Parley dials: streamable HTTP, or the older HTTP with server-sent events."""

    transport: Literal["http", "sse"]
    url: str = Field(min_length=1, max_length=4096, pattern=r"^https?://")
    headers: dict[str, str] = Field(default_factory=dict, max_length=50)
    secret: tuple[Annotated[str, Field(max_length=bounds.TARGET_NAME)], ...] = Field(default=(), max_length=50)
    """Names of headers whose values are never shown; the usual suspects are masked in any case."""
    tls: Tls | None = None
    secret_url: tuple[tuple[int, int], ...] = Field(default=(), max_length=bounds.TARGET_MARKS)
    """The parts of the address that are never shown and never written to disk: from where to where."""
    auth: Auth | None = None
    """How to prove who one is; None signs in by OAuth when the server asks for it, unless a header says it already."""

    @model_serializer(mode="wrap")
    def _as_ever(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A target without a trust of its own, or without marks, or that says nothing of who one is, is written as it
        was before there were any, and has the same digest."""
        found: dict[str, Any] = plain(self)
        without = {"tls"} if self.tls is None else set()
        without |= set() if self.secret_url else {"secret_url"}
        without |= {"auth"} if self.auth is None else set()
        return {key: value for key, value in found.items() if key not in without}

    @field_validator("secret_url")
    @classmethod
    def _only_needed(cls, value: tuple[tuple[int, int], ...], info: ValidationInfo) -> tuple[tuple[int, int], ...]:
        if "url" not in info.data:
            return ()
        marks = tuple((0, start, end) for start, end in value)
        _within(marks, (info.data["url"],))
        return tuple(mark[1:] for mark in secrecy.needed(marks, [secrecy.in_url(info.data["url"])]))

    @model_validator(mode="after")
    def _encrypted(self) -> Self:
        if self.tls is not None and not self.url.startswith("https://"):
            raise ValueError("an http:// address has no TLS: write https://, or leave the TLS fields empty")
        return self

    @field_validator("tls")
    @classmethod
    def _none_is_none(cls, value: Tls | None) -> Tls | None:
        return value if value is not None and (value.ca or value.fingerprint) else None

    @field_validator("url")
    @classmethod
    def _readable(cls, value: str) -> str:
        """Refuses what no address can be. Whether it can be dialled is found out, and said, by the connection."""
        try:
            port = urlsplit(value).netloc.rpartition(":")[2]
        except ValueError:
            raise ValueError("this is no address: look at the brackets and the letters of its host") from None
        if port and not port.strip("0"):
            raise ValueError("nobody listens on port 0; write the port of the server")
        return value

    @field_validator("headers")
    @classmethod
    def _clean_headers(cls, value: dict[str, str]) -> dict[str, str]:
        if sum(len(name) + len(text) for name, text in value.items()) > bounds.TARGET_HEADERS:
            raise ValueError("the headers are longer than 256 KiB together")
        for name, text in value.items():
            if len(name) > bounds.TARGET_NAME or not _TOKEN.fullmatch(name):
                raise ValueError(f"{name[:60]!r} is not a name for a header")
            if name.lower() in _OUR_HEADERS:
                raise ValueError(f"{name} is set by Parley")
            if any(ord(char) < 32 or ord(char) > 255 for char in text) or len(text) > 16_384:
                raise ValueError(f"the value of {name} must be one line of at most 16 KiB, in Latin-1")
        return value

    @property
    def shown_url(self) -> str:
        """The address, with `•••` where a secret stands."""
        return secrecy.masked_places([self.url], self.places)[0]

    @property
    def places(self) -> secrecy.Places:
        """Where secrets stand in the address."""
        return secrecy.with_marks([secrecy.in_url(self.url)], ((0, start, end) for start, end in self.secret_url))

    def at(self, url: str) -> HttpTarget:
        """The same at another address: what was marked in this one is marked where it stands in that one."""
        values = {self.url[start:end] for start, end in self.secret_url}
        marks = [(at, at + len(one)) for one in values for at in range(len(url)) if url.startswith(one, at)]
        return self.model_copy(update={"url": url, "secret_url": tuple(sorted(marks)[: bounds.TARGET_MARKS])})

    @property
    def label(self) -> str:
        return _cut(self.shown_url)

    @property
    def secret_names(self) -> set[str]:
        """The headers whose values nobody may see or write down: marked as such, or secret by the one table."""
        marked = {name.lower() for name in self.secret}
        return {
            name
            for name, value in self.headers.items()
            if name.lower() in marked or secrecy.is_secret_header(name, value)
        }

    @property
    def own_credentials(self) -> bool:
        """Whether a header says who one is, so that nothing else has to."""
        return any(name.lower() == "authorization" for name in self.headers)

    @property
    def secret_values(self) -> frozenset[str]:
        """What a server might quote of them: each, and what follows its scheme. Short ones stand everywhere."""
        values = [self.headers[name].strip() for name in self.secret_names]
        values += [self.url[start:end] for start, end in self.secret_url]
        values += secrets_of(self.auth)
        return frozenset(one for value in values for one in (value, value.rpartition(" ")[2]) if len(one) >= 8)


_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OUR_HEADERS = frozenset(
    {
        "host",
        "content-length",
        "content-type",
        "transfer-encoding",
        "connection",
        "accept",
        "accept-encoding",
        "mcp-session-id",
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
        "last-event-id",
    }
)

AnyTarget = StdioTarget | DemoTarget | HttpTarget
Target = Annotated[AnyTarget, Field(discriminator="transport")]


def _cut(label: str) -> str:
    """A label stands on every page of a session, so it ends somewhere."""
    return label if len(label) <= bounds.TARGET_LABEL else label[: bounds.TARGET_LABEL - 1] + "…"


def typed_line(argv: Iterable[str]) -> str:
    """Arguments as a person would type them on one line."""
    return " ".join(_quoted(part) for part in argv)


def _quoted(part: str) -> str:
    plain = part and not set(part) & set(" \t\n\"'\\$`") and not part.startswith("~") and part not in OPERATORS
    return part if plain else "'" + part.replace("'", "'\\''") + "'"


OPERATORS = frozenset({"|", "||", "&&", "&", ";", ">", ">>", "<", "<<", "2>", "2>>", "2>&1", "&>", "|&"})
"""What a shell does not take for an argument where it stands alone."""


def target_digest(target: AnyTarget) -> str:
    """What a person confirms: it changes with every argument, directory and environment value (R5-71)."""
    plain = json.dumps(target.model_dump(mode="json"), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(plain.encode()).hexdigest()
