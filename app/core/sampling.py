"""Sampling: what a server may ask of a model, or of the person who plays one, and what may be answered (R3).

Pure decisions about JSON. Knows the protocol's rules; knows no ask, no wire and no page.
"""

from __future__ import annotations

from typing import Any

from app import bounds
from app.core.errors import INVALID_PARAMS, RpcError
from app.core.json.text import whole
from app.core.options import Options
from app.core.rules import catalogue
from app.core.rules.frames import null_members
from app.core.rules.results import is_base64
from app.core.schema.check import validate
from app.core.wire import Finding


def admit(params: dict[str, Any], options: Options) -> list[Finding]:
    """What to remark about a sampling request that may be put to a person. Raises RpcError for one that may not."""
    given = [name for name in ("tools", "toolChoice") if params.get(name) is not None]
    if given and not options.sampling_tools:
        raise RpcError(INVALID_PARAMS, "This client did not declare sampling.tools", rule="R3-04")
    well_formed(params)
    findings = null_members(params, "R3-04", "tools", "toolChoice")
    for at, message in enumerate(params["messages"][: bounds.SAMPLING_MESSAGES_CHECKED]):
        for block in blocks(message)[: bounds.SAMPLING_MESSAGES_CHECKED]:
            data = block.get("data") if block["type"] in ("image", "audio") else None
            if isinstance(data, str) and not is_base64(data):
                findings.append(catalogue.not_base64(rule="R3-05", where=f"messages/{at}/content/data"))
    context = params.get("includeContext")
    if context in ("thisServer", "allServers") and not options.sampling_context:
        findings.append(catalogue.context_undeclared(context=context))
    return findings


def well_formed(params: dict[str, Any]) -> None:
    """Raises RpcError for what is no sampling request, whoever wrote it: the server, or the person who edited it."""
    messages = params.get("messages")
    if not isinstance(messages, list):
        raise RpcError(INVALID_PARAMS, "sampling/createMessage needs a list `messages`", rule="R3-05")
    if whole(params.get("maxTokens")) is None:
        raise RpcError(INVALID_PARAMS, "sampling/createMessage needs an integer `maxTokens`", rule="R3-12")
    for at, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
            raise RpcError(INVALID_PARAMS, f"messages[{at}] needs the role user or assistant", rule="R3-05")
        if not all(isinstance(block, dict) and isinstance(block.get("type"), str) for block in blocks(message)):
            raise RpcError(INVALID_PARAMS, f"messages[{at}] has content without a type", rule="R3-05")
    _balanced(messages)


def blocks(message: dict[str, Any]) -> list[Any]:
    """The content of a message as a list, whether it was one block or several (R3-05)."""
    content = message.get("content")
    return content if isinstance(content, list) else [content]


def tool_rounds(params: dict[str, Any]) -> int:
    """How many rounds of tool use a request has behind it, since something else was last asked of the model (R3-21)."""
    messages = params.get("messages")
    count = 0
    for message in reversed(messages if isinstance(messages, list) else []):
        said = blocks(message) if isinstance(message, dict) else []
        if any(_is(block, "tool_use") for block in said):
            count += 1
        elif not any(_is(block, "tool_result") for block in said) and message.get("role") != "assistant":
            break
    return count


def answered_uses(params: dict[str, Any]) -> set[str]:
    """The ids of the tool uses whose results end a request."""
    messages = params.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    said = blocks(last) if isinstance(last, dict) else []
    return {str(block.get("toolUseId")) for block in said if _is(block, "tool_result")}


def uses(result: dict[str, Any] | None) -> set[str]:
    """The ids of the tool uses in a result."""
    return set() if result is None else {str(block.get("id")) for block in blocks(result) if _is(block, "tool_use")}


def _is(block: Any, kind: str) -> bool:
    return isinstance(block, dict) and block.get("type") == kind


def _balanced(messages: list[dict[str, Any]]) -> None:
    """Tool uses are answered by the next message, and tool results stand alone (R3-06, R3-07)."""
    waiting: set[str] = set()
    for at, message in enumerate(messages):
        kinds = [block["type"] for block in blocks(message)]
        results = {str(block.get("toolUseId")) for block in blocks(message) if block["type"] == "tool_result"}
        if results and (message["role"] != "user" or any(kind != "tool_result" for kind in kinds)):
            raise RpcError(
                INVALID_PARAMS, f"messages[{at}]: tool results stand alone in a message of the user", rule="R3-06"
            )
        if waiting - results:
            raise RpcError(
                INVALID_PARAMS, f"messages[{at}]: tool result missing for {sorted(waiting - results)[0]}", rule="R3-07"
            )
        if results - waiting:
            raise RpcError(
                INVALID_PARAMS, f"messages[{at}]: there is no tool use for one of the tool results", rule="R3-07"
            )
        waiting = {str(block.get("id")) for block in blocks(message) if block["type"] == "tool_use"}
    if waiting:
        raise RpcError(INVALID_PARAMS, f"tool result missing for {sorted(waiting)[0]}", rule="R3-07")


def misfits(params: dict[str, Any], result: dict[str, Any]) -> dict[str, list[str]]:
    """What is wrong with the result of a sampling, by pointer (R3-08, R3-09)."""
    errors: dict[str, list[str]] = {}
    if result.get("role") not in ("user", "assistant"):
        errors["/role"] = ["The role is user or assistant."]
    if not isinstance(result.get("model"), str) or not result["model"]:
        errors["/model"] = ["Say which model answered; any name will do."]
    if "stopReason" in result and not isinstance(result["stopReason"], str):
        errors["/stopReason"] = ["The stop reason is a text."]
    return errors | _content_misfits(params, result)


def doubts(params: dict[str, Any], result: dict[str, Any]) -> list[str]:
    """What a person should know about a result before it leaves, in sentences: tool uses of tools that were not
    offered, and inputs that do not fit (R3-09)."""
    given = params.get("tools")
    listed = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    tools = {str(one.get("name")): one.get("inputSchema") for one in listed}
    found: list[str] = []
    for block in blocks(result) if tools else []:
        if _is(block, "tool_use"):
            name = str(block.get("name"))
            if name not in tools:
                found.append(f"The server offered no tool named {name[:60]!r}.")
                continue
            for place, words in validate(tools[name], block.get("input")).items():
                found += [f"The input of {name[:60]}{f', {place}' if place else ''}: {one}" for one in words]
    return found


def _content_misfits(params: dict[str, Any], result: dict[str, Any]) -> dict[str, list[str]]:
    content = result.get("content")
    found: list[Any] = content if isinstance(content, list) else [content]
    if not found or not all(isinstance(block, dict) and isinstance(block.get("type"), str) for block in found):
        return {"/content": ["The content is one block or a list of blocks, each with a type."]}
    needs = {
        "text": ("text",),
        "image": ("data", "mimeType"),
        "audio": ("data", "mimeType"),
        "tool_use": ("id", "name", "input"),
    }
    for at, block in enumerate(found):
        missing = [name for name in needs.get(block["type"], ()) if name not in block]
        if missing:
            return {"/content": [f"Block {at + 1} ({block['type']}) lacks {', '.join(missing)}."]}
        if block["type"] not in needs:
            return {"/content": [f"Block {at + 1}: a result cannot contain {block['type'][:40]!r}."]}
    uses = [block for block in found if block["type"] == "tool_use"]
    choice = params.get("toolChoice")
    mode = choice.get("mode") if isinstance(choice, dict) else None
    if uses and mode == "none":
        return {"/content": ["The server allows no tool use here (toolChoice none)."]}
    if not uses and mode == "required":
        return {"/content": ["The server wants at least one tool use here (toolChoice required)."]}
    if uses and not params.get("tools"):
        return {"/content": ["The server offered no tools, so none can be used."]}
    if uses and result.get("role") != "assistant":
        return {"/role": ["A tool use is said by the assistant."]}
    return {}
