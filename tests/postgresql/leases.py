"""Services over one database whose leases run out when a test says so."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import cast

import psycopg

from hummock.store.postgresql.claims import LeasedClaims
from hummock.store.postgresql.opening import SharedStore
from tests.fakes import FakeClock
from tests.store.opening import EAGER, opened_shared
from tests.workplace import Workplace, over

_UNRENEWED = replace(EAGER, lease_s=1e6)
"""Limits whose first renewal of a lease is days away, so that nothing happens by itself."""
_REACHED_S = 60


@contextmanager
def opened_unrenewed(dsn: str, clock: FakeClock) -> Iterator[SharedStore]:
    """A store that renews no lease by itself."""
    with opened_shared(dsn, clock=clock, limits=_UNRENEWED) as store:
        yield store


@contextmanager
def two_workplaces(dsn: str) -> Iterator[tuple[Workplace, Workplace]]:
    """Two services without threads of their own, by one clock, which renew no lease by themselves."""
    clock = FakeClock()
    with ExitStack() as stack:
        first, second = (over(stack.enter_context(opened_unrenewed(dsn, clock)), clock) for _ in range(2))
        yield first, second


def await_that(is_reached: Callable[[], bool]) -> None:
    """Returns when it is reached, by threads that work for it."""
    until = time.monotonic() + _REACHED_S
    while not is_reached():
        assert time.monotonic() < until, f"not reached within {_REACHED_S} s"


def run_out(dsn: str, work: Workplace) -> None:
    """Ends the lease of a service, as happens by itself if that service is frozen or dead."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        statement = "UPDATE hummock.service SET until = clock_timestamp() - interval '1 s' WHERE id = %s"
        assert connection.execute(statement, (_claims(work)._id,)).rowcount == 1


def renew(work: Workplace) -> None:
    """Renews the lease, as a service does four times in its duration; so it notices others that have died."""
    store = cast(SharedStore, work.store)
    with store._engine.by_itself() as connection:  # type: ignore[attr-defined] # it is PostgreSQL's
        _claims(work).renew(connection)


def _claims(work: Workplace) -> LeasedClaims:
    return cast(LeasedClaims, work.store.claims)
