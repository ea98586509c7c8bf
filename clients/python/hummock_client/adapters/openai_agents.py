"""Tools for the OpenAI Agents SDK: `pip install 'hummock[openai-agents]'`."""

from __future__ import annotations

from typing import Any

from agents import FunctionTool
from agents.tool_context import ToolContext

from hummock_client import AsyncClient
from hummock_client.adapters.tools import MemoryTools, ToolDefinition


def function_tools(client: AsyncClient, project: str) -> list[FunctionTool]:
    """`search`, `read_memory` and `remember` for `Agent(tools=…)`; the searches of one list are one conversation."""
    tools = MemoryTools(project)
    return [_function_tool(client, tools, definition) for definition in tools.definitions]


def _function_tool(client: AsyncClient, tools: MemoryTools, definition: ToolDefinition) -> FunctionTool:
    async def invoke(context: ToolContext[Any], arguments: str) -> str:
        return await tools.call_async(client, definition.name, arguments)

    return FunctionTool(
        name=definition.name,
        description=definition.description,
        params_json_schema=dict(definition.input_schema),
        on_invoke_tool=invoke,
        # Strict schemas have no optional properties.
        strict_json_schema=False,
    )
