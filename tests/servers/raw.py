"""A server of raw JSON lines, written by hand: it shares no code with Parley or an SDK, and does what a test tells it.

    python raw.py SCENARIO [--record FILE] [--with JSON]

A scenario is a small function below. Most tests take `plain`, an honest little server whose extra `x/…` methods and
tools misbehave on request, so that the odd bytes stand in the test beside what is expected of them. The record holds
every byte read and written, in order, as entries `< LENGTH\\n` and `> LENGTH\\n` followed by that many bytes; an entry
is on disk before the server acts on what it read, or before what it writes can be seen.
"""

import base64
import json
import os
import signal
import sys
import time
from pathlib import Path


class Peer:
    """The server's end of the wire."""

    def __init__(self, settings, record):
        self.settings = settings
        self._record = record
        self.held = []

    def read(self):
        """The next line with its line feed; None once stdin is closed, which is an entry of no bytes."""
        line = sys.stdin.buffer.readline()
        self._note(b"<", line)
        return line or None

    def write(self, raw):
        """Exactly these bytes."""
        self._note(b">", raw)
        view = memoryview(raw)
        while view:
            view = view[os.write(1, view) :]

    def send(self, message):
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def answer(self, request, result):
        self.send({"id": request["id"], "result": result})

    def say(self, request, lines):
        """Lines as the test wrote them, together: `$ID` is the request's id, `$TOKEN` its progress token, `$NOW` the
        wall time."""
        token = request.get("params", {}).get("_meta", {}).get("progressToken")
        text = "".join(f"{line}\n" for line in lines)
        text = text.replace("$ID", json.dumps(request.get("id"))).replace("$TOKEN", json.dumps(token))
        self.write(text.replace("$NOW", f"{time.time():.6f}").encode())

    def _note(self, sign, raw):
        if self._record is not None:
            os.write(self._record, sign + b" %d\n" % len(raw) + raw)


# --- methods of the plain server --------------------------------------------------------------------------------------


def initialize(peer, request):
    if "initialize_lines" in peer.settings:
        peer.say(request, peer.settings["initialize_lines"])
        return
    result = {
        "protocolVersion": request["params"]["protocolVersion"],
        "capabilities": {"tools": {"listChanged": True}, "logging": {}},
        "serverInfo": {"name": "raw", "version": "1.0"},
    }
    peer.answer(request, result | peer.settings.get("initialize", {}))


def initialized(peer, request):
    peer.say(request, peer.settings.get("then", []))


def ping(peer, request):
    peer.answer(request, {})


def list_tools(peer, request):
    """Pages as the test gave them; with `endless`, always one more."""
    cursor = request.get("params", {}).get("cursor")
    number = 0 if cursor is None else int(cursor)
    pages = peer.settings.get("tools", [[{"name": "echo", "inputSchema": {"type": "object"}}]])
    result = {"tools": pages[number % len(pages)]}
    endless = peer.settings.get("endless")
    if endless == "growing" or number + 1 < len(pages):
        result["nextCursor"] = str(number + 1)
    elif endless == "repeated":
        result["nextCursor"] = str(number)
    peer.answer(request, result)


def call_tool(peer, request):
    """`echo`; or a tool named like a method below, with its arguments as params."""
    name, given = request["params"].get("name"), request["params"].get("arguments") or {}
    if name == "echo":
        peer.answer(request, {"content": [{"type": "text", "text": str(given.get("message"))}]})
    else:
        METHODS[f"x/{name}"](peer, {**request, "params": {**request["params"], **given}})


def x_say(peer, request):
    """Write what the test wants written, and nothing else: bytes, then lines."""
    params = request.get("params", {})
    if "base64" in params:
        peer.write(base64.b64decode(params["base64"]))
    peer.say(request, params.get("lines", []))


def x_tools(peer, request):
    """Have other tools from now on."""
    peer.settings["tools"] = request["params"]["pages"]
    peer.answer(request, {})


def x_hold(peer, request):
    """Never answer, unless released."""
    peer.held.append(request)


def x_release(peer, request):
    """Answer what is held, the newest first."""
    while peer.held:
        held = peer.held.pop()
        peer.answer(held, {"content": [{"type": "text", "text": f"held {held['params'].get('mark')}"}]})
    peer.answer(request, {})


def x_beat(peer, request):
    """Progress at an even pace, then the answer."""
    params = request["params"]
    for step in range(1, params["count"] + 1):
        time.sleep(params["every"])
        progress = {"progressToken": params["_meta"]["progressToken"], "progress": step}
        peer.send({"method": "notifications/progress", "params": progress})
    peer.answer(request, {"content": []})


def x_flood(peer, request):
    """One line many times, `$N` counting, in few writes."""
    params = request["params"]
    lines = [params["line"].replace("$N", str(number)) for number in range(params["count"])]
    peer.write(("\n".join(lines) + "\n").encode())
    if params.get("deaf"):
        x_stop_reading(peer, request)
    peer.answer(request, {"content": []})


def x_huge(peer, request):
    """A reply of that many bytes, on one line."""
    head = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % request["id"]
    tail = b'"}]}}\n'
    fill = request["params"]["bytes"] - len(head) - len(tail)
    peer.write(head)
    block = b"a" * 1_048_576
    while fill > 0:
        peer.write(block[:fill])
        fill -= len(block)
    peer.write(tail)


def x_torrent(peer, request):
    """One line: `head`, then `unit` so many times, then `tail`; with `times` that line so often, then an answer."""
    params = request["params"]
    head, unit, tail = (params[part].replace("$ID", str(request["id"])).encode() for part in ("head", "unit", "tail"))
    line = head + unit * params["count"] + tail + b"\n"
    for _ in range(params.get("times", 1)):
        peer.write(line)
    if "times" in params:
        peer.answer(request, {"content": []})


def x_stderr(peer, request):
    os.write(2, base64.b64decode(request["params"]["base64"]))
    peer.answer(request, {})


def x_about(peer, request):
    """What the server knows of itself."""
    about = {"argv": sys.argv, "env": dict(os.environ), "cwd": str(Path.cwd()), "pid": os.getpid(), "sid": os.getsid(0)}
    peer.answer(request, about)


def x_fork(peer, request):
    """A grandchild that ignores SIGTERM and holds our pipes open."""
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(60)
    peer.answer(request, {"pid": pid})


def x_deafen(peer, request):
    """From now on ignore a closed stdin and SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    peer.settings["deaf"] = True
    peer.answer(request, {})


def x_stop_reading(peer, request):
    """Answer, and never read again."""
    peer.answer(request, {"content": []})
    while True:
        time.sleep(60)


def x_close_stdout(peer, request):
    os.close(1)


def x_exit(peer, request):
    """End: by a code, or by a signal to itself."""
    params = request.get("params", {})
    os.write(2, params.get("stderr", "").encode())
    if "signal" in params:
        os.kill(os.getpid(), params["signal"])
    os._exit(params.get("code", 0))


METHODS = {
    "initialize": initialize,
    "notifications/initialized": initialized,
    "ping": ping,
    "logging/setLevel": ping,
    "tools/list": list_tools,
    "tools/call": call_tool,
} | {f"x/{name[2:]}": function for name, function in list(globals().items()) if name.startswith("x_")}


# --- scenarios --------------------------------------------------------------------------------------------------------


def plain(peer):
    """Answer what is asked, one message after the other, until stdin closes."""
    for raw in peer.settings.get("first", []):
        peer.write(base64.b64decode(raw))
    while (line := peer.read()) is not None:
        message = json.loads(line)
        method = message.get("method")
        if method in peer.settings.get("fatal", []):
            sys.exit(f"did not expect {method}")
        if method in peer.settings.get("numb", []):
            peer.read()  # its session has died, and nobody knows before the next line comes
            sys.exit(peer.settings.get("complaint", f"did not expect {method}"))
        if method in peer.settings.get("complains", []):
            os.write(2, peer.settings["complaint"].encode())
        if method in peer.settings.get("results", {}):
            peer.answer(message, peer.settings["results"][method])
            continue
        if method in METHODS and method not in peer.settings.get("silent", []):
            METHODS[method](peer, message)
        elif method is not None and "id" in message and method not in peer.settings.get("silent", []):
            peer.send({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
    while peer.settings.get("deaf"):
        time.sleep(60)


def exits(peer):
    """End before a word was said, or after the first line was read."""
    if peer.settings.get("after_reading"):
        peer.read()
    x_exit(peer, {"params": peer.settings})


SCENARIOS = {"plain": plain, "exits": exits}


def main(arguments):
    scenario, settings, record = arguments[0], {}, None
    options = dict(zip(arguments[1::2], arguments[2::2], strict=False))
    if "--with" in options:
        settings = json.loads(options["--with"])
    if "--record" in options:
        record = os.open(options["--record"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    SCENARIOS[scenario](Peer(settings, record))


if __name__ == "__main__":
    main(sys.argv[1:])
