"""A codex that is learnt of in the background, with a learner that says what a test wants."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from hummock.core.learning import Entry, KeywordsLearned, KeywordsSet, KeywordUpdate, Learner, LearningEvent, Profile
from hummock.core.learning_requests import EntryLearnt, LearningCommand, ObserveCommand, ScanProgress, SettingsChanges
from hummock.core.memory import Draft, MemoryIndex, MemoryKind, Payload
from hummock.learning.background import BackgroundLearner, Scan
from hummock.learning.learn_keywords import LearnKeywords
from hummock.learning.observe import Observe
from hummock.learning.offline import LearnOffline
from hummock.learning.references import Entries, ProjectReferences
from hummock.learning.state import Learning
from hummock.ports.models import KeywordQuestion
from hummock.recall.pipeline import Recall
from tests.workplace import Workplace, workplace

PROJECT = "p"
Answer = Callable[[KeywordQuestion], tuple[KeywordUpdate, ...]]


def saying(keywords: Mapping[str, tuple[str, ...]]) -> Answer:
    """Reads every entry, and has these keywords for some."""
    return lambda question: tuple(
        KeywordUpdate(memory_id=entry.memory_id, keywords=keywords.get(entry.memory_id, ()))
        for entry in question.entries
    )


@dataclass(kw_only=True)
class FixedLearner:
    """Says what `answer` says, and keeps what it was asked. It is no language model, for which switching is a start."""

    kind: Learner = Learner.OFFLINE
    answer: Answer = field(default_factory=lambda: saying({}))
    asked: list[KeywordQuestion] = field(default_factory=list)

    def due(self, project: str) -> None:
        """None: the learner is asked about the entries that the turn's words may refer to."""

    def keywords(self, question: KeywordQuestion) -> tuple[KeywordUpdate, ...]:
        """The answer."""
        self.asked.append(question)
        return self.answer(question)

    @property
    def read_ids(self) -> list[list[str]]:
        """The entries of each question."""
        return [[entry.memory_id for entry in question.entries] for question in self.asked]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningDesk:
    """Everything that a test of learning works with."""

    place: Workplace
    learner: FixedLearner
    learn: LearnKeywords
    background: BackgroundLearner
    observe: Observe
    learning: Learning

    def entries(self, *names: str, text: str = "") -> None:
        """Entries whose ids are their names, and whose text is their name unless it is said."""
        drafts = [
            Draft(id=name, kind=MemoryKind.ENTRY, index=MemoryIndex(title=name), payload=Payload(content=text or name))
            for name in names
        ]
        self.place.teach(*drafts, project=PROJECT)

    def switch(self, *, enabled: bool = True, **changes: int | float) -> None:
        """Switches learning, and changes its numbers."""
        changed = SettingsChanges(**changes)  # type: ignore[arg-type] # each is of its field's type
        self.learning.update(
            LearningCommand(
                project=PROJECT, request_id="", fingerprint=b"", enabled=enabled, changes=changed, keywords=()
            )
        )

    def turn(self, number: int, user_text: str, *used_ids: str, request_id: str = "") -> int:
        """Observes a turn."""
        command = ObserveCommand(
            project=PROJECT,
            scope="",
            turn=number,
            user_text=user_text,
            assistant_text="well",
            used_ids=used_ids,
            request_id=request_id,
            fingerprint=b"f",
        )
        return self.observe(command)

    def work(self) -> int:
        """Does all that is due; returns the number of steps."""
        steps = 0
        while self.background.step():
            steps += 1
        return steps

    def profile(self, memory_id: str) -> Profile | None:
        """Learned profile of an entry."""
        return self.place.store.read_learning(PROJECT, lambda learning: learning.profile(memory_id))

    def set_keywords(self, memory_id: str, *keywords: str) -> None:
        """Sets them by hand."""
        self.learning.update(
            LearningCommand(
                project=PROJECT,
                request_id="",
                fingerprint=b"",
                enabled=None,
                changes=SettingsChanges(),
                keywords=(KeywordsSet(memory_id=memory_id, keywords=keywords),),
            )
        )

    def entries_now(self) -> tuple[Entry, ...]:
        """The entries as a turn looks for them."""
        return tuple(self.place.store.read(PROJECT, partial(Entries().of, PROJECT)))

    def referred(self, text: str) -> list[str]:
        """Ids of the entries that the words refer to."""
        return [one.memory_id for one in ProjectReferences()(PROJECT, text, self.entries_now(), 0.6)]

    def events(self) -> list[LearningEvent]:
        """All events of the log."""
        return [one.event for one in self.learning.events(PROJECT, 0, 1000)]

    def runs(self) -> list[KeywordsLearned]:
        """Runs of the learner."""
        return [one for one in self.events() if isinstance(one, KeywordsLearned)]


def learnt(scan: Scan, read: int = 0) -> tuple[EntryLearnt, ...]:
    """Entries that a scan has learnt from."""
    return progress(scan, read).learnt


def progress(scan: Scan, read: int = 0) -> ScanProgress:
    """Progress of a scan."""
    return scan.since(read)


@contextmanager
def learning_desk(directory: Path, *, has_learner: bool = True, offline: bool = False) -> Iterator[LearningDesk]:
    """Everything open, no entries, learning off, and nothing running: `work` does what is due.

    With `offline` it is the real offline learner that learns.
    """
    with workplace(directory) as place:
        yield desk_at(place, has_learner=has_learner, offline=offline)


def desk_at(place: Workplace, *, has_learner: bool = True, offline: bool = False) -> LearningDesk:
    """A learning desk over an open workplace; otherwise like `learning_desk`."""
    learner = FixedLearner()
    entries = Entries()
    recall = Recall(place.embedder, place.clock)
    chosen = LearnOffline(place.store) if offline else learner
    learn = LearnKeywords(place.store, entries, recall, ProjectReferences(), chosen if has_learner else None)
    background = BackgroundLearner(learn, place.store.claims, place.clock)
    return LearningDesk(
        place=place,
        learner=learner,
        learn=learn,
        background=background,
        observe=Observe(place.store, background.seen),
        learning=Learning(place.store, entries, background.switched_on),
    )
