"""The change that Explain names recalls a lost memory: seeded queries, memories and settings."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from hummock_client.v1 import explain_pb2 as pb
from hummock_client.v1 import memory_pb2
from hummock_client.v1 import recall_pb2 as recall
from tests.service.inputs import fragment, note
from tests.service.running import Stubs

pytestmark = [pytest.mark.long, pytest.mark.storeless]

NOW = 1_700_000_000
ORIGINS = (memory_pb2.ORIGIN_MANUAL, memory_pb2.ORIGIN_USER_INPUT, memory_pb2.ORIGIN_AI_OUTPUT)
AT_LEAST = 0.99


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A recall, and a memory that it does not bring back."""

    request: recall.RecallRequest
    memory_id: str


def made(texts: Sequence[str], codes: Sequence[str], queries: Sequence[str], seed: int) -> list[memory_pb2.Memory]:
    """Memories of several kinds, origins, tags, sessions and ages; with echoes, copies and near-twins among them."""
    draw = Random(seed)  # noqa: S311 - to be repeated, not to be secret
    memories = []
    for number, text in enumerate(texts):
        memory = note(text, id=f"t{number}", origin=draw.choice(ORIGINS), tags=["text"])
        memory.create_time.seconds = NOW - draw.randrange(400 * 86_400)
        if number % 3 == 0:
            memory.session_id = f"s{number // 30}"
        memories.append(memory)
        if number % 10 == 0:
            twin = note(f"{text} …", id=f"twin{number}")
            copy = note(text, id=f"copy{number}", origin=memory_pb2.ORIGIN_SUMMARY)
            memories += [twin, copy]
    for number, code in enumerate(codes):
        piece = fragment(f"src/part{number % 7}/file{number}.py", f"symbol_{number}", code)
        piece.id = f"c{number}"
        memories.append(piece)
    for number, query in enumerate(queries):
        memories.append(note(query, id=f"echo{number}", origin=memory_pb2.ORIGIN_USER_INPUT))
    return memories


def options(project: str, draw: Random) -> recall.RecallRequest:
    """Settings as clients choose them: mostly the preset's, some of them tight."""
    request = recall.RecallRequest(project=project, as_of=Timestamp(seconds=NOW))
    request.preset = draw.choice([recall.PRESET_CHAT, recall.PRESET_CODE, recall.PRESET_AGENT])
    if draw.random() < 0.4:
        request.tuning.top_k = draw.choice([1, 3, 5])
    if draw.random() < 0.3:
        request.tuning.candidates = draw.choice([5, 10, 30])
    if draw.random() < 0.3:
        request.tuning.min_similarity = draw.choice([0.2, 0.5, 0.8])
    if draw.random() < 0.2:
        request.tuning.decay_mode = recall.DECAY_MODE_EXPONENTIAL
    if draw.random() < 0.2:
        request.tuning.near_twin_bar = 0.8
    if draw.random() < 0.2:
        request.paths.extend(draw.choice([[recall.RECALL_PATH_VECTOR], [recall.RECALL_PATH_KEYWORD]]))
    if draw.random() < 0.1:
        request.tuning.code_top_k = 0
    narrow_down(request.filter, draw)
    return request


def narrow_down(where: memory_pb2.MemoryFilter, draw: Random) -> None:
    if draw.random() < 0.1:
        where.tags.append(draw.choice(["text", "nothing"]))
    if draw.random() < 0.1:
        where.session_ids.append(f"s{draw.randrange(9)}")
    if draw.random() < 0.1:
        where.kinds.append(draw.choice([memory_pb2.MEMORY_KIND_NOTE, memory_pb2.MEMORY_KIND_CODE_FRAGMENT]))
    if draw.random() < 0.1:
        where.created_after.seconds = NOW - 30 * 86_400


def lost_pairs(
    service: Stubs, project: str, right: Sequence[tuple[str, str]], ids: Sequence[str], seed: int
) -> Iterator[Lost]:
    """Pairs whose memory is not recalled: the right one of a query, every third time any other."""
    draw = Random(seed)  # noqa: S311 - to be repeated, not to be secret
    while True:
        text, memory_id = draw.choice(right)
        if draw.random() < 0.33:
            memory_id = draw.choice(ids)
        request = options(project, draw)
        request.query_text = text
        if memory_id not in recalled(service, request):
            yield Lost(request=request, memory_id=memory_id)


def recalled(service: Stubs, request: recall.RecallRequest) -> set[str]:
    answer = service.context.Recall(request)
    return {hit.memory.id for hit in (*answer.hits, *answer.code_fragments, *answer.domains)}


def assert_named_changes_recall(service: Stubs, pairs: Sequence[Lost], stages: int) -> None:
    kept, lost_at = 0, Counter[str]()
    for pair in pairs:
        explained = service.context.Explain(recall=pair.request, memory_id=pair.memory_id)
        assert explained.outcome == pb.EXPLAIN_OUTCOME_LOST
        lost_at[pb.LossStage.Name(explained.stage)] += 1
        kept += pair.memory_id in recalled(service, explained.changed_recall) if explained.changes else 0
    assert kept >= AT_LEAST * len(pairs)
    assert len(lost_at) >= stages


def learn_all(service: Stubs, project: str, memories: Sequence[memory_pb2.Memory]) -> list[str]:
    """Stores them, and gives the ids of those that are no duplicates."""
    replies = [
        service.context.Learn(project=project, memories=memories[start : start + 256])
        for start in range(0, len(memories), 256)
    ]
    return sorted({result.id for reply in replies for result in reply.results})


def rows(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.usefixtures("real_models")
def test_of_200_lost_memories_the_named_change_recalls_99_percent(
    service: Stubs, project: str, shared: Callable[[str], Path]
) -> None:
    """1.1-2, 1.1-4, 1.1-7, S2-07, S4-24, S4-26, S4-27: whatever the setting was that lost them."""
    texts: list[str] = []
    right: list[tuple[str, str]] = []
    folder = shared("datasets/xquad-en-zh")
    judged = [line.split("\t") for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    paragraph_of = {query_id: int(paragraph.removeprefix("p")) for query_id, paragraph, _ in judged}
    for language in ("zh", "en"):
        first = len(texts)
        texts += [row["text"][:300] for row in rows(folder / f"corpus.{language}.jsonl")[:150]]
        asked = [(row["text"], paragraph_of[row["_id"]]) for row in rows(folder / f"queries.{language}.jsonl")]
        right += [(text, f"t{first + paragraph}") for text, paragraph in asked if paragraph < 150]
    codes = [row["text"][:400] for row in rows(shared("datasets/cosqa-code/corpus.jsonl"))[:80]]
    right += [(code.splitlines()[0], f"c{number}") for number, code in enumerate(codes)]
    right += [(text, f"echo{number}") for number, (text, _) in enumerate(right[:20])]
    memories = made(texts, codes, [text for text, _ in right[:20]], seed=7)
    ids = learn_all(service, project, memories)
    known = [(text, memory_id) for text, memory_id in right if memory_id in ids]
    pairs = list(islice(lost_pairs(service, project, known, ids, seed=11), 200))
    assert_named_changes_recall(service, pairs, stages=7)


WORDS = ("harbour", "loan", "parse", "date", "interest", "ship", "还款", "利息", "潮汐", "港口", "先本后息", "bread")


@pytest.mark.parametrize("seed", [1, 2])
def test_the_named_change_recalls_what_was_lost_with_any_model(toy: Stubs, project: str, seed: int) -> None:
    draw = Random(seed)  # noqa: S311 - to be repeated, not to be secret
    texts = [" ".join(draw.choices(WORDS, k=draw.randrange(2, 9))) for _ in range(120)]
    codes = [f"def {draw.choice(WORDS[:6])}_{number}():\n    return {number}" for number in range(30)]
    queries = [" ".join(draw.choices(WORDS, k=3)) for _ in range(10)]
    ids = learn_all(toy, project, made(texts, codes, queries, seed))
    pairs = list(islice(lost_pairs(toy, project, [(text, draw.choice(ids)) for text in queries], ids, seed), 40))
    assert_named_changes_recall(toy, pairs, stages=4)


def test_what_is_explained_is_what_recall_does(toy: Stubs, project: str) -> None:
    """S4-55: every memory of a project, under settings of all sorts."""
    draw = Random(3)  # noqa: S311 - to be repeated, not to be secret
    texts = [" ".join(draw.choices(WORDS, k=draw.randrange(2, 9))) for _ in range(40)]
    queries = [" ".join(draw.choices(WORDS, k=3)) for _ in range(5)]
    ids = learn_all(toy, project, made(texts, ["def parse(): ...", "def loan(): ..."], queries, seed=3))
    for text in queries * 3:
        request = options(project, draw)
        request.query_text = text
        answer = toy.context.Recall(request)
        for group, hits in (
            (recall.HIT_GROUP_MAIN, answer.hits),
            (recall.HIT_GROUP_CODE, answer.code_fragments),
            (recall.HIT_GROUP_DOMAINS, answer.domains),
        ):
            for rank, hit in enumerate(hits, start=1):
                explained = toy.context.Explain(recall=request, memory_id=hit.memory.id)
                found = explained.outcome, explained.group, explained.rank
                assert found == (pb.EXPLAIN_OUTCOME_RECALLED, group, rank)
                assert explained.numbers.score == pytest.approx(hit.score)
        lost = set(ids) - recalled(toy, request)
        for memory_id in draw.sample(sorted(lost), 5):
            explained = toy.context.Explain(recall=request, memory_id=memory_id)
            assert explained.outcome == pb.EXPLAIN_OUTCOME_LOST
            assert explained.stage != pb.LOSS_STAGE_UNSPECIFIED
