from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench import clients, console, facade
from bench.clients import Beside, Client
from bench.command import Options
from bench.service import BenchFailed
from bench.stores import Stores

pytestmark = pytest.mark.long


def test_what_a_facade_adds_is_between_the_medians() -> None:
    rounds = [Beside(raw_s=[0.001, 0.001], facade_s=[0.0012]), Beside(raw_s=[0.009], facade_s=[0.0012, 0.5])]
    assert Beside.of(rounds).added_ms == pytest.approx(0.2)


def test_stub_and_facade_take_turns_in_who_comes_first() -> None:
    called: list[str] = []
    found = facade.in_turns(lambda: called.append("raw"), lambda: called.append("facade"), 2)
    assert called[:4] == ["raw", "facade", "facade", "raw"]
    assert len(called) == 2 * (facade.WARM_UP_CALLS + 2)
    assert {name: len(times) for name, times in found.items()} == {"raw_s": 2, "facade_s": 2}


def test_each_language_is_measured_and_a_missing_one_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, absent = clients.CLIENTS[0], Client(name="Absent", tool="no-such-tool", command=())
    monkeypatch.setattr(clients, "CLIENTS", (here, absent))
    monkeypatch.setattr(clients, "ROUNDS", 1)
    found = clients.measure(Options(stores=Stores(directory=tmp_path), models_dir=tmp_path / "models", queries=3))
    assert len(found.rows) == 1
    assert [line.rpartition("(")[2] for _, line in found.figures] == ["3 calls)"] * 2
    assert found.skipped == ("Absent: no-such-tool is missing",)


def test_a_program_that_fails_fails_the_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Client(name="Broken", tool=sys.executable, command=(sys.executable, "-c", "raise SystemExit(3)"))
    monkeypatch.setattr(clients, "CLIENTS", (broken,))
    with pytest.raises(BenchFailed, match="Broken ended with status 3"):
        clients.measure(Options(stores=Stores(directory=tmp_path), models_dir=tmp_path / "models", queries=1))


# Cost of the console and delay of its pages, as far as they can be tested without a browser.


def test_without_chromium_the_size_is_told_and_the_rest_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "missing_programs", lambda: ["chromedriver"])
    found = console.measure(Options(stores=Stores(directory=tmp_path), models_dir=tmp_path, queries=1))
    (size,) = found.rows
    assert (size.unit, size.reached) == ("KB", True)
    assert 1 < size.value < 300
    assert found.skipped == ("the console: chromedriver missing, of Debian's chromium and chromium-driver",)
