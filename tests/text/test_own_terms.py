"""A project's own names join the glossary: in both scripts, and nothing else."""

from __future__ import annotations

import pytest

from hummock.text.glossary import gloss, glossary
from hummock.text.inverse_glossary import MAX_TERMS, NO_OWN_TERMS, inverse_gloss, own_terms
from hummock.text.question import Question
from tests.sure import sure

LEDGER = ("Ledgerline", "账脉", "ledger line")


def test_a_term_is_glossed_by_the_names_beside_it_and_what_it_consists_of_is_not() -> None:
    """S0-10."""
    said = sure(own_terms([LEDGER]).gloss("账脉的校验在哪里"))
    first, second = said.concepts
    assert (first.source, first.words) == ("账脉", ("Ledgerline", "ledger line"))
    assert second.source == "校验"
    assert said.text.split()[0] == "Ledgerline"
    assert gloss(Question("账脉")) is None


def test_the_projects_words_come_before_those_of_the_glossary() -> None:
    known = glossary().words["还款"]
    said = sure(own_terms([("Amortizer", "还款")]).gloss("还款"))
    assert said.concepts[0].words == ("Amortizer", *(word for word, _ in known))[:3]
    same = sure(own_terms([(known[0][0].title(), "还款")]).gloss("还款"))
    assert [word.casefold() for word in same.concepts[0].words].count(known[0][0]) == 1


def test_the_reverse_is_glossed_too_and_longest_first() -> None:
    terms = own_terms([LEDGER, ("repayment plan", "分期簿")])
    said = sure(terms.inverse_gloss("where is the Ledgerline of a repayment plan"))
    assert [(each.source, each.words[0]) for each in said.concepts] == [
        ("Ledgerline", "账脉"),
        ("repayment plan", "分期簿"),
    ]
    assert said.is_chinese
    assert inverse_gloss(Question("Ledgerline")) is None


@pytest.mark.parametrize(
    "names",
    [
        ("Ledgerline", "ledger"),
        ("账脉", "账本"),
        ("X", "账脉"),
        ("Ledgerline", "账"),
        ("Ledgerline", "账脉的账脉的账脉"[:9] + "账"),
        ("Ledgerline", "使用"),
        ("ledger-line_of.the books and more", "账脉"),
        (),
    ],
)
def test_what_is_no_pair_of_a_term_and_a_word_says_nothing(names: tuple[str, ...]) -> None:
    assert own_terms([names]) is NO_OWN_TERMS


def test_without_terms_it_is_the_packages_glossary() -> None:
    assert NO_OWN_TERMS.gloss("逾期还款") == gloss(Question("逾期还款"))
    assert NO_OWN_TERMS.inverse_gloss("overdue repayment") == inverse_gloss(Question("overdue repayment"))


def test_the_version_tells_which_terms_they_are() -> None:
    """1.1-1: a receipt names what it was glossed by."""
    versions = {
        said.version
        for said in (
            own_terms([LEDGER]).gloss("账脉"),
            own_terms([("Ledgerline", "账脉")]).gloss("账脉"),
            own_terms([LEDGER]).inverse_gloss("Ledgerline"),
        )
        if said is not None
    }
    assert len(versions) == 2
    assert all(version.startswith(f"{glossary().version}+own:") for version in versions)


def test_a_project_has_so_many_at_most_and_three_words_each() -> None:
    many = own_terms([(f"word{number}", chr(0x4E00 + number) * 2) for number in range(MAX_TERMS + 5)])
    assert len(many.words) == MAX_TERMS
    assert own_terms([("aa", "bb", "cc", "dd", "账脉")]).words == {"账脉": ("aa", "bb", "cc")}
