from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from bench.generator import Generator, NoCompiler, arrivals_s
from bench.service import BenchFailed
from bench.trivial import trivial_server

pytestmark = pytest.mark.long

REPLY_BYTES = 40_000
"""Size of a reply: more than one frame of HTTP/2 and less than the first window."""


@pytest.fixture(scope="module")
def generator(tmp_path_factory: pytest.TempPathFactory) -> Generator:
    try:
        return Generator.compiled(tmp_path_factory.mktemp("generator"))
    except NoCompiler as none:
        pytest.skip(str(none))


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    with trivial_server(REPLY_BYTES) as server:
        yield server.target


def test_arrivals_ascend_and_keep_their_rate() -> None:
    due_s = arrivals_s(250.0, 20_000, seed=3)
    assert (np.diff(due_s) >= 0).all()
    assert len(due_s) / due_s[-1] == pytest.approx(250.0, rel=0.03)


def test_arrivals_are_those_of_calls_that_know_nothing_of_each_other() -> None:
    gaps = np.diff(arrivals_s(1.0, 20_000, seed=3))
    # Of an exponential distribution: the spread of gaps equals their mean.
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.03)


def test_the_same_seed_gives_the_same_schedule() -> None:
    assert (arrivals_s(9.0, 50, seed=1) == arrivals_s(9.0, 50, seed=1)).all()
    assert (arrivals_s(9.0, 50, seed=1) != arrivals_s(9.0, 50, seed=2)).any()


@pytest.mark.parametrize("clients", [1, 7])
def test_every_request_is_answered_once_and_wholly(generator: Generator, target: str, clients: int) -> None:
    load = generator.run(target, "/bench.Trivial/Call", [bytes(2000)] * 50, clients)
    assert (load.calls, load.failed) == (50, 0)
    assert load.reply_bytes == 50 * (5 + REPLY_BYTES)
    # The first, the 17th, 33rd and 49th.
    assert [len(reply) for reply in load.replies] == [REPLY_BYTES] * 4
    assert set(load.replies) == {(bytes(range(256)) * (REPLY_BYTES // 256 + 1))[:REPLY_BYTES]}


def test_an_open_loop_does_not_send_before_its_time(generator: Generator, target: str) -> None:
    due_s = np.array([0.0, 0.1, 0.2])
    load = generator.run(target, "/bench.Trivial/Call", [b"x"] * 3, 1, due_s)
    assert load.elapsed_s >= 0.2


def test_an_open_loop_counts_the_time_that_a_call_waits_for_a_client(generator: Generator, target: str) -> None:
    at_once = np.zeros(200)
    load = generator.run(target, "/bench.Trivial/Call", [b"x"] * 200, 1, at_once)
    # The last of them has waited for all the others.
    assert load.latency.max_ms > 0.9 * 1000 * load.elapsed_s
    assert load.latency.p50_ms > 0.2 * 1000 * load.elapsed_s


def test_a_request_that_does_not_fit_a_frame_is_refused(generator: Generator, target: str) -> None:
    with pytest.raises(BenchFailed, match="larger than one frame"):
        generator.run(target, "/bench.Trivial/Call", [bytes(20_000)], 1)


def test_a_service_that_is_not_there_is_said(generator: Generator) -> None:
    with pytest.raises(BenchFailed, match="connect"):
        generator.run("127.0.0.1:1", "/bench.Trivial/Call", [b"x"], 1)


def test_a_compiler_that_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(NoCompiler):
        Generator.compiled(tmp_path)
