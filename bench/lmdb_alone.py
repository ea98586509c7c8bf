"""LMDB alone: what durable writes of a memory's bytes take with nothing of ours around them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import lmdb
import numpy as np

from bench.asking import Latency
from bench.stores import SEED

LMDB = "LMDB {}.{}.{}".format(*lmdb.version())
"""Name and version of the library."""
_TABLES = 10
"""Tables that learning a memory writes to, some 3,500 bytes in all."""
_VALUE_BYTES = 350
_FILLED = 20_000
"""Memories that are there before, so that a write finds trees and not single pages."""
_MAP_BYTES = 8 << 30
_KEY_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class LmdbAlone:
    """An environment with as many tables as a memory is written to, each with keys in no order."""

    environment: lmdb.Environment
    tables: tuple[lmdb._Database, ...]
    random: np.random.Generator

    def write(self, memories: int) -> None:
        """Writes so many memories, durable in one transaction."""
        with self.environment.begin(write=True) as transaction:
            for _ in range(memories):
                key = self.random.bytes(_KEY_BYTES)
                for table in self.tables:
                    transaction.put(key, os.urandom(_VALUE_BYTES), db=table)

    def one(self, writes: int) -> Latency:
        """Latency of writing single memories, one after the other."""
        times_s = []
        for _ in range(writes):
            started_s = time.perf_counter()
            self.write(1)
            times_s.append(time.perf_counter() - started_s)
        return Latency.of(times_s)

    def per_s(self, memories: int, together: int) -> float:
        """Memories a second in transactions of so many together."""
        started_s = time.perf_counter()
        for _ in range(0, memories, together):
            self.write(together)
        return memories / (time.perf_counter() - started_s)


@contextmanager
def lmdb_alone(directory: Path) -> Iterator[LmdbAlone]:
    """A filled environment below a directory, whose disk is measured; removed afterwards."""
    with TemporaryDirectory(prefix="lmdb-", dir=directory) as name:
        environment = lmdb.open(name, map_size=_MAP_BYTES, max_dbs=_TABLES)
        tables = tuple(environment.open_db(str(table).encode()) for table in range(_TABLES))
        alone = LmdbAlone(environment=environment, tables=tables, random=np.random.default_rng(SEED))
        alone.write(_FILLED)
        try:
            yield alone
        finally:
            environment.close()
