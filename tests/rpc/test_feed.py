"""The feed: whom a write wakes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from hummock.rpc.streams import Feed, TooManyStreams


def on_a_feed(run: Callable[[Feed], Awaitable[None]], max_streams: int = 8) -> None:
    async def made() -> None:
        await run(Feed(max_streams))

    asyncio.run(made())


def tell(feed: Feed, project: str) -> None:
    """As the writer does: from a thread of its own."""
    thread = threading.Thread(target=feed.tell, args=(project, 1))
    thread.start()
    thread.join()


async def turn() -> None:
    """Lets all that is ready run."""
    for _ in range(3):
        await asyncio.sleep(0)


def test_a_write_wakes_every_stream_of_its_project_and_no_other() -> None:
    async def run(feed: Feed) -> None:
        with feed.following("还款") as first, feed.following("还款") as second, feed.following("other") as other:
            tell(feed, "还款")
            await turn()
            assert (first.is_set(), second.is_set(), other.is_set()) == (True, True, False)

    on_a_feed(run)


def test_a_stream_that_ends_leaves_nothing_behind() -> None:
    async def run(feed: Feed) -> None:
        with feed.following("p"), feed.following("p"), feed.following("q"):
            assert feed.streams == 3
        assert feed.streams == 0
        assert feed._moved == {}
        with pytest.raises(RuntimeError, match="broken"), feed.following("p"):
            raise RuntimeError("broken")
        assert (feed.streams, feed._moved) == (0, {})

    on_a_feed(run)


def test_a_write_to_a_project_that_nobody_follows_costs_the_loop_nothing() -> None:
    async def run(feed: Feed) -> None:
        scheduled: list[object] = []
        feed._loop.call_soon_threadsafe = lambda *work: scheduled.append(work)  # type: ignore[method-assign,assignment] # counts
        feed.tell("p", 1)
        assert scheduled == []

    on_a_feed(run)


def test_a_write_between_the_last_stream_and_its_news_is_no_error() -> None:
    async def run(feed: Feed) -> None:
        with feed.following("p"):
            tell(feed, "p")
        await turn()
        assert feed._moved == {}

    on_a_feed(run)


def test_beyond_the_limit_a_stream_is_refused_until_another_ends() -> None:
    async def run(feed: Feed) -> None:
        with feed.following("p"):
            with feed.following("q"):
                with pytest.raises(TooManyStreams, match="the limit is 2"), feed.following("p"):
                    pass
                assert feed.streams == 2
            with feed.following("p"):
                assert feed.streams == 2

    on_a_feed(run, max_streams=2)


def test_the_end_of_the_feed_wakes_all() -> None:
    async def run(feed: Feed) -> None:
        with feed.following("p") as first, feed.following("q") as second:
            assert not feed.is_over
            feed.end()
            assert feed.is_over
            assert first.is_set()
            assert second.is_set()

    on_a_feed(run)


def test_a_write_after_the_loop_has_closed_is_no_error() -> None:
    feeds: list[Feed] = []

    async def run(feed: Feed) -> None:
        feeds.append(feed)
        feed._moved["p"] = set()

    on_a_feed(run)
    feeds[0].tell("p", 1)
