"""Models that read texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hummock.core.embedding import Embedding, EmbeddingSpace


class EmbeddingLate(Exception):
    """A query's embedding is not there in time; the message says how long it was waited for, or would have been."""


class Embedder(Protocol):
    """Turns texts into vectors of one space. Equal texts give equal bytes. Safe to call from several threads."""

    @property
    def space(self) -> EmbeddingSpace:
        """The space of all its vectors."""

    def embed_query(self, text: str, timeout_s: float | None = None) -> Embedding:
        """The vector of a query; the model's query prefix is put before it and its end is cut to the window.

        Args:
            text: The query.
            timeout_s: Waits no longer than this; None means as long as it takes.

        Raises:
            EmbeddingLate: It took longer, and will be there when the query is asked again; or it would probably take
                longer, and was not begun.
        """

    def is_known(self, text: str) -> bool:
        """Whether a query's vector is there, so that embedding it again costs nothing."""

    def embed_documents(self, texts: Sequence[str]) -> list[Embedding]:
        """One embedding a text, in order. Each text is a chunk that `split` made."""

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
