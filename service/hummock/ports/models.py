"""Ports of models: embedders, rerankers, language models and keyword learners; and the clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hummock.core.deadline import NO_DEADLINE, Deadline
from hummock.core.embedding import Embedding, EmbeddingSpace
from hummock.core.learning import KeywordUpdate, Learner


class Clock(Protocol):
    """The time. Tests move it by hand."""

    def now(self) -> float:
        """Unix seconds."""

    def monotonic(self) -> float:
        """Seconds from some start; never goes back."""


class EmbeddingLate(Exception):
    """A query's embedding is not there in time; the message says how long it was waited for, or would have been."""


class Embedder(Protocol):
    """Turns texts into vectors of one space. Equal texts give equal bytes. Safe to call from several threads."""

    @property
    def space(self) -> EmbeddingSpace:
        """The space of all its vectors."""

    def embed_query(self, text: str, timeout_s: float | None = None, gloss: str | None = None) -> Embedding:
        """Embed a query, with the model's query prefix, cut at the end to the window.

        Args:
            text: The query.
            timeout_s: Waits no longer than this; None means as long as it takes.
            gloss: Its translation word by word, for texts stored in that language; the embedding then has a bridge.
                It has one without a gloss too where a model reads all languages.

        Raises:
            EmbeddingLate: It took longer, and will be cached for the next call; or it would probably take longer, and
                was not begun.
        """

    def is_known(self, text: str, gloss: str | None = None) -> bool:
        """Whether a query's vector is cached."""

    def embed_documents(
        self, documents: Sequence[Sequence[str]], deadline: Deadline = NO_DEADLINE, *, is_bulk: bool = False
    ) -> list[tuple[Embedding, ...]]:
        """Embed documents, one embedding per chunk, in order. A document is the chunks of a memory, as made by `split`.

        Args:
            documents: Chunks of each document.
            deadline: Checked between texts.
            is_bulk: Lets texts of other calls go first, as calls with many chunks always do.

        Raises: what the deadline raises.
        """

    def embed_in_turn(self, chunks: Sequence[str]) -> Iterator[Embedding]:
        """Embed the chunks of one document, each on the caller's thread when it is asked for."""

    def split(self, header: str, body: str) -> list[str]:
        """Chunks of a memory that fit the window, each beginning with the header; at least one."""

    def close(self) -> None:
        """Frees the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A query and a text as a reranker reads them."""

    tokens: tuple[int, ...]  # Ids of the tokens of both, special ones included, cut to the window at the text's end.
    token_types: tuple[int, ...]  # One per token; separates query and text in models that have token types.
    expected_s: float  # Expected time to score it, in seconds, from pairs of its length on this machine.


class Reranker(Protocol):
    """Scores a text by reading it together with the query. Equal pairs get equal scores. Safe to call from threads."""

    @property
    def name(self) -> str:
        """The model's."""

    @property
    def least_s(self) -> float:
        """How long the shortest of pairs takes."""

    def pairs(self, query: str, texts: Sequence[str]) -> list[Pair]:
        """The query with each text, in order."""

    def scores(self, pairs: Sequence[Pair], until_s: float | None) -> list[float]:
        """Score how well each text answers, in [0, 1], in order, one at a time on the caller's thread.

        Args:
            pairs: What to score.
            until_s: On the clock's monotonic scale; stops before the first pair that would probably end later, so there
                may be fewer scores than pairs. None means no limit.
        """

    def left_out(self) -> None:
        """Report that pairs were skipped for lack of time; lowers the estimate for later pairs a little.

        Otherwise one slow run would prevent all later ones, and the estimate would never recover.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmQuestion:
    """A question to a language model, and the form of its answer."""

    name: str  # Name of the form, in letters, digits and underscores.
    instructions: str  # The task; contains only our own text.
    data: str  # Input of the task: text of others, never an instruction.
    schema: Mapping[str, object]  # JSON schema of the answer. Models may ignore it, so the answer must be checked.
    max_tokens: int  # Most tokens of the answer.


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmUsage:
    """Counters of requests to a language model and of their tokens."""

    requests: int = 0  # Requests sent, repeats included.
    replies: int = 0  # Usable replies.
    prompt_tokens: int = 0  # Tokens of questions as counted by the endpoint; 0 if it does not report them.
    completion_tokens: int = 0  # Tokens of answers, likewise.


class LlmFailed(Exception):
    """A language model gave no answer; the message says why, and nothing of question, answer or key."""


class LlmLate(LlmFailed):
    """It did not answer in time."""

    def __init__(self) -> None:
        super().__init__("it did not answer in time")


class LlmLeftAlone(LlmFailed):
    """The model was not asked, since it has failed repeatedly."""

    def __init__(self) -> None:
        super().__init__("it failed again and again and is left alone for a while")


class Llm(Protocol):
    """Asks a language model. Safe to call from several threads."""

    @property
    def is_left_alone(self) -> bool:
        """Whether `ask` would raise LlmLeftAlone now, so that preparing a question is pointless."""

    def ask(self, question: LlmQuestion, until_s: float) -> object:
        """Ask the model and return its answer, a JSON value.

        Args:
            question: The question.
            until_s: Deadline for the answer, on the clock's monotonic scale.

        Raises: LlmFailed, LlmLate, LlmLeftAlone.
        """

    def close(self) -> None:
        """Closes its connections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryText:
    """An entry as a learner reads it. All of it is text of others, never an instruction."""

    memory_id: str  # Its id.
    title: str  # Its name.
    text: str  # Its content, from the beginning.
    keywords: tuple[str, ...] = ()  # Its known keywords.
    hints: tuple[str, ...] = ()  # Its known hints.


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordQuestion:
    """The entries that need keywords, and the text to learn from."""

    project: str  # Project of the entries.
    user_text: str  # The user's text of the turn; empty if entries are read without a turn.
    entries: tuple[EntryText, ...]  # Each once; keywords for others are ignored.


class LearnerFailed(Exception):
    """A learner gave no keywords; the message gives the reason without any text of others. Nothing must be counted."""


class KeywordLearner(Protocol):
    """Finds keywords. Safe to call from several threads, and may take as long as a language model."""

    @property
    def kind(self) -> Learner:
        """The kind of learner."""

    def due(self, project: str) -> tuple[str, ...] | None:
        """Return the entries to ask about after a turn; the ids are not checked.

        None if they follow from the words of the turn. Raises: LearnerFailed: it would not read any now.
        """

    def keywords(self, question: KeywordQuestion) -> tuple[KeywordUpdate, ...]:
        """Return an update for each entry that was read, which may be empty; entries left out were not read.

        `learn.keywords` decides which keywords are accepted. Raises: LearnerFailed.
        """
