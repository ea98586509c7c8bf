from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.postgresql.account import server_account
from tests.postgresql.node import Node, running_node
from tests.postgresql.programs import ProgramsMissing, find_programs

_numbers = count(1)


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder of PostgreSQL's programs. Where there are none it skips the test, aloud.

    With REQUIRE_POSTGRESQL=1 the test fails instead.
    """
    try:
        return find_programs(server_account())
    except ProgramsMissing as missing:
        if os.environ.get("REQUIRE_POSTGRESQL") == "1":
            pytest.fail(f"REQUIRE_POSTGRESQL=1, and {missing}")
        pytest.skip(f"needs PostgreSQL: {missing}")


@pytest.fixture
def directory(programs: Path) -> Iterator[Path]:
    """A directory that the server's user can reach; pytest's own are closed to others."""
    with TemporaryDirectory(prefix="pg-") as name:
        yield Path(name)


@pytest.fixture(scope="session")
def node(programs: Path) -> Iterator[Node]:
    """One PostgreSQL for all tests, which does not wait for the disk: its data go with it."""
    with TemporaryDirectory(prefix="pg-") as name, running_node(Path(name), durable=False) as started:
        yield started


@pytest.fixture
def database(node: Node) -> Iterator[str]:
    """The DSN of an empty database of the test's own."""
    name = f"test_{next(_numbers)}"
    yield node.create_database(name)
    node.drop_database(name)
