"""The learning loop over a store, without a model: prompts are lists of titles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from hummock.core.learning import (
    FeedbackGiven,
    Injected,
    Judgement,
    KeywordsLearned,
    KeywordsSet,
    KeywordUpdate,
    Learner,
    LearningEvent,
    LearningState,
    LoggedEvent,
    Profile,
    TurnObserved,
    Usage,
    Verdict,
)
from hummock.core.learning_requests import LearningCommand, LearningUpdated, Replayed, SettingsChanges
from hummock.core.memory import MemoryKind
from hummock.core.render import RenderCommit, Rendered, Tier
from hummock.learning.log import record
from hummock.learning.references import Entries, ProjectReferences
from hummock.learning.state import Learning
from hummock.ports.store import Store
from hummock.ports.writes import UnitOfWork, Written
from hummock.render.turn import Load, RenderTurn, Source, Turn
from tests.strategies import Entry, delete_request, put_request, write_request

TITLES = ("alder", "birch", "cedar", "dogwood", "elm", "潮汐木芯", "长明灯", "Grey Harbour")
NO_CHANGES = SettingsChanges()


def entry(title: str, kind: MemoryKind = MemoryKind.ENTRY) -> Entry:
    """An entry that is found by its title; its id has dots and Chinese in it (S3-34)."""
    return Entry(id=f"世界.v1.{title}", kind=kind, title=tuple(title.split()), words=("entry",))


def entry_id(title: str) -> str:
    return entry(title).id


@dataclass(frozen=True, slots=True)
class Workbench:
    """Access to the learning of one project."""

    store: Store
    project: str = "p"

    @property
    def learning(self) -> Learning:
        return Learning(self.store, Entries(), lambda project: "")

    def put(self, *titles: str, kind: MemoryKind = MemoryKind.ENTRY) -> None:
        self.store.write(self.project, put_request([entry(title, kind) for title in titles])).result(30)

    def remove(self, *titles: str) -> None:
        self.store.write(self.project, delete_request([entry_id(title) for title in titles])).result(30)

    def prepare(
        self,
        text: str,
        turn: int,
        *,
        scope: str = "",
        request_id: str = "",
        room: int = 100,
        turns: RenderTurn | None = None,
    ) -> Callable[[], Rendered]:
        """Renders a turn that has room for so many entries; what is returned counts it."""
        turns = turns or RenderTurn(self.store, Entries(), ProjectReferences())
        fingerprint = f"{text}/{turn}/{scope}".encode()
        commit = RenderCommit(scope=scope, turn=turn, request_id=request_id, fingerprint=fingerprint)
        asked = Turn(
            project=self.project, commit=commit, text=text, source=Source(selected=(), seq=0), hits=(),
            budget_tokens=4000, write=Listing(room),
        )  # fmt: skip
        return self.store.read(self.project, partial(turns.prepare, asked))

    def say(self, text: str, turn: int, *, scope: str = "", request_id: str = "", room: int = 100) -> list[str]:
        """A turn that is counted; the titles in its prompt."""
        return titles(self.prepare(text, turn, scope=scope, request_id=request_id, room=room)())

    def update(
        self,
        *,
        enabled: bool | None = None,
        changes: SettingsChanges = NO_CHANGES,
        keywords: Sequence[KeywordsSet] = (),
    ) -> LearningUpdated:
        return self.learning.update(
            LearningCommand(
                project=self.project, request_id="", fingerprint=b"f", enabled=enabled, changes=changes,
                keywords=tuple(keywords),
            )
        )  # fmt: skip

    def note(self, *events: LearningEvent) -> Written[int]:
        """Logs what other parts of the service log."""

        def apply(work: UnitOfWork) -> None:
            for event in events:
                record(work.learning, event)

        return self.store.write(self.project, write_request(apply)).result(30)

    def observe(self, turns: Iterable[int], text: str, scope: str = "") -> None:
        """Turns that are told of in one write."""
        self.note(*(TurnObserved(scope=scope, turn=turn, user_text=text) for turn in turns))

    def learn(self, title: str, *keywords: str, analyzed: Sequence[str] = ()) -> None:
        """The learner has read these entries and found keywords for the first. What it reads is there."""
        self.put(title, *analyzed)
        turn = self.state().turns
        update = KeywordUpdate(memory_id=entry_id(title), keywords=keywords)
        ids = tuple(entry_id(one) for one in (title, *analyzed))
        self.note(KeywordsLearned(learner=Learner.LLM, turn=turn, updates=(update,), analyzed_ids=ids))

    def judge(self, title: str, *, is_useful: bool) -> None:
        judgement = Judgement.HELPFUL if is_useful else Judgement.NOT_HELPFUL
        verdict = Verdict(memory_id=entry_id(title), judgement=judgement)
        self.note(FeedbackGiven(query_text="q", verdicts=(verdict,)))

    def state(self) -> LearningState:
        return self.store.read_learning(self.project, lambda learning: learning.state())

    def usage(self, scope: str = "") -> dict[str, Usage]:
        found = self.store.read_learning(self.project, lambda learning: learning.usage(scope))
        return {memory_id.removeprefix("世界.v1."): used for memory_id, used in found.items()}

    def profiles(self) -> dict[str, Profile]:
        found = self.store.read_learning(self.project, lambda learning: dict(learning.profiles()))
        return {memory_id.removeprefix("世界.v1."): profile for memory_id, profile in found.items()}

    def log(self) -> list[LoggedEvent]:
        return list(self.store.read_learning(self.project, lambda learning: learning.events(0, 1_000_000)))

    def injected(self) -> list[Injected]:
        return [one.event for one in self.log() if isinstance(one.event, Injected)]

    def replay(self, fork: SettingsChanges | None = None) -> Replayed:
        return self.learning.replay(self.project, fork)


@dataclass(slots=True)
class Listing:
    """Renders as many titles as there is room for, and counts how often it was asked."""

    room: int
    calls: int = 0

    def __call__(self, source: Source, load: Load) -> Rendered:
        self.calls += 1
        memories = [
            item.report(Tier.FULL, 1, "fits") if place < self.room else item.report(reason="no room")
            for place, item in enumerate(source.selected)
        ]
        return Rendered(
            text="\n".join(one.memory_id for one in memories if one.tier is Tier.FULL), token_count=len(memories),
            budget_tokens=self.room, over_budget=False, memories=tuple(memories), tools=(), messages=(),
            instructions="", prefix=None, missing_ids=(), counter="fake", intent=None, receipt=None, degraded=(),
            render_elapsed_s=0.0, seq=source.seq,
        )  # fmt: skip


def titles(rendered: Rendered) -> list[str]:
    """Titles of the entries in the prompt."""
    shown = [one.memory_id for one in rendered.memories if one.tier is not Tier.DROPPED]
    return [memory_id.removeprefix("世界.v1.") for memory_id in shown]


def uuid(number: int) -> str:
    """A request id."""
    return str(UUID(int=number, version=4))
