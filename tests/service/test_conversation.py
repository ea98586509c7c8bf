"""Conversations: times that a query speaks of, sentences alongside a sentence, and what stands alongside a hit."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import grpc
import pytest

from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, contents, degraded, failure, learn, stamp
from tests.service.inputs import fragment, note
from tests.service.running import Stubs

AS_OF = datetime(2023, 5, 17, 10, 30, tzinfo=UTC)
USER = pb.ORIGIN_USER_INPUT
PLAIN = {"relevance_weight": 1.0, "near_twin_bar": 2.0}


def told(text: str, days_ago: float) -> pb.Memory:
    return note(text, event_time=stamp(AS_OF - timedelta(days=days_ago)))


def trips(service: Stubs, project: str) -> None:
    """Memories alike in all but their time."""
    for days_ago, place in ((1, "harbour"), (9, "museum"), (40, "market"), (400, "castle")):
        learn(service, project, told(f"we walked to the {place} and had lunch", days_ago))


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("where did we walk yesterday", "harbour"),
        ("where did we walk last week", "museum"),
        ("where did we walk on 7 April", "market"),
        ("where did we walk last April", "market"),
        ("where did we walk in April 2022", "castle"),
        ("昨天 we walked where", "harbour"),
        ("上周 we walked where", "museum"),
        ("4月7日 we walked where", "market"),
    ],
)
def test_a_time_in_the_query_ranks_its_memories_first(service: Stubs, project: str, query: str, place: str) -> None:
    trips(service, project)
    answer = ask(service, project, query, as_of=stamp(AS_OF), **PLAIN)
    assert place in contents(answer)[0]
    assert answer.hits[0].time_match > 0.9


def test_times_of_a_query_are_told_and_can_be_switched_off_or_given(service: Stubs, project: str) -> None:
    trips(service, project)
    answer = ask(service, project, "what did we do yesterday", as_of=stamp(AS_OF))
    (found,) = answer.receipt.times
    assert found.phrase == "yesterday"
    assert found.start_time.ToDatetime(UTC) == datetime(2023, 5, 16, tzinfo=UTC)
    assert found.end_time.ToDatetime(UTC) == datetime(2023, 5, 17, tzinfo=UTC)
    assert list(answer.intent.times) == [found]
    answer = ask(service, project, "where did we walk yesterday", as_of=stamp(AS_OF), time_words=False)
    assert not answer.receipt.times
    assert {hit.time_match for hit in answer.hits} == {0.0}
    times = [recall.TimeInterval(end_time=stamp(AS_OF - timedelta(days=365)))]
    answer = ask(service, project, "where did we walk", intent=recall.Intent(times=times), as_of=stamp(AS_OF), **PLAIN)
    assert "castle" in contents(answer)[0]
    assert list(answer.receipt.times) == times


def test_an_interval_that_ends_before_it_begins_and_a_window_too_wide_are_refused(service: Stubs, project: str) -> None:
    times = [recall.TimeInterval(start_time=stamp(AS_OF), end_time=stamp(AS_OF - timedelta(days=1)))]
    raised = failure(ask, service, project, "x y z", intent=recall.Intent(times=times))
    assert raised.code is grpc.StatusCode.INVALID_ARGUMENT
    assert "intent.times[0].end_time" in raised.message
    assert failure(ask, service, project, "x y z", context_window=11).code is grpc.StatusCode.INVALID_ARGUMENT


def test_what_was_said_in_a_session_happened_when_it_was_said(service: Stubs, project: str) -> None:
    for days_ago, place in ((1, "harbour"), (9, "museum")):
        create_time = stamp(AS_OF - timedelta(days=days_ago))
        learn(service, project, note(f"we walked to the {place}", session_id=place, create_time=create_time))
    answer = ask(service, project, "where did we walk last week", as_of=stamp(AS_OF), **PLAIN)
    assert "museum" in contents(answer)[0]


def talk(service: Stubs, project: str, session_id: str, *sentences: str) -> None:
    learn(service, project, *(note(sentence, session_id=session_id) for sentence in sentences))


def test_the_answer_beside_a_question_gains_from_it(service: Stubs, project: str) -> None:
    """The evidence shares no word with the query; what stands alongside it does."""
    talk(service, project, "s1", "I bought a violin from an old luthier", "it has a crack in the scroll", "good night")
    talk(service, project, "s2", "the soup needs salt", "it has a pinch of pepper", "good morning")
    hits = contents(ask(service, project, "violin luthier", **PLAIN))
    assert hits[0].startswith("I bought a violin")
    assert hits.index("it has a crack in the scroll") < hits.index("it has a pinch of pepper")


def test_an_echo_of_the_query_lends_nothing_to_the_turn_before_it(service: Stubs, project: str) -> None:
    """1.1-2, S4-34."""
    query = "which colour has the new bicycle"
    before, green = "let us talk about something else", note("the new bicycle is dark green", session_id="t")
    learn(service, project, note(before, session_id="s"), note(query, session_id="s", origin=USER), green)
    answer = ask(service, project, query, **PLAIN)
    assert contents(answer)[0] == "the new bicycle is dark green"
    assert answer.receipt.groups[0].echo == 1


def names(memories: object) -> list[str]:
    return [memory.content for memory in memories]  # type: ignore[attr-defined] # repeated Memory


def test_neighbours_of_a_hit_come_with_it(service: Stubs, project: str) -> None:
    talk(service, project, "s", "one", "two", "the violin is old", "four", "five")
    hit = ask(service, project, "violin", context_window=1, top_k=1).hits[0]
    assert (names(hit.before), names(hit.after)) == (["two"], ["four"])
    hit = ask(service, project, "violin", context_window=9, top_k=1).hits[0]
    assert (names(hit.before), names(hit.after)) == (["one", "two"], ["four", "five"])
    hit = ask(service, project, "violin", top_k=1).hits[0]
    assert (names(hit.before), names(hit.after)) == ([], [])


def test_fragments_come_with_those_around_them_in_their_file(service: Stubs, project: str) -> None:
    pieces = {"open_ledger": 1, "close_ledger": 40, "print_ledger": 90}
    for symbol, line in pieces.items():
        learn(service, project, fragment("src/ledger.py", symbol, f"def {symbol}(): ...", line=line))
    hit = ask(service, project, "close_ledger", context_window=3, top_k=1).hits[0]
    assert (names(hit.before), names(hit.after)) == (["def open_ledger(): ..."], ["def print_ledger(): ..."])


def test_neighbours_have_the_view_of_the_hit_and_keep_out_what_is_excluded(service: Stubs, project: str) -> None:
    said = {"one": "one", "": "the violin is old", "three": "three"}
    learn(service, project, *(note(text, session_id="s", id=name) for name, text in said.items()))
    where = pb.MemoryFilter(excluded_ids=["three"])
    hit = ask(service, project, "violin", context_window=2, top_k=1, filter=where, view=pb.MEMORY_VIEW_INDEX).hits[0]
    assert [memory.id for memory in hit.before] == ["one"]
    assert not hit.before[0].text
    assert not hit.after


@pytest.mark.long
def test_neighbours_that_a_reply_has_no_room_for_are_left_out_and_the_answer_says_so(
    service: Stubs, project: str
) -> None:
    """20 hits of 64 KiB with 19 neighbours each would be 25 MiB."""
    raw = "r" * 65_536
    for number in range(20):
        sent = pb.Memory(kind=pb.MEMORY_KIND_NOTE, session_id="s", content=f"the violin of turn {number}", raw=raw)
        learn(service, project, sent)
    answer = ask(service, project, "violin", context_window=10, top_k=20, **PLAIN)
    assert len(answer.hits) == 20
    assert degraded(answer) == [("context_window", "REPLY_LIMIT")]
    counts = [len(hit.before) + len(hit.after) for hit in answer.hits]
    assert counts[0] >= 10
    assert counts[-1] == 0
    assert answer.ByteSize() <= 4 * 1024 * 1024


def test_the_sentence_just_asked_does_not_come_as_a_neighbour(service: Stubs, project: str) -> None:
    """1.1-2, S4-48, S4-27."""
    query = "Where is the violin　now"
    said = [note(query, session_id="s", origin=origin) for origin in (USER, pb.ORIGIN_AI_OUTPUT)]
    others = note("the violin is old", session_id="s"), note("let me look", session_id="s")
    learn(service, project, others[0], *said, others[1])
    hits = ask(service, project, "where is the violin now", context_window=5).hits
    shown = {text for hit in hits for text in names([hit.memory, *hit.before, *hit.after])}
    assert shown == {"the violin is old", "let me look"}
