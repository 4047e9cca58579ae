"""A stand-in for two providers of models, on loopback: streamed answers in the wire formats of OpenAI's chat
completions and of Anthropic's messages, made by hand. Prints its port, then a JSON line for each
request and each hang-up.

What it does is told by a word in the model's name: `words` answers, `slow` between pauses, `stamp` with the time at
which its first word left, and then stays silent, `tool` with a tool use, `both` with text and two of them, `args` with
one whose input is no JSON, `long` and `stops` end early, `cut` in the middle, `filter` by a filter, `refusal` with one,
`failing` with an error inside the stream, `raw` with the bytes that the last text says, `endless` never ends, `limit`
429 with a Retry-After, `once` the first time only, `busy` 529, `bad` 400, `key` 401; all of these quote the key. `mute`
says nothing.
"""

import asyncio
import json
import sys
import time
from typing import Any

WORDS = ["A ", "boat ", "on ", "the ", "fjord."]
TOOLS = ["weather", "tide"]
HOWS = frozenset(
    {
        *("words", "slow", "stamp", "tool", "both", "args", "long", "stops", "cut", "filter", "refusal", "failing"),
        *("raw", "endless", "limit", "once", "busy", "bad", "key", "mute"),
    }
)
REFUSED = {
    "key": ("401 Unauthorized", "authentication_error", "Incorrect API key provided: {key}. Find yours."),
    "limit": ("429 Too Many Requests", "rate_limit_error", "Rate limit reached for {key}"),
    "once": ("429 Too Many Requests", "rate_limit_error", "Rate limit reached for {key}"),
    "busy": ("529 Overloaded", "overloaded_error", "Overloaded, {key}"),
    "bad": ("400 Bad Request", "invalid_request_error", "max_tokens: far too large for {key}"),
}
seen: set[str] = set()


def say(**line: Any) -> None:
    print(json.dumps(line), flush=True)


def first_words(how: str) -> list[str]:
    return [f"at={time.time():.6f} "] if how == "stamp" else WORDS


def openai(body: dict[str, Any], how: str, key: str) -> list[str]:
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": f"{body['model']}-2026"}

    def chunk(delta: dict[str, Any], reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return f"data: {json.dumps({**head, 'choices': [choice]})}\n\n"

    lines = [chunk({"role": "assistant", "content": ""})]
    reason = {"filter": "content_filter", "long": "length"}.get(how, "stop")
    if how == "refusal":
        lines.append(chunk({"refusal": "I will not."}))
    if how not in ("tool", "args", "refusal"):
        lines += [chunk({"content": word}) for word in first_words(how)]
    if how == "failing":
        error = {"message": f"The engine broke, {key}", "type": "server_error", "code": None}
        return [*lines, f"data: {json.dumps({'error': error})}\n\n"]
    if how in ("tool", "args", "both"):
        for at, name in enumerate(TOOLS if how == "both" else TOOLS[:1]):
            call = {
                "index": at,
                "id": f"call_{at + 1}",
                "type": "function",
                "function": {"name": name, "arguments": ""},
            }
            more = {"index": at, "function": {"arguments": '{"city": ' if how == "args" else '{"city": "Bergen"}'}}
            lines += [chunk({"tool_calls": [call]}), chunk({"tool_calls": [more]})]
        reason = "tool_calls"
    usage = {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16}
    last = f"data: {json.dumps({**head, 'choices': [], 'usage': usage})}\n\n"
    return [*lines, chunk({}, reason), last, "data: [DONE]\n\n"]


def anthropic(body: dict[str, Any], how: str, key: str) -> list[str]:
    def event(kind: str, **more: Any) -> str:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **more})}\n\n"

    def block(at: int, content: dict[str, Any], *deltas: dict[str, Any]) -> list[str]:
        return [
            event("content_block_start", index=at, content_block=content),
            *(event("content_block_delta", index=at, delta=delta) for delta in deltas),
            event("content_block_stop", index=at),
        ]

    message = {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": f"{body['model']}-2026",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 1},
    }
    lines = [event("message_start", message=message)]
    reasons = {"filter": "refusal", "refusal": "refusal", "long": "max_tokens", "stops": "stop_sequence"}
    reason = reasons.get(how, "end_turn")
    if how not in ("tool", "args", "refusal"):
        texts = [{"type": "text_delta", "text": word} for word in first_words(how)]
        lines += block(0, {"type": "text", "text": ""}, *texts)
    if how == "failing":
        return [*lines, event("error", error={"type": "api_error", "message": f"The engine broke, {key}"})]
    if how in ("tool", "args", "both"):
        for at, name in enumerate(TOOLS if how == "both" else TOOLS[:1]):
            use = {"type": "tool_use", "id": f"call_{at + 1}", "name": name, "input": {}}
            text = '{"city": ' if how == "args" else '{"city": "Bergen"}'
            lines += block(at + (how == "both"), use, {"type": "input_json_delta", "partial_json": text})
        reason = "tool_use"
    stopped = {"stop_reason": reason, "stop_sequence": "." if reason == "stop_sequence" else None}
    return [*lines, event("message_delta", delta=stopped, usage={"output_tokens": 5}), event("message_stop")]


def last_text(body: dict[str, Any]) -> str:
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else str(content[-1]["text"])


async def refuse(writer: asyncio.StreamWriter, how: str, key: str) -> None:
    status, kind, words = REFUSED[how]
    text = json.dumps({"type": "error", "error": {"message": words.format(key=key), "type": kind}}).encode()
    head = [f"HTTP/1.1 {status}", "content-type: application/json", f"content-length: {len(text)}"]
    head += ["retry-after: 7", f"x-your-key: {key}", "connection: close", "", ""]
    writer.write("\r\n".join(head).encode() + text)
    await writer.drain()


async def stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, lines: list[str], how: str) -> None:
    writer.write(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    for line in lines[: len(lines) // 2] if how == "cut" else lines:
        data = line.encode()
        writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        await writer.drain()
        if how == "slow":
            try:
                await asyncio.wait_for(reader.read(1), 0.2)
            except TimeoutError:
                continue
            say(left=True, at=time.time())
            return
    if how == "stamp":
        await reader.read()
        say(left=True, at=time.time())
    elif how == "endless":
        while True:
            writer.write(b"1000\r\n" + b":" * 0x1000 + b"\r\n")
            await writer.drain()
    elif how != "cut":
        writer.write(b"0\r\n\r\n")
        await writer.drain()


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    except asyncio.IncompleteReadError:
        writer.close()
        return
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:]) if name}
    body = json.loads(await reader.readexactly(int(fields["content-length"])))
    path = head[0].split(" ")[1]
    is_openai = path.endswith("/chat/completions")
    how = next((word for word in body["model"].split("-") if word in HOWS), "words")
    key = fields.get("authorization", "").removeprefix("Bearer ") or fields.get("x-api-key", "")
    say(path=path, key=key, body=body, headers=fields)
    try:
        if how in REFUSED and not (how == "once" and body["model"] in seen):
            seen.add(body["model"])
            await refuse(writer, how, key)
        elif how == "mute":
            await reader.read()
            say(left=True, at=time.time())
        elif how == "raw":
            await stream(reader, writer, [last_text(body)], how)
        else:
            lines = (openai if is_openai else anthropic)(body, how, key)
            if how in ("stamp", "endless"):
                lines = lines[: 2 if is_openai else 3]
            await stream(reader, writer, lines, how)
    except ConnectionError:
        say(left=True, at=time.time())
    finally:
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    say(port=server.sockets[0].getsockname()[1])
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        sys.exit(0)
