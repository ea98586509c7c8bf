from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.eval.made import Half, drawn, function_names, half_of, is_chinese_of_two, mixed_sentence, two_character_words

pytestmark = pytest.mark.long

RUNS = {f"c{i}": f"def run():\n    pass  # {i}" for i in range(4)} | {"d": "def go():\n    pass"}


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        # A name is held by every code that uses it as a whole.
        (
            {
                "a": "def parse_date(text):\n    return text",
                "b": "value = parse_date(line)",
                "c": "parse_dates(lines)  # parse_date2",
            },
            {"parse_date": {"a", "b"}},
        ),
        # In another case it is another name.
        ({"a": "def Load():\n    pass", "b": "def load():\n    pass"}, {"Load": {"a"}, "load": {"b"}}),
        # Names that many codes hold or that are too short are left out; a code without a function has none.
        (RUNS, {}),
        ({"a": "x = 1", "b": ""}, {}),
    ],
    ids=["whole", "case", "many or short", "no function"],
)
def test_names_of_functions_are_held_by_few_codes(codes: dict[str, str], expected: dict[str, set[str]]) -> None:
    assert function_names(codes, 10) == expected


def test_no_more_names_are_made_than_asked_for() -> None:
    codes = {f"c{i}": f"def name_{i}():\n    pass" for i in range(20)}
    assert len(function_names(codes, 7)) == 7


def test_a_word_is_an_answer_or_set_apart_by_marks_and_is_held_by_one_to_three_texts() -> None:
    texts = {"a": "他读“水浒”，带了鱼、酱油、木桶。", "b": "灯塔在山上。", "c": "港口没有。"}
    words = two_character_words(texts, ["灯塔", "没有灯塔", "night"], 10)
    assert words == {"水浒": {"a"}, "灯塔": {"b"}, "酱油": {"a"}}
    assert two_character_words({str(i): "山上的灯塔" for i in range(4)}, ["灯塔", "河流"], 10) == {}


def test_a_mixed_sentence_begins_in_chinese_and_ends_in_english() -> None:
    assert mixed_sentence("磨坊在哪里", "where is the mill") == "磨坊在 the mill"


def test_both_languages_are_stored_of_parallel_texts() -> None:
    chinese = sum(is_chinese_of_two(f"p{i:03}") for i in range(240))
    assert 90 <= chinese <= 150


IDS = [f"question-{i}" for i in range(1000)]


def test_the_half_of_a_question_depends_on_its_id_alone() -> None:
    # Worked out by hand once; figures of earlier runs are worth nothing when these move.
    assert [half_of(each) for each in ("q00-0", "q00-1", "q00-2", "DEV_0_QUERY_0")] == [
        Half.TUNE, Half.REPORT, Half.REPORT, Half.REPORT,
    ]  # fmt: skip


def test_the_halves_are_about_as_large_as_each_other() -> None:
    assert 450 <= sum(half_of(each) is Half.TUNE for each in IDS) <= 550


def test_a_sample_does_not_depend_on_the_order_of_the_ids_and_takes_from_both_halves() -> None:
    assert drawn(IDS, 50) == drawn(reversed(IDS), 50) < drawn(IDS, 51)
    assert {half_of(each) for each in drawn(IDS, 20)} == {Half.TUNE, Half.REPORT}


@given(st.sets(st.text(), max_size=20), st.none() | st.integers(0, 30))
def test_a_sample_is_as_large_as_it_may_be(ids: set[str], most: int | None) -> None:
    taken = drawn(ids, most)
    assert taken <= ids
    assert len(taken) == (len(ids) if most is None else min(most, len(ids)))
