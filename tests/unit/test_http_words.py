"""Every sentence that a person reads about a connection that failed, literally; and what is never shown to them."""

import errno
from collections.abc import AsyncIterator
from typing import Any

import pytest

from app.core.errors import Trouble
from app.core.targets import HttpTarget, StdioTarget
from app.egress import Answer, EgressError, Kind
from app.protocol.exchanges import egress_trouble
from app.protocol.links.stdio import exit_trouble, start_trouble
from app.protocol.links.words import content_trouble, status_trouble
from app.secrecy import masked_headers, masked_url

URL = "http://127.0.0.1:8000/mcp"


def says(trouble: Trouble) -> tuple[str, str, str]:
    return trouble.kind, trouble.message, trouble.advice


EGRESS: list[tuple[Kind, str, tuple[str, str, str]]] = [
    (
        "refused-by-policy",
        "169.254.169.254 is a link-local or metadata address",
        (
            "policy",
            f"Parley does not dial {URL}: 169.254.169.254 is a link-local or metadata address.",
            "Connect to another address.",
        ),
    ),
    (
        "dns",
        "the name x.example cannot be resolved (Name or service not known)",
        (
            "dns",
            "The address was not found: the name x.example cannot be resolved (Name or service not known).",
            "Check the host name, and your network.",
        ),
    ),
    (
        "refused",
        "nothing listens at 127.0.0.1 port 8000",
        (
            "refused",
            "The connection was refused: nothing listens at 127.0.0.1 port 8000.",
            "Start the server, or correct the port.",
        ),
    ),
    (
        "unreachable",
        "192.0.2.1 port 80 cannot be reached (No route to host)",
        (
            "unreachable",
            "The server cannot be reached: 192.0.2.1 port 80 cannot be reached (No route to host).",
            "Check the address and your network.",
        ),
    ),
    (
        "tls",
        "self-signed certificate",
        (
            "tls",
            f"No secure connection to {URL}: self-signed certificate.",
            "Check the certificate and its host name, or use http:// if the server does not speak TLS.",
        ),
    ),
    (
        "timeout",
        "no connection to 192.0.2.1 port 80 within 15 s",
        (
            "timeout",
            "The server took too long: no connection to 192.0.2.1 port 80 within 15 s.",
            "Check that it is running.",
        ),
    ),
    ("timeout", "", ("timeout", "The server took too long: no answer.", "Check that it is running.")),
    (
        "cut",
        "Server disconnected without sending a response",
        (
            "cut",
            "The server closed the connection in the middle: Server disconnected without sending a response.",
            "Look at the server's log.",
        ),
    ),
    (
        "bad-url",
        "ftp://x is not an http or https address",
        ("bad-url", "This cannot be dialled: ftp://x is not an http or https address.", "Correct the address."),
    ),
    (
        "protocol",
        "illegal status line",
        ("http", "This is not HTTP: illegal status line.", "Check that the port belongs to an HTTP server."),
    ),
]


@pytest.mark.requirement("F16")
@pytest.mark.parametrize(("kind", "detail", "expected"), EGRESS)
def test_a_request_without_an_answer(kind: Kind, detail: str, expected: tuple[str, str, str]):
    assert says(egress_trouble(EgressError(kind, detail), URL)) == expected


def answer(status: int, **headers: str) -> Answer:
    async def nothing() -> AsyncIterator[bytes]:
        yield b""

    return Answer(status, tuple((name.replace("_", "-"), value) for name, value in headers.items()), nothing())


STATUS: list[tuple[int, dict[str, str], bytes, str, str]] = [
    (
        401,
        {},
        b"",
        "401 Unauthorized: credentials needed.",
        "Sign in, where the server says how; or connect with a token or an Authorization header of your own.",
    ),
    (
        403,
        {},
        b"Invalid\n  Origin",
        "The server refuses this client (403). It said: “Invalid Origin”",
        "Check the headers and the server's rules.",
    ),
    (404, {}, b"", "There is nothing at this address (404).", "Check the path: it often ends in /mcp."),
    (
        405,
        {},
        b"",
        "The address takes no POST (405).",
        "Check the path. For a server of the older kind choose the transport SSE.",
    ),
    (
        429,
        {"retry_after": "7"},
        b"slow down",
        "The server says there were too many requests (429). It said: “slow down”",
        "Try again in 7 s.",
    ),
    (429, {}, b"", "The server says there were too many requests (429).", "Try again later."),
    (
        302,
        {"location": "https://elsewhere.example/mcp"},
        b"",
        "The server redirects (302) to https://elsewhere.example/mcp, and Parley does not follow there.",
        "Connect to that address, if you trust it. Parley follows a 307 or 308 within the origin, once.",
    ),
    (
        308,
        {},
        b"",
        "The server redirects (308) to nowhere, and Parley does not follow there.",
        "Connect to that address, if you trust it. Parley follows a 307 or 308 within the origin, once.",
    ),
    (500, {}, b"<html>oops</html>", "The server failed (500).", "Look at the server's log."),
    (503, {}, b"busy", "The server failed (503). It said: “busy”", "Look at the server's log."),
    (
        400,
        {},
        b"Bad \xff request",
        "The server refused the request (400). It said: “Bad \ufffd request”",
        "Check the address and the headers.",
    ),
    (418, {}, b"", "The server refused the request (418).", "Check the address and the headers."),
]


@pytest.mark.requirement("F16")
@pytest.mark.parametrize(("status", "headers", "body", "message", "advice"), STATUS)
def test_a_status_that_is_no_success(status: int, headers: dict[str, str], body: bytes, message: str, advice: str):
    trouble = status_trouble(answer(status, **headers), body)
    assert says(trouble) == (f"http-{status}", message, advice)


@pytest.mark.requirement("F16")
def test_what_the_server_said_is_quoted_by_its_beginning():
    message = status_trouble(answer(500), b"x" * 5000).message
    assert message == f"The server failed (500). It said: “{'x' * 300}”"


PAGE = (
    "html",
    "The address answers with a web page, not with MCP.",
    "Check the path: the MCP endpoint often ends in /mcp.",
)
ADVICE = "Check the path, and that the server speaks streamable HTTP."


@pytest.mark.requirement("F16")
@pytest.mark.parametrize(
    ("content_type", "body", "expected"),
    [
        ("text/html", b"", PAGE),
        ("text/plain", b"  <!doctype html>", PAGE),
        (
            "text/plain",
            b"hello",
            (
                "content-type",
                "The answer is of the type text/plain; MCP answers are application/json or text/event-stream.",
                ADVICE,
            ),
        ),
        (
            "",
            b"",
            (
                "content-type",
                "The answer has no content type; MCP answers are application/json or text/event-stream.",
                ADVICE,
            ),
        ),
    ],
)
def test_a_success_that_is_no_mcp(content_type: str, body: bytes, expected: tuple[str, str, str]):
    assert says(content_trouble(content_type, body)) == expected


STDERR = "Look at its stderr for the reason, then connect again."


@pytest.mark.requirement("F01")
@pytest.mark.parametrize(
    ("code", "message", "advice"),
    [
        (0, "server ended with code 0.", STDERR),
        (1, "server ended with code 1.", STDERR),
        (
            127,
            "server ended with code 127: something it tried to run was not found.",
            "Check the command and its arguments, then connect again.",
        ),
        (-9, "server was ended by SIGKILL.", STDERR),
        (-250, "server was ended by signal 250.", STDERR),
    ],
)
def test_a_child_that_ended(code: int, message: str, advice: str):
    assert says(exit_trouble("server", code)) == ("exit", message, advice)
    assert exit_trouble("server", code).exit_code == code


@pytest.mark.requirement("F01")
@pytest.mark.parametrize(
    ("target", "fault", "expected"),
    [
        (
            {"command": "nope"},
            FileNotFoundError(errno.ENOENT, "No such file or directory"),
            (
                "not-found",
                "The command nope was not found.",
                "Check its spelling, give its full path, or install it; then connect again.",
            ),
        ),
        (
            {"command": "/etc/passwd"},
            PermissionError(errno.EACCES, "Permission denied"),
            (
                "not-executable",
                "/etc/passwd may not be run.",
                "Make it executable, or name the program that runs it.",
            ),
        ),
        (
            {"command": "cat", "cwd": "/no/such/place"},
            FileNotFoundError(errno.ENOENT, "No such file or directory"),
            (
                "cwd",
                "There is no directory /no/such/place.",
                "Correct the working directory, then connect again.",
            ),
        ),
        (
            {"command": "cat"},
            OSError(errno.E2BIG, "Argument list too long"),
            ("start", "cat did not start: Argument list too long.", "Check the command, then connect again."),
        ),
    ],
)
def test_a_child_that_could_not_be_started(target: dict[str, Any], fault: OSError, expected: tuple[str, str, str]):
    assert says(start_trouble(StdioTarget(**target), fault)) == expected


# --- secrets ----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R5-45")
@pytest.mark.parametrize(
    "name",
    [
        "Authorization", "Proxy-Authorization", "Cookie", "Set-Cookie", "Mcp-Session-Id", "MCP-SESSION-ID", "X-API-Key",
        "api_key", "X-Auth-Token", "X-Secret", "X-Password", "My-Credential",
    ],
)  # fmt: skip
def test_what_sounds_like_a_secret_is_masked(name: str):
    assert masked_headers([(name, "canary")]) == ((name, "•••"),)


@pytest.mark.requirement("R5-45")
def test_headers_marked_secret_are_masked_whatever_they_are_called():
    headers = [("X-Tenant", "canary"), ("Accept", "text/plain"), ("Authorization", "")]
    assert masked_headers(headers, ("x-TENANT",)) == (
        ("X-Tenant", "•••"),
        ("Accept", "text/plain"),
        ("Authorization", ""),
    )


@pytest.mark.requirement("R5-45")
@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://a/mcp", "http://a/mcp"),
        ("http://a/mcp?page=2", "http://a/mcp?page=2"),
        ("http://a/mcp?api_key=canary&page=2", "http://a/mcp?api_key=•••&page=2"),
        ("http://a/messages?sessionId=canary#x", "http://a/messages?sessionId=•••#x"),
        ("http://a/?x=1&ACCESS_TOKEN=canary", "http://a/?x=1&ACCESS_TOKEN=•••"),
        ("http://a/?token=", "http://a/?token="),
    ],
)
def test_secrets_in_a_query_are_left_out(url: str, shown: str):
    assert masked_url(url) == shown


@pytest.mark.requirement("R5-45")
def test_no_sentence_shows_a_secret_of_the_address():
    url = "https://a.example/mcp?token=canary"
    kinds: list[Kind] = [each[0] for each in EGRESS]
    sentences = [egress_trouble(EgressError(kind, "why"), url).message for kind in kinds]
    sentences += [status_trouble(answer(status, location=url), b"").message for status, *_ in STATUS]
    sentences.append(HttpTarget(transport="http", url=url).label)
    assert [each for each in sentences if "canary" in each] == []


@pytest.mark.requirement("R5-41", "R5-45")
@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "x"}, {"content-length": "1"}, {"MCP-Session-Id": "x"}, {"mcp-protocol-version": "x"}, {"accept": "x"},
        {"last-event-id": "x"}, {"transfer-encoding": "x"}, {"a b": "x"}, {"a:": "x"}, {"": "x"}, {"x": "a\r\nb: c"},
        {"x": "a\nb"}, {"x": "\0"}, {"x": "世"}, {"x": "y" * 20_000},
    ],
)  # fmt: skip
def test_a_header_that_would_change_the_request_itself_is_refused(headers: dict[str, str]):
    with pytest.raises(ValueError):
        HttpTarget(transport="http", url=URL, headers=headers)
