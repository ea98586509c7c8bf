"""Which files of a repository are left out, and why."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import TypeAlias

MAX_FILE_BYTES = 1_000_000
MAX_LINE_CHARACTERS = 20_000
_MAX_PATH_CHARACTERS = 1_024
# Bytes that are not UTF-8 arrive as lone surrogates.
_UNPRESENTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_HEAD_BYTES = 1024
# A hand-written file of this size has shorter lines on average, in any language.
_MINIFIED_FROM_BYTES = 5_000
_MINIFIED_MEAN_LINE_BYTES = 500

OnSkip: TypeAlias = Callable[[str, str], None]


class SkipReason(StrEnum):
    """Why a path is not indexed, in words for the user."""

    SYMLINK = "symbolic link"
    NOT_REGULAR = "not a regular file"
    OUTSIDE = "path leaves the root"
    TOO_LARGE = "larger than 1 MB"
    BINARY = "binary"
    NOT_UTF8 = "not UTF-8 text"
    BAD_NAME = "name is too long or not printable UTF-8"
    PRIVATE = "may hold secrets"
    MINIFIED = "minified"
    GENERATED = "generated"
    VENDORED = "vendored or generated directory"
    VIRTUAL_ENVIRONMENT = "virtual environment"
    NESTED_REPOSITORY = "nested repository or submodule"
    MISSING = "listed by git, not on disk"
    UNREADABLE = "cannot be read"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SKIPPED_DIRECTORIES = _words("""
    .git .hg .svn .jj node_modules bower_components site-packages .venv .tox .nox .eggs __pycache__
    .mypy_cache .pytest_cache .ruff_cache .hypothesis .gradle .idea .terraform
""")
# Deeper down these are as likely a product's own words (`com/acme/vendor/VendorService.java`).
_SKIPPED_AT_THE_TOP = frozenset({"vendor", "third_party"})
_SECRET_NAMES = _words("""
    .env* *.env *.pem *.key *.p12 *.pfx *.jks *.keystore *.kdbx *.ppk *.gpg id_rsa id_dsa id_ecdsa id_ed25519 *_rsa
    *_ed25519 .netrc _netrc .npmrc .pypirc .pgpass .git-credentials .htpasswd credentials credentials.json
    secrets.json secrets.yml secrets.yaml secrets.toml service-account*.json *.tfstate *.tfvars
""")
_SECRET_DIRECTORIES = frozenset({".ssh", ".gnupg", ".aws"})
_GENERATED_NAMES = _words("""
    *.min.js *.min.css *.map *_pb2.py *_pb2.pyi *_pb2_grpc.py *_pb2_grpc.pyi *.pb.go *.pb.cc *.pb.h package-lock.json
    yarn.lock pnpm-lock.yaml uv.lock poetry.lock pdm.lock cargo.lock composer.lock gemfile.lock go.sum
""")
_GENERATED_MARK = re.compile(rb"(?i)\bgenerated\b[^\n]{0,200}\bdo not (?:edit|modify)\b|^\W{0,8}@generated\b")


def directory_reason(path: str) -> SkipReason | None:
    """Why a directory of this path is never entered, or None."""
    is_skipped = path.rpartition("/")[2] in _SKIPPED_DIRECTORIES or path in _SKIPPED_AT_THE_TOP
    return SkipReason.VENDORED if is_skipped else None


def name_reason(path: str) -> SkipReason | None:
    """Why a file of this path is not opened at all, or None. Upper and lower case do not differ here."""
    *parents, name = path.casefold().split("/")
    if _matches(name, _SECRET_NAMES) or not _SECRET_DIRECTORIES.isdisjoint(parents):
        return SkipReason.PRIVATE
    if _matches(name, _GENERATED_NAMES):
        return SkipReason.GENERATED
    return None


def is_presentable(path: str) -> bool:
    """Whether a path can be sent and printed: UTF-8, at most 1,024 characters, none of them control or direction."""
    return len(path) <= _MAX_PATH_CHARACTERS and not _UNPRESENTABLE.search(path)


def content_reason(data: bytes) -> SkipReason | None:
    """Why a file with these bytes is not indexed, or None."""
    if b"\0" in data:
        return SkipReason.BINARY
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return SkipReason.NOT_UTF8
    head = data[:_HEAD_BYTES]
    if head.startswith(b"-----BEGIN ") and b"PRIVATE KEY-----" in head:
        return SkipReason.PRIVATE
    if _GENERATED_MARK.search(head):
        return SkipReason.GENERATED
    return SkipReason.MINIFIED if _is_minified(data, text) else None


def _is_minified(data: bytes, text: str) -> bool:
    lines = text.split("\n")
    if len(data) >= _MINIFIED_FROM_BYTES and len(data) > _MINIFIED_MEAN_LINE_BYTES * len(lines):
        return True
    return max(map(len, lines)) > MAX_LINE_CHARACTERS


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkCounts:
    """What a walk met so far: files yielded, their bytes, and how many paths each reason left out."""

    files: int
    file_bytes: int
    skipped: Mapping[str, int]

    @property
    def skipped_total(self) -> int:
        """Paths left out; a directory that was not entered counts once."""
        return sum(self.skipped.values())


@dataclass(slots=True)
class Tally:
    """Counts a walk as it goes: pass `skip` as its `on_skip`, and give each file to `keep`."""

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
