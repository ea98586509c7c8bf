"""Figures for people."""

from __future__ import annotations

from collections.abc import Iterable

from bench.eval.asking import SETTING, Path
from bench.eval.halves import Half
from bench.eval.summary import TOLERANCE, ModelRows, Row

_JOINED = (Path.FUSED, Path.RERANKED)


def markdown(model: ModelRows, halves: Iterable[Half]) -> str:
    """A table for each half, and what the columns mean."""
    lines = [f"## {model.model} (space {model.emb_space[:12]})", "", f"- {SETTING}"]
    lines.append("- intervals of 95 %: Wilson for R@k, seeded bootstrap for MRR and nDCG@10")
    lines.append(
        f"- below: worst of R@1, 5, 10 under the better of vector and keyword; more than {TOLERANCE} is a miss"
    )
    for half in halves:
        rows = [row for row in model.rows if row.half is half]
        if rows:
            lines += ["", f"### Half: {half}", "", *_table(rows)]
    return "\n".join(lines)


def _table(rows: Iterable[Row]) -> list[str]:
    return [
        "| set | slice | path | n | R@1 | R@5 | R@10 | MRR | nDCG@10 | all in 3 | below |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
        *(f"| {' | '.join(_cells(row))} |" for row in rows),
    ]


def _cells(row: Row) -> list[str]:
    below = f"{row.below:.3f}{'' if row.fits else ' miss'}" if row.path in _JOINED else ""
    figures = (_figure(row, name) for name in ("r1", "r5", "r10", "mrr", "ndcg10"))
    return [row.set, row.slice, row.path, str(row.queries), *figures, f"{row.all3:.3f}", below]


def _figure(row: Row, name: str) -> str:
    low, high = row.intervals[name]
    return f"{getattr(row, name):.3f} ({low:.2f}–{high:.2f})"
