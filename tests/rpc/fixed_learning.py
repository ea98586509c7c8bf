"""The use case of learning, with answers that are known beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hummock.core import learning as core
from hummock.core import learning_requests as requests
from hummock.core.deadline import NO_DEADLINE, Deadline
from hummock.learning.background import Scan
from hummock.learning.state import Learning

CORE = "世界.图鉴.物品.潮汐木芯"
SETTINGS = core.LearningSettings(high_above=5, mid_above=2, min_similarity=0.75, cold_start_pause_s=0.25)
STATE = core.LearningState(enabled=True, settings=SETTINGS, turns=9, missed_turns=2, events=8, keywords_event=2)
ENTRY = requests.EntryState(
    memory_id=CORE,
    title="潮汐木芯",
    profile=core.Profile(keywords=("硬木头",), last_analyzed_turn=8, miss_count=1),
    injection=core.Injection(
        memory_id=CORE,
        usage=core.Usage(frequency=2, last_sent_turn=7),
        probability=0.25,
        status=core.InjectionStatus.COOLING_DOWN,
        reason="later",
    ),
)
EVENTS: tuple[core.LearningEvent, ...] = (
    core.TurnObserved(scope="s", turn=1, user_text="硬木头", assistant_hash=b"\xff", used_ids=(CORE,)),
    core.KeywordsLearned(
        learner=core.Learner.OFFLINE,
        turn=1,
        updates=(core.KeywordUpdate(memory_id=CORE, keywords=("硬木头",)),),
        analyzed_ids=(CORE, "b"),
    ),
    core.Injected(
        scope="s", turn=2, request_id="r", referenced_ids=(CORE,), injected_ids=(CORE, "b"), dropped_ids=("b",)
    ),
    core.KeywordsSet(memory_id=CORE, keywords=()),
    core.Switched(enabled=True),
    core.SettingsChanged(settings=SETTINGS),
    core.Forgotten(memory_ids=("b",)),
    core.FeedbackGiven(
        query_text="q",
        verdicts=(
            core.Verdict(memory_id=CORE, judgement=core.Judgement.HELPFUL),
            core.Verdict(memory_id="b", judgement=core.Judgement.WRONG),
        ),
    ),
)
LOG = tuple(
    core.LoggedEvent(number=number, time=1_700_000_000.0, event=one) for number, one in enumerate(EVENTS, start=1)
)
REPLAYED = requests.Replayed(
    events=8,
    digest="aa",
    replayed_digest="aa",
    fork=requests.Fork(
        settings=SETTINGS,
        turn_count=3,
        injected_count=4,
        forked_injected_count=5,
        differing_count=1,
        differing=(requests.ForkedTurn(event=3, scope="s", turn=2, added_ids=("a",), removed_ids=("b",)),),
    ),
)


LEARNT = (
    requests.EntryLearnt(memory_id=CORE, outcome=requests.EntryOutcome.LEARNT, keywords=("硬木头",)),
    requests.EntryLearnt(memory_id="b", outcome=requests.EntryOutcome.FAILED, reason="it did not answer in time"),
)


@dataclass
class FixedScan(Scan):
    """A scan that has read one entry, reads another when it is looked at again, and is then over."""

    looks: int = 0

    def since(self, read: int) -> requests.ScanProgress:
        self.looks += 1
        known = LEARNT[: min(self.looks, 2)]
        end = requests.ScanEnd.FAILING if self.looks > 2 else None
        return requests.ScanProgress(total=2, learnt=known[read:], end=end, reason="enough" if end else "")


def observe(command: requests.ObserveCommand) -> int:
    return 4


@dataclass
class FixedLearning(Learning):
    """Learning that answers with the samples and notes what it was asked."""

    asked: list[tuple[Any, ...]] = field(default_factory=list)
    at_version: tuple[int, int] | None = (4, 2)

    def page(self, project: str, scope: str, turn: int | None, after: int, limit: int) -> requests.LearningPage:
        self.asked.append((project, scope, turn, after, limit))
        return requests.LearningPage(state=STATE, turn=8, entries=(ENTRY,), next_after=None)

    def whole(self, project: str, scope: str) -> requests.LearningPage:
        self.asked.append((project, scope))
        return requests.LearningPage(state=STATE, turn=8, entries=(ENTRY,), next_after=None)

    def version(self, project: str) -> tuple[int, int] | None:
        return self.at_version

    def events(self, project: str, after: int, limit: int) -> Sequence[core.LoggedEvent]:
        self.asked.append((project, after, limit))
        return LOG[after : after + limit]

    def event_count(self, project: str) -> int:
        return len(LOG)

    def update(self, command: requests.LearningCommand) -> requests.LearningUpdated:
        self.asked.append((command,))
        return requests.LearningUpdated(seq=3, state=STATE, missed_turns=2)

    def replay(
        self, project: str, fork: requests.SettingsChanges | None, deadline: Deadline = NO_DEADLINE
    ) -> requests.Replayed:
        self.asked.append((project, fork))
        return REPLAYED
