"""Copy of all projects of one store into another, while services may use the source.

Each project is read at one moment and written under a new number of the target without a name; once its digest is
verified, it gets its name. Then projects written to meanwhile are copied again, in a few rounds. Project numbers differ
between stores, so digests here do not include them.

A project of the target is replaced if it is an unmodified copy, or if replacing is allowed. Projects with other names
are left alone, except copies of projects removed from the source.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from hummock.ports.writes import Claims
from hummock.store.errors import EntryDamaged, MemoryDamaged, OtherHistory, ProjectDamaged
from hummock.store.moving.landing import Landing, Standing, said
from hummock.store.moving.renumbered import batches
from hummock.store.tables import keys, record_codec
from hummock.store.tables.engine import Engine
from hummock.store.upkeep.moment import Moment, ProjectDigest, digest_of

_ROUNDS = 4  # Upper bound on rounds that copy projects written to meanwhile again.

_REACHED = b"reached"
_REQUESTS = 0  # Project number under which removal requests are stored.
Version = tuple[int, int]  # A project's number and seq: equal versions have equal content.


class Outcome(StrEnum):
    """Result of the copy of one project."""

    COPIED = "copied"
    EQUAL = "equal"
    REPLACED = "replaced"
    REMOVED = "removed"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedProject:
    """A project of the target."""

    name: str  # The project's name.
    outcome: Outcome  # Result of its last copy.
    seq: int  # Sequence number of the copy.
    memory_count: int  # Number of its memories.
    digest: str  # Digest of both, independent of project numbers; empty if there is none.
    took_s: float  # Duration in seconds.
    why: str = ""  # Description of its damage; empty if there is none.


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """Result of a copy."""

    projects: tuple[CopiedProject, ...]  # All projects that the source had or has.
    moved: tuple[str, ...]  # Projects written to again after they were copied.
    others: tuple[str, ...]  # Projects of the target that are not copies.

    @property
    def damaged(self) -> tuple[CopiedProject, ...]:
        """Projects that could not be copied."""
        return tuple(one for one in self.projects if one.outcome is Outcome.DAMAGED)

    @property
    def there(self) -> tuple[CopiedProject, ...]:
        """Projects that the target has."""
        return tuple(one for one in self.projects if one.digest)

    @property
    def is_whole(self) -> bool:
        """Whether the target has all of the source's data."""
        return not self.moved and not self.damaged


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyCallbacks:
    """Progress callbacks."""

    # Takes a project's name, the number of its memories copied, and their total.
    far: Callable[[str, int, int], None] = lambda name, done, total: None
    done: Callable[[CopiedProject], None] = lambda project: None  # Takes the result of a project.


class Copying:
    """A copy of all projects of a store, which others may write to; unchanged earlier copies are skipped."""

    def __init__(self, source: Engine, target: Engine, claims: Claims, replaces: bool, told: CopyCallbacks) -> None:
        """No other process may copy into the target, in which `claims` give the right to work.

        With `replaces`, its projects with another history may be replaced.
        """
        self._source = source
        self._target = target
        self._replaces = replaces
        self._told = told
        self._landing = Landing(target, claims, source.place)
        self._versions: dict[str, Version] = {}
        """Versions of the source's projects that were copied or found equal, at that time."""
        self._projects: dict[str, CopiedProject] = {}

    def run(self) -> Copied:
        """Copy. Raises: OtherHistory: nothing was copied. HummockError: a store cannot be read or written any more."""
        self._landing.clear()
        equal = self._compared()
        for name in self._present():
            if name in equal:
                self._done(equal[name])
            else:
                self._copy(name)
        for _ in range(_ROUNDS):
            behind = self._behind()
            if not behind:
                break
            for name in behind:
                self._copy(name)
        self._copy_shared()
        self._landing.clear()
        present = self._present()
        return Copied(
            projects=tuple(self._projects.values()),
            moved=tuple(self._behind()),
            others=tuple(name for name in self._landing.standings() if name not in present),
        )

    def _compared(self) -> dict[str, CopiedProject]:
        """Projects that are already equal. Raises: OtherHistory."""
        standings, equal, others = self._landing.standings(), dict[str, CopiedProject](), []
        for name, (version, create_time) in self._present().items():
            standing = standings.get(name)
            if standing is None:
                continue
            began_s = time.monotonic()
            digest = self._equal(name, standing) if standing.seq == version[1] else None
            if digest is not None:
                self._landing.note_copy(name, standing)
                self._versions[name] = version
                equal[name] = _copied(digest, Outcome.EQUAL, began_s)
            elif not self._may_replace(standing, version, create_time):
                others.append(name)
        if others:
            raise OtherHistory(self._target.place, others)
        return equal

    def _equal(self, name: str, standing: Standing) -> ProjectDigest | None:
        with self._reading(name) as moment:
            found = moment.project(name)
            if found is None or found[1].seq != standing.seq:
                return None
            digest = digest_of(moment, *found, by_any_number=True)
        return digest if self._landing.digest(name) == digest else None

    def _may_replace(self, standing: Standing, version: Version, create_time: float) -> bool:
        if self._replaces:
            return True
        return standing.is_untouched and standing.create_time == create_time and standing.seq <= version[1]

    def _present(self) -> dict[str, tuple[Version, float]]:
        """Versions and creation times of the source's projects, in the order of their numbers."""
        with self._reading() as moment:
            projects = moment.projects()
        return {name: ((number, record.seq), record.create_time) for name, (number, record) in projects.items()}

    def _behind(self) -> list[str]:
        """Projects that have changed since they were copied, are new, or were removed."""
        present = {name: version for name, (version, _) in self._present().items()}
        changed = [name for name, version in present.items() if self._versions.get(name) != version]
        standings = self._landing.standings()
        copies = {name: one.note for name, one in standings.items() if name not in present and one.is_untouched}
        return changed + [name for name, note in copies.items() if note and note.source == self._source.place]

    def _copy(self, name: str) -> None:
        """Copy a project as it is now, or remove the copy of a removed one."""
        began_s = time.monotonic()
        standing = self._landing.standing(name)
        with self._reading(name) as moment:
            found = moment.project(name)
            if found is None:
                self._remove(name, standing, began_s)
                return
            number, record = found
            if standing and not self._may_replace(standing, (number, record.seq), record.create_time):
                raise OtherHistory(self._target.place, [name])
            self._versions[name] = number, record.seq
            try:
                digest = self._moved(moment, number, record, standing)
            except (MemoryDamaged, EntryDamaged) as error:
                none = ProjectDigest(name=name, seq=record.seq, memory_count=sum(record.kinds.values()), digest="")
                self._done(_copied(none, Outcome.DAMAGED, began_s, str(ProjectDamaged(name, _what(error)))))
                return
        self._done(_copied(digest, Outcome.REPLACED if standing else Outcome.COPIED, began_s))

    def _moved(
        self, moment: Moment, number: int, record: record_codec.ProjectRecord, standing: Standing | None
    ) -> ProjectDigest:
        total, done = sum(record.kinds.values()), 0
        new = self._landing.begin()
        for batch in batches(moment, number, record, new, self._target.space_number):
            self._landing.put(new, batch)
            done += batch.memory_count
            self._told.far(record.name, done, total)
        digest = digest_of(moment, number, record, by_any_number=True)
        self._landing.name(new, record, digest, standing)
        return digest

    def _remove(self, name: str, standing: Standing | None, began_s: float) -> None:
        self._versions.pop(name, None)
        if standing is None:
            return
        self._landing.remove(name, standing)
        gone = ProjectDigest(name=name, seq=standing.seq, memory_count=0, digest="")
        self._done(_copied(gone, Outcome.REMOVED, began_s))

    def _copy_shared(self) -> None:
        with self._reading() as moment:
            reached = list(moment.entries("meta", _REACHED))
            tables, prefix = ("request", "request_age"), keys.project_prefix(_REQUESTS)
            answers = {table: list(moment.entries(table, prefix)) for table in tables}
        for table, entries in {"meta": reached, **answers}.items():
            self._landing.put_shared(table, entries)

    def _done(self, project: CopiedProject) -> None:
        self._projects[project.name] = project
        self._told.done(project)

    @contextmanager
    def _reading(self, scope: str | None = None) -> Iterator[Moment]:
        with said(self._source), self._source.answering(scope) as txn:
            yield Moment.of(self._source, txn)


def _copied(digest: ProjectDigest, outcome: Outcome, began_s: float, why: str = "") -> CopiedProject:
    return CopiedProject(
        name=digest.name,
        outcome=outcome,
        seq=digest.seq,
        memory_count=digest.memory_count,
        digest=digest.digest,
        took_s=time.monotonic() - began_s,
        why=why,
    )


def _what(error: MemoryDamaged | EntryDamaged) -> str:
    if isinstance(error, MemoryDamaged):
        return f"memory {error.memory_id or f'number {error.doc}'} is not what was written"
    return f"{error.what} is not what was written"
