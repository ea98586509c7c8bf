"""Fixtures shared by the tests of the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest
from typer.testing import CliRunner, Result

from hummock.cli.main import app
from tests.cli.fake_service import FakeService, running_fake

Run: TypeAlias = Callable[..., Result]


@pytest.fixture
def fake() -> Iterator[FakeService]:
    with running_fake() as service:
        yield service


@pytest.fixture
def run(fake: FakeService, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command line against the fake, in project `还款`, 80 columns wide."""
    monkeypatch.setenv("HUMMOCK_TARGET", fake.target)
    monkeypatch.setenv("HUMMOCK_PROJECT", "还款")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")

    def invoke(*arguments: str, stdin: bytes | None = None) -> Result:
        return CliRunner().invoke(app, list(arguments), input=stdin)

    return invoke
