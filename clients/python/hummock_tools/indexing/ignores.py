"""Rules in the syntax of `.gitignore`: git's own where git is not there to read them, and the user's for the index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

GIT_RULES = ".gitignore"
OWN_RULES = ".hummockignore"


class MissingExtra(RuntimeError):
    """A part of the installation that this needs is not there; `extra` names it."""

    def __init__(self, extra: str) -> None:
        super().__init__(f"this needs an extra that is not installed: pip install 'hummock[{extra}]'")
        self.extra = extra


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rules:
    """The rules of one file: they speak of paths below `prefix`, the folder that it lies in, with its `/`."""

    prefix: str
    spec: GitIgnoreSpec

    @classmethod
    def read(cls, prefix: str, data: bytes) -> Self:
        """Parses the content of an ignore file.

        Raises:
            ValueError: A line is no pattern.
            MissingExtra: The extra `code` is not installed.
        """
        try:
            from pathspec import GitIgnoreSpec
        except ImportError as error:
            raise MissingExtra("code") from error
        lines = data.decode("utf-8-sig", errors="replace").splitlines()
        return cls(prefix=prefix, spec=GitIgnoreSpec.from_lines(lines))

    def verdict(self, path: str) -> bool | None:
        """True leaves the path out, False brings it back, None says nothing of it; a folder's path ends with `/`."""
        return self.spec.check_file(path.removeprefix(self.prefix)).include

    @property
    def bring_back(self) -> bool:
        """True if any rule brings a path back."""
        return any(pattern.include is False for pattern in self.spec.patterns)


def is_ignored(rules: Sequence[Rules], path: str) -> bool:
    """The nearest file that speaks of the path decides; the outermost comes first in `rules`."""
    for each in reversed(rules):
        verdict = each.verdict(path)
        if verdict is not None:
            return verdict
    return False
