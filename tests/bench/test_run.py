"""All parts, one after the other."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from bench import __main__ as bench_main
from bench import load, overload, render
from bench.__main__ import EVERY, LONG, QUICK, run_whole
from bench.command import Measure, Options, run_parts
from bench.goals import GOALS, Headline
from bench.machine import Machine
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


MACHINE = Machine(
    time="2026-05-02T10:00:00+00:00", system="Linux", cpu="a processor", cores=2, load_average=0.1, file_system="ext4",
    commit="c0ffee", versions={"python": "3.11"},
)  # fmt: skip


def part(name: str, value: float) -> Measure:
    return lambda _: Findings(
        part=name, headlines=(Headline.of("render", value),), rows=(Row.at_most(f"p50 of {name}", 1.0, value, "ms"),)
    )


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
def test_a_part_that_fails_takes_no_other_with_it(options: Options, failure: Exception) -> None:
    run = run_parts(
        {"recall": part("recall", 0.5), "load": failing(failure), "exact": part("exact", 0.5)}, options, MACHINE
    )
    assert [(each.part, len(each.rows), each.failed) for each in run.parts] == [
        ("recall", 1, False), ("load", 0, True), ("exact", 1, False),
    ]  # fmt: skip
    (line,) = run.parts[1].skipped
    assert line.startswith("load failed: ")
    assert "\n" not in line


def test_a_whole_run_takes_the_place_of_the_one_before_it(options: Options, tmp_path: Path) -> None:
    assert run_whole({"latest": {"recall": part("recall", 0.5), "load": part("load", 0.5)}}, options, tmp_path)
    assert not run_whole({"latest": {"load": failing(OSError("no"))}}, options, tmp_path)
    assert [each["part"] for each in written(tmp_path)["parts"]] == ["load"]
    assert written(tmp_path)["rows"] == []
    assert "load failed: no" in (tmp_path / "latest.md").read_text(encoding="utf-8")


def test_a_run_that_is_interrupted_changes_nothing(options: Options, tmp_path: Path) -> None:
    def interrupted(_: Options) -> Findings:
        raise KeyboardInterrupt

    run_whole({"latest": {"recall": part("recall", 0.5)}}, options, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*.*")}
    with pytest.raises(KeyboardInterrupt):
        run_whole({"latest": {"recall": part("recall", 0.75), "load": interrupted}}, options, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.*")} == before
    assert sorted(before) == ["full.md", "latest.json", "latest.md"]


def test_the_long_parts_keep_their_section_when_the_short_run_is_renewed(options: Options, tmp_path: Path) -> None:
    run_whole({"latest": {"recall": part("recall", 0.5)}, "full": {"exact": part("exact", 0.5)}}, options, tmp_path)
    run_whole({"latest": {"recall": part("recall", 0.75)}}, options, tmp_path)
    page = (tmp_path / "full.md").read_text(encoding="utf-8")
    first, second = page.split("\n## ")[1:]
    assert first.startswith("`make bench`\n")
    assert "| p50 of recall | ≤ 1 | 0.75 |" in first
    assert second.startswith("The rest of `make bench-full`\n")
    assert "| p50 of exact | ≤ 1 | 0.5 |" in second
    assert [section.count(", commit ") for section in (first, second)] == [1, 1]


def test_parts_are_printed_and_written_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench_main, "EVERY", {"render": part("render", 0.5)})
    results = tmp_path / "results"
    command = ["bench", "--parts", "render", "--dir", str(tmp_path / "stores"), "--results", str(results)]
    monkeypatch.setattr("sys.argv", command)
    with pytest.raises(SystemExit) as ended:
        bench_main.main()
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert f"| {GOALS['render'].what} | 0.5 ms | – | – | ≤ 1.2 ms |" in printed
    assert "| p50 of render | ≤ 1 | 0.5 | ms | yes |" in printed
    assert not results.exists()


def test_every_row_of_the_short_table_is_measured_by_the_short_run() -> None:
    assert {goal.part for goal in GOALS.values()} == set(QUICK)
    assert not set(QUICK) & set(LONG)


@pytest.mark.parametrize(("measure", "line"), [(load.measure, "16 clients over gRPC"), (overload.measure, "overload")])
def test_without_a_compiler_many_clients_are_skipped_aloud(
    options: Options, monkeypatch: pytest.MonkeyPatch, measure: Callable[[Options], Findings], line: str
) -> None:
    monkeypatch.setenv("PATH", str(options.models_dir))
    monkeypatch.delenv("CC", raising=False)
    found = measure(options)
    assert not found.headlines
    assert [skipped.partition(":")[0] for skipped in found.skipped] == [line]


def test_every_form_of_render_has_its_row(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render, "_TURNS", 2)
    found = EVERY["render"](options)
    assert [each.name for each in found.headlines] == ["render"]
    assert [row.target for row in found.rows] == ["guide ≤ 1.2"] * len(RenderForm)
    assert found.skipped == (f"counting exactly: there is no tokenizer.json in {options.models_dir}",)
