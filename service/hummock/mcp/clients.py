"""How the clients that start MCP servers are told of this one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum

__all__ = ["ClientName", "place", "snippet"]


class ClientName(StrEnum):
    """Clients whose configuration is known."""

    CLAUDE = "claude"
    CURSOR = "cursor"
    VSCODE = "vscode"
    CODEX = "codex"


_PLACES = {
    ClientName.CLAUDE: ".mcp.json of the project, or claude_desktop_config.json",
    ClientName.CURSOR: ".cursor/mcp.json of the project, or ~/.cursor/mcp.json",
    ClientName.VSCODE: ".vscode/mcp.json of the project",
    ClientName.CODEX: "~/.codex/config.toml",
}


def place(client: ClientName) -> str:
    """The file that the snippet belongs into."""
    return _PLACES[client]


def snippet(client: ClientName, command: Sequence[str]) -> str:
    """The client's configuration with this server alone, as JSON or TOML.

    Args:
        client: Which client.
        command: Program and arguments that start the server.
    """
    program, *arguments = command
    if client is ClientName.CODEX:
        return f"[mcp_servers.hummock]\ncommand = {_quoted(program)}\nargs = {_quoted(arguments)}"
    entry: dict[str, object] = {"command": program, "args": arguments}
    if client is ClientName.VSCODE:
        # It passes over entries without a type, and over "mcpServers", in silence.
        return _json({"servers": {"hummock": {"type": "stdio", **entry}}})
    return _json({"mcpServers": {"hummock": entry}})


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _quoted(value: object) -> str:
    # TOML writes strings and lists of them as JSON does, but for DEL, which it wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
