"""A call as something to take along: its JSON, a shell script on `curl`, or a Python program on the `mcp` SDK.

Both programs run as they are and end with the result of the call. Secrets are left out: values of headers and of the
environment, and what is one in an address or an argument, are read from environment variables that the text names.
Pure functions over a target and a call.
"""

from __future__ import annotations

import json
import pprint
import re
import shlex
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from app import __version__, secrecy
from app.core.calls import Call
from app.core.errors import Conflict
from app.core.targets import AnyTarget, DemoTarget, HttpTarget, StdioTarget

Kind = Literal["json", "curl", "python"]
_HANDSHAKE = {"name": "parley-snippet", "version": __version__}


@dataclass(slots=True, frozen=True)
class Wire:
    """What a snippet must know of a connection."""

    target: AnyTarget
    transport: str
    """What carries it in the end: `stdio`, `http` or `sse`."""
    version: str
    modern: bool
    stamped: dict[str, Any] | None = None
    """The params as they left, where each request carries an envelope."""
    headers: tuple[tuple[str, str], ...] = ()
    """The headers that repeat that envelope."""


def variable(name: str) -> str:
    """The environment variable that stands for the value of a header or a parameter."""
    found = re.sub(r"[^A-Z0-9]+", "_", name.upper()).strip("_") or "SECRET"
    return f"_{found}" if found[0].isdigit() else found


class Names:
    """The environment variables that a snippet reads, each with what it stands for."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.of: dict[str, str] = {}
        self._taken = set(taken)
        self._values: dict[str, str] = {}

    def text(self, text: str, found: Iterable[secrecy.Hidden]) -> str:
        """A text with `\\0NAME\\1` in each place of a secret; two secrets never share a name."""
        return secrecy.replaced(text, found, lambda one: f"\0{self._name(one, text[one.start : one.end])}\1")

    def _name(self, one: secrecy.Hidden, value: str) -> str:
        plain = "URL_CREDENTIALS" if one.name == secrecy.CREDENTIALS else variable(one.name)
        name, number = plain, 1
        while name in self._taken or self._values.setdefault(name, value) != value:
            number += 1
            name = f"{plain}_{number}"
        self.of[name] = _on_one_line(one.name.strip("-:"))[:60]
        return name


def _address(target: HttpTarget) -> tuple[str, dict[str, str]]:
    """Where a server is, with its secrets marked, and every variable that a snippet reads to get there."""
    secrets = Names(map(variable, target.headers))
    url = secrets.text(target.url, target.places[0])
    return url, {variable(name): name for name in target.headers} | secrets.of


def _left_out(names: dict[str, str]) -> list[str]:
    """The comment that says what to set; none when there is nothing to set."""
    listed = ", ".join(f"{name} ({of})" for name, of in names.items())
    return [f"# Secrets are left out: set {listed} in the environment."] if names else []


def _trust(target: HttpTarget, variable: str) -> list[str]:
    """The comment that says what to do where no public authority vouches for the server."""
    if target.tls is None:
        return []
    which = f"the certificate {target.tls.fingerprint}" if target.tls.fingerprint else "certificates of a private CA"
    return [f"# The server is trusted by {which}: name a PEM file with it in {variable}."]


def _comment(call: Call) -> str:
    """What a snippet does, on one line that ends no comment and no docstring."""
    subject = "" if call.subject == call.method else f" {call.subject}"
    return _on_one_line(f"{call.method}{subject}")[:120]


def _on_one_line(text: str) -> str:
    return re.sub(r"[^\w ./:+@-]", "?", text)


def _message(method: str, params: Any = None, number: int | None = None) -> dict[str, Any]:
    head = {"jsonrpc": "2.0"} | ({} if number is None else {"id": number}) | {"method": method}
    return head if params is None else head | {"params": params}


def as_json(call: Call) -> str:
    """The JSON-RPC message."""
    message = _message(call.method, call.params, None if call.notification else 1)
    return json.dumps(message, ensure_ascii=False, indent=2) + "\n"


# --------------------------------------------------------------------------------------------------------------- curl


def _quoted(text: str) -> str:
    """A text between double quotes of a shell, with `\\0NAME\\1` as a variable that must be set."""
    plain = re.sub(r'([\\"$`])', r"\\\1", text)
    return '"' + re.sub("\0([A-Z0-9_]+)\1", r"${\1:?}", plain) + '"'


def _document(message: dict[str, Any]) -> list[str]:
    """A message that a command reads, and its end."""
    return [json.dumps(message, ensure_ascii=False, separators=(",", ":")), "JSON"]


_POST = r"""answer=$(mktemp) && trap 'rm -f "$answer"' EXIT
post() {
  : >"$answer"
  curl --silent --show-error --fail-with-body --no-buffer --max-time 300 --dump-header "$answer" \
    --header 'Content-Type: application/json' --header 'Accept: application/json, text/event-stream' \
"""
_CHECKED = r"""    "$@" --data-binary @- "$url"
}
checked() {
  status=$(sed -n 's/^HTTP[^ ]* \([0-9]*\).*/\1/p' "$answer" | tail -n 1)
  case $status in 2??) return ;; esac
  echo "No result: the server answered with status ${status:-(none)}." >&2
  grep -i '^location:' "$answer" >&2 || true
  exit 1
}"""
"""Ends the script where an answer is no success: curl is content with a redirect, and a pipe hides its failure."""
_SESSION = r"""checked
session=$(tr -d '\r' <"$answer" | grep -i '^mcp-session-id:' | cut -d ' ' -f 2)"""
_EVENTS = r"sed -e '/^event:/d' -e '/^id:/d' -e '/^retry:/d' -e '/^:/d' -e '/^$/d' -e 's/^data: \{0,1\}//'"
"""Takes the messages out of a stream of events."""


def as_curl(call: Call, wire: Wire) -> str:
    """A shell script: the handshake, if this revision has one, then the call. Raises Conflict where curl cannot."""
    target = wire.target
    if not isinstance(target, HttpTarget):
        raise Conflict("This server is a process of its own; curl speaks HTTP. Copy the call as Python instead.")
    if wire.transport == "sse":
        raise Conflict(
            "HTTP with SSE answers on a second stream, which one curl cannot follow. Copy it as Python instead."
        )
    url, names = _address(target)
    headers = [f"--header {_quoted(f'{name}: {chr(0)}{variable(name)}{chr(1)}')}" for name in target.headers]
    lines = [
        "#!/bin/sh",
        f"# {_comment(call)}. It needs curl, and prints each message of the answer on a line.",
        *_left_out(names),
        *_trust(target, "CURL_CA_BUNDLE"),
        "set -eu",
        f"url={_quoted(url)}",
        _POST + "".join(f"    {header} \\\n" for header in headers) + _CHECKED,
    ]
    if wire.modern:
        lines.append(
            " ".join(["set --", *(f"--header {shlex.quote(f'{name}: {text}')}" for name, text in wire.headers)])
        )
    else:
        hello = {"protocolVersion": wire.version, "capabilities": {}, "clientInfo": _HANDSHAKE}
        lines += [
            "post >/dev/null <<'JSON'",
            *_document(_message("initialize", hello, 1)),
            _SESSION,
            f"set -- --header 'MCP-Protocol-Version: {wire.version}'",
            '[ -z "$session" ] || set -- "$@" --header "Mcp-Session-Id: $session"',
            "post \"$@\" >/dev/null <<'JSON'",
            *_document(_message("notifications/initialized")),
        ]
    params = wire.stamped if wire.modern and wire.stamped is not None else call.params
    message = _message(call.method, params, None if call.notification else 2)
    lines += [f"post \"$@\" <<'JSON' | {_EVENTS}", *_document(message)]
    if not wire.modern:
        delete = " ".join(['curl --silent --output /dev/null --request DELETE "$@"', *headers, '"$url"'])
        lines.append(f'[ -z "$session" ] || {delete} || true')
    return "\n".join([*lines, "checked"]) + "\n"


# ------------------------------------------------------------------------------------------------------------- Python


_TYPED = {
    "tools/call": ("call_tool", "name", "arguments"),
    "prompts/get": ("get_prompt", "name", "arguments"),
    "resources/read": ("read_resource", "uri", ""),
}
"""Calls that the SDK has a method for, and the two members of the params that it takes."""


def _python(value: Any, indent: int = 0) -> str:
    text = pprint.pformat(value, width=100, sort_dicts=False)
    return text.replace("\n", "\n" + " " * indent)


def _formatted(text: str) -> str:
    """A text as a Python literal, with `\\0NAME\\1` as a value of the environment."""
    parts = re.split("\0([A-Z0-9_]+)\1", text)
    if len(parts) == 1:
        return repr(text)
    return " + ".join(
        (f"os.environ[{piece!r}]" if at % 2 else repr(piece)) for at, piece in enumerate(parts) if at % 2 or piece
    )


def as_python(call: Call, wire: Wire) -> str:
    """A program on the SDK that connects, calls, and prints the result as JSON."""
    imports, setup, opened, names = _transport(wire)
    trust = _trust(wire.target, "SSL_CERT_FILE") if isinstance(wire.target, HttpTarget) else []
    comments = [*_left_out(names), *trust]
    comments += [""] if comments else []
    needs_any = call.method not in _TYPED or not _fits(call)
    if needs_any:
        imports = [*imports, "import mcp_types as types"]
    lines = [
        f'"""{_comment(call)}. It needs the package mcp, 2.3 or newer, and prints the result as JSON."""',
        "",
        *comments,
        *(["import asyncio", "import os"] if names else ["import asyncio"]),
        *(["from typing import Any"] if needs_any else []),
        "",
        *sorted(imports, key=lambda line: (line.startswith("from"), line)),
        *(["", "", _ANY[call.notification]] if needs_any else []),
        "\n\nasync def main() -> None:",
        *(f"    {line}" for line in setup),
        f"    async with {opened} as streams, ClientSession(*streams) as session:",
        *(f"        {line}" for line in _asking(call, wire, needs_any)),
        "\n\nasyncio.run(main())\n",
    ]
    return "\n".join(lines)


_ANY = {
    False: """class AnyRequest(types.Request[dict[str, Any] | None, str]):
    method: str
    params: dict[str, Any] | None = None


class AnyResult(types.Result, extra="allow"):
    pass""",
    True: """class AnyNotification(types.Notification[dict[str, Any] | None, str]):
    method: str
    params: dict[str, Any] | None = None""",
}


def _fits(call: Call) -> bool:
    """Whether the SDK's own method can send exactly these params."""
    _, first, second = _TYPED[call.method]
    params = call.params or {}
    given = params.get(second) if second else None
    return (
        set(params) <= {first, second}
        and isinstance(params.get(first), str)
        and (given is None or isinstance(given, dict))
    )


def _asking(call: Call, wire: Wire, needs_any: bool) -> list[str]:
    lines = ["await session.discover()" if wire.modern else "await session.initialize()"]
    params = call.params
    if call.notification:
        sent = f"AnyNotification(method={call.method!r}, params={_python(params, 8)})"
        return [*lines, f"await session.send_notification({sent})"]
    if needs_any:
        lines.append(f"request = AnyRequest(method={call.method!r}, params={_python(params, 8)})")
        lines.append("result = await session.send_request(request, AnyResult)")
    else:
        verb, first, second = _TYPED[call.method]
        given = (params or {}).get(second) if second else None
        more = f", {_python(given, 8)}" if given is not None else ""
        lines.append(f"result = await session.{verb}({(params or {})[first]!r}{more})")
    return [*lines, "print(result.model_dump_json(by_alias=True, exclude_unset=True, indent=2))"]


def _transport(wire: Wire) -> tuple[list[str], list[str], str, dict[str, str]]:
    """Imports, what comes before, the context that opens the streams, and the environment variables it needs."""
    target = wire.target
    if not isinstance(target, HttpTarget):
        if isinstance(target, DemoTarget):
            home = str(Path(__file__).parents[2])
            target = StdioTarget(command=sys.executable, args=("-m", "app.demo.server"), cwd=home)
        secrets = Names(target.env)
        command, *args = (secrets.text(arg, found) for arg, found in zip(target.argv, target.places, strict=True))
        listed = _python(args, 8) if not secrets.of else f"[{', '.join(map(_formatted, args))}]"
        given = [f"command={_formatted(command)}", f"args={listed}"]
        if target.env:
            values = ", ".join(f"{name!r}: os.environ[{name!r}]" for name in target.env)
            given.append(f"env={{{values}}}")
        if target.cwd:
            given.append(f"cwd={target.cwd!r}")
        imports = ["from mcp import ClientSession, StdioServerParameters", "from mcp.client.stdio import stdio_client"]
        names = dict.fromkeys(target.env, "of the server's environment") | secrets.of
        return imports, [f"server = StdioServerParameters({', '.join(given)})"], "stdio_client(server)", names
    url, names = _address(target)
    setup = [f"url = {_formatted(url)}"]
    values = ", ".join(f"{name!r}: os.environ[{variable(name)!r}]" for name in target.headers)
    imports = ["from mcp import ClientSession"]
    if wire.transport == "sse":
        headers = f", headers={{{values}}}" if values else ""
        return [*imports, "from mcp.client.sse import sse_client"], setup, f"sse_client(url{headers})", names
    imports.append("from mcp.client.streamable_http import streamable_http_client")
    if not values:
        return imports, setup, "streamable_http_client(url)", names
    setup.append(f"client = httpx2.AsyncClient(headers={{{values}}}, timeout=300)")
    return [*imports, "import httpx2"], setup, "client, streamable_http_client(url, http_client=client)", names
