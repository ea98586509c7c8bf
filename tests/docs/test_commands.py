"""Every `hummock …` of a document, a message or a comment exists; in documents also with the options it is given."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

from hummock.cli.main import app

_ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(?:console|sh)\n(.*?)^```$|^((?:    [^\n]*\n)+)", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^(?:\s*\$ )?\s*(?:\.venv/bin/)?hummock (?P<rest>[^#\n]+)", re.MULTILINE)
_FEWEST = 60
_GROUP = typer.main.get_group(app)


def _shown() -> Iterator[tuple[str, str]]:
    for page in [_ROOT / "README.md", *sorted((_ROOT / "docs").rglob("*.md"))]:
        for block in _BLOCK.finditer(page.read_text(encoding="utf-8")):
            for command in _COMMAND.finditer(block[0]):
                yield str(page.relative_to(_ROOT)), command["rest"].strip()


_SHOWN = sorted(set(_shown()))


def test_the_documents_that_show_commands_are_found() -> None:
    assert {"README.md", "docs/commands.md", "docs/start/agent.md", "docs/zh/start/operator.md"} <= {
        page for page, _ in _SHOWN
    }
    assert len(_SHOWN) >= _FEWEST


@pytest.mark.parametrize(("page", "line"), _SHOWN)
def test_a_command_of_a_document_exists_with_its_options(page: str, line: str) -> None:
    words = shlex.split(re.split(r"[>|;&]", line)[0])
    command: Any = _GROUP  # Typer keeps the type of a command to itself
    while isinstance(command, TyperGroup) and words and not words[0].startswith("-"):
        assert words[0] in command.commands, f"{page}: hummock {line}"
        command = command.commands[words.pop(0)]
    # One that takes what it does not know passes it on to `hummock serve`.
    takers = (
        [command, _GROUP.commands["serve"]] if command.context_settings.get("ignore_unknown_options") else [command]
    )
    parameters = [parameter for taker in takers for parameter in taker.params]
    known = {option for parameter in parameters for option in (*parameter.opts, *parameter.secondary_opts)}
    given = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    assert given <= known | {"--help", "--version"}, f"{page}: hummock {line}"


_SOURCES = [
    *(_ROOT / "service/hummock").rglob("*.py"),
    *(_ROOT / "clients/python").rglob("*.py"),
    *(_ROOT / "proto/hummock").rglob("*.proto"),
]
_NAMED = re.compile(r"[`\"]hummock ((?:[a-z][a-z-]*)(?: [a-z][a-z-]*)*)")


def test_messages_and_comments_name_commands_as_they_are_called_now() -> None:
    named = {(path, found[1]) for path in _SOURCES for found in _NAMED.finditer(path.read_text(encoding="utf-8"))}
    assert len(named) >= _FEWEST
    unknown = {f"{path.relative_to(_ROOT)}: hummock {words}" for path, words in named if not _is_shown(words.split())}
    assert unknown == set()


def _is_shown(words: list[str]) -> bool:
    command: Any = _GROUP
    while isinstance(command, TyperGroup) and words and words[0] in command.commands:
        command = command.commands[words.pop(0)]
        if command.hidden:
            return False
    return command is not _GROUP
