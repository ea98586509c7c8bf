"""Names of a project's domains with their occurrences in a query, and the names that it gives to memories."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from hummock.core import facets
from hummock.core.memory import DomainKnowledge, MemoryKind
from hummock.core.project import GivenNames
from hummock.store.tables.reads import TableProject
from hummock.store.views.columns import Columns
from hummock.text.normalise import CJK, nfkc
from hummock.text.question import MAX_OPENING, question_of

MAX_WINDOW_CJK: Final = 12
MAX_WINDOW_WORDS: Final = 5

NAMING_KINDS = (MemoryKind.DOMAIN_KNOWLEDGE, MemoryKind.ENTRY)
"""Kinds of memories that have names: domains have aliases, entries have titles and learned keywords."""

MOST_NAMED = 1000  # Upper bound on memories read of each kind.

# A unit is one CJK character, or one word with an optional suffix (c++, c#).
_UNIT = re.compile(rf"[{CJK}]|[^\W{CJK}]+(?:\+\+|#)?")
_IS_CJK = re.compile(f"[{CJK}]").match
_GAPS = frozenset({"", " ", "-", ".", "/", "&", "·", "'"})


def _normal_form(text: str) -> str:
    """The opening of a text as prose."""
    return " ".join(nfkc(question_of(text).opening.casefold()).split())[:MAX_OPENING]


def _windows_from(normal_form: str, start: int) -> list[str]:
    """The possible names that begin with the unit at `start`, the shortest first."""
    windows: list[str] = []
    characters = words = 0
    end = start
    for unit in _UNIT.finditer(normal_form, start):
        if _IS_CJK(unit[0]):
            characters += 1
        else:
            words += 1
        is_joined = unit.start() == end or normal_form[end : unit.start()] in _GAPS
        if not is_joined or characters > MAX_WINDOW_CJK or words > MAX_WINDOW_WORDS:
            break
        end = unit.end()
        if words > 0 or characters > 1:
            windows.append(normal_form[start:end])
    return windows


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainNames:
    """All names that domains of the project have ever had."""

    numbers: Mapping[str, int]  # From a name, normalised as prose (for a very long one its hash), to its term's number.
    lengths: Mapping[str, frozenset[int]]  # Lengths of the names by their first unit.

    @classmethod
    def read(cls, stored: TableProject) -> DomainNames:
        """Read all names that the transaction sees."""
        return cls.of(stored.numbers_behind(_FACET))

    @classmethod
    def of(cls, numbers: Mapping[str, int]) -> DomainNames:
        """The names with these numbers."""
        lengths: dict[str, set[int]] = {}
        for name in numbers:
            if unit := _UNIT.match(name):
                lengths.setdefault(unit[0], set()).add(len(name))
        return cls(numbers=numbers, lengths={unit: frozenset(each) for unit, each in lengths.items()})

    def among(self, names: Iterable[str]) -> dict[str, int]:
        """The known ones of the given names, with their numbers."""
        found = [(name, self.numbers.get(facets.domain(name).removeprefix(_FACET))) for name in names]
        return {name: number for name, number in found if number is not None}

    def within(self, text: str) -> dict[str, int]:
        """The names that occur in the opening of a text, with their numbers, at a cost independent of their number.

        A possible name is 2 to 12 CJK characters, 1 to 5 words, or a mixture within both limits (`b超`, `4s店 管理`),
        joined by nothing, one space, or a mark that occurs inside names.
        """
        found: dict[str, int] = {}
        if not text or not self.lengths:
            return found
        normal_form, numbers = _normal_form(text), self.numbers
        for unit in _UNIT.finditer(normal_form):
            start = unit.start()
            for length in self.lengths.get(unit[0], ()):
                name = normal_form[start : start + length]
                if name in numbers and name in _windows_from(normal_form, start):
                    found[name] = numbers[name]
        return found


_FACET = facets.domain("")


def read_given_names(columns: Columns, stored: TableProject) -> GivenNames:
    """Aliases of domains, titles and learned keywords of entries; memories removed since the view are skipped."""
    return GivenNames(groups=(*_of_domains(columns, stored), *stored.called(MOST_NAMED)))


def _of_domains(columns: Columns, stored: TableProject) -> list[tuple[str, ...]]:
    is_domain = (columns.kind == MemoryKind.DOMAIN_KNOWLEDGE) & (columns.alive != 0)
    docs = columns.doc[np.flatnonzero(is_domain)[:MOST_NAMED]].tolist()
    details = [payload.detail for payload in map(stored.payload, docs) if payload is not None]
    return [
        (detail.domain, *detail.aliases) for detail in details if isinstance(detail, DomainKnowledge) and detail.aliases
    ]
