"""Projects by name and number, and the record of the whole store."""

from __future__ import annotations

from hummock.store.tables import keys, record_codec
from hummock.store.tables.engine import Engine, Transaction
from hummock.store.views.stored import ProjectGone

DIRECTORY_KEY = b"directory"


def project_number(txn: Transaction, engine: Engine, project: str) -> int | None:
    """The number of a project, or None."""
    value = txn.get(keys.project_name_key(project), db=engine.tables.project)
    return None if value is None else keys.unpack_project(value)


def project_record(txn: Transaction, engine: Engine, number: int) -> record_codec.ProjectRecord:
    """The record of a project. Raises: ProjectGone: it was removed."""
    value = txn.get(keys.project_number_key(number), db=engine.tables.project)
    if value is None:
        raise ProjectGone
    return record_codec.decode_project(value)


def active_space(record: record_codec.DirectoryRecord) -> record_codec.SpaceRecord:
    """The embedding space of all vectors."""
    return next(space for space in record.spaces if space.number == record.active_space)
