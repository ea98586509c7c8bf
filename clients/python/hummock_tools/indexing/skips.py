"""Reasons to leave a path out: rules in the syntax of `.gitignore`, its name, and what its bytes are.

By its bytes a file is generated, a lock, data, a licence, or text that people may ask about, as it is in doubt. A mark
counts at the head of a file only, where a tool puts it: the program that writes such marks holds them further down.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import translate
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, TypeAlias

from hummock.installation import command_for
from hummock_tools.indexing.chunker import suffix_of
from hummock_tools.indexing.languages import language_of
from hummock_tools.indexing.markdown import MARKDOWN_SUFFIXES

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
_MAX_LINE_CHARACTERS = 20_000
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


def _is_configuration(path: str) -> bool:
    """True if JSON at this path is written by people: configuration, schemas, texts of a user interface."""
    *parents, name = path.casefold().split("/")
    is_hidden = any(part.startswith(".") for part in (*parents, name))
    is_named_so = _NAMES["configuration"].match(name) is not None
    return is_hidden or is_named_so or not _WORDS["configuration_folders"].isdisjoint(parents)


def is_presentable(path: str) -> bool:
    """True if a path can be sent and printed: UTF-8, at most 1,024 characters, none of them control or direction."""
    return len(path) <= _MAX_PATH_CHARACTERS and not _UNPRESENTABLE.search(path)


# About one fragment: leaving out less saves nothing.
_SMALL_BYTES: Final = 4_000
_HEAD_BYTES: Final = 4_000
# A hand-written file of this size has shorter lines on average, in any language.
_MINIFIED_FROM_BYTES: Final = 5_000
_MINIFIED_MEAN_LINE_BYTES: Final = 500
_FEWEST_HASHES: Final = 10
_FEWEST_WORDS: Final = 200
_FEWEST_ROWS: Final = 200
_FEWEST_NUMBERS: Final = 100
_FEWEST_RECORDS: Final = 20

_LICENCE_SUFFIXES: Final = frozenset({"", ".txt", ".html", ".rst", ".apache", ".mit", ".bsd"}) | MARKDOWN_SUFFIXES
_RECORDS: Final = frozenset(
    {".csv", ".tsv", ".psv", ".jsonl", ".ndjson", ".geojson", ".topojson", ".gpx", ".kml", ".arff", ".har", ".log"}
)
_DRAWINGS: Final = frozenset({".svg", ".drawio", ".excalidraw"})

Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | int | float | bool | None"


def content_reason(path: str, data: bytes) -> SkipReason | None:
    """Why a file with this text, as UTF-8, is not indexed, or None."""
    text = data.decode("utf-8-sig")
    if data.startswith(b"-----BEGIN ") and b"PRIVATE KEY-----" in data[:_HEAD_BYTES]:
        return SkipReason.PRIVATE
    suffix = suffix_of(path)
    if _is_generated(path, suffix, text[:_HEAD_BYTES]):
        return SkipReason.GENERATED
    if _is_licence(path, suffix, text):
        return SkipReason.LICENCE
    if suffix in _DRAWINGS:
        return SkipReason.DATA
    lines = text.split("\n")
    is_code = language_of(suffix) is not None
    if not is_code and suffix not in MARKDOWN_SUFFIXES and _is_list_of_hashes(lines):
        return SkipReason.LOCK
    if len(data) > _SMALL_BYTES:
        if suffix in _RECORDS or _is_numbers(data) or _is_encoded(data):
            return SkipReason.DATA
        if not is_code and suffix not in MARKDOWN_SUFFIXES and _is_data(path, suffix, text, lines):
            return SkipReason.DATA
    return SkipReason.MINIFIED if _is_minified(len(data), lines) else None


def _is_minified(size_bytes: int, lines: Sequence[str]) -> bool:
    if size_bytes >= _MINIFIED_FROM_BYTES and size_bytes > _MINIFIED_MEAN_LINE_BYTES * len(lines):
        return True
    return max(map(len, lines)) > _MAX_LINE_CHARACTERS


# Everything that may stand before the first line of code. What is possessive (`*+`) is never tried a second time.
_HEAD: Final = re.compile(
    r"""(?: \s+ | (?: //|\#|--|;|%|!|dnl\b|REM\b ) [^\n]* | ["']use\ strict["'];?
        | /\*.*?(?:\*/|\Z) | <!--.*?(?:-->|\Z) | <\?.*?(?:\?>|\n|\Z) | \{-.*?(?:-\}|\Z) | \(\*.*?(?:\*\)|\Z)
        | (?:[rR]?\"{3}).*?(?:\"{3}|\Z) | '{3}.*?(?:'{3}|\Z) )*+""",
    re.DOTALL | re.VERBOSE,
)
# `#` begins a heading there, and what is said in the text is said to its readers.
_MARKDOWN_HEAD: Final = re.compile(r"(?:\s+|<!--.*?(?:-->|\Z))*+", re.DOTALL)
_NOT_BY_HAND: Final = (
    r"(?:do not|don't|not be|not intended for|never)\W+(?:\w+\W+){0,3}?(?:edit|modif|chang|alter|touch)"
)
_TOOLS: Final = (
    r"antlr|autoconf|autoheader|automake|aclocal|buf\b|coffeescript|codegen|cython|doxygen|flatbuffers|grpc|javadoc|jooq"
    r"|openapi|protobuf|protoc\b|protocol buffer|re2c|sphinx|swagger|swiftgen|swig|thrift|wsdl"
)
# What begins a sentence of a comment that says it of the file. "Generated by Django" above a migration is none, and
# neither is "writes the generated stubs; do not edit them".
_SAYINGS: Final = (
    r"(?<=@)generated\b",
    r"(?<=<)auto-?generated\b",
    r"(?:auto(?:matically)?|machine)[- ]?generated\b(?=\W*$|\W+(?:by|from|with|using|file|code|do not)\b| *[-!.,;:(])",
    r"(?:this|the following) (?:[\w.]+ ){1,4}(?:is|was|has been) (?:auto(?:matically)?|machine)[- ]?generated\b",
    r"(?:this|the following) (?:[\w.]+ ){1,4}(?:is|was|has been) generated (?:automatically|by|from|with|using|via)\b",
    r"(?:[\w.]+ )?generated automatically (?:by|from|with)\b",
    rf"(?:[\w.]+ )?(?-i:Generated) (?:by|from|with|using) [^\n]{{0,80}}(?:{_TOOLS})",
    r"(?:[\w.]+ )generated (?:by|from) (?:antlr|autoconf|autoheader|automake|aclocal)\b",
    r"(?:[\w./-]+ (?:file )?(?:is|was) |(?:code|file|source|class) )?generated\b"
    rf"[^\n]{{0,200}}(?:\n[^\n]{{0,200}}){{0,3}}?{_NOT_BY_HAND}",
    r"do not (?:edit|modify|change)\b[^\n]{0,80}\bgenerated\b",
)
_GENERATED: Final = re.compile(
    r"^[^\w\n]*+(?:[\w.-]{1,40} ?[-:] [^\w\n]*+)?(?:(?:warning|note|notice|attention|important)\b[^\w\n]*+)?"
    f"(?:{'|'.join(_SAYINGS)})",
    re.IGNORECASE | re.MULTILINE,
)


def _is_generated(path: str, suffix: str, head: str) -> bool:
    """True if the comments at the file's head say so. Generated schemas do not count: people look things up in them."""
    if _SCHEMA.search(path.casefold()):
        return False
    comments = (_MARKDOWN_HEAD if suffix in MARKDOWN_SUFFIXES else _HEAD).match(head)
    return comments is not None and _GENERATED.search(comments.group()) is not None


_SCHEMA: Final = re.compile(r"(?:^|/)(?:schema\.[^/]+|migrations?/.*|migrate/.*)$|\.(?:sql|graphqls?|gql)$")


_LICENCE_PATH: Final = re.compile(
    r"(?:^|[-_./])(?:un)?licen[cs]es?[^/]*$|(?:^|/)(?:copying|notice|copyright|patents)[^/]*$|(?:^|/)licen[cs]es/[^/]+$"
)
_LICENCE_WORDS: Final = re.compile(
    r"copyright|licensed under|permission is hereby|redistribut|warrant(?:y|ies)|public licen[cs]e", re.IGNORECASE
)


def _is_licence(path: str, suffix: str, text: str) -> bool:
    """True if it has the name and the words of a licence: there are documents about licences that a product sells."""
    is_named_so = suffix in _LICENCE_SUFFIXES and _LICENCE_PATH.search(path.casefold()) is not None
    return is_named_so and len({found.casefold() for found in _LICENCE_WORDS.findall(text)}) > 1


_HASH: Final = re.compile(r"--hash=\w+:|\bsha(?:1|256|384|512)[-:=]|\b[0-9a-f]{40}\b|\b[0-9a-f]{64}\b|\bh1:")


def _is_list_of_hashes(lines: Sequence[str]) -> bool:
    """True if a third of the lines pins something by its hash, as requirements with hashes do, or checksums."""
    if len(lines) <= _FEWEST_HASHES:
        return False
    hashes = sum(_HASH.search(line) is not None for line in lines)
    return hashes >= _FEWEST_HASHES and hashes * 3 >= sum(1 for line in lines if line.strip())


def _is_data(path: str, suffix: str, text: str, lines: Sequence[str]) -> bool:
    if suffix == ".json":
        return not _is_configuration(path) and _is_json_of_records(text)
    if suffix == ".sql":
        return len(lines) > _FEWEST_ROWS and _share(lines, _ROW) > 0.9
    return len(lines) > _FEWEST_WORDS and _share(lines, _WORD) > 0.95


# A row of a dump of a table; its statement may go on over many lines.
_ROW: Final = re.compile(r"\s*+(?:insert\s+into\b|values\b|\(|\)|--|/\*|$)", re.IGNORECASE)
_WORD: Final = re.compile(r"\s*+[\w'’-]{1,40}+\s*+$")


def _share(lines: Sequence[str], form: re.Pattern[str]) -> float:
    return sum(form.match(line) is not None for line in lines) / len(lines)


_NUMBER: Final = re.compile(
    rb"0[xX][0-9a-fA-F]+[uUlL]*|[-+]?\d[\d_]*(?:\.\d*)?(?:[eE][-+]?\d+)?[fFuUlL]*|[,;:()\[\]{}|]+"
)


def _is_numbers(data: bytes) -> bool:
    """True if nearly all of it is numbers and what stands between them, in whatever language."""
    dense = data.translate(None, b" \t\r\n")
    if len(dense) - len(dense.translate(None, b"0123456789")) < 0.3 * len(dense):
        return False
    return len(_NUMBER.sub(b"", dense)) < 0.1 * len(dense)


_ENCODED: Final = re.compile(rb"[A-Za-z0-9+/]{60,}")


def _is_encoded(data: bytes) -> bool:
    """True if most of it is Base64 or the like; such a text has few spaces."""
    if len(data.translate(None, b" \t\r\n")) < 0.9 * len(data):
        return False
    return sum(map(len, _ENCODED.findall(data))) > 0.6 * len(data)


# A document that names its own schema is configuration, or is one.
_DESCRIBED: Final = frozenset({"$schema", "openapi", "swagger", "asyncapi", "awstemplateformatversion"})


def _is_json_of_records(text: str) -> bool:
    """True if most of its values are numbers, or stand in one list or table of like entries."""
    try:
        document: Json = json.loads(text)
    except (ValueError, RecursionError):
        return False  # with comments, as configuration has them
    if isinstance(document, Mapping) and not _DESCRIBED.isdisjoint(key.casefold() for key in document):
        return False
    leaves = list(_leaves(document))
    numbers = sum(isinstance(leaf, (int, float)) and not isinstance(leaf, bool) for leaf in leaves)
    if numbers >= _FEWEST_NUMBERS and numbers * 2 >= len(leaves):
        return True
    in_tables = sum(sum(1 for _ in _leaves(table)) for table in _tables(document))
    return in_tables * 10 >= len(leaves) * 6


def _leaves(document: Json) -> Iterator[Json]:
    pending = [document]
    while pending:
        value = pending.pop()
        if isinstance(value, (Mapping, list)):
            pending.extend(_entries(value))
        else:
            yield value


def _tables(document: Json) -> Iterator[Json]:
    """Lists and mappings with many entries that look alike; what is in them is not looked at again."""
    pending = [document]
    while pending:
        value = pending.pop()
        if not isinstance(value, (Mapping, list)):
            continue
        if _is_table(value):
            yield value
        else:
            pending.extend(_entries(value))


def _is_table(value: Mapping[str, Json] | Sequence[Json]) -> bool:
    entries = _entries(value)
    are_words = isinstance(value, list) and all(isinstance(one, (str, int)) for one in entries)
    if are_words and len(entries) >= _FEWEST_WORDS:
        return True
    if len(entries) < _FEWEST_RECORDS:
        return False
    keys = Counter(key for one in entries if isinstance(one, Mapping) for key in one)
    rows = sum(isinstance(one, list) for one in entries)
    return max(rows, *keys.values(), 0) * 10 >= len(entries) * 9


def _entries(value: Mapping[str, Json] | Sequence[Json]) -> list[Json]:
    return list(value.values()) if isinstance(value, Mapping) else list(value)
