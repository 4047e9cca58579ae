"""What repeats in the log is one line, and pushes nothing else out."""

import json
import re
from itertools import count
from typing import Any

import pytest

from app import bounds
from app.core.folds import Fold, folded, members, worth
from app.core.json.text import parse
from app.core.wire import Finding, Message
from app.sessions import Session
from app.web.log.row import fold_words
from tests.web.asgi import Visitor

HTMX = {"hx_request": "true"}
_ids = count(1)


def say(session: Session, direction: str, value: dict[str, Any], *, quiet: bool = False) -> Message:
    raw = json.dumps({"jsonrpc": "2.0", **value}).encode()
    return session.messages.record("in" if direction == "in" else "out", raw, parse(raw), quiet=quiet)


def progress(session: Session, token: Any, step: int, total: int | None = None) -> Message:
    params = {"progressToken": token, "progress": step} | ({"total": total} if total else {})
    return say(session, "in", {"method": "notifications/progress", "params": params})


def poll(session: Session, task: str) -> Message:
    number = next(_ids)
    say(session, "out", {"id": number, "method": "tasks/get", "params": {"taskId": task}}, quiet=True)
    return say(session, "in", {"id": number, "result": {"taskId": task, "status": "working"}})


def other(session: Session) -> Message:
    return say(session, "in", {"method": "notifications/tools/list_changed"})


def lines(session: Session, most: int = 200) -> list[str]:
    """The entries of the log: a message as its number, a fold as `first+count`."""
    log = session.messages
    return [
        f"{one.first.number}+{one.count}" if isinstance(one, Fold) else str(one.number)
        for one in folded(log.back(), worth(log), most)[0]
    ]


@pytest.mark.requirement("U-S6")
async def test_progress_is_one_line_by_its_token_and_polls_by_their_task(victim: Session):
    other(victim)
    for step in range(1, 51):
        progress(victim, 7, step, 50)
    for _ in range(18):
        poll(victim, "tsk_8Qf2")
    other(victim)
    assert lines(victim) == ["1", "2+50", "52+36", "88"]
    entries, oldest = folded(victim.messages.back(), worth(victim.messages), 200)
    said = [fold_words(one) for one in entries if isinstance(one, Fold)]
    assert said[0] == "1 to 50 of 50" and said[1].startswith("18 polls of tsk_8Qf2, every ")
    assert oldest == victim.messages.first_seq


async def test_two_that_report_at_the_same_time_are_two_lines(victim: Session):
    for step in range(10):
        progress(victim, "a", step)
        progress(victim, "b", step)
        poll(victim, "t")
    assert lines(victim) == ["1+10", "2+10", "3+20"]


async def test_few_are_rows_and_what_lies_between_divides(victim: Session):
    for step in range(bounds.FOLD_RUN - 1):
        progress(victim, 1, step)
    other(victim)
    for step in range(bounds.FOLD_RUN):
        progress(victim, 1, step)
    assert lines(victim) == ["1", "2", "3", "4", "5", "6", "7+6"]


async def test_what_is_remarkable_stands_for_itself(victim: Session):
    seqs = [progress(victim, 1, step).seq for step in range(14)]
    victim.messages.remark(seqs[6], Finding("R5-29", "must", "It went back."))
    assert lines(victim) == ["1+6", "7", "8+7"]
    log = victim.messages
    assert len(folded(log.back(), worth(log, apart=seqs[10]), 200)[0]) == 9  # what is open is no part of a fold


async def test_polls_push_nothing_out(victim: Session):
    first = other(victim)
    for _ in range(1_500):
        poll(victim, "t")
    other(victim)
    assert lines(victim, 3) == ["1", "2+3000", "3002"]
    entries, oldest = folded(victim.messages.back(), worth(victim.messages), 2)
    assert len(entries) == 2 and oldest is not None and oldest > first.seq


async def test_the_work_for_one_page_is_bounded(victim: Session, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bounds, "FOLD_LOOKS", 300)
    for step in range(1_000):
        progress(victim, 1, step)
    (one,), oldest = folded(victim.messages.back(), worth(victim.messages), 200)
    assert isinstance(one, Fold) and one.count == 300 and oldest == one.seq


@pytest.mark.parametrize("token", ["\N{RIGHT-TO-LEFT OVERRIDE}x", "<b>", "y" * 5_000, "ä", None, [1], 1.5])
async def test_a_token_can_be_anything(victim: Session, token: Any):
    found = [progress(victim, token, step) for step in range(8)]
    assert len({one.fold for one in found}) == 1
    key = found[0].fold
    assert key is not None and key.isascii() and key.isprintable() and len(key) <= 200
    assert lines(victim) == ["1+8"]


async def test_a_page_has_the_line_and_fetches_what_is_in_it(client: Visitor, victim: Session):
    other(victim)
    for step in range(1, 31):
        progress(victim, "<b>", step, 30)
    page = (await client.get(f"/s/{victim.id}/log")).text
    rows = page.partition('<ol id="log"')[2].partition("</ol>")[0]
    assert len(re.findall("<li ", rows)) == 2 and "30 folded" in rows and "1 to 30 of 30" in rows
    assert 'data-fold="notifications/progress &lt;b&gt;"' in rows
    first, last = re.findall(r'id="p(\d+)" class="fold"[^>]* data-last="(\d+)"', rows)[0]
    query = f"fold=notifications/progress+%3Cb%3E&first={first}&last={last}"
    part = (await client.get(f"/s/{victim.id}/log?{query}", **HTMX)).text
    assert len(re.findall(r'<li id="m', part)) == 30
    found = (await client.get(f"/s/{victim.id}/log?kind=notification", **HTMX)).text
    assert 'id="g' in found and "30 folded" in found and "31 of 31" in found
    part = (await client.get(f"/s/{victim.id}/log?kind=notification&{query}", **HTMX)).text
    assert len(re.findall(r'<li id="f', part)) == 30
    looked_for = (await client.get(f"/s/{victim.id}/log?q=progress", **HTMX)).text
    assert len(re.findall(r'<li id="f', looked_for)) == 30 and "folded" not in looked_for
    assert (await client.get(f"/s/{victim.id}/log?fold=x&first=-1&last=no", **HTMX)).status in {200, 422}


async def test_of_a_very_long_fold_the_newest_are_shown(victim: Session):
    seqs = [progress(victim, 1, step).seq for step in range(40)]
    log = victim.messages
    found = members(log.back(), worth(log), "notifications/progress 1", seqs[0], seqs[30], 10)
    assert [one.seq for one in found] == seqs[21:31]


async def test_earlier_rows_go_on_before_the_oldest_that_was_looked_at(client: Visitor, victim: Session):
    for number in range(500):
        say(victim, "in", {"method": f"x/{number}"})
    page = (await client.get(f"/s/{victim.id}/log")).text
    before = re.findall(r'name="before" value="(\d+)"', page)[0]
    older = (await client.get(f"/s/{victim.id}/log?before={before}", **HTMX)).text
    assert ">x/299<" in older and ">x/300<" not in older and ">x/300<" in page
