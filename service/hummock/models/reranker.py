"""The port `Reranker` on onnxruntime: a verified cross-encoder that knows how long it takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tokenizers import Encoding

from hummock.core.deadline import InferenceTimes
from hummock.models.description import GRAPH_FILE, TOKENIZER_FILE, RerankerDescription
from hummock.models.encoder import check_graph, declared_inputs, open_session, open_tokenizer
from hummock.models.errors import ModelGraphUnsupported, ScoreNotFinite
from hummock.models.files import verify
from hummock.ports.models import Clock, Pair

LENGTHS = (64, 128, 256, 512)
"""Most tokens of a pair in each bucket; longer ones count as the last."""

_FADING = 1 / 1024
"""Share by which an expected duration shrinks each time it keeps pairs from being scored. Callers wait while pairs are
scored, so an expectation of twice the available time must not be tried again before some 700 recalls."""

QUERY_SHARE = 0.5
"""Share of the window for the query; a longer one is cut, so that every text has room."""

CHARACTERS_A_TOKEN = 16
"""Room for a text's characters before it is made into tokens, of which most have one to six. Without a bound, a text of
256 KiB takes longer to be made into tokens than its pair to be scored."""

UNKNOWN = frozenset({"<unk>", "[UNK]"})
"""The token of an unknown character, as XLM-R and BERT call it."""

WARM_UPS = 2
"""Inferences of each length at start; the first one of a length also allocates its memory and is not counted."""


def load_reranker(model: RerankerDescription, directory: Path, clock: Clock) -> OnnxReranker:
    """Load a reranker from the model's own directory, and time it. Raises: as `SingleModel`."""
    verify(model, directory)
    return OnnxReranker(model, CrossEncoder(model, directory), clock)


def pair_times() -> InferenceTimes:
    """Expected times of pairs by their tokens; none yet."""
    return InferenceTimes(LENGTHS, _FADING)


class OnnxReranker:
    """The port `Reranker`."""

    def __init__(self, model: RerankerDescription, encoder: CrossEncoder, clock: Clock) -> None:
        self.name = model.name
        self._encoder = encoder
        self._clock = clock
        self._times = pair_times()
        for length in LENGTHS:
            self._warm_up(min(length, model.max_tokens))

    @property
    def least_s(self) -> float:
        """Seconds for the shortest pair on one core."""
        return self._times.expected_s(1)

    def pairs(self, query: str, texts: Sequence[str]) -> list[Pair]:
        """The query with each text, in order; see `CrossEncoder.encode`."""
        return [
            Pair(tokens=tuple(ids), token_types=tuple(types), expected_s=self._times.expected_s(len(ids)))
            for ids, types in self._encoder.encode(query, texts)
        ]

    def scores(self, pairs: Sequence[Pair], until_s: float | None) -> list[float]:
        """Score how well each text answers, until the time is up. Raises: ScoreNotFinite."""
        scores: list[float] = []
        for pair in pairs:
            if until_s is not None and self._clock.monotonic() + pair.expected_s > until_s:
                break
            scores.append(self._timed(pair))
        return scores

    def left_out(self) -> None:
        """Lower the expected times a little."""
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


class CrossEncoder:
    """Runs a cross-encoder on one pair at a time; safe to call from several threads.

    Pairs are never batched: with dynamically quantised weights a pair's score would depend on its batch-mates. One call
    uses one core.
    """

    def __init__(self, model: RerankerDescription, directory: Path) -> None:
        """Open the model's files, which `verify` has approved.

        Raises: ModelGraphUnsupported: The graph has other inputs or outputs, or the tokenizer does not join pairs.
        """
        self._model = model
        self._tokenizer = open_tokenizer(model.name, directory / TOKENIZER_FILE)
        # What stands for a character that the model does not know is no part of how texts are joined.
        self._joining_ids = {
            token
            for token, added in self._tokenizer.get_added_tokens_decoder().items()
            if added.special and added.content not in UNKNOWN
        }
        self._session = open_session(directory / GRAPH_FILE)
        self._inputs = declared_inputs(self._session)
        check_graph(model.name, self._session, [model.score_output])
        if not self._special_tokens:
            raise ModelGraphUnsupported(f"model {model.name}: its tokenizer puts nothing between two texts")

    def encode(self, query: str, texts: Sequence[str]) -> list[tuple[list[int], list[int]]]:
        """Token ids and types of the query with each text: what does not fit the window is cut from the text's end.

        A query is cut at half the window. Raises: TypeError: A text holds a lone surrogate, which is no Unicode text.
        """
        asked = self._tokenizer.encode(query, add_special_tokens=False)
        asked.truncate(int(self._model.max_tokens * QUERY_SHARE))
        room = self._model.max_tokens - self._special_tokens - len(asked.ids)
        encoded: list[tuple[list[int], list[int]]] = []
        for text in texts:
            told = self._tokenizer.encode(text[: CHARACTERS_A_TOKEN * room], add_special_tokens=False)
            told.truncate(room)
            encoded.append(self._without_forged(self._tokenizer.post_process(asked, told)))
        return encoded

    def score(self, tokens: Sequence[int], token_types: Sequence[int]) -> float:
        """How well the text answers the query: the sigmoid of the graph's log odds. Raises: ScoreNotFinite."""
        row, types = np.asarray([tokens], dtype=np.int64), np.asarray([token_types], dtype=np.int64)
        offered = {"input_ids": row, "attention_mask": np.ones_like(row), "token_type_ids": types}
        feed = {name: value for name, value in offered.items() if name in self._inputs}
        logit = float(np.asarray(self._session.run([self._model.score_output], feed)[0]).reshape(-1)[0])
        if not np.isfinite(logit):
            raise ScoreNotFinite(self._model.name)
        return float(1 / (1 + np.exp(-logit)))

    def _without_forged(self, joined: Encoding) -> tuple[list[int], list[int]]:
        """Ids and types but for special tokens that a text spelt: these vocabularies hold `</s>` as a piece."""
        columns = zip(joined.ids, joined.type_ids, joined.special_tokens_mask, strict=True)
        kept = [(token, kind) for token, kind, is_ours in columns if is_ours or token not in self._joining_ids]
        return [token for token, _ in kept], [kind for _, kind in kept]

    @property
    def _special_tokens(self) -> int:
        return self._tokenizer.num_special_tokens_to_add(is_pair=True)
