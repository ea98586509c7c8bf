"""A figure beside its target, and what a part of the bench found out."""

from __future__ import annotations

from dataclasses import dataclass


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
        part: Its name, that of its module.
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
