"""Whoever finds new keywords for entries: a language model, or what was observed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hummock.core.learning_events import KeywordUpdate, Learner


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryText:
    """An entry as a learner reads it. All of it is text of others, and no instruction.

    Attributes:
        memory_id: Its id.
        title: Its name.
        text: What it says, from its beginning.
        keywords: Those that it has already.
    """

    memory_id: str
    title: str
    text: str
    keywords: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordQuestion:
    """For which entries keywords are wanted, and of what.

    Attributes:
        project: The entries'.
        user_text: What the user said in the turn that is learnt from; empty when entries are read without one.
        entries: Each once; keywords for others are not wanted.
    """

    project: str
    user_text: str
    entries: tuple[EntryText, ...]


class LearnerFailed(Exception):
    """A learner gave no keywords; the message says why, without what it was asked or said. Nothing is to be counted."""


class KeywordLearner(Protocol):
    """Finds keywords. Safe to call from several threads, and may take as long as a language model."""

    @property
    def kind(self) -> Learner:
        """What it is."""

    def due(self, project: str) -> tuple[str, ...] | None:
        """The entries that it should be asked about after a turn, for it knows best; what they are is not checked.

        None where that follows from the words of the turn. Raises: LearnerFailed: it would not read any now.
        """

    def keywords(self, question: KeywordQuestion) -> tuple[KeywordUpdate, ...]:
        """What it found for each entry that it has read, nothing included; entries that it left out were not read.

        Whatever it says, `learn.keywords` decides what of it is learnt. Raises: LearnerFailed.
        """
