from __future__ import annotations

import json
import subprocess
from dataclasses import asdict
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import machine
from bench.goals import GOALS, Headline, Judge
from bench.machine import Machine
from bench.peers.chart import chart
from bench.report import Findings, Row, Run, json_text, read_run

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    ("row", "target", "value", "reached"),
    [
        *((Row.at_most("p50", 1.2, value, "ms"), "≤ 1.2", value, value <= 1.2) for value in (1.1, 1.2, 1.3)),
        *((Row.at_least("recalls", 1500, each, ""), "≥ 1500", each, each >= 1500) for each in (1499.0, 1500.0, 1501.0)),
        # What is shown is rounded, and what is compared is not.
        (Row.at_most("p50", 1.2, 1.20001, "ms"), "≤ 1.2", 1.2, False),
    ],
)
def test_a_figure_is_reached_at_its_limit(row: Row, target: str, value: float, reached: bool) -> None:
    assert (row.target, row.value, row.reached) == (target, value, reached)


MACHINE = Machine(
    time="2026-05-02T10:00:00+00:00", system="Linux", cpu="a processor", cores=2, load_average=0.1, file_system="ext4",
    commit="c0ffee", versions={"python": "3.11"},
)  # fmt: skip
DETAILS = Findings(
    part="load",
    rows=(Row.at_least("recalls", 1500, 400, "recalls/s"), Row.at_most("p50 of 还款", 1.2, 1, "ms", note="seen")),
    figures=(("store", "of an earlier run"),),
    skipped=("readers need a second core",),
    not_measured=("cold caches",),
)


JSON = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda held: st.lists(held) | st.dictionaries(st.text(), held) | st.lists(held, min_size=200, max_size=210),
)


@given(JSON)
def test_json_in_lines_holds_the_same_values(value: object) -> None:
    assert json.loads(json_text(value)) == value


def test_a_row_that_fits_into_a_line_stands_in_one() -> None:
    rows = [{"row": number, "what": "还款" * 100} for number in range(3)]
    assert [json.loads(line.strip(" ,")) for line in json_text(rows).splitlines()[1:-1]] == rows


def run_of(*parts: Findings) -> Run:
    return Run(machine=MACHINE, elapsed_s=61.23, parts=parts)


PEER, REPLY = Judge(name="a peer 1.2", value=4.0), Judge(name="a bare reply", value=2.5)


@pytest.mark.parametrize(
    ("headline", "cells", "reached"),
    [
        (Headline.of("recall", 3.0, PEER), ("3 ms", "a peer 1.2: 4 ms", "0.75", "≤ 0.75 ×"), True),
        (Headline.of("recall", 3.01, PEER), ("**3.01 ms**", "a peer 1.2: 4 ms", "0.75", "≤ 0.75 ×"), False),
        (Headline.of("wire", 3.0, REPLY), ("3 ms", "a bare reply: 2.5 ms", "1.20 (+0.50 ms)", "≤ 0.7 ms more"), True),
        (
            Headline.of("wire", 3.3, REPLY),
            ("**3.3 ms**", "a bare reply: 2.5 ms", "1.32 (+0.80 ms)", "≤ 0.7 ms more"),
            False,
        ),
        (Headline.of("learn", 1.9, REPLY), ("1.9 ms", "a bare reply: 2.5 ms", "0.76", "≤ 2 ms"), True),
        (Headline.of("render", 1.3), ("**1.3 ms**", "–", "–", "≤ 1.2 ms"), False),
        (Headline.of("clients", 1300.4), ("1,300 calls/s", "–", "–", "≥ 1,300 calls/s"), True),
        (Headline.of("clients", 504), ("**504 calls/s**", "–", "–", "≥ 1,300 calls/s"), False),
        (Headline.of("cached", 0.51234), ("0.512 ms", "–", "–", "–"), None),
    ],
)
def test_a_row_shows_both_figures_their_ratio_and_the_goal(
    headline: Headline, cells: tuple[str, ...], reached: bool | None
) -> None:
    assert headline.cells() == (GOALS[headline.name].what, *cells)
    assert headline.reached is reached


def test_the_short_table_has_at_most_20_rows() -> None:
    assert len(GOALS) <= 20
    assert len({goal.what for goal in GOALS.values()}) == len(GOALS)


RECALL = Findings(part="recall", headlines=(Headline.of("wire", 3.0, REPLY),), skipped=("a peer is not installed",))
RENDER = Findings(part="render", headlines=(Headline.of("render", 1.0),))


def test_the_short_table_is_of_one_run_with_one_head_and_names_what_it_lacks() -> None:
    lines = run_of(RENDER, RECALL, DETAILS).short().splitlines()
    assert [line for line in lines if line.startswith("- ")] == [*MACHINE.lines(), "- the run took 61 s"]
    assert [line for line in lines if line.startswith("|")] == [
        "| | Hummock | beside it, in the same run | ratio | goal |",
        "|---|---:|---|---:|---|",
        f"| {GOALS['wire'].what} | 3 ms | a bare reply: 2.5 ms | 1.20 (+0.50 ms) | ≤ 0.7 ms more |",
        "| Render of 50 Chinese memories into 4,000 tokens, p50 | 1 ms | – | – | ≤ 1.2 ms |",
    ]
    missing = lines[-1]
    others = "; ".join(GOALS[name].what for name in ("recall in process", "recall", "cached"))
    assert missing.startswith(f"Not taken in this run: {others} (a peer is not installed); ")
    assert "a process for each core (readers need a second core)" in missing
    assert "LearnStream with vectors (its part did not run)" in missing
    assert GOALS["wire"].what not in missing
    assert GOALS["render"].what not in missing


def test_a_run_that_lacks_no_row_names_none() -> None:
    every = Findings(part="every", headlines=tuple(Headline.of(name, 1.0, PEER) for name in sorted(GOALS)))
    table = run_of(every).short()
    assert "Not taken" not in table
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == [goal.what for goal in GOALS.values()]


def test_json_has_the_rows_of_the_short_table_and_all_that_it_leaves_out() -> None:
    values = json.loads(run_of(RENDER, RECALL, DETAILS).json())
    assert values["rows"] == [asdict(each) for each in (*RECALL.headlines, *RENDER.headlines)]
    assert values["machine"]["commit"] == "c0ffee"
    assert values["parts"][2]["rows"][1] == {
        "what": "p50 of 还款", "target": "≤ 1.2", "value": 1.0, "unit": "ms", "reached": True, "note": "seen",
    }  # fmt: skip


def test_a_run_is_read_again_as_its_page_was(tmp_path: Path) -> None:
    path = tmp_path / "latest.json"
    assert read_run(path) is None
    run = run_of(RECALL, DETAILS)
    path.write_text(run.json(), encoding="utf-8")
    read = read_run(path)
    assert read is not None
    assert read.details("all") == run.details("all")


def test_a_section_has_a_head_of_its_own_and_every_other_figure() -> None:
    assert run_of(RECALL, DETAILS).details("`make bench`").splitlines() == [
        "## `make bench`",
        "",
        *MACHINE.lines(),
        "- the run took 61 s",
        "",
        "### recall",
        "",
        "- skipped: a peer is not installed",
        "",
        "### load",
        "",
        "| | target | value | unit | reached |",
        "|---|---:|---:|---|---|",
        "| recalls | ≥ 1500 | 400 | recalls/s | **no** |",
        "| p50 of 还款 | ≤ 1.2 | 1 | ms | yes |",
        "",
        "| | |",
        "|---|---:|",
        "| store | of an earlier run |",
        "",
        "- p50 of 还款: seen",
        "",
        "- skipped: readers need a second core",
        "",
        "Not measured:",
        "",
        "- cold caches",
    ]


SVG = "{http://www.w3.org/2000/svg}"
BARS = st.dictionaries(st.text("还aZ<&> ", min_size=1), st.floats(min_value=0.01, max_value=1000), max_size=8)


def drawn(p50_ms: dict[str, float]) -> tuple[list[float], list[str]]:
    """Lengths of the bars and all texts."""
    root = ElementTree.fromstring(chart(p50_ms, "a machine"))  # noqa: S314 - just drawn
    return [float(bar.attrib["width"]) for bar in root.iter(f"{SVG}rect")], [
        text.text or "" for text in root.iter(f"{SVG}text")
    ]


@given(BARS, st.floats(min_value=0.01, max_value=1000))
def test_lengths_are_as_the_times_are(others: dict[str, float], ours_ms: float) -> None:
    times_ms = {**others, "Hummock, in process": ours_ms}
    lengths, _ = drawn(times_ms)
    longest = max(times_ms.values())
    assert lengths == pytest.approx([max(lengths) * each / longest for each in sorted(times_ms.values())], abs=0.1)


def test_times_are_told_as_multiples_of_our_own_shortest() -> None:
    _, texts = drawn({"Hummock, over gRPC": 2.5, "Hummock, in process": 1.25, "peer": 1.0, "slow": 100.0})
    assert [text for text in texts if "×" in text] == [
        "0.80 × (1 ms)", "1.00 × (1.25 ms)", "2.00 × (2.5 ms)", "80.00 × (100 ms)",
    ]  # fmt: skip


def test_the_last_line_says_where_the_figures_come_from() -> None:
    assert drawn({"Hummock": 1.0})[1][-1] == "a machine"


IDENTITY = ["-c", "user.name=test", "-c", "user.email=test@example.org"]


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), *IDENTITY, *arguments], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("bench/machine.py", "bench/results/eval.json", "service.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("first\n", encoding="utf-8")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "all")
    monkeypatch.setattr(machine, "__file__", str(tmp_path / "bench/machine.py"))
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "dirty"), [("service.py", True), ("bench/machine.py", True), ("bench/results/eval.json", False)]
)
def test_code_that_differs_makes_a_commit_dirty_and_results_do_not(repository: Path, changed: str, dirty: bool) -> None:
    assert len(Machine.here(repository).commit) == 12
    (repository / changed).write_text("second\n", encoding="utf-8")
    assert Machine.here(repository).commit.endswith("-dirty") is dirty


def test_outside_a_repository_the_commit_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "__file__", str(tmp_path / "machine.py"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert Machine.here(tmp_path).commit == "unknown"
