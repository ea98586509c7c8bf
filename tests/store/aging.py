"""Data directories as earlier versions of Hummock left them."""

from __future__ import annotations

from pathlib import Path

import lmdb
import msgspec

from hummock.store.tables import keys, record_codec
from hummock.store.tables.row_codec import ROW
from tests.store.opening import MIB

FIRST_ANALYZER = 1
_NEWER_FIELDS = (
    "traits",
    "name_hash",
    "supersedes",
    "speaker",
    "file",
    "helpful",
    "wrong",
    "expire_time",
    "token_sign",
    "writer",
    "apart",
)


def made_old(directory: Path) -> None:
    """Makes the directory one of the first analyzer, whose terms were others: here fewer, and of other lengths.

    Its rows said nothing of speakers and of what texts are like, its projects not whether anything replaces another.
    """
    with lmdb.open(str(directory), max_dbs=64, map_size=256 * MIB) as env:
        meta, lists, columns, projects = (env.open_db(name) for name in (b"meta", b"terms", b"column", b"project"))
        with env.begin(write=True) as txn:
            record = record_codec.decode_directory(txn.get(b"directory", db=meta) or b"")
            old = msgspec.structs.replace(record, analyzer=FIRST_ANALYZER)
            txn.put(b"directory", record_codec.encode(old), db=meta)
            for number in range(1, txn.stat(projects)["entries"] // 2 + 1):
                of_project = keys.project_number_key(number)
                project = record_codec.decode_project(txn.get(of_project, db=projects) or b"")
                project.has_superseding = False
                txn.put(of_project, record_codec.encode(project), db=projects)
            for key in [bytes(key) for key, _ in txn.cursor(lists)]:
                txn.put(key, b"", db=lists)
                row = bytearray(txn.get(key, db=columns) or b"")
                row[50:54] = b"\xff\0\0\0"
                txn.put(key, _shorter(bytes(row)), db=columns)


def _shorter(row: bytes) -> bytes:
    """A row without its last fields, and the id after it."""
    size = int.from_bytes(row[:2], "little")
    kept = size - sum(ROW[name].itemsize for name in _NEWER_FIELDS)
    return kept.to_bytes(2, "little") + row[2 : 2 + kept] + row[2 + size :]
