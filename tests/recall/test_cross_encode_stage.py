"""The cross-encoder's stage from one end to the other: a real store, and a reranker whose time the test holds."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from bench import toy_models
from hummock import models
from hummock.core.memory import MemoryIndex
from hummock.core.recall import CrossEncoding, Preset, Recalled, RecallPath, RecallQuery
from hummock.ports.models import Pair, Reranker
from hummock.recall.cache import CachedRecall
from hummock.recall.pipeline import Recall
from hummock.recall.rerank import AUTO_PAIRS, LONGEST_S, MOST_PAIRS, CrossEncode
from hummock.recall.stage_budget import RESERVE_S
from tests.desk import Desk, domain, fragment, ids, note
from tests.fakes import FakeClock
from tests.snapshots import over


class CountingReranker:
    """Reads how often "wanted" stands in a text; every pair takes a second, unless the test says otherwise."""

    name = "counting"

    def __init__(self, clock: FakeClock) -> None:
        self.least_s = 1.0
        self.asked: list[str] = []
        self.read: list[str] = []
        self._clock = clock
        self._texts: dict[tuple[int, ...], str] = {}

    def pairs(self, query: str, texts: Sequence[str]) -> list[Pair]:
        self.asked.append(query)
        self._texts |= {(place,): text for place, text in enumerate(texts)}
        return [Pair(tokens=(place,), token_types=(0,), expected_s=self.least_s) for place in range(len(texts))]

    def scores(self, pairs: Sequence[Pair], until_s: float | None) -> list[float]:
        texts = [self._texts[pair.tokens] for pair in pairs]
        self._clock.move(self.least_s * len(texts))
        self.read += texts
        return [min(1.0, text.count("wanted") / 10) for text in texts]

    def left_out(self) -> None:
        self.least_s /= 2


class BrokenReranker(CountingReranker):
    def scores(self, pairs: Sequence[Pair], until_s: float | None) -> list[float]:
        raise RuntimeError("out of memory")


@pytest.fixture
def reranker(desk: Desk) -> CountingReranker:
    desk.embedder.embed_query("harbour")  # known from here on: an inference would take real time
    return CountingReranker(desk.clock)


def teach(desk: Desk, memories: int) -> None:
    """The harbour's notes; the higher the number, the more often it is wanted."""
    desk.teach(
        *(note(f"harbour {'wanted ' * number}{'quay ' * (30 - number)}", f"n{number:02}") for number in range(memories))
    )


def recall(
    desk: Desk, reranker: Reranker | None, mode: CrossEncoding = CrossEncoding.AUTO, **fields: object
) -> Recalled:
    stage = CrossEncode(reranker, mode, desk.clock)
    fields = {"project": "p", "text": "harbour", "near_twin_bar": 2.0, "relevance_weight": 1.0, **fields}
    return over(desk.store, Recall(desk.embedder, desk.clock, stage))(RecallQuery(**fields))  # type: ignore[arg-type] # its fields


def reasons(recalled: Recalled) -> list[tuple[str, str]]:
    return [(each.path, each.reason) for each in recalled.degraded]


def test_what_the_cross_encoder_prefers_comes_first(desk: Desk, reranker: CountingReranker) -> None:
    teach(desk, 8)
    answer = recall(desk, reranker)
    assert ids(answer) == [f"n{number:02}" for number in range(7, -1, -1)]
    assert [hit.cross_encoder_score for hit in answer.hits] == pytest.approx(
        [number / 10 for number in range(7, -1, -1)]
    )
    assert (answer.receipt.cross_encoded, answer.degraded) == (8, ())
    assert "cross_encode" in [stage.stage for stage in answer.receipt.stages]


def test_off_reads_nothing(desk: Desk, reranker: CountingReranker) -> None:
    teach(desk, 4)
    answer = recall(desk, reranker, cross_encoding=CrossEncoding.OFF)
    assert (reranker.read, answer.receipt.cross_encoded, answer.degraded) == ([], 0, ())
    assert [hit.cross_encoder_score for hit in answer.hits] == [0] * 4
    assert ids(answer) == ids(desk.recall("harbour", near_twin_bar=2.0, relevance_weight=1.0))


def test_auto_reads_the_best_twenty_and_on_all_candidates(desk: Desk, reranker: CountingReranker) -> None:
    teach(desk, 25)
    reranker.least_s = 0.125
    auto = recall(desk, reranker, top_k=25)
    everything = recall(desk, reranker, top_k=25, cross_encoding=CrossEncoding.ON)
    assert (auto.receipt.cross_encoded, everything.receipt.cross_encoded) == (AUTO_PAIRS, 25)
    assert sorted(ids(auto)) == sorted(ids(everything))
    assert (auto.degraded, everything.degraded) == ((), ())


def test_the_pool_fits_the_time_left_and_the_answer_says_so(desk: Desk, reranker: CountingReranker) -> None:
    teach(desk, 8)
    start = desk.clock.monotonic()
    answer = recall(desk, reranker, until_s=start + 5.5 + RESERVE_S)
    assert desk.clock.monotonic() - start == 5
    assert (len(reranker.read), answer.receipt.cross_encoded) == (5, 5)
    assert reasons(answer) == [("cross_encoder", "DEADLINE")]
    assert len(answer.hits) == 8


def test_a_reranker_hears_that_it_was_taken_for_too_slow(desk: Desk, reranker: CountingReranker) -> None:
    teach(desk, 4)
    answers = [recall(desk, reranker, until_s=desk.clock.monotonic() + 1.75 + RESERVE_S) for _ in range(3)]
    assert [answer.receipt.cross_encoded for answer in answers] == [0, 3, 4]
    assert reranker.least_s == 0.25


def test_no_more_is_read_than_could_be_returned(desk: Desk, reranker: CountingReranker) -> None:
    desk.teach(*(note(f"harbour {number}", f"n{number}") for number in range(MOST_PAIRS + 5)))
    reranker.least_s = 0.015625
    answer = recall(desk, reranker, candidates=500, cross_encoding=CrossEncoding.ON)
    assert (answer.receipt.cross_encoded, answer.degraded) == (MOST_PAIRS, ())


def test_without_a_deadline_it_takes_ten_seconds_at_most_and_the_answer_says_so(
    desk: Desk, reranker: CountingReranker
) -> None:
    teach(desk, 25)
    start = desk.clock.monotonic()
    answer = recall(desk, reranker, cross_encoding=CrossEncoding.ON)
    assert desk.clock.monotonic() - start == LONGEST_S == answer.receipt.cross_encoded
    assert reasons(answer) == [("cross_encoder", "DEADLINE")]


@pytest.mark.parametrize("path", [RecallPath.VECTOR, RecallPath.KEYWORD])
def test_one_path_alone_keeps_its_order_unless_the_request_asks_for_more(
    desk: Desk, reranker: CountingReranker, path: RecallPath
) -> None:
    """1.1-10, 1.1-13: the service's setting does not change what is followed to the letter."""
    teach(desk, 4)
    alone = frozenset({path, RecallPath.DOMAIN})
    for mode in (CrossEncoding.AUTO, CrossEncoding.ON):
        answer = recall(desk, reranker, mode, paths=alone)
        assert (answer.receipt.cross_encoded, answer.degraded) == (0, ())
        assert ids(answer) == ids(recall(desk, None, paths=alone))
    assert recall(desk, reranker, cross_encoding=CrossEncoding.AUTO, paths=alone).receipt.cross_encoded == 4


@pytest.mark.parametrize("left_s", [1.9, 0.0])
def test_without_time_for_two_nothing_is_loaded_and_the_order_stays(
    desk: Desk, reranker: CountingReranker, left_s: float
) -> None:
    teach(desk, 4)
    answer = recall(desk, reranker, until_s=desk.clock.monotonic() + left_s + RESERVE_S)
    assert reranker.read == []
    assert "cross_encode" not in [stage.stage for stage in answer.receipt.stages]
    assert ids(answer) == ids(recall(desk, None))
    assert reasons(answer) == [("cross_encoder", "DEADLINE")]


def test_more_time_reads_more_from_the_front(desk: Desk, reranker: CountingReranker) -> None:
    teach(desk, 8)
    before: list[str] = []
    for seconds in range(2, 9):
        reranker.read.clear()
        recall(desk, reranker, until_s=desk.clock.monotonic() + seconds + 0.5)
        assert reranker.read[: len(before)] == before
        before = [*reranker.read]
    assert len(before) == 8


def test_groups_share_the_time_and_domains_are_not_read(desk: Desk, reranker: CountingReranker) -> None:
    desk.teach(
        *(note(f"harbour {number}", f"n{number}") for number in range(4)),
        *(fragment(f"harbour{number}.py", f"harbour{number}") for number in range(4)),
        *(domain(f"harbour {number}", f"d{number}") for number in range(3)),
    )
    answer = recall(desk, reranker, preset=Preset.CODE, until_s=desk.clock.monotonic() + 6.5)
    assert answer.receipt.cross_encoded == 6
    assert sum("class" in text for text in reranker.read) == 3
    assert not any("一切" in text for text in reranker.read)


def test_the_passage_is_what_was_embedded(desk: Desk, reranker: CountingReranker) -> None:
    desk.teach(fragment("a/harbour.py", "harbour"), fragment("b/quay.py", "quay"))
    recall(desk, reranker)
    assert sorted(reranker.read) == ["a/harbour.py\nclass harbour {}", "b/quay.py\nclass quay {}"]


def test_an_empty_project_and_one_memory_have_nothing_to_read(desk: Desk, reranker: CountingReranker) -> None:
    assert (recall(desk, reranker).hits, reranker.read) == ((), [])
    teach(desk, 1)
    assert recall(desk, reranker).receipt.cross_encoded == 0
    assert recall(desk, reranker).degraded == ()


def test_a_cross_encoder_that_fails_or_is_not_there_costs_its_stage_alone(desk: Desk) -> None:
    teach(desk, 4)
    answer = recall(desk, BrokenReranker(desk.clock))
    assert ids(answer) == ids(recall(desk, None))
    assert reasons(answer) == [("cross_encoder", "CROSS_ENCODER_FAILED")]
    teach(desk, 2)
    assert reasons(recall(desk, None, cross_encoding=CrossEncoding.ON)) == [("cross_encoder", "CROSS_ENCODER_ABSENT")]
    assert recall(desk, None, cross_encoding=CrossEncoding.AUTO).degraded == ()


def test_an_answer_that_a_deadline_cut_is_not_kept(desk: Desk, reranker: CountingReranker) -> None:
    teach(desk, 8)
    stage = CrossEncode(reranker, CrossEncoding.AUTO, desk.clock)
    recalls = Recall(desk.embedder, desk.clock, stage)
    cached = CachedRecall(recalls, desk.store, desk.embedder.space.id, desk.clock)
    query = RecallQuery(project="p", text="harbour")
    hurried = RecallQuery(project="p", text="harbour", until_s=desk.clock.monotonic() + 3.5)
    assert [cached(each).receipt.cross_encoded for each in (hurried, query, query)] == [3, 8, 8]
    assert cached(query).receipt.cached


@pytest.mark.long
def test_the_real_one_orders_by_its_scores(desk: Desk, tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("models")
    model = toy_models.build_tiny_reranker(directory)
    real = models.load_reranker(model, directory / model.name, desk.clock)
    teach(desk, 6)
    answer = recall(desk, real)
    texts = [hit.memory.payload.content for hit in answer.hits if hit.memory.payload]
    scores = real.scores(real.pairs("harbour", texts), None)
    assert [hit.cross_encoder_score for hit in answer.hits] == pytest.approx(scores)
    assert scores == sorted(scores, reverse=True)
    assert [hit.score for hit in answer.hits] == pytest.approx(scores)


def test_a_title_of_its_own_is_read_before_the_text(desk: Desk, reranker: CountingReranker) -> None:
    plain, named = note("harbour wall", "plain"), note("harbour light", "named")
    desk.teach(plain, replace(named, index=MemoryIndex(title="Lamps")))
    recall(desk, reranker)
    assert sorted(reranker.read) == ["Lamps\nharbour light", "harbour wall"]


def test_what_any_path_found_is_read_with_the_original_query_and_then_cut(
    desk: Desk, reranker: CountingReranker
) -> None:
    """S0-13, S0-14, 1.1-7: vector and keyword hits are one list before the cross-encoder, and top_k comes after it."""
    by_vector, by_words = note("quay wanted wanted wanted", "vector"), note("harbour wanted", "words")
    others = [note(f"harbour {number}", f"other{number}") for number in range(3)]
    vectors = [desk.pointing(1), *[desk.pointing(0, 1)] * 4]
    desk.teach(by_vector, by_words, *others, vectors=vectors)
    answer = recall(desk, reranker, vector=desk.pointing(1), top_k=2)
    assert ids(answer) == ["vector", "words"]
    assert (reranker.asked, answer.receipt.cross_encoded) == (["harbour"], 5)
