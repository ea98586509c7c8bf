"""Reference page of the command line: every command with the help, arguments and options that `--help` shows."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from docs.site.tables import cell, table
from hummock.cli.main import app

_NO_BRACES = str.maketrans("", "", "{}")
"""Typer puts arguments that are required between braces."""


def commands_page() -> str:
    """Markdown of the page. Commands that are hidden from `--help` are left out."""
    parts = [
        "# Commands",
        "Every command of `hummock` with its options, made from the help that `hummock COMMAND --help` prints. "
        "[The command line by task](../commands.md) shows them in use.",
    ]
    group = typer.main.get_group(app)
    _describe(group, group.make_context("hummock", [], resilient_parsing=True), parts)
    return "\n\n".join(parts) + "\n"


def _describe(group: TyperGroup, parent: Any, parts: list[str]) -> None:
    """Add what the group has; `parent` is its context, whose type Typer keeps to itself."""
    for name, command in group.commands.items():
        if command.hidden:
            continue
        context = command.make_context(name, [], parent=parent, resilient_parsing=True)
        parts += ["#" * (2 + context.command_path.count(" ") - 1) + f" {context.command_path}"]
        parts += [cell(paragraph) for paragraph in (command.help or "").split("\n\n") if paragraph.strip()]
        if isinstance(command, TyperGroup):
            _describe(command, context, parts)
            continue
        usage = " ".join(command.collect_usage_pieces(context)).translate(_NO_BRACES)
        parts.append(f"```text\n{context.command_path} {usage}\n```")
        rows = []
        for parameter in command.params:
            record = parameter.get_help_record(context)
            if record is not None:
                rows.append((f"`{record[0]}`", cell(record[1])))
        if rows:
            parts.append(table(("option", "meaning"), rows))
