"""A server of raw HTTP and JSON, written by hand on sockets: it shares no code with Parley, an SDK or a framework.

    python raw_http.py [--record FILE] [--with JSON]

It prints its port, and ends when its stdin closes. `/mcp` is streamable HTTP, `/sse` with `/messages` the older HTTP
with SSE; any other path is a 404. It is an honest little server whose `x/…` methods and tools misbehave on request, so
that the odd bytes stand in the test beside what is expected of them; the settings make the rest of it misbehave:

    session    the session id it gives out; null for none (default: a new one for each initialize)
    reply      "json" or "sse": how a POST is answered (default: json)
    initialize members of the result of initialize that replace the honest ones
    http       {what: answer}: an HTTP answer instead of acting; `what` is a JSON-RPC method, POST, GET, DELETE or SSE,
               an answer is {"status", "headers", "body"} or {"base64"} (exact bytes, then the socket is closed)
    delay      {what: seconds}: wait before acting
    gets       [script]: what the next GET streams do, one each; afterwards they stay open
    keeping    take the client's answers to what was asked only once `x/release` was called
    endpoint   what the older transport names as its endpoint, with $KEY and $PORT; null for none
    moved      {path: {"status", "location"}}: a redirect, with $PORT; it keeps the query where it has none itself
    tls        [certificate file, key file]

A script is {"sse": text, "then": "open", "end" or "cut"}: these bytes of a stream, which then stays open, ends as HTTP
wants it, or ends in the middle. The record holds one JSON object per line: every request with its headers and exact
body, and every body or event data written, each before it can be seen by the other side.
"""

import base64
import contextlib
import itertools
import json
import os
import socket
import sys
import threading
import time

BLOCK = b"a" * 1_048_576


class Closed(Exception):
    """The other side is gone, or we want to be."""


class Record:
    """What crossed the wire, as this side saw it."""

    def __init__(self, path):
        self._file = None if path is None else os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, **entry):
        if self._file is not None:
            os.write(self._file, json.dumps({"at": time.monotonic(), **entry}).encode() + b"\n")

    def frame(self, raw, via):
        self.note(io=">", via=via, body=base64.b64encode(raw).decode())


class Wire:
    """One socket, and the answer being written to it."""

    def __init__(self, connection, record):
        self._socket, self._record = connection, record
        self._buffer = b""
        self._lock = threading.Lock()

    def request(self):
        """The next request: method, path, headers, body."""
        while b"\r\n\r\n" not in self._buffer:
            self._more()
            if self._buffer.startswith(b"\x16"):  # somebody speaks TLS to a plain port
                self.raw(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n")
                raise Closed
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ")
        headers = [[name.lower(), value.strip()] for name, _, value in (line.partition(":") for line in lines)]
        length = int(dict(headers).get("content-length", 0))
        while len(self._buffer) < length:
            self._more()
        body, self._buffer = self._buffer[:length], self._buffer[length:]
        encoded = base64.b64encode(body).decode()
        self._record.note(io="<", method=method, path=path, headers=headers, body=encoded)
        return method, path, dict(headers), body

    def _more(self):
        try:
            chunk = self._socket.recv(65536)
        except OSError:
            raise Closed from None
        if not chunk:
            raise Closed
        self._buffer += chunk

    def raw(self, data):
        try:
            with self._lock:
                self._socket.sendall(data)
        except OSError:
            raise Closed from None

    def head(self, status, headers, length=None):
        lines = [f"HTTP/1.1 {status} Whatever"] + [f"{name}: {value}" for name, value in headers.items()]
        lines.append("transfer-encoding: chunked" if length is None else f"content-length: {length}")
        self.raw("\r\n".join([*lines, "", ""]).encode("latin-1"))

    def whole(self, status, headers, body=b""):
        self.head(status, headers, len(body))
        self.raw(body)

    def json(self, raw, headers):
        self._record.frame(raw, "json")
        self.whole(200, {"content-type": "application/json", **headers}, raw)

    def stream(self, headers):
        self.head(200, {"content-type": "text/event-stream", "cache-control": "no-store", **headers})
        return Stream(self, self._record)

    def gone(self, seconds):
        """Wait until the other side has closed, at most so long."""
        self._socket.settimeout(seconds)
        try:
            return self._socket.recv(1) == b""
        except TimeoutError:
            return False
        except OSError:
            return True


class Stream:
    """Server-sent events on a wire."""

    def __init__(self, wire, record):
        self._wire, self._record = wire, record
        self.over = threading.Event()

    def event(self, raw, lines=""):
        """One message; `lines` may hold more fields. Several lines of data make one event of several lines."""
        self._record.frame(raw, "event")
        data = b"".join(b"data: " + line + b"\n" for line in raw.split(b"\n"))
        self.chunk(lines.encode() + data + b"\n")

    def script(self, text):
        """Exact bytes of a stream; what they say as data is put into the record."""
        for block in text.split("\n\n"):
            data = [line[5:].removeprefix(" ") for line in block.split("\n") if line.startswith("data:")]
            if any(data) and "event: endpoint" not in block:
                self._record.frame("\n".join(data).encode(), "event")
        self.chunk(text.encode())

    def chunk(self, data):
        try:
            self._wire.raw(b"%x\r\n" % len(data) + data + b"\r\n")
        except Closed:
            self.over.set()
            raise

    def end(self, then="end"):
        """`end` as HTTP wants it, `cut` in the middle, `open` not at all."""
        if then == "end":
            self._wire.raw(b"0\r\n\r\n")
        elif then == "open":
            return
        self.over.set()
        if then == "cut":
            raise Closed


class Turn:
    """One request of the client that wants an answer, and the ways to give it."""

    def __init__(self, web, message, wire, stream=None, headers=None):
        self.web, self.message, self.wire = web, message, wire
        self.older, self._stream, self._headers = stream is not None, stream, headers or {}

    @property
    def params(self):
        found = self.message.get("params")
        return found if isinstance(found, dict) else {}

    def stream(self):
        """The stream of the answer; begins it if it has not begun."""
        if self._stream is None:
            self._stream = self.wire.stream(self._headers)
        return self._stream

    def send(self, raw):
        self.stream().event(raw)

    def answer(self, result):
        self.last(encoded({"id": self.message["id"], "result": result}))

    def last(self, raw):
        """The frame that ends the turn: on the stream if there is one, else as the settings say."""
        if self._stream is None and self.web.settings.get("reply", "json") == "json":
            self.wire.json(raw, self._headers)
        else:
            self.send(raw)
            self.finish()

    def finish(self, then="end"):
        """End the stream of this answer; the stream of the older transport stays."""
        if self.older:
            return
        self.stream().end(then)

    def fill(self, text):
        """Text of a test: `$ID` is the request's id, `$TOKEN` its progress token."""
        token = (self.params.get("_meta") or {}).get("progressToken")
        return text.replace("$ID", json.dumps(self.message.get("id"))).replace("$TOKEN", json.dumps(token))


def encoded(message):
    return json.dumps({"jsonrpc": "2.0", **message}).encode()


# --- methods ----------------------------------------------------------------------------------------------------------


def initialize(turn):
    turn.answer(
        {
            "protocolVersion": turn.params["protocolVersion"],
            "capabilities": {"tools": {"listChanged": True}, "logging": {}},
            "serverInfo": {"name": "raw http", "version": "1.0"},
            **turn.web.settings.get("initialize", {}),
        }
    )


def ping(turn):
    turn.answer({})


def list_tools(turn):
    turn.answer({"tools": turn.web.settings.get("tools", [{"name": "echo", "inputSchema": {"type": "object"}}])})


def call_tool(turn):
    """`echo`; or a tool named like a method below, with its arguments as params."""
    name, given = turn.params.get("name"), turn.params.get("arguments") or {}
    if name == "echo":
        turn.answer({"content": [{"type": "text", "text": str(given.get("message"))}]})
    elif f"x/{name}" in METHODS:
        turn.message = {**turn.message, "params": {**turn.params, **given}}
        METHODS[f"x/{name}"](turn)
    else:
        turn.last(encoded({"id": turn.message["id"], "error": {"code": -32602, "message": "Unknown tool"}}))


def x_say(turn):
    """Frames as the test wrote them. As a JSON body there is only one."""
    frames = [turn.fill(line).encode() for line in turn.params.get("lines", [])]
    frames += [base64.b64decode(each) for each in turn.params.get("base64", [])]
    if turn.params.get("as") == "json":
        turn.wire.json(frames[0], {})
        return
    for raw in frames:
        turn.send(raw)
    turn.finish()


def x_http(turn):
    """Exact bytes instead of an HTTP answer; then the socket is closed."""
    turn.wire.raw(base64.b64decode(turn.params["base64"]).replace(b"$ID", str(turn.message["id"]).encode()))
    raise Closed


def x_torrent(turn):
    """Exact bytes instead of an HTTP answer: `head`, then `unit` so many times, then `tail`, with `chunked` as the last
    chunk of a body; then the socket is closed."""
    head, unit, tail = (turn.fill(turn.params[part]).encode("latin-1") for part in ("head", "unit", "tail"))
    turn.wire.raw(head)
    block, left = unit * max(1, 65536 // len(unit)), turn.params["count"] * len(unit)
    while left > 0:
        turn.wire.raw(block[:left])
        left -= len(block)
    turn.wire.raw(b"%x\r\n%s\r\n0\r\n\r\n" % (len(tail), tail) if turn.params.get("chunked") else tail)
    raise Closed


def x_script(turn):
    """Exact bytes of a stream, as base64 or text; with `resume`, what a GET with a Last-Event-ID gets later."""
    for last_id, script in turn.params.get("resume", {}).items():
        turn.web.resumes[last_id] = [{**each, "sse": turn.fill(each.get("sse", ""))} for each in script]
    if "base64" in turn.params:
        turn.stream().chunk(base64.b64decode(turn.params["base64"]).replace(b"$ID", str(turn.message["id"]).encode()))
    if "sse" in turn.params:
        turn.stream().script(turn.fill(turn.params["sse"]))
    then = turn.params.get("then", "end")
    turn.finish(then)
    if then == "open":
        turn.stream().over.wait()


def x_set(turn):
    """Other settings from now on."""
    turn.web.settings.update(turn.params["settings"])
    turn.answer({})


def x_seen(turn):
    """Answer once so many requests of this kind have come."""
    with turn.web.changed:
        turn.web.changed.wait_for(lambda: turn.web.seen.get(turn.params["what"], 0) >= turn.params["count"], 20)
    turn.answer({"count": turn.web.seen.get(turn.params["what"], 0)})


def x_slow(turn):
    """Answer, but late; earlier when the other side goes away."""
    if not turn.wire.gone(turn.params["seconds"]):
        turn.answer({"content": []})
    else:
        turn.web.saw("gone")
        raise Closed


def x_drip(turn):
    """A byte now and then, for ever: of the stream, or with `head`, of the headers."""
    if turn.params.get("head"):
        turn.wire.raw(b"HTTP/1.1 200 OK\r\nx-drip: ")
    stream = None if turn.params.get("head") else turn.stream()
    while True:
        if turn.wire.gone(turn.params["every"]):
            turn.web.saw("gone")
            raise Closed
        if stream is None:
            turn.wire.raw(b"a")
        else:
            stream.chunk(b":")


def x_headers(turn):
    """Headers without end."""
    turn.wire.raw(b"HTTP/1.1 200 OK\r\n")
    while True:
        turn.wire.raw(b"x-more: " + b"a" * 1000 + b"\r\n")


def x_huge(turn):
    """A reply of that many bytes: as a JSON body, or as one event."""
    head = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % turn.message["id"]
    tail, size = b'"}]}}', turn.params["bytes"]
    fill = size - len(head) - len(tail)
    if turn.params.get("as") == "event":
        write = turn.stream().chunk
        write(b"data: ")
        tail += b"\n\n"
    else:
        write = turn.wire.raw
        turn.wire.head(200, {"content-type": "application/json"}, size)
    write(head)
    while fill > 0:
        write(BLOCK[:fill])
        fill -= len(BLOCK)
    write(tail)
    if turn.params.get("as") == "event":
        turn.finish()


def x_list(turn):
    """A reply of many small parts; with `faulty`, none of them as it should be."""
    text = int if turn.params.get("faulty") else str
    turn.answer({"content": [{"type": "text", "text": text(number)} for number in range(turn.params["count"])]})


def x_flood(turn):
    """One frame many times, `$N` counting: on this stream, or on the GET stream."""
    streams = turn.web.listening() if turn.params.get("on") == "get" else [turn.stream()]
    texts = [turn.params["line"].replace("$N", str(number)) for number in range(turn.params["count"])]
    for at in range(0, len(texts), 100):
        for stream in streams:
            stream.script("".join(f"data: {text}\n\n" for text in texts[at : at + 100]))
    turn.answer({"content": []})


def x_later(turn):
    """Accept with 202, and reply on the GET stream."""
    turn.wire.whole(202, turn.params.get("headers", {}))
    for stream in turn.web.listening():
        stream.event(encoded({"id": turn.message["id"], "result": {"content": []}}))


def x_get(turn):
    """Something on the GET stream, or an end of it; then the answer."""
    for stream in turn.web.listening():
        for line in turn.params.get("lines", []):
            stream.event(line.encode())
        if "sse" in turn.params:
            stream.script(turn.params["sse"])
        if "huge" in turn.params:
            with contextlib.suppress(Closed):
                stream.chunk(b"data: ")
                for _ in range(turn.params["huge"] // len(BLOCK)):
                    stream.chunk(BLOCK)
        if "then" in turn.params:
            with contextlib.suppress(Closed):
                stream.end(turn.params["then"])
            stream.cut = turn.params["then"] == "cut"
    turn.answer({"content": []})


def x_ask(turn):
    """Ask the client, on this stream or on the GET stream, and answer with what it said."""
    number = next(turn.web.numbers)
    key, said = f"ask-{number}", threading.Event()
    turn.web.asked[key] = said
    question = encoded({"id": key, "method": turn.params.get("ask", "roots/list")})
    if turn.params.get("on") == "get":
        for stream in turn.web.listening():
            stream.event(question)
    else:
        turn.send(question)
    if not said.wait(20):
        raise Closed
    turn.answer({"content": [{"type": "text", "text": json.dumps(turn.web.said[key])}]})


def x_hold(turn):
    """Never answer, unless released."""
    released = turn.web.keep(turn.params.get("mark"))
    if not turn.older:
        turn.stream()
    released.wait()
    turn.answer({"content": [{"type": "text", "text": f"held {turn.params.get('mark')}"}]})


def x_release(turn):
    """Answer what is held, the newest first."""
    while turn.web.held:
        turn.web.held.pop()[1].set()
    turn.answer({})


def x_forget(turn):
    """Know no session from now on."""
    turn.web.sessions.clear()
    turn.answer({})


def x_exit(turn):
    os._exit(turn.params.get("code", 0))


METHODS = {
    "initialize": initialize,
    "ping": ping,
    "logging/setLevel": ping,
    "tools/list": list_tools,
    "tools/call": call_tool,
} | {f"x/{name[2:]}": function for name, function in list(globals().items()) if name.startswith("x_")}


# --- HTTP -------------------------------------------------------------------------------------------------------------


class Web:
    """The server."""

    def __init__(self, settings, record):
        self.settings, self.record = settings, record
        self.sessions, self.resumes = set(), {}
        self.asked, self.said, self.held = {}, {}, []
        self.numbers = itertools.count(1)
        self.seen, self.changed = {}, threading.Condition()
        self._streams, self.older = {}, {}

    def saw(self, what):
        with self.changed:
            self.seen[what] = self.seen.get(what, 0) + 1
            self.changed.notify_all()

    def listening(self):
        """The GET streams that are open; waits a moment for the first one."""
        with self.changed:
            self.changed.wait_for(lambda: any(not one.over.is_set() for one in self._streams.values()), 10)
            return [one for one in self._streams.values() if not one.over.is_set()]

    def serve(self, connection):
        wire = Wire(connection, self.record)
        try:
            while True:
                self.act(wire, *wire.request())
        except Closed:
            pass
        finally:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def act(self, wire, method, path, headers, body):
        path, _, query = path.partition("?")
        message = json.loads(body) if body else None
        asked = message.get("method") if isinstance(message, dict) else None
        what = "SSE" if method == "GET" and path == "/sse" else method
        self.saw(what)
        if asked is not None:
            self.saw(asked)
        for key in (asked, what):
            if key in self.settings.get("delay", {}):
                time.sleep(self.settings["delay"][key])
        for key in (asked, what):
            if key in self.settings.get("http", {}):
                self.canned(wire, self.settings["http"][key], message)
                return
        if path in self.settings.get("moved", {}):
            moved = self.settings["moved"][path]
            where = moved["location"].replace("$PORT", str(self.port))
            where += f"?{query}" if query and "?" not in where else ""
            wire.whole(moved["status"], {"location": where} if where else {})
        elif path == "/mcp":
            self.streamable(wire, method, headers, message)
        elif path == "/sse" and method == "GET":
            self.older_stream(wire)
        elif path == "/messages" and method == "POST":
            self.older_post(wire, query, message)
        else:
            allowed = path == "/sse"
            wire.whole(405 if allowed else 404, {"content-type": "text/plain"}, b"nothing here")

    def canned(self, wire, answer, message):
        if "base64" in answer:
            wire.raw(base64.b64decode(answer["base64"]))
            raise Closed
        text = answer.get("body", "")
        if isinstance(message, dict):
            text = text.replace("$ID", json.dumps(message.get("id")))
        if answer.get("headers", {}).get("content-type") == "application/json" and text:
            self.record.frame(text.encode(), "json")
        wire.whole(answer.get("status", 200), answer.get("headers", {}), text.encode())

    def streamable(self, wire, method, headers, message):
        fresh = isinstance(message, dict) and message.get("method") == "initialize"
        with_sessions = self.settings.get("session", "") is not None
        mine = headers.get("mcp-session-id")
        if with_sessions and not fresh and mine not in self.sessions:
            wire.whole(404, {"content-type": "text/plain"}, b"no such session")
        elif method == "POST":
            given = {}
            if fresh and with_sessions:
                given["mcp-session-id"] = self.settings.get("session") or f"canary-session-{os.urandom(12).hex()}"
                self.sessions.add(given["mcp-session-id"])
            if not isinstance(message, dict) or "method" not in message or "id" not in message:
                if self.settings.get("keeping") and isinstance(message, dict) and "method" not in message:
                    self.keep(None).wait()
                wire.whole(202, {})
                self.heard(message)
            else:
                self.turn(Turn(self, message, wire, headers=given))
        elif method == "GET":
            self.get(wire, headers)
        elif method == "DELETE":
            self.sessions.discard(mine)
            wire.whole(200, {})
        else:
            wire.whole(405, {})

    def keep(self, mark):
        """Something that waits to be released."""
        released = threading.Event()
        self.held.append((mark, released))
        self.saw("held")
        return released

    def heard(self, message):
        """A notification, or the client's answer to something we asked."""
        if isinstance(message, dict) and "method" not in message and message.get("id") in self.asked:
            self.said[message["id"]] = message.get("result", message.get("error"))
            self.asked.pop(message["id"]).set()

    def turn(self, turn):
        act = METHODS.get(turn.message["method"])
        if act is None:
            turn.last(encoded({"id": turn.message["id"], "error": {"code": -32601, "message": "Method not found"}}))
        else:
            act(turn)

    def get(self, wire, headers):
        resumes = self.resumes.get(headers.get("last-event-id"))
        scripts = self.settings.get("gets", [])
        script = resumes.pop(0) if resumes else scripts.pop(0) if scripts else {}
        if "status" in script:
            wire.whole(script["status"], script.get("headers", {}), script.get("body", "").encode())
            return
        stream = wire.stream({})
        if script.get("sse"):
            stream.script(script["sse"])
        self.hold_open(stream, script.get("then", "open"))

    def hold_open(self, stream, then="open"):
        stream.end(then)
        if then == "end":
            return
        key = next(self.numbers)
        stream.cut = False
        with self.changed:
            self._streams[key] = stream
            self.changed.notify_all()
        stream.over.wait()
        del self._streams[key]
        if stream.cut:
            raise Closed

    def older_stream(self, wire):
        stream = wire.stream({})
        key = f"canary-session-{os.urandom(12).hex()}"
        self.sessions.add(key)
        endpoint = self.settings.get("endpoint", "/messages?session_id=$KEY")
        if endpoint is not None:
            named = endpoint.replace("$KEY", key).replace("$PORT", str(self.port))
            stream.script(f"event: endpoint\ndata: {named}\n\n")
        self.older[key] = stream
        self.hold_open(stream)

    def older_post(self, wire, query, message):
        key = query.removeprefix("session_id=")
        if key not in self.sessions:
            wire.whole(404, {}, b"no such session")
            return
        wire.whole(202, {"content-type": "text/plain"}, b"Accepted")
        if isinstance(message, dict) and "method" in message and "id" in message:
            with contextlib.suppress(Closed):
                self.turn(Turn(self, message, wire, stream=self.older[key]))
        else:
            self.heard(message)


def main(arguments):
    options = dict(zip(arguments[::2], arguments[1::2], strict=True))
    web = Web(json.loads(options.get("--with", "{}")), Record(options.get("--record")))
    listener = socket.create_server(("127.0.0.1", 0), backlog=500)
    accept, web.port = listener.accept, listener.getsockname()[1]
    if "tls" in web.settings:
        import ssl

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*web.settings["tls"])

        def accept():
            connection, address = listener.accept()
            return context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

    def accepting():
        while True:
            connection, _ = accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=web.serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accepting, daemon=True).start()
    print(web.port, flush=True)
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
