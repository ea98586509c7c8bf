"""What changed against an earlier run."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.eval.asking import Path as RecallPath
from bench.eval.halves import Half
from bench.eval.summary import ModelRows, Row, from_json

_NAMES = ("r1", "r5", "r10", "mrr", "ndcg10")
_SHOWN_IDS = 5
_NOISE = 0.00005


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
            f"{name} {getattr(was, name):.3f} → {getattr(row, name):.3f}" for name in _NAMES if _moved(was, row, name)
        ]
        if moved:
            lines.append(f"{row.set} {row.slice} {row.path}: {', '.join(moved)}")
    return lines or [f"{after.model}: all figures as committed"]


def changed_answers(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> list[str]:
    """Which questions were won and lost at first place, by path; both as the files of answers hold them."""
    old = {each["id"]: each["paths"] for each in before}
    lines = []
    for path in RecallPath:
        was = {each["id"]: _is_first(old[each["id"]][path]) for each in after if each["id"] in old}
        now = {each["id"]: _is_first(each["paths"][path]) for each in after}
        won = [each for each, had in was.items() if now[each] and not had]
        lost = [each for each, had in was.items() if had and not now[each]]
        if won or lost:
            lines.append(f"{path}: won {_some(won)}; lost {_some(lost)}")
    return lines


def _key(row: Row) -> tuple[str, str, str, str]:
    return row.set, row.slice, row.half, row.path


def _moved(was: Row, row: Row, name: str) -> bool:
    return abs(float(getattr(was, name)) - float(getattr(row, name))) > _NOISE


def _is_first(answer: Mapping[str, Any]) -> bool:
    return bool(answer["ranks"]) and answer["ranks"][0] == 1


def _some(ids: Sequence[str]) -> str:
    shown = [*ids[:_SHOWN_IDS], *["…"][: len(ids) > _SHOWN_IDS]]
    return f"{len(ids)} ({', '.join(shown)})" if ids else "none"
