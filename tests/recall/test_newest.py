"""A note that tells a change comes before the older one that it most likely replaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.core.memory import Memory, MemoryKind, Origin
from hummock.core.recall import TimeInterval, Wanted
from hummock.ports.store import Snapshot
from hummock.recall.fuse import Fused
from hummock.recall.prefer import newest_first
from hummock.text.questions import Trait
from tests.recall.candidates import DAY, NOW, Row, candidates, features, plan, ranked
from tests.render.samples import note

CHANGE = int(Trait.TELLS_CHANGE)
EAST, NEAR_EAST, NORTH = (1.0, 0.0), (0.8, 0.6), (0.0, 1.0)
OLD: dict[str, Any] = {"id": "old", "cosine": 0.9, "age_days": 60.0, "vector": EAST}
NEW: dict[str, Any] = {"id": "new", "cosine": 0.5, "age_days": 3.0, "vector": NEAR_EAST, "traits": CHANGE}
AUTUMN = TimeInterval(start=NOW - 90 * DAY, end=NOW, phrase="this autumn")
OTHER = Row(id="other", cosine=0.8, age_days=30.0, vector=NORTH)


def order(*rows: Row, text: str = "where do I live?", **how: Any) -> tuple[str, ...]:
    return placed(*rows, text=text, **how).memory_ids


def placed(*rows: Row, text: str = "where do I live?", **how: Any) -> Fused:
    asked = plan(**how)
    project = cast(Snapshot, _Texts())
    return newest_first(ranked(candidates(rows), asked, features()), asked, text, 0.55, project)


class _Texts:
    """A project whose memories tell no change by their words."""

    def load(self, docs: Sequence[int], *, full: bool) -> list[Memory | None]:
        return [note(str(doc), "we live there") for doc in docs]


def test_the_newer_comes_first_for_questions_of_now_and_the_older_for_how_it_was() -> None:
    old, new = Row(**OLD), Row(**NEW)
    assert order(old, OTHER, new) == ("new", "old", "other")
    assert order(old, OTHER, new, text="where did I live before?") == ("old", "other", "new")
    better = Row(**NEW | {"cosine": 0.95})
    assert order(old, OTHER, better, text="where did I live before?") == ("old", "new", "other")
    assert order(old, OTHER, new, text="what did we eat there?") == ("old", "other", "new")


@pytest.mark.parametrize(
    "text", ["where do I live?", "where did I live before?", "我搬家之前住哪儿？", "what did we eat?"]
)
def test_nothing_is_said_where_no_note_is_similar_enough(text: str) -> None:
    assert order(Row(**OLD), Row(**NEW), text=text, min_similarity=0.99) == ()


def test_how_it_was_may_fit_the_question_less_than_how_it_is() -> None:
    """The newer one must fit the question then, and the older one much of that."""
    new = Row(**NEW | {"cosine": 0.95})
    for old, found in ((0.45, ("old", "new")), (0.3, ("new", "old"))):
        assert order(Row(**OLD | {"cosine": old}), new, text="where did I live before?") == found
    far, best = Row(**NEW | {"cosine": 0.45}), Row(id="best", cosine=0.95, vector=NORTH)
    assert order(best, far, Row(**OLD | {"cosine": 0.4}), text="where did I live before?") == ("best", "new", "old")


def test_a_day_that_a_text_names_is_not_when_it_was_told() -> None:
    """A note told after another may tell of a day before it: "we moved last Wednesday"."""
    named: dict[str, Any] = {"event_time": NOW - 90 * DAY}
    assert order(Row(**OLD), OTHER, Row(**NEW, **named)) == ("old", "other", "new")
    assert order(Row(**OLD), OTHER, Row(**NEW | named | {"traits": CHANGE | int(Trait.DATED)})) == (
        "new",
        "old",
        "other",
    )


def test_the_replaced_one_names_its_replacement() -> None:
    found = placed(Row(**OLD), OTHER, Row(**NEW))
    assert found.replaced_by == {0: 2}
    assert placed(Row(**OLD), OTHER).replaced_by == {}


@pytest.mark.parametrize(
    ("old", "new", "how"),
    [
        pytest.param({}, {"traits": 0}, {}, id="it tells no change"),
        pytest.param({}, {"traits": CHANGE | int(Trait.ASKS)}, {}, id="it asks"),
        pytest.param({}, {"age_days": 60.0}, {}, id="it is not newer"),
        pytest.param({}, {"vector": (0.5, 0.866)}, {}, id="it is about something else"),
        pytest.param({}, {"cosine": 0.2}, {}, id="it hardly fits the question"),
        pytest.param({}, {"writer": 7}, {}, id="nobody vouches for its writer"),
        pytest.param({"origin": Origin.AI_OUTPUT}, {}, {}, id="the model has said the older one"),
        pytest.param({"speaker": "Lin"}, {"speaker": "Mia"}, {}, id="somebody else has said the older one"),
        pytest.param({"kind": MemoryKind.CODE_FRAGMENT}, {}, {}, id="the older one is code"),
        pytest.param({}, {}, {"neighbours": False}, id="one path alone is asked"),
        pytest.param({}, {}, {"wanted": Wanted.FROM_ASSISTANT}, id="the assistant's words are asked for"),
        pytest.param(
            {},
            {},
            {"times": (TimeInterval(start=NOW - 90 * DAY, end=NOW, phrase="this autumn"),)},
            id="a time is named",
        ),
    ],
)
def test_the_order_stays_where(old: dict[str, Any], new: dict[str, Any], how: dict[str, Any]) -> None:
    rows = Row(**OLD | old), Row(**NEW | new)
    before = ranked(candidates(rows), plan(**how), features()).memory_ids
    assert order(*rows, **how) == before == ("old", "new")


def test_a_writer_that_nobody_vouches_for_replaces_its_own_words() -> None:
    assert order(Row(**OLD | {"writer": 7}), Row(**NEW | {"writer": 7})) == ("new", "old")


def test_of_a_chain_of_changes_the_newest_comes_first() -> None:
    middle = Row(id="middle", cosine=0.7, age_days=20.0, vector=(0.96, 0.28), traits=CHANGE)
    assert order(Row(**OLD), middle, Row(**NEW)) == ("new", "middle", "old")


@given(
    st.lists(
        st.tuples(st.floats(0.0, 1.0), st.sampled_from([0, CHANGE]), st.integers(0, 90), st.floats(0.0, 3.0)),
        min_size=1,
        max_size=12,
    )
)
def test_nothing_is_lost_and_scores_keep_falling(told: list[tuple[float, int, int, float]]) -> None:
    rows = [
        Row(id=str(at), cosine=cosine, traits=traits, age_days=age, vector=(float(np.cos(angle)), float(np.sin(angle))))
        for at, (cosine, traits, age, angle) in enumerate(told)
    ]
    before, after = ranked(candidates(rows), plan(), features()), placed(*rows)
    assert sorted(after.row.tolist()) == sorted(before.row.tolist())
    assert (np.diff(after.relevance) <= 1e-6).all()
    assert after.relevance.max() == before.relevance.max()
