"""LearningService: what it asks the use case, and what it makes of the answer."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.json_format import MessageToDict

from hummock.core.errors import InvalidRequest
from hummock.core.learning import KeywordsSet
from hummock.core.learning_requests import EntryOutcome, ScanEnd, ScanProgress, ScanScope, SettingsChanges
from hummock.rpc.call import CallContext
from hummock.rpc.learning_messages import observe_command
from hummock.rpc.learning_service import LearningServicer, asked_scan, told
from hummock.rpc.streams import UNTIL_WRITTEN
from hummock.rpc.validation import RulesBroken, parse
from hummock_client.v1 import learning_pb2
from hummock_client.v1 import learning_service_pb2 as pb
from tests.rpc.fixed_learning import CORE, EVENTS, LEARNT, FixedLearning, FixedScan, observe


@pytest.fixture
def learning() -> FixedLearning:
    return FixedLearning()


def servicer(learning: FixedLearning) -> LearningServicer:
    return LearningServicer(learning, observe, lambda project, scope, chosen: FixedScan(), lambda project: None)


def update(**fields: Any) -> pb.UpdateLearningSettingsRequest:
    return pb.UpdateLearningSettingsRequest(project="p", **fields)


def test_the_state_says_everything_of_an_entry(learning: FixedLearning) -> None:
    """S3-40."""
    reply = servicer(learning).GetLearningState(pb.GetLearningStateRequest(project="p", scope="s"), CallContext())
    assert learning.asked == [("p", "s", None, 0, 100)]
    assert MessageToDict(reply) == {
        "state": {
            "enabled": True,
            "settings": {
                "highAbove": 5,
                "midAbove": 2,
                "midCooldownTurns": 3,
                "lowCooldownTurns": 10,
                "minSimilarity": 0.75,
                "candidates": 5,
                "analysisCooldownTurns": 20,
                "keywordTarget": 10,
                "coldStartPause": "0.250s",
            },
            "turns": "9",
            "missedTurns": "2",
            "events": 8,
        },
        "turn": 8,
        "entries": [
            {
                "memoryId": CORE,
                "title": "潮汐木芯",
                "profile": {"keywords": ["硬木头"], "lastAnalyzedTurn": "8", "missCount": 1},
                "injection": {
                    "memoryId": CORE,
                    "usage": {"frequency": 2, "lastSentTurn": 7},
                    "probability": 0.25,
                    "status": "INJECTION_STATUS_COOLING_DOWN",
                    "reason": "later",
                },
            }
        ],
    }


def test_a_watch_sends_the_state_and_then_waits(learning: FixedLearning) -> None:
    """S3-40."""
    steps = servicer(learning).WatchLearningState(pb.WatchLearningStateRequest(project="p"), CallContext())
    first = next(steps)
    assert isinstance(first, pb.WatchLearningStateResponse)
    assert [one.memory_id for one in first.entries] == [CORE]
    assert next(steps) is UNTIL_WRITTEN
    assert next(steps) is UNTIL_WRITTEN


def test_a_watch_reads_the_entries_again_only_where_they_may_have_changed(learning: FixedLearning) -> None:
    """S3-40. Any write to the project wakes it."""
    steps = servicer(learning).WatchLearningState(pb.WatchLearningStateRequest(project="p"), CallContext())
    next(steps)
    for version, reads in (((4, 2), 1), ((4, 3), 2), ((4, 3), 2), (None, 3), (None, 4), ((4, 3), 5), ((4, 3), 5)):
        learning.at_version = version
        assert next(steps) is UNTIL_WRITTEN
        assert len(learning.asked) == reads


def test_only_what_is_set_is_changed(learning: FixedLearning) -> None:
    settings = learning_pb2.LearningSettings(mid_above=0, cold_start_pause=Duration(seconds=1, nanos=500_000_000))
    servicer(learning).UpdateLearningSettings(update(settings=settings), CallContext())
    ((command,),) = learning.asked
    assert command.enabled is None
    assert command.changes == SettingsChanges(mid_above=0, cold_start_pause_s=1.5)
    assert command.keywords == ()


def test_keywords_are_stripped_and_counted_once(learning: FixedLearning) -> None:
    """S3-39."""
    sent = pb.EntryKeywords(memory_id=CORE, keywords=[" 硬木头", "硬木头", "木 头 "])
    servicer(learning).UpdateLearningSettings(update(keywords=[sent]), CallContext())
    ((command,),) = learning.asked
    assert command.keywords == (KeywordsSet(memory_id=CORE, keywords=("硬木头", "木 头")),)


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({}, ""),
        ({"keywords": [pb.EntryKeywords(memory_id=CORE, keywords=["  "])]}, "keywords[0].keywords[0]"),
        ({"keywords": [pb.EntryKeywords(memory_id=CORE, keywords=["a\nb"])]}, "keywords[0].keywords[0]"),
        ({"keywords": [pb.EntryKeywords(memory_id="a\x00")]}, "keywords[0].memory_id"),
    ],
)
def test_what_cannot_be_changed_is_named(learning: FixedLearning, sent: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        servicer(learning).UpdateLearningSettings(update(**sent), CallContext())
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        (learning_pb2.LearningSettings(candidates=0), "settings.candidates"),
        (learning_pb2.LearningSettings(min_similarity=1.5), "settings.min_similarity"),
        (learning_pb2.LearningSettings(min_similarity=float("nan")), "settings.min_similarity"),
        (learning_pb2.LearningSettings(keyword_target=65), "settings.keyword_target"),
        (learning_pb2.LearningSettings(cold_start_pause=Duration(seconds=3601)), "settings.cold_start_pause"),
        (learning_pb2.LearningSettings(cold_start_pause=Duration(seconds=-1)), "settings.cold_start_pause"),
    ],
)
def test_numbers_out_of_range_are_refused(settings: learning_pb2.LearningSettings, field: str) -> None:
    with pytest.raises(RulesBroken) as refused:
        parse(pb.UpdateLearningSettingsRequest, update(settings=settings).SerializeToString())
    assert [violation.field for violation in refused.value.violations] == [field]


def test_a_replay_says_what_a_fork_would_have_done(learning: FixedLearning) -> None:
    """S3-28, S3-41."""
    request = pb.ReplayLearningRequest(project="p", fork=learning_pb2.LearningSettings(high_above=5, mid_above=2))
    reply = servicer(learning).ReplayLearning(request, CallContext())
    assert learning.asked == [("p", SettingsChanges(high_above=5, mid_above=2))]
    assert reply.matches
    assert MessageToDict(reply.fork)["differing"] == [
        {"event": 3, "scope": "s", "turn": 2, "addedIds": ["a"], "removedIds": ["b"]}
    ]


def test_a_replay_without_a_fork_decides_nothing_anew_and_none_is_by_other_numbers(learning: FixedLearning) -> None:
    servicer(learning).ReplayLearning(pb.ReplayLearningRequest(project="p"), CallContext())
    assert learning.asked == [("p", None)]
    request = pb.ReplayLearningRequest(project="p", fork=learning_pb2.LearningSettings(candidates=3))
    with pytest.raises(InvalidRequest, match="candidates"):
        servicer(learning).ReplayLearning(request, CallContext())


def pages(learning: FixedLearning, *, newest_first: bool, size: int) -> list[list[int]]:
    found: list[list[int]] = []
    token = ""
    while True:
        reply = servicer(learning).ListLearningEvents(
            pb.ListLearningEventsRequest(project="p", page_size=size, newest_first=newest_first, page_token=token),
            CallContext(),
        )
        found.append([event.number for event in reply.events])
        token = reply.next_page_token
        if not token:
            return found


def test_events_are_listed_from_either_end(learning: FixedLearning) -> None:
    """S3-28."""
    assert pages(learning, newest_first=False, size=3) == [[1, 2, 3], [4, 5, 6], [7, 8]]
    assert pages(learning, newest_first=True, size=3) == [[8, 7, 6], [5, 4, 3], [2, 1]]
    assert pages(learning, newest_first=True, size=8) == [[8, 7, 6, 5, 4, 3, 2, 1]]


def test_every_event_is_shown_as_what_it_is(learning: FixedLearning) -> None:
    reply = servicer(learning).ListLearningEvents(pb.ListLearningEventsRequest(project="p"), CallContext())
    assert [event.WhichOneof("event") for event in reply.events] == [
        "turn_observed",
        "keywords_learned",
        "injected",
        "keywords_set",
        "switched",
        "settings_changed",
        "forgotten",
        "feedback_given",
    ]
    assert len(reply.events) == len(EVENTS)
    feedback = reply.events[-1].feedback_given
    assert (list(feedback.useful_ids), list(feedback.useless_ids), list(feedback.wrong_ids)) == ([CORE], [], ["b"])


def scanned(**fields: Any) -> tuple[str, ScanScope, tuple[str, ...]]:
    return asked_scan(pb.LearnKeywordsRequest(project="p", **fields))


def test_a_scan_tells_where_it_is_each_entry_and_why_it_is_over(learning: FixedLearning) -> None:
    """S3-30."""
    steps = servicer(learning).LearnKeywords(pb.LearnKeywordsRequest(project="p"), CallContext())
    messages = [MessageToDict(one) if isinstance(one, pb.LearnKeywordsResponse) else one for one in steps]
    failed = {"memoryId": "b", "outcome": "ENTRY_OUTCOME_FAILED", "reason": "it did not answer in time"}
    assert messages == [
        {"total": 2, "done": 1},
        {"total": 2, "done": 2, "entry": failed},
        {"total": 2, "done": 2, "end": "SCAN_END_FAILING", "reason": "enough"},
    ]


def test_a_scan_that_has_read_nothing_new_waits() -> None:
    class Idle(FixedScan):
        def since(self, read: int) -> ScanProgress:
            return ScanProgress(total=2, learnt=LEARNT[read:1], end=None)

    steps = told(Idle())
    assert isinstance(next(steps), pb.LearnKeywordsResponse)
    assert next(steps) is UNTIL_WRITTEN
    assert next(steps) is UNTIL_WRITTEN


def test_which_entries_are_read_is_all_the_unlearned_or_the_named_ones() -> None:
    """S3-26, S3-36."""
    assert scanned() == ("p", ScanScope.UNLEARNED, ())
    assert scanned(scope=pb.SCAN_SCOPE_ALL) == ("p", ScanScope.ALL, ())
    assert scanned(memory_ids=[CORE]) == ("p", ScanScope.CHOSEN, (CORE,))
    with pytest.raises(InvalidRequest, match="scope"):
        scanned(scope=pb.SCAN_SCOPE_ALL, memory_ids=[CORE])


def test_an_observed_turn_says_everything_that_was_sent(learning: FixedLearning) -> None:
    """S3-05."""
    request = pb.ObserveTurnRequest(
        project="p", scope="s", turn=3, user_text="硬木头", assistant_text="ok", used_memory_ids=[CORE]
    )
    command = observe_command(request)
    assert (command.project, command.scope, command.turn, command.user_text) == ("p", "s", 3, "硬木头")
    assert (command.assistant_text, command.used_ids, command.request_id) == ("ok", (CORE,), "")
    assert servicer(learning).ObserveTurn(request, CallContext()).seq == 4


def test_numbers_of_outcomes_and_ends_are_those_of_the_contract() -> None:
    assert {one.name: one.value for one in EntryOutcome} == _without_prefix(pb.EntryOutcome, "ENTRY_OUTCOME_")
    assert {one.name: one.value for one in ScanEnd} == _without_prefix(pb.ScanEnd, "SCAN_END_")


def _without_prefix(enum: Any, prefix: str) -> dict[str, int]:
    return {name.removeprefix(prefix): number for name, number in enum.items() if number}
