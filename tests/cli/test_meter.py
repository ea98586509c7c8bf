"""Progress where there is no terminal."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hummock_tools.cli.output import Meter


def ticking(step_s: float) -> Iterator[float]:
    now_s = 0.0
    while True:
        yield now_s
        now_s += step_s


def test_a_pipe_gets_a_line_now_and_then_with_rate_and_time_left(capsys: pytest.CaptureFixture[str]) -> None:
    clock = ticking(2.0)
    with Meter(lambda: next(clock)) as meter:
        for done in (10, 20, 30, 40):
            meter.show("sending", done, 100)
    assert capsys.readouterr().err == "sending: 30/100, 8/s, 9 s left\n"


def test_a_stage_of_unknown_length_tells_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    clock = ticking(6.0)
    with Meter(lambda: next(clock)) as meter:
        meter.show("reading", 0, None)
        meter.show("reading", 7, None)
    assert capsys.readouterr().err == "reading: 0\nreading: 7\n"


def test_a_quick_stage_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Meter(lambda: 0.0) as meter:
        meter.show("sending", 1, 1)
        meter.say("left out: 图.png (binary)")
    assert capsys.readouterr().err == "left out: 图.png (binary)\n"
