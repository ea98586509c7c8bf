"""The queue of a lane: first in, first out, bounded, and closed to work that nobody waits for."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import pytest

from hummock.core.deadline import then
from hummock.core.errors import DeadlinePassed, Overloaded
from hummock.rpc import admission
from hummock.rpc.admission import ALWAYS_WAIT, LONGEST_WAIT_S, AdmissionQueue, Load

pytestmark = pytest.mark.timed

Made = TypeVar("Made")


@dataclass
class Clock:
    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s


@dataclass
class Blocked:
    """A queue whose workers are all busy until `release` is set."""

    queue: AdmissionQueue
    clock: Clock
    release: threading.Event
    tasks: list[asyncio.Task[Any]] = field(default_factory=list)

    def call(self, work: Callable[[], object] = lambda: None, **how: Any) -> asyncio.Task[Any]:
        task = asyncio.ensure_future(self.queue.run(work, **how))
        self.tasks.append(task)
        return task

    async def crowd(self, calls: int, **how: Any) -> None:
        """So many calls that wait."""
        for _ in range(calls):
            self.call(**how)
        await turn()


@asynccontextmanager
async def blocked(*, workers: int = 1, waiting_limit: int = 2) -> AsyncIterator[Blocked]:
    release, clock, started = threading.Event(), Clock(), threading.Semaphore(0)

    def occupy() -> None:
        started.release()
        release.wait()

    with ThreadPoolExecutor(workers) as executor:
        queue = AdmissionQueue(executor, workers=workers, waiting_limit=waiting_limit, monotonic=clock)
        busy = Blocked(queue=queue, clock=clock, release=release)
        for _ in range(workers):
            busy.call(occupy)
        for _ in range(workers):
            await asyncio.to_thread(started.acquire)
        try:
            yield busy
        finally:
            release.set()
            await asyncio.gather(*busy.tasks, return_exceptions=True)


def later(said: Future[int], make: Callable[[int], Made]) -> Callable[[], Made | Future[Made]]:
    """Work whose result is made of what will be said."""
    return lambda: then(said, make)


@contextmanager
def idle(**limits: Any) -> Iterator[AdmissionQueue]:
    """A queue of one worker that has nothing to do."""
    with ThreadPoolExecutor(1) as executor:
        yield AdmissionQueue(executor, workers=1, **limits)


async def turn() -> None:
    """Lets every task that can run do so."""
    for _ in range(3):
        await asyncio.sleep(0)


async def test_work_runs_in_the_order_of_arrival() -> None:
    order: list[int] = []
    async with blocked(waiting_limit=9) as busy:
        for number in range(5):
            busy.call(partial(order.append, number))
            await turn()
    assert order == [0, 1, 2, 3, 4]


async def test_beyond_the_waiting_limit_calls_are_refused_at_once() -> None:
    async with blocked(waiting_limit=2) as busy:
        await busy.crowd(2)
        assert busy.queue.load == Load(running=1, waiting=2)
        with pytest.raises(Overloaded) as caught:
            await busy.queue.run(lambda: None)
        assert (caught.value.waiting, caught.value.limit) == (2, 2)
        assert 0.05 <= caught.value.retry_after_s <= 5


async def test_a_limit_of_zero_lets_nobody_wait_but_keeps_every_worker_busy() -> None:
    async with blocked(workers=2, waiting_limit=0) as busy:
        assert busy.queue.load == Load(running=2, waiting=0)
        with pytest.raises(Overloaded):
            await busy.queue.run(lambda: None)


async def test_a_patient_caller_waits_beyond_the_limit() -> None:
    async with blocked(waiting_limit=0) as busy:
        patient = busy.call(lambda: "done", is_patient=True)
        await turn()
        assert busy.queue.load.waiting == 1
        busy.release.set()
        assert await patient == "done"


async def test_work_whose_caller_has_gone_never_runs_and_gives_its_place_back() -> None:
    ran: list[str] = []
    async with blocked(waiting_limit=1) as busy:
        gone = busy.call(lambda: ran.append("gone"))
        await turn()
        gone.cancel()
        await turn()
        assert gone.cancelled()
        assert busy.queue.load == Load(running=1, waiting=0)
        busy.call(lambda: ran.append("next"))
        await turn()
    assert ran == ["next"]


async def test_cancelled_work_that_runs_keeps_its_worker_until_it_ends() -> None:
    async with blocked() as busy:
        busy.tasks[0].cancel()
        await turn()
        assert busy.tasks[0].cancelled()
        assert busy.queue.load == Load(running=1, waiting=0)
    assert busy.queue.load == Load(running=0, waiting=0)


async def test_work_whose_deadline_passed_while_it_waited_never_runs() -> None:
    ran: list[str] = []
    async with blocked() as busy:
        late = busy.call(lambda: ran.append("late"), until_s=0.1)
        in_time = busy.call(lambda: ran.append("in time"), until_s=0.3)
        await turn()
        busy.clock.now_s = 0.2
        busy.release.set()
        with pytest.raises(DeadlinePassed):
            await late
        await in_time
    assert ran == ["in time"]


async def test_what_work_raises_reaches_its_caller_alone() -> None:
    with idle() as queue:
        with pytest.raises(ZeroDivisionError):
            await queue.run(lambda: 1 // 0)
        assert await queue.run(lambda: "fine") == "fine"
        assert queue.load == Load(running=0, waiting=0)


async def test_what_comes_later_keeps_no_worker_and_counts_as_inside_until_it_is_there() -> None:
    said: Future[int] = Future()
    with idle(waiting_limit=1) as queue:
        call = asyncio.ensure_future(queue.run(later(said, lambda seq: seq + 1)))
        assert await queue.run(lambda: "meanwhile") == "meanwhile"
        assert queue.load == Load(running=1, waiting=0)
        said.set_result(7)
        assert await call == 8
        assert queue.load == Load(running=0, waiting=0)


async def test_too_many_calls_that_wait_for_what_comes_later_are_overload() -> None:
    """V7 of the reliability notes."""
    said: Future[int] = Future()
    with idle(waiting_limit=1) as queue:
        waiting = [asyncio.ensure_future(queue.run(later(said, str))) for _ in range(2)]
        await turn()
        with pytest.raises(Overloaded):
            await queue.run(lambda: None)
        said.set_result(7)
        assert await asyncio.gather(*waiting) == ["7", "7"]


async def test_what_goes_wrong_later_reaches_its_caller_alone() -> None:
    said: Future[int] = Future()
    said.set_result(0)
    failed: Future[int] = Future()
    failed.set_exception(KeyError("gone"))
    with idle() as queue:
        with pytest.raises(KeyError):
            await queue.run(later(failed, str))
        with pytest.raises(ZeroDivisionError):
            await queue.run(later(said, lambda one: 1 // one))
        assert queue.load == Load(running=0, waiting=0)


async def test_what_nobody_waits_for_any_more_is_given_up_and_its_place_is_free() -> None:
    """V6 of the reliability notes."""
    said: Future[int] = Future()
    with idle() as queue:
        gone = asyncio.ensure_future(queue.run(later(said, str)))
        await turn()
        # After it on the only worker, so that it waits by now.
        await queue.run(lambda: None)
        gone.cancel()
        await turn()
        assert gone.cancelled()
        assert said.cancelled()
        assert queue.load == Load(running=0, waiting=0)


@pytest.mark.parametrize("fails", [True, False])
def test_what_has_come_later_is_left_to_no_collector(fails: bool) -> None:
    async def run() -> None:
        said: Future[int] = Future()
        known, handed_over = weakref.ref(said), [said]

        def work() -> str | Future[str]:
            return then(handed_over.pop(), str)

        with idle() as queue:
            call = asyncio.ensure_future(queue.run(work))
            await turn()
            said.set_exception(KeyError("gone")) if fails else said.set_result(7)
            await asyncio.wait([call])
        assert isinstance(call.exception(), KeyError) if fails else call.result() == "7"
        del said, call
        await turn()
        assert known() is None

    gc.disable()
    try:
        asyncio.run(run())
    finally:
        gc.enable()


async def test_a_call_that_no_worker_takes_is_counted_no_longer() -> None:
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    queue = AdmissionQueue(executor, workers=1)
    with pytest.raises(RuntimeError, match="shutdown"):
        await queue.run(lambda: 1)
    assert queue.load == Load(running=0, waiting=0)


async def test_a_call_that_was_refused_while_it_was_queued_is_never_done(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []
    with idle() as queue:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", lambda thread: (_ for _ in ()).throw(RuntimeError("no thread")))
            with pytest.raises(RuntimeError, match="no thread"):
                await queue.run(lambda: done.append(1))
        await queue.run(lambda: done.append(2))
        assert queue.load == Load(running=0, waiting=0)
    assert done == [2]


async def test_work_that_stops_an_iteration_fails_its_call_instead_of_leaving_it_waiting() -> None:
    with pytest.raises(RuntimeError, match="StopIteration"), idle() as queue:
        await queue.run(lambda: next(iter(())))


@pytest.mark.parametrize("project", ["quiet", "loud"])
async def test_a_flood_neither_denies_nor_delays_the_call_of_another(project: str) -> None:
    """D8, V10 of the reliability notes: the newest of the flood gives its place away."""
    ran: list[str] = []
    async with blocked(waiting_limit=4) as busy:
        loud = partial(busy.call, project="loud", caller="loud")
        flood = [loud(partial(ran.append, f"{n}")) for n in range(4)]
        await turn()
        with pytest.raises(Overloaded):
            await loud()
        quiet = busy.call(partial(ran.append, "quiet"), project=project, caller="quiet")
        await turn()
        assert isinstance(flood[3].exception(), Overloaded)
        assert busy.queue.load == Load(running=1, waiting=4)
        busy.release.set()
        await quiet
    assert ran.index("quiet") <= 1
    assert ran == ["0", "quiet", "1", "2"]


async def test_interactive_work_goes_before_bulk() -> None:
    """D16."""
    ran: list[str] = []
    async with blocked(waiting_limit=4) as busy:
        for number in range(3):
            busy.call(partial(ran.append, f"b{number}"), is_patient=True, is_bulk=True)
        await turn()
        busy.call(partial(ran.append, "call"))
        await turn()
    assert ran == ["call", "b0", "b1", "b2"]


async def test_streams_that_wait_take_no_place_of_a_call() -> None:
    """D1."""
    async with blocked(waiting_limit=1) as busy:
        await busy.crowd(50, is_patient=True)
        call = busy.call(lambda: "answered")
        await turn()
        busy.release.set()
        assert await call == "answered"


@pytest.fixture
def no_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few calls are told from many by nothing but their time."""
    monkeypatch.setattr(admission, "ALWAYS_WAIT", 0)


def a_mean_of(seconds: float, busy: Blocked) -> None:
    """Tells the queue the mean duration of calls."""
    for _ in range(200):
        busy.queue.worked("p", seconds)


@pytest.mark.usefixtures("no_few")
@pytest.mark.parametrize(("stands_s", "most"), [(0.0, 10), (5.0, 1)])
async def test_who_would_wait_too_long_is_refused_at_the_door(stands_s: float, most: int) -> None:
    """V7: a burst passes, and a queue that stands stays short, however many calls may wait by their number."""
    async with blocked(waiting_limit=100) as busy:
        a_mean_of(0.1, busy)
        first = busy.call(is_patient=True)
        await turn()
        busy.clock.now_s = stands_s
        for _ in range(most):
            busy.call()
            await turn()
        assert busy.queue.load.waiting == 1 + most
        with pytest.raises(Overloaded, match="too long") as caught:
            await busy.queue.run(lambda: None)
        assert caught.value.wait_s == pytest.approx(0.1 * (1 + most), rel=0.02)
        busy.release.set()
        await first


@pytest.mark.usefixtures("no_few")
async def test_who_would_be_too_late_is_refused_at_the_door_instead_of_waiting_for_nothing() -> None:
    """V6 of the reliability notes."""
    async with blocked(waiting_limit=100) as busy:
        a_mean_of(0.1, busy)
        await busy.crowd(3)
        with pytest.raises(Overloaded):
            await busy.queue.run(lambda: None, until_s=0.25)
        busy.call(until_s=0.35)
        await turn()
        assert busy.queue.load.waiting == 4


async def test_a_few_slow_calls_are_never_refused_for_the_time_that_they_wait() -> None:
    async with blocked(waiting_limit=100) as busy:
        a_mean_of(60.0, busy)
        busy.clock.now_s = 5.0
        for _ in range(ALWAYS_WAIT + 1):
            busy.call()
            await turn()
        assert busy.queue.load.waiting == ALWAYS_WAIT + 1
        with pytest.raises(Overloaded, match="too long"):
            await busy.queue.run(lambda: None)


async def test_what_waited_longer_than_was_expected_is_refused_and_not_done() -> None:
    ran: list[str] = []
    async with blocked(waiting_limit=100) as busy:
        late = busy.call(lambda: ran.append("late"))
        await turn()
        await busy.crowd(ALWAYS_WAIT + 1, is_patient=True)
        busy.clock.now_s = LONGEST_WAIT_S + 1
        busy.release.set()
        with pytest.raises(Overloaded, match="too long"):
            await late
    assert (ran, busy.queue.load) == ([], Load(running=0, waiting=0))


async def test_one_slow_call_does_not_close_the_door_to_others() -> None:
    async with blocked(waiting_limit=100) as busy:
        a_mean_of(0.001, busy)
        busy.queue.worked("p", 60.0)
        await busy.crowd(50)
        assert busy.queue.load.waiting == 50


async def test_calls_that_end_together_wake_the_loop_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread completes the futures of a group of writes one after the other."""
    said: list[Future[int]] = [Future() for _ in range(8)]
    wakes: list[object] = []
    with idle() as queue:
        calls = [asyncio.ensure_future(queue.run(lambda one=one: one)) for one in said]  # type: ignore[misc] # a default
        while not all(vars(one)["_done_callbacks"] for one in said):  # noqa: ASYNC110 - the workers tell nobody
            await asyncio.sleep(0)
        loop = asyncio.get_running_loop()
        wake = loop.call_soon_threadsafe

        def counted(*told: Any) -> None:
            wakes.append(told)
            wake(*told)

        monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
        for number, one in enumerate(said):
            one.set_result(number)
        assert await asyncio.gather(*calls) == list(range(8))
    assert len(wakes) == 1
