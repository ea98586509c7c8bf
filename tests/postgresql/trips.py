"""Counts messages between a service and its PostgreSQL in libpq's own record of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from psycopg import pq

from hummock.store.postgresql.connections import Connections, PatientConnection

_ENDS = ("Sync", "Query")
"""Messages after which the client waits for an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Recorded traffic of all pool connections that were opened during the recording.

    Attributes:
        path: The record.
    """

    path: Path

    def trips(self) -> int:
        """Round trips so far."""
        with self.path.open(encoding="utf-8", errors="replace") as lines:
            return sum(line.startswith("F\t") and line.split("\t")[2].strip() in _ENDS for line in lines)


@contextmanager
def recorded(directory: Path) -> Iterator[Traffic]:
    """Makes every connection that a pool opens from now on record what it sends."""
    traffic = Traffic(path=directory / "traffic")
    configure = Connections._configure
    with traffic.path.open("w", encoding="utf-8") as record:

        def recording(connections: Connections, connection: PatientConnection) -> None:
            configure(connections, connection)
            connection.pgconn.trace(record.fileno())
            connection.pgconn.set_trace_flags(pq.Trace.SUPPRESS_TIMESTAMPS)

        with patch.object(Connections, "_configure", recording):
            yield traffic
