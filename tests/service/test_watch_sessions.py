"""Messages as they come, over a real socket."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.service.calls import failure
from tests.service.conversing import append, create, learn_turn, texts
from tests.service.running import Stubs, connected, in_process

pytestmark = [pytest.mark.long, pytest.mark.timed]


@contextmanager
def watching(service: Stubs, project: str, session_id: str, **fields: Any) -> Iterator[Iterator[list[str]]]:
    """The texts of each reply; hung up at exit."""
    stream = service.session.WatchMessages(project=project, session_id=session_id, **fields, timeout=30)
    try:
        yield (texts(reply.messages) for reply in stream)
    finally:
        stream.cancel()


def test_the_newest_messages_come_first_and_then_each_that_is_appended(service: Stubs, project: str) -> None:
    """S4-12, S4-33."""
    create(service, project, "s")
    for text in ("一", "two", "three"):
        append(service, project, "s", text)
    with watching(service, project, "s", newest=2) as replies:
        assert next(replies) == ["two", "three"]
        append(service, project, "s", "四")
        assert next(replies) == ["四"]
        learn_turn(service, project, "s", "还款", "answer")
        assert next(replies) == ["还款", "answer"]


def test_a_session_without_messages_says_so_at_once(service: Stubs, project: str) -> None:
    """S4-12."""
    create(service, project, "s")
    with watching(service, project, "s") as replies:
        assert next(replies) == []
        append(service, project, "s", "first")
        assert next(replies) == ["first"]


def test_a_watch_goes_on_behind_a_position(service: Stubs, project: str) -> None:
    """S4-12."""
    create(service, project, "s")
    for number in range(30):
        append(service, project, "s", str(number))
    with watching(service, project, "s", after_position=27) as replies:
        assert next(replies) == ["27", "28", "29"]
    with watching(service, project, "s", after_position=0) as replies:
        assert next(replies) == [str(number) for number in range(30)]
    with watching(service, project, "s", after_position=30) as replies:
        assert next(replies) == []
        append(service, project, "s", "30")
        assert next(replies) == ["30"]


def test_a_watch_sees_no_other_session_and_no_other_project(service: Stubs, project: str) -> None:
    other = f"{project}-other"
    for where, name in ((project, "s"), (project, "t"), (other, "s")):
        create(service, where, name)
    with watching(service, project, "s") as replies:
        assert next(replies) == []
        append(service, project, "t", "of another session")
        append(service, other, "s", "of another project")
        append(service, project, "s", "mine")
        assert next(replies) == ["mine"]


def test_a_watch_ends_when_its_session_is_deleted(service: Stubs, project: str) -> None:
    create(service, project, "s")
    with watching(service, project, "s") as replies:
        assert next(replies) == []
        service.session.DeleteSession(project=project, id="s")
        assert failure(next, replies).code is grpc.StatusCode.NOT_FOUND


def test_messages_of_several_writers_come_each_once_and_in_order(service: Stubs, project: str) -> None:
    """S4-39."""
    create(service, project, "s")
    with watching(service, project, "s") as replies, ThreadPoolExecutor(4) as writers:
        list(writers.map(lambda number: append(service, project, "s", str(number)), range(24)))
        seen = list(islice((text for reply in replies for text in reply), 24))
    listed = service.session.ListMessages(project=project, session_id="s", page_size=100)
    assert seen == texts(listed.messages)
    assert sorted(seen, key=int) == [str(number) for number in range(24)]


def test_a_watch_goes_on_after_the_service_was_killed(tmp_path: Path, models_dir: Path, model: str) -> None:
    """S4-12."""
    with in_process(tmp_path, models_dir, model) as first:
        with connected(first.target) as service, watching_new(service) as replies:
            assert next(replies) == []
            append(service, "p", "s", "before")
            assert next(replies) == ["before"]
            append(service, "p", "s", "missed")
        first.kill()
    with (
        in_process(tmp_path, models_dir, model) as second,
        connected(second.target) as service,
        watching(service, "p", "s", after_position=1) as replies,
    ):
        assert next(replies) == ["missed"]
        append(service, "p", "s", "after")
        assert next(replies) == ["after"]


@contextmanager
def watching_new(service: Stubs) -> Iterator[Iterator[list[str]]]:
    create(service, "p", "s")
    with watching(service, "p", "s") as replies:
        yield replies
