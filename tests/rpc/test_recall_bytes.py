"""Bytes of replies to recalls parse to the messages that are built field by field."""

from __future__ import annotations

import ast
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import hummock
from hummock.core.candidates import FoundBy
from hummock.core.memory import CodeFragment, DomainKnowledge, LearningRecord, MemoryIndex, Payload
from hummock.core.recall import Correction, Degradation, Hit, RecallQuery
from hummock.recall.cache import Answer, Cached
from hummock.recall.stage_budget import DEADLINE
from hummock.rpc.recall_messages import degradations
from hummock.rpc.recall_reply import recall_reply
from hummock.rpc.status import MAX_REPLY_BYTES, to_bytes
from hummock_client.v1 import recall_pb2
from tests.rpc import samples
from tests.rpc.plain_replies import recall_response, sent

TEXTS = st.text(max_size=300)
WORDS = st.lists(TEXTS, max_size=3).map(tuple)
NUMBERS = st.sampled_from((0.0, -0.0, 1.0)) | st.floats(-1e9, 1e9)
SHARES = st.floats(0, 1)
DETAILS = st.one_of(
    st.none(),
    st.builds(LearningRecord, question=TEXTS, answer=TEXTS, source_files=WORDS),
    st.builds(DomainKnowledge, domain=TEXTS, aliases=WORDS, summary=TEXTS, key_files=WORDS),
    st.builds(CodeFragment, path=TEXTS, start_line=st.just(3), end_line=st.integers(3, 9), symbol=TEXTS),
)
TIMES = st.floats(0, 4e9)
MEMORIES = st.builds(
    lambda payload, **fields: replace(samples.MEMORY, payload=payload, **fields),
    payload=st.none() | st.builds(Payload, content=TEXTS, raw=TEXTS, detail=DETAILS),
    id=TEXTS,
    index=st.builds(MemoryIndex, title=TEXTS, summary=TEXTS, tags=WORDS),
    event_time=st.none() | TIMES,
    expire_time=st.none() | TIMES,
    create_time=TIMES,
    trust=NUMBERS,
    metadata=st.dictionaries(TEXTS, TEXTS, max_size=2).map(lambda facts: tuple(sorted(facts.items()))),
    supersedes=WORDS,
    writer=TEXTS,
)
COUNTS = st.integers(0, 2**32 - 1)
HITS = st.builds(
    Hit,
    memory=MEMORIES,
    score=NUMBERS,
    similarity=NUMBERS,
    cosine=NUMBERS,
    keyword_score=NUMBERS,
    late_interaction_score=SHARES,
    cross_encoder_score=SHARES,
    found_by=st.integers(0, 127).map(FoundBy),
    matched_terms=WORDS,
    age_days=st.floats(0, 1e5),
    decay=NUMBERS,
    near_twin=st.booleans(),
    over_writer_cap=st.booleans(),
    likely_replaced_by=TEXTS,
    time_match=SHARES,
    corrections=st.lists(st.builds(Correction, asked=TEXTS, meant=TEXTS), max_size=2).map(tuple),
    verdict=NUMBERS,
    helpful_count=COUNTS,
    wrong_count=COUNTS,
    before=st.lists(MEMORIES, max_size=2).map(tuple),
    after=st.lists(MEMORIES, max_size=2).map(tuple),
    superseded_by=WORDS,
)
GROUPS = st.lists(HITS, max_size=3).map(tuple)
RECALLED = samples.recalled(RecallQuery(project="p", text="q"))


@given(GROUPS, GROUPS, GROUPS, st.booleans())
def test_the_bytes_of_a_reply_are_those_of_its_message(
    hits: tuple[Hit, ...], code: tuple[Hit, ...], domains: tuple[Hit, ...], with_raw: bool
) -> None:
    recalled = replace(RECALLED, hits=hits, code_fragments=code, domains=domains)
    reply, message = sent(recalled, with_raw=with_raw), recall_response(recalled, with_raw=with_raw)
    assert reply == message
    assert reply.SerializeToString(deterministic=True) == message.SerializeToString(deterministic=True)


@given(GROUPS, st.floats(0, 4e9))
def test_a_cached_answer_gets_the_ages_and_the_receipt_of_its_caller(hits: tuple[Hit, ...], now: float) -> None:
    cached = Cached(replace(RECALLED, hits=hits, domains=hits))
    first = to_bytes(recall_reply(Answer(of=cached, is_cached=False, project_settings=("a",), seq=RECALLED.seq)))
    later = Answer(of=cached, is_cached=True, project_settings=("b",), seq=9, elapsed_s=0.25, as_of=now)
    for answer in (later, later):
        reply = recall_pb2.RecallResponse.FromString(to_bytes(recall_reply(answer)))
        assert reply == recall_response(answer.recalled())
    again = to_bytes(recall_reply(Answer(of=cached, is_cached=False, project_settings=("a",), seq=RECALLED.seq)))
    assert again == first


def test_a_reply_that_is_too_large_keeps_the_texts_of_the_best_hits() -> None:
    payload = Payload(content="潮" * 50_000, raw="raw" * 10_000)
    hits = tuple(
        replace(samples.HIT, memory=replace(samples.MEMORY, id=f"m{place}", payload=payload)) for place in range(40)
    )
    reply = sent(replace(RECALLED, hits=hits, code_fragments=hits[:3], degraded=()), with_raw=True)
    assert reply.ByteSize() <= MAX_REPLY_BYTES
    told = [bool(hit.memory.content) for hit in reply.hits]
    assert told == sorted(told, reverse=True)
    assert told[0]
    left_out = sum(not hit.memory.text for hit in (*reply.hits, *reply.code_fragments))
    assert reply.degraded[0].part == recall_pb2.DEGRADED_PART_TEXTS
    assert reply.degraded[0].message.startswith(f"the texts of {left_out} of 43 hits were left out")
    assert [hit.memory.id for hit in reply.hits] == [hit.memory.id for hit in hits]


def test_the_contract_has_each_part_and_reason_of_a_degradation() -> None:
    """A name that it lacks would be sent as UNSPECIFIED."""
    named: dict[str, set[str]] = {"path": set(), "reason": set()}
    for file in Path(hummock.__file__).parent.rglob("*.py"):
        calls = [node for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.Call)]
        for call in [one for one in calls if isinstance(one.func, ast.Name) and one.func.id == "Degradation"]:
            for field in call.keywords:
                if field.arg in named and isinstance(field.value, ast.Constant):
                    named[field.arg].add(str(field.value.value))
    assert len(named["path"]) > 4
    assert len(named["reason"]) > 4
    sent = degradations([Degradation(path=path, reason=DEADLINE, message="") for path in named["path"]])
    sent += degradations([Degradation(path="intent", reason=reason, message="") for reason in named["reason"]])
    assert all(one.part and one.reason for one in sent)
