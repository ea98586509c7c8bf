"""What is removed and saved has one family of commands each; the names of before do the same, and are not listed."""

from __future__ import annotations

from typing import Any

import pytest
import typer.main

from hummock.cli.main import app

EARLIER = {
    ("memories", "rm"): ("remove", "memories"),
    ("forget",): ("remove", "traces"),
    ("projects", "delete"): ("remove", "project"),
    ("purge",): ("remove", "bytes"),
    ("compact",): ("remove", "slack"),
    ("export",): ("save", "project"),
    ("backup",): ("save", "backup"),
    ("copy",): ("save", "copy"),
}


def _command(path: tuple[str, ...]) -> Any:
    command: Any = typer.main.get_command(app)
    for name in path:
        command = command.commands[name]
    return command


@pytest.mark.long
@pytest.mark.parametrize("earlier", EARLIER)
def test_a_name_of_before_is_the_same_command_and_is_not_listed(earlier: tuple[str, ...]) -> None:
    old, new = _command(earlier), _command(EARLIER[earlier])
    assert old.hidden
    assert not new.hidden
    assert old.callback.__wrapped__ is new.callback.__wrapped__
    assert [each.opts for each in old.params] == [each.opts for each in new.params]
