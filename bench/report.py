"""Figures with their targets, the results of the bench's parts, and how all of it is written and read again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from bench.machine import Machine

_JSON_LINE = 600
"""Characters that a line may have; a row of figures has some 500 at most."""
OURS = "Hummock"
"""Names of our own bars begin with it."""
_TITLE = "Recall, p50, as a multiple of our own shortest: vector + words, filter by project and tag,"
_TITLE_GOES_ON = "10 of 50 made different, texts; 100,000 memories unless it says otherwise; one client"
_WIDTH, _LABEL, _VALUE, _ROW, _BAR, _TOP, _FOOT = 860, 300, 130, 26, 16, 58, 30
_OUR_COLOUR, _THEIR_COLOUR = "#2f6f9f", "#b8bec6"
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#24292f}.small{font-size:11px;fill:#57606a}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9198a1}}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """A peer, or the least that the work can take, measured in the same run.

    Attributes:
        name: What it is.
        value: What it takes or does, above 0.
        unit: Unit of the value and the guide.
        guide: What was once asked for on a machine of its time; None where nothing was.
    """

    name: str
    value: float
    unit: str = "ms"
    guide: float | None = None

    def guided(self, sign: str) -> str:
        """The guide after the figures."""
        return "" if self.guide is None else f" (guide {sign} {self.guide:.4g})"

    def __str__(self) -> str:
        return f"{self.name}: {self.value:.4g} {self.unit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure of the table of targets.

    Attributes:
        row: Number of the table's row; one with several figures gives several.
        what: What was measured, with all that a reader needs to measure it too.
        target: For people, for example "≤ 1 ×", or "guide ≤ 5" where nothing of the same run can be the judge.
        reached: Whether `value` keeps the target.
        note: What else was seen; empty when there is nothing to say.
        brief: The figure's name in the short table, in a user's words; empty for one that is not in it.
        ours: What `value` is of, with its unit.
        judge: What it was compared with, with name and unit; empty if the target is absolute.
    """

    row: int
    what: str
    target: str
    value: float
    unit: str
    reached: bool
    note: str = ""
    brief: str = ""
    ours: str = ""
    judge: str = ""

    @classmethod
    def at_most(
        cls, row: int, what: str, limit: float, value: float, unit: str, note: str = "", *, brief: str = ""
    ) -> Row:
        """A figure that is better when smaller."""
        return cls._of(row, what, f"≤ {limit:.4g}", value, unit, value <= limit, note, brief)

    @classmethod
    def at_least(
        cls, row: int, what: str, limit: float, value: float, unit: str, note: str = "", *, brief: str = ""
    ) -> Row:
        """A figure that is better when larger."""
        return cls._of(row, what, f"≥ {limit:.4g}", value, unit, value >= limit, note, brief)

    @classmethod
    def guide(
        cls, row: int, what: str, limit: float, value: float, unit: str, note: str = "", *, brief: str = ""
    ) -> Row:
        """An absolute figure that is better when smaller: it depends on the machine."""
        return cls._of(row, what, f"guide ≤ {limit:.4g}", value, unit, value <= limit, note, brief)

    @classmethod
    def beside(
        cls, row: int, what: str, limit: float, value: float, judge: Judge, note: str = "", *, brief: str = ""
    ) -> Row:
        """A time or size as a multiple of the judge's, which is better when smaller."""
        found = cls.at_most(row, f"{what}: to {judge.name}", limit, value / judge.value, "×", brief=brief)
        return found._judged(value, judge, "≤", note)

    @classmethod
    def share(
        cls, row: int, what: str, limit: float, value: float, judge: Judge, note: str = "", *, brief: str = ""
    ) -> Row:
        """A rate as a multiple of the judge's, which is better when larger."""
        found = cls.at_least(row, f"{what}: to {judge.name}", limit, value / judge.value, "×", brief=brief)
        return found._judged(value, judge, "≥", note)

    def _judged(self, value: float, judge: Judge, sign: str, note: str) -> Row:
        line = f"{value:.4g} {judge.unit}, {judge.name} {judge.value:.4g}{judge.guided(sign)}"
        said = f"{line}; {note}" if note else line
        return replace(self, note=said, ours=f"{value:.4g} {judge.unit}", judge=str(judge))

    @classmethod
    def _of(
        cls, row: int, what: str, target: str, value: float, unit: str, reached: bool, note: str, brief: str
    ) -> Row:
        shown = float(f"{value:.4g}")
        ours = f"{value:.4g} {unit}".strip()
        return cls(
            row=row,
            what=what,
            target=target,
            value=shown,
            unit=unit,
            reached=reached,
            note=note,
            brief=brief,
            ours=ours,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Results of one part of the bench.

    Attributes:
        part: Name of the part, which is its module's.
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
class Measured:
    """Results of one part, with machine, time and commit."""

    findings: Findings
    machine: Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The last findings of each part, which may be those of several runs.

    Attributes:
        machine: Machine of the last run.
        elapsed_s: Duration of the last run.
        parts: In the order of the benches; at most one of a name.
    """

    machine: Machine
    elapsed_s: float
    parts: tuple[Measured, ...]

    def json(self) -> str:
        """The report for programs: rows of all parts together, in the order of the table, and the rest part by part."""
        values = {
            "rows": [
                {**asdict(row), "part": each.findings.part, "time": each.machine.time, "commit": each.machine.commit}
                for row, each in self._rows()
            ],
            "machine": asdict(self.machine),
            "elapsed_s": round(self.elapsed_s, 1),
            "parts": {each.findings.part: _part_values(each) for each in self.parts},
        }
        return json_text(values) + "\n"

    def markdown(self) -> str:
        """The report for people."""
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

    def brief(self) -> str:
        """The short table, for users: figures of the newest commit alone, each with its peer or floor."""
        commit = self.machine.commit
        shown = [row for row, each in self._rows() if row.brief and each.machine.commit == commit]
        lines = ["# Hummock's speed, beside others in the same run", "", *self.machine.lines(), ""]
        lines += ["| | Hummock | beside it, in the same run | ratio | goal |", "|---|---:|---|---:|---|"]
        lines += [_brief_line(row) for row in shown]
        lines += ["", "A ratio is Hummock's figure divided by the other. **Bold**: the goal is missed."]
        if older := [each.findings.part for each in self.parts if each.machine.commit != commit]:
            lines += [f"Not measured at this commit: {', '.join(older)}."]
        lines += ["", "All figures, with what was not measured: [full.md](full.md)."]
        return "\n".join([*lines, "What they mean: [benchmarks](../../docs/benchmarks.md)."]) + "\n"

    def write(self, directory: Path, name: str, full: str = "") -> None:
        """`<name>.json` and `<name>.md` in the directory, and `<name>.svg` when there is something to compare.

        With `full`, `<name>.md` is the short table and `<full>.md` has all.
        """
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"{name}.json").write_text(self.json(), encoding="utf-8")
        (directory / f"{full or name}.md").write_text(self.markdown(), encoding="utf-8")
        if full:
            (directory / f"{name}.md").write_text(self.brief(), encoding="utf-8")
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


def json_text(value: object, indent: str = "") -> str:
    """JSON in which whatever fits into a line stands in one, so that a row of figures is a line."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= _JSON_LINE or not isinstance(value, dict | list | tuple):
        return text
    inner = f"{indent} "
    held = [json_text(each, inner) for each in (value.values() if isinstance(value, dict) else value)]
    if isinstance(value, dict):
        held = [f"{json.dumps(name, ensure_ascii=False)}: {each}" for name, each in zip(value, held, strict=True)]
    return f"{text[0]}\n{inner}" + f",\n{inner}".join(held) + f"\n{indent}{text[-1]}"


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
        rows=tuple(
            Row(**{field: row[field] for field in Row.__slots__ if field in row}) for row in rows if row["part"] == name
        ),
        figures=tuple(values["figures"].items()),
        recall_p50_ms=tuple(values["recall_p50_ms"].items()),
        skipped=tuple(values["skipped"]),
        not_measured=tuple(values["not_measured"]),
    )
    return Measured(findings=findings, machine=Machine(**values["machine"]))


def _brief_line(row: Row) -> str:
    mark = "" if row.reached else "**"
    if row.judge:
        cells = (row.brief, row.ours, row.judge, f"{mark}{row.value:.3g}{mark}", row.target)
    else:
        cells = (row.brief, f"{mark}{row.ours}{mark}", "–", "–", row.target)
    return f"| {' | '.join(cells)} |"


def _line(row: Row, commit: str) -> str:
    reached = "yes" if row.reached else "**no**"
    cells: Sequence[str] = (str(row.row), row.what, row.target, f"{row.value:g}", row.unit, reached, commit)
    return f"| {' | '.join(cells)} |"


def chart(p50_ms: Mapping[str, float], caption: str) -> str:
    """Horizontal bars that begin at 0, the shortest time first; 1 is our own shortest.

    Args:
        p50_ms: By name, above 0; one or more names begin with OURS, and these stand out.
        caption: Source of the figures, for the last line.
    """
    ordered = sorted(p50_ms.items(), key=lambda bar: bar[1])
    unit_ms = min(value for name, value in ordered if name.startswith(OURS))
    longest_ms = ordered[-1][1]
    height = _TOP + _ROW * len(ordered) + _FOOT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}">',
        f"<style>{_STYLE}</style>",
        f'<text x="0" y="18">{escape(_TITLE)}</text>',
        f'<text x="0" y="36">{escape(_TITLE_GOES_ON)}</text>',
    ]
    for place, (name, value_ms) in enumerate(ordered):
        y = _TOP + _ROW * place
        length = (_WIDTH - _LABEL - _VALUE) * value_ms / longest_ms
        colour = _OUR_COLOUR if name.startswith(OURS) else _THEIR_COLOUR
        lines += [
            f'<text x="{_LABEL - 8}" y="{y + 13}" text-anchor="end">{escape(name)}</text>',
            f'<rect x="{_LABEL}" y="{y}" width="{length:.1f}" height="{_BAR}" fill="{colour}"/>',
            f'<text x="{_LABEL + length + 6:.1f}" y="{y + 13}">{value_ms / unit_ms:.2f} × ({value_ms:.3g} ms)</text>',
        ]
    lines += [f'<text class="small" x="0" y="{height - 10}">{escape(caption)}</text>', "</svg>"]
    return "\n".join(lines) + "\n"
