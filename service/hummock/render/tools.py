"""Tools that a rendered text or a prompt speaks of."""

from __future__ import annotations

from hummock.core.render import ToolDefinition
from hummock.render.headings import Wording
from hummock.render.selection import Frame


def read_memory(frame: Frame) -> ToolDefinition:
    """The tool with which a model reads what it has seen in the index, by the name that the caller gives it."""
    return ToolDefinition(
        name=frame.read_tool,
        description=frame.wording.tool,
        input_schema={
            "type": "object",
            "properties": {"id": {"type": "string", "description": frame.wording.tool_id}},
            "required": ["id"],
            "additionalProperties": False,
        },
    )


def search(wording: Wording) -> ToolDefinition:
    """The tool with which a model searches code and knowledge together."""
    return ToolDefinition(
        name="search",
        description=wording.search_tool,
        input_schema={
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": wording.search_query},
                "topK": {"type": "integer", "minimum": 1, "maximum": 200, "description": wording.search_top_k},
                "type": {
                    "type": "string",
                    "enum": ["code", "knowledge", "both"],
                    "description": wording.search_type,
                },
            },
            "required": ["query"],
            "additionalProperties": False,
        },
    )
