"""The programs that start an MCP server: where each keeps its configuration, and how it writes a server down.

Sources, read in November 2026: cursor.com/docs/mcp; code.visualstudio.com/docs/agents/reference/mcp-configuration;
code.claude.com/docs/en/mcp; modelcontextprotocol.io/docs/develop/connect-local-servers (Claude Desktop);
developers.openai.com/codex/mcp; docs.windsurf.com/windsurf/cascade/mcp; zed.dev/docs/ai/mcp.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal, TypeAlias

Scope: TypeAlias = Literal["user", "workspace"]

SERVER: Final = "hummock"
"""The name under which the server is written down."""

_CODEX_STARTUP_S: Final = 60
"""Codex gives ten seconds, which a busy machine's first start may need for imports alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpClient:
    """A program that starts MCP servers.

    Attributes:
        title: Name for people.
        servers: The key of the file under which servers stand by name.
        user_file: Path of the user's file on Linux, below the home directory.
        mac_user_file: The user's file on macOS; empty if it has the same path.
        workspace_file: Path of the file that a repository brings along; empty where there is none.
        workspace_folder: How an argument of that file names the repository; "." where the server is started in it.
        extra: What an entry holds besides command and arguments.
        next_step: What its user does then.
    """

    title: str
    servers: str
    user_file: str
    mac_user_file: str = ""
    workspace_file: str = ""
    workspace_folder: str = "."
    extra: Mapping[str, Any]
    next_step: str

    def file(self, scope: Scope, home: Path, workspace: Path, environ: Mapping[str, str], platform: str) -> Path | None:
        """The file of a scope; None where the program has none.

        Args:
            scope: Owner of the file.
            home: The user's home directory.
            workspace: The repository.
            environ: The environment, which moves some of the files.
            platform: The value of `sys.platform`.
        """
        if scope == "workspace":
            return workspace / self.workspace_file if self.workspace_file else None
        if platform == "darwin" and self.mac_user_file:
            return home / self.mac_user_file
        below_config = PurePosixPath(self.user_file)
        if below_config.is_relative_to(".config") and Path(environ.get("XDG_CONFIG_HOME", "")).is_absolute():
            return Path(environ["XDG_CONFIG_HOME"]) / below_config.relative_to(".config")
        if self.servers == "mcp_servers" and Path(environ.get("CODEX_HOME", "")).is_absolute():
            return Path(environ["CODEX_HOME"]) / below_config.name
        return home / self.user_file

    def entry(self, command: Sequence[str]) -> dict[str, Any]:
        """Entry of the client's configuration file for a server that this command starts."""
        program, *arguments = command
        return {**self.extra, "command": program, "args": arguments}


CLIENTS: Final[Mapping[str, McpClient]] = {
    "cursor": McpClient(
        title="Cursor",
        servers="mcpServers",
        user_file=".cursor/mcp.json",
        workspace_file=".cursor/mcp.json",
        workspace_folder="${workspaceFolder}",
        extra={"type": "stdio"},
        next_step="restart Cursor, and switch the server on under MCP in its settings",
    ),
    "vscode": McpClient(
        title="VS Code",
        # It passes over "mcpServers" and over entries without a type, in silence.
        servers="servers",
        user_file=".config/Code/User/mcp.json",
        mac_user_file="Library/Application Support/Code/User/mcp.json",
        workspace_file=".vscode/mcp.json",
        workspace_folder="${workspaceFolder}",
        extra={"type": "stdio"},
        next_step='run "MCP: List Servers" and start it',
    ),
    "claude": McpClient(
        title="Claude Desktop",
        servers="mcpServers",
        user_file=".config/Claude/claude_desktop_config.json",
        mac_user_file="Library/Application Support/Claude/claude_desktop_config.json",
        extra={},
        next_step="quit Claude Desktop and open it again",
    ),
    "claude-code": McpClient(
        title="Claude Code",
        servers="mcpServers",
        user_file=".claude.json",
        workspace_file=".mcp.json",
        extra={"type": "stdio"},
        next_step="start a new session; /mcp lists the server",
    ),
    "codex": McpClient(
        title="Codex",
        servers="mcp_servers",
        user_file=".codex/config.toml",
        workspace_file=".codex/config.toml",
        extra={"startup_timeout_sec": _CODEX_STARTUP_S},
        next_step="start a new session; /mcp lists the server (a repository's file counts once Codex trusts it)",
    ),
    "windsurf": McpClient(
        title="Windsurf",
        servers="mcpServers",
        user_file=".codeium/windsurf/mcp_config.json",
        extra={},
        next_step="refresh the MCP servers in Cascade",
    ),
    "zed": McpClient(
        title="Zed",
        servers="context_servers",
        user_file=".config/zed/settings.json",
        extra={"enabled": True},
        next_step="Zed reads its settings by itself; the agent panel's settings show the server",
    ),
}
"""The programs that are known, by the names that `--client` takes."""
