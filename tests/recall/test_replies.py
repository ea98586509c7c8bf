"""Recalls of all kinds against recorded replies: the hits, their order and their scores (S0-36, S2-05, S4-55).

`python -m tests.recall.test_replies` records them anew; that is right only where answers are meant to change.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from bench import toy_models
from tests.recall.replies import hits_of, our_replies
from tests.service.running import in_thread, settings

RECORDED = Path(__file__).with_name("replies.jsonl")

_TOLERANCE = 1e-3
"""Largest difference of scores: processors and versions of the runtime differ in the last digits of a vector."""

_MOST_OTHERS = 15
"""Recalls that may have other hits or another order, where scores are near-equal. Weights that differ by a millionth
change 5 of 1,562; those that differ by a hundred-thousandth change 9."""

pytestmark = pytest.mark.long


def _replies(directory: Path) -> list[tuple[str, list[tuple[str, float]]]]:
    data, models_dir = directory / "data", directory / "models"
    data.mkdir()
    models_dir.mkdir()
    model = toy_models.build_tiny(models_dir, is_int8=False).name
    with in_thread(settings(data, models_dir, model)) as service:
        return [(name, hits_of(reply)) for name, reply in our_replies(service)]


def test_recalls_of_all_kinds_find_what_they_found(tmp_path: Path) -> None:
    recorded = [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
    found = _replies(tmp_path)
    assert [name for name, _ in found] == [name for name, *_ in recorded]
    others = []
    for (name, hits), (_, ids, scores) in zip(found, recorded, strict=True):
        if [each for each, _ in hits] != ids:
            others.append(name)
        score_of = dict(hits)
        same = {hit: score for hit, score in zip(ids, scores, strict=True) if hit in score_of}
        assert {hit: score_of[hit] for hit in same} == pytest.approx(same, abs=_TOLERANCE), name
    assert len(others) <= _MOST_OTHERS, others


def main() -> None:
    """Records the replies of this code."""
    with tempfile.TemporaryDirectory() as directory, RECORDED.open("w", encoding="utf-8") as out:
        for name, hits in _replies(Path(directory)):
            line = [name, [each for each, _ in hits], [round(score, 4) for _, score in hits]]
            out.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
