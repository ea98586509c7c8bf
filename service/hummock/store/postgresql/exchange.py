"""Statements that go to the server together, and their answers: one round trip, however many there are.

Keys and values are bytes, and so is what this sends and receives: libpq's pipeline mode with prepared statements and
binary values. A cursor of psycopg's would convert each value, and costs several times as much a statement.

Statements outside a transaction that go together are one: what the first one sets for a transaction holds for the rest,
and ends with them.
"""

from __future__ import annotations

import select
import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import psycopg
from psycopg import pq

_INT4, _INT8 = struct.Struct(">i"), struct.Struct(">q")
_ARRAY = struct.Struct(">iiIii")
"""One dimension, no NULL, the type of the elements, how many, from which number on."""
_INT4_TYPE, _BYTEA_TYPE = 23, 17
_BINARY = 1
_FAILED = frozenset({pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE, pq.ExecStatus.NONFATAL_ERROR})

Field = bytes | None


class Statement(NamedTuple):
    """A statement with `$1`, `$2`, … in the places of its arguments, which are as PostgreSQL sends them in binary."""

    text: bytes
    arguments: Sequence[bytes] = ()


class Answer(NamedTuple):
    """Result of a statement: its rows, and the command's tag ("COMMIT")."""

    rows: list[tuple[Field, ...]]
    done: bytes


class _Prepared(NamedTuple):
    """A prepared statement, under its name."""

    text: bytes
    name: bytes


class NoAnswer(psycopg.OperationalError):
    """The server said nothing in time."""


def int4(number: int) -> bytes:
    """A number as an argument of type int."""
    return _INT4.pack(number)


def int8(number: int) -> bytes:
    """A number as an argument of type bigint."""
    return _INT8.pack(number)


def bytea_array(values: Sequence[bytes]) -> bytes:
    """Several values as one argument of type bytea[]."""
    head = _ARRAY.pack(1, 0, _BYTEA_TYPE, len(values), 1)
    return head + b"".join([part for value in values for part in (_INT4.pack(len(value)), value)])


def int4_array(numbers: Iterable[int]) -> bytes:
    """Several numbers as one argument of type int[]."""
    packed = [_INT4.pack(4) + _INT4.pack(number) for number in numbers]
    return _ARRAY.pack(1, 0, _INT4_TYPE, len(packed), 1) + b"".join(packed)


class Exchange:
    """Pipelined statements on one connection, for one thread; nothing else may use the connection meanwhile."""

    def __init__(self, pgconn: pq.abc.PGconn) -> None:
        self._pgconn = pgconn
        self._names: dict[bytes, bytes] = {}
        self._made = 0

    def __call__(self, statements: Sequence[Statement], patience_s: float) -> list[Answer]:
        """Sends statements and waits for the answers of all.

        Args:
            statements: At least one. Behind one that fails none is run.
            patience_s: How long the server may say nothing.

        Raises: psycopg.Error: what the first one has failed with; NoAnswer, and then the connection is closed.
        """
        pgconn = self._pgconn
        poll = select.poll()
        pgconn.enter_pipeline_mode()
        sent = self._send(statements)
        pgconn.pipeline_sync()
        poll.register(pgconn.socket, select.POLLIN | select.POLLOUT)
        while pgconn.flush():
            # It may have to be rid of answers before it takes more.
            if self._wait(poll, patience_s) & select.POLLIN:
                pgconn.consume_input()
        poll.modify(pgconn.socket, select.POLLIN)
        results = self._results(poll, patience_s)
        pgconn.exit_pipeline_mode()
        for result, prepared in zip(results, sent, strict=True):
            if result.status in _FAILED:
                raise _error_of(result)
            if prepared is not None:
                self._names[prepared.text] = prepared.name
        return [_answer(result) for result, prepared in zip(results, sent, strict=True) if prepared is None]

    def _send(self, statements: Sequence[Statement]) -> list[_Prepared | None]:
        """Send the statements. Returns an element for each message sent: what it prepares, or None for a query."""
        names: dict[bytes, bytes] = {}
        sent: list[_Prepared | None] = []
        for text, arguments in statements:
            name = self._names.get(text) or names.get(text)
            if name is None:
                self._made += 1
                name = names[text] = b"hummock_%d" % self._made
                self._pgconn.send_prepare(name, text)
                sent.append(_Prepared(text, name))
            self._pgconn.send_query_prepared(name, arguments, [_BINARY] * len(arguments), _BINARY)
            sent.append(None)
        return sent

    def _results(self, poll: select.poll, patience_s: float) -> list[pq.abc.PGresult]:
        """All up to the end of what was sent."""
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
