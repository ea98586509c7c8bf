from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.machine import Machine
from bench.rows import Findings, Report, Row


def report(*parts: Findings) -> Report:
    return Report(machine=Machine.here(Path(__file__).parent), elapsed_s=1.23, parts=parts)


@pytest.mark.parametrize(("value", "reached"), [(1.1, True), (1.2, True), (1.3, False)])
def test_a_figure_that_must_be_small_is_reached_up_to_its_limit(value: float, reached: bool) -> None:
    row = Row.at_most(1, "p50", 1.2, value, "ms")

    assert (row.target, row.value, row.reached) == ("≤ 1.2", value, reached)


@pytest.mark.parametrize(("value", "reached"), [(1499.0, False), (1500.0, True), (1501.0, True)])
def test_a_figure_that_must_be_large_is_reached_from_its_limit(value: float, reached: bool) -> None:
    row = Row.at_least(4, "recalls", 1500, value, "recalls/s")

    assert (row.target, row.value, row.reached) == ("≥ 1500", value, reached)


def test_what_is_shown_is_rounded_and_what_is_compared_is_not() -> None:
    row = Row.at_most(1, "p50", 1.2, 1.20001, "ms")

    assert row.value == 1.2
    assert not row.reached


def test_the_rows_of_all_parts_stand_in_the_order_of_the_table() -> None:
    late = Findings(part="late", rows=(Row.at_most(12, "start", 1, 0.5, "s"),), skipped=("row 13: no model",))
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
    }
    assert written["skipped"] == ["row 13: no model"]
    assert {"time", "cpu", "cores", "load_average", "commit", "versions"} <= set(written["machine"])


def test_the_table_says_what_was_skipped_and_what_was_not_measured() -> None:
    table = report(Findings(part="one", skipped=("row 13: no model",), not_measured=("cold caches",))).markdown()

    assert "- row 13: no model" in table
    assert "- cold caches" in table


def test_a_report_without_anything_to_compare_has_no_chart(tmp_path: Path) -> None:
    report(Findings(part="none")).write(tmp_path, "latest")

    assert sorted(path.name for path in tmp_path.iterdir()) == ["latest.json", "latest.md"]


def test_the_chart_is_an_svg_with_a_bar_for_each_that_is_compared(tmp_path: Path) -> None:
    bars = (("Hummock, over gRPC", 1.0), ("other <1.0>", 100.0), ("third", 10.0))

    report(Findings(part="peers", recall_p50_ms=bars)).write(tmp_path, "latest")

    drawn = ElementTree.parse(tmp_path / "latest.svg").getroot()  # noqa: S314 - just written
    widths = [float(bar.attrib["width"]) for bar in drawn.iter("{http://www.w3.org/2000/svg}rect")]
    # A power of ten is always equally long, and the shortest can be seen.
    assert widths[0] > 0
    assert widths[1] - widths[0] == pytest.approx(widths[2] - widths[1], abs=0.2)
