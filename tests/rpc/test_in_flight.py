"""Calls in flight: whose end is waited for when the service stops, and who is told of it."""

from __future__ import annotations

import asyncio

import pytest

from hummock.core.errors import Unavailable
from hummock.rpc.dispatch import InFlight

pytestmark = pytest.mark.timed

FOREVER_S = 3600.0


def test_no_call_is_counted_while_none_is_let_in() -> None:
    """D9."""
    in_flight = InFlight()
    with pytest.raises(Unavailable), in_flight.counted():
        pytest.fail("it was let in")


def test_a_stop_waits_until_every_caller_has_been_told() -> None:
    """D9."""

    async def run() -> None:
        in_flight = InFlight()
        with in_flight.telling():
            with in_flight.telling():
                told = asyncio.ensure_future(in_flight.told(FOREVER_S))
                await asyncio.sleep(0)
            # One has been told; the wait wakes, and goes on for the other.
            for _ in range(3):
                await asyncio.sleep(0)
            assert not told.done()
        await asyncio.wait_for(told, FOREVER_S)

    asyncio.run(run())


def test_who_is_never_told_is_waited_for_no_longer_than_said() -> None:
    """D9."""

    async def run() -> None:
        in_flight = InFlight()
        with in_flight.telling():
            await in_flight.told(0.0)

    asyncio.run(run())


def test_nobody_is_waited_for_where_nobody_is_told() -> None:
    """D9."""

    async def run() -> None:
        in_flight = InFlight()
        with pytest.raises(RuntimeError, match="told it failed"), in_flight.telling():
            raise RuntimeError("told it failed")
        await in_flight.told(FOREVER_S)

    asyncio.run(run())
