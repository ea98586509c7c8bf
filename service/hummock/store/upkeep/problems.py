"""Problems that a check found: kind, number and place, without any stored text."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass, field

_EXAMPLES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that is wrong in a project; without a name it is in what belongs to no project.

    `examples` are numbers of the first few documents, events or sessions, where it can be said by a number.
    """

    project: str
    what: str
    count: int
    examples: tuple[int, ...] = ()


@dataclass(slots=True, kw_only=True)
class Problems:
    """Those of one project, or of none, while they are looked for."""

    project: str
    _found: dict[str, list[int]] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)

    def add(self, what: str, number: int | None = None, count: int = 1) -> None:
        """One more, or so many."""
        self._counts[what] = self._counts.get(what, 0) + count
        examples = self._found.setdefault(what, [])
        if number is not None and len(examples) < _EXAMPLES:
            examples.append(number)

    def require(self, is_right: bool, what: str, number: int | None = None) -> None:
        """One more, unless it is right."""
        if not is_right:
            self.add(what, number)

    def compare(self, expected: Collection[Hashable], found: Iterable[Hashable], missing: str, orphan: str) -> None:
        """Report what is expected and not found, and what is found and not expected."""
        wanted, present = set(expected), set(found)
        for what, keys in ((missing, wanted - present), (orphan, present - wanted)):
            for key in sorted(keys, key=repr):
                self.add(what, key if isinstance(key, int) else None)

    def all(self) -> tuple[Problem, ...]:
        """All problems, each kind in the order in which it was first found."""
        return tuple(
            Problem(project=self.project, what=what, count=count, examples=tuple(self._found[what]))
            for what, count in self._counts.items()
        )
