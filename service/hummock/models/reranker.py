"""The port `Reranker` on onnxruntime: a verified cross-encoder that knows how long it takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hummock.models.cross_encoder import CrossEncoder
from hummock.models.description import RerankerDescription
from hummock.models.directory import verify
from hummock.models.pair_times import LENGTHS, PairTimes
from hummock.ports import Clock, Pair

__all__ = ["OnnxReranker", "load_reranker"]

WARM_UPS = 2
"""Inferences of each length at start; the first one of a length also allocates its memory and is not counted."""


def load_reranker(model: RerankerDescription, directory: Path, clock: Clock) -> OnnxReranker:
    """A ready reranker of the model whose files lie in its own directory; it has timed itself.

    Raises:
        ModelFileMissing: A file is not there.
        ModelFileAltered: A file is not the pinned one; nothing of it was opened.
        ModelGraphUnsupported: The files cannot be run as described.
    """
    verify(model, directory)
    return OnnxReranker(model, CrossEncoder(model, directory), clock)


class OnnxReranker:
    """The port `Reranker`."""

    def __init__(self, model: RerankerDescription, encoder: CrossEncoder, clock: Clock) -> None:
        self._model = model
        self._encoder = encoder
        self._clock = clock
        self._times = PairTimes()
        for length in LENGTHS:
            self._warm_up(min(length, model.max_tokens))

    @property
    def name(self) -> str:
        """The model's."""
        return self._model.name

    @property
    def least_s(self) -> float:
        """How long the shortest of pairs takes on one core."""
        return self._times.expected_s(1)

    def pairs(self, query: str, texts: Sequence[str]) -> list[Pair]:
        """The query with each text, in order; a text is cut at its end to fit, a query at half the window.

        Raises:
            TypeError: A text holds a lone surrogate.
        """
        return [
            Pair(tokens=tuple(ids), token_types=tuple(types), expected_s=self._times.expected_s(len(ids)))
            for ids, types in self._encoder.encode(query, texts)
        ]

    def scores(self, pairs: Sequence[Pair], until_s: float | None) -> list[float]:
        """How well each text answers, in [0, 1]; those that would end after `until_s` are left out.

        Raises:
            ScoreNotFinite: The model gave NaN or infinity.
        """
        scores: list[float] = []
        for pair in pairs:
            if until_s is not None and self._clock.monotonic() + pair.expected_s > until_s:
                break
            scores.append(self._timed(pair))
        return scores

    def left_out(self) -> None:
        """Told that pairs were left out for lack of time, so that one slow time does not keep them out for good."""
        self._times.fade()

    def _timed(self, pair: Pair) -> float:
        start = self._clock.monotonic()
        score = self._encoder.score(pair.tokens, pair.token_types)
        self._times.add(len(pair.tokens), self._clock.monotonic() - start)
        return score

    def _warm_up(self, length: int) -> None:
        [(ids, types)] = self._encoder.encode("warm-up", ["a " * length])
        pair = Pair(tokens=tuple(ids[:length]), token_types=tuple(types[:length]), expected_s=0.0)
        for _ in range(WARM_UPS):
            self._timed(pair)
