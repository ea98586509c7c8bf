"""Token vectors of candidates, for late interaction."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from hummock.core.candidates import Candidates, Gathered, GroupQuery, TokenVectors

ReadTokens = Callable[[int, int], bytes]
"""The token vectors of a chunk, given its memory's number and its own; empty when there are none."""


def with_tokens(gathered: Gathered, queries: Sequence[GroupQuery], read: ReadTokens, token_dim: int) -> Gathered:
    """The same candidates, with the token vectors of their best chunks in the groups that asked for them."""
    groups = tuple(
        replace(group, tokens=_tokens(group, read, token_dim)) if query.with_tokens else group
        for group, query in zip(gathered.groups, queries, strict=True)
    )
    return replace(gathered, groups=groups)


def _tokens(found: Candidates, read: ReadTokens, token_dim: int) -> TokenVectors:
    chunks = [read(doc, chunk) for doc, chunk in zip(found.doc.tolist(), found.best_chunk.tolist(), strict=True)]
    counts = (len(chunk) // token_dim for chunk in chunks)
    return TokenVectors(
        values=np.frombuffer(b"".join(chunks), np.int8).reshape(-1, token_dim),
        start=np.fromiter(itertools.accumulate(counts, initial=0), np.int64, len(chunks) + 1),
    )
