"""All parts, one after the other."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from bench import load, render
from bench.__main__ import EVERY, run
from bench.command import Measure, Options
from bench.report import Findings, Row
from bench.service import BenchFailed
from bench.stores import Stores
from hummock.core.render import RenderForm

pytestmark = pytest.mark.long


class Refused(grpc.RpcError):
    """Error of a call to a service that has gone."""


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options(stores=Stores(directory=tmp_path / "stores"), models_dir=tmp_path / "models", queries=1)


@pytest.fixture(autouse=True)
def directories(tmp_path: Path) -> None:
    (tmp_path / "stores").mkdir()


def part(name: str, value: float) -> Measure:
    return lambda _: Findings(part=name, rows=(Row.at_most(1, f"p50 of {name}", 1.0, value, "ms"),))


def failing(failure: Exception) -> Measure:
    def measure(_: Options) -> Findings:
        raise failure

    return measure


def written(results: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((results / "latest.json").read_text(encoding="utf-8"))
    return values


@pytest.mark.parametrize(
    "failure",
    [
        BenchFailed("no\n  answer"),
        OSError("no answer"),
        Refused("no answer"),
        grpc.FutureTimeoutError("no answer"),
        subprocess.TimeoutExpired("serve", 60.0),
    ],
)
def test_a_part_that_fails_takes_no_other_with_it(options: Options, tmp_path: Path, failure: Exception) -> None:
    parts = {"recall": part("recall", 0.5), "load": failing(failure), "exact": part("exact", 0.5)}
    assert not run(parts, options, tmp_path)
    values = written(tmp_path)
    assert [row["part"] for row in values["rows"]] == ["recall", "exact"]
    (line,) = values["parts"]["load"]["skipped"]
    assert line.startswith("load failed: ")
    assert "\n" not in line


def test_what_was_found_is_written_before_the_next_part_begins(options: Options, tmp_path: Path) -> None:
    found: list[list[str]] = []

    def reading(_: Options) -> Findings:
        found.append([row["part"] for row in written(tmp_path)["rows"]])
        return Findings(part="load")

    assert run({"recall": part("recall", 0.5), "load": reading}, options, tmp_path)
    assert found == [["recall"]]


def test_parts_that_do_not_run_keep_their_rows_and_their_commit(options: Options, tmp_path: Path) -> None:
    run({"recall": part("recall", 0.5), "load": part("load", 0.5)}, options, tmp_path)
    values = written(tmp_path)
    for each in values["parts"].values():
        each["machine"]["commit"] = "c0ffee"
    (tmp_path / "latest.json").write_text(json.dumps(values), encoding="utf-8")
    run({"load": part("load", 0.75)}, options, tmp_path)
    rows = {row["part"]: row for row in written(tmp_path)["rows"]}
    assert (rows["recall"]["value"], rows["recall"]["commit"]) == (0.5, "c0ffee")
    assert rows["load"]["value"] == 0.75
    assert rows["load"]["commit"] != "c0ffee"


def test_parts_stand_in_the_order_of_the_benches_whenever_they_ran(options: Options, tmp_path: Path) -> None:
    for name in ("many", "recall", "load"):
        run({name: part(name, 0.5)}, options, tmp_path)
    assert list(written(tmp_path)["parts"]) == ["recall", "load", "many"]


@pytest.mark.parametrize(("measure", "line"), [(load.measure, "row 4"), (load.measure_many, "1, 16 and 64 clients")])
def test_without_a_compiler_many_clients_are_skipped_aloud(
    options: Options, monkeypatch: pytest.MonkeyPatch, measure: Callable[[Options], Findings], line: str
) -> None:
    monkeypatch.setenv("PATH", str(options.models_dir))
    monkeypatch.delenv("CC", raising=False)
    found = measure(options)
    assert not found.rows
    assert [skipped.partition(":")[0].partition(", 16 clients over")[0] for skipped in found.skipped] == [line]


def test_every_form_of_render_has_its_row(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render, "_TURNS", 2)
    found = EVERY["render"](options)
    assert {row.row for row in found.rows} == {15}
    assert [row.target for row in found.rows] == ["guide ≤ 1.2"] * len(RenderForm)
    assert found.skipped == (f"row 15, counting exactly: there is no tokenizer.json in {options.models_dir}",)
