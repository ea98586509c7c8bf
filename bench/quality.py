"""Part `quality`: how good the answers are, as `make eval` recorded it; it depends on the code and on no clock."""

from __future__ import annotations

import json

from bench.command import RESULTS, Options
from bench.goals import Headline, Judge
from bench.report import Findings

PART = "quality"
_FILE = RESULTS / "eval.json"
_SLICES = (("xquad", "zh"), ("cosqa", "code"))
_OURS, _VECTOR = "reranked", "vector"
"""Paths: what a recall does unless told otherwise, and a search by vector alone."""


def measure(_: Options) -> Findings:
    """The headlines of eval.json, each with the commit whose answers were counted."""
    if not _FILE.exists():
        return Findings(part=PART, skipped=(f"{_FILE.name} is not there; `make eval` writes it",))
    rows = {
        (row["set"], row["slice"], row["path"]): row for row in json.loads(_FILE.read_text(encoding="utf-8"))["slices"]
    }
    headlines = []
    for name, part in _SLICES:
        ours, vector = (rows.get((name, part, path)) for path in (_OURS, _VECTOR))
        if ours and vector and ours["commit"] == vector["commit"]:
            judge = Judge(name="vector search alone", value=vector["r10"], unit="")
            more = f" ({ours['queries']} questions, recorded at commit {ours['commit']})"
            headlines.append(Headline.of(f"{name} {part}", ours["r10"], judge, more))
    return Findings(part=PART, headlines=tuple(headlines))
