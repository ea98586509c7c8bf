"""A figure beside its target, and how a run's figures are written down."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.chart import chart
from bench.machine import Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure of the table of targets.

    Attributes:
        row: Number of the table's row; one with several figures gives several.
        what: What was measured, with all that a reader needs to measure it too.
        target: For people, for example "≤ 1.2".
        reached: Whether `value` keeps the target.
        note: What else was seen; empty when there is nothing to say.
    """

    row: int
    what: str
    target: str
    value: float
    unit: str
    reached: bool
    note: str = ""

    @classmethod
    def at_most(cls, row: int, what: str, limit: float, value: float, unit: str, note: str = "") -> Row:
        """A figure that is better when smaller."""
        return cls._of(row, what, "≤", limit, value, unit, value <= limit, note)

    @classmethod
    def at_least(cls, row: int, what: str, limit: float, value: float, unit: str, note: str = "") -> Row:
        """A figure that is better when larger."""
        return cls._of(row, what, "≥", limit, value, unit, value >= limit, note)

    @classmethod
    def _of(
        cls, row: int, what: str, sign: str, limit: float, value: float, unit: str, reached: bool, note: str
    ) -> Row:
        shown = float(f"{value:.4g}")
        target = f"{sign} {limit:.4g}"
        return cls(row=row, what=what, target=target, value=shown, unit=unit, reached=reached, note=note)


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What one part of the bench found out.

    Attributes:
        part: Its name.
        rows: Figures that have a target.
        figures: Others, for people: name and value.
        recall_p50_ms: Bars of the chart: whose recall it is, and its p50.
        skipped: What was to be measured and was not, and why.
        not_measured: What these figures do not say.
    """

    part: str
    rows: tuple[Row, ...] = ()
    figures: tuple[tuple[str, str], ...] = ()
    recall_p50_ms: tuple[tuple[str, float], ...] = ()
    skipped: tuple[str, ...] = ()
    not_measured: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A whole run."""

    machine: Machine
    elapsed_s: float
    parts: tuple[Findings, ...]

    def json(self) -> str:
        """For programs: the rows of all parts together, in the order of the table."""
        values = {
            "rows": [asdict(row) for row in self._rows()],
            "machine": asdict(self.machine),
            "elapsed_s": round(self.elapsed_s, 1),
            "figures": {part.part: dict(part.figures) for part in self.parts if part.figures},
            "recall_p50_ms": self._bars(),
            "skipped": [line for part in self.parts for line in part.skipped],
            "not_measured": self._not_measured(),
        }
        return json.dumps(values, ensure_ascii=False, indent=2) + "\n"

    def markdown(self) -> str:
        """For people."""
        lines = ["## What was measured", "", *self.machine.lines(), f"- {self.elapsed_s:.0f} s in all", ""]
        lines += ["| row | what | target | value | unit | reached |", "|---:|---|---:|---:|---|---|"]
        lines += [_line(row) for row in self._rows()]
        if notes := [f"- row {row.row}, {row.what}: {row.note}" for row in self._rows() if row.note]:
            lines += ["", "Notes:", *notes]
        for part in self.parts:
            if part.figures:
                lines += ["", f"### {part.part}", "", "| | |", "|---|---:|"]
                lines += [f"| {name} | {value} |" for name, value in part.figures]
        if skipped := [f"- {line}" for part in self.parts for line in part.skipped]:
            lines += ["", "Skipped:", *skipped]
        return "\n".join([*lines, "", "Not measured:", *(f"- {line}" for line in self._not_measured())]) + "\n"

    def write(self, directory: Path, name: str) -> None:
        """`<name>.json` and `<name>.md` in the directory, and `<name>.svg` when there is something to compare."""
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"{name}.json").write_text(self.json(), encoding="utf-8")
        (directory / f"{name}.md").write_text(self.markdown(), encoding="utf-8")
        if bars := self._bars():
            (directory / f"{name}.svg").write_text(chart(bars, self._caption()), encoding="utf-8")

    def _rows(self) -> list[Row]:
        return sorted((row for part in self.parts for row in part.rows), key=lambda row: row.row)

    def _bars(self) -> dict[str, float]:
        return {label: round(p50_ms, 4) for part in self.parts for label, p50_ms in part.recall_p50_ms}

    def _caption(self) -> str:
        """Where the bars come from: a figure without that says nothing."""
        machine = self.machine
        return f"{machine.cpu}, {machine.cores} cores, {machine.time[:10]}, commit {machine.commit}"

    def _not_measured(self) -> list[str]:
        return list(dict.fromkeys(line for part in self.parts for line in part.not_measured))


def _line(row: Row) -> str:
    cells: Sequence[str] = (
        str(row.row),
        row.what,
        row.target,
        f"{row.value:g}",
        row.unit,
        "yes" if row.reached else "**no**",
    )
    return f"| {' | '.join(cells)} |"
