"""How the desk offers its tools: the toolbox, the checking of arguments, and the shapes of a result.

A module with tools has a toolbox and decorates functions with its `offer`. Knows none of the tools.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from inspect import cleandoc
from typing import Any, TypeAlias, TypeVar

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, ConfigDict, ValidationError

from app.demo.state import Context


class Arguments(BaseModel):
    """The base of all tool arguments: what is not in the schema is refused."""

    model_config = ConfigDict(extra="forbid")


class ToolError(Exception):
    """A failure that the caller should read: it becomes a result with `isError`, never a JSON-RPC error."""


ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)
ToolFunction: TypeAlias = Callable[[Context, ArgumentsT], Awaitable[types.CallToolResult]]


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool as it is listed, and the function that checks its arguments and runs it."""

    listed: types.Tool
    run: Callable[[Context, dict[str, Any]], Awaitable[types.CallToolResult]]


class Toolbox(dict[str, OfferedTool]):
    """Tools by their name, in the order in which they are listed, and the two requests that clients send for them."""

    def offer(
        self, title: str, arguments: type[ArgumentsT], output: type[BaseModel] | None = None, changes: bool = False
    ) -> Callable[[ToolFunction[ArgumentsT]], ToolFunction[ArgumentsT]]:
        """Offer the decorated function as a tool: its name and docstring are the tool's name and description."""

        def offer(function: ToolFunction[ArgumentsT]) -> ToolFunction[ArgumentsT]:
            async def run(context: Context, given: dict[str, Any]) -> types.CallToolResult:
                try:
                    return await function(context, arguments.model_validate(given))
                except ValidationError as error:
                    return failed("The desk cannot read this form:\n" + "\n".join(complaints(error)))
                except ToolError as error:
                    return failed(str(error))

            listed = types.Tool(
                name=function.__name__,
                title=title,
                description=cleandoc(function.__doc__ or ""),
                input_schema=schema_of(arguments),
                output_schema=schema_of(output) if output else None,
                annotations=types.ToolAnnotations(
                    title=title,
                    read_only_hint=not changes,
                    destructive_hint=False,
                    idempotent_hint=not changes,
                    open_world_hint=False,
                ),
            )
            self[listed.name] = OfferedTool(listed, run)
            return function

        return offer

    async def list_tools(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[offered.listed for offered in self.values()])

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        offered = self.get(params.name)
        if offered is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
        return await offered.run(context, params.arguments or {})


def complaints(error: ValidationError) -> list[str]:
    """What is wrong with the arguments, one line each."""
    return [f"- {'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}" for one in error.errors()]


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON Schema of a model, without the name and docstring of our Python class at its root."""
    schema = model.model_json_schema()
    return {key: value for key, value in schema.items() if key not in ("title", "description")}


def failed(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)


def structured(value: BaseModel, sentence: str | None = None) -> types.CallToolResult:
    """A result that says the same twice, as the specification asks: as data, and as text for older clients.

    A sentence for people may come before both.
    """
    data = value.model_dump(mode="json")
    texts = [text for text in (sentence, json.dumps(data)) if text is not None]
    return types.CallToolResult(content=[types.TextContent(text=text) for text in texts], structured_content=data)
