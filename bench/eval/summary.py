"""Figures of slices: rows by path and half, the file that is committed, the table, and what changed since."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from bench.eval import metrics
from bench.eval.answers import Answer
from bench.eval.made import Half, half_of
from bench.eval.metrics import Interval, Judged, bootstrap, wilson
from bench.eval.sets import Slice
from bench.eval.ways import SETTING, RecallPath

CUTS = (1, 5, 10)
TOLERANCE = 0.01
"""Largest accepted loss of a joined order against its better path."""

_SINGLE = (RecallPath.VECTOR, RecallPath.KEYWORD)
_JOINED = (RecallPath.FUSED, RecallPath.RERANKED)
_NAMES = ("r1", "r5", "r10", "mrr", "ndcg10")
"""Figures that are shown with their intervals and compared."""
_COUNTED = ("share10", "all10", "returned", "none")
"""Figures that are compared as well, where both rows are asked as a user asks."""
_DIGITS = 4
_NOISE = 0.00005
_SHOWN_IDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Figures of one slice, path and half.

    Attributes:
        r1: Share of the questions with a relevant memory in first place; r5 and r10: among the first 5 and 10.
        mrr: Mean of 1 / place of the first relevant memory, 0 beyond the first 10.
        ndcg10: Mean normalised discounted cumulative gain of the first 10.
        share10: Mean share of a question's relevant memories among the first 10.
        all3: Share of the questions with every relevant memory among the first 3; all10: among the first 10.
        filled10: Mean of the relevant memories among the first 10, in those that there could be.
        returned: Memories returned a question, of all groups.
        none: Share of the questions that nothing was returned for.
        below: By how much the worst of r1, r5 and r10 is below the better of vector and keyword; 0 for these two
            and where they are not asked.
        preset: Under which it was asked.
        is_noise: Nothing answers these questions: what counts is `returned` and `none`.
        intervals: 95 % of r1, r5, r10 (Wilson) and of mrr, ndcg10 (bootstrap, seeded).
        commit: Commit of the measured code.
    """

    set: str
    slice: str
    half: Half
    path: RecallPath
    queries: int
    r1: float
    r5: float
    r10: float
    mrr: float
    ndcg10: float
    share10: float
    all3: float
    below: float
    intervals: Mapping[str, Interval]
    commit: str
    all10: float = 0.0
    filled10: float = 0.0
    returned: float = 0.0
    none: float = 0.0
    preset: str = "AGENT"
    is_noise: bool = False

    @property
    def fits(self) -> bool:
        """True if it is nowhere more than TOLERANCE below the better path."""
        return self.below <= TOLERANCE

    def recalls(self) -> tuple[float, float, float]:
        """r1, r5, r10."""
        return self.r1, self.r5, self.r10


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRows:
    """All rows of one model."""

    model: str
    emb_space: str
    rows: tuple[Row, ...]


def rows_of(asked: Slice, answers: Sequence[Answer], commit: str) -> list[Row]:
    """A row for each half and path; halves without questions have none."""
    rows = []
    for half in Half:
        taken = [each for each in answers if half in (Half.ALL, half_of(each.question.id))]
        if taken:
            rows.extend(_rows_of_half(asked, half, taken, commit))
    return rows


def _rows_of_half(asked: Slice, half: Half, answers: Sequence[Answer], commit: str) -> list[Row]:
    found = {path: [each for each in answers if each.path is path] for path in asked.way.paths}
    judged = {path: [each.judged for each in of_path] for path, of_path in found.items()}
    single = [[_mean_recall(judged[path], k) for k in CUTS] for path in _SINGLE if path in judged]
    best = [max(values) for values in zip(*single, strict=True)]
    return [
        Row(
            set=asked.set,
            slice=asked.name,
            half=half,
            path=path,
            queries=len(of_path),
            commit=commit,
            preset=asked.way.preset,
            is_noise=not any(each.question.relevant for each in of_path),
            below=_below(judged[path], best) if path in _JOINED and best else 0.0,
            returned=round(fmean(len(each.hits) for each in of_path), _DIGITS),
            none=round(fmean(not each.hits for each in of_path), _DIGITS),
            **_figures(judged[path]),
        )
        for path, of_path in found.items()
    ]


def _figures(judged: Sequence[Judged]) -> dict[str, Any]:
    count = len(judged)
    found = {f"r{k}": [metrics.recall(each, k) for each in judged] for k in CUTS}
    means = {
        "mrr": [metrics.reciprocal_rank(each) for each in judged],
        "ndcg10": [metrics.ndcg(each) for each in judged],
    }
    intervals = {name: wilson(sum(values), count) for name, values in found.items()}
    intervals |= {name: bootstrap(values) for name, values in means.items()}
    return {
        **{name: round(fmean(values), _DIGITS) for name, values in (found | means).items()},
        "share10": round(fmean(metrics.share(each, metrics.DEPTH) for each in judged), _DIGITS),
        "filled10": round(fmean(map(metrics.filled, judged)), _DIGITS),
        "all3": round(fmean(metrics.all_within(each, 3) for each in judged), _DIGITS),
        "all10": round(fmean(metrics.all_within(each, metrics.DEPTH) for each in judged), _DIGITS),
        "intervals": {name: (round(low, _DIGITS), round(high, _DIGITS)) for name, (low, high) in intervals.items()},
    }


def _below(judged: Sequence[Judged], best: Sequence[float]) -> float:
    worst = max(value - _mean_recall(judged, k) for k, value in zip(CUTS, best, strict=True))
    return round(max(0.0, worst), _DIGITS)


def _mean_recall(judged: Sequence[Judged], k: int) -> float:
    return fmean(metrics.recall(each, k) for each in judged)


def merged(kept: Sequence[ModelRows], found: ModelRows) -> list[ModelRows]:
    """The kept rows, those of the slices that were found replaced; a model's rows of another space are dropped."""
    replaced = {(row.set, row.slice) for row in found.rows}
    same = [each for each in kept if each.model == found.model and each.emb_space == found.emb_space]
    others = [row for each in same for row in each.rows if (row.set, row.slice) not in replaced]
    rows = sorted((*others, *found.rows), key=lambda row: (row.set, row.slice))
    return [*(each for each in kept if each.model != found.model), replace(found, rows=tuple(rows))]


def as_json(models: Sequence[ModelRows]) -> dict[str, Any]:
    """The committed form: the first model's reported half at the top, and under "models" that of every model.

    Rows of the half on which weights are chosen, and of both together, stand apart in "other_halves".
    """
    return {
        "model": models[0].model,
        "setting": SETTING,
        "halves": "slices holds the half that is reported; weights are chosen on the other one (half_of in made.py)",
        "slices": _values(models[0].rows, {Half.REPORT}),
        "models": [
            {
                "model": each.model,
                "emb_space": each.emb_space,
                "slices": _values(each.rows, {Half.REPORT}),
                "other_halves": _values(each.rows, {Half.TUNE, Half.ALL}),
            }
            for each in models
        ],
    }


def from_json(value: Mapping[str, Any]) -> list[ModelRows]:
    """Parses the output of `as_json`."""
    return [
        ModelRows(
            model=each["model"],
            emb_space=each["emb_space"],
            rows=tuple(_row(row) for row in (*each["slices"], *each["other_halves"])),
        )
        for each in value["models"]
    ]


def _values(rows: Iterable[Row], halves: set[Half]) -> list[dict[str, Any]]:
    return [asdict(row) for row in rows if row.half in halves]


def _row(value: Mapping[str, Any]) -> Row:
    # Rows that were written before a figure was thought of have its default.
    known = {field.name: value[field.name] for field in fields(Row) if field.name in value}
    known["half"], known["path"] = Half(value["half"]), RecallPath(value["path"])
    known["intervals"] = {name: (low, high) for name, (low, high) in value["intervals"].items()}
    return Row(**known)


def committed(path: Path) -> list[ModelRows]:
    """The rows of the summary as it was last committed; none where it never was."""
    command = ["git", "show", f"HEAD:./{path.name}"]
    try:
        shown = subprocess.run(command, cwd=path.parent, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return []
    return from_json(json.loads(shown.stdout))


def changed_figures(before: Sequence[ModelRows], after: ModelRows) -> list[str]:
    """A line for each row of the model with another figure; rows of other numbers of questions are not compared."""
    old = {_key(row): row for model in before if model.model == after.model for row in model.rows}
    if not old:
        return [f"{after.model}: no committed run to compare with"]
    lines = []
    for row in after.rows:
        was = old.get(_key(row))
        if row.half is not Half.ALL or was is None or was.queries != row.queries:
            continue
        moved = [
            f"{name} {getattr(was, name):.3f} → {getattr(row, name):.3f}"
            for name in (*_NAMES, *_COUNTED)
            if _moved(was, row, name)
        ]
        if moved:
            lines.append(f"{row.set} {row.slice} {row.path}: {', '.join(moved)}")
    return lines or [f"{after.model}: all figures as committed"]


def changed_answers(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> list[str]:
    """Questions that were won and lost at first place, by path; both as the files of answers hold them."""
    old = {each["id"]: each["paths"] for each in before}
    lines = []
    for path in RecallPath:
        both = [each for each in after if path in each["paths"] and path in old.get(each["id"], ())]
        was = {each["id"]: _is_first(old[each["id"]][path]) for each in both}
        now = {each["id"]: _is_first(each["paths"][path]) for each in both}
        won = [each for each, had in was.items() if now[each] and not had]
        lost = [each for each, had in was.items() if had and not now[each]]
        if won or lost:
            lines.append(f"{path}: won {_some(won)}; lost {_some(lost)}")
    return lines


def _key(row: Row) -> tuple[str, str, str, str]:
    return row.set, row.slice, row.half, row.path


def _moved(was: Row, row: Row, name: str) -> bool:
    """Rows of an earlier form have no counts to compare with."""
    if name in _COUNTED and not (was.returned or was.none):
        return False
    return abs(float(getattr(was, name)) - float(getattr(row, name))) > _NOISE


def _is_first(answer: Mapping[str, Any]) -> bool:
    return bool(answer["ranks"]) and answer["ranks"][0] == 1


def _some(ids: Sequence[str]) -> str:
    shown = [*ids[:_SHOWN_IDS], *["…"][: len(ids) > _SHOWN_IDS]]
    return f"{len(ids)} ({', '.join(shown)})" if ids else "none"


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
    rows = list(rows)
    noise = [row for row in rows if row.is_noise]
    shown = [
        "| set | slice | path | n | R@1 | R@5 | R@10 | MRR | nDCG@10 | all in 3 | in 10 | share | filled | below |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
        *(f"| {' | '.join(_cells(row))} |" for row in rows if not row.is_noise),
    ]
    if noise:
        shown += ["", "Nothing answers these:", "", "| set | slice | path | n | returned | none |"]
        shown += ["|---|---|---|---:|---:|---:|", *(f"| {' | '.join(_noise_cells(row))} |" for row in noise)]
    return shown


def _cells(row: Row) -> list[str]:
    below = f"{row.below:.3f}{'' if row.fits else ' miss'}" if row.path in _JOINED else ""
    figures = (_figure(row, name) for name in _NAMES)
    shares = (f"{value:.3f}" for value in (row.all3, row.all10, row.share10, row.filled10))
    return [row.set, row.slice, row.path, str(row.queries), *figures, *shares, below]


def _noise_cells(row: Row) -> list[str]:
    return [row.set, row.slice, row.path, str(row.queries), f"{row.returned:.2f}", f"{row.none:.3f}"]


def _figure(row: Row, name: str) -> str:
    low, high = row.intervals[name]
    return f"{getattr(row, name):.3f} ({low:.2f}–{high:.2f})"
