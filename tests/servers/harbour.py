"""The server that sits for the pictures: it speaks 2025-11-25 and 2026-07-28, and says the same at the same time.

    python harbour.py CLOCK [--http PORT]

It shares no code with Parley or an SDK. Its time is the eight bytes of the file CLOCK, which only the photographer
moves, and its ids are counted. What comes in together is answered together: it first reads until nothing more comes,
and so a log of a busy moment has the same order each time. Over HTTP it speaks 2026-07-28 only.
"""

import base64
import json
import os
import queue
import select
import struct
import sys
import threading
import zlib
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

QUIET = 0.15
"""How long nothing may come before what came is answered. A client that says three things says them faster."""
PREFIX = "io.modelcontextprotocol/"
TASKS, RELATED = PREFIX + "tasks", PREFIX + "related-task"
SELDOM = 3_600_000
"""So long a client is told to wait between two looks at a task: within a picture it looks only when it is made to."""


def text(words):
    return {"type": "text", "text": words}


def picture():
    """A PNG of eight by eight pixels, with a red flag in it."""
    rows = b"".join(
        b"\0" + b"".join(b"\xc8\x28\x28" if 1 <= x <= 5 and 1 <= y <= 3 else b"\x7f\xb4\xdc" for x in range(8))
        for y in range(8)
    )

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0))
    raw = b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return base64.b64encode(raw).decode()


def schema(required=(), **properties):
    return {"type": "object", "properties": properties, "required": list(required)}


PLACES = ["Kestrelholm", "Saltmere", "Tindra"]
BOOKING = schema(
    ("name", "adults", "place"),
    name={"type": "string", "title": "Name", "description": "Two to forty letters.", "minLength": 2, "maxLength": 40},
    cabin={"type": "string", "title": "Cabin number", "pattern": "^[A-D][0-9]{2}$", "default": "B12"},
    email={"type": "string", "title": "E-mail", "format": "email"},
    boarding={"type": "string", "title": "Boarding", "format": "date-time", "default": "2027-03-01T06:30:00Z"},
    adults={"type": "integer", "title": "Adults", "minimum": 1, "maximum": 6},
    budget={"type": "number", "title": "Budget", "minimum": 0, "default": 199.5},
    dog={"type": "boolean", "title": "A dog comes along", "default": False},
    place={"type": "string", "title": "Destination", "oneOf": [{"const": p.lower(), "title": p} for p in PLACES]},
    meals={
        "type": "array",
        "title": "Meals",
        "items": {"type": "string", "enum": ["breakfast", "lunch", "dinner"]},
        "maxItems": 2,
        "default": ["breakfast"],
    },
)
NESTED = schema(
    ("traveller",),
    traveller=schema(("name",), name={"type": "string"}, age={"type": "integer", "minimum": 0}),
    luggage={"type": "array", "items": schema(("kg",), kg={"type": "number"}, fragile={"type": "boolean"})},
    pay={"anyOf": [{"type": "string", "enum": ["cash", "card"]}, {"type": "null"}], "description": "How to pay."},
    extra={"type": "object", "additionalProperties": {"type": "string"}},
)
SUM = schema(("sum",), sum={"type": "number"})
TOOLS = [
    {
        "name": "add",
        "title": "Add two numbers",
        "description": "Adds, and says the sum twice: once for people, once as data.",
        "inputSchema": schema(("a", "b"), a={"type": "number"}, b={"type": "number"}),
        "outputSchema": SUM,
        "annotations": {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
    },
    {"name": "ask", "description": "Asks all that can be asked, at once.", "inputSchema": schema()},
    {"name": "book", "title": "Book a passage", "description": "Many fields.", "inputSchema": BOOKING},
    {"name": "fail", "description": "Fails, and says so in its result.", "inputSchema": schema()},
    {"name": "odd", "description": "Breaks its own output schema.", "inputSchema": schema(), "outputSchema": SUM},
    {"name": "pack", "description": "Its arguments have arguments.", "inputSchema": NESTED},
    {"name": "postcard", "title": "A postcard", "description": "Every kind of content.", "inputSchema": schema()},
    {"name": "slow", "description": "Reports progress, and ends when it is time.", "inputSchema": schema()},
    {
        "name": "voyage",
        "title": "Go on a voyage",
        "description": "Takes as long as it takes, and asks on the way.",
        "inputSchema": schema(days={"type": "integer", "minimum": 1, "default": 3}),
        "execution": {"taskSupport": "optional"},
    },
    {"name": "watch", "description": "Asks for a watchman as a task of yours.", "inputSchema": schema()},
]
RESOURCES = [
    {
        "uri": "harbour://guide",
        "name": "guide",
        "title": "The guide",
        "description": "What a visitor has to know.",
        "mimeType": "text/markdown",
        "size": 118,
        "annotations": {"audience": ["user"], "priority": 0.8, "lastModified": "2026-01-10T08:00:00Z"},
    },
    {"uri": "harbour://berths", "name": "berths", "mimeType": "application/json"},
    {"uri": "harbour://flag", "name": "flag", "mimeType": "image/png"},
]
TEMPLATES = [
    {
        "uriTemplate": "harbour://departures/{place}{?day}",
        "name": "departures",
        "title": "Departures",
        "description": "Where to, and on which day.",
        "mimeType": "application/json",
    },
    {"uriTemplate": "harbour://logbook/{+path}", "name": "logbook"},
]
PROMPTS = [
    {
        "name": "weekend",
        "title": "Plan a weekend",
        "description": "Two days at a place of your choice.",
        "arguments": [
            {"name": "place", "description": "Where to.", "required": True},
            {"name": "mood", "description": "In which mood."},
        ],
    },
    {"name": "phrase"},
]
FORM = {"message": "Who travels, and how?", "mode": "form", "requestedSchema": BOOKING}
LINK = {
    "message": "Please sign in with the harbour office.",
    "mode": "url",
    "elicitationId": "visit-1",
    "url": "https://harbour.example/sign-in?visit=1",
}
SAMPLE = {
    "messages": [
        {"role": "user", "content": text("We print postcards. They are honest.")},
        {"role": "assistant", "content": text("Understood. What does the picture show?")},
        {"role": "user", "content": {"type": "image", "data": picture(), "mimeType": "image/png"}},
    ],
    "systemPrompt": "You write for a small ferry company.",
    "modelPreferences": {"hints": [{"name": "small"}], "costPriority": 0.8, "intelligencePriority": 0.2},
    "temperature": 0.7,
    "maxTokens": 200,
    "stopSequences": ["\n\n"],
    "metadata": {"postcard": "saltmere"},
}
TOOL_SAMPLE = {
    "messages": [{"role": "user", "content": text("When can I sail to Tindra?")}],
    "maxTokens": 100,
    "tools": [
        {"name": "timetable", "description": "When ferries sail.", "inputSchema": schema(place={"type": "string"})}
    ],
    "toolChoice": {"mode": "auto"},
}
QUESTION = {
    "message": "Keep watch until noon?",
    "mode": "form",
    "requestedSchema": schema(("until",), until={"type": "string", "title": "Until", "default": "noon"}),
}
QUESTIONS = {
    "traveller": ("elicitation/create", FORM),
    "office": ("elicitation/create", LINK),
    "caption": ("sampling/createMessage", SAMPLE),
    "model": ("sampling/createMessage", TOOL_SAMPLE),
    "roots": ("roots/list", {}),
}
GUIDE = (
    "# The guide\n\nFerries leave **on time**.\n\n- Poets board early.\n- Dogs board late.\n\n"
    "| pier | to |\n|---|---|\n| 1 | Tindra |\n"
)
VOYAGED = {"content": [text("Back after three days at sea.")]}
CAPABILITIES = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "completions": {},
    "logging": {},
}
WORDS = "Ask for the guide first. Tools are for those who have read it."


class Harbour:
    """What it answers; `send` carries a message to the client."""

    def __init__(self, clock, send):
        self._clock, self.send = clock, send
        self.modern = False
        self.asked, self.waiting, self.slow, self.tasks = 0, {}, [], {}

    def now(self):
        return struct.unpack("<d", self._clock.read_bytes())[0]

    def stamp(self):
        return datetime.fromtimestamp(self.now(), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def note(self, method, **params):
        self.send({"method": method, "params": params})

    def ask(self, method, params, then):
        """A request to the client; `then` gets the answer."""
        self.asked += 1
        self.waiting[f"ask-{self.asked}"] = then
        self.send({"id": f"ask-{self.asked}", "method": method, "params": params})

    def take(self, message):
        """One message of the client."""
        method, params = message.get("method"), message.get("params") or {}
        if method is None:
            self.waiting.pop(message.get("id"), lambda _: None)(message)
        elif "id" not in message:
            if method == "notifications/tasks/status":
                self.heard(params)
        else:
            self.modern = method != "initialize" and PREFIX + "protocolVersion" in params.get("_meta", {})
            handler = getattr(self, "on_" + method.replace("/", "_"), None)
            if handler is None:
                self.reply(message, error={"code": -32601, "message": "Method not found", "data": {"method": method}})
            else:
                handler(message, params)

    def reply(self, message, **body):
        if self.modern and "result" in body:
            body["result"] = {"resultType": "complete", **body["result"]}
        self.send({"id": message["id"], **body})

    def look(self):
        """The photographer may have moved the clock: what was due is done."""
        for due, message in [one for one in self.slow if one[0] <= self.now()]:
            self.slow.remove((due, message))
            self.progress(message, 3, "At the quay.")
            self.reply(message, result={"content": [text("It took a while.")]})

    # --- the beginning

    def on_initialize(self, message, params):
        tasks = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
        result = {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {**CAPABILITIES, "tasks": tasks},
            "serverInfo": {"name": "harbour", "title": "Harbour office", "version": "2.1.0"},
            "instructions": WORDS,
        }
        self.reply(message, result=result)

    def on_server_discover(self, message, params):
        result = {
            "supportedVersions": ["2026-07-28"],
            "capabilities": {**CAPABILITIES, "extensions": {TASKS: {}}},
            "instructions": WORDS,
            "ttlMs": SELDOM,
            "cacheScope": "private",
            "_meta": {PREFIX + "serverInfo": {"name": "harbour", "title": "Harbour office", "version": "2.1.0"}},
        }
        self.reply(message, result=result)

    def on_ping(self, message, params):
        self.reply(message, result={})

    def on_logging_setLevel(self, message, params):
        self.reply(message, result={})

    # --- lists and what is in them

    def listed(self, message, name, items):
        kept = {"ttlMs": SELDOM, "cacheScope": "private"} if self.modern else {}
        self.reply(message, result={name: items, **kept})

    def on_tools_list(self, message, params):
        kept = [{k: v for k, v in tool.items() if k != "execution" or not self.modern} for tool in TOOLS]
        self.listed(message, "tools", kept)

    def on_resources_list(self, message, params):
        self.listed(message, "resources", RESOURCES)

    def on_resources_templates_list(self, message, params):
        self.listed(message, "resourceTemplates", TEMPLATES)

    def on_prompts_list(self, message, params):
        self.listed(message, "prompts", PROMPTS)

    def on_resources_read(self, message, params):
        uri = params["uri"]
        content = {
            "harbour://guide": {"mimeType": "text/markdown", "text": GUIDE},
            "harbour://berths": {"mimeType": "application/json", "text": json.dumps({"free": [3, 4], "taken": [1, 2]})},
            "harbour://flag": {"mimeType": "image/png", "blob": picture()},
        }.get(uri, {"mimeType": "text/plain", "text": f"Nothing sails from {uri}."})
        self.listed(message, "contents", [{"uri": uri, **content}])

    def on_resources_subscribe(self, message, params):
        self.reply(message, result={})
        self.note("notifications/resources/updated", uri=params["uri"])

    def on_prompts_get(self, message, params):
        place = params.get("arguments", {}).get("place", "nowhere")
        messages = [
            {"role": "user", "content": text(f"Plan two days in {place}.")},
            {
                "role": "assistant",
                "content": {"type": "resource", "resource": {"uri": "harbour://guide", "text": GUIDE}},
            },
        ]
        self.reply(message, result={"description": "A weekend.", "messages": messages})

    def on_completion_complete(self, message, params):
        begun = params["argument"]["value"].lower()
        values = [place for place in PLACES if place.lower().startswith(begun)]
        self.reply(message, result={"completion": {"values": values, "total": len(values), "hasMore": False}})

    # --- calls

    def progress(self, message, step, words):
        token = message["params"].get("_meta", {}).get("progressToken")
        if token is not None:
            self.note("notifications/progress", progressToken=token, progress=step, total=3, message=words)

    def on_tools_call(self, message, params):
        name, given = params["name"], params.get("arguments") or {}
        if name == "add":
            total = given["a"] + given["b"]
            self.reply(message, result={"content": [text(f"The sum is {total}.")], "structuredContent": {"sum": total}})
        elif name == "fail":
            print("harbour: the crane is stuck", file=sys.stderr, flush=True)
            self.log("error", {"crane": 2, "state": "stuck"})
            self.reply(message, result={"content": [text("The crane is stuck.")], "isError": True})
        elif name == "odd":
            self.reply(message, result={"content": [text("many")], "structuredContent": {"sum": "many"}})
        elif name == "postcard":
            self.reply(message, result={"content": self.postcard()})
        elif name == "slow":
            self.log("info", "Slow ahead.")
            self.progress(message, 1, "Casting off.")
            self.slow.append((self.now() + 2, message))
        elif name == "ask":
            self.ask_all(message, params)
        elif name == "watch":
            self.ask_for_watch(message, params)
        elif name == "voyage":
            self.voyage(message, params)
        else:
            said = json.dumps(given, sort_keys=True)
            self.reply(message, result={"content": [text(f"Done: {said}")]})

    def log(self, level, data):
        self.note("notifications/message", level=level, logger="pier", data=data)

    def postcard(self):
        wave = base64.b64encode(
            b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0@\x1f\0\0@\x1f\0\0\1\0\x08\0data\0\0\0\0"
        ).decode()
        return [
            text("# Greetings\n\nFrom **Tindra**, with `code` and a [link](https://harbour.example/)."),
            {"type": "image", "data": picture(), "mimeType": "image/png"},
            {"type": "audio", "data": wave, "mimeType": "audio/wav"},
            {"type": "resource_link", **RESOURCES[0]},
            {"type": "resource", "resource": {"uri": "harbour://flag", "mimeType": "image/png", "blob": picture()}},
            {"type": "resource", "resource": {"uri": "harbour://x", "mimeType": "text/html", "text": "<b>Bold</b>"}},
        ]

    def ask_all(self, message, params):
        """All questions at once: as requests, or as the inputs that a result asks for."""
        if self.modern:
            if "inputResponses" not in params:
                wanted = {key: {"method": method, "params": asked} for key, (method, asked) in QUESTIONS.items()}
                result = {"resultType": "input_required", "inputRequests": wanted, "requestState": "round-1"}
                return self.reply(message, result=result)
            said = sorted(params["inputResponses"])
            return self.reply(message, result={"content": [text(f"You said something about {', '.join(said)}.")]})
        got = {}

        def answered(key):
            def then(answer):
                got[key] = answer.get("result", answer.get("error"))
                if len(got) == len(QUESTIONS):
                    said = json.dumps({each: sorted(got[each]) for each in sorted(got)})
                    self.reply(message, result={"content": [text(f"You said: {said}")]})

            return then

        for key, (method, asked) in QUESTIONS.items():
            self.ask(method, asked, answered(key))
        return None

    # --- a task of the client

    def ask_for_watch(self, message, params):
        if self.modern:
            return self.reply(message, result={"content": [text("Nobody keeps watch here any more.")]})

        def created(answer):
            if "task" not in answer.get("result", {}):
                self.reply(message, result={"content": [text("Nobody keeps watch.")], "isError": True})
                return
            self.kept = (answer["result"]["task"]["taskId"], message)

        return self.ask("elicitation/create", {**QUESTION, "task": {"ttl": SELDOM}}, created)

    def heard(self, task):
        """The client's task has moved; when it has ended, its result is fetched."""
        if task.get("status") not in ("completed", "failed", "cancelled") or getattr(self, "kept", None) is None:
            return
        (name, message), self.kept = self.kept, None

        def then(answer):
            said = json.dumps(answer.get("result", answer.get("error")), sort_keys=True)
            self.reply(message, result={"content": [text(f"The watch says {said}.")]})

        self.ask("tasks/result", {"taskId": name}, then)

    # --- a task of the server

    def task(self, status, words, **more):
        ttl, poll = ("ttlMs", "pollIntervalMs") if self.modern else ("ttl", "pollInterval")
        found = {"status": status, "statusMessage": words, "lastUpdatedAt": self.stamp(), ttl: SELDOM, poll: SELDOM}
        return {**found, **more}

    def voyage(self, message, params):
        if not self.modern and "task" not in params:
            return self.reply(message, result={"content": [text("Back already.")]})
        name = f"voyage-{len(self.tasks) + 1}"
        self.tasks[name] = {"taskId": name, "createdAt": self.stamp(), **self.task("working", "Casting off.")}
        if self.modern:
            return self.send({"id": message["id"], "result": {"resultType": "task", **self.tasks[name]}})
        return self.reply(message, result={"task": self.tasks[name]})

    def on_tasks_get(self, message, params):
        """Each look finds it one step further: out, waiting for a word, and back."""
        task = self.tasks[params["taskId"]]
        if self.modern and task["status"] == "working" and "answers" not in task:
            wanted = {"cabin": {"method": "elicitation/create", "params": QUESTION}}
            task.update(self.task("input_required", "The purser has a question.", inputRequests=wanted))
        elif task["status"] == "working":
            task.update(self.task("completed", "Home again."))
            if self.modern:
                task.update(result={"resultType": "complete", **VOYAGED})
        shown = {key: value for key, value in task.items() if key != "answers"}
        self.reply(message, result=shown)

    def on_tasks_update(self, message, params):
        task = self.tasks[params["taskId"]]
        task.pop("inputRequests", None)
        task.update(self.task("working", "On the way back."), answers=params["inputResponses"])
        self.reply(message, result={})

    def on_tasks_result(self, message, params):
        self.reply(message, result={**VOYAGED, "_meta": {RELATED: {"taskId": params["taskId"]}}})

    def on_tasks_list(self, message, params):
        self.reply(message, result={"tasks": list(self.tasks.values())})

    def on_tasks_cancel(self, message, params):
        task = self.tasks[params["taskId"]]
        task.update(self.task("cancelled", "Turned back."))
        self.reply(message, result={} if self.modern else task)

    # --- subscriptions

    def on_subscriptions_listen(self, message, params):
        """It stays open: the acknowledgement, and then one thing of each kind that was asked for."""
        meta = {PREFIX + "subscriptionId": message["id"]}
        wanted = params.get("notifications") or {}
        self.note("notifications/subscriptions/acknowledged", notifications=wanted, _meta=meta)
        if wanted.get("toolsListChanged"):
            self.note("notifications/tools/list_changed", _meta=meta)
        for uri in wanted.get("resourceSubscriptions", []):
            self.note("notifications/resources/updated", uri=uri, _meta=meta)


def over_stdio(clock):
    def send(message):
        os.write(1, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    harbour, rest = Harbour(clock, send), b""
    print("harbour: open", file=sys.stderr, flush=True)
    while True:
        read = b""
        while select.select([0], [], [], QUIET)[0]:
            some = os.read(0, 65536)
            if not some:
                return
            read += some
        *lines, rest = (rest + read).split(b"\n")
        for line in lines:
            harbour.take(json.loads(line))
        harbour.look()


def over_http(clock, port):
    """Each POST waits for its turn in the same way as lines do; one thread answers them all."""
    arrived = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            message = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
            out = queue.Queue()
            arrived.put((message, out))
            parts = out.get()
            single = len(parts) == 1
            body = json.dumps(parts[0]).encode() if single else b""
            if parts and not single:
                body = b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in parts)
            self.send_response_only(200 if parts else 202)
            if parts:
                self.send_header("content-type", "application/json" if single else "text/event-stream")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            self.send_response_only(405)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    def answer():
        parts = []
        harbour = Harbour(clock, lambda message: parts.append({"jsonrpc": "2.0", **message}))
        while True:
            batch = [arrived.get()]
            try:
                while True:
                    batch.append(arrived.get(timeout=QUIET))
            except queue.Empty:
                pass
            for message, out in batch:
                parts.clear()
                harbour.take(message)
                out.put(list(parts))
                threading.Event().wait(QUIET / 3)

    http = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    http.daemon_threads = True
    threading.Thread(target=answer, daemon=True).start()
    threading.Thread(target=http.serve_forever, daemon=True).start()
    print("ready", flush=True)
    sys.stdin.buffer.read()
    os._exit(0)


def main(arguments):
    clock = Path(arguments[0])
    if "--http" in arguments:
        over_http(clock, int(arguments[arguments.index("--http") + 1]))
    else:
        over_stdio(clock)


if __name__ == "__main__":
    main(sys.argv[1:])
