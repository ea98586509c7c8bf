from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from bench.machine import Machine
from bench.report import Measured, Report, read_parts
from bench.rows import Findings, Row

MACHINE = Machine(
    time="2026-05-02T10:00:00+00:00",
    system="Linux",
    cpu="a processor",
    cores=2,
    load_average=0.1,
    file_system="ext4",
    commit="c0ffee",
    versions={"python": "3.11"},
)
EARLIER = replace(MACHINE, time="2026-05-01T10:00:00+00:00", commit="decade")
FULL = Findings(
    part="full",
    rows=(Row.at_most(1, "p50 of 还款", 1.2, 1, "ms", note="seen"), Row.at_least(4, "recalls", 1500, 400, "recalls/s")),
    figures=(("store", "of an earlier run"),),
    recall_p50_ms=(("Hummock", 1.25), ("other", 2.5)),
    skipped=("row 13: no model",),
    not_measured=("cold caches",),
)


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
        "row": 1,
        "what": "p50",
        "target": "≤ 1.2",
        "value": 1.0,
        "unit": "ms",
        "reached": True,
        "note": "",
        "part": "early",
        "time": "2026-05-02T10:00:00+00:00",
        "commit": "c0ffee",
    }


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    parts = (FULL, Findings(part="empty"))

    report(*parts).write(tmp_path, "latest")

    assert read_parts(tmp_path / "latest.json") == {
        each.part: Measured(findings=each, machine=MACHINE) for each in parts
    }


def test_where_nothing_was_written_there_are_no_parts(tmp_path: Path) -> None:
    assert read_parts(tmp_path / "latest.json") == {}


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


def test_a_report_without_anything_to_compare_has_no_chart(tmp_path: Path) -> None:
    report(Findings(part="none")).write(tmp_path, "latest")

    assert sorted(path.name for path in tmp_path.iterdir()) == ["latest.json", "latest.md"]


def test_the_bars_of_the_chart_are_of_one_run_and_name_its_commit(tmp_path: Path) -> None:
    first = Measured(findings=FULL, machine=EARLIER)
    peers = Measured(findings=Findings(part="peers", recall_p50_ms=(("Hummock", 1.0), ("peer", 3.0))), machine=MACHINE)

    Report(machine=MACHINE, elapsed_s=1, parts=(first, peers)).write(tmp_path, "full")

    drawn = (tmp_path / "full.svg").read_text(encoding="utf-8")
    assert "a processor, 2 cores, 2026-05-02, commit c0ffee" in drawn
    assert "3.00 × (3 ms)" in drawn
    assert ">other<" not in drawn
