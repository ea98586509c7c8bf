"""Texts that stay separate, and those that are shown once or for each, as a client sees it."""

from __future__ import annotations

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import memory_service_pb2 as memory
from tests.memories.test_identity import APART
from tests.service.calls import ask, contents, learn
from tests.service.inputs import note
from tests.service.running import Stubs
from tests.text.test_likeness import OTHERS, SPELLINGS, TYPED_OTHERWISE

CREATED = context.LEARN_STATUS_CREATED


def test_texts_that_are_written_otherwise_are_all_stored_and_read_by_their_ids(service: Stubs, project: str) -> None:
    texts = list(dict.fromkeys(text for pair in APART for text in pair))
    results = learn(service, project, *map(note, texts)).results
    assert {result.status for result in results} == {CREATED}
    listed = service.memory.ListMemories(
        memory.ListMemoriesRequest(project=project, page_size=100, view=pb.MEMORY_VIEW_FULL)
    )
    assert [each.content for each in listed.memories] == texts


@pytest.mark.parametrize("spellings", SPELLINGS[:2], ids=lambda several: several[0])
def test_spellings_of_one_sentence_take_one_place(service: Stubs, project: str, spellings: tuple[str, ...]) -> None:
    results = learn(service, project, *map(note, spellings)).results
    assert {result.status for result in results} == {CREATED}
    found = ask(service, project, f"什么时候 {spellings[0]} when was it", top_k=20, min_similarity=-1.0)
    assert len(contents(found)) == 1
    assert found.receipt.groups[0].duplicate == len(spellings) - 1


def test_texts_that_may_mean_different_things_are_both_shown(service: Stubs, project: str) -> None:
    pairs = [pair for pair in OTHERS if pair[0] not in TYPED_OTHERWISE]
    texts = list(dict.fromkeys(text for pair in pairs for text in pair))
    learn(service, project, *map(note, texts))
    found = ask(service, project, "what is it about", top_k=100, min_similarity=-1.0)
    assert sorted(contents(found)) == sorted(texts)


def test_one_text_of_two_owners_two_speakers_and_two_days_is_shown_for_each(service: Stubs, project: str) -> None:
    days = [Timestamp(seconds=1_699_000_000 + 86_400 * day) for day in range(2)]
    told = [
        *(note("I drank two cups", metadata={"user_id": one}) for one in ("alice", "bob")),
        *(note("I drank two cups", speaker=one) for one in ("Alice", "Bob")),
        *(note("I drank two cups", event_time=day) for day in days),
        *(note("I drank two cups", id=one) for one in ("own-1", "own-2")),
    ]
    assert {result.status for result in learn(service, project, *told).results} == {CREATED}
    found = ask(service, project, "who drank how much", top_k=20, min_similarity=-1.0)
    # One is enough where two differ in nothing but their ids.
    assert len(contents(found)) == 7


@pytest.mark.parametrize(
    ("said", "asked", "is_echo"),
    [
        ("今天好累", "今天好累😭", True),
        ("good morning :)", "good morning", True),
        ("早安😊！", "早安", True),
        ("The build is ✅", "The build is ❌?", False),
        ("🦄", "🦄", True),
        ("🦄 launch", "🦄", False),
        ("☕ machine", "🦄 machine", False),
        ("start with -v", "start with -V", False),
    ],
)
def test_an_echo_is_known_whatever_emoji_it_has(
    service: Stubs, project: str, said: str, asked: str, is_echo: bool
) -> None:
    learn(service, project, note(said, origin=pb.ORIGIN_USER_INPUT))
    assert contents(ask(service, project, asked, min_similarity=-1.0)) == ([] if is_echo else [said])
