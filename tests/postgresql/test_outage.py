"""A server that is gone, or frozen, is said at once; what was acknowledged is there when it is back."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TypeVar

import pytest

from hummock.core.errors import Unavailable
from tests.ports.asking import ask, ids, put
from tests.postgresql.family import family, signal_all
from tests.postgresql.node import running_node
from tests.store.opening import opened_shared
from tests.strategies import Entry, put_request

Answer = TypeVar("Answer")

_TRIES = 30
"""Of which each waits for a connection, so that together they outlast any start."""


def eventually(call: Callable[[], Answer]) -> Answer:
    """What a call answers once the database does."""
    for _ in range(_TRIES):
        with suppress(Unavailable):
            return call()
    return call()


def test_a_server_that_was_killed_is_said_and_what_was_acknowledged_is_there_again(directory: Path) -> None:
    with ExitStack() as running:
        node = running.enter_context(running_node(directory))
        with opened_shared(node.dsn_of("hummock")) as store:
            put(store, "p", Entry(id="a"))
            node.kill()
            running.close()
            for _ in range(3):
                with pytest.raises(Unavailable, match="does not answer"):
                    ask(store, "p", terms=("tide",))
            with pytest.raises(Unavailable, match="does not answer"):
                put(store, "p", Entry(id="b"))
            with pytest.raises(Unavailable, match="does not answer"):
                store.status()
            with running_node(directory):
                assert ids(eventually(lambda: ask(store, "p", terms=("tide",)))) == {"a"}
                eventually(lambda: put(store, "p", Entry(id="c", words=("tide", "c"))))
                assert ids(ask(store, "p", terms=("tide",))) == {"a", "c"}
                assert store.status().write_fault == ""


def test_a_server_that_is_frozen_is_given_up_and_used_again_when_it_thaws(directory: Path) -> None:
    with running_node(directory) as node, opened_shared(node.dsn_of("hummock")) as store:
        put(store, "p", Entry(id="a"))
        frozen = family(node.postmaster.pid)
        signal_all(frozen, signal.SIGSTOP)
        try:
            with pytest.raises(Unavailable, match="does not answer"):
                ask(store, "p", terms=("tide",))
        finally:
            signal_all(frozen, signal.SIGCONT)
        assert ids(eventually(lambda: ask(store, "p", terms=("tide",)))) == {"a"}
        eventually(lambda: put(store, "p", Entry(id="b", words=("tide", "b"))))
        assert ids(ask(store, "p", terms=("tide",))) == {"a", "b"}


def test_a_write_that_was_cut_off_and_is_sent_again_happens_once(directory: Path) -> None:
    request = put_request([Entry(id="a")], request_id="5d1a7c0e-6b0f-4e1a-9d55-0c2c6f5b7a11")
    with ExitStack() as running:
        node = running.enter_context(running_node(directory))
        with opened_shared(node.dsn_of("hummock")) as store:
            written = store.write("p", request).result(30)
            node.kill()
            running.close()
            with running_node(directory):
                again = eventually(lambda: store.write("p", request).result(30))
    assert (again.seq, again.is_repeat) == (written.seq, True)
