"""What a session connects to: a command, an address, or the demo server."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from app import bounds, secrecy
from app.core.strict import Strict


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
        return secrecy.masked_arguments(self.argv)

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


class DemoTarget(Strict):
    """The built-in demo server, started over stdio."""

    transport: Literal["demo"] = "demo"

    @property
    def label(self) -> str:
        return "the demo server"

    @property
    def secret_names(self) -> set[str]:
        return set()


class HttpTarget(Strict):
    """A server that Parley dials: streamable HTTP, or the older HTTP with server-sent events."""

    transport: Literal["http", "sse"]
    url: str = Field(min_length=1, max_length=4096, pattern=r"^https?://")
    headers: dict[str, str] = Field(default_factory=dict, max_length=50)
    secret: tuple[Annotated[str, Field(max_length=bounds.TARGET_NAME)], ...] = Field(default=(), max_length=50)
    """Names of headers whose values are never shown; the usual suspects are masked in any case."""

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
        return secrecy.masked_url(self.url)

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
    return part if part and not set(part) & set(" \t\n\"'\\$`") else "'" + part.replace("'", "'\\''") + "'"


def target_digest(target: AnyTarget) -> str:
    """What a person confirms: it changes with every argument, directory and environment value (R5-71)."""
    plain = json.dumps(target.model_dump(mode="json"), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(plain.encode()).hexdigest()
