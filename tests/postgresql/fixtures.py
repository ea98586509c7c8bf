from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

import psycopg
import pytest

from hummock.store.postgresql.schema import bring_up
from tests.postgresql.account import server_account
from tests.postgresql.node import Node, running_node
from tests.postgresql.programs import ProgramsMissing, find_programs
from tests.service.stores import Databases, use

_numbers = count(1)


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder of PostgreSQL's programs. Where there are none it skips the test, aloud.

    With REQUIRE_POSTGRESQL=1 the test fails instead.
    """
    try:
        return find_programs(server_account())
    except ProgramsMissing as missing:
        do_without(missing)


def do_without(missing: ProgramsMissing) -> NoReturn:
    """Skips the test, or fails it where it is required."""
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


@pytest.fixture(scope="session")
def template(node: Node) -> str:
    """The name of a database that has Hummock's tables, and nothing in them, to make others of."""
    with psycopg.connect(node.create_database("template_hummock"), autocommit=True) as connection:
        bring_up(connection, "the template")
    return "template_hummock"


@pytest.fixture
def database(node: Node, template: str) -> Iterator[str]:
    """The DSN of a database of the test's own with empty tables."""
    name = f"test_{next(_numbers)}"
    yield node.create_database(name, template)
    node.drop_database(name)


@pytest.fixture
def bare_database(node: Node) -> Iterator[str]:
    """The DSN of a database of the test's own without a table."""
    name = f"bare_{next(_numbers)}"
    yield node.create_database(name)
    node.drop_database(name)


@pytest.fixture(scope="session", autouse=True)
def chosen_store(request: pytest.FixtureRequest) -> None:
    """Makes services use the store that `--store` names."""
    if request.config.getoption("--store") == "postgresql":
        use(Databases(request.getfixturevalue("node"), request.getfixturevalue("template")))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Passes over what only LMDB has, and says why."""
    if config.getoption("--store") == "lmdb":
        return
    for item in items:
        marker = item.get_closest_marker("lmdb")
        if marker is not None:
            item.add_marker(pytest.mark.skip(reason=f"only over LMDB: {marker.args[0]}"))
