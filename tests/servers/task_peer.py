"""A server of raw JSON lines with tasks of 2025-11-25, written by hand: it shares no code with Parley or an SDK.

    python task_peer.py [--record FILE] [--with JSON]          over stdio
    python task_peer.py http|sse [--record FILE] [--with JSON] over HTTP; prints its port

The settings say which tools it has and how a task lives:

    support      {tool: taskSupport}; null leaves `execution` out            (default: {"work": "optional"})
    capabilities what it declares beside tools                               (default: tasks: list, cancel, tools.call)
    script       the steps of a task, each a list: ["wait", seconds], ["status", status, message], ["progress", n, of],
                 ["elicit"], ["finish", result], ["fail", error], ["notify"], ["hold"] (until the tool `release`)
    answers      {method: [reply, …]}: what the next requests of a method get instead; `$TASK` is the newest task's id
    notify       whether status changes are announced                        (default: false)
    ttl, poll    what a task says of itself; `ttl` null for none given       (default: what was asked for, 50)
    page         tasks on a page of tasks/list                               (default: 2)
    create       members of the first task object that replace the honest ones
    meta         `_meta` of a CreateTaskResult
    related      false to leave related-task out of results, a text for another id
    cut          how many of the first streams of tasks/result end without a word, over http
    restless     true: the script goes on after the end of its task
    late         true: the CreateTaskResult leaves only behind the next answer to tasks/list
    early        true: the first status notification leaves before the CreateTaskResult
"""

import json
import os
import queue
import sys
import threading
import time
from datetime import UTC, datetime

RELATED = "io.modelcontextprotocol/related-task"
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def now():
    return datetime.now(UTC).isoformat()


class Task:
    """One task: what it is, and who waits for its result."""

    def __init__(self, number, request, settings):
        asked = request["params"].get("task") or {}
        self.id = f"task-{number}-{os.getpid()}"
        self.request, self.settings = request, settings
        self.status, self.message = "working", None
        self.created = self.updated = now()
        self.ttl = settings["ttl"] if "ttl" in settings else asked.get("ttl", 60000)
        self.outcome = None
        self.done = threading.Event()
        self.asks = queue.Queue()
        self.token = request["params"].get("_meta", {}).get("progressToken")

    def wire(self):
        task = {"taskId": self.id, "status": self.status, "createdAt": self.created, "lastUpdatedAt": self.updated}
        task["ttl"] = self.ttl
        if self.settings.get("poll", 50) is not None:
            task["pollInterval"] = self.settings.get("poll", 50)
        return task if self.message is None else {**task, "statusMessage": self.message}


class Server:
    """The tools, the tasks and the answers of one connection; `send(message, stream)` writes."""

    def __init__(self, settings, send):
        self.settings, self._send = settings, send
        self.tasks, self.waiting, self.numbers = {}, {}, 0
        self.released = threading.Event()
        self.lock = threading.Lock()
        self.lists = 0
        self.held = []

    def send(self, message, stream=None):
        self._send({"jsonrpc": "2.0", **message}, stream)

    def take(self, message, stream=None):
        """One message of the client; `stream` is where its answer goes."""
        method = message.get("method")
        if method is None:
            waiting = self.waiting.pop(message.get("id"), None)
            if waiting is not None:
                waiting.put(message)
            return
        if "id" not in message:
            return
        scripted = self.settings.get("answers", {}).get(method)
        if scripted:
            newest = list(self.tasks.values())[-1].id if self.tasks else ""
            reply = json.loads(json.dumps(scripted.pop(0)).replace("$TASK", newest))
            if reply is not None:
                self.send({"id": message["id"], **reply}, stream)
                return
        handler = {
            "initialize": self.initialize,
            "tools/list": self.list_tools,
            "tools/call": self.call,
            "tasks/get": self.get,
            "tasks/list": self.list,
            "tasks/result": self.result,
            "tasks/cancel": self.cancel,
            "ping": lambda request, stream: self.send({"id": request["id"], "result": {}}, stream),
        }.get(method)
        if handler is None:
            self.send({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}}, stream)
        else:
            handler(message, stream)

    def initialize(self, request, stream):
        tasks = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
        result = {
            "protocolVersion": request["params"]["protocolVersion"],
            "capabilities": {"tools": {}, **self.settings.get("capabilities", {"tasks": tasks})},
            "serverInfo": {"name": "task peer", "version": "1.0"},
        }
        self.send({"id": request["id"], "result": result}, stream)

    def list_tools(self, request, stream):
        tools = []
        for name, support in self.settings.get("support", {"work": "optional"}).items():
            tool = {"name": name, "inputSchema": {"type": "object"}}
            if support is not None:
                tool["execution"] = {"taskSupport": support}
            if self.settings.get("output"):
                tool["outputSchema"] = self.settings["output"]
            tools.append(tool)
        tools.append({"name": "release", "inputSchema": {"type": "object"}})
        self.send({"id": request["id"], "result": {"tools": tools}}, stream)

    def call(self, request, stream):
        params = request["params"]
        if params.get("name") == "release":
            self.released.set()
            self.send({"id": request["id"], "result": {"content": []}}, stream)
            return
        support = self.settings.get("support", {"work": "optional"}).get(params.get("name"))
        wants = "task" in params or self.settings.get("always")
        if support == "required" and not wants and not self.settings.get("lax"):
            error = {"code": -32601, "message": "This tool runs only as a task"}
            self.send({"id": request["id"], "error": error}, stream)
            return
        if not wants or self.settings.get("ignores"):
            self.send({"id": request["id"], "result": {"content": [{"type": "text", "text": "plain"}]}}, stream)
            return
        self.numbers += 1
        task = Task(self.numbers, request, self.settings)
        self.tasks[task.id] = task
        if self.settings.get("early"):
            self.send({"method": "notifications/tasks/status", "params": {**task.wire(), "statusMessage": "early"}})
        result = {"task": task.wire() | self.settings.get("create", {})}
        for name in self.settings.get("without", []):
            result["task"].pop(name, None)
        if "meta" in self.settings:
            result["_meta"] = self.settings["meta"]
        if self.settings.get("late"):
            self.held.append(lambda: self.send({"id": request["id"], "result": result}, stream))
        else:
            self.send({"id": request["id"], "result": result}, stream)
        threading.Thread(target=self.live, args=(task,), daemon=True).start()

    # --- the life of a task

    def live(self, task):
        for step in self.settings.get("script", [["finish", {"content": [{"type": "text", "text": "done"}]}]]):
            if task.done.is_set() and not self.settings.get("restless"):
                return
            verb, *given = step
            getattr(self, f"do_{verb}")(task, *given)

    def move(self, task, status, message=None):
        with self.lock:
            if task.done.is_set() and not self.settings.get("restless"):
                return
            task.status, task.message, task.updated = status, message, now()
        if self.settings.get("notify"):
            self.do_notify(task)
        if status in ("completed", "failed", "cancelled"):
            task.done.set()
            task.asks.put(None)

    def do_notify(self, task):
        self.send({"method": "notifications/tasks/status", "params": task.wire()})

    def do_wait(self, task, seconds):
        time.sleep(seconds)

    def do_hold(self, task):
        self.released.wait()
        self.released.clear()

    def do_status(self, task, status, message=None):
        self.move(task, status, message)

    def do_progress(self, task, value, total=None):
        params = {"progressToken": task.token, "progress": value, "_meta": {RELATED: {"taskId": task.id}}}
        self.send(
            {"method": "notifications/progress", "params": params if total is None else {**params, "total": total}}
        )

    def do_elicit(self, task):
        """Ask on the stream of tasks/result, and wait for the answer."""
        self.move(task, "input_required", "A name is needed")
        answer = queue.Queue()
        rpc_id = f"ask-{task.id}-{time.monotonic_ns()}"
        self.waiting[rpc_id] = answer
        meta = {RELATED: {"taskId": task.id}}
        params = {"message": "Which traveller?", "requestedSchema": SCHEMA, "_meta": meta}
        task.asks.put({"id": rpc_id, "method": "elicitation/create", "params": params})
        said = answer.get()
        task.answer = said
        self.move(task, "working", "Going on")

    def do_finish(self, task, result):
        given = getattr(task, "answer", {}).get("result", {}).get("content", {}).get("name", "nobody")
        task.outcome = {"result": json.loads(json.dumps(result).replace("$NAME", given))}
        self.move(task, "failed" if result.get("isError") and not self.settings.get("mislabels") else "completed")

    def do_fail(self, task, error):
        task.outcome = {"error": error}
        self.move(task, "failed", error["message"])

    # --- what a client may ask

    def find(self, request, stream):
        task = self.tasks.get(request.get("params", {}).get("taskId"))
        if task is None:
            error = {"code": -32602, "message": "Failed to retrieve task: Task not found"}
            self.send({"id": request["id"], "error": error}, stream)
        return task

    def get(self, request, stream):
        task = self.find(request, stream)
        if task is not None:
            self.send({"id": request["id"], "result": task.wire()}, stream)

    def list(self, request, stream):
        cursor, size = request.get("params", {}).get("cursor"), self.settings.get("page", 2)
        start = 0 if cursor is None else int(cursor.removeprefix("page-"))
        known = list(self.tasks.values())
        result = {"tasks": [task.wire() for task in known[start : start + size]]}
        if start + size < len(known):
            result["nextCursor"] = f"page-{start + size}"
        self.send({"id": request["id"], "result": result}, stream)
        while known and self.held:
            self.held.pop()()

    def cancel(self, request, stream):
        task = self.find(request, stream)
        if task is None:
            return
        if task.status in ("completed", "failed", "cancelled"):
            error = {"code": -32602, "message": f"Cannot cancel task: already in terminal status '{task.status}'"}
            self.send({"id": request["id"], "error": error}, stream)
            return
        self.move(task, "cancelled", "The task was cancelled by request.")
        self.send({"id": request["id"], "result": task.wire()}, stream)

    def result(self, request, stream):
        task = self.find(request, stream)
        if task is not None:
            threading.Thread(target=self.deliver, args=(task, request, stream), daemon=True).start()

    def deliver(self, task, request, stream):
        while not task.done.is_set():
            ask = task.asks.get()
            if ask is None:
                task.asks.put(None)  # for whoever waits beside us
                break
            self.send(ask, stream)
        outcome = task.outcome or {"error": {"code": -32603, "message": f"The task is {task.status}"}}
        if "result" in outcome and self.settings.get("related", True):
            said = self.settings.get("related", True)
            meta = {RELATED: {"taskId": task.id if said is True else said}}
            outcome = {"result": {**outcome["result"], "_meta": meta}}
        self.send({"id": request["id"], **outcome}, stream)


# --- transports


class Record:
    """Every message read and written, one JSON object per line."""

    def __init__(self, path):
        self._file = None if path is None else os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, sign, message):
        if self._file is not None:
            os.write(self._file, json.dumps({"io": sign, "at": time.monotonic(), "message": message}).encode() + b"\n")


def stdio(settings, record):
    lock = threading.Lock()

    def send(message, stream):
        with lock:
            record.note(">", message)
            sys.stdout.write(json.dumps(message) + "\n")
            sys.stdout.flush()

    server = Server(settings, send)
    for line in sys.stdin:
        message = json.loads(line)
        record.note("<", message)
        server.take(message)


def web(kind, settings, record):
    """One client over HTTP. Streamable: every POST of a request is answered by a stream; else one stream for all."""
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Stream:
        def __init__(self, handler, rpc_id):
            self.handler, self.rpc_id = handler, rpc_id
            self.queue = queue.Queue()

        def write(self):
            while True:
                event, data = self.queue.get()
                self.handler.wfile.write(f"event: {event}\ndata: {data}\n\n".encode())
                self.handler.wfile.flush()
                message = json.loads(data) if event == "message" else {}
                if self.rpc_id is not None and message.get("id") == self.rpc_id and "method" not in message:
                    return

    general = []

    def send(message, stream):
        record.note(">", message)
        while stream is None and not general:  # the client opens it after its first word
            time.sleep(0.01)
        (stream or general[-1]).queue.put(("message", json.dumps(message)))

    server = Server(settings, send)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"

        def log_message(self, *arguments):
            pass

        def stream(self, rpc_id=None):
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("mcp-session-id", "task-peer")
            self.end_headers()
            return Stream(self, rpc_id)

        def do_GET(self):
            if self.path == "/sse" and kind == "sse":
                stream = self.stream()
                general.append(stream)
                stream.queue.put(("endpoint", "/messages"))
            elif self.path == "/mcp" and kind == "http":
                stream = self.stream()
                general.append(stream)
            else:
                self.send_error(404)
                return
            try:
                stream.write()
            except OSError:
                return

        def do_DELETE(self):
            self.send_response(204)
            self.end_headers()

        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.path not in ("/mcp", "/messages"):
                self.send_error(404)
                return
            message = json.loads(body)
            record.note("<", message)
            if kind == "sse" or "id" not in message or "method" not in message:
                self.send_response(202)
                self.send_header("content-length", "0")
                self.end_headers()
                self.wfile.flush()
                server.take(message)
                return
            stream = self.stream(message["id"])
            if message["method"] == "tasks/result" and settings.get("cut", 0) > 0:
                settings["cut"] -= 1
                return
            server.take(message, stream)
            try:
                stream.write()
            except OSError:
                return

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    print(httpd.server_address[1], flush=True)
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    sys.stdin.read()


def main(arguments):
    kind = arguments.pop(0) if arguments and not arguments[0].startswith("--") else "stdio"
    options = dict(zip(arguments[::2], arguments[1::2], strict=True))
    settings, record = json.loads(options.get("--with", "{}")), Record(options.get("--record"))
    if kind == "stdio":
        stdio(settings, record)
    else:
        web(kind, settings, record)


if __name__ == "__main__":
    main(sys.argv[1:])
