"""The feed: whom a write wakes."""

from __future__ import annotations

import asyncio
import threading

import pytest

from hummock.core.errors import Unavailable
from hummock.rpc.streams import Feed, TooManyStreams

pytestmark = pytest.mark.timed


def tell(feed: Feed, project: str) -> None:
    """Reports a change from a thread of its own, as the writer does."""
    thread = threading.Thread(target=feed.tell, args=(project, 1))
    thread.start()
    thread.join()


async def turn() -> None:
    """Lets all that is ready run."""
    for _ in range(3):
        await asyncio.sleep(0)


async def test_a_write_wakes_every_stream_of_its_project_and_no_other() -> None:
    feed = Feed(8)
    with feed.following("还款") as first, feed.following("还款") as second, feed.following("other") as other:
        tell(feed, "还款")
        await turn()
        assert (first.is_set(), second.is_set(), other.is_set()) == (True, True, False)


async def test_a_stream_that_ends_leaves_nothing_behind() -> None:
    feed = Feed(8)
    with feed.following("p"), feed.following("p"), feed.following("q"):
        assert feed.streams == 3
    assert (feed.streams, feed._moved) == (0, {})
    with pytest.raises(RuntimeError, match="broken"), feed.following("p"):
        raise RuntimeError("broken")
    assert (feed.streams, feed._moved) == (0, {})


async def test_a_write_to_a_project_that_nobody_follows_costs_the_loop_nothing() -> None:
    feed = Feed(8)
    scheduled: list[object] = []
    feed._loop.call_soon_threadsafe = lambda *work: scheduled.append(work)  # type: ignore[method-assign,assignment] # counts
    feed.tell("p", 1)
    assert scheduled == []


async def test_a_write_between_the_last_stream_and_its_news_is_no_error() -> None:
    feed = Feed(8)
    with feed.following("p"):
        tell(feed, "p")
    await turn()
    assert feed._moved == {}


async def test_beyond_the_limit_a_stream_is_refused_until_another_ends() -> None:
    feed = Feed(2)
    with feed.following("p"):
        with feed.following("q"):
            with pytest.raises(TooManyStreams, match="the limit is 2"), feed.following("p"):
                pass
            assert feed.streams == 2
        with feed.following("p"):
            assert feed.streams == 2


async def test_the_end_of_the_feed_ends_all_wherever_they_wait() -> None:
    """V11 of the reliability notes."""
    feed = Feed(8)

    async def wait() -> None:
        with feed.until_over():
            await asyncio.Event().wait()

    waiting = [asyncio.create_task(wait()) for _ in range(2)]
    await turn()
    feed.end()
    late = asyncio.create_task(wait())
    await asyncio.wait([*waiting, late])
    assert [type(one.exception()) for one in (*waiting, late)] == [Unavailable] * 3


async def test_who_hangs_up_is_cancelled_though_the_service_stops() -> None:
    feed = Feed(8)

    async def wait() -> None:
        with feed.until_over():
            await asyncio.Event().wait()

    gone, both = asyncio.create_task(wait()), asyncio.create_task(wait())
    await turn()
    gone.cancel()
    await asyncio.wait([gone])
    feed.end()
    both.cancel()
    await asyncio.wait([both])
    assert gone.cancelled()
    assert both.cancelled()


async def test_one_caller_or_one_project_cannot_take_all_streams() -> None:
    """D7, D1."""
    feed = Feed(max_streams=8, of_a_project=3, of_a_caller=2)
    with feed.following("p", "mine"), feed.following("q", "mine"):
        with pytest.raises(TooManyStreams, match="2 streams of this caller are open"), feed.following("r", "mine"):
            pass
        with feed.following("p", "another"), feed.following("p", "a third"):
            with pytest.raises(TooManyStreams, match="3 streams of this project"), feed.following("p", "a fourth"):
                pass
            with feed.following("q", "a fourth"):
                assert feed.streams == 5
    with feed.following("r", "mine"):
        assert feed.streams == 1
    assert not feed._callers


def test_a_write_after_the_loop_has_closed_is_no_error() -> None:
    async def made() -> Feed:
        return Feed(8)

    feed = asyncio.run(made())
    feed._moved["p"] = set()
    feed.tell("p", 1)
