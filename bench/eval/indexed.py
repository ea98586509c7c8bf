"""Source trees as a user's index has them: cut by the product's own indexer, out of git's history or an environment."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from hummock_client.v1 import memory_pb2 as pb
from hummock_tools.indexing.chunker import Fragment, SourceFile, fragments
from hummock_tools.indexing.decoding import decoded
from hummock_tools.indexing.languages import language_of, without_grammar
from hummock_tools.indexing.skips import SkipReason, content_reason, name_reason
from hummock_tools.indexing.tree import memory_input
from hummock_tools.indexing.walk import git, walk


class SetSkipped(Exception):
    """A set cannot be made here; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed:
    """The fragments of a source tree, in the order of paths and lines."""

    fragments: tuple[Fragment, ...]

    @classmethod
    def of(cls, files: Iterable[SourceFile]) -> Indexed:
        """Files of known languages alone, cut. Raises: SetSkipped, where a grammar is not installed."""
        known = sorted((each for each in files if language_of(each.suffix) is not None), key=lambda each: each.path)
        missing = without_grammar(language.name for each in known if (language := language_of(each.suffix)))
        if missing:
            raise SetSkipped(f"the extra `code` is not installed; without it {', '.join(missing)} is cut by lines")
        return cls(fragments=tuple(fragment for each in known for fragment in fragments(each)))

    def memories(self) -> tuple[pb.Memory, ...]:
        """The fragments as memories, as they are sent."""
        return tuple(memory_input(each, "", "") for each in self.fragments)

    def of_file(self, path: str) -> frozenset[str]:
        """Ids of a file's fragments."""
        return frozenset(each.id for each in self.fragments if each.path == path)

    def of_symbol(self, path: str, symbol: str) -> frozenset[str]:
        """Ids of the fragments of a function or class; of the small class that holds it where it has none of its own.

        Empty where the file has no such symbol.
        """
        while symbol:
            found = frozenset(each.id for each in self.fragments if each.path == path and each.symbol == symbol)
            if found:
                return found
            symbol = symbol.rpartition(".")[0]
        return frozenset()


def at_commit(root: Path, commit: str, folders: Sequence[str]) -> list[SourceFile]:
    """Files below some folders of a commit's tree that the indexer would take; none where the commit is not there."""
    there = [each for each in folders if git(root, "ls-tree", "--name-only", commit, each)]
    packed = git(root, "archive", "--format=tar", commit, *there) if there else b""
    if not packed:
        return []
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        members = [each for each in archive if each.isfile()]
        found = [(each.name, archive.extractfile(each)) for each in members]
        return [file for name, data in found if data is not None and (file := _taken(name, data.read()))]


def _taken(path: str, data: bytes) -> SourceFile | None:
    text = decoded(data)
    if isinstance(text, SkipReason) or name_reason(path) or content_reason(path, text.data):
        return None
    return SourceFile(path=path, data=text.data)


def on_disk(root: Path, folders: Sequence[str]) -> list[SourceFile]:
    """Files below some folders of a tree on disk that the indexer would take."""
    return [each for each in walk(root, _ignore) if any(each.path.startswith(f"{one}/") for one in folders)]


def _ignore(path: str, reason: object) -> None:
    """Ignores a skipped path: it is part of no set."""


def of_package(name: str, wanted: str, say: Callable[[str], None]) -> list[SourceFile]:
    """The sources of an installed package, paths from its own folder on; none, aloud, where it has another version."""
    try:
        here = version(name)
    except PackageNotFoundError:
        here = "missing"
    spec = find_spec(name) if here == wanted else None
    if spec is None or spec.origin is None:
        say(f"{name}: its questions are left out, for it is {here} here and they are of {wanted}")
        return []
    root = Path(spec.origin).parent
    return [SourceFile(path=f"{name}/{each.path}", data=each.data) for each in walk(root, _ignore)]
