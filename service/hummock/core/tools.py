"""The tools that a model is offered, defined once: a rendering brings them along, and the MCP server serves them.

Nothing is imported that only the service has: agents start the MCP server from an installation without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Language: TypeAlias = Literal["zh", "en"]

SEARCH_TOP_K: Final = 10
MAX_SEARCH_TOP_K: Final = 200
SEARCH_TYPES: Final = ("code", "knowledge", "both")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition:
    """A tool that a model can be offered; `input_schema` is JSON schema."""

    name: str
    description: str
    input_schema: Mapping[str, object]

    def openai(self) -> dict[str, object]:
        """The tool as an element of OpenAI's `tools`."""
        function = {"name": self.name, "description": self.description, "parameters": self.input_schema}
        return {"type": "function", "function": function}

    def anthropic(self) -> dict[str, object]:
        """The tool as an element of Anthropic's `tools`."""
        return {"name": self.name, "description": self.description, "input_schema": self.input_schema}

    def mcp(self) -> dict[str, object]:
        """The tool as MCP lists it."""
        return {"name": self.name, "description": self.description, "inputSchema": self.input_schema}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Texts:
    search: str
    query: str
    top_k: str
    type: str
    read: str
    id: str


_TEXTS: Final[Mapping[Language, _Texts]] = {
    "zh": _Texts(
        search="统一搜索工具，同时搜索代码和领域知识",
        query="搜索查询",
        top_k="返回结果数量（默认 10）",
        type="搜索类型：code/knowledge/both（默认 both）",
        read="读取一条记忆的全文。摘要不够用时调用它，不要猜测内容。",
        id="记忆的 ID，与 `[ID: …]` 里的写法一致。",
    ),
    "en": _Texts(
        search="Searches code and domain knowledge together.",
        query="What to look for (required)",
        top_k="How many results to return (default 10)",
        type="What to look through: code, knowledge or both (default both)",
        read="Reads the full content of a memory. Call it when a summary is not enough, instead of guessing.",
        id="The id of the memory, as it stands in `[ID: …]`.",
    ),
}


def search_tool(*languages: Language) -> ToolDefinition:
    """Define the tool with which a model searches code and knowledge together, described in these languages in turn."""
    texts = [_TEXTS[language] for language in languages]
    return ToolDefinition(
        name="search",
        description=_joined(each.search for each in texts),
        input_schema=_object(
            {
                "query": {"type": "string", "description": _joined(each.query for each in texts)},
                "topK": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_SEARCH_TOP_K,
                    "default": SEARCH_TOP_K,
                    "description": _joined(each.top_k for each in texts),
                },
                "type": {
                    "type": "string",
                    "enum": list(SEARCH_TYPES),
                    "default": "both",
                    "description": _joined(each.type for each in texts),
                },
            },
            required="query",
        ),
    )


def read_tool(name: str, *languages: Language) -> ToolDefinition:
    """Define the tool with which a model reads a memory in full, under the caller's name for it."""
    texts = [_TEXTS[language] for language in languages]
    return ToolDefinition(
        name=name,
        description=_joined(each.read for each in texts),
        input_schema=_object(
            {"id": {"type": "string", "description": _joined(each.id for each in texts)}}, required="id"
        ),
    )


def _object(properties: dict[str, dict[str, object]], *, required: str) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": [required], "additionalProperties": False}


def _joined(texts: Iterable[str]) -> str:
    return "\n".join(texts)
