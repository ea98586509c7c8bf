"""The names and aliases of a project's domains, in memory, so that a text can be looked through for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from threading import Lock

import lmdb

from hummock.core import facets
from hummock.store import keys, scan
from hummock.store.environment import Environment
from hummock.text.windows import names_within


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainNames:
    """Every name that a domain of the project has ever had.

    Attributes:
        numbers: From a name, normalised as prose (a very long one: its hash), to its term's number.
        lengths: From the first character of a name to the lengths of those that begin with it.
    """

    numbers: Mapping[str, int]
    lengths: Mapping[str, frozenset[int]]

    @classmethod
    def read(cls, environment: Environment, txn: lmdb.Transaction[bytes], project: int) -> DomainNames:
        """All names that the transaction sees."""
        prefix = keys.name_key(project, _FACET)
        entries = scan.entries(txn, environment.tables.term, prefix)
        numbers = {key[len(prefix) :].decode(): int.from_bytes(value, "little") for key, value in entries}
        lengths: dict[str, set[int]] = {}
        for name in filter(None, numbers):
            lengths.setdefault(name[0], set()).add(len(name))
        return cls(numbers=numbers, lengths={first: frozenset(some) for first, some in lengths.items()})

    def among(self, names: Iterable[str]) -> dict[str, int]:
        """Those of the given names that are known, and their numbers."""
        found = ((name, self.numbers.get(facets.domain(name).removeprefix(_FACET))) for name in names)
        return {name: number for name, number in found if number is not None}

    def within(self, text: str) -> dict[str, int]:
        """The names that stand in a text, and their numbers."""
        found = names_within(text, self.numbers, self.lengths) if text and self.lengths else ()
        return {name: self.numbers[name] for name in found}


_FACET = facets.domain("")


class LazyDomainNames:
    """The domain names of a project as some views know them, read when one of them is first asked.

    A bulk load that stores domains in every transaction would otherwise read all of them as often.
    """

    __slots__ = ("_names", "_reading")

    def __init__(self) -> None:
        self._names: DomainNames | None = None
        self._reading = Lock()

    def get(self, environment: Environment, txn: lmdb.Transaction[bytes], project: int) -> DomainNames:
        """The names; the transaction began after the view was made, so it sees all that the view holds."""
        if self._names is None:
            with self._reading:
                if self._names is None:
                    self._names = DomainNames.read(environment, txn, project)
        return self._names
