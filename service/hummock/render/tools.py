"""Tools that a rendered text speaks of."""

from __future__ import annotations

from hummock.core.render import ToolDefinition
from hummock.render.headings import Wording


def read_memory(wording: Wording) -> ToolDefinition:
    """The tool with which a model reads a memory of which it has seen the index."""
    return ToolDefinition(
        name="read_memory",
        description=wording.tool,
        input_schema={
            "type": "object",
            "properties": {"id": {"type": "string", "description": wording.tool_id}},
            "required": ["id"],
            "additionalProperties": False,
        },
    )
