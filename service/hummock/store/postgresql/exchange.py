"""Pipelined statements and their answers: one round trip for any number of them.

Keys and values are sent and received as bytes: libpq's pipeline mode with prepared statements and binary values. A
psycopg cursor would convert each value, at several times the cost per statement.

Statements sent together outside a transaction form one: a transaction setting of the first applies to the rest, and
ends with them.
"""

from __future__ import annotations

import select
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

import psycopg
from psycopg import pq

_INT4, _INT8 = struct.Struct(">i"), struct.Struct(">q")
_ARRAY = struct.Struct(">iiIii")  # Number of dimensions, NULL flag, element type, number of elements, lower bound.
_INT4_TYPE, _BYTEA_TYPE = 23, 17
_BINARY = 1
_FAILED = frozenset({pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE, pq.ExecStatus.NONFATAL_ERROR})

Field = bytes | None


class Statement(NamedTuple):
    """A statement with placeholders `$1`, `$2`, …, and its arguments in PostgreSQL's binary format."""

    text: bytes
    arguments: Sequence[bytes] = ()


class Answer(NamedTuple):
    """Result of a statement: its rows, and the command's tag ("COMMIT")."""

    rows: list[tuple[Field, ...]]
    done: bytes


class NoAnswer(psycopg.OperationalError):
    """The server did not answer in time."""


int4: Final[Callable[[int], bytes]] = _INT4.pack
"""Encode an argument of type int."""

int8: Final[Callable[[int], bytes]] = _INT8.pack
"""Encode an argument of type bigint."""


def bytea_array(values: Sequence[bytes]) -> bytes:
    """Encode an argument of type bytea[]."""
    head = _ARRAY.pack(1, 0, _BYTEA_TYPE, len(values), 1)
    return head + b"".join([part for value in values for part in (_INT4.pack(len(value)), value)])


def int4_array(numbers: Iterable[int]) -> bytes:
    """Encode an argument of type int[]."""
    packed = [_INT4.pack(4) + _INT4.pack(number) for number in numbers]
    return _ARRAY.pack(1, 0, _INT4_TYPE, len(packed), 1) + b"".join(packed)


class Exchange:
    """Pipelined statements on one connection, for one thread; nothing else may use the connection meanwhile."""

    def __init__(self, pgconn: pq.abc.PGconn) -> None:
        self._pgconn = pgconn
        self._names: dict[bytes, bytes] = {}
        self._made = 0

    def __call__(self, statements: Sequence[Statement], patience_s: float) -> list[Answer]:
        """Send at least one statement and wait for all answers; none is run after a failed one.

        `patience_s` is the longest silence of the server, in seconds.

        Raises: psycopg.Error: error of the failed statement; NoAnswer: the connection is closed then.
        """
        pgconn = self._pgconn
        poll = select.poll()
        pgconn.enter_pipeline_mode()
        sent = self._send(statements)
        pgconn.pipeline_sync()
        poll.register(pgconn.socket, select.POLLIN | select.POLLOUT)
        while pgconn.flush():
            # The server may have to deliver answers before it accepts more.
            if self._wait(poll, patience_s) & select.POLLIN:
                pgconn.consume_input()
        poll.modify(pgconn.socket, select.POLLIN)
        results = self._results(poll, patience_s)
        pgconn.exit_pipeline_mode()
        for result, prepared in zip(results, sent, strict=True):
            if result.status in _FAILED:
                raise _error_of(result)
            if prepared is not None:
                text, name = prepared
                self._names[text] = name
        return [_answer(result) for result, prepared in zip(results, sent, strict=True) if prepared is None]

    def _send(self, statements: Sequence[Statement]) -> list[tuple[bytes, bytes] | None]:
        """Send the statements. Returns an element for each message sent: what it prepares, or None for a query."""
        names: dict[bytes, bytes] = {}
        sent: list[tuple[bytes, bytes] | None] = []
        for text, arguments in statements:
            name = self._names.get(text) or names.get(text)
            if name is None:
                self._made += 1
                name = names[text] = b"hummock_%d" % self._made
                self._pgconn.send_prepare(name, text)
                sent.append((text, name))
            self._pgconn.send_query_prepared(name, arguments, [_BINARY] * len(arguments), _BINARY)
            sent.append(None)
        return sent

    def _results(self, poll: select.poll, patience_s: float) -> list[pq.abc.PGresult]:
        pgconn = self._pgconn
        results: list[pq.abc.PGresult] = []
        while True:
            while pgconn.is_busy():
                self._wait(poll, patience_s)
                pgconn.consume_input()
            result = pgconn.get_result()
            if result is None:
                if pgconn.status == pq.ConnStatus.BAD:
                    raise psycopg.OperationalError("the connection is lost")
            elif result.status == pq.ExecStatus.PIPELINE_SYNC:
                return results
            else:
                results.append(result)
                if result.status in _FAILED and pgconn.status == pq.ConnStatus.BAD:
                    raise _error_of(result)

    def _wait(self, poll: select.poll, patience_s: float) -> int:
        ready = poll.poll(patience_s * 1000)
        if not ready:
            self._pgconn.finish()
            raise NoAnswer(f"no answer in {patience_s:g} s")
        return ready[0][1]


def _error_of(result: pq.abc.PGresult) -> psycopg.Error:
    """The error of a failed statement; one without a server's code means that libpq lost the connection."""
    if result.error_field(pq.DiagnosticField.SQLSTATE) is None:
        return psycopg.OperationalError(result.get_error_message())
    return psycopg.errors.error_from_result(result)


def _answer(result: pq.abc.PGresult) -> Answer:
    columns, value = range(result.nfields), result.get_value
    rows = [tuple([value(row, column) for column in columns]) for row in range(result.ntuples)]
    return Answer(rows, result.command_status or b"")
