"""A repository as memories, kept up to date with the disk: unchanged files are neither read nor cut again.

What is put on the wire of each, and which must be sent or deleted, is said here too.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import TypeAlias

from hummock_client.v1 import memory_pb2
from hummock_client.v1 import memory_pb2 as pb
from hummock_tools.indexing.chunker import Fragment, SourceFile, fragments
from hummock_tools.indexing.languages import without_grammar
from hummock_tools.indexing.markdown import MARKDOWN_SUFFIXES, DomainEntry, domain_entries, names_of
from hummock_tools.indexing.project_info import Made, Manifests, is_manifest
from hummock_tools.indexing.skips import OWN_RULES, Rules, SkipReason, is_presentable
from hummock_tools.indexing.walk import Refused, folder_reason, list_paths, open_root, own_rules, source_file

OnFile: TypeAlias = Callable[[int], None]
_Stamp: TypeAlias = tuple[int, ...]
_MAX_NAME_CHARACTERS = 100


@dataclass(slots=True, kw_only=True)
class _File:
    """State of a file since it was last read; `stamp` is its file-system metadata just before.

    Attributes:
        reason: Reason why it is not indexed; the fields below are unset then.
        hashes: Source hashes of its memories by their ids.
        kept: A document, which is cut again when other files come or go, or a manifest.
        names: Names of a document's sections.
    """

    stamp: _Stamp
    reason: SkipReason | None = None
    digest: bytes = b""
    file_bytes: int = 0
    language: str = ""
    hashes: dict[str, str] = field(default_factory=dict)
    kept: SourceFile | None = None
    names: frozenset[str] = frozenset()
    guessed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guessed:
    """A file without a declared encoding, and the guessed one."""

    path: str
    encoding: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkCounts:
    """Counts of a walk: files to index, their bytes, and paths left out by reason, the commonest first."""

    files: int
    file_bytes: int
    skipped: Mapping[str, int]

    @property
    def skipped_total(self) -> int:
        """Paths left out; a directory that was not entered counts once."""
        return sum(self.skipped.values())


class Tree:
    """The memories of the repository below `root`, a folder without links, or of a part of it.

    Attributes:
        name: Tells several repositories of one project apart: it is put before all paths.
        part: The folder below the root whose memories and counts are given, with `/` at its end; empty for all. All is
            read even so: documents are cut by what the others say.
        left_out: Path and reason of each file and folder that the last look left out in that part.
    """

    def __init__(self, root: Path, name: str = "", part: str = "") -> None:
        """Look at nothing yet."""
        self.root = root
        self.name = name
        self.part = part
        self.counts = WalkCounts(files=0, file_bytes=0, skipped={})
        self.left_out: list[tuple[str, str]] = []
        self._files: dict[str, _File] = {}
        self._own: Rules | None = None
        self._own_stamp: _Stamp = ()
        self._fresh: dict[str, Fragment | DomainEntry] = {}
        self._shared: frozenset[str] = frozenset()

    def look(self, touched: Collection[str], on_file: OnFile) -> int:
        """Bring it up to date with the disk; how many indexed files are new, different or gone.

        Touched files and folders, relative to the root, are read again whatever the file system says of them.

        Raises:
            FileNotFoundError, NotADirectoryError: The root is not a directory.
            ValueError, MissingExtra: As `own_rules` and `list_paths`.
        """
        left_out: list[tuple[str, str]] = []

        def skip(path: str, reason: str) -> None:
            if path.startswith(self.part):
                left_out.append((path, reason))

        before = self._files
        files: dict[str, _File] = {}
        with open_root(self.root) as root_fd:
            own_stamp = _stamp(root_fd, OWN_RULES)
            own = own_rules(root_fd)
            # Rules that changed may want what they did not want.
            known = before if own_stamp == self._own_stamp else {}
            kept = 0
            for path in list_paths(self.root, root_fd, own, skip):
                stamp = _stamp(root_fd, path)
                file = known.get(path)
                if file is None or file.stamp != stamp or _is_touched(path, touched):
                    file = self._read(root_fd, path, own, stamp)
                files[path] = file
                if file.reason is not None:
                    skip(path, file.reason)
                    continue
                kept += 1
                on_file(kept)
        self._files, self._own, self._own_stamp = files, own, own_stamp
        self.left_out = left_out
        self.counts = self._counted()
        self._cut_documents(before)
        return _differing(before, files, self.part)

    def lists(self, folder: str) -> bool:
        """True if the last look found a file in a folder, which is relative to the root and ends with `/`."""
        return any(path.startswith(folder) for path in self._files)

    def is_aside(self, path: str) -> bool:
        """True if a path is in a folder that the last walk skipped and that is still skipped."""
        return any(folder_reason(folder, self._own) is not None for folder in _folders(path))

    def hashes(self) -> dict[str, str]:
        """Source hashes of all memories by id, in the repository's order; documents come last."""
        ordered = sorted(self._mine(), key=lambda found: _is_document(found[0]))
        return {key: digest for _, file in ordered for key, digest in file.hashes.items()}

    def memories(self, ids: Iterable[str], root: str) -> list[memory_pb2.Memory]:
        """The memories of these ids, with `root` on record; files not read since `release` are read again for it."""
        wanted = list(ids)
        missing = {key for key in wanted if key not in self._fresh}
        if missing:
            self._read_again(self.paths_of(missing))
        return [memory_input(self._fresh[key], self.name, root) for key in wanted if key in self._fresh]

    def paths_of(self, ids: Set[str]) -> set[str]:
        """The files, relative to the root, that have a memory of these ids."""
        return {path for path, file in self._files.items() if not ids.isdisjoint(file.hashes)}

    def release(self) -> None:
        """Let go of the memories that were read: the service has them."""
        self._fresh = {}

    def made(self) -> Made:
        """Technologies that the manifests name."""
        manifests = Manifests()
        for path, file in self._files.items():
            if file.kept is not None and is_manifest(path):
                manifests.look_at(file.kept)
        return manifests.made()

    def domain_entries(self) -> int:
        """Number of memories that are sections of documents."""
        return sum(len(file.hashes) for path, file in self._mine() if _is_document(path))

    def guessed(self) -> list[Guessed]:
        """The files whose encoding was guessed."""
        return [Guessed(path=path, encoding=file.guessed) for path, file in self._mine() if file.guessed]

    def without_grammar(self) -> list[str]:
        """Languages that were cut by lines for want of the extra `code`."""
        return without_grammar({file.language for file in self._files.values()})

    def _mine(self) -> list[tuple[str, _File]]:
        return [(path, file) for path, file in self._files.items() if path.startswith(self.part)]

    def _counted(self) -> WalkCounts:
        sizes = [file.file_bytes for _, file in self._mine() if file.reason is None]
        reasons = Counter(str(reason) for _, reason in self.left_out)
        skipped = dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0])))
        return WalkCounts(files=len(sizes), file_bytes=sum(sizes), skipped=skipped)

    def _read(self, root_fd: int, path: str, own: Rules | None, stamp: _Stamp) -> _File:
        try:
            source = source_file(root_fd, path, own)
        except Refused as refused:
            return _File(stamp=stamp, reason=refused.reason)
        is_document = _is_document(path)
        file = _File(
            stamp=stamp,
            digest=blake2b(source.data).digest(),
            file_bytes=len(source.data),
            kept=source if is_document or is_manifest(path) else None,
            names=names_of(source) if is_document else frozenset(),
            guessed=source.guessed,
        )
        if not is_document:
            cut = fragments(replace(source, path=self._shown(path)))
            file.language = cut[0].language if cut else ""
            self._take(file, cut)
        return file

    def _read_again(self, paths: Collection[str]) -> None:
        """Build the memories of these files again; files written meanwhile are left to the next look."""
        known = self._known()
        with open_root(self.root) as root_fd:
            for path in paths:
                file = self._files[path]
                if _is_document(path):
                    self._cut_document(path, file, known)
                else:
                    self._read(root_fd, path, self._own, file.stamp)

    def _cut_documents(self, before: Mapping[str, _File]) -> None:
        """Cut those that changed; all where files came or went, which they name, or other names came to be shared."""
        shared = _shared_names(self._files)
        are_same = _indexed(before) == _indexed(self._files) and shared == self._shared
        self._shared = shared
        known = self._known()
        for path, file in self._files.items():
            if _is_document(path) and not (are_same and file is before.get(path)):
                self._cut_document(path, file, known)

    def _cut_document(self, path: str, file: _File, known: Set[str]) -> None:
        if file.kept is not None:
            document = replace(file.kept, path=self._shown(path))
            self._take(file, domain_entries(document, known, self._shared))

    def _known(self) -> frozenset[str]:
        return frozenset(map(self._shown, _indexed(self._files)))

    def _take(self, file: _File, memories: Sequence[Fragment | DomainEntry]) -> None:
        self._fresh |= {memory.id: memory for memory in memories}
        file.hashes = {memory.id: content_hash(memory) for memory in memories}

    def _shown(self, path: str) -> str:
        return f"{self.name}/{path}" if self.name else path


def shown_root(tree: Tree) -> str:
    """Path of the repository; empty if it cannot be sent, or if the project has several."""
    path = str(tree.root)
    return path if not tree.name and is_presentable(path) else ""


def check_name(name: str) -> None:
    """Raises: ValueError, where an index cannot have this name."""
    is_part = name not in {".", ".."} and "/" not in name and name == name.strip() and name.isprintable()
    if not is_part or len(name) > _MAX_NAME_CHARACTERS:
        raise ValueError(f"repository name {name!r}: must be one part of a path, at most 100 characters")


def _stamp(root_fd: int, path: str) -> _Stamp:
    """Differs when the file may have been written to; the time of its last change cannot be set by anyone."""
    try:
        found = os.stat(path, dir_fd=root_fd, follow_symlinks=False)
    except (OSError, ValueError):
        return ()
    return found.st_ino, found.st_dev, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _shared_names(files: Mapping[str, _File]) -> frozenset[str]:
    counts = Counter(name for file in files.values() for name in file.names)
    return frozenset(name for name, count in counts.items() if count > 1)


def _is_document(path: str) -> bool:
    return path.lower().endswith(tuple(MARKDOWN_SUFFIXES))


def _is_touched(path: str, touched: Collection[str]) -> bool:
    """True if the file, or a folder that contains it, is touched: moving a folder moves all of its files."""
    return bool(touched) and (path in touched or any(folder in touched for folder in _folders(path)))


def _folders(path: str) -> Iterator[str]:
    return (path[:at] for at, letter in enumerate(path) if letter == "/")


def _indexed(files: Mapping[str, _File]) -> set[str]:
    return {path for path, file in files.items() if file.reason is None}


def _differing(before: Mapping[str, _File], after: Mapping[str, _File], part: str) -> int:
    """Number of indexed files of a part that are in only one of the two, or have other bytes."""
    digests = [
        {(path, files[path].digest) for path in _indexed(files) if path.startswith(part)} for files in (before, after)
    ]
    return len({path for path, _ in digests[0] ^ digests[1]})


REPOSITORY_TAG = "repository:"
ROOT = "root"
"""Metadata key of the root of indexed memories."""

# Part of every hash: raise it when the same values come to be put on the wire differently.
_RECIPE = 1
_HASH_BYTES = 16
# No part of the hash where they are empty, so that what earlier versions have sent is not sent again.
_ADDED = frozenset({"tags", "date"})
# The title is embedded with every chunk of a fragment, and a small model's window has 256 tokens.
_MAX_TITLE_CHARACTERS = 160
_MAX_DOCUMENT_TITLE_CHARACTERS = 1024


def memory_input(memory: Fragment | DomainEntry, name: str, root: str) -> pb.Memory:
    """The memory to learn, of the index of this name; the project's first one has none."""
    tags = [f"{REPOSITORY_TAG}{name}"] if name else []
    message = _code(memory, tags) if isinstance(memory, Fragment) else _domain(memory, tags)
    message.metadata[ROOT] = root
    return message


def index_name(tags: Sequence[str]) -> str:
    """The name of the index that a listed memory with these tags belongs to."""
    return next((tag.removeprefix(REPOSITORY_TAG) for tag in tags if tag.startswith(REPOSITORY_TAG)), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Ids to send, in the repository's order; ids to delete, sorted; and how many may stay as they are.

    `taken` are ids of the repository that another index has: neither sent nor deleted.
    """

    send: tuple[str, ...]
    delete: tuple[str, ...]
    unchanged: int
    taken: frozenset[str] = frozenset()


def changes(local: Mapping[str, str], remote: Mapping[str, str]) -> Changes:
    """Compare the content hashes of the repository and of the service, by id."""
    send = tuple(key for key, digest in local.items() if remote.get(key) != digest)
    delete = tuple(sorted(remote.keys() - local.keys()))
    return Changes(send=send, delete=delete, unchanged=len(local) - len(send))


def content_hash(memory: Fragment | DomainEntry) -> str:
    """Hash all fields sent for a memory: 32 hexadecimal digits, equal in every process and version."""
    # Not `asdict`, which copies every value.
    given = ((each.name, getattr(memory, each.name)) for each in fields(memory))
    values = {name: value for name, value in given if value or name not in _ADDED}
    named = {"recipe": _RECIPE, "type": type(memory).__name__, **values}
    canonical = json.dumps(named, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return blake2b(canonical.encode(), digest_size=_HASH_BYTES).hexdigest()


def _code(fragment: Fragment, tags: list[str]) -> pb.Memory:
    return pb.Memory(
        id=fragment.id,
        kind=pb.MEMORY_KIND_CODE_FRAGMENT,
        origin=pb.ORIGIN_INDEXER,
        title=fragment.title[:_MAX_TITLE_CHARACTERS],
        tags=["code", fragment.language, *tags],
        content=fragment.content,
        code_fragment=pb.CodeFragment(
            path=fragment.path,
            start_line=fragment.start_line,
            end_line=fragment.end_line,
            language=fragment.language,
            symbol=fragment.symbol,
        ),
        source_hash=content_hash(fragment),
    )


def _domain(entry: DomainEntry, tags: list[str]) -> pb.Memory:
    message = pb.Memory(
        id=entry.id,
        kind=pb.MEMORY_KIND_DOMAIN_KNOWLEDGE,
        origin=pb.ORIGIN_INDEXER,
        title=entry.title[:_MAX_DOCUMENT_TITLE_CHARACTERS],
        tags=[*dict.fromkeys(("docs", *tags, *_own_tags(entry)))],
        content=entry.content,
        domain_knowledge=pb.DomainKnowledge(
            domain=entry.domain, aliases=entry.aliases, summary=entry.summary, key_files=entry.key_files
        ),
        source_hash=content_hash(entry),
    )
    if entry.date:
        message.event_time.FromDatetime(datetime.fromisoformat(entry.date))
    return message


def _own_tags(entry: DomainEntry) -> Iterator[str]:
    """A note's tags, but for those that would name an index."""
    return (tag for tag in entry.tags if not tag.startswith(REPOSITORY_TAG))
