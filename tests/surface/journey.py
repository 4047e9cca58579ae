"""Which way the walk goes: every route at least once as a script and, where it is a page, as a browser."""

from __future__ import annotations

import json
import re
import sys
from typing import Any
from urllib.parse import quote, urlsplit

from tests.browser.parley import Parley
from tests.drive import SERVERS
from tests.drive_oauth import protected
from tests.surface.walk import Surface, Walker

SHELF: dict[str, Any] = {
    "transport": "stdio",
    "command": sys.executable,
    "args": ["-I", "-S", str(SERVERS / "shelf.py"), "--with", "{}"],
}
RESPONSE = {
    "role": "assistant",
    "content": {"type": "text", "text": "A caption."},
    "model": "person",
    "stopReason": "endTurn",
}
LISTS = ("tools", "resources", "resources/templates", "prompts")
PAGES = (
    *("", "/connect", "/roots", "/tools", "/tools/echo", "/resources", "/resources/templates", "/prompts", "/logging"),
    *("/compose", "/calls", "/inbox", "/subscriptions", "/stage", "/timeline", "/sign-in"),
    *("/tasks", "/log", "/log.jsonl", "/stderr"),
)


def walk(parley: Parley) -> Surface:
    """The whole walk."""
    surface = Surface()
    walker = Walker(parley, surface)
    _outside(walker)
    walker.login()
    _home(walker)
    _legacy(walker)
    _compared(walker)
    _answered_for_us(walker)
    _modern(walker)
    _shelf(walker)
    _guests(walker)
    _signing_in(walker)
    _recorded(walker)
    _faults(walker)
    return surface


def _outside(walker: Walker) -> None:
    walker.script("GET", "/healthz")
    for path in ("/static/app.css", "/favicon.ico"):
        walker.browse("GET", path)
    walker.browse("GET", "/")  # signed out
    answer = walker.send(
        "GET", "/", None, {"authorization": "Bearer wrong-but-long-enough", "accept": "application/json"}
    )
    walker.surface.note("GET /", f"stranger {answer.status}", "=" + answer.json()["error"]["kind"])


def _home(walker: Walker) -> None:
    saved = walker.post("/targets", {"name": "Shelf", "target": SHELF})
    walker.get("/")
    walker.post(f"/targets/{saved['id']}", {"name": "Another name"})
    walker.browse("GET", "/")
    walker.browse("GET", f"/?target={saved['id']}")
    requests = f"/targets/{saved['id']}/requests"
    request = {"name": "Echo", "method": "tools/call", "params": {"name": "echo", "arguments": {"key": "secret"}}}
    one = f"{requests}/{walker.post(requests, request)['id']}"
    walker.post(requests, request)
    for path in (requests, one):
        walker.get(path)
    walker.browse("GET", requests)
    walker.post(one, {"name": "Said"})
    walker.post(f"{one}/delete")
    walker.browse("POST", f"/targets/{saved['id']}/delete", {})
    walker.post(f"/targets/{saved['id']}/restore")
    walker.post(f"/targets/{saved['id']}/delete")
    walker.browse("GET", "/s")
    walker.post("/close-lost")
    walker.get("/about")
    walker.browse("GET", "/about")
    walker.get("/sessions")
    walker.browse("GET", "/sessions")


def _ready(walker: Walker, target: dict[str, Any], **options: Any) -> str:
    opened = walker.post("/s", {"target": target, "options": options})
    told = walker.get(f"/s/{opened['id']}?wait=50")
    assert told["connection"]["state"] == "ready", told["connection"]
    return f"/s/{opened['id']}"


def _call(walker: Walker, base: str, method: str, params: dict[str, Any], **more: Any) -> str:
    started = walker.post(f"{base}/calls", {"method": method, "params": params, **more})
    return f"{base}/calls/{started['id']}"


def _tool(walker: Walker, base: str, name: str, arguments: dict[str, Any] | None = None, **more: Any) -> str:
    return _call(walker, base, "tools/call", {"name": name, "arguments": arguments or {}}, **more)


def _answer_all(walker: Walker, base: str, call: str) -> None:
    """Answer what a call asks, each kind in its way, until it is settled."""
    for _ in range(20):
        told = walker.get(f"{call}?wait=50")
        if told["state"] in {"done", "failed", "cancelled"}:
            return
        for ask in walker.get(f"{base}/inbox?wait=20")["open"]:
            path = f"{base}/asks/{ask['id']}"
            shown = walker.get(path)
            walker.browse("GET", path)
            if ask["kind"] == "sampling":
                walker.post(f"{path}/request", {"request": {**ask["params"], "temperature": 0.5}})
                walker.post(f"{path}/answer", {"action": "respond", "result": RESPONSE})
            elif ask["kind"] == "form":
                walker.post(f"{path}/answer", {"action": "accept", "content": {"nonsense": {}}})
                if shown["origin"] == "input-required":
                    walker.post(f"{path}/answer", {"action": "accept", "content": {}, "force": True})
                    walker.script("POST", f"{path}/reopen")
                walker.post(f"{path}/answer", {"action": "decline"})
            elif ask["kind"] == "url":
                walker.post(f"{path}/answer", {"action": "accept"})
            else:
                walker.post(f"{path}/answer", {"action": "accept"})
            walker.post(f"{path}/answer", {"action": "decline"})  # answered before
    raise AssertionError(f"{call} does not come to an end")


def _legacy(walker: Walker) -> None:
    base = _ready(walker, {"transport": "demo"}, era="legacy", ask_roots=True)
    sid = base.rsplit("/", 1)[1]
    with walker.listening(sid, browser=False), walker.listening(sid, browser=True):
        for name in LISTS:
            walker.post(f"{base}/{name}/refresh")
            walker.post(f"{base}/{name}/more")
            walker.get(f"{base}/{name}")
        walker.get(f"{base}/tools/echo")
        added = _tool(walker, base, "add", {"a": 2, "b": 3})
        walker.get(f"{added}?wait=20")
        walker.get(f"{base}/calls")
        for way in ("json", "curl", "python"):
            walker.script("GET", f"{added}/snippet?as={way}")
            walker.browse("GET", f"{added}/snippet?as={way}")
        walker.post(f"{added}/retry")
        slow = _tool(walker, base, "slow_count", {})
        walker.post(f"{slow}/cancel")
        walker.get(f"{slow}?wait=20")
        walker.get(f"{_tool(walker, base, 'tool_error', {})}?wait=20")
        walker.get(f"{_call(walker, base, 'no/such', {})}?wait=20")
        _answer_all(walker, base, _tool(walker, base, "parade"))
        _answer_all(walker, base, _tool(walker, base, "charter", as_task=True, ttl=60000))
        tasks = walker.get(f"{base}/tasks")
        for task in tasks["receiver"][:2] + tasks["client"][:2]:
            walker.get(f"{base}/tasks/{task['id']}")
            walker.browse("GET", f"{base}/tasks/{task['id']}")
            for act in ("poll", "result", "stop", "cancel"):
                walker.script("POST", f"{base}/tasks/{task['id']}/{act}")
        for act in ("stop", "cancel"):
            running = _tool(walker, base, "charter", as_task=True)
            walker.get(f"{running}?wait=20")
            task = walker.get(running)["task_id"]
            walker.script("POST", f"{base}/tasks/{task}/poll")
            walker.script("POST", f"{base}/tasks/{task}/{act}")
        walker.post(f"{base}/tasks/refresh")
        compared = walker.script("POST", f"{added}/compare", {})
        if compared.status < 300:
            walker.script("GET", f"{added}/compare?wait=30")
        walker.script("GET", f"{added}/compare")
        walker.browse("GET", f"{added}/compare")
        walker.script("POST", f"{added}/compare/close")
        _everything(walker, base, added)


def _answered_for_us(walker: Walker) -> None:
    """Rules and models: kept, ordered, tried, made from an answer; a draft that is written and stopped."""
    base = _ready(walker, {"transport": "demo"}, era="legacy")
    call = _tool(walker, base, "preferences")
    (ask,) = walker.get(f"{base}/inbox?wait=20")["open"]
    path = f"{base}/asks/{ask['id']}"
    walker.post(f"{path}/touch")
    walker.browse("POST", f"{path}/touch")
    walker.post(f"{path}/rule")
    walker.post(f"{path}/draft", {"model": "echo"})
    walker.post(f"{path}/answer", {"action": "accept", "content": {"outputFormat": "json"}})
    walker.get(f"{call}?wait=20")
    walker.post(f"{path}/touch")
    walker.get(f"{path}/rule")
    walker.browse("GET", f"{path}/rule")
    made = walker.post(f"{path}/rule")
    walker.post(f"{base}/rules", {"name": "no", "do": {"action": "decline"}, "regex": "."})
    walker.post(f"{base}/rules", {"rules": [{"name": "no", "do": {"action": "decline"}, "delay_ms": 60000}]})
    walker.post(f"{base}/rules/try", {"rule": made["rule"], "id": made["id"]})
    walker.post(f"{base}/rules/order", {"order": ["r2", "r1"]})
    walker.post(f"{base}/rules/r2", {"on": True})
    walker.post(f"{base}/rules/pause", {"paused": False})
    walker.get(f"{base}/rules")
    walker.get(f"{base}/rules/r1")
    walker.get(f"{base}/rules/new")
    for page in ("", "/r1", "/new"):
        walker.browse("GET", f"{base}/rules{page}")
    walker.post(f"{base}/rules/r2/move", {"by": 1})
    walker.post(f"{base}/rules/resume")
    secret = {"name": "in", "do": {"action": "accept", "content": {"password": "correct horse"}}}
    walker.post(f"{base}/rules/import", {"rules": [secret]})
    walker.post(f"{base}/rules/import", {"rules": [{"name": "no"}]})
    walker.get(f"{base}/rules/export")
    walker.script("POST", f"{base}/rules/r3/delete")
    walker.script("GET", f"{base}/rules/r9")
    waits = _tool(walker, base, "preferences")
    walker.get(f"{base}/inbox?wait=20")
    walker.script("POST", f"{base}/rules/r2/delete")
    walker.script("POST", f"{waits}/cancel")
    walker.post(f"{base}/models", {"name": "mine", "provider": "canned", "text": "Yes."})
    walker.post(
        f"{base}/models", {"name": "mine", "provider": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1"}
    )
    walker.post(f"{base}/models", {"name": "echo", "provider": "canned"})
    walker.get(f"{base}/models")
    walker.browse("GET", f"{base}/models")
    caption = _tool(walker, base, "write_caption")
    (ask,) = walker.get(f"{base}/inbox?wait=20")["open"]
    path = f"{base}/asks/{ask['id']}"
    walker.get(f"{path}/models")
    walker.browse("GET", f"{path}?uses=1")
    walker.browse("POST", f"{path}/uses")
    walker.script("POST", f"{path}/uses")
    walker.post(f"{path}/draft", {"model": "nobody"})
    walker.post(f"{path}/draft", {"model": "small talk", "request": {**ask["params"], "systemPrompt": "Be brief"}})
    walker.post(f"{path}/draft/stop")
    walker.get(path)
    walker.script("POST", f"{base}/models/mine/delete")
    walker.script("POST", f"{base}/models/mine/delete")
    walker.script("POST", f"{caption}/cancel")


def _compared(walker: Walker) -> None:
    """Two calls side by side: answered alike, and both again."""
    base = _ready(walker, {"transport": "demo"}, era="legacy")
    first = _tool(walker, base, "preferences")
    (ask,) = walker.get(f"{base}/inbox?wait=20")["open"]
    walker.post(f"{base}/asks/{ask['id']}/answer", {"action": "accept", "content": {"outputFormat": "json"}})
    walker.get(f"{first}?wait=20")
    second = _tool(walker, base, "preferences")
    walker.get(f"{base}/inbox?wait=20")
    pair = {"left": first.rsplit("/", 1)[1], "right": second.rsplit("/", 1)[1]}
    where = f"{base}/compare?left={pair['left']}&right={pair['right']}"
    walker.get(where)
    walker.browse("GET", where)
    walker.post(f"{base}/compare/same", {**pair, "later": True})
    walker.get(f"{second}?wait=20")
    walker.get(where)
    walker.browse("GET", f"{where}&export=1")
    walker.script("GET", f"{base}/compare?left={pair['left']}&right=c9999")
    walker.post(f"{base}/compare/again", pair)
    walker.post(f"{base}/close")


def _everything(walker: Walker, base: str, call: str) -> None:
    """Pages and small routes of a session that has lived."""
    card = _tool(walker, base, "postcard", {})
    walker.get(f"{card}?wait=20")
    for page in (card, call):
        for way in ("", "/shown", "/branch?path=", "/search?q=a", "/table?root=", "/markdown?part=0", "/result"):
            walker.browse("GET", f"{page}{way}")
            walker.script("GET", f"{page}{way}")
    text = walker.browse("GET", card).body.decode()
    for kind in ("blobs", "frames"):
        walker.browse("GET", f"{base}/{kind}/{'0' * 64}")
        for sha in dict.fromkeys(re.findall(rf"/{kind}/([0-9a-f]{{64}})", text)):
            walker.browse("GET", f"{base}/{kind}/{sha}")
    for page in PAGES:
        walker.browse("GET", f"{base}{page}")
        walker.script("GET", f"{base}{page}")
    log = walker.get(f"{base}/log?after=0")
    seq = log["messages"][0]["seq"]
    walker.script("GET", f"{base}/log/{seq}")
    walker.browse("GET", f"{base}/log/{seq}")
    walker.script("POST", f"{base}/log/{seq}/resend")  # `initialize`, which is refused
    asked = next(one["seq"] for one in log["messages"] if (one["direction"], one["method"]) == ("out", "tools/list"))
    walker.post(f"{base}/log/{asked}/resend")
    lines = walker.script("GET", f"{base}/log.jsonl").body.splitlines()
    for line in lines:
        walker.surface.note(
            "GET /s/{sid}/log.jsonl",
            "line",
            {key: "…" if key == "message" else type(value).__name__ for key, value in json.loads(line).items()},
        )
    walker.script("GET", f"{base}/palette?q=ec")
    walker.browse("GET", f"{base}/palette?q=ec")
    walker.script("GET", f"{base}/counts")
    walker.browse("GET", f"{base}/counts")
    walker.post(f"{base}/ping")
    walker.post(f"{base}/roots", {"roots": [{"uri": "file:///tmp", "name": "tmp"}]})
    walker.post(f"{base}/options", {"log_level": "debug"})
    walker.script(
        "POST",
        f"{base}/complete",
        {"ref": {"type": "ref/prompt", "name": "plan_weekend"}, "argument": {"name": "destination", "value": "a"}},
    )
    walker.script("POST", f"{base}/compose/check", {"method": "tools/call", "params": "{}"})
    walker.script("POST", f"{base}/compose", {"method": "ping", "params": "{}"})
    walker.browse("POST", f"{base}/tools/form/add", {"a": "1", "b": "2"})
    walker.browse("POST", f"{base}/tools/check/add", {"a": "1", "b": "x"})
    walker.browse("POST", f"{base}/tools/call/add", {"a": "1", "b": "x"})
    walker.browse("POST", f"{base}/tools/call/phrase", {})
    walker.browse("POST", f"{base}/tools/call/confirm_sign_in", {})
    walker.browse("POST", f"{base}/tools/call/confirm_sign_in", {}, hx_request="true")
    walker.browse("POST", f"{base}/compose", {"method": "ping", "params": ""})
    walker.browse("POST", f"{base}/compose", {"method": "", "params": "{"})
    walker.browse("GET", f"{base}/resources/templates/~0")
    walker.script("POST", f"{base}/resources/templates/expand/~0", {"values": {}})
    walker.script("POST", f"{base}/resources/templates/read/~0", {"values": {}})
    walker.script("POST", f"{base}/resources/templates/read/~0", {"values": {"name": "x", "slug": "x", "place": "x"}})
    uri = walker.get(f"{base}/resources")["resources"][0]["uri"]
    walker.script("GET", f"{base}/resources/one?uri={quote(uri, safe='')}")
    walker.browse("GET", f"{base}/resources/one?uri={quote(uri, safe='')}")
    walker.script("POST", f"{base}/resources/read", {"uri": uri})
    for wanted in (True, False):
        walker.script("POST", f"{base}/resources/subscribe", {"uri": uri, "subscribe": wanted})
    walker.script("POST", f"{base}/resources/subscribe", {"uri": ""})
    walker.browse("GET", f"{base}/prompts/plan_weekend")
    walker.script("POST", f"{base}/prompts/get/plan_weekend", {"arguments": {"destination": "x"}})
    walker.browse("POST", f"{base}/prompts/get/phrase_of_the_day", {})
    walker.post(f"{base}/inbox/clear")
    walker.browse("POST", f"{base}/ping")
    saving = {"_mode": "json", "_text": '{"message": "ahoy"}', "save-name": "Ahoy"}
    walker.browse("POST", f"{base}/tools/save/echo", saving)
    kept = next(one for one in walker.get("/")["targets"] if one["transport"] == "demo")
    for one in walker.get(f"/targets/{kept['id']}/requests")["requests"]:
        walker.get(f"{base}/saved/{one['id']}")
        walker.browse("GET", f"{base}/saved/{one['id']}")
    walker.browse("POST", f"{call}/retry")
    walker.browse("POST", f"{call}/cancel")
    walker.browse("POST", f"{base}/inbox/clear")
    walker.browse("POST", f"{base}/options", {"option.log_level": "info"})
    walker.browse("POST", f"{base}/roots", {"uri": "file:///tmp", "name": ""})
    walker.browse("POST", f"{base}/tools/refresh")
    walker.post(f"{base}/disconnect")
    walker.get(base)
    walker.script("POST", f"{base}/connect", {"target": {"transport": "demo"}, "options": {"era": "legacy"}})
    walker.get(f"{base}?wait=50")
    walker.script("POST", f"{base}/connect", {"target": {"transport": "demo"}})  # connected already
    walker.post(f"{base}/close")
    walker.script("GET", base)
    walker.browse("GET", base)


def _guests(walker: Walker) -> None:
    """Those without an account: whoever has the link to one ask, and the phones of a room."""
    base = _ready(walker, {"transport": "demo"}, era="legacy")
    _tool(walker, base, "preferences", {})
    walker.get(f"{base}/inbox?wait=20")
    ask = f"{base}/asks/{walker.get(f'{base}/inbox')['open'][0]['id']}"
    link = walker.post(f"{ask}/link", {"seconds": 60, "name": "Ines"})["url"].removeprefix(walker.parley.server)
    for path in (f"{ask}/link", link):
        walker.browse("GET", path)
    walker.get(f"{ask}/link")
    walker.post(f"{ask}/link/revoke")
    walker.browse("POST", link, {"action": "decline"})
    walker.get(f"{base}/room")
    walker.post(f"{base}/room", {"decide": "first"})
    while walker.get(f"{base}/room")["poll"] is None:
        pass
    walker.browse("GET", f"{base}/stage")
    walker.browse("GET", f"{base}/room")
    walker.post(f"{base}/room/act", {"do": "stop"})
    walker.post(f"{base}/room/act", {"do": "decline"})
    walker.post(f"{base}/room/close")
    walker.get(f"{base}/tour")
    walker.browse("GET", f"{base}/tour")
    walker.post(f"{base}/tour", {"do": "press"})
    again = walker.post(f"{base}/stage/reset")["url"]
    walker.get(f"{again}?wait=20")
    walker.post(f"{again}/close")


def _modern(walker: Walker) -> None:
    base = _ready(walker, {"transport": "demo"}, era="modern")
    sid = base.rsplit("/", 1)[1]
    with walker.listening(sid, browser=False), walker.listening(sid, browser=True):
        walker.get(base)
        listened = walker.post(f"{base}/subscriptions", {"notifications": {"toolsListChanged": True}})
        walker.get(f"{base}/subscriptions")
        if listened and "id" in listened:
            for act in ("stop", "again"):
                walker.script("POST", f"{base}/subscriptions/{listened['id']}/{act}")
        ferry = _tool(walker, base, "book_ferry")
        told = walker.get(f"{ferry}?wait=30")
        walker.script("POST", f"{ferry}/rounds", {"limit": 20})
        for ask in walker.get(f"{base}/inbox")["open"][:1]:
            walker.script("POST", f"{base}/asks/{ask['id']}/reopen")
            walker.browse("POST", f"{base}/asks/{ask['id']}/form")
        assert told["state"] == "waiting", told
        _answer_all(walker, base, ferry)
        walker.script("POST", f"{ferry}/resend", {"round": 1})
        _answer_all(walker, base, _tool(walker, base, "voyage"))
        walker.get(f"{base}/tasks")
        walker.browse("GET", ferry)
        walker.get(f"{base}/log?after=0")
        walker.post(f"{base}/close")


def _recorded(walker: Walker) -> None:
    """A session is recorded, its recording listed, changed, masked, sent and deleted."""
    base = _ready(walker, {"transport": "demo"}, era="legacy")
    rid = walker.post(f"{base}/record", {"on": True})["rid"]
    walker.get(f"{_tool(walker, base, 'echo', {'message': 'kept'})}?wait=20")
    walker.post(f"{base}/record", {"on": False})
    walker.browse("POST", f"{base}/record", {"seen": "1"})
    walker.get("/recordings")
    walker.get("/recordings?q=kept&tool=echo")
    walker.browse("GET", "/recordings")
    log = walker.get(f"/r/{rid}/log?after=0")
    seq = log["messages"][-1]["seq"]
    for page in (
        "",
        "/about",
        "/calls",
        "/calls/c1",
        "/inbox",
        "/tasks",
        "/stderr",
        "/timeline",
        f"/log/{seq}",
        "/tools",
    ):
        walker.get(f"/r/{rid}{page}")
        walker.browse("GET", f"/r/{rid}{page}")
    walker.post(f"/r/{rid}/calls", {"method": "ping"})
    walker.browse("POST", f"/r/{rid}/connect")
    for whence in (base, f"/r/{rid}"):
        walker.get(f"{whence}/moments?seq={seq}")
        walker.browse("GET", f"{whence}/moments?seq={seq}")
        walker.post(f"{whence}/moments", {"seq": seq, "note": "here", "preview": True})
        walker.post(f"{whence}/moments", {"call": "c1", "note": "here"})
    walker.post(f"/r/{rid}", {"title": "Kept", "tags": ["a"]})
    file = walker.browse("GET", f"/r/{rid}/file").body
    walker.script("POST", "/recordings", raw=file)
    walker.script("POST", "/recordings", raw=b"no recording")
    walker.get(f"/r/{rid}/masks")
    walker.browse("GET", f"/r/{rid}/masks")
    walker.post(f"/r/{rid}/masks", {"names": ["message"]})
    walker.browse("POST", f"/r/{rid}/masks", {"names": "message", "save": "1"})
    walker.post(f"/r/{rid}/masks", {"names": []})
    walker.post(f"/r/{rid}/delete")
    walker.post(f"/r/{rid}/delete")
    walker.post(f"{base}/close")


def _shelf(walker: Walker) -> None:
    pages = {**SHELF, "args": [*SHELF["args"][:-1], json.dumps({"tools": 9, "resources": 9, "page": 4})]}
    base = _ready(walker, pages, era="legacy")
    for name in ("tools", "resources"):
        walker.post(f"{base}/{name}/refresh", {"pages": "one"})
        walker.post(f"{base}/{name}/more")
    walker.post(f"{base}/close")
    base = _ready(walker, SHELF, era="legacy")
    for name in LISTS:
        walker.get(f"{base}/{name}")
        walker.browse("GET", f"{base}/{name}")
    walker.get(base)
    walker.get("/")
    walker.post(f"{base}/close")


def _signing_in(walker: Walker) -> None:
    """A server that wants a token: waiting, signed in, renewed, forgotten, failed."""
    with protected(jwt=True) as harbour:
        target = {"transport": "http", "url": harbour.resource}
        base = walker.post("/s", {"target": target})["url"]
        walker.get(f"{base}?wait=50")
        for _ in range(2):
            found = walker.get(f"{base}/sign-in?wait=20")
            walker.get(f"{base}/inbox")
            walker.browse("GET", f"{base}/sign-in")
            back = urlsplit(harbour.allow(found["authorization_url"]))
            walker.post(f"{base}/sign-in", {"callback_url": "http://127.0.0.1:1/?state=not-ours"})
            for _ in range(2):  # the second time it is nobody's answer
                walker.script("GET", f"{back.path}?{back.query}")
            walker.get(f"{base}/sign-in?wait=20")
            walker.post(f"{base}/sign-in/steps/server-metadata", {"go_on": False})
            walker.get(f"{base}/sign-in?wait=20")
            walker.post(f"{base}/sign-in/refresh")
            walker.get(f"{base}/sign-in?wait=20")
            walker.post(f"{base}/sign-in/revoke")
            walker.get(f"{base}/sign-in?wait=20")
            walker.post(f"{base}/sign-in")
            walker.get(f"{base}/sign-in?wait=20")
        walker.post(f"{base}/sign-in/forget")
        for verb in ("refresh", "revoke", "steps/nothing"):
            walker.post(f"{base}/sign-in/{verb}")
        harbour.set(fault="no PKCE")
        walker.post(f"{base}/sign-in")
        walker.get(f"{base}/sign-in?wait=20")
        walker.get(base)
        walker.post(f"{base}/close")


def _faults(walker: Walker) -> None:
    """What is wrong, and how that is said: statuses and kinds are a promise too."""
    base = walker.post("/s")["url"]
    walker.post(f"{base}/close")
    walker.get("/")
    walker.script("GET", base)
    walker.post(f"{base}/reopen")
    walker.post(f"{base}/close")
    walker.script("POST", "/s/r0-neverwas/reopen")
    walker.script("POST", "/targets/t999/requests", {"name": "x", "method": "ping"})
    walker.post("/logout")
    opened = walker.script("POST", "/s", {}).json()
    base = f"/s/{opened['id']}"
    walker.script("POST", f"{base}/calls", {"method": "ping"})  # not connected
    walker.script("POST", f"{base}/connect", raw=b"{")
    walker.script("POST", f"{base}/connect", {"target": {"transport": "carrier pigeon"}})
    walker.script("POST", f"{base}/connect", {"target": {"transport": "demo"}, "options": {"unheard_of": 1}})
    walker.script("POST", f"{base}/options", {"unheard_of": 1})
    walker.script("POST", f"{base}/roots", {"roots": "none"})
    walker.script("POST", f"{base}/asks/a999/answer", {"action": "accept"})
    walker.script("GET", f"{base}/calls/c999")
    walker.script("GET", f"{base}/tasks/t999")
    walker.script("GET", f"{base}/log/999999")
    walker.script("GET", "/s/s-unknown")
    walker.script("GET", "/no-such-address")
    walker.script("POST", "/targets", {"name": "x"})
    walker.script("POST", "/targets/t999/delete")
    missing = {"transport": "stdio", "command": "no-such-command-of-parley"}
    walker.script("POST", f"{base}/connect", {"target": missing})
    walker.get(f"{base}?wait=50")
    walker.script("POST", f"{base}/close")
    walker.script("POST", "/s", raw=b'{"x": "' + b"a" * 10_000_000 + b'"}')
    walker.script("POST", "/s", {"target": {"transport": "http", "url": "ftp://127.0.0.1/"}})
    consent = {"transport": "stdio", "command": sys.executable, "args": "-c pass"}
    walker.browse("POST", "/s", consent)
    walker.browse("POST", "/s", {"transport": "demo"}, sec_fetch_site="cross-site")
    walker.browse("POST", "/s", {"transport": "demo"}, cookie="parley=nobody")
