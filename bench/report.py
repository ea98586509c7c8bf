"""Results of the bench's parts and of a run, as a short table, as a page with every figure, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import msgspec

from bench.goals import GOALS, Headline, Judge
from bench.machine import Machine

_JSON_LINE = 600
"""Characters that a line may have; a row of figures has some 500 at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A figure with a target.

    Attributes:
        what: What was measured, with all that a reader needs to measure it too.
        target: For people, for example "≤ 1", or "guide ≤ 5" where nothing of the same run can be the judge.
        reached: Whether `value` keeps the target.
        note: What else was seen; empty when there is nothing to say.
    """

    what: str
    target: str
    value: float
    unit: str
    reached: bool
    note: str = ""

    @classmethod
    def at_most(cls, what: str, limit: float, value: float, unit: str, note: str = "") -> Row:
        """A figure that is better when smaller."""
        return cls._of(what, f"≤ {limit:.4g}", value, unit, value <= limit, note)

    @classmethod
    def at_least(cls, what: str, limit: float, value: float, unit: str, note: str = "") -> Row:
        """A figure that is better when larger."""
        return cls._of(what, f"≥ {limit:.4g}", value, unit, value >= limit, note)

    @classmethod
    def guide(cls, what: str, limit: float, value: float, unit: str, note: str = "") -> Row:
        """An absolute figure that is better when smaller: it depends on the machine."""
        return cls._of(what, f"guide ≤ {limit:.4g}", value, unit, value <= limit, note)

    @classmethod
    def beside(cls, what: str, limit: float, value: float, judge: Judge, note: str = "") -> Row:
        """A time or size as a multiple of the judge's, which is better when smaller."""
        said = _beside(value, judge, note)
        return cls.at_most(f"{what}: to {judge.name}", limit, value / judge.value, "×", said)

    @classmethod
    def share(cls, what: str, limit: float, value: float, judge: Judge, note: str = "") -> Row:
        """A rate as a multiple of the judge's, which is better when larger."""
        said = _beside(value, judge, note)
        return cls.at_least(f"{what}: to {judge.name}", limit, value / judge.value, "×", said)

    @classmethod
    def _of(cls, what: str, target: str, value: float, unit: str, reached: bool, note: str) -> Row:
        shown = float(f"{value:.4g}")
        return cls(what=what, target=target, value=shown, unit=unit, reached=reached, note=note)

    def line(self) -> str:
        """The row for people."""
        reached = "yes" if self.reached else "**no**"
        return f"| {self.what} | {self.target} | {self.value:g} | {self.unit} | {reached} |"


def _beside(value: float, judge: Judge, note: str) -> str:
    line = f"{value:.4g} {judge.unit}, {judge.name} {judge.value:.4g}"
    return f"{line}; {note}" if note else line


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Results of one part of the bench.

    Attributes:
        part: Name of the part.
        headlines: Rows of the short table.
        rows: Other figures that have a target.
        figures: Others, for people: name and value.
        skipped: What was to be measured and was not, and why.
        not_measured: What these figures do not say.
        failed: Whether the part ended with an error, which `skipped` tells.
    """

    part: str
    headlines: tuple[Headline, ...] = ()
    rows: tuple[Row, ...] = ()
    figures: tuple[tuple[str, str], ...] = ()
    skipped: tuple[str, ...] = ()
    not_measured: tuple[str, ...] = ()
    failed: bool = False

    def lines(self) -> list[str]:
        """What the short table leaves out, as Markdown; nothing if that is all."""
        lines = []
        if self.rows:
            lines += ["", "| | target | value | unit | reached |", "|---|---:|---:|---|---|"]
            lines += [row.line() for row in self.rows]
        if self.figures:
            lines += ["", "| | |", "|---|---:|", *(f"| {name} | {value} |" for name, value in self.figures)]
        if notes := [f"- {row.what}: {row.note}" for row in self.rows if row.note]:
            lines += ["", *notes]
        if self.skipped:
            lines += ["", *(f"- skipped: {line}" for line in self.skipped)]
        return ["", f"### {self.part}", *lines] if lines else []


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Findings of all parts of one run: one machine, one commit.

    Attributes:
        machine: Machine and commit before it began.
        elapsed_s: Its duration.
        parts: In the order in which they ran.
    """

    machine: Machine
    elapsed_s: float
    parts: tuple[Findings, ...]

    def json(self) -> str:
        """The run for programs: `rows` are those of the short table, `parts` all that they leave out."""
        parts = [asdict(replace(part, headlines=())) for part in self.parts]
        for part in parts:
            del part["headlines"]
        values = {
            "machine": asdict(self.machine),
            "elapsed_s": round(self.elapsed_s, 1),
            "rows": list(map(asdict, self.headlines())),
            "parts": parts,
        }
        return json_text(values) + "\n"

    def headlines(self) -> list[Headline]:
        """Rows of the short table, in its order."""
        found = {each.name: each for part in self.parts for each in part.headlines}
        return [found[name] for name in GOALS if name in found]

    def table(self) -> str:
        """The rows of the short table alone."""
        lines = ["| | Hummock | beside it, in the same run | ratio | goal |", "|---|---:|---|---:|---|"]
        return "\n".join([*lines, *(f"| {' | '.join(each.cells())} |" for each in self.headlines())]) + "\n"

    def short(self) -> str:
        """The short table, for users."""
        lines = ["# Hummock's speed, beside others in the same run", "", *self._head(), ""]
        lines += [self.table(), "A ratio is Hummock's figure divided by the other. **Bold**: the goal is missed."]
        lines += ["Other figures: [full.md](full.md). What they mean: [benchmarks](../../docs/benchmarks.md)."]
        if missing := list(self._not_taken()):
            lines += ["", f"Not taken in this run: {'; '.join(missing)}."]
        return "\n".join(lines) + "\n"

    def details(self, title: str) -> str:
        """What the short table leaves out: a section with a head of its own, part by part."""
        lines = [f"## {title}", "", *self._head()]
        for part in self.parts:
            lines += part.lines()
        # Several parts say the same.
        if not_measured := dict.fromkeys(f"- {line}" for part in self.parts for line in part.not_measured):
            lines += ["", "Not measured:", "", *not_measured]
        return "\n".join(lines) + "\n"

    def _head(self) -> list[str]:
        return [*self.machine.lines(), f"- the run took {self.elapsed_s:.0f} s"]

    def _not_taken(self) -> Iterator[str]:
        """Rows that are missing, each part's with its reasons."""
        found = {each.name for each in self.headlines()}
        for part in dict.fromkeys(goal.part for goal in GOALS.values()):
            missing = [goal.what for name, goal in GOALS.items() if goal.part == part and name not in found]
            reasons = [line for each in self.parts if each.part == part for line in each.skipped]
            if missing:
                yield f"{'; '.join(missing)} ({'; '.join(reasons) or 'its part did not run'})"


_RUN = msgspec.json.Decoder(Run)


def read_run(path: Path) -> Run | None:
    """The run whose `json` stands in a file, without its headlines; None if there is no such file."""
    return _RUN.decode(path.read_bytes()) if path.exists() else None


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
