from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import machine
from bench.machine import Machine
from bench.report import Findings, Judge, Measured, Report, Row, chart, json_text, read_parts

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    ("row", "target", "value", "reached"),
    [
        *((Row.at_most(1, "p50", 1.2, value, "ms"), "≤ 1.2", value, value <= 1.2) for value in (1.1, 1.2, 1.3)),
        *(
            (Row.at_least(4, "recalls", 1500, each, ""), "≥ 1500", each, each >= 1500)
            for each in (1499.0, 1500.0, 1501.0)
        ),
        # What is shown is rounded, and what is compared is not.
        (Row.at_most(1, "p50", 1.2, 1.20001, "ms"), "≤ 1.2", 1.2, False),
    ],
)
def test_a_figure_is_reached_at_its_limit(row: Row, target: str, value: float, reached: bool) -> None:
    assert (row.target, row.value, row.reached) == (target, value, reached)


MACHINE = Machine(
    time="2026-05-02T10:00:00+00:00", system="Linux", cpu="a processor", cores=2, load_average=0.1, file_system="ext4",
    commit="c0ffee", versions={"python": "3.11"},
)  # fmt: skip
EARLIER = replace(MACHINE, time="2026-05-01T10:00:00+00:00", commit="decade")
FULL = Findings(
    part="full",
    rows=(Row.at_most(1, "p50 of 还款", 1.2, 1, "ms", note="seen"), Row.at_least(4, "recalls", 1500, 400, "recalls/s")),
    figures=(("store", "of an earlier run"),),
    recall_p50_ms=(("Hummock", 1.25), ("other", 2.5)),
    skipped=("row 13: no model",),
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


def report(*parts: Findings, machine: Machine = MACHINE) -> Report:
    return Report(
        machine=MACHINE, elapsed_s=1.23, parts=tuple(Measured(findings=each, machine=machine) for each in parts)
    )


def test_the_rows_of_all_parts_stand_in_the_order_of_the_table() -> None:
    late = Findings(part="late", rows=(Row.at_most(12, "start", 1, 0.5, "s"),))
    early = Findings(part="early", rows=(Row.at_most(1, "p50", 1.2, 1, "ms"), Row.at_most(1, "p99", 4, 5, "ms")))
    written = json.loads(report(late, early).json())
    assert [row["row"] for row in written["rows"]] == [1, 1, 12]
    assert written["rows"][0] == {
        "row": 1, "what": "p50", "target": "≤ 1.2", "value": 1.0, "unit": "ms", "reached": True, "note": "",
        "brief": "", "ours": "1 ms", "judge": "", "part": "early",
        "time": "2026-05-02T10:00:00+00:00", "commit": "c0ffee",
    }  # fmt: skip


def test_what_was_written_is_read_again_and_has_no_chart_without_anything_to_compare(tmp_path: Path) -> None:
    assert read_parts(tmp_path / "latest.json") == {}
    parts = (FULL, Findings(part="empty"))
    report(*parts).write(tmp_path, "latest")
    assert read_parts(tmp_path / "latest.json") == {
        each.part: Measured(findings=each, machine=MACHINE) for each in parts
    }
    report(Findings(part="none")).write(tmp_path / "alone", "latest")
    assert sorted(path.name for path in (tmp_path / "alone").iterdir()) == ["latest.json", "latest.md"]


def test_the_table_says_what_was_skipped_and_what_was_not_measured() -> None:
    table = report(Findings(part="one", skipped=("row 13: no model",), not_measured=("cold caches",))).markdown()
    assert "- row 13: no model" in table
    assert "- cold caches" in table


def test_the_table_says_which_parts_are_of_which_run() -> None:
    old = report(FULL, machine=EARLIER).parts
    new = report(Findings(part="one"), Findings(part="two")).parts
    table = Report(machine=MACHINE, elapsed_s=1, parts=old + new).markdown()
    heads = [line for line in table.splitlines() if line.endswith(":") or "commit" in line]
    assert heads[:4] == [
        "one, two:",
        "- 2026-05-02T10:00:00+00:00, commit c0ffee",
        "full:",
        "- 2026-05-01T10:00:00+00:00, commit decade",
    ]
    assert "| 1 | p50 of 还款 | ≤ 1.2 | 1 | ms | yes | decade |" in table


def test_the_short_table_holds_what_a_user_compares_all_of_one_commit() -> None:
    peer = Judge(name="a peer", value=4.0)
    rows = (
        Row.beside(1, "recall", 0.3, 1.5, peer, brief="Recall"),
        Row.beside(1, "recall, p99", 0.3, 1.5, peer),
        Row.guide(15, "render", 1.2, 1.0, "ms", brief="Render"),
        Row.guide(17, "turn", 1.2, 2.0, "ms", brief="Turn"),
    )
    older = Findings(part="load", rows=(Row.guide(4, "load", 1, 1, "ms", brief="Load"),))
    parts = (*report(Findings(part="recall", rows=rows)).parts, *report(older, machine=EARLIER).parts)
    table = Report(machine=MACHINE, elapsed_s=1, parts=parts).brief()
    assert [line for line in table.splitlines() if line.startswith("| ")] == [
        "| | Hummock | beside it, in the same run | ratio | goal |",
        "| Recall | 1.5 ms | a peer: 4 ms | **0.375** | ≤ 0.3 |",
        "| Render | 1 ms | – | – | guide ≤ 1.2 |",
        "| Turn | **2 ms** | – | – | guide ≤ 1.2 |",
    ]
    assert "Not measured at this commit: load." in table


def test_the_whole_table_stands_beside_the_short_one(tmp_path: Path) -> None:
    report(FULL).write(tmp_path, "latest", full="full")
    assert (tmp_path / "latest.md").read_text(encoding="utf-8") == report(FULL).brief()
    assert (tmp_path / "full.md").read_text(encoding="utf-8") == report(FULL).markdown()


def test_the_bars_of_the_chart_are_of_one_run_and_name_its_commit(tmp_path: Path) -> None:
    first = Measured(findings=FULL, machine=EARLIER)
    peers = Measured(findings=Findings(part="peers", recall_p50_ms=(("Hummock", 1.0), ("peer", 3.0))), machine=MACHINE)
    Report(machine=MACHINE, elapsed_s=1, parts=(first, peers)).write(tmp_path, "full")
    drawn = (tmp_path / "full.svg").read_text(encoding="utf-8")
    assert "a processor, 2 cores, 2026-05-02, commit c0ffee" in drawn
    assert "3.00 × (3 ms)" in drawn
    assert ">other<" not in drawn


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
