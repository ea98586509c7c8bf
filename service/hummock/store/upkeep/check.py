"""`hummock fsck`: checks that a directory is consistent. Read only, at one moment, also while a service runs.

`QUICK_CHECKS` read no memory, and are the only ones of `hummock doctor`; `DIRECTORY_CHECKS` and `PROJECT_CHECKS` are
the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from hummock.store.lmdb.environment import NEXT_PROJECT_KEY
from hummock.store.tables import keys, record_codec
from hummock.store.tables.engine import TABLE_NAMES
from hummock.store.upkeep.check_projects import PROJECT_CHECKS, UNREADABLE, Found, Project
from hummock.store.upkeep.moment import DirectoryMoment, inspected

_EXAMPLES = 5

_OF_NO_PROJECT = {"meta", "project", "by_digest", "retired", "retired_age", "expiry"}
"""Tables with keys that do not begin with a project's number."""

_REQUESTS = {"request", "request_age"}  # Tables with replies that outlive their projects, under number 0.

_DOC_BYTES = 12
_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A problem of a project, or without a name of data that belong to no project."""

    project: str
    what: str
    count: int
    examples: tuple[int, ...] = ()  # Numbers of the first few documents, events or sessions, if they have any.


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Result of a check: what was checked, by name and count, and the problems found."""

    counts: Counter[str]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Directory:
    """A directory at one moment: its projects by number, and the numbers of those that cannot be read."""

    moment: DirectoryMoment
    projects: dict[int, record_codec.ProjectRecord]
    unreadable: list[int]


def check(directory: Path, progress: Callable[[int, int], None]) -> Report:
    """Check all of a directory; `progress` gets the projects checked and their total. Raises: DirectoryUnusable."""
    with inspected(directory) as moment:
        found = _read(moment)
        counts, problems = Counter[str](), list(_problems("", (run(found) for run in DIRECTORY_CHECKS)))
        for done, (number, record) in enumerate(found.projects.items(), 1):
            project = Project.read(moment, number, record)
            problems += _problems(record.name, (run(project) for run in PROJECT_CHECKS))
            counts += project.counts
            progress(done, len(found.projects))
        counts["projects"] = len(found.projects)
    return Report(counts=counts, problems=tuple(problems))


def check_quickly(directory: Path) -> Report:
    """Check records and names, and find entries of missing projects; no memory. Raises: DirectoryUnusable."""
    with inspected(directory) as moment:
        found = _read(moment)
        problems = tuple(_problems("", (run(found) for run in QUICK_CHECKS)))
    return Report(counts=Counter({"projects": len(found.projects)}), problems=problems)


def _read(moment: DirectoryMoment) -> _Directory:
    directory = _Directory(moment=moment, projects={}, unreadable=[])
    for key, value in moment.entries("project", b"p"):
        try:
            directory.projects[keys.unpack_project(key[1:])] = record_codec.decode_project(value)
        except UNREADABLE:
            directory.unreadable.append(int.from_bytes(key[1:], "big"))
    return directory


def _problems(project: str, found: Iterator[Found]) -> Iterator[Problem]:
    """Problems grouped by kind, in the order in which each kind was first found."""
    counts, examples = Counter[str](), dict[str, list[int]]()
    for what, number in chain.from_iterable(found):
        counts[what] += 1
        some = examples.setdefault(what, [])
        if number is not None and len(some) < _EXAMPLES:
            some.append(number)
    for what, count in counts.items():
        yield Problem(project=project, what=what, count=count, examples=tuple(examples[what]))


def _records(directory: _Directory) -> Found:
    yield from (("a project's record cannot be read", number) for number in directory.unreadable)


def _names(directory: _Directory) -> Found:
    named = {}
    for key, value in directory.moment.entries("project", b"n"):
        try:
            named[keys.unpack_project(value)] = key
        except UNREADABLE:
            yield "a name's project cannot be read", None
    for number, record in directory.projects.items():
        if named.pop(number, None) != keys.project_name_key(record.name):
            yield "a project is not found by its name", number
    yield from (("a name is that of no project", number) for number in named)
    following = int.from_bytes(directory.moment.get("meta", NEXT_PROJECT_KEY) or b"\x01", "big")
    if max(directory.projects, default=0) >= following:
        yield "a project's number is still to be given", None


def _strangers(directory: _Directory) -> Found:
    """Entries under numbers without a project that are not waiting to be cleared."""
    moment = directory.moment
    known = directory.projects.keys() | {keys.unpack_project(key) for key, _ in moment.entries("project_removed")}
    # Rest of an interrupted copy, which the next copy clears.
    known |= {keys.unpack_project(key[-4:]) for key, _ in moment.entries("meta", keys.COPYING)}
    for table in TABLE_NAMES:
        if table in _OF_NO_PROJECT:
            continue
        try:
            for number in _numbers_in(moment, table):
                if number not in known and not (number == 0 and table in _REQUESTS):
                    yield f"table {table} has entries of a project that is not there", number
        except UNREADABLE:
            yield f"table {table} has keys that cannot be read", None


def _numbers_in(moment: DirectoryMoment, table: str) -> Iterator[int]:
    if table not in moment.tables:
        return
    with moment.txn.cursor(moment.tables[table]) as cursor:
        is_there = cursor.first()
        while is_there:
            number = keys.unpack_project(cursor.key()[:4])
            yield number
            is_there = cursor.set_range(keys.project_prefix(number + 1))


def _shared(directory: _Directory) -> Found:
    moment = directory.moment
    removed = {key for key, _ in moment.entries("project_removed")}
    for key, _ in moment.entries("expiry"):
        doc_key = key[-_DOC_BYTES:]
        if doc_key[:4] not in removed and moment.get("memory", doc_key) is None:
            yield "an end of a memory has no memory", None
    for key, _ in moment.entries("by_digest"):
        chunk_key = key[_DIGEST_BYTES:]
        if chunk_key[:4] not in removed and moment.get("vector", chunk_key) is None:
            yield "a digest has no chunk", None
    aged = {key for key, _ in moment.entries("retired_age")}
    if aged != {value[:8] + key for key, value in moment.values("retired")}:
        yield "vectors of removed texts and their ages differ", None


QUICK_CHECKS = (_records, _names, _strangers)
DIRECTORY_CHECKS = (*QUICK_CHECKS, _shared)
