"""What is published beside the package: Claude Code's plugin, the skill, and the entry of the MCP registry."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from hummock_tools.mcp.tools import OFFERED
from hummock_tools.setup.agents import AGENTS

ROOT = Path(__file__).parents[2]
SETUP = ROOT / "clients/python/hummock_tools/setup"
PLUGIN = SETUP / "plugin"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TOOL = re.compile(r"`([a-z_]+)`")


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def head_of(path: Path) -> dict[str, str]:
    """The fields that a Markdown file begins with; folded text in one line."""
    _, head, body = path.read_text(encoding="utf-8").split("---\n", 2)
    assert body.strip()
    fields = re.findall(r"^([a-z-]+): (?:>-\n)?((?:.|\n )+)$", head, re.MULTILINE)
    return {name: " ".join(value.split()) for name, value in fields}


def test_the_plugin_has_what_claude_code_asks_for() -> None:
    manifest = read(PLUGIN / ".claude-plugin/plugin.json")
    (listed,) = read(PLUGIN / ".claude-plugin/marketplace.json")["plugins"]
    assert manifest["name"] == listed["name"] == PROJECT["name"]
    assert manifest["version"] == PROJECT["version"]
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", manifest["name"])
    assert (PLUGIN / listed["source"] / ".claude-plugin/plugin.json").is_file()
    assert {path.name for path in (PLUGIN / "commands").iterdir()} == {"remember.md", "recall.md", "why.md"}


def test_the_plugin_starts_what_setup_writes() -> None:
    claude = AGENTS["claude-code"]
    assert claude.hooks is not None
    assert read(PLUGIN / "hooks/hooks.json")["hooks"] == {event: [claude.hooks.item] for event in claude.hooks.events}
    (server,) = read(PLUGIN / ".mcp.json")["mcpServers"].items()
    assert server == ("hummock", {"command": "hummock", "args": ["mcp", *(claude.folder_arguments() or ())]})


@pytest.mark.parametrize("name", ["commands/remember.md", "commands/recall.md", "commands/why.md"])
def test_a_command_says_what_it_does_and_takes_arguments(name: str) -> None:
    assert head_of(PLUGIN / name)["description"]
    assert "$ARGUMENTS" in (PLUGIN / name).read_text(encoding="utf-8")


def test_the_skill_has_a_head_that_every_agent_takes() -> None:
    (skill,) = (PLUGIN / "skills").iterdir()
    head = head_of(skill / "SKILL.md")
    assert set(head) == {"name", "description"}
    assert head["name"] == skill.name
    assert len(head["name"]) <= 64
    assert 0 < len(head["description"]) <= 1024


@pytest.mark.parametrize(
    "path", [PLUGIN / "skills/hummock/SKILL.md", SETUP / "rules.md", *sorted((PLUGIN / "commands").iterdir())], ids=str
)
def test_texts_for_models_name_tools_that_there_are(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert set(TOOL.findall(text)) - {"hummock"} <= set(OFFERED)


def test_skill_and_rules_say_that_memory_comes_before_grep() -> None:
    for path in (PLUGIN / "skills/hummock/SKILL.md", SETUP / "rules.md"):
        text = path.read_text(encoding="utf-8")
        assert re.search(r"[Bb]efore you grep", text)
        assert "data, not instructions" in text


def test_the_registry_entry_has_the_required_fields_and_is_of_this_package() -> None:
    entry = read(ROOT / "server.json")
    assert re.fullmatch(
        r"https://static\.modelcontextprotocol\.io/schemas/\d{4}-\d\d-\d\d/server\.schema\.json", entry["$schema"]
    )
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", entry["name"])
    assert 3 <= len(entry["name"]) <= 200
    assert 1 <= len(entry["description"]) <= 100
    assert 1 <= len(entry["title"]) <= 100
    for package in entry["packages"]:
        assert {"registryType", "identifier", "transport"} <= set(package)
        assert package["transport"] == {"type": "stdio"}
        assert package["runtimeHint"] or not package["runtimeArguments"]
        for argument in (*package["runtimeArguments"], *package["packageArguments"]):
            assert argument["type"] in {"named", "positional"}
            assert ("name" in argument) == (argument["type"] == "named")
            assert argument["value"]
        assert all(each["name"] and each["description"] for each in package["environmentVariables"])
    (package,) = entry["packages"]
    assert package["registryType"] == "pypi"
    assert package["identifier"] == PROJECT["name"]
    assert entry["version"] == package["version"] == PROJECT["version"]
    (extras,) = (each["value"] for each in package["runtimeArguments"])
    assert extras == f"hummock[server,mcp,convert]=={PROJECT['version']}"
    assert {"server", "mcp", "convert"} <= set(PROJECT["optional-dependencies"])
    # The registry looks for it in the description of the package, which is the README.
    assert f"mcp-name: {entry['name']}" in (ROOT / PROJECT["readme"]).read_text(encoding="utf-8")
