"""Chinese questions for what is written in English, with the real store and toy models that know letters alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace as replaced
from pathlib import Path

import numpy as np
import pytest

from bench.toy_models import build_tiny
from hummock.core.candidates import FoundBy
from hummock.core.embedding import Across, Calibration
from hummock.core.memory import CodeFragment, DomainKnowledge, Draft, Filter, MemoryKind, Payload
from hummock.core.recall import KeywordMode, Preset, Recalled, RecallPath
from hummock.models import PairDescription, open_embedder
from hummock.ports.models import Embedder
from hummock.recall import bridge
from hummock.recall.bridge import OF_AS_SIMILAR, credit_of
from tests.desk import Desk, ids, note
from tests.fakes import FakeClock
from tests.store.opening import opened

QUESTION = "逾期还款的罚息怎么计算"
ENGLISH = "penalty interest is computed on an overdue repayment"
OTHERS = ("the harbour is deep", "bread is baked in the morning", "a lighthouse shines at night")
CHINESE = ("港口很深，大船可以停靠", "面包师清晨烤面包", "灯塔在夜里发光", "逾期的还款按日计息", "利息由本金和利率得出")


def code(text: str, memory_id: str) -> Draft:
    payload = Payload(content=text, detail=CodeFragment(path=f"{memory_id}.py", language="python"))
    return Draft(id=memory_id, kind=MemoryKind.CODE_FRAGMENT, payload=payload)


@pytest.fixture(scope="module")
def pair_embedder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedder]:
    """Two models, of which a Chinese question asks the first alone."""
    directory = tmp_path_factory.mktemp("models")
    tiny = build_tiny(directory)
    pair = PairDescription(
        first=tiny,
        second=replaced(tiny, max_tokens=64),
        first_weight_latin=0.2,
        first_weight_han=1.0,
        calibration=Calibration(unrelated_latin=0.1, unrelated_han=0.1, near_twin_bar=0.95),
    )
    embedder = open_embedder(pair, directory, slots=1)
    yield embedder
    embedder.close()


@pytest.fixture
def pair_desk(tmp_path: Path, pair_embedder: Embedder) -> Iterator[Desk]:
    clock = FakeClock()
    with opened(tmp_path, clock=clock, space=pair_embedder.space) as store:
        yield Desk(directory=tmp_path, store=store, embedder=pair_embedder, clock=clock)


class SaysNothing:
    """Terms of a project in which nothing is glossed."""

    def gloss(self, text: str) -> None:
        return None

    inverse_gloss = gloss


def without_glosses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge, "_terms", lambda project: SaysNothing())


def glossed(answer: Recalled) -> dict[str, tuple[str, ...]]:
    return {each.term: each.words for each in answer.receipt.gloss}


def test_words_alone_find_an_english_function(desk: Desk) -> None:
    """The model reads no gloss: code is found by the gloss's words."""
    desk.teach(
        code("def render_button(label):\n    return label", "button"),
        code("def invalidate_cache(key):\n    del entries[key]", "cache"),
        code("def parse_date(text):\n    return text", "date"),
    )
    answer = desk.recall("缓存什么时候失效", preset=Preset.AGENT)
    assert ids(answer)[0] == "cache"
    assert glossed(answer)["缓存"] == ("cache",)
    assert answer.receipt.gloss_version.startswith("zh-en.v1:")
    assert "缓存" in answer.hits[0].matched_terms


def test_an_english_text_is_found_by_what_the_question_means_or_by_words_of_the_gloss(pair_desk: Desk) -> None:
    pair_desk.teach(*(note(text, f"other{n}") for n, text in enumerate(OTHERS)), note(ENGLISH, "answer"))
    answer = pair_desk.recall(QUESTION)
    assert ids(answer)[0] == "answer"
    best, second = answer.hits[:2]
    assert best.similarity > second.similarity + 0.05
    assert best.found_by & FoundBy.VECTOR
    answer = pair_desk.recall(QUESTION, vector=pair_desk.pointing(1))
    assert ids(answer)[0] == "answer"
    assert answer.degraded == ()


def test_english_code_is_found_beside_chinese_texts(pair_desk: Desk) -> None:
    pair_desk.teach(
        *(note(text, f"zh{n}") for n, text in enumerate(CHINESE[:3])),
        code("def penalty_interest(overdue, repayment):\n    return overdue * repayment", "answer"),
        code("def render_button(label):\n    return label", "button"),
    )
    assert ids(pair_desk.recall(QUESTION))[0] == "answer"


def test_chinese_texts_are_ranked_as_without_a_gloss(pair_desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores too: a note in English alongside them changes nothing about theirs."""
    pair_desk.teach(*(note(text, f"zh{n}") for n, text in enumerate(CHINESE)), note("the tide", "en"))
    with_gloss = pair_desk.recall(QUESTION)
    assert glossed(with_gloss)
    without_glosses(monkeypatch)
    without = pair_desk.recall(QUESTION)
    assert not glossed(without)
    own = [{hit.memory.id: (hit.score, hit.similarity) for hit in each.hits} for each in (with_gloss, without)]
    chinese = [name for name in ids(without) if name.startswith("zh")]
    assert [name for name in ids(with_gloss) if name.startswith("zh")] == chinese
    assert {name: own[0][name] for name in chinese} == {name: own[1][name] for name in chinese}


def test_where_all_is_chinese_an_english_question_alone_is_glossed(pair_desk: Desk) -> None:
    """It is found by the translated words, and by the vector of the model that reads Chinese."""
    pair_desk.teach(*(note(text, f"zh{n}") for n, text in enumerate(CHINESE)))
    answer = pair_desk.recall(QUESTION)
    assert (answer.receipt.gloss, answer.receipt.gloss_version) == ((), "")
    answer = pair_desk.recall(ASKED)
    assert ids(answer)[0] == "zh3"
    assert glossed(answer)["repayment"] == ("还款",)


def test_words_of_english_in_chinese_texts_are_no_english_texts(pair_desk: Desk) -> None:
    """The second model is not asked for them."""
    pair_desk.teach(
        note("罚息的英文是 penalty interest 吗", "words"), *(note(text, f"zh{n}") for n, text in enumerate(CHINESE))
    )
    assert glossed(pair_desk.recall(QUESTION)) == {}
    pair_desk.teach(note(ENGLISH, "answer"))
    assert glossed(pair_desk.recall(QUESTION))


def test_kinds_that_are_not_asked_for_are_no_reason_to_gloss(pair_desk: Desk) -> None:
    pair_desk.teach(
        *(note(text, f"zh{n}") for n, text in enumerate(CHINESE)),
        code("def penalty_interest(overdue, repayment):\n    return overdue * repayment", "answer"),
    )
    assert glossed(pair_desk.recall(QUESTION))
    notes = Filter(kinds=frozenset({MemoryKind.NOTE}))
    assert glossed(pair_desk.recall(QUESTION, filter=notes)) == {}
    assert glossed(pair_desk.recall(QUESTION, preset=Preset.CODEX)) == {}


def test_an_english_question_of_english_texts_has_no_gloss(pair_desk: Desk) -> None:
    pair_desk.teach(
        note(ENGLISH, "answer"), note("the german for 利息 is not known to me, nor is it to others", "words")
    )
    assert glossed(pair_desk.recall(ASKED)) == {}


@pytest.mark.parametrize(
    "text", ["how is penalty interest computed", "repayment_of", "请问这是什么", "2024", "利息 of an overdue repayment"]
)
def test_other_questions_have_no_gloss(pair_desk: Desk, text: str) -> None:
    pair_desk.teach(note(ENGLISH, "answer"))
    assert pair_desk.recall(text).receipt.gloss == ()


@pytest.mark.parametrize(
    "fields",
    [
        {"paths": frozenset({RecallPath.VECTOR})},
        {"paths": frozenset({RecallPath.KEYWORD})},
        {"keyword_mode": KeywordMode.SUBSTRING},
    ],
)
def test_who_asks_for_one_path_or_for_substrings_gets_that_alone(pair_desk: Desk, fields: dict[str, object]) -> None:
    """1.1-10: a document's algorithm stays what it is."""
    pair_desk.teach(note(ENGLISH, "answer"), note(CHINESE[3], "zh"))
    assert pair_desk.recall(QUESTION, None, **fields).receipt.gloss == ()


def test_a_word_of_the_gloss_does_not_spare_the_minimum_similarity(pair_desk: Desk) -> None:
    """A translated word is not one of the question's own."""
    pair_desk.teach(note("interest", "weak"), *(note(text, f"other{n}") for n, text in enumerate(OTHERS)))
    assert ids(pair_desk.recall(QUESTION, min_similarity=0.9)) == []


def test_the_same_question_gets_the_same_answer(pair_desk: Desk) -> None:
    pair_desk.teach(*(note(text, f"other{n}") for n, text in enumerate((*OTHERS, *CHINESE, ENGLISH))))
    first, second = ([(hit.memory.id, hit.score) for hit in pair_desk.recall(QUESTION).hits] for _ in range(2))
    assert first == second


ASKED = "how is the overdue repayment computed"


def test_english_texts_are_ranked_as_without_a_gloss(pair_desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    pair_desk.teach(*(note(text, f"en{n}") for n, text in enumerate((*OTHERS, ENGLISH))), note("还款的日子", "zh"))
    with_gloss = pair_desk.recall(ASKED)
    assert glossed(with_gloss)
    without_glosses(monkeypatch)
    without = pair_desk.recall(ASKED)
    own = [{hit.memory.id: hit.similarity for hit in each.hits} for each in (with_gloss, without)]
    english = [name for name in ids(without) if name.startswith("en")]
    assert [name for name in ids(with_gloss) if name.startswith("en")] == english
    assert {name: own[0][name] for name in english} == {name: own[1][name] for name in english}


@pytest.mark.parametrize("text", ["repayment_of", "computeRepayment"])
def test_a_name_of_code_is_not_looked_for_in_chinese(pair_desk: Desk, text: str) -> None:
    pair_desk.teach(*(note(text, f"zh{n}") for n, text in enumerate(CHINESE)))
    assert pair_desk.recall(text).receipt.gloss == ()


def test_code_is_not_taken_for_chinese_by_its_tables(pair_desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    pair_desk.teach(
        code('WORDS = "还款 逾期 利息 本金 贷款 账户 余额 计算 还款日 罚息 宽限期"', "table"),
        code("def compute_repayment(overdue):\n    return overdue", "answer"),
        *(note(text, f"en{n}") for n, text in enumerate(OTHERS)),
        note("灯塔在夜里发光", "zh"),
    )
    with_gloss = pair_desk.recall(ASKED)
    assert glossed(with_gloss)
    without_glosses(monkeypatch)
    answers = (with_gloss, pair_desk.recall(ASKED))
    scores = [{hit.memory.id: hit.score for hit in each.hits if hit.memory.id != "zh"} for each in answers]
    assert len(scores[0]) == 2 + len(OTHERS)
    assert scores[0] == scores[1]


LEDGER = Draft(
    id="domain",
    kind=MemoryKind.DOMAIN_KNOWLEDGE,
    payload=Payload(content="", detail=DomainKnowledge(domain="Ledgerline", aliases=("账脉",), summary="books")),
)


def test_what_the_project_calls_things_in_both_languages_is_glossed(pair_desk: Desk) -> None:
    """S0-10: by the aliases of its domains; another project does not know of them."""
    pair_desk.teach(LEDGER, code("def check_ledgerline(entries):\n    return sum(entries) == 0", "answer"))
    pair_desk.teach(*(code(f"def {name}(label):\n    return label", name) for name in ("button", "date", "retry")))
    answer = pair_desk.recall("账脉怎么校验", preset=Preset.AGENT)
    assert glossed(answer)["账脉"] == ("Ledgerline",)
    assert "+own:" in answer.receipt.gloss_version
    assert next(name for name in ids(answer) if name != "domain") == "answer"


def test_an_english_question_is_glossed_by_the_projects_terms_too(pair_desk: Desk) -> None:
    pair_desk.teach(*(note(text, f"zh{n}") for n, text in enumerate(CHINESE)), note("账脉每晚平一次", "answer"))
    asked = "how often does the ledgerline balance"
    before = pair_desk.recall(asked)
    assert "ledgerline" not in glossed(before)
    pair_desk.teach(LEDGER)
    after = pair_desk.recall(asked)
    assert glossed(after)["ledgerline"] == ("账脉",)
    was, now = ({hit.memory.id: hit.similarity for hit in each.hits} for each in (before, after))
    assert now["answer"] - now["zh0"] > was["answer"] - was["zh0"] + 0.05


# One model that reads all languages


@contextmanager
def one_model_desk(directory: Path, across: Across | None) -> Iterator[Desk]:
    """A desk over the toy model, which reads across languages or not."""
    tiny, clock = replaced(build_tiny(directory / "models"), across=across), FakeClock()
    embedder = open_embedder(tiny, directory / "models", slots=1)
    with opened(directory / "store", clock=clock, space=embedder.space) as store:
        yield Desk(directory=directory, store=store, embedder=embedder, clock=clock)
    embedder.close()


@pytest.mark.parametrize(("question", "text"), [(QUESTION, ENGLISH), (ASKED, CHINESE[3])])
def test_prose_in_the_other_language_is_found_with_the_gloss_by_a_model_that_reads_both(
    tmp_path: Path, question: str, text: str
) -> None:
    """What decides is the space: a model that does not read across gets no words of the gloss for prose."""
    for across in (Across(unrelated=0.1), None):
        with one_model_desk(tmp_path / str(across is None), across) as desk:
            desk.teach(note(text, "answer"), note("the harbour 港口", "mixed"))
            assert bool(glossed(desk.recall(question))) is (across is not None)


def test_similarity_across_languages_is_scaled_and_within_one_it_is_not(tmp_path: Path) -> None:
    """Without words of a gloss a text in the other language is as similar as the gain says."""
    found: list[dict[str, float]] = []
    for gain in (1.0, 2.0):
        with one_model_desk(tmp_path / str(gain), Across(unrelated=0.1, gain=gain)) as desk:
            desk.teach(note("qwxz 灯", "chinese"), note("a b c d", "english"), note("灯塔灯塔 z", "lamps"))
            hits = desk.recall("zxwq", min_similarity=-1.0).hits
            found.append({hit.memory.id: hit.similarity for hit in hits})
    once, twice = found
    assert twice["english"] == once["english"]
    assert twice["lamps"] == pytest.approx(2 * once["lamps"], abs=1e-5)


@pytest.mark.parametrize(
    ("question", "own", "foreign", "is_credited"),
    [
        ("港口很深", "港口很远", "nobody lives there at night", True),
        ("灯塔 lighthouse 夜里 shines 发光 night", "灯塔夜里无人", OTHERS[2], False),
    ],
)
def test_a_text_in_the_other_language_is_credited_with_words_unless_the_query_has_them(
    tmp_path: Path, question: str, own: str, foreign: str, is_credited: bool
) -> None:
    """What it is credited with is no score of its own words."""
    ratios: list[float] = []
    for words in (0.0, 1.0):
        with one_model_desk(tmp_path / str(words), Across(unrelated=0.0, words=words)) as desk:
            desk.teach(note(own, "own"), note(foreign, "foreign"))
            hits = {hit.memory.id: hit for hit in desk.recall(question, min_similarity=-1.0).hits}
            ratios.append(hits["foreign"].score / hits["own"].score)
            scores = [hits[each].keyword_score for each in ("own", "foreign")]
            assert scores[0] > 0
            assert is_credited is (scores[1] == 0)
    before, after = ratios
    assert after > before + 0.05 if is_credited else after == pytest.approx(before, abs=0.02)


HALF = Across(unrelated=0.0, words=0.5, as_similar=0.7)


@pytest.mark.parametrize(
    ("similarity", "scores", "credit"),
    [
        ((0.9, 0.4, 0.3), (0.0, 8.0, 2.0), 0.5 * 8.0),  # none in the query's language is about as similar
        ((0.45, 0.2, 0.9), (0.0, 8.0, 0.0), 0.0),  # one is, and does not hold the words
        ((0.6, 0.6, 0.1), (0.0, 4.0, 8.0), OF_AS_SIMILAR * 4.0),  # one is, and holds them
        ((0.6, 0.5, 0.1), (0.0, 8.0, 0.0), 0.5 * 8.0),  # it holds so many that the share is less
        ((math.nan, 0.5, 0.1), (0.0, 8.0, 2.0), 0.0),
        ((0.0, 0.0, 0.0), (0.0, 8.0, 2.0), 0.0),
        ((0.9, 0.2, 0.1), (math.nan, math.nan, math.nan), 0.0),
    ],
)
def test_a_credit_is_bounded_by_what_texts_about_as_similar_have(
    similarity: tuple[float, ...], scores: tuple[float, ...], credit: float
) -> None:
    """The first text is in the other language, the others are in the query's own."""
    of_each = np.array([scores, scores], np.float32)
    found = credit_of(of_each, np.array([True, False, False]), np.array(similarity, np.float32), HALF)
    assert found.dtype == np.float32
    assert found == pytest.approx(np.array([[credit, 0.0, 0.0]] * 2))


@pytest.mark.parametrize(
    ("han_share", "gain", "words"), [(0.0, 1.6, 0.7), (1.0, 1.6, 0.7), (0.75, 1.3, 0.7), (0.7, 1.24, 0), (0.5, 1, 0)]
)
def test_a_query_in_both_languages_needs_no_gain(han_share: float, gain: float, words: float) -> None:
    found = Across(unrelated=0.1, gain=1.6, words=0.7).of_query(han_share)
    assert (found.unrelated, found.gain, found.words) == pytest.approx((0.1, gain, words))
    assert Across(unrelated=0.05).of_query(han_share) == Across(unrelated=0.05)
