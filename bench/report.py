"""What is known of every part of the bench, and how it is written down and read again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.chart import chart
from bench.machine import Machine
from bench.rows import Findings, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one part found out, and where, when and at which commit."""

    findings: Findings
    machine: Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The last findings of each part, which may be those of several runs.

    Attributes:
        machine: Of the last run.
        elapsed_s: That the last run took.
        parts: In the order of the benches; at most one of a name.
    """

    machine: Machine
    elapsed_s: float
    parts: tuple[Measured, ...]

    def json(self) -> str:
        """For programs: the rows of all parts together, in the order of the table, and the rest part by part."""
        values = {
            "rows": [
                {**asdict(row), "part": each.findings.part, "time": each.machine.time, "commit": each.machine.commit}
                for row, each in self._rows()
            ],
            "machine": asdict(self.machine),
            "elapsed_s": round(self.elapsed_s, 1),
            "parts": {each.findings.part: _part_values(each) for each in self.parts},
        }
        return json.dumps(values, ensure_ascii=False, indent=2) + "\n"

    def markdown(self) -> str:
        """For people."""
        lines = ["## What was measured", ""]
        for machine, names in self._runs():
            lines += [f"{', '.join(names)}:", "", *machine.lines(), ""]
        lines += [f"The last run took {self.elapsed_s:.0f} s.", ""]
        lines += ["| row | what | target | value | unit | reached | commit |", "|---:|---|---:|---:|---|---|---|"]
        lines += [_line(row, each.machine.commit) for row, each in self._rows()]
        if notes := [f"- row {row.row}, {row.what}: {row.note}" for row, _ in self._rows() if row.note]:
            lines += ["", "Notes:", *notes]
        findings = [each.findings for each in self.parts]
        for part in findings:
            if part.figures:
                lines += ["", f"### {part.part}", "", "| | |", "|---|---:|"]
                lines += [f"| {name} | {value} |" for name, value in part.figures]
        if skipped := [f"- {line}" for part in findings for line in part.skipped]:
            lines += ["", "Skipped:", *skipped]
        # Several parts say the same.
        not_measured = dict.fromkeys(f"- {line}" for part in findings for line in part.not_measured)
        return "\n".join([*lines, "", "Not measured:", *not_measured]) + "\n"

    def write(self, directory: Path, name: str) -> None:
        """`<name>.json` and `<name>.md` in the directory, and `<name>.svg` when there is something to compare."""
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"{name}.json").write_text(self.json(), encoding="utf-8")
        (directory / f"{name}.md").write_text(self.markdown(), encoding="utf-8")
        # Bars of two runs say nothing of each other, so one part gives all of them: the last, which has most peers.
        if drawn := next((each for each in reversed(self.parts) if each.findings.recall_p50_ms), None):
            drawing = chart(dict(drawn.findings.recall_p50_ms), drawn.machine.caption())
            (directory / f"{name}.svg").write_text(drawing, encoding="utf-8")

    def _rows(self) -> list[tuple[Row, Measured]]:
        rows = [(row, each) for each in self.parts for row in each.findings.rows]
        return sorted(rows, key=lambda found: found[0].row)

    def _runs(self) -> Iterator[tuple[Machine, list[str]]]:
        """Each machine and moment, the last run first, with the names of its parts."""
        machines = [self.machine]
        machines += [each.machine for each in self.parts if each.machine != self.machine]
        for place, machine in enumerate(machines):
            if machine not in machines[:place]:
                yield machine, [each.findings.part for each in self.parts if each.machine == machine]


def read_parts(path: Path) -> dict[str, Measured]:
    """The parts of a report's JSON by their names; none where there is no such file."""
    if not path.exists():
        return {}
    values = json.loads(path.read_text(encoding="utf-8"))
    return {name: _measured(name, each, values["rows"]) for name, each in values["parts"].items()}


def _part_values(measured: Measured) -> dict[str, Any]:
    findings = measured.findings
    return {
        "machine": asdict(measured.machine),
        "figures": dict(findings.figures),
        "recall_p50_ms": {label: round(p50_ms, 4) for label, p50_ms in findings.recall_p50_ms},
        "skipped": findings.skipped,
        "not_measured": findings.not_measured,
    }


def _measured(name: str, values: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Measured:
    findings = Findings(
        part=name,
        rows=tuple(Row(**{field: row[field] for field in Row.__slots__}) for row in rows if row["part"] == name),
        figures=tuple(values["figures"].items()),
        recall_p50_ms=tuple(values["recall_p50_ms"].items()),
        skipped=tuple(values["skipped"]),
        not_measured=tuple(values["not_measured"]),
    )
    return Measured(findings=findings, machine=Machine(**values["machine"]))


def _line(row: Row, commit: str) -> str:
    reached = "yes" if row.reached else "**no**"
    cells: Sequence[str] = (str(row.row), row.what, row.target, f"{row.value:g}", row.unit, reached, commit)
    return f"| {' | '.join(cells)} |"
