"""Names within a budget of bytes, in the order of their last use."""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice


class Lru:
    """Sizes by name, the least recently used first. Not safe for several threads."""

    def __init__(self, budget_bytes: int) -> None:
        self.used_bytes = 0
        self._budget_bytes = budget_bytes
        self._sizes: OrderedDict[str, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sizes)

    def use(self, name: str) -> None:
        """Lets a name be the one used last, if it is there."""
        if name in self._sizes:
            self._sizes.move_to_end(name)

    def put(self, name: str, nbytes: int) -> None:
        """Notes what a name takes now; one that is there keeps its place."""
        self.used_bytes += nbytes - self._sizes.get(name, 0)
        self._sizes[name] = nbytes

    def drop(self, name: str) -> None:
        """Forgets a name, if it is there."""
        self.used_bytes -= self._sizes.pop(name, 0)

    def excess(self, keep: int) -> str | None:
        """The name to be dropped next; None within the budget, and where only `keep` are left."""
        is_over = self.used_bytes > self._budget_bytes and len(self._sizes) > keep
        return next(iter(self._sizes)) if is_over else None

    def used_last(self, count: int) -> list[str]:
        """At most so many names, the most recently used last."""
        return list(islice(reversed(self._sizes), count))[::-1]
