"""A server of 2026-07-28 in raw JSON, written by hand: it shares no code with Parley or an SDK, and does as it is told.

    python raw_modern.py [--http] [--record FILE] [--with JSON]

Over stdio it reads and writes lines; with `--http` it prints its port, takes POSTs at any path, and ends when its stdin
closes. The record holds one JSON object per line: `{"in": message, "headers": {…}}` for what it read,
`{"out": message}` for what it wrote, `{"closed": id}` when the other side closed one that was open. Settings:

    tools        the tools it lists
    deaf         how many of the first messages it does not answer
    tardy        how many of the first messages it answers only once it has read the one that follows them
    reversed     whether it then answers that one first; "apart": and the others only with the next message
    discover     members of the result of `server/discover` that replace the honest ones
    errors       {method: error}: answer so instead; a list is used up one by one, and then it is honest
    results      {method: result}: answer so instead
    scripts      {name: [result, …]}: what a tool, prompt or resource answers, one after the other. Which one is next
                 says the `requestState`: it must be exactly, byte for byte, that of the result before
    before       {name: [message, …]}: what is written before the answer of that tool; `$TOKEN` is its progress token
    listen       {"then": [message, …], "end": "result", "cancelled", "cut" or "open"} for `subscriptions/listen`;
                 messages come after the acknowledgement, `$ID` is the subscription id; "early" are those before it
    honored      the filter that is acknowledged, instead of the one asked for
    task         extension tasks: see `task_step`
    late         a detailed task: at `tasks/update` it is told that the task is so, and the update is refused
"""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PREFIX = "io.modelcontextprotocol/"
ENVELOPE = (PREFIX + "protocolVersion", PREFIX + "clientCapabilities")
TASKS = PREFIX + "tasks"
ECHO = {"name": "echo", "inputSchema": {"type": "object", "properties": {"message": {"type": "string"}}}}


class Server:
    """What it answers; how it is carried is for others."""

    def __init__(self, settings, record):
        self.settings, self._record, self._lock = settings, record, threading.Lock()
        self.tasks = {}
        self.put_off = []

    def note(self, **entry):
        if self._record is not None:
            os.write(self._record, json.dumps(entry).encode() + b"\n")

    def act(self, message, headers, wire):
        """One message that was read. `wire` has send(message), gone() and over_http."""
        self.note(**{"in": message, "headers": headers})
        if self.settings.get("deaf", 0) > 0:
            self.settings["deaf"] -= 1
            return
        if self.settings.get("tardy", 0) > 0:
            self.settings["tardy"] -= 1
            self.put_off.append(message)
            return
        now = [*self.put_off, message]
        self.put_off = []
        if self.settings.get("reversed") == "apart" and len(now) > 1:
            self.put_off, now = now[:-1], now[-1:]
            self.settings["reversed"] = False
        for each in reversed(now) if self.settings.get("reversed") else now:
            self.answer(each, headers, wire)
        return

    def answer(self, message, headers, wire):
        method, params = message.get("method"), message.get("params") or {}
        if "id" not in message:
            if method == "notifications/cancelled":
                wire.stop(params.get("requestId"))
            return None

        def reply(**body):
            wire.send({"jsonrpc": "2.0", "id": message["id"], **body})

        waiting = self.settings.get("errors", {}).get(method)
        if isinstance(waiting, dict):
            return reply(error=waiting)
        if waiting:
            return reply(error=waiting.pop(0))
        if method in self.settings.get("results", {}):
            return reply(result=self.settings["results"][method])
        missing = [key for key in ENVELOPE if key not in params.get("_meta", {})]
        if missing:
            return reply(error={"code": -32602, "message": f"missing in _meta: {missing}"})
        handler = getattr(self, "on_" + method.replace("/", "_"), None)
        if handler is None:
            return reply(error={"code": -32601, "message": "Method not found"})
        handler(message, params, reply, wire, headers)
        return None

    def on_server_discover(self, message, params, reply, wire, headers):
        result = {
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}, "prompts": {}, "resources": {}, "logging": {}},
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {PREFIX + "serverInfo": {"name": "raw modern", "version": "1.0"}},
        }
        reply(result=result | self.settings.get("discover", {}))

    def on_tools_list(self, message, params, reply, wire, headers):
        found = {"resultType": "complete", "tools": self.settings.get("tools", [ECHO]), "ttlMs": 0}
        reply(result={**found, "cacheScope": "private", **self.settings.get("list", {})})

    def on_tools_call(self, message, params, reply, wire, headers):
        name = params.get("name")
        token = json.dumps(params["_meta"].get("progressToken"))
        for each in self.settings.get("before", {}).get(name, []):
            wire.send(json.loads(json.dumps(each).replace('"$TOKEN"', token)))
        if name == "echo":
            text = str((params.get("arguments") or {}).get("message"))
            return reply(result={"resultType": "complete", "content": [{"type": "text", "text": text}]})
        if name == "hold":
            return wire.hold(message["id"], lambda: self.note(closed=message["id"]))
        if name == "set":
            self.settings.update(params["arguments"])
            return reply(result={"resultType": "complete", "content": []})
        if name in self.settings.get("headers", {}):
            wanted = self.settings["headers"][name]
            got = {key: headers.get(key.lower()) for key in wanted}
            if got != wanted:
                return reply(error={"code": -32020, "message": f"Header mismatch: {got}"})
            return reply(result={"resultType": "complete", "content": []})
        if name in self.settings.get("task", {}):
            return self.task_step(name, message, params, reply)
        return self.scripted(name, message, params, reply)

    def on_prompts_get(self, message, params, reply, wire, headers):
        self.scripted(params.get("name"), message, params, reply)

    def on_resources_read(self, message, params, reply, wire, headers):
        self.scripted(params.get("uri"), message, params, reply)

    def scripted(self, name, message, params, reply):
        """The step after the one whose state came back; the last one tells what it was given."""
        steps = self.settings.get("scripts", {}).get(name)
        if steps is None:
            return reply(error={"code": -32602, "message": f"Unknown: {name}"})
        at = 0
        if "requestState" in params:
            given = json.dumps(params["requestState"]).encode()
            known = [json.dumps(step.get("requestState")).encode() for step in steps]
            if given not in known:
                return reply(error={"code": -32602, "message": f"This state is not ours: {len(given)} bytes"})
            at = known.index(given) + 1
        elif "inputResponses" in params:
            at = 1
            if "requestState" in steps[0]:
                return reply(error={"code": -32602, "message": "The state is missing"})
        step = dict(steps[min(at, len(steps) - 1)])
        if step.pop("$tell", False):
            seen = {"inputResponses": params.get("inputResponses"), "requestState": params.get("requestState")}
            step["content"] = [{"type": "text", "text": json.dumps({**seen, "id": message["id"]})}]
        return reply(result=step)

    # --- subscriptions

    def on_subscriptions_listen(self, message, params, reply, wire, headers):
        script = self.settings.get("listen", {})
        number = message["id"]

        def tell(messages):
            for each in messages:
                text = json.dumps({"jsonrpc": "2.0", **each}).replace('"$ID"', json.dumps(number))
                wire.send(json.loads(text))

        tell(script.get("early", []))
        asked = params.get("notifications") or {}
        honored = self.settings.get("honored", asked)
        meta = {PREFIX + "subscriptionId": number}
        acknowledged = {"notifications": honored, "_meta": meta}
        wire.send({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": acknowledged})
        tell(script.get("then", []))
        end = script.get("end", "open")
        if end == "result":
            reply(result={"resultType": "complete", "_meta": meta})
        elif end == "cancelled":
            wire.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
            if wire.over_http:
                wire.cut()
        elif end == "cut":
            wire.cut()
        else:
            wire.hold(number, lambda: self.note(closed=number))

    # --- extension tasks

    def task_step(self, name, message, params, reply):
        """A task by its script: `{"created": {…}, "gets": [detailed task, …]}`; the last one stays."""
        extensions = params["_meta"][ENVELOPE[1]].get("extensions", {})
        if TASKS not in extensions:
            wanted = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
            return reply(error={"code": -32021, "message": "Missing capability", "data": wanted})
        script = self.settings["task"][name]
        task_id = f"secret-task-{len(self.tasks) + 1}"
        self.tasks[task_id] = {"gets": list(script["gets"]), "answers": {}}
        return reply(
            result={"resultType": "task", "taskId": task_id, "status": "working", "ttlMs": None}
            | script.get("created", {})
        )

    def _task(self, params, reply):
        task = self.tasks.get(params.get("taskId"))
        if task is None:
            reply(error={"code": -32602, "message": "Unknown task"})
        return task

    def on_tasks_get(self, message, params, reply, wire, headers):
        task = self._task(params, reply)
        if task is not None:
            step = task["gets"][0]
            wants = step.get("inputRequests") or {}
            if len(task["gets"]) > 1 and all(key in task["answers"] for key in wants):
                task["gets"].pop(0)
            body = {"resultType": "complete", "taskId": params["taskId"], "ttlMs": None, **step}
            if body.get("result", {}).get("$tell") is not None:
                text = json.dumps(task["answers"])
                body["result"] = {"content": [{"type": "text", "text": text}], "resultType": "complete"}
            reply(result=body)

    def on_tasks_update(self, message, params, reply, wire, headers):
        task = self._task(params, reply)
        if task is not None:
            if "late" in self.settings:
                ended = {"taskId": params["taskId"], "ttlMs": None, **self.settings["late"]}
                wire.send({"jsonrpc": "2.0", "method": "notifications/tasks", "params": ended})
                return reply(error={"code": -32602, "message": "The task has ended"})
            task["answers"].update(params.get("inputResponses") or {})
            reply(result={"resultType": "complete"})
        return None

    def on_tasks_cancel(self, message, params, reply, wire, headers):
        task = self._task(params, reply)
        if task is not None:
            task["gets"] = [self.settings.get("cancelled", {"status": "cancelled"})]
            reply(result={"resultType": "complete"})


class Pipe:
    """Lines on stdout. Everything shares one stream, so a held request is only remembered."""

    over_http = False

    def __init__(self, server):
        self._server, self._lock, self._held = server, threading.Lock(), {}

    def send(self, message):
        self._server.note(out=message)
        with self._lock:
            os.write(1, json.dumps(message).encode() + b"\n")

    def hold(self, number, closed):
        self._held[number] = closed

    def stop(self, number):
        closed = self._held.pop(number, None)
        if closed is not None:
            closed()

    def cut(self):
        os._exit(0)


class Answer:
    """The answer to one POST: JSON for an error or a plain result, else a stream."""

    over_http = True

    def __init__(self, server, http, streams):
        self._server, self._http, self._streams, self._begun = server, http, streams, False

    def send(self, message):
        self._server.note(out=message)
        raw = json.dumps(message).encode()
        if not self._begun and not self._streams and "method" not in message:
            status = 200
            if "error" in message:
                status = {-32601: 404, -32603: 200}.get(message["error"].get("code"), 400)
            self._http.send_response(status)
            self._http.send_header("content-type", "application/json")
            self._http.send_header("content-length", str(len(raw)))
            self._http.end_headers()
            self._http.wfile.write(raw)
            return
        self.begin()
        self._http.wfile.write(b": keep-alive\r\n\r\ndata: " + raw + b"\n\n")
        self._http.wfile.flush()

    def begin(self):
        if not self._begun:
            self._begun = True
            self._http.send_response(200)
            self._http.send_header("content-type", "text/event-stream")
            self._http.send_header("connection", "close")
            self._http.close_connection = True
            self._http.end_headers()
            self._http.wfile.flush()

    def hold(self, number, closed):
        self.begin()
        self._http.connection.settimeout(120)
        if self._http.connection.recv(1) == b"":
            closed()

    def stop(self, number):
        """Over HTTP a notification stops nothing."""

    def cut(self):
        self.begin()


def over_http(server):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            message = json.loads(body)
            headers = {name.lower(): value for name, value in self.headers.items()}
            if "id" not in message:
                server.note(**{"in": message, "headers": headers})
                self.send_response(202)
                self.send_header("content-length", "0")
                self.end_headers()
                return
            streams = message.get("method") in ("subscriptions/listen",) or server.settings.get("reply") == "sse"
            try:
                server.act(message, headers, Answer(server, self, streams))
            except OSError:
                self.close_connection = True

        def do_GET(self):
            server.note(**{"in": None, "http": "GET"})
            self.send_error(405)

        def do_DELETE(self):
            server.note(**{"in": None, "http": "DELETE"})
            self.send_error(405)

        def log_message(self, *_):
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    print(http.server_address[1], flush=True)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    sys.stdin.buffer.read()
    os._exit(0)


def main(arguments):
    web = "--http" in arguments
    options = dict(zip(*[iter([each for each in arguments if each != "--http"])] * 2, strict=False))
    settings = json.loads(options.get("--with", "{}"))
    record = None
    if "--record" in options:
        record = os.open(options["--record"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    server = Server(settings, record)
    if web:
        over_http(server)
    pipe = Pipe(server)
    for line in sys.stdin.buffer:
        server.act(json.loads(line), {}, pipe)


if __name__ == "__main__":
    main(sys.argv[1:])
