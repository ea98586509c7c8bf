from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from numpy.typing import NDArray

from hummock.core.learning import (
    FeedbackCounts,
    FeedbackGiven,
    Judgement,
    KeywordsLearned,
    KeywordUpdate,
    Learner,
    LearningState,
    Profile,
    SettingsChanged,
    Switched,
    Usage,
    Verdict,
    Voice,
)
from hummock.core.memory import DomainKnowledge, LearningRecord, MemoryKind, Origin, Payload, Terms
from hummock.core.session import PromptRole, Session, SessionMessage
from hummock.ports.writes import TextKey
from hummock.store.tables import forward_lists, keys, learning_log, op_log, record_codec, row_codec, sessions
from hummock.store.tables.forward_lists import TermDictionary
from hummock.store.views.columns import Columns
from hummock.text.analyzer import document_terms
from hummock.text.questions import Trait
from hummock.text.terms import terms_of
from hummock_kernels.analyzer import BODY
from tests.strategies import IDS, Entry, domain, embedding, entries, exact_terms, fragment, record


@given(entries())
def test_a_memory_survives_encoding(entry: Entry) -> None:
    memory = entry.memory()
    assert memory.payload is not None
    stored = record_codec.encode_memory(memory, b"key", 3)
    assert record_codec.memory_of(stored, record_codec.encode(memory.payload)) == memory
    assert record_codec.memory_of(stored, None).payload is None
    with pytest.raises(msgspec.DecodeError):  # its payload's record was lost
        record_codec.memory_of(stored, b"")
    found = record_codec.decode_memory(stored)
    assert (found.memory, found.text, found.session_position) == (replace(memory, payload=None), b"key", 3)


@given(entries(), st.sampled_from([b"", b"d" * 16]), st.sampled_from([(), (("env", "prod"),)]))
def test_what_stands_at_the_end_survives_encoding(
    entry: Entry, digests: bytes, metadata: tuple[tuple[str, str], ...]
) -> None:
    memory = replace(entry.memory(), payload=None, metadata=metadata)
    found = record_codec.decode_memory(record_codec.encode_memory(memory, b"key", 3, digests))
    assert (found.memory, found.digests) == (memory, digests)


@pytest.mark.parametrize("entry", [domain("d", ("还款", "x"), ("a",)), fragment("f", "a/b.py"), record("r", "q", "a")])
def test_every_detail_survives_encoding(entry: Entry) -> None:
    payload = entry.memory().payload
    assert payload is not None
    assert record_codec.decode_payload(record_codec.encode(payload)) == payload


def read(value: bytes) -> object:
    """Decoded value as it is on disk, without the names of types and fields."""
    return msgspec.msgpack.Decoder().decode(value)


class Described(msgspec.Struct):
    value: int


def test_a_type_is_described_before_two_threads_can_convert_to_it() -> None:
    """S4-02."""
    codec, ran = record_codec.Fields(Described), set[str]()
    sys.setprofile(lambda frame, event, arg: ran.add(frame.f_code.co_filename))
    try:
        converted = codec.value([1])
    finally:
        sys.setprofile(None)
    assert converted == Described(1)
    assert not [file for file in ran if "msgspec" in file]  # those that describe are in Python


def test_a_memory_lies_as_the_array_of_its_fields() -> None:
    entry = fragment("f", "a/b.py")
    memory, payload = entry.memory(), entry.memory().payload
    stored = ["f", 3, 1, "", "", [], "", "", None, "calm", 0.5, ["older"], "5f", 1.7e9, 1.7e9 + 1]
    assert read(record_codec.encode_memory(memory, b"key", 3)) == [
        *stored,
        memory.content_hash,
        memory.fingerprint,
        1,
        1,
        b"key",
        3,
    ]
    assert read(record_codec.encode(payload)) == ["return", "raw", [3, "a/b.py", 1, 3, "java", "f"]]


def test_details_lie_as_arrays_behind_their_number() -> None:
    record_of = LearningRecord(question="q", answer="a", source_files=("f",))
    domain_of = DomainKnowledge(domain="d", aliases=("x",), summary="s", key_files=("f",))
    assert read(record_codec.encode(Payload(detail=record_of))) == ["", "", [1, "q", "a", ["f"]]]
    assert read(record_codec.encode(Payload(detail=domain_of))) == ["", "", [2, "d", ["x"], "s", ["f"]]]


def test_sessions_and_messages_lie_without_what_their_keys_say() -> None:
    session = Session(id="s", title="t", create_time=1.0, update_time=2.0, message_count=4, number=7)
    stored = sessions.encode_session(sessions.SessionRecord(session, 9))
    before_changes = [7, 9, "s", "t", 1.0, 2.0, False, 4]
    assert read(stored) == [*before_changes, 0, None, 0, []]
    for value in (stored, record_codec.encode(before_changes)):
        found = sessions.decode_session(value)
        assert (found.session, found.session.number, found.moved) == (session, 7, 9)
    message = SessionMessage(
        id="m", role=PromptRole.USER, content="hi", raw="", send_time=1.0, position=5, memory_id="n"
    )
    stored = sessions.encode_message(message)
    assert read(stored) == ["m", 2, "hi", "", 1.0, "n", ""]
    for value in (stored, record_codec.encode(["m", 2, "hi", "", 1.0, "n"])):
        assert sessions.decode_message(value, 5) == message


def test_learning_lies_as_arrays_and_events_behind_their_number() -> None:
    state = LearningState(enabled=True, turns=3, events=2, feedback=FeedbackCounts(wrong=1))
    numbers = [10, 3, 3, 10, 0.6, 5, 20, 10, 0.5]
    assert read(learning_log.encode_state(state)) == [True, numbers, 3, 0, 2, 0, [0, 0, 1]]
    assert learning_log.decode_state(learning_log.encode_state(state)) == state
    assert read(learning_log.encode_usage(Usage(frequency=2))) == [2, -999, -999]
    profile = Profile(keywords=("k",), miss_count=1, hints=("h",))
    assert read(learning_log.encode_profile(profile)) == [["k"], -999, 1, ["h"], []]
    heard = Profile(voices=(Voice(speaker=2**63, text=7, judgement=Judgement.WRONG),))
    assert read(learning_log.encode_profile(heard)) == [[], -999, 0, [], [[2**63, 7, 3]]]
    assert learning_log.decode_profile(learning_log.encode_profile(heard)) == heard
    verdict = Verdict(memory_id="m", judgement=Judgement.WRONG, text=7)
    said = FeedbackGiven(query_text="q", verdicts=(verdict,), voice=9)
    assert read(learning_log.encode_event(1.5, said)) == [1.5, [8, "q", [["m", 3, 7]], "", "", 9]]
    update = KeywordUpdate(memory_id="m", keywords=("k",), hints=("h",))
    learned = KeywordsLearned(learner=Learner.OFFLINE, turn=4, updates=(update,), analyzed_ids=("m",))
    assert read(learning_log.encode_event(1.5, learned)) == [1.5, [2, 2, 4, [["m", ["k"], ["h"]]], ["m"], 1]]
    assert read(learning_log.encode_event(1.5, SettingsChanged(settings=state.settings))) == [1.5, [6, numbers]]


def test_learning_of_another_version_can_be_read() -> None:
    """S4-44."""
    numbers = [10, 3, 3, 10, 0.6, 5, 20, 10, 0.5]
    older = learning_log.decode_state(record_codec.encode([True, numbers, 3, 0, 2, 0]))
    newer = learning_log.decode_state(record_codec.encode([True, [*numbers, "new"], 3, 0, 2, 0, [0, 0, 0, 9], "new"]))
    assert older == newer == LearningState(enabled=True, turns=3, events=2)
    later = Usage(frequency=2, last_sent_turn=7, counted_turn=5)
    assert learning_log.decode_usage(record_codec.encode([2, 7, 5, "new"])) == later
    assert learning_log.decode_usage(record_codec.encode([2, 7])) == Usage(frequency=2, last_sent_turn=7)
    assert learning_log.decode_profile(record_codec.encode([["k"], -999, 1])) == Profile(keywords=("k",), miss_count=1)
    learned = KeywordsLearned(
        learner=Learner.OFFLINE, turn=4, updates=(KeywordUpdate(memory_id="m", keywords=("k",)),), analyzed_ids=("m",)
    )
    before_hints = record_codec.encode([1.5, [2, 2, 4, [["m", ["k"]]], ["m"]]])
    assert learning_log.decode_event(1, before_hints).event == learned
    before_voices = record_codec.encode([1.5, [8, "q", [["m", 3]], "", ""]])
    said = FeedbackGiven(query_text="q", verdicts=(Verdict(memory_id="m", judgement=Judgement.WRONG),))
    assert learning_log.decode_event(1, before_voices).event == said
    assert learning_log.decode_event(1, record_codec.encode([1.5, [5, True, "new"], "new"])).event == Switched(
        enabled=True
    )


@pytest.mark.parametrize(
    "value",
    [LearningState(), Usage(), Session(id="s", title="t", create_time=1.0, update_time=2.0)],
    ids=lambda value: type(value).__name__,
)
def test_what_is_part_of_a_reply_lies_there_by_its_names(value: msgspec.Struct) -> None:
    """Replies of before an upgrade are answered after it."""
    kept = read(record_codec.encode(value))
    assert kept == msgspec.json.Decoder().decode(msgspec.json.encode(value))
    assert isinstance(kept, dict)


def test_a_record_of_a_newer_version_can_be_read() -> None:
    """S4-44."""
    known = record_codec.RequestRecord(b"f", 3, b"r", 1.5)
    newer = record_codec.encode([*msgspec.to_builtins(known, builtin_types=(bytes,)), "new", {"x": 1}])
    assert record_codec.decode_request(newer) == known


def test_a_record_of_an_older_version_can_be_read() -> None:
    """S4-44."""
    older = record_codec.encode(["p", 1.0, 1])
    assert record_codec.decode_project(older) == record_codec.ProjectRecord(name="p", create_time=1.0, active_space=1)


def test_a_row_of_a_newer_version_can_be_read() -> None:
    """S4-44."""
    row = row_codec.pack_row(Entry(id="世界").memory(), 7, 5, -1, 1)
    size = int.from_bytes(row[:2], "little")
    newer = (size + 4).to_bytes(2, "little") + row[2 : 2 + size] + b"more" + row[2 + size :]
    rows, ids = row_codec.unpack_rows([row, newer])
    assert rows["doc"].tolist() == [7, 7]
    assert ids == ["世界", "世界"]


def test_a_row_of_an_older_version_can_be_read() -> None:
    """S4-44: rows of before sessions stood in them belong to none, ask nothing and replace nothing."""
    entry = Entry(id="世界", words=("谁？",), session_id="s", origin=Origin.SUMMARY, writer="ci", pinned=True)
    row = row_codec.pack_row(entry.memory(), 7, 5, 2, 1)
    size = int.from_bytes(row[:2], "little")
    added = (
        "session",
        "traits",
        "name_hash",
        "supersedes",
        "speaker",
        "file",
        "helpful",
        "wrong",
        "expire_time",
        "token_sign",
        "writer",
        "apart",
        "pinned",
    )
    before = size - sum(row_codec.ROW[name].itemsize for name in added)
    older = before.to_bytes(2, "little") + row[2 : 2 + before] + row[2 + size :]
    rows, ids = row_codec.unpack_rows([older, row])
    assert rows["doc"].tolist() == [7, 7]
    assert rows["session"].tolist() == [0, row_codec.id_hash("s")]
    assert rows["traits"].tolist() == [0, int(Trait.ASKS | Trait.ASKS_WITHIN)]
    assert rows["speaker"].tolist() == [0, 0]
    assert rows["name_hash"].tolist() == [0, 0]
    assert rows["supersedes"].tolist() == [0, 1]
    assert rows["writer"].tolist() == [0, row_codec.writer_hash(entry.memory())]
    assert rows["pinned"].tolist() == [0, 1]
    assert rows["writer"][1] > 0
    assert ids == ["世界", "世界"]


def test_a_row_that_is_judged_keeps_all_else() -> None:
    """S1-17, S4-44: one of before there were verdicts grows by them, one of a newer version loses nothing."""
    row = row_codec.pack_row(Entry(id="世界", session_id="s").memory(), 7, 5, 2, 1)
    size = int.from_bytes(row[:2], "little")
    before = row_codec.ROW.fields["helpful"][1] if row_codec.ROW.fields else 0
    older = before.to_bytes(2, "little") + row[2 : 2 + before] + row[2 + size :]
    newer = (size + 4).to_bytes(2, "little") + row[2 : 2 + size] + b"more" + row[2 + size :]
    rows, ids = row_codec.unpack_rows([row_codec.judged(one, (3, 1)) for one in (row, older, newer)])
    assert ids == ["世界"] * 3
    assert (rows["helpful"].tolist(), rows["wrong"].tolist()) == ([3] * 3, [1] * 3)
    assert row_codec.judged(row_codec.judged(newer, (3, 1)), (0, 0)) == newer
    assert rows["session_position"].tolist() == [2, 2, 2]
    assert rows["session"].tolist() == [row_codec.id_hash("s")] * 3


def test_a_row_of_an_older_version_that_gets_vectors_notes_whose_they_are() -> None:
    """S4-44: one of before that was noted grows by it, one of a newer version loses nothing."""
    row = row_codec.pack_row(Entry(id="世界", session_id="s").memory(), 7, 5, 2, 0, (3, 1))
    size = int.from_bytes(row[:2], "little")
    older = (size - 1).to_bytes(2, "little") + row[2 : 1 + size] + row[2 + size :]
    newer = (size + 4).to_bytes(2, "little") + row[2 : 2 + size] + b"more" + row[2 + size :]
    rows, ids = row_codec.unpack_rows([row_codec.embedded(one, [embedding(1)] * 2) for one in (row, older, newer)])
    assert ids == ["世界"] * 3
    assert rows["chunk_count"].tolist() == [2] * 3
    assert rows["token_sign"].tolist() == [row_codec.TokenSign.of([embedding(1)])] * 3
    assert rows["token_sign"][0] in (row_codec.TokenSign.POSITIVE, row_codec.TokenSign.NEGATIVE)
    assert (rows["helpful"].tolist(), rows["session_position"].tolist()) == ([3] * 3, [2] * 3)
    assert b"more" in row_codec.embedded(newer, [embedding(1)])


def packed(numbers: dict[str, int], *given: Terms) -> list[bytes]:
    def look_up(spelt: Sequence[str]) -> NDArray[np.uint32]:
        return np.array([numbers.setdefault(term, len(numbers)) for term in spelt], np.uint32)

    return forward_lists.pack(given, TermDictionary(), look_up)


def test_counts_of_a_forward_list_saturate_and_facets_count_nothing() -> None:
    numbers: dict[str, int] = {}
    given_terms = exact_terms(title=("a",) * 300, tags=("b",), body=("a", "a", "c"), facets=("\x1ftb",))
    lists = forward_lists.join(packed(numbers, given_terms))
    counts = dict(zip(lists.term.tolist(), lists.counts.tolist(), strict=True))
    assert counts == {numbers["a"]: 255 | 2 << 16, numbers["b"]: 1 << 8, numbers["c"]: 1 << 16, numbers["\x1ftb"]: 0}
    assert forward_lists.length(given_terms) == 304


def test_lists_without_terms_can_be_joined() -> None:
    lists = forward_lists.join(packed({"x": 9}, exact_terms(), exact_terms(body=("x",)), exact_terms()))
    assert lists.indptr.tolist() == [0, 0, 1, 1]
    assert lists.term.tolist() == [9]
    assert forward_lists.join([]).indptr.tolist() == [0]


@given(st.lists(st.text(st.sampled_from("还款ß℃ a9"), max_size=6), max_size=6))
def test_lists_are_those_of_their_texts_whatever_batches_the_terms_are_in(texts: list[str]) -> None:
    numbers: dict[str, int] = {}
    given_terms = terms_of([[(text, BODY)] for text in ["x", *texts]])
    lists = forward_lists.join(packed(numbers, *given_terms))
    for text, start, end in zip(["x", *texts], lists.indptr[:-1], lists.indptr[1:], strict=True):
        counted = Counter(numbers[term] for term in document_terms(text))
        found = zip(lists.term[start:end].tolist(), (lists.counts[start:end] >> 8 * BODY).tolist(), strict=True)
        assert dict(found) == counted


def test_operations_come_to_what_is_left_of_them() -> None:
    (forward_list,) = packed({"x": 4, "y": 2}, exact_terms(body=("x", "y")))
    changes = op_log.net(
        [
            op_log.pack(op_log.PUT, 5),
            op_log.pack_removal(2, forward_list),
            op_log.pack(op_log.PUT, 6),
            op_log.pack_removal(5, b""),
            op_log.pack(op_log.JUDGE, 6),
            op_log.pack(op_log.JUDGE, 4),
            op_log.pack(op_log.JUDGE, 3),
            op_log.pack(op_log.EMBED, 3),
            op_log.pack(op_log.JUDGE, 1),
            op_log.pack_removal(1, b""),
        ]
    )
    assert (changes.judged, changes.embedded) == ([3, 4], [3])
    assert changes.put == [6]
    assert changes.removed.tolist() == [2, 1]
    assert changes.removed_terms.tolist() == [2, 4]


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=600), st.sampled_from(IDS))
def test_names_give_equal_keys_only_when_they_are_equal(one: str, other: str) -> None:
    assert (keys.name_key(1, one) == keys.name_key(1, other)) == (one == other)
    assert keys.name_key(1, one) != keys.name_key(2, one)
    assert len(keys.name_key(1, one)) <= 511


def test_text_keys_lead_back_to_their_document() -> None:
    text = keys.text_bytes(TextKey(kind=MemoryKind.NOTE, origin=Origin.MANUAL, identity=b"h" * 16))
    assert keys.doc_of_text_key(keys.text_key(1, text, 2**40)) == 2**40


def test_a_kind_and_a_sign_that_there_are_not_are_none() -> None:
    """A disk may keep anything, and views count rows by both."""
    row = bytearray(row_codec.pack_row(Entry(id="a").memory(), 1, 1, -1, 1, token_sign=row_codec.TokenSign.POSITIVE))
    whole = row_codec.pack_row(Entry(id="b").memory(), 2, 1, -1, 1, token_sign=row_codec.TokenSign.POSITIVE)
    assert row_codec.ROW.fields is not None
    for name in ("kind", "token_sign"):
        row[2 + row_codec.ROW.fields[name][1]] = 200
    rows, ids = row_codec.unpack_rows([bytes(row), whole])
    assert ids == ["a", "b"]
    assert rows["token_sign"].tolist() == [0, row_codec.TokenSign.POSITIVE]
    assert rows["kind"].tolist() == [0, Entry(id="b").memory().kind]


def test_documents_are_found_by_place_unless_they_are_gone() -> None:
    rows, ids = row_codec.unpack_rows(
        [row_codec.pack_row(Entry(id=str(doc)).memory(), doc, 1, -1, 1) for doc in (2, 5, 9)]
    )
    made = Columns.empty().extended(rows, ids, 0)
    assert made.ordinals(np.array([9, 2, 3, 100])).tolist() == [0, 2]
    assert made.without(np.array([0])).ordinals(np.array([2, 5])).tolist() == [1]
    assert Columns.empty().ordinals(np.array([1])).tolist() == []
