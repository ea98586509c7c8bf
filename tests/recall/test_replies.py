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

pytestmark = pytest.mark.long


def _replies(directory: Path) -> list[tuple[str, list[tuple[str, float]]]]:
    data, models_dir = directory / "data", directory / "models"
    data.mkdir()
    models_dir.mkdir()
    model = toy_models.build_tiny(models_dir).name
    with in_thread(settings(data, models_dir, model)) as service:
        return [(name, hits_of(reply)) for name, reply in our_replies(service)]


def test_recalls_of_all_kinds_find_what_they_found(tmp_path: Path) -> None:
    recorded = [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
    found = _replies(tmp_path)
    assert [name for name, _ in found] == [name for name, *_ in recorded]
    other = [
        name for (name, hits), (_, ids, _) in zip(found, recorded, strict=True) if [each for each, _ in hits] != ids
    ]
    assert not other, "recalls with other hits, or in another order"
    for (name, hits), (_, _, scores) in zip(found, recorded, strict=True):
        assert [score for _, score in hits] == pytest.approx(scores, abs=_TOLERANCE), name


def main() -> None:
    """Records the replies of this code."""
    with tempfile.TemporaryDirectory() as directory, RECORDED.open("w", encoding="utf-8") as out:
        for name, hits in _replies(Path(directory)):
            line = [name, [each for each, _ in hits], [round(score, 4) for _, score in hits]]
            out.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
