"""English texts in Chinese words."""

from __future__ import annotations

from hummock.text.glossary import read_glossary
from hummock.text.inverse_glossary import inverse_gloss, inverse_of

SMALL = inverse_of(
    read_glossary(
        "# small.v1\n"
        "缓存\t900\tcache:0.9\n"
        "失效\t300\texpire:0.6\tinvalidate:0.15\n"
        "过期\t100\texpire:0.9\n"
        "熔断器\t30\tcircuit breaker:1\n"
        "电路\t30\tcircuit:0.8\n"
        "读\t100\tread:1\n"
    )
)


def words(text: str) -> str:
    found = inverse_gloss(text, SMALL)
    return "" if found is None else found.text


def test_words_are_found_in_every_form_and_phrases_before_words() -> None:
    assert words("Where are caches?") == "缓存"
    assert words("the circuit breaker of a circuit") == "熔断器 电路"


def test_of_several_terms_the_likeliest_comes_first_and_all_are_looked_for() -> None:
    found = inverse_gloss("expired", SMALL)
    assert found is not None
    (concept,) = found.concepts
    assert (concept.source, concept.words) == ("expired", ("失效", "过期"))
    assert (concept.stems, concept.weights) == (("失效", "过期"), (1.0, 0.5))


def test_the_pairs_of_a_long_term_share_its_weight() -> None:
    found = inverse_gloss("circuit breaker", SMALL)
    assert found is not None
    assert (found.concepts[0].stems, found.concepts[0].weights) == (("熔断", "断器"), (0.5, 0.5))


def test_question_words_and_terms_of_one_character_say_nothing() -> None:
    assert inverse_gloss("where is the read", SMALL) is None
    assert inverse_gloss("", SMALL) is None
    assert inverse_gloss("缓存", SMALL) is None


def test_coverage_is_the_share_of_the_words_that_say_something() -> None:
    found = inverse_gloss("the cache of harbours", SMALL)
    assert found is not None
    assert (found.coverage, found.is_chinese) == (0.5, True)
