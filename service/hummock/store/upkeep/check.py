"""`hummock fsck`: checks that a directory is consistent. Read only, at one moment, also while a service runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hummock.store.lmdb.environment import NEXT_PROJECT_KEY
from hummock.store.tables import keys, record_codec
from hummock.store.tables.engine import TABLE_NAMES
from hummock.store.upkeep.check_history import HistoryCheck
from hummock.store.upkeep.check_memories import UNREADABLE, MemoriesCheck
from hummock.store.upkeep.inspection import Snapshot, inspected
from hummock.store.upkeep.problems import Problem, Problems

_OF_NO_PROJECT = {"meta", "project", "by_digest", "retired", "retired_age", "expiry"}
"""Tables whose keys do not begin with a project's number."""

_REQUESTS = {"request", "request_age"}
"""Have answers that outlive their projects, under number 0."""

_DOC_BYTES = 12
_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Result of a check: what was checked, by name and count, and the problems found."""

    counts: Counter[str]
    problems: tuple[Problem, ...]


def check(directory: Path, progress: Callable[[int, int], None]) -> Report:
    """Check everything in a data directory; `progress` gets the number of checked projects, and of all.

    Raises: DirectoryUnusable.
    """
    with inspected(directory) as snapshot:
        counts: Counter[str] = Counter()
        general = Problems(project="")
        found: list[Problem] = []
        projects = list(_projects(snapshot, general))
        for done, (number, record) in enumerate(projects):
            problems = Problems(project=record.name)
            some, ids = MemoriesCheck(snapshot, number, record, problems).run()
            counts += some + HistoryCheck(snapshot, number, record, ids, problems).run()
            found += problems.all()
            progress(done + 1, len(projects))
        numbers = {number for number, _ in projects}
        _names(snapshot, dict(projects), general)
        _strangers(snapshot, numbers, general)
        _of_all(snapshot, general)
        counts["projects"] = len(projects)
    return Report(counts=counts, problems=(*general.all(), *found))


def check_quickly(directory: Path) -> Report:
    """Looks at projects' records and names, and for entries of projects that are not there: no memory is read.

    Raises: DirectoryUnusable.
    """
    with inspected(directory) as snapshot:
        problems = Problems(project="")
        projects = dict(_projects(snapshot, problems))
        _names(snapshot, projects, problems)
        _strangers(snapshot, set(projects), problems)
        counts = Counter({"projects": len(projects)})
    return Report(counts=counts, problems=problems.all())


def _projects(snapshot: Snapshot, problems: Problems) -> Iterator[tuple[int, record_codec.ProjectRecord]]:
    for key, value in snapshot.entries("project", b"p"):
        try:
            yield keys.unpack_project(key[1:]), record_codec.decode_project(value)
        except UNREADABLE:
            problems.add("a project's record cannot be read", int.from_bytes(key[1:], "big"))


def _names(snapshot: Snapshot, projects: dict[int, record_codec.ProjectRecord], problems: Problems) -> None:
    named = {}
    for key, value in snapshot.entries("project", b"n"):
        try:
            named[keys.unpack_project(value)] = key
        except UNREADABLE:
            problems.add("a name's project cannot be read")
    for number, record in projects.items():
        is_named = named.pop(number, None) == keys.project_name_key(record.name)
        problems.require(is_named, "a project is not found by its name", number)
    for number in named:
        problems.add("a name is that of no project", number)
    following = int.from_bytes(snapshot.get("meta", NEXT_PROJECT_KEY) or b"\x01", "big")
    problems.require(max(projects, default=0) < following, "a project's number is still to be given")


def _strangers(snapshot: Snapshot, numbers: set[int], problems: Problems) -> None:
    """Entries under numbers without a project that are not about to be cleared either."""
    removed = {keys.unpack_project(key) for key, _ in snapshot.entries("project_removed")}
    # What a copy that was cut off has left; the next one clears it.
    removed |= {keys.unpack_project(key[-4:]) for key, _ in snapshot.entries("meta", keys.COPYING)}
    for table in TABLE_NAMES:
        if table in _OF_NO_PROJECT:
            continue
        known = numbers | removed | ({0} if table in _REQUESTS else set())
        try:
            for number in _numbers_in(snapshot, table):
                if number not in known:
                    problems.add(f"table {table} has entries of a project that is not there", number)
        except UNREADABLE:
            problems.add(f"table {table} has keys that cannot be read")


def _numbers_in(snapshot: Snapshot, table: str) -> Iterator[int]:
    """Each number that a key begins with, once."""
    if table not in snapshot.tables:
        return
    with snapshot.txn.cursor(snapshot.tables[table]) as cursor:
        is_there = cursor.first()
        while is_there:
            number = keys.unpack_project(cursor.key()[:4])
            yield number
            is_there = cursor.set_range(keys.project_prefix(number + 1))


def _of_all(snapshot: Snapshot, problems: Problems) -> None:
    """Tables that are common to all projects."""
    removed = {key for key, _ in snapshot.entries("project_removed")}
    for key, _ in snapshot.entries("expiry"):
        doc_key = key[-_DOC_BYTES:]
        if doc_key[:4] not in removed:
            problems.require(snapshot.get("memory", doc_key) is not None, "an end of a memory has no memory")
    for key, _ in snapshot.entries("by_digest"):
        chunk_key = key[_DIGEST_BYTES:]
        if chunk_key[:4] not in removed:
            problems.require(snapshot.get("vector", chunk_key) is not None, "a digest has no chunk")
    aged = {key for key, _ in snapshot.entries("retired_age")}
    retired = {value[:8] + key for key, value in snapshot.values("retired")}
    problems.require(aged == retired, "vectors of removed texts and their ages differ")
