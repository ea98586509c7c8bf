"""The change that each loss asks for, and how changes are written."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from hummock.core.explain import Change, LossStage, Numbers, Remedy, Verdict
from hummock.core.memory import Filter, Memory, MemoryKind, Origin
from hummock.core.recall import MAX_QUERY_CHARACTERS, DecayMode, Intent, Preset, RecallPath, RecallQuery
from hummock.recall.remedy import MAX_CANDIDATES, MAX_EXCLUDED, MAX_NAMES, changes, fewest, remedied, with_room
from hummock.recall.sentences import sentence
from hummock.text.normalise import is_han
from tests.strategies import Entry
from tests.sure import sure

QUERY = RecallQuery(project="p", text="harbour")
MEMORY = Entry(id="m", create_time=100.5).memory()
IN_SESSION = Entry(id="m", session_id="s", tags=("java",), create_time=100.5).memory()


def out_of_pool(rank: int, pool: int = 50) -> Verdict:
    return Verdict(stage=LossStage.CANDIDATES, group="main", value=rank, threshold=pool)


def behind(place: int, relevance_rank: int, group: str = "main", pool: int = 300) -> Verdict:
    numbers = Numbers(place=place, relevance_rank=relevance_rank, pool=pool)
    return Verdict(stage=LossStage.RANK, group=group, value=place, numbers=numbers)


def remedy(query: RecallQuery, verdict: Verdict, memory: Memory = MEMORY) -> dict[str, str]:
    return {change.field: change.value for change in changes(query, sure(remedied(query, verdict, memory)))}


def test_a_rank_outside_the_pool_makes_it_as_large() -> None:
    assert remedy(QUERY, out_of_pool(230)) == {"tuning.candidates": "230"}


def test_a_rank_that_a_prefilter_missed_doubles_the_pool() -> None:
    assert remedy(QUERY, out_of_pool(40)) == {"tuning.candidates": "100"}


def test_beyond_the_largest_pool_all_paths_run_and_then_the_filter_narrows_step_by_step() -> None:
    far = out_of_pool(MAX_CANDIDATES + 1)
    one_path = replace(QUERY, paths=frozenset({RecallPath.VECTOR}))
    assert remedy(one_path, far) == {"paths": ""}
    query, steps = QUERY, []
    while (narrower := remedied(query, far, IN_SESSION)) is not None:
        steps.append([change.field for change in changes(query, narrower)])
        query = narrower
    assert steps == [
        ["filter.session_ids"],
        ["filter.tags"],
        ["filter.kinds"],
        ["filter.created_after", "filter.created_before"],
    ]
    assert changes(QUERY, query)[-1] == Change(field="filter.created_before", value="1970-01-01T00:01:41+00:00")


def test_no_rank_at_all_opens_paths_before_it_narrows() -> None:
    assert remedy(replace(QUERY, paths=frozenset({RecallPath.DOMAIN})), out_of_pool(0)) == {"paths": ""}
    assert remedy(QUERY, out_of_pool(0)) == {"filter.kinds": "NOTE"}


@pytest.mark.parametrize(("group", "field"), [("main", "top_k"), ("code", "code_top_k"), ("domains", "domain_top_k")])
def test_each_group_has_a_field_for_its_room(group: str, field: str) -> None:
    assert remedy(QUERY, behind(17, 17, group)) == {f"tuning.{field}": "17"}


def test_room_beyond_the_pool_is_taken_twice_as_large() -> None:
    assert remedy(QUERY, behind(60, 60, pool=50)) == {"tuning.top_k": "120"}
    assert remedy(QUERY, behind(190, 190, pool=50)) == {"tuning.top_k": "200"}


def test_where_room_ends_relevance_decides_then_age_then_the_filter() -> None:
    by_relevance = {"tuning.relevance_weight": "1", "tuning.near_twin_bar": "2"}
    assert remedy(QUERY, behind(220, 150)) == by_relevance
    chat = replace(QUERY, preset=Preset.CHAT)
    assert remedy(chat, behind(220, 220)) == {"tuning.decay_mode": "OFF"}
    assert remedy(replace(chat, decay_mode=DecayMode.OFF), behind(220, 220)) == {"filter.kinds": "NOTE"}


def test_a_list_without_room_for_one_more_name_falls() -> None:
    full = Filter(session_ids=tuple(f"s{number}" for number in range(MAX_NAMES)))
    failed = Verdict(stage=LossStage.FILTER, failed=("session_ids",))
    assert remedy(replace(QUERY, filter=full), failed, IN_SESSION) == {"filter.session_ids": ""}
    some = replace(QUERY, filter=Filter(session_ids=("other",)))
    assert remedy(some, failed, IN_SESSION) == {"filter.session_ids": "other, s"}
    assert remedy(some, failed, MEMORY) == {"filter.session_ids": ""}


def test_more_copies_than_can_be_excluded_have_no_remedy() -> None:
    many = Verdict(stage=LossStage.DUPLICATE, others=tuple(f"c{number}" for number in range(MAX_EXCLUDED + 1)))
    assert remedied(QUERY, many, MEMORY) is None


def test_the_longest_query_stays_as_long() -> None:
    longest = replace(QUERY, text="x" * MAX_QUERY_CHARACTERS)
    changed = sure(remedied(longest, Verdict(stage=LossStage.ECHO), MEMORY))
    assert changed.text == "x" * (MAX_QUERY_CHARACTERS - 1) + ","


@pytest.mark.parametrize(("similarity", "minimum"), [(0.2149, "0.21"), (0.21, "0.2"), (-0.3, "-0.31"), (-1.0, "-1")])
def test_a_minimum_is_written_with_two_digits_below_the_similarity(similarity: float, minimum: str) -> None:
    lost = Verdict(stage=LossStage.MIN_SIMILARITY, value=similarity, threshold=0.3)
    assert remedy(replace(QUERY, preset=Preset.CHAT), lost) == {"tuning.min_similarity": minimum}


def test_a_hit_needs_no_change() -> None:
    assert remedied(QUERY, Verdict(stage=None), MEMORY) is QUERY


def test_changes_that_are_not_needed_are_taken_back() -> None:
    where = Filter(kinds=frozenset({MemoryKind.NOTE}), origins=frozenset({Origin.MANUAL}))
    changed = replace(with_room(QUERY, "main", 17), candidates=230, filter=where, intent=Intent(keywords=("a", "b")))
    assert {change.field for change in changes(QUERY, changed)} == {
        "intent.keywords",
        "tuning.candidates",
        "tuning.top_k",
        "filter.kinds",
        "filter.origins",
    }
    needed = fewest(QUERY, changed, lambda query: query.top_k == 17 and bool(query.filter.origins))
    assert changes(QUERY, needed) == (
        Change(field="tuning.top_k", value="17"),
        Change(field="filter.origins", value="MANUAL"),
    )


def test_one_change_alone_is_not_tried_without() -> None:
    assert fewest(QUERY, with_room(QUERY, "main", 3), lambda query: pytest.fail("nothing to try")).top_k == 3


@pytest.mark.parametrize("stage", LossStage)
@pytest.mark.parametrize("in_chinese", [True, False])
def test_every_loss_has_a_sentence_in_both_languages(stage: LossStage, in_chinese: bool) -> None:
    verdict = Verdict(stage=stage, group="main", others=("其他",), value=0.25, numbers=Numbers(vector_rank=60))
    helps = Remedy(
        changes=(Change(field="filter.tags", value=""), Change(field="tuning.top_k", value="17")), recall=QUERY, rank=9
    )
    told, untold = (sentence(verdict, each, in_chinese=in_chinese) for each in (helps, None))
    assert is_han(told.replace("其他", "")) is in_chinese
    assert "top_k = 17" in told
    assert "filter.tags" in told
    assert "top_k" not in untold
    assert not {"{", "}"} & set(told + untold)
