"""The queue before the event loop: one piece of work a turn, and between two of them everything else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

import pytest

from hummock.core.deadline import then
from hummock.core.errors import DeadlinePassed, Overloaded
from hummock.rpc.admission import Load
from hummock.rpc.lanes import inline_queue

pytestmark = pytest.mark.timed


async def test_work_runs_on_the_loop_in_the_order_of_arrival() -> None:
    queue, ran = inline_queue(), list[tuple[int, int]]()

    def work(number: int) -> Callable[[], int]:
        def piece() -> int:
            ran.append((number, threading.get_ident()))
            return number

        return piece

    assert await asyncio.gather(*(queue.run(work(number)) for number in range(20))) == list(range(20))
    assert ran == [(number, threading.get_ident()) for number in range(20)]


async def test_between_two_pieces_the_loop_does_what_else_there_is() -> None:
    queue, done = inline_queue(), list[str]()
    loop = asyncio.get_running_loop()

    def piece(name: str) -> Callable[[], None]:
        def work() -> None:
            done.append(name)
            loop.call_soon(done.append, f"after {name}")

        return work

    await asyncio.gather(*(queue.run(piece(name)) for name in "abc"))
    assert done[:5] == ["a", "after a", "b", "after b", "c"]


async def test_beyond_the_waiting_limit_calls_are_refused_while_others_wait() -> None:
    queue, refused = inline_queue(waiting_limit=2), list[bool]()

    async def call() -> Load:
        try:
            return await queue.run(lambda: queue.load)
        except Overloaded as error:
            refused.append(error.retry_after_s > 0)
            raise

    # The first is done when it comes; of the five after it one would run next, and two may wait.
    calls = [asyncio.ensure_future(call()) for _ in range(6)]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    loads = [answer for answer in answers if isinstance(answer, Load)]
    assert [load.waiting for load in loads] == [0, 2, 1, 0]
    assert (refused, queue.load) == ([True, True], Load(running=0, waiting=0))


async def test_work_whose_caller_has_gone_never_runs() -> None:
    queue, ran = inline_queue(), list[str]()
    calls = [asyncio.ensure_future(queue.run(partial(ran.append, name))) for name in "abcd"]
    await asyncio.sleep(0)
    calls[2].cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    assert (ran, queue.load) == (["a", "b", "d"], Load(running=0, waiting=0))


async def test_work_whose_deadline_has_passed_never_runs() -> None:
    now_s = [0.0]
    queue = inline_queue(monotonic=lambda: now_s[0])

    def pass_the_time() -> None:
        now_s[0] = 1.0

    calls = (
        queue.run(lambda: "at once", until_s=0.5),
        queue.run(pass_the_time),
        queue.run(lambda: "late", until_s=0.5),
        queue.run(lambda: "patient"),
    )
    at_once, _, late, patient = await asyncio.gather(*calls, return_exceptions=True)
    assert at_once == "at once"
    assert isinstance(late, DeadlinePassed)
    assert patient == "patient"


async def test_what_work_raises_reaches_its_caller_alone() -> None:
    queue = inline_queue()

    def fail() -> None:
        raise KeyError("broken")

    failing, next_one = asyncio.ensure_future(queue.run(fail)), asyncio.ensure_future(queue.run(lambda: 7))
    with pytest.raises(KeyError):
        await failing
    assert await next_one == 7


async def test_what_comes_later_comes_from_the_thread_that_knows_it() -> None:
    queue, said = inline_queue(), Future[int]()

    def work() -> int | Future[int]:
        return then(said, lambda number: number + 1)

    call = asyncio.ensure_future(queue.run(work))
    await asyncio.sleep(0)
    assert queue.load == Load(running=1, waiting=0)
    elsewhere = threading.Thread(target=said.set_result, args=(6,))
    elsewhere.start()
    async with asyncio.timeout(30):
        assert await call == 7
    elsewhere.join()
    assert queue.load == Load(running=0, waiting=0)


async def test_while_many_wait_those_that_come_are_let_into_the_queue_first() -> None:
    queue, ran = inline_queue(), list[str]()

    def call(project: str) -> asyncio.Future[None]:
        return asyncio.ensure_future(queue.run(partial(ran.append, project), project=project))

    flood = [call("loud") for _ in range(40)]
    for _ in range(4):
        await asyncio.sleep(0)
    assert len(ran) <= 2
    await asyncio.gather(call("quiet"), *flood)
    assert ran.index("quiet") <= 3
