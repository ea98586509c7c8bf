"""Late interaction from one end to the other: the real store and the toy model."""

from __future__ import annotations

import pytest

from hummock.core.recall import Preset, Recalled, RecallPath
from tests.desk import Desk, domain, fragment, ids, note

VECTOR = frozenset({RecallPath.VECTOR})


def stages(recalled: Recalled) -> list[str]:
    return [time.stage for time in recalled.receipt.stages]


def test_joined_paths_are_ranked_again_by_late_interaction(desk: Desk) -> None:
    desk.teach(note("the harbour is deep", "a"), note("a lighthouse 灯塔 shines", "b"))
    answer = desk.recall("the harbour is deep")
    assert stages(answer) == ["intent", "embed", "gather", "late_interaction", "fuse", "diversify", "load"]
    assert answer.receipt.late_interaction_weight > 0
    assert answer.hits[0].memory.id == "a"
    assert answer.hits[0].late_interaction_score == pytest.approx(1, abs=0.02)
    assert -1 <= answer.hits[1].late_interaction_score < 0.9


def test_each_group_is_ranked_again(desk: Desk) -> None:
    desk.teach(note("the harbour", "a"), fragment("harbour.py", "harbour"), domain("harbour", "d"))
    answer = desk.recall("class harbour", preset=Preset.CODE)
    for hits in (answer.hits, answer.code_fragments, answer.domains):
        assert [hit.late_interaction_score != 0 for hit in hits] == [True]


def test_the_vector_path_alone_is_never_ranked_again_under_chat(desk: Desk) -> None:
    """S4-24, 1.1-10: the score is the similarity, times the age."""
    desk.teach(note("the harbour is deep", "a"), note("the harbour", "b"), note("deep harbour", "c"))
    answer = desk.recall("the harbour", preset=Preset.CHAT, paths=VECTOR, min_similarity=-1.0)
    assert "late_interaction" not in stages(answer)
    assert answer.receipt.late_interaction_weight == 0
    assert [hit.late_interaction_score for hit in answer.hits] == [0, 0, 0]
    assert [hit.score for hit in answer.hits] == pytest.approx([hit.similarity for hit in answer.hits], abs=1e-6)


def test_late_interaction_needs_tokens_and_can_be_switched_off(desk: Desk) -> None:
    desk.teach(note("the harbour", "a"))
    answer = desk.recall("harbour", vector=desk.pointing(1), late_interaction=True)
    assert "late_interaction" not in stages(answer)
    assert answer.degraded == ()
    assert ids(answer) == ["a"]
    answer = desk.recall("the harbour", late_interaction=False)
    assert "late_interaction" not in stages(answer)
    assert answer.hits[0].late_interaction_score == 0


def test_a_memory_that_came_with_its_own_vector_is_not_scored_by_late_interaction(desk: Desk) -> None:
    desk.teach(note("harbour light", "own"), note("harbour wall", "made"), vectors=[desk.pointing(1)])
    answer = desk.recall("harbour wall")
    scores = {hit.memory.id: hit.late_interaction_score for hit in answer.hits}
    assert scores["own"] == 0
    assert scores["made"] > 0.9
