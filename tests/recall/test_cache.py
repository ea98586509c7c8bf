"""Answers that are kept, and questions that are answered once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hummock.core.errors import InvalidRequest
from hummock.recall.cache import AnswerCache
from tests.fakes import CountingLock, FakeClock

TTL_S = 300.0


class Asked:
    """A cache of numbers that weigh what they are, and how often each key was computed."""

    def __init__(self, *, max_entries: int = 8, max_bytes: int = 800) -> None:
        self.clock = FakeClock()
        self.cache: AnswerCache[str, int] = AnswerCache(
            monotonic=self.clock.monotonic, ttl_s=TTL_S, max_entries=max_entries, max_bytes=max_bytes
        )
        self.computed: list[str] = []

    def __call__(self, key: str, value: int = 1, *, is_usable: bool = True, is_kept: bool = True) -> tuple[int, bool]:
        def compute() -> tuple[int, int | None]:
            self.computed.append(key)
            return value, value if is_kept else None

        return self.cache.answer(key, compute, is_usable=lambda _: is_usable)


def test_being_used_does_not_make_an_answer_younger() -> None:
    ask = Asked()
    for _ in range(4):
        ask("a")
        ask.clock.move(TTL_S / 4)
    assert ask("a") == (1, False)


def test_an_answer_that_is_too_old_goes_when_it_is_looked_up() -> None:
    """S0-31: lazy eviction on read."""
    ask = Asked()
    ask("a", 5)
    ask.clock.move(TTL_S)
    assert ask.cache.usage() == (1, 5)
    ask("a", is_kept=False)
    assert ask.cache.usage() == (0, 0)


def test_what_nobody_asks_again_does_not_stay() -> None:
    """X7: what was deleted leaves the memory, though its answers are never looked up again."""
    ask = Asked()
    for key in ("a", "b", "c"):
        ask(key)
    ask.clock.move(TTL_S)
    ask("d")
    assert ask.cache.usage() == (1, 1)


def test_the_answer_used_longest_ago_gives_way() -> None:
    ask = Asked(max_entries=2)
    for key in ("a", "b", "a", "c"):
        ask(key)
    assert [ask(key)[1] for key in ("a", "c", "b")] == [True, True, False]


def test_an_answer_that_would_push_out_the_others_is_not_kept() -> None:
    ask = Asked(max_bytes=800)
    ask("small", 1)
    ask("large", 101)
    assert ask.cache.usage() == (1, 1)
    ask("at the limit", 100)
    assert ask.cache.usage() == (2, 101)


def test_what_is_not_to_be_kept_is_not_and_what_does_not_serve_is_replaced() -> None:
    ask = Asked()
    assert [ask("a", is_kept=False)[1] for _ in range(2)] == [False, False]
    ask("a", 3)
    assert ask("a", 4, is_usable=False) == (4, False)
    assert ask("a") == (4, True)
    assert ask.cache.usage() == (1, 4)


@settings(derandomize=True)
@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 120), st.sampled_from([0.0, 100.0, 299.0]))))
def test_the_cache_never_holds_more_than_it_may(steps: list[tuple[str, int, float]]) -> None:
    ask = Asked(max_entries=4, max_bytes=300)
    for key, value, pause_s in steps:
        ask(key, value)
        ask.clock.move(pause_s)
        count, nbytes = ask.cache.usage()
        assert count <= 4
        assert nbytes == sum(entry.nbytes for entry in ask.cache._entries.values()) <= 300


def together(ask: Asked, count: int, outcome: Callable[[], int]) -> list[Future[tuple[int, bool]]]:
    """Asks `count` times; the first computes, and ends only when all others wait for it."""
    lock = CountingLock()
    ask.cache._lock = lock  # type: ignore[assignment] # a lock in all that the cache needs
    with ThreadPoolExecutor(count) as threads:

        def compute() -> tuple[int, int]:
            ask.computed.append("a")
            lock.wait(count)
            return outcome(), 1

        def once() -> tuple[int, bool]:
            return ask.cache.answer("a", compute, is_usable=lambda _: True)

        return [threads.submit(once) for _ in range(count)]


def test_equal_questions_under_way_are_answered_once() -> None:
    """V8: one computation, however many ask."""
    ask = Asked()
    answers = [future.result(30) for future in together(ask, 16, lambda: 5)]
    assert ask.computed == ["a"]
    assert sorted(answers) == [(5, False), *[(5, True)] * 15]
    assert ask("a") == (5, True)


def test_an_error_goes_to_all_who_wait_and_is_not_kept() -> None:
    ask = Asked()

    def fail() -> int:
        raise InvalidRequest("query_vector.values", "has 3 components; the space has 4")

    errors = [future.exception(30) for future in together(ask, 8, fail)]
    assert ask.computed == ["a"]
    assert {(type(error), str(error)) for error in errors} == {
        (InvalidRequest, "query_vector.values: has 3 components; the space has 4")
    }
    assert ask("a", 2) == (2, False)


def test_whoever_changes_an_error_changes_their_own() -> None:
    ask = Asked()

    def fail() -> int:
        raise InvalidRequest("top_k", "is 0")

    errors = [future.exception(30) for future in together(ask, 3, fail)]
    first, *others = errors
    assert isinstance(first, InvalidRequest)
    first.move_into("recall.")
    assert [(error.field, str(error)) for error in others if isinstance(error, InvalidRequest)] == [
        ("top_k", "top_k: is 0"),
        ("top_k", "top_k: is 0"),
    ]


def test_other_questions_do_not_wait_for_one_under_way() -> None:
    ask = Asked()

    def compute() -> tuple[int, int]:
        return ask("b", 2)[0] + 1, 1

    assert ask.cache.answer("a", compute, is_usable=lambda _: True) == (3, False)
    assert ask("b") == (2, True)


def test_a_question_that_failed_can_be_asked_again_at_once() -> None:
    ask = Asked()

    def interrupted() -> tuple[int, int]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask.cache.answer("a", interrupted, is_usable=lambda _: True)
    assert ask("a") == (1, False)


def test_who_has_no_time_to_wait_computes_for_itself() -> None:
    ask = Asked()
    hurried: list[tuple[int, bool]] = []

    def compute() -> tuple[int, int]:
        hurried.append(ask.cache.answer("a", lambda: (2, 2), is_usable=lambda _: True, patience_s=0.0))
        return 1, 1

    assert ask.cache.answer("a", compute, is_usable=lambda _: True) == (1, False)
    assert hurried == [(2, False)]
    assert ask("a") == (1, True), "what one computed for itself is not kept"


def test_an_answer_under_way_that_does_not_serve_is_computed_anew() -> None:
    ask = Asked()
    lock = CountingLock()
    ask.cache._lock = lock  # type: ignore[assignment] # a lock in all that the cache needs
    with ThreadPoolExecutor(1) as callers:

        def compute() -> tuple[int, int]:
            others.append(callers.submit(ask, "a", 2, is_usable=False))
            lock.wait(2)
            return 1, 1

        others: list[Future[tuple[int, bool]]] = []
        assert ask.cache.answer("a", compute, is_usable=lambda _: True) == (1, False)
        assert others[0].result() == (2, False)
