"""Calls that are cancelled, and servers that are left: all others have their answer, and nothing lingers."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from tests.mcp.cancelling import ENDINGS, over_http, over_stdio

pytestmark = [pytest.mark.long, pytest.mark.timed]

NO_PAUSE = (0.0,)


@pytest.fixture(autouse=True)
def _called(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    monkeypatch.setenv("HUMMOCK_TARGET", target)


@pytest.mark.parametrize("ending", ENDINGS)
def test_all_but_the_cancelled_are_answered_over_a_pipe_and_the_process_ends(ending: str) -> None:
    rng = Random(ending)  # noqa: S311 - to be repeated, not to be secret
    assert asyncio.run(over_stdio(rng, 8, NO_PAUSE, ending)) == []


def test_all_but_the_cancelled_are_answered_over_http() -> None:
    rng = Random(6)  # noqa: S311 - to be repeated, not to be secret
    assert asyncio.run(over_http(rng, 12, NO_PAUSE)) == []
