"""A pair tokenizer and an ONNX session: query and text in, log odds out, one pair an inference."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tokenizers import Encoding

from hummock.models.description import GRAPH_FILE, TOKENIZER_FILE, RerankerDescription
from hummock.models.errors import ModelGraphUnsupported, ScoreNotFinite
from hummock.models.session import check_graph, declared_inputs, open_session, open_tokenizer

__all__ = ["CrossEncoder"]

QUERY_SHARE = 0.5
"""Of the window; a longer query is cut there, so that every text has room."""


CHARACTERS_A_TOKEN = 16
"""Room for a text's characters before it is made into tokens, of which most have one to six. Without a bound, a text of
256 KiB takes longer to be made into tokens than its pair to be scored."""

UNKNOWN = frozenset({"<unk>", "[UNK]"})
"""The token of an unknown character, as XLM-R and BERT call it."""


class CrossEncoder:
    """Runs a cross-encoder on one pair at a time; safe to call from several threads.

    Pairs are never batched: with dynamically quantised weights a pair's score would depend on its batch-mates. One call
    uses one core.
    """

    def __init__(self, model: RerankerDescription, directory: Path) -> None:
        """Open the model's files, which `directory.verify` has approved.

        Raises:
            ModelGraphUnsupported: The graph's inputs or outputs are not those of the description, or the tokenizer
                does not join pairs.
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

        Raises:
            TypeError: A text holds a lone surrogate, which is no Unicode text.
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
        """How well the text answers the query, in [0, 1]: the sigmoid of the graph's log odds.

        Raises:
            ScoreNotFinite: The model gave NaN or infinity.
        """
        row = np.asarray([tokens], dtype=np.int64)
        types = np.asarray([token_types], dtype=np.int64)
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
