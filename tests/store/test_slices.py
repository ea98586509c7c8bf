"""Walks over the values of one project."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import lmdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.store.tables import keys

COUNTS = st.tuples(*[st.integers(0, 9)] * 3)


@given(COUNTS, st.integers(-1, 12))
def test_slices_hold_every_value_of_a_project_and_no_other(counts: tuple[int, ...], expected: int) -> None:
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patched:
        patched.setattr(keys, "_SLICE_ENTRIES", 4)
        environment = lmdb.open(str(Path(directory)), max_dbs=1)
        table = environment.open_db(b"some")
        with environment.begin(write=True) as txn:
            for project, count in enumerate(counts):
                for doc in range(count):
                    txn.put(keys.doc_key(project, doc), f"{project} {doc}".encode(), db=table)
            for project, count in enumerate(counts):
                found = list(keys.slices(txn, table, keys.project_prefix(project), expected))
                assert list(chain(*found)) == [f"{project} {doc}".encode() for doc in range(count)]
                assert all(len(some) <= 4 for some in found)
        environment.close()
