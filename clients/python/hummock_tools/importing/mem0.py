"""Reads what mem0 and OpenMemory give out: answers of the API, backups of the server, and OpenMemory's ZIP of both."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, cast

from hummock_tools.importing.databases import NotRead
from hummock_tools.importing.fields import BadLine, Line, NotWhole, Retired
from hummock_tools.importing.formats import FileFormat, read_file
from hummock_tools.importing.found import SOURCE, Found, LeftOut, Part, Wrong, hash_of
from hummock_tools.importing.json_items import lines_of

NAME = "mem0"

_MEMBERS = ("memories.jsonl.gz", "memories.json")
_MOST_FACTS = 32


def member_of(path: Path) -> str:
    """The file of memories in an OpenMemory export; empty if the path is no such ZIP."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = frozenset(archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return ""
    return next((name for name in _MEMBERS if name in names), "")


def read(path: Path) -> Iterator[Part]:
    """The memories of a file. Raises: NotRead."""
    member = member_of(path)
    try:
        with ExitStack() as stack:
            if member:
                archive = stack.enter_context(zipfile.ZipFile(path))
                file = cast(BinaryIO, stack.enter_context(archive.open(member)))
            else:
                file = stack.enter_context(path.open("rb"))
            yield from _parts(str(path), file)
    except (OSError, zipfile.BadZipFile, RuntimeError) as error:
        raise NotRead(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _parts(name: str, file: BinaryIO) -> Iterator[Part]:
    for part in read_file(lines_of(file), FileFormat.MEM0):
        match part:
            case Line(record=record, unfit=unfit):
                memory = record.memory.memory
                if len(memory.metadata) < _MOST_FACTS:
                    memory.metadata[SOURCE] = NAME
                memory.source_hash = hash_of(memory.SerializeToString(deterministic=True))
                yield Found(memory=memory)
                if unfit:
                    yield LeftOut(reason="tags and facts that are too long or too many", count=unfit)
            case Retired(state=state):
                yield LeftOut(reason=f"memories that are {state}")
            case BadLine(place=place, reason=reason) | NotWhole(place=place, reason=reason):
                yield Wrong(where=f"{name}, {place}", reason=reason)
