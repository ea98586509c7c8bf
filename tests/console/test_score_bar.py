"""A bar is as long as its score; its parts stand one after the other and never overlap."""

from __future__ import annotations

import pytest
from google.protobuf.duration_pb2 import Duration
from hypothesis import given
from hypothesis import strategies as st

from hummock_client.v1 import recall_pb2
from hummock_tools.console.ask_page import WIDTH, score_bars, waterfall

SHARES = st.floats(0, 1)
HITS = st.lists(
    st.builds(
        recall_pb2.Hit, score=SHARES, similarity=st.floats(-1, 1), keyword_score=st.floats(0, 40),
        late_interaction_score=st.floats(-1, 1), decay=st.just(0.0) | st.floats(1e-100, 1), verdict=st.floats(0.6, 1.1),
    ),
    max_size=4,
)  # fmt: skip
RECEIPTS = st.builds(recall_pb2.Receipt, vector_weight=SHARES, late_interaction_weight=SHARES)


@given(HITS, RECEIPTS)
def test_a_bar_ends_where_its_score_does(hits: list[recall_pb2.Hit], receipt: recall_pb2.Receipt) -> None:
    for hit, bar in zip(hits, score_bars(hits, receipt), strict=True):
        kept = sum(segment.worth for segment in bar if segment.part != "lost")
        # What is too narrow to be seen is left out.
        assert kept == pytest.approx(hit.score, abs=4 * 0.1 / WIDTH)
        end = 0.0
        for segment in bar:
            assert segment.width > 0
            assert segment.x >= end - 0.02
            end = segment.x + segment.width
        assert end <= WIDTH + 0.02


def test_the_parts_are_those_of_the_shares() -> None:
    hit = recall_pb2.Hit(score=0.4, similarity=0.5, keyword_score=3, late_interaction_score=0.2, decay=0.5, verdict=1)
    receipt = recall_pb2.Receipt(vector_weight=0.5, late_interaction_weight=0.2)
    (bar,) = score_bars([hit], receipt)
    worths = {segment.part: round(segment.worth, 3) for segment in bar}
    assert worths == {"vector": 0.16, "words": 0.16, "late": 0.08, "lost": 0.4}


def test_stages_stand_one_behind_the_other() -> None:
    stages = [
        recall_pb2.StageTime(stage=recall_pb2.RECALL_STAGE_INTENT, elapsed=Duration(nanos=1_000_000)),
        recall_pb2.StageTime(stage=recall_pb2.RECALL_STAGE_EMBED, elapsed=Duration(nanos=3_000_000)),
    ]
    assert [(step.x, step.width, step.took_ms) for step in waterfall(stages)] == [(0, 50, 1), (50, 150, 3)]
    assert waterfall([]) == []
