"""Turns whose answers quote memories (1.1-14)."""

from __future__ import annotations

import random
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.core.deadline import Deadline, NobodyWaits
from hummock.core.memory import DomainKnowledge, Draft, LearningRecord, LearnStatus, MemoryKind, Payload
from hummock.core.session import LearnedTurn
from hummock.memories import quoted
from hummock.memories.learn_turn import LearnTurn
from hummock.memories.preparation import Preparation
from hummock.memories.quoted import MOST_SOURCE_CHARACTERS, Quoted, Sources, passages
from hummock.memories.sessions import Sessions
from hummock.text.tokens import EstimatedTokens
from tests.memories.commands import creation, turn
from tests.sure import sure
from tests.workplace import Workplace, note

FACTS = (
    "潮汐木芯沉在海底三百年。它不怕水。",
    "The export job runs at 02:00 UTC every night. It does not retry on failure.",
    "还款方式是先息后本，利息按月结算。提前还款不收违约金。",
    "雾灯只在北岸点亮。The lamp burns whale oil.",
)
SENTENCES = tuple(
    sentence.strip() for fact in FACTS for sentence in fact.replace("。", "。\n").replace(". ", ".\n").splitlines()
)
TURNS = 150


class Talk:
    """A project with facts and a session."""

    def __init__(self, place: Workplace) -> None:
        numbers = count()
        make_id = lambda: f"made-{next(numbers)}"  # noqa: E731
        self.place = place
        place.teach(*(note(fact, f"fact-{number}") for number, fact in enumerate(FACTS)))
        self.sessions = Sessions(place.store, place.clock, make_id)
        preparation = Preparation(place.embedder, EstimatedTokens(), make_id)
        self.learn_turn = LearnTurn(place.store, preparation, place.clock, make_id, (), lambda project: None)
        self.sessions.create(creation())

    def turn(self, answer: str, *used_ids: str, session_id: str = "s", message_id: str = "") -> LearnedTurn:
        ids = ("", message_id)
        return self.learn_turn(turn("what do you know of Lima", answer, *used_ids, session_id=session_id, ids=ids))


@pytest.fixture
def talk(work: Workplace) -> Talk:
    return Talk(work)


@pytest.mark.long
def test_turns_that_quote_memories_store_no_answer(talk: Talk) -> None:
    """1.1-14, S4-38: growth from quotes is 0."""
    draw = random.Random(11)  # noqa: S311 - a seed, not a secret
    before = stored(talk)
    for number in range(TURNS):
        answer = "\n".join(draw.sample(SENTENCES, draw.randint(1, 3)))
        used = [f"fact-{draw.randrange(len(FACTS))}"] if number % 2 else []
        learned = talk.turn(answer, *used)
        assert (learned.assistant.status, learned.assistant.memory_id) == (LearnStatus.QUOTED, "")
    assert stored(talk) - before == TURNS  # the users' sides
    assert talk.sessions.get("p", "s").message_count == 2 * TURNS


def stored(talk: Talk) -> int:
    return sum(sure(talk.place.store.project("p")).kinds.values())


def test_what_adds_something_or_is_said_again_or_has_no_words_quotes_nothing(talk: Talk) -> None:
    """1.1-14. Nothing new is lost. Turns of a session are never merged."""
    answer = f"{FACTS[0]} 它的价格是九枚贝币。"
    learned = talk.turn(answer, "fact-0")
    assert learned.assistant.status is LearnStatus.CREATED
    memory = sure(talk.place.get(learned.assistant.memory_id))
    assert memory.payload is not None
    assert memory.payload.content == answer
    assert [talk.turn("Lima").assistant.status for _ in range(3)] == [LearnStatus.CREATED] * 3
    assert talk.turn("👍").assistant.status is LearnStatus.SMALL_TALK


def test_an_answer_is_quoted_by_whatever_memory_or_session_said_it_and_stays_so(talk: Talk) -> None:
    """1.1-14. What was recalled is not learnt again, whoever said it."""
    for used in ((), ("fact-1",), ("no such memory", "fact-0")):
        assert talk.turn(SENTENCES[2], *used).assistant.status is LearnStatus.QUOTED
    talk.sessions.create(creation("t"))
    assert talk.turn("灯塔在东岸。").assistant.status is LearnStatus.CREATED
    assert talk.turn("灯塔在东岸。", session_id="t").assistant.status is LearnStatus.QUOTED
    assert [talk.turn(SENTENCES[0], message_id="a").assistant.status for _ in range(2)] == [LearnStatus.QUOTED] * 2
    record = LearningRecord(question="Who keeps the lamp?", answer="The northern guild keeps it.")
    domain = DomainKnowledge(domain="潮汐", summary="潮汐一日两次。")
    talk.place.teach(
        Draft(id="r", kind=MemoryKind.LEARNING_RECORD, payload=Payload(detail=record)),
        Draft(id="d", kind=MemoryKind.DOMAIN_KNOWLEDGE, payload=Payload(detail=domain)),
    )
    for answer in ("The northern guild keeps it.", "潮汐一日两次。"):
        assert talk.turn(answer).assistant.status is LearnStatus.QUOTED


def test_an_embedding_is_not_made_of_a_quote(talk: Talk) -> None:
    talk.place.embedder.embedded.clear()
    talk.turn(SENTENCES[0])
    assert talk.place.embedder.embedded == ["what do you know of Lima"]


@pytest.mark.long
def test_a_turn_reads_no_more_of_what_it_used_than_a_limit(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    """D2: five words with 200 used memories took minutes."""
    long = [note(f"{name} says. " * (MOST_SOURCE_CHARACTERS // 30), f"long-{name}") for name in range(8)]
    talk.place.teach(*long)
    read: list[int] = []
    add = Sources.add

    def counting(sources: Sources, text: str) -> None:
        read.append(len(text))
        add(sources, text)

    monkeypatch.setattr(Sources, "add", counting)
    talk.turn("Nothing of this was said before.", *(one.id for one in long))
    longest = max(len(one.payload.content) for one in long)
    assert MOST_SOURCE_CHARACTERS <= sum(read) <= 2 * MOST_SOURCE_CHARACTERS + 8 * longest
    assert len(read) < 2 * len(long)


def test_a_turn_for_which_nobody_waits_is_not_read_to_its_end(talk: Talk) -> None:
    """D2, V6 of the reliability notes."""
    deadline = Deadline()
    deadline.end(NobodyWaits())
    with pytest.raises(NobodyWaits):
        Quoted(talk.place.store)("p", "s", FACTS[0], ["fact-0", "fact-1"], deadline)
    assert talk.turn(FACTS[0], "fact-0").assistant.status is LearnStatus.QUOTED


# Sentences that only repeat what is known (1.1-14).


KNOWN = (
    "还款方式是先息后本，利息按月结算。提前还款不收违约金。",
    "The export job runs at 02:00 UTC every night. It does not retry on failure, and writes to the archive bucket.",
    "潮汐木芯沉在海底三百年。它不怕水。",
    "def add(a, b):\n    return a + b\n\nprint(add(1, 2))",
)
QUOTES = (
    "还款方式是先息后本，利息按月结算。", "提前还款不收违约金！", "还款的方式就是先息后本，利息按月结算",
    "根据记忆：提前还款不收违约金。", "As I noted: The export job runs at 02:00 UTC every night.",
    "“潮汐木芯沉在海底三百年。”", "THE EXPORT JOB RUNS AT 02:00 UTC EVERY NIGHT",
    "The export job runs at 02:00 UTC every night", "```python\ndef add(a, b):\n    return a + b\n```",
    "潮汐木芯，沉在海底三百年；它不怕水。",
    "It does not retry on failure, and writes to the archive bucket. 它不怕水。", "- 提前还款不收违约金\n- 它不怕水",
    KNOWN[0] + KNOWN[2], f"{KNOWN[1]}\n\n```\n{KNOWN[3]}\n```\n",
)  # fmt: skip
NEWS = (
    "提前还款收违约金。", "还款方式是先本后息，利息按月结算。", "The export job runs at 03:00 UTC every night.",
    "It does retry on failure, and writes to the archive bucket.", "提前还款不收违约金，但需要提前三天申请。",
    "潮汐木芯沉在海底四百年。", "```python\ndef add(a, b):\n    return a - b\n```",
    "```python\nprint(add(1, 2))\ndef add(a, b):\n    return a + b\n```", "潮汐木芯沉在海底三百年。它怕水。",
    "The export job runs at 02:00 UTC every night. Except on Sundays.", "违约金不收提前还款",
    "利息按月结算，潮汐木芯沉在海底。", "No.", "不收。", "It writes to the archive bucket.", "根据记忆",
)  # fmt: skip


def is_quoted(text: str, *known: str) -> bool:
    """True if the text has content, and none of it is new."""
    said, sources = list(passages(text)), Sources(known or KNOWN)
    return bool(said) and all(map(sources.quote, said))


@pytest.mark.parametrize(("text", "is_quote"), [*((text, True) for text in QUOTES), *((text, False) for text in NEWS)])
def test_what_repeats_memories_is_a_quote_and_what_says_anything_more_is_none(text: str, is_quote: bool) -> None:
    assert is_quoted(text) is is_quote


@pytest.mark.parametrize("bar", [0.1, 0.4, 0.8, 1.0])
def test_no_bar_lets_news_pass_for_a_quote(bar: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quoted, "LEAST_SHARED", bar)
    assert not any(map(is_quoted, NEWS))


@pytest.mark.parametrize("text", ["", " \n", "……", "👍", "```\n```", "As I noted:"])
def test_what_says_nothing_is_no_quote(text: str) -> None:
    assert list(passages(text)) == []


def test_without_memories_nothing_is_a_quote() -> None:
    sources = Sources()
    assert not any(sources.quote(passage) for text in QUOTES for passage in passages(text))


@given(st.lists(st.text(alphabet="潮汐木芯不怕水ab 。.，\n\ud800", max_size=30), max_size=4))
def test_every_text_quotes_itself(texts: list[str]) -> None:
    sources = Sources(texts)
    assert all(sources.quote(passage) for text in texts for passage in passages(text))


@given(st.text(), st.text())
def test_any_two_texts_can_be_compared(text: str, known: str) -> None:
    sources = Sources([known])
    assert all(isinstance(sources.quote(passage), bool) for passage in passages(text))


def test_sentences_of_memories_in_any_order_are_quotes_and_one_more_is_news() -> None:
    sentences = ["还款方式是先息后本", "提前还款不收违约金", "潮汐木芯沉在海底三百年", "它不怕水"]
    draw = random.Random(7)  # noqa: S311 - a seed, not a secret
    for _ in range(50):
        draw.shuffle(sentences)
        text = "。".join(sentences[: draw.randint(1, 4)])
        assert is_quoted(text)
        assert not is_quoted(f"{text}。灯塔在东岸。")


@pytest.mark.long
@pytest.mark.parametrize("unit", ["啊", "a ", "a. ", "。", "```\n", "a,", "a:\n", "```a\nb\n", "不a"])
def test_a_word_over_and_over_is_known_by_few_sentences(unit: str) -> None:
    """1.1-14: however long a text is, a passage is compared with few sentences."""
    text = unit * 20_000
    sources = Sources([text])
    assert all(sources.quote(passage) for passage in list(passages(text))[:50])
