"""Reasons to skip a path: rules in the syntax of `.gitignore`, and counts of skipped paths."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import translate
from types import MappingProxyType
from typing import TYPE_CHECKING, Self, TypeAlias

from hummock_tools.indexing.fragment import suffix_of

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
    """The rules of one file, for paths below `prefix`, the file's folder with a trailing `/`."""

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
        """True skips the path, False includes it again, None if no rule matches; a folder's path ends with `/`."""
        return self.spec.check_file(path.removeprefix(self.prefix)).include

    @property
    def bring_back(self) -> bool:
        """True if any rule brings a path back."""
        return any(pattern.include is False for pattern in self.spec.patterns)


def is_ignored(rules: Sequence[Rules], path: str) -> bool:
    """Apply the rules of the nearest file that matches the path; `rules` has the outermost first."""
    for each in reversed(rules):
        verdict = each.verdict(path)
        if verdict is not None:
            return verdict
    return False


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


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _names(patterns: str) -> re.Pattern[str]:
    """Matches a name in lower case that fits one of these shell patterns."""
    return re.compile("|".join(map(translate, patterns.split())))


_VERSION_CONTROL = _words(".git .hg .svn .jj")
_SKIPPED_DIRECTORIES = _VERSION_CONTROL | _words("""
    node_modules bower_components site-packages .venv .tox .nox .eggs __pycache__ __generated__
    .mypy_cache .pytest_cache .ruff_cache .hypothesis .gradle .idea .terraform
""")
# Deeper down these are as likely a product's own words (`com/acme/vendor/VendorService.java`).
_SKIPPED_AT_THE_TOP = frozenset({"vendor", "third_party"})
_SECRET_NAMES = _names("""
    .env* *.env *.pem *.key *.p12 *.pfx *.jks *.keystore *.kdbx *.ppk *.gpg id_rsa id_dsa id_ecdsa id_ed25519 *_rsa
    *_ed25519 .netrc _netrc .npmrc .pypirc .pgpass .git-credentials .htpasswd credentials credentials.json
    secrets.json secrets.yml secrets.yaml secrets.toml service-account*.json *.tfstate *.tfvars
""")
_SECRET_DIRECTORIES = frozenset({".ssh", ".gnupg", ".aws"})
# Where a name might be somebody's own, `client_grpc.py` or `is_generated.ts`, the mark in the file decides.
_GENERATED_NAMES = _names("""
    *.min.js *.min.css *.map *_pb2.py *_pb2.pyi *_pb2_grpc.py *_pb2_grpc.pyi *.pb.go *.pb.gw.go *.pb.cc *.pb.h *.pb.rs
    *.pb.swift *.grpc.swift *.pbobjc.h *.pbobjc.m *_pb.js *_pb.ts *_pb.d.ts *_grpc_pb.js *_grpc_pb.d.ts *.pbjson.dart
    *.pbenum.dart *.pbserver.dart *.pb.dart *.g.dart *.gr.dart *.freezed.dart *.mocks.dart *.designer.cs *.designer.vb
    *.g.cs *.g.i.cs *.generated.* *.tsbuildinfo .pnp.cjs .pnp.loader.mjs gradlew gradlew.bat mvnw mvnw.cmd
""")
_LOCK_NAMES = _names("""
    *.lock *.lockfile package-lock.json npm-shrinkwrap.json pnpm-lock.yaml *.lock.json *.lock.yml *.lock.yaml *.lock.hcl
    go.sum go.work.sum package.resolved cartfile.resolved packages.lock.json project.assets.json cabal.project.freeze
    conda-lock.yml lake-manifest.json verification-metadata.xml
""")
_RECORDED_NAMES = _names("*.snap *.snap.new *.ambr *.approved.txt *.received.txt *.verified.txt *.golden")
_RECORDED_DIRECTORIES = _words("""
    golden goldens __golden__ __snapshots__ __fixtures__ testdata test-data test_data cassettes vcr_cassettes
""")
# `fixtures` are matches to who makes a football app, but not below one of these.
_TEST_DIRECTORIES = _words("test tests __tests__ testing spec specs e2e cypress")
# In the folders above; code, documents and schemas there are what they are elsewhere.
_RECORDED_SUFFIXES = _words("""
    .json .jsonl .ndjson .xml .csv .tsv .txt .html .htm .yaml .yml .out .log .expected .diff .har
""")
# JSON that people write, whatever it looks like.
_CONFIGURATION_NAMES = _names("""
    package.json composer.json tsconfig*.json jsconfig*.json angular.json nx.json project.json appsettings*.json
    *config*.json *settings*.json *manifest*.json *schema*.json *openapi*.json *swagger*.json *messages*.json
""")
_CONFIGURATION_DIRECTORIES = _words("_locales locale locales lang langs i18n l10n translations messages")


def directory_reason(path: str, *, is_wanted: bool = False) -> SkipReason | None:
    """Why a directory of this path is never entered, or None; `is_wanted` where a rule of the user's brings it back."""
    name = path.rpartition("/")[2]
    is_skipped = name in _VERSION_CONTROL or (
        not is_wanted and (name in _SKIPPED_DIRECTORIES or path in _SKIPPED_AT_THE_TOP)
    )
    return SkipReason.VENDORED if is_skipped else None


def name_reason(path: str) -> SkipReason | None:
    """Why a file of this path is not opened at all, or None. Upper and lower case do not differ here."""
    *parents, name = path.casefold().split("/")
    if _SECRET_NAMES.match(name) or not _SECRET_DIRECTORIES.isdisjoint(parents):
        return SkipReason.PRIVATE
    if _LOCK_NAMES.match(name):
        return SkipReason.LOCK
    if _GENERATED_NAMES.match(name):
        return SkipReason.GENERATED
    is_recorded = suffix_of(name) in _RECORDED_SUFFIXES and _is_for_recordings(parents)
    return SkipReason.RECORDED if is_recorded or _RECORDED_NAMES.match(name) else None


def _is_for_recordings(folders: Sequence[str]) -> bool:
    are_fixtures = "fixtures" in folders and not _TEST_DIRECTORIES.isdisjoint(folders)
    return are_fixtures or not _RECORDED_DIRECTORIES.isdisjoint(folders)


def is_configuration(path: str) -> bool:
    """True if JSON at this path is written by people: configuration, schemas, texts of a user interface."""
    *parents, name = path.casefold().split("/")
    is_hidden = any(part.startswith(".") for part in (*parents, name))
    is_named_so = _CONFIGURATION_NAMES.match(name) is not None
    return is_hidden or is_named_so or not _CONFIGURATION_DIRECTORIES.isdisjoint(parents)


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
