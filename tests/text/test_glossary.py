"""Chinese texts in English words, by a glossary written here and by the package's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.text import glossary
from hummock.text.glossary import Gloss, GlossaryDamaged, gloss, read_glossary
from hummock.text.inverse_glossary import inverse_gloss, inverse_of
from hummock.text.question import Question
from tests.sure import sure

SMALL = read_glossary(
    "# small.v1\n缓存\t900\tcache:0.9\n失效\t300\texpire:0.6\tinvalidate:0.15\n穿透\t20\tpenetration:0.8\n"
    "缓存穿透\t30\tcache penetration:1\n单元\t200\tunit:0.5\n测试\t900\ttest:0.9\n元\t50\tmeta:0.3\n读\t100\tread:1\n"
)


def words(text: str) -> str:
    found = gloss(Question(text), SMALL)
    return "" if found is None else found.text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("缓存失效了怎么办", "cache expire"),
        ("缓存穿透是什么", "cache penetration"),
        ("单元测试", "unit test"),
        ("读缓存", "read cache"),
        ("测试缓存的测试", "test cache"),
        # Question words and particles say nothing; names and Latin words stay where they stand.
        ("什么时候会把缓存失效", "cache expire"),
        ("parse_date 的缓存 TTL，用 foo.Bar::baz", "parse_date cache TTL foo.Bar baz"),
        ("请问这个是什么，在哪里？", ""),
        # A character that means too many things is no term; nor is there a gloss without Chinese.
        ("元", ""),
        ("where is the cache invalidated", ""),
        ("", ""),
    ],
)
def test_the_longest_terms_count_and_compounds_fall_into_their_parts(text: str, expected: str) -> None:
    assert words(text) == expected


def test_a_term_is_looked_for_by_all_its_words_the_likeliest_first() -> None:
    found = sure(gloss(Question("失效"), SMALL))
    (concept,) = found.concepts
    assert (concept.source, concept.words) == ("失效", ("expire", "invalidate"))
    assert concept.stems == ("expir", "invalid")
    assert concept.weights == (1.0, 0.25)


@given(st.text(st.sampled_from("缓存失效穿透单元测试读的了吗 abz_.9"), max_size=60))
def test_equal_texts_give_equal_glosses(text: str) -> None:
    found = gloss(Question(text), SMALL)
    assert found == gloss(Question(text), SMALL)
    assert found is None or found.text.split()


def test_the_packages_glossary_knows_the_words_of_software_and_business() -> None:
    found: list[Gloss | None] = [
        gloss(Question(text)) for text in ("逾期还款的罚息怎么算", "线程池满了会怎样", "怎么求逆矩阵")
    ]
    assert [each.text for each in found if each] == [
        "overdue repayment penalty interest compute",
        "thread pool full",
        "inverse matrix",
    ]


def test_a_glossary_of_another_content_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glossary, "GLOSSARY_SHA256", "0" * 64)
    glossary.glossary.cache_clear()
    with pytest.raises(GlossaryDamaged, match=glossary.GLOSSARY_VERSION):
        glossary.glossary()
    glossary.glossary.cache_clear()


def test_a_version_names_the_content() -> None:
    other = read_glossary("# small.v1\n缓存\t900\tcache:0.8\n")
    assert SMALL.version.startswith("small.v1:")
    assert other.version != SMALL.version


# English texts in Chinese words.


INVERSE = inverse_of(
    read_glossary(
        "# small.v1\n缓存\t900\tcache:0.9\n失效\t300\texpire:0.6\tinvalidate:0.15\n过期\t100\texpire:0.9\n"
        "熔断器\t30\tcircuit breaker:1\n电路\t30\tcircuit:0.8\n读\t100\tread:1\n"
    )
)


def test_words_are_found_in_every_form_and_phrases_before_words() -> None:
    for text, expected in (("Where are caches?", "缓存"), ("the circuit breaker of a circuit", "熔断器 电路")):
        assert sure(inverse_gloss(Question(text), INVERSE)).text == expected


def test_of_several_terms_the_likeliest_comes_first_and_all_are_looked_for() -> None:
    found = sure(inverse_gloss(Question("expired"), INVERSE))
    (concept,) = found.concepts
    assert (concept.source, concept.words) == ("expired", ("失效", "过期"))
    assert (concept.stems, concept.weights) == (("失效", "过期"), (1.0, 0.5))


def test_the_pairs_of_a_long_term_share_its_weight() -> None:
    found = sure(inverse_gloss(Question("circuit breaker"), INVERSE))
    assert (found.concepts[0].stems, found.concepts[0].weights) == (("熔断", "断器"), (0.5, 0.5))


def test_question_words_and_terms_of_one_character_say_nothing() -> None:
    assert [inverse_gloss(Question(text), INVERSE) for text in ("where is the read", "", "缓存")] == [None] * 3
