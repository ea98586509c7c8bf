"""Least-recently-used order of names within a byte budget."""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice


class Lru:
    """Sizes by name, the least recently used first. Not thread-safe."""

    def __init__(self, budget_bytes: int) -> None:
        self.used_bytes = 0
        self._budget_bytes = budget_bytes
        self._sizes: OrderedDict[str, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sizes)

    def use(self, name: str) -> None:
        """Mark a name as the most recently used, if present."""
        if name in self._sizes:
            self._sizes.move_to_end(name)

    def put(self, name: str, nbytes: int) -> None:
        """Set the size of a name; a present one keeps its place in the order."""
        self.used_bytes += nbytes - self._sizes.get(name, 0)
        self._sizes[name] = nbytes

    def drop(self, name: str) -> None:
        """Remove a name, if present."""
        self.used_bytes -= self._sizes.pop(name, 0)

    def excess(self, keep: int) -> str | None:
        """The name to drop next; None within the budget, or if at most `keep` names are left."""
        is_over = self.used_bytes > self._budget_bytes and len(self._sizes) > keep
        return next(iter(self._sizes)) if is_over else None

    def used_last(self, count: int) -> list[str]:
        """At most `count` names, the most recently used last."""
        return list(islice(reversed(self._sizes), count))[::-1]
