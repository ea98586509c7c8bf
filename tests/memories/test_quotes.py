"""Sentences that only repeat what is known."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.memories import quoted
from hummock.memories.quoted import Sources, passages

KNOWN = (
    "还款方式是先息后本，利息按月结算。提前还款不收违约金。",
    "The export job runs at 02:00 UTC every night. It does not retry on failure, and writes to the archive bucket.",
    "潮汐木芯沉在海底三百年。它不怕水。",
    "def add(a, b):\n    return a + b\n\nprint(add(1, 2))",
)
QUOTES = (
    "还款方式是先息后本，利息按月结算。",
    "提前还款不收违约金！",
    "还款的方式就是先息后本，利息按月结算",
    "根据记忆：提前还款不收违约金。",
    "As I noted: The export job runs at 02:00 UTC every night.",
    "“潮汐木芯沉在海底三百年。”",
    "THE EXPORT JOB RUNS AT 02:00 UTC EVERY NIGHT",
    "The export job runs at 02:00 UTC every night",
    "```python\ndef add(a, b):\n    return a + b\n```",
    "潮汐木芯，沉在海底三百年；它不怕水。",
    "It does not retry on failure, and writes to the archive bucket. 它不怕水。",
    "- 提前还款不收违约金\n- 它不怕水",
    KNOWN[0] + KNOWN[2],
    f"{KNOWN[1]}\n\n```\n{KNOWN[3]}\n```\n",
)
NEWS = (
    "提前还款收违约金。",
    "还款方式是先本后息，利息按月结算。",
    "The export job runs at 03:00 UTC every night.",
    "It does retry on failure, and writes to the archive bucket.",
    "提前还款不收违约金，但需要提前三天申请。",
    "潮汐木芯沉在海底四百年。",
    "```python\ndef add(a, b):\n    return a - b\n```",
    "```python\nprint(add(1, 2))\ndef add(a, b):\n    return a + b\n```",
    "潮汐木芯沉在海底三百年。它怕水。",
    "The export job runs at 02:00 UTC every night. Except on Sundays.",
    "违约金不收提前还款",
    "利息按月结算，潮汐木芯沉在海底。",
    "No.",
    "不收。",
    "It writes to the archive bucket.",
    "根据记忆",
)


def is_quoted(text: str, *known: str) -> bool:
    """True if the text has content, and none of it is new."""
    said, sources = list(passages(text)), Sources(known or KNOWN)
    return bool(said) and all(map(sources.quote, said))


@pytest.mark.parametrize("text", QUOTES)
def test_what_repeats_memories_is_a_quote(text: str) -> None:
    """1.1-14."""
    assert is_quoted(text)


@pytest.mark.parametrize("text", NEWS)
def test_what_says_more_or_something_else_is_none(text: str) -> None:
    """1.1-14."""
    assert not is_quoted(text)


@pytest.mark.parametrize("bar", [0.1, 0.4, 0.8, 1.0])
def test_no_bar_lets_news_pass_for_a_quote(bar: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """1.1-14."""
    monkeypatch.setattr(quoted, "LEAST_SHARED", bar)
    assert not any(map(is_quoted, NEWS))


@pytest.mark.parametrize("text", ["", " \n", "……", "👍", "```\n```", "As I noted:"])
def test_what_says_nothing_is_no_quote(text: str) -> None:
    """1.1-14."""
    assert list(passages(text)) == []


def test_without_memories_nothing_is_a_quote() -> None:
    """1.1-14."""
    sources = Sources()
    assert not any(sources.quote(passage) for text in QUOTES for passage in passages(text))


@given(st.lists(st.text(alphabet="潮汐木芯不怕水ab 。.，\n\ud800", max_size=30), max_size=4))
def test_every_text_quotes_itself(texts: list[str]) -> None:
    """1.1-14."""
    sources = Sources(texts)
    assert all(sources.quote(passage) for text in texts for passage in passages(text))


@given(st.text(), st.text())
def test_any_two_texts_can_be_compared(text: str, known: str) -> None:
    """1.1-14."""
    sources = Sources([known])
    assert all(isinstance(sources.quote(passage), bool) for passage in passages(text))


def test_sentences_of_memories_in_any_order_are_quotes_and_one_more_is_news() -> None:
    """1.1-14."""
    sentences = ["还款方式是先息后本", "提前还款不收违约金", "潮汐木芯沉在海底三百年", "它不怕水"]
    draw = random.Random(7)  # noqa: S311 - a seed, not a secret
    for _ in range(50):
        draw.shuffle(sentences)
        text = "。".join(sentences[: draw.randint(1, 4)])
        assert is_quoted(text)
        assert not is_quoted(f"{text}。灯塔在东岸。")


@pytest.mark.parametrize("unit", ["啊", "a ", "a. ", "。", "```\n", "a,", "a:\n", "```a\nb\n", "不a"])
def test_a_word_over_and_over_is_known_by_few_sentences(unit: str) -> None:
    """1.1-14: however long a text is, a passage is compared with few sentences."""
    text = unit * 20_000
    sources = Sources([text])
    assert all(sources.quote(passage) for passage in list(passages(text))[:50])
