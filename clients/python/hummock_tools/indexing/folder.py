"""Chooses the index of a project that a folder belongs to: its own, or that of a root around it.

Each memory of the indexer records its root, so what a project lists says which roots it has. A folder inside an indexed
root is a part of it, unless the root's walk leaves the folder out; a root that comes to lie inside another one that
walks it is taken into that one, unless a person named its index. What is recorded of any other root is never deleted.
"""

from __future__ import annotations

import stat
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

from hummock_tools.indexing.chunker import escaped
from hummock_tools.indexing.skips import OnSkip, is_presentable
from hummock_tools.indexing.tree import Changes, OnFile, Tree, changes, check_name
from hummock_tools.indexing.walk import open_root

_MAX_ROOT_CHARACTERS = 512
"""The limit of a value of a memory's metadata."""

_NAME_CHARACTERS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFragment:
    """A memory of the indexer at the service: its index by name, and its root, which older ones do not record."""

    id: str
    source_hash: str
    name: str
    root: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherIndex:
    """Another index of the project; `root` is empty if unknown."""

    name: str
    root: str
    memories: int

    def is_gone(self) -> bool:
        """True if its root is known and is no folder on this machine."""
        return is_gone(self.root)


class Indexed:
    """All indexer memories of a project."""

    def __init__(self, held: Iterable[StoredFragment], path: str) -> None:
        """Read the listed fragments, oldest write first: a name belongs to the root that was recorded under it first.

        `path` is that of the project, as an indexer set it: the root of an unnamed index that records none.
        """
        listed = tuple(held)
        owners = dict.fromkeys(each.name for each in listed)
        for each in listed:
            owners[each.name] = owners[each.name] or each.root
        if "" in owners:
            owners[""] = owners[""] or path
        self.owners = {name: owner or "" for name, owner in owners.items()}
        self.held = tuple(each if each.root else replace(each, root=self.owners[each.name]) for each in listed)
        self.roots = frozenset(each.root for each in self.held)

    def name_of(self, path: Path, given: str = "") -> str | None:
        """The name under which a root is indexed, the given one where it is; None where it is not.

        With a given name, none that a person gave to another index is found.
        Raises: ValueError, where people named several indexes of it, and no name is given.
        """
        root = root_of(path)
        names = {name for name, owner in self.owners.items() if owner == root}
        # Clones on several machines may share a name that their users gave.
        names |= {each.name for each in self.held if each.name and each.root == root}
        made = names & {given, *made_names(path)}
        if made or given:
            return given if given in made else min(made, default=None)
        if len(names) > 1:
            raise ValueError(f"{path} has the indexes {', '.join(sorted(names))}: give the --name of one")
        return min(names, default=None)

    def of(self, name: str, root: str) -> list[StoredFragment]:
        """Memories recorded for a root under a name."""
        return [each for each in self.held if (each.name, each.root) == (name, root)]

    def others(self, mine: Collection[StoredFragment]) -> tuple[OtherIndex, ...]:
        """Return the other indexes of the project, by name and root."""
        ids = {each.id for each in mine}
        counts = Counter((each.name, each.root) for each in self.held if each.id not in ids)
        return tuple(OtherIndex(name=name, root=root, memories=count) for (name, root), count in sorted(counts.items()))


def _share_ids(tree: Tree, other: StoredFragment) -> bool:
    """True if one of two indexes has no name and contains a folder with the other's name, so that ids may collide."""
    if not tree.name:
        return bool(other.name) and tree.lists(f"{other.name}/")
    return not other.name and other.id.startswith(escaped(f"{tree.name}/"))


def root_of(path: Path) -> str:
    """Return the recorded root of a path without links: the path, or a digest if it cannot be sent."""
    text = str(path)
    if is_presentable(text) and len(text) <= _MAX_ROOT_CHARACTERS:
        return text
    return f"~{_digest(path, 16)}"


def is_gone(root: str) -> bool:
    """True if a recorded root is a path and no folder on this machine; an unreadable one counts as present."""
    try:
        return root.startswith("/") and not stat.S_ISDIR(Path(root).stat().st_mode)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return True
    except OSError:
        return False


def made_names(path: Path) -> tuple[str, str]:
    """Names that the index of a root gets if no person named it."""
    return "", _own_name(path)


def _own_name(path: Path) -> str:
    """A name for the index of a root alongside others, the same in every run."""
    name = path.name[:_NAME_CHARACTERS].strip()
    return f"{name}-{_digest(path, 3)}" if name and name.isprintable() else _digest(path, 3)


def _digest(path: Path, size: int) -> str:
    return blake2b(bytes(path), digest_size=size).hexdigest()


def _prefix(tree: Tree) -> str:
    return escaped(f"{tree.name}/{tree.part}" if tree.name else tree.part)


def _has_half(tree: Tree, older: Sequence[StoredFragment]) -> bool:
    """True if the tree has at least half of the memories that an index of the folder holds under another name."""
    local, prefix = tree.hashes(), _prefix(tree)
    moved = (each.id.removeprefix(escaped(f"{each.name}/")) if each.name else each.id for each in older)
    return 2 * sum(f"{prefix}{place}" in local for place in moved) >= len(older)


class Folder:
    """A folder that a project is to hold, and the tree that has its files once it is settled."""

    def __init__(self, path: Path, name: str = "", *, on_file: OnFile, on_skip: OnSkip) -> None:
        """Look at nothing yet.

        Args:
            path: A link to a folder stands for the folder.
            name: What the user calls its index, which is continued wherever its folder lay; ValueError where it is no
                single part of a path.
            on_file: Called after each file that is indexed, with their number so far.
            on_skip: Called for each path that is left out, after every look.
        """
        check_name(name)
        self.path = path.resolve()
        self.changed = 0
        """Indexed files that were new, different or gone; who sends them sets it to 0."""
        self._name = name
        self._on_file = on_file
        self._on_skip = on_skip
        self._tree: Tree | None = None
        self._trees: dict[tuple[Path, str], Tree] = {}

    @property
    def tree(self) -> Tree:
        """The tree of a folder that was settled."""
        if self._tree is None:
            raise RuntimeError("the folder is not settled")
        return self._tree

    def look(self, touched: Collection[str] = ()) -> None:
        """Bring the tree up to date with the disk; before it is settled only see that the folder is there.

        Touched paths are relative to the folder; errors as of `Tree.look`.
        """
        with open_root(self.path):
            if self._tree is None:
                return
        part = self._tree.part
        self.changed += self._tree.look({f"{part}{path}" for path in touched}, self._on_file)
        self._tell()

    def is_aside(self, path: str) -> bool:
        """True if a path relative to the folder lies in a directory that the walk skips."""
        return self._tree is not None and self._tree.is_aside(f"{self._tree.part}{path}")

    def settle(self, indexed: Indexed) -> None:
        """Find the index that the folder belongs to, by what the service lists, and look at its tree.

        Raises:
            ValueError: The name belongs to another folder of this machine, or names a folder of another root; or it is
                not given, and the folder has several.
            FileNotFoundError, NotADirectoryError, MissingExtra: As `look`.
        """
        for tree in self._candidates(indexed):
            try:
                files = 0 if tree is self._tree else tree.look((), self._on_file)
            except PermissionError:
                if tree.part:  # a root around the folder that another user has
                    continue
                raise
            if not self._fits(tree, indexed):
                tree.release()
                continue
            if tree is not self._tree:
                self._tree = tree
                self.changed += files
                self._tell()
            return
        raise ValueError(f"the index {tree.name!r} is another folder's, which is still there: give another --name")

    def plan(self, indexed: Indexed) -> tuple[Changes, tuple[OtherIndex, ...]]:
        """Changes to send so that the service holds the folder's content, and the other indexes of the project."""
        mine = self._mine(self.tree, indexed)
        ids = {each.id for each in mine}
        others = {each.id for each in indexed.held} - ids
        every = self.tree.hashes()
        taken = frozenset(every.keys() & others)
        local = {key: digest for key, digest in every.items() if key not in taken}
        below = self._below(self.tree, indexed)
        same = {each.id: each.source_hash for each in mine if each.name == self.tree.name and each.root not in below}
        root = root_of(self.tree.root)
        if not any(each.root == root for each in mine):
            # One is sent at least, so that the root is on record.
            same.pop(next(iter(local), ""), None)
        gone = tuple(sorted(ids - local.keys()))
        return replace(changes(local, same), delete=gone, taken=taken), indexed.others(mine)

    def _tell(self) -> None:
        for path, reason in self.tree.left_out:
            self._on_skip(path, reason)

    def _candidates(self, indexed: Indexed) -> Iterator[Tree]:
        if self._name and indexed.of(self._name, root_of(self.path)):
            yield self._tree_at(self.path, self._name)
        for root in self.path.parents:
            around = indexed.name_of(root, self._name)
            if around is not None:
                yield self._tree_at(root, around)
        if self._name:
            yield self._tree_at(self.path, self._name)
            return
        known, first = indexed.name_of(self.path), indexed.owners.get("", "")
        if known is None and (not first or first.startswith(f"{self.path}/")):
            yield self._tree_at(self.path, "")
        yield self._tree_at(self.path, _own_name(self.path) if known is None else known)

    def _tree_at(self, root: Path, name: str) -> Tree:
        key = root, name
        if key not in self._trees:
            part = "" if root == self.path else f"{self.path.relative_to(root)}/"
            self._trees[key] = Tree(root, name, part)
        return self._trees[key]

    def _fits(self, tree: Tree, indexed: Indexed) -> bool:
        """True if the folder's files may be stored in this index without loss to another root."""
        if tree.part:
            return tree.lists(tree.part) or not self._has_files()
        if indexed.owners.get(tree.name) == root_of(tree.root):
            return True
        local, mine = tree.hashes(), {each.id for each in self._mine(tree, indexed)}
        strangers = [each for each in indexed.held if each.id not in mine]
        if any(each.name == tree.name or _share_ids(tree, each) for each in strangers):
            return False
        unknown = [each.id for each in indexed.held if each.name == tree.name and not each.root]
        # Half of an index without a name and a root on record must be here.
        return bool(tree.name) or 2 * len(local.keys() & set(unknown)) >= len(unknown)

    def _has_files(self) -> bool:
        own = self._tree_at(self.path, self._name)
        own.look((), lambda files: None)
        own.release()
        return own.counts.files > 0

    def _mine(self, tree: Tree, indexed: Indexed) -> list[StoredFragment]:
        """Memories that the tree owns; those that it no longer contains are deleted."""
        answered = {root_of(tree.root), ""}
        if tree.name:
            # A folder that moved, or a clone on another machine: who gives the name says that it is the same.
            answered |= set(filter(is_gone, indexed.roots))
        prefix, taken_in = _prefix(tree), self._taken_in(tree, indexed)
        return [
            each
            for each in indexed.held
            if (each.name, each.root) in taken_in
            or (each.name == tree.name and each.root in answered and each.id.startswith(prefix))
        ]

    def _taken_in(self, tree: Tree, indexed: Indexed) -> set[tuple[str, str]]:
        """Name and root of the indexes whose files the tree has; of those that a person named, its own name alone."""
        own, made = root_of(self.path), made_names(self.path)
        below = self._below(tree, indexed)
        found = {(tree.name, root) for root in (own, *below)}
        if tree.name in made_names(tree.root):
            found |= {(name, root) for root in below for name in made_names(Path(root))}
            return found | {(name, own) for name in made}
        # At the same path of another machine may lie something else.
        return found | {(name, own) for name in made if _has_half(tree, indexed.of(name, own))}

    def _below(self, tree: Tree, indexed: Indexed) -> set[str]:
        """Indexed roots inside the tree's own that its walk enters; a nested repository stays apart."""
        if tree.part:
            return set()
        start = f"{str(tree.root).rstrip('/')}/"
        return {root for root in indexed.roots if root.startswith(start) and tree.lists(f"{root.removeprefix(start)}/")}
