"""The MCP server: one project's memories as tools and resources, over stdin and stdout."""

from __future__ import annotations

from importlib.metadata import version

from mcp.server.mcpserver import MCPServer, ResourceSecurity
from mcp.types import ToolAnnotations

from hummock.mcp import wording
from hummock.mcp.tools import Tools
from hummock_client import AsyncClient

__all__ = ["serve"]

_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


async def serve(project: str, target: str | None) -> None:
    """Answer on stdout what comes on stdin until that ends; the log goes to stderr.

    The service is called when a tool is, so it may start later and be restarted.

    Raises:
        ValueError: The target is none.
    """
    async with AsyncClient(target) as client:
        await _server(Tools(client, project)).run_stdio_async()


def _server(tools: Tools) -> MCPServer:
    # At INFO the SDK logs what failed calls said, and with it content.
    server: MCPServer = MCPServer(
        "hummock", instructions=wording.INSTRUCTIONS, version=version("hummock"), log_level="WARNING"
    )
    server.add_tool(tools.search, title="Search memories", description=wording.SEARCH, annotations=_READS)
    server.add_tool(tools.read_memory, title="Read a memory", description=wording.READ_MEMORY, annotations=_READS)
    server.add_tool(tools.remember, title="Remember", description=wording.REMEMBER, annotations=_ADDS)
    server.add_tool(
        tools.recall_context, title="Recall for a task", description=wording.RECALL_CONTEXT, annotations=_READS
    )

    @server.resource(
        "hummock://memory/{id}",
        name="memory",
        title="A memory",
        description=wording.MEMORY,
        mime_type="application/json",
        # An id is a key of the store, never a path, and may look like one.
        security=ResourceSecurity(exempt_params={"id"}),
    )
    async def memory(id: str) -> str:
        return (await tools.read_memory(id)).model_dump_json(indent=2)

    return server
