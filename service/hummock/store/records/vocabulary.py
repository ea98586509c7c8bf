"""The numbers of terms that the writer has met lately, so that it need not look them up on disk."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

from hummock_kernels.vocabulary import numbers_of, remember_numbers

_FEWEST_SLOTS = 64


class Vocabulary:
    """Numbers by the keys of `core.terms.TermBatch`. It may lack any; what it has never changes. The writer's alone."""

    def __init__(self) -> None:
        self._slots = np.zeros(_FEWEST_SLOTS, np.uint64)
        self._numbers = np.zeros(_FEWEST_SLOTS, np.uint32)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._slots.nbytes + self._numbers.nbytes

    def numbers_of(self, keys: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """The number of each key, UNKNOWN for those that it lacks."""
        return numbers_of(self._slots, self._numbers, keys)

    def remember(self, keys: NDArray[np.uint64], numbers: NDArray[np.uint32]) -> None:
        """Puts numbers under keys."""
        while 2 * (self._size + len(keys)) > len(self._slots):
            self._grow()
        self._size += remember_numbers(self._slots, self._numbers, keys, numbers)

    def _grow(self) -> None:
        used = np.flatnonzero(self._slots)
        keys, numbers = self._slots[used], self._numbers[used]
        self._slots = np.zeros(2 * len(self._slots), np.uint64)
        self._numbers = np.zeros(len(self._slots), np.uint32)
        remember_numbers(self._slots, self._numbers, keys, numbers)


class Vocabularies:
    """Those of the projects written to last, within a budget of memory."""

    def __init__(self, budget_bytes: int) -> None:
        self._budget_bytes = budget_bytes
        self._by_project: OrderedDict[str, Vocabulary] = OrderedDict()
        # What each was counted with, so that a group costs the same however many there are.
        self._counted: dict[str, int] = {}
        self._held = 0
        self._used: set[str] = set()

    def of(self, project: str) -> Vocabulary:
        """The project's, which may be empty."""
        vocabulary = self._by_project.get(project)
        if vocabulary is None:
            vocabulary = self._by_project[project] = Vocabulary()
        self._by_project.move_to_end(project)
        self._used.add(project)
        return vocabulary

    def forget(self, project: str) -> None:
        """Drops the project's, since a write that was undone may have added to it."""
        if self._by_project.pop(project, None) is not None:
            self._held -= self._counted.pop(project, 0)

    def clear(self) -> None:
        """Drops all."""
        self._by_project.clear()
        self._counted.clear()
        self._held = 0

    def keep_within_budget(self) -> None:
        """Drops those that were used longest ago."""
        for project in self._used & self._by_project.keys():
            size = self._by_project[project].nbytes
            self._held += size - self._counted.get(project, 0)
            self._counted[project] = size
        self._used.clear()
        while self._held > self._budget_bytes:
            self.forget(next(iter(self._by_project)))
