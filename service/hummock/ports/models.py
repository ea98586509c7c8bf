"""Models that read texts, language models, whoever finds keywords, and the time."""

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


@dataclass(frozen=True, slots=True)
class QueryGloss:
    """A query in the words of another language: these, and the share in [0, 1] of it that they account for."""

    text: str
    coverage: float


class Embedder(Protocol):
    """Turns texts into vectors of one space. Equal texts give equal bytes. Safe to call from several threads."""

    @property
    def space(self) -> EmbeddingSpace:
        """The space of all its vectors."""

    def embed_query(self, text: str, timeout_s: float | None = None, gloss: QueryGloss | None = None) -> Embedding:
        """The vector of a query; the model's query prefix is put before it and its end is cut to the window.

        Args:
            text: The query.
            timeout_s: Waits no longer than this; None means as long as it takes.
            gloss: The same in the words of another language, for what is stored in that; the embedding then has a
                bridge, unless one model reads all languages.

        Raises:
            EmbeddingLate: It took longer, and will be there when the query is asked again; or it would probably take
                longer, and was not begun.
        """

    def is_known(self, text: str, gloss: QueryGloss | None = None) -> bool:
        """Whether a query's vector is there, so that embedding it again costs nothing."""

    def embed_documents(
        self, documents: Sequence[Sequence[str]], deadline: Deadline = NO_DEADLINE, *, is_bulk: bool = False
    ) -> list[tuple[Embedding, ...]]:
        """One embedding a chunk, in order. A document is the chunks that `split` made of a memory, in order.

        Args:
            documents: What is embedded.
            deadline: Asked between the texts whether anybody still waits for them.
            is_bulk: Lets texts of other calls go first, as those of a call with many chunks do in any case.

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
    """A query and a text as a reranker reads them.

    Attributes:
        tokens: Ids of the tokens of both, special ones included, cut to the window at the text's end.
        token_types: As many; what tells the two apart in models that have token types.
        expected_s: How long it will take to score, from what pairs of its length took on this machine.
    """

    tokens: tuple[int, ...]
    token_types: tuple[int, ...]
    expected_s: float


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
        """How well each text answers, in [0, 1], in order, one after the other on the caller's thread.

        Args:
            pairs: What to score.
            until_s: On the clock's monotonic scale; the first pair that would probably end later is not begun, nor any
                after it, so that there are fewer scores than pairs. None means no limit.
        """

    def left_out(self) -> None:
        """Told that there was no time for pairs that were wanted: expects a little less of those to come.

        What is never scored because it once was slow would never be found to be fast.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmQuestion:
    """What a language model is asked, and the form of its answer.

    Attributes:
        name: Of the form, in letters, digits and underscores.
        instructions: What it is to do; ours alone.
        data: What it is to do it with: text of others, which is no instruction.
        schema: JSON schema of the answer. Models may disregard it, so that the answer has to be checked.
        max_tokens: Of the answer.
    """

    name: str
    instructions: str
    data: str
    schema: Mapping[str, object]
    max_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmUsage:
    """What a language model was asked so far, and what that came to.

    Attributes:
        requests: Sent, repeated ones included.
        replies: Of these, those that were answered with something usable.
        prompt_tokens: That the endpoint counted in questions; 0 where it says nothing.
        completion_tokens: That it counted in answers.
    """

    requests: int = 0
    replies: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


class LlmFailed(Exception):
    """A language model gave no answer; the message says why, and nothing of question, answer or key."""


class LlmLate(LlmFailed):
    """It did not answer in time."""

    def __init__(self) -> None:
        super().__init__("it did not answer in time")


class LlmLeftAlone(LlmFailed):
    """It was not asked, for it failed again and again."""

    def __init__(self) -> None:
        super().__init__("it failed again and again and is left alone for a while")


class Llm(Protocol):
    """Asks a language model. Safe to call from several threads."""

    @property
    def is_left_alone(self) -> bool:
        """Whether `ask` would raise LlmLeftAlone now, so that nothing need be made ready for it."""

    def ask(self, question: LlmQuestion, until_s: float) -> object:
        """The JSON value that it answers with.

        Args:
            question: What it is asked.
            until_s: When it must have answered, on the clock's monotonic scale.

        Raises: LlmFailed, LlmLate, LlmLeftAlone.
        """

    def close(self) -> None:
        """Closes its connections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryText:
    """An entry as a learner reads it. All of it is text of others, and no instruction.

    Attributes:
        memory_id: Its id.
        title: Its name.
        text: What it says, from its beginning.
        keywords: Those that it has already.
        hints: The same of words that may be for it.
    """

    memory_id: str
    title: str
    text: str
    keywords: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()


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
