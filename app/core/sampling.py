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
