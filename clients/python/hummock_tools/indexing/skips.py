"""Reasons to skip a path: rules in the syntax of `.gitignore`, and counts of skipped paths."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import translate
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Self, TypeAlias

from hummock.installation import command_for
from hummock_tools.indexing.fragment import suffix_of

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


GIT_RULES = ".gitignore"
OWN_RULES = ".hummockignore"


class MissingExtra(RuntimeError):
    """A part of the installation that this needs is not there; `extra` names it."""

    def __init__(self, extra: str) -> None:
        super().__init__(f"this needs an extra that is not installed: {command_for(extra)}")
        self.extra = extra


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rules:
    """The rules of one file, for paths below `prefix`, the file's folder with a trailing `/`."""

    prefix: str
    spec: GitIgnoreSpec

    @classmethod
    def read(cls, prefix: str, data: bytes) -> Self:
        """Parses the content of an ignore file. Raises: ValueError, where a line is no pattern; MissingExtra."""
        try:
            from pathspec import GitIgnoreSpec
        except ImportError as error:
            raise MissingExtra("code") from error
        lines = data.decode("utf-8-sig", errors="replace").splitlines()
        return cls(prefix=prefix, spec=GitIgnoreSpec.from_lines(lines))

    def verdict(self, path: str) -> bool | None:
        """True skips the path, False includes it again, None if no rule matches; a folder's path ends with `/`."""
        return self.spec.check_file(path.removeprefix(self.prefix)).include

    @property
    def bring_back(self) -> bool:
        """True if any rule brings a path back."""
        return any(pattern.include is False for pattern in self.spec.patterns)


def is_ignored(rules: Sequence[Rules], path: str) -> bool:
    """Apply the rules of the nearest file that matches the path; `rules` has the outermost first."""
    verdicts = (each.verdict(path) for each in reversed(rules))
    return next((verdict for verdict in verdicts if verdict is not None), False)


MAX_FILE_BYTES = 1_000_000
MAX_LINE_CHARACTERS = 20_000
_MAX_PATH_CHARACTERS = 1_024
# Bytes that are not UTF-8 arrive as lone surrogates.
_UNPRESENTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

OnSkip: TypeAlias = Callable[[str, str], None]


class SkipReason(StrEnum):
    """Why a path is not indexed, in words for the user."""

    SYMLINK = "symbolic link"
    NOT_REGULAR = "not a regular file"
    OUTSIDE = "path leaves the root"
    TOO_LARGE = "larger than 1 MB"
    BINARY = "binary"
    UNDECIDED = "damaged text, or in an encoding that cannot be told"
    BAD_NAME = "name is too long or not printable UTF-8"
    PRIVATE = "may hold secrets"
    MINIFIED = "minified"
    GENERATED = "generated"
    LOCK = "lock file"
    RECORDED = "recorded for tests"
    DATA = "data"
    LICENCE = "licence text"
    EXCLUDED = "named in .hummockignore"
    VENDORED = "vendored or generated directory"
    VIRTUAL_ENVIRONMENT = "virtual environment"
    NESTED_REPOSITORY = "nested repository or submodule"
    MISSING = "listed by git, not on disk"
    UNREADABLE = "cannot be read"


_OF_LITTLE_USE = frozenset(
    {
        SkipReason.GENERATED,
        SkipReason.LOCK,
        SkipReason.RECORDED,
        SkipReason.DATA,
        SkipReason.LICENCE,
        SkipReason.VENDORED,
    }
)


def may_be_brought_back(reason: SkipReason) -> bool:
    """True if a user's own rule may bring such a path back; secrets and unreadable files stay out."""
    return reason in _OF_LITTLE_USE


_TABLE = tomllib.loads(Path(__file__).with_name("names.toml").read_text("utf-8"))
_WORDS = {name: frozenset(words.split()) for name, words in _TABLE["words"].items()}
_NAMES = {name: re.compile("|".join(map(translate, said.split()))) for name, said in _TABLE["patterns"].items()}


def directory_reason(path: str, *, is_wanted: bool = False) -> SkipReason | None:
    """Why a directory of this path is never entered, or None; `is_wanted` where a rule of the user's brings it back."""
    name = path.rpartition("/")[2]
    is_skipped = name in _WORDS["version_control"] or (
        not is_wanted and (name in _WORDS["skipped_folders"] or path in _WORDS["skipped_at_the_top"])
    )
    return SkipReason.VENDORED if is_skipped else None


def name_reason(path: str) -> SkipReason | None:
    """Why a file of this path is not opened at all, or None. Upper and lower case do not differ here."""
    *parents, name = path.casefold().split("/")
    if _NAMES["secret"].match(name) or not _WORDS["secret_folders"].isdisjoint(parents):
        return SkipReason.PRIVATE
    if _NAMES["lock"].match(name):
        return SkipReason.LOCK
    if _NAMES["generated"].match(name):
        return SkipReason.GENERATED
    is_recorded = suffix_of(name) in _WORDS["recorded_suffixes"] and _is_for_recordings(parents)
    return SkipReason.RECORDED if is_recorded or _NAMES["recorded"].match(name) else None


def _is_for_recordings(folders: Sequence[str]) -> bool:
    are_fixtures = "fixtures" in folders and not _WORDS["test_folders"].isdisjoint(folders)
    return are_fixtures or not _WORDS["recorded_folders"].isdisjoint(folders)


def is_configuration(path: str) -> bool:
    """True if JSON at this path is written by people: configuration, schemas, texts of a user interface."""
    *parents, name = path.casefold().split("/")
    is_hidden = any(part.startswith(".") for part in (*parents, name))
    is_named_so = _NAMES["configuration"].match(name) is not None
    return is_hidden or is_named_so or not _WORDS["configuration_folders"].isdisjoint(parents)


def is_presentable(path: str) -> bool:
    """True if a path can be sent and printed: UTF-8, at most 1,024 characters, none of them control or direction."""
    return len(path) <= _MAX_PATH_CHARACTERS and not _UNPRESENTABLE.search(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkCounts:
    """Counts of a walk so far: files yielded, their bytes, and paths left out by reason."""

    files: int
    file_bytes: int
    skipped: Mapping[str, int]

    @property
    def skipped_total(self) -> int:
        """Paths left out; a directory that was not entered counts once."""
        return sum(self.skipped.values())


@dataclass(slots=True)
class Tally:
    """Counts the paths of a walk: pass `skip` as its `on_skip`, and each file to `keep`."""

    _files: int = 0
    _file_bytes: int = 0
    _skipped: Counter[str] = field(default_factory=Counter)

    def skip(self, path: str, reason: str) -> None:
        """Count one path that was left out."""
        del path
        self._skipped[str(reason)] += 1

    def keep(self, file_bytes: int) -> None:
        """Count one file of that size."""
        self._files += 1
        self._file_bytes += file_bytes

    @property
    def counts(self) -> WalkCounts:
        """The counts so far, the commonest reason first."""
        skipped = dict(sorted(self._skipped.items(), key=lambda item: (-item[1], item[0])))
        return WalkCounts(files=self._files, file_bytes=self._file_bytes, skipped=MappingProxyType(skipped))
