"""What a hostile server can pour out, each as the params of `x/torrent` of a raw peer: for the tests and the bench.

All of it is below the size limit of a message, and was found to hold up everybody else once.
"""

from typing import Any

from app.bounds import JSON_SEPARATORS

MIB = 1024 * 1024
REPLY = '{"jsonrpc":"2.0","id":$ID,"result":'
CHUNKED = "HTTP/1.1 200 OK\r\ncontent-type: %s\r\ntransfer-encoding: chunked\r\n\r\n"
STREAM = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
DONE = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}'


def torrent(head: str, unit: str, tail: str, size: int, **more: Any) -> dict[str, Any]:
    """So many whole units that all of it stays below this size."""
    return {"head": head, "unit": unit, "count": (size - len(head) - len(tail) - 20) // len(unit), "tail": tail, **more}


def below(head: str, unit: str, tail: str, separators: int) -> dict[str, Any]:
    """As much as is still read whole: so many units that there are few separators less than the limit."""
    each = sum(unit.count(sign) for sign in ",:[{")
    return {"head": head, "unit": unit, "count": (JSON_SEPARATORS - 100) // each - separators, "tail": tail}


OVER_STDIO: dict[str, dict[str, Any]] = {
    "numbers of 3,999 digits": torrent(REPLY + '{"n":[', "7" * 3_999 + ",", "0]}}", 8 * MIB),
    "one number of 8 MiB": torrent(REPLY + '{"n":', "7", "}}", 8 * MIB),
    "7.5 MB of []": torrent(REPLY + '{"content":[],"structuredContent":{"n":[', "[],", "0]}}}", 7_500_000),
    "a million brackets deep": {"head": REPLY, "unit": "[", "count": 1_000_000, "tail": "]" * 1_000_000 + "}"},
    "100,000 brackets deep": {"head": REPLY, "unit": "[", "count": 100_000, "tail": "]" * 100_000 + "}"},
    '8 MiB of \\" in a text': torrent(REPLY + '{"content":[{"type":"text","text":"', '\\"', '"}]}}', 8 * MIB),
    "floats, as many as are read": below(REPLY + '{"n":[', "1.797e-300,", "0]}}", 0),
    "objects, as many as are read": below(REPLY + '{"content":[],"structuredContent":{"n":[', '{"a":[]},', "0]}}}", 0),
    "notices of 200 KB each": torrent(
        '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":[',
        '{"a":1.5},',
        "0]}}",
        200_000,
        times=40,
    ),
}
"""By a name for people."""

OVER_HTTP: dict[str, dict[str, Any]] = {
    "lone CR": torrent(STREAM, "\r", f"\n\ndata: {DONE}\n\n", 2 * MIB),
    "comments": torrent(STREAM, ":\n", f"\n\ndata: {DONE}\n\n", 2 * MIB),
    "chunks of one byte": torrent(CHUNKED % "application/json", "1\r\n \r\n", DONE, 2 * MIB, chunked=True),
    "events in chunks of one byte": torrent(
        CHUNKED % "text/event-stream", "1\r\n:\r\n", f"\n\ndata: {DONE}\n\n", 2 * MIB, chunked=True
    ),
    "answers before the answer": torrent(
        "",
        "HTTP/1.1 103 Early\r\n\r\n",
        f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{DONE}",
        2 * MIB,
    ),
}
