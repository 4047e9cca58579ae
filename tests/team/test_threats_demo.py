"""The threat model, row by row, for an audience: anybody on the web who tries a public demo, and the phones of a room.
Each cell is observed at a real process, with the rows that one person and a team have."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest

from app import guest_bounds as bounds
from app.cli import main
from app.policy import Policy
from app.settings import demo
from tests.browser.parley import Parley, running
from tests.drive_demo import Caller, public_demo
from tests.drive_http import free_port
from tests.team.test_threats import ADDRESSES, _readme
from tests.team.test_threats import ROWS as OTHERS

pytestmark = pytest.mark.requirement("T10", "S41")
NAME = "try.example"
SAID = "a canary that a phone has sent"
ROWS: dict[str, tuple[Any, Any]] = {
    # row: (a public demo, a room)
    "listens on": ("127.0.0.1 alone", "127.0.0.1 alone; where phones come in while a room is open"),
    "elsewhere": ("refused without a flag", "refused: one address, never all of them"),
    "people": ("anybody, each for themselves", "whoever has the address of the room"),
    "cookie": ("__Host-parley_visit, signed, Secure, HttpOnly, Path=/", "parley_room, signed, HttpOnly, of this room"),
    "a login lasts": ("30 minutes", "as long as the room"),
    "a command that somebody types": ("there is no place for it", "there is no place for it"),
    "a command of the catalogue": ("there is none", "there is none"),
    "dials": ([], []),
    "dials itself": (False, False),
    "walls around children": ("none needed: one process of ours for all", "none needed: phones start nothing"),
    "storage": ("memory alone", "memory alone, until the room closes"),
    "sessions of one person": (1, 0),
    "calls a minute of one person": ("30 in the whole visit", "none; it sends 20 times a minute"),
    "open asks of one person": (10, "one answer to each"),
    "tabs of one browser that are live": (2, "no stream: it waits for the next question"),
    "the largest message": (256 * 1024, 64 * 1024),
    "somebody else's session": (404, 404),
    "the residual risk in README.md": (
        "What visitors type is as public as the place",
        "a vote is as honest as the room",
    ),
}
CONNECTS = ("/s", "/targets", "{base}/connect", "{base}/models", "{base}/room", "{base}/rules", "{base}/compose")


@pytest.mark.parametrize("column", ["a public demo", "a room"])
def test_the_table_row_by_row(column: str, tmp_path: Path):
    assert ROWS.keys() == OTHERS.keys(), "the rows of the others"
    at = ["a public demo", "a room"].index(column)
    seen = [_public, _room][at](tmp_path)
    assert seen.keys() == ROWS.keys()
    for row, cells in ROWS.items():
        assert seen[row] == cells[at], f"{column}: {row}"


def _listening(pid: int) -> set[tuple[str, int]]:
    """Where a process listens; ::1 is 127.0.0.1 once more."""
    found = psutil.Process(pid).net_connections("tcp")
    return {(one.laddr[0], one.laddr[1]) for one in found if one.status == "LISTEN" and one.laddr[0] != "::1"}


def _dialled(allowed: set[tuple[str, int]]) -> list[str]:
    policy = Policy("demo", allowed=allowed)
    return [name for name, address in ADDRESSES.items() if policy.refusal("x.example", address, 443) is None]


def _refusal(*arguments: str) -> bool:
    return main(("demo", "--port", "0", "--no-open", *arguments)) == 2


def _posted(caller: Caller, path: str, data: Any) -> int:
    kind = {"content-type": "application/json", "accept": "application/json"}
    return int(caller.post(path, content=json.dumps(data), headers=kind).status_code)


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


# ------------------------------------------------------------------------------------------------------ a public demo


def _public(tmp_path: Path) -> dict[str, Any]:
    data, port, limits = tmp_path / "data", free_port(), demo().limits
    data.mkdir()
    elsewhere = _refusal("--public", "--host", "0.0.0.0")
    with public_demo("--public-url", f"https://{NAME}", port=port, data=data) as (_, pid):
        base = f"http://127.0.0.1:{port}"
        with Caller(base, NAME) as one, Caller(base, NAME) as other, Caller(base, NAME) as nobody:
            children = {child.pid for child in psutil.Process(pid).children()}
            first, cookie = _begun(one)
            second, _ = _begun(other)
            parts = [part for part in ("Secure", "HttpOnly", "Path=/") if f"; {part}" in cookie]
            calls = _until_refused(one, first)
            _begun(one)
            again = one.get(first).status_code
            typed = {_posted(other, path.format(base=second), _COMMAND) for path in CONNECTS}
            large = b"x" * (limits.body_bytes + 1)
            sent = other.post(f"{second}/calls", content=large, headers={"content-type": "application/json"})
            forged = _forged(base, other.headers["cookie"], second)
            after = {child.pid for child in psutil.Process(pid).children()}
            listening = {address for address, _ in _listening(pid)}
            return {
                "listens on": f"{' and '.join(sorted(listening))} alone",
                "elsewhere": "refused without a flag" if elsewhere else "taken",
                "people": "anybody, each for themselves" if nobody.get("/").status_code == 200 else "",
                "cookie": f"{cookie.partition('=')[0]}, {'signed, ' if forged else ''}{', '.join(parts)}",
                "a login lasts": f"{bounds.VISIT_SECONDS / 60:g} minutes",
                "a command that somebody types": "there is no place for it" if typed == {404} else str(typed),
                "a command of the catalogue": "there is none" if other.get("/catalogue").status_code == 404 else "",
                "dials": _dialled({("127.0.0.1", 4321)}),
                "dials itself": Policy("demo").refusal("localhost", "127.0.0.1", port) is None,
                "walls around children": "none needed: one process of ours for all"
                if children == after and len(children) == 1
                else str((children, after)),
                "storage": "memory alone" if not _files(data) else str(_files(data)),
                "sessions of one person": 1 if again == 404 else "more",
                "calls a minute of one person": f"{calls} in the whole visit",
                "open asks of one person": limits.open_asks,
                "tabs of one browser that are live": limits.streams_per_browser,
                "the largest message": limits.message_bytes if sent.status_code == 413 else "more",
                "somebody else's session": nobody.get(second, headers={"cookie": one.headers["cookie"]}).status_code,
                "the residual risk in README.md": _readme("What visitors type is as public as the place"),
            }


_COMMAND = {"target": {"transport": "stdio", "command": "id"}, "name": "m", "url": "http://127.0.0.1:1"}


def _begun(one: Caller) -> tuple[str, str]:
    """A visit: the address of its session, and what was said of its cookie."""
    answer = one.post("/begin")
    assert answer.status_code == 303, answer.text
    cookie = one.keep(answer) if "set-cookie" in answer.headers else ""
    base: str = answer.headers["location"].removesuffix("/tour")
    one.get(f"{base}?wait=50", headers={"accept": "application/json"})
    return base, cookie


def _until_refused(one: Caller, base: str) -> int:
    """How many calls a visit had when one more was refused."""
    made = 0
    while made < 1_000:
        call = {"method": "tools/call", "params": {"name": "echo", "arguments": {"text": "x"}}}
        kind = {"content-type": "application/json", "accept": "application/json"}
        answer = one.post(f"{base}/calls", content=json.dumps(call), headers=kind)
        if answer.status_code == 429:
            return made
        assert answer.status_code == 202, answer.text
        one.get(f"{base}/calls/{answer.json()['id']}?wait=50", headers=kind)
        made += 1
    return made


def _forged(base: str, cookie: str, session: str) -> bool:
    """Whether a cookie that was changed is nobody's, and one without its prefix is not looked at (S12, S13)."""
    name, _, value = cookie.partition("=")
    changed = value[:-1] + ("0" if value[-1] != "0" else "1")
    older = f"visitor.{int(value.split('.')[1]) + 600}.{value.split('.')[2]}"
    tried = (f"{name}={changed}", f"{name}={older}", f"{name.removeprefix('__Host-')}={value}")
    with Caller(base, NAME) as thief:
        return {thief.get(session, headers={"cookie": one}).status_code for one in tried} == {401}


# --------------------------------------------------------------------------------------------------------- a room


@contextmanager
def _hall(data: Path) -> Iterator[tuple[Parley, str, Caller, str, int]]:
    with running("demo", "--room", "127.0.0.1:0", "--data-dir", str(data)) as hall:
        base: str = hall.script("POST", "/s", target={"transport": "demo"}, options={"era": "legacy"})["url"]
        hall.script("GET", f"{base}?wait=20")
        quiet = _listening(hall.process.pid)
        address = urlsplit(hall.script("POST", f"{base}/room")["address"])
        assert address.port is not None
        assert _listening(hall.process.pid) - quiet == {("127.0.0.1", address.port)}
        hall.script("POST", f"{base}/calls", method="tools/call", params={"name": "write_caption", "arguments": {}})
        with Caller(f"http://{address.netloc}", address.netloc, origin=f"http://{address.netloc}") as phone:
            yield hall, base, phone, address.path, address.port


def _room(tmp_path: Path) -> dict[str, Any]:
    data = tmp_path / "data"
    elsewhere = _refusal("--room", "0.0.0.0")
    with _hall(data) as (hall, base, phone, path, port):
        children = {child.pid for child in psutil.Process(hall.process.pid).children()}
        waits = phone.keep(phone.get(path))
        news = phone.get(f"{path}/now?seen=idle").json()["seen"]
        parts = [part for part in ("HttpOnly",) if f"; {part}" in waits]
        mine = "of this room" if f"; Path={path};" in f"{waits};" else "of more"
        known = phone.headers["cookie"]
        phone.headers["cookie"] = known[:-1] + ("0" if known[-1] != "0" else "1")
        forged = phone.post(path, data={"seen": news, "text": "x"}).status_code
        phone.headers["cookie"] = known
        typed = {_posted(phone, one.format(base=base), _COMMAND) for one in CONNECTS}
        typed |= {_posted(phone, "/begin", {}), phone.get(f"{base}/events").status_code}
        large = phone.post(path, content=b"x" * (bounds.GUEST_BYTES + 1))
        told = [phone.post(path, data={"seen": news, "text": SAID}) for _ in range(bounds.ROOM_SENDS_PER_MINUTE + 1)]
        statuses = [one.status_code for one in told]
        answers = hall.script("GET", f"{base}/room")["poll"]["answers"]
        after = {child.pid for child in psutil.Process(hall.process.pid).children()}
        main_listens = _listening(hall.process.pid) - {("127.0.0.1", port)}
        elsewhere_404 = phone.get(base).status_code
        hall.script("POST", f"{base}/room/close")
        closed = _is_closed(port)
        kept = [file for file in _files(data) if SAID.encode() in file.read_bytes()]
        where = "127.0.0.1 alone" if {address for address, _ in main_listens} == {"127.0.0.1"} else str(main_listens)
        return {
            "listens on": f"{where}; where phones come in {'while a room is open' if closed else 'for ever'}",
            "elsewhere": "refused: one address, never all of them" if elsewhere else "taken",
            "people": "whoever has the address of the room" if told[0].status_code == 200 else told[0].text,
            "cookie": f"{waits.partition('=')[0]}, {'signed, ' if forged == 409 else ''}{', '.join(parts)}, {mine}",
            "a login lasts": "as long as the room" if closed and "Max-Age" not in waits else waits,
            "a command that somebody types": "there is no place for it" if typed == {404} else str(typed),
            "a command of the catalogue": "there is none" if typed == {404} else "",
            "dials": [] if typed == {404} else ["something"],
            "dials itself": typed != {404},
            "walls around children": "none needed: phones start nothing" if children == after else str(after),
            "storage": f"memory alone, until the room {'closes' if closed else 'never'}" if not kept else str(kept),
            "sessions of one person": 0 if elsewhere_404 == 404 else "some",
            "calls a minute of one person": f"none; it sends {statuses.index(429)} times a minute",
            "open asks of one person": "one answer to each" if answers == 1 else answers,
            "tabs of one browser that are live": "no stream: it waits for the next question"
            if news.endswith("-ask-open")
            else news,
            "the largest message": bounds.GUEST_BYTES if large.status_code == 413 else "more",
            "somebody else's session": elsewhere_404,
            "the residual risk in README.md": _readme("a vote is as honest as the room"),
        }


def _is_closed(port: int) -> bool:
    """Whether nobody listens there."""
    with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), timeout=60):
        return False
    return True
