"""The roles of Compose, and the container that makes the tables before services start, over a PostgreSQL."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest
import yaml

from bench import toy_models
from hummock_client import Client
from tests.deploy.engine import DEPLOY
from tests.deploy.test_page import service
from tests.postgresql.node import Node, running_node
from tests.service.running import free_port

pytestmark = [pytest.mark.long, pytest.mark.storeless]

_LIMIT_S = 300
_PASSWORDS = {"HUMMOCK_OWNER_PASSWORD": "the owner's", "HUMMOCK_APP_PASSWORD": 'a "$word"'}


class _Loader(yaml.SafeLoader):  # type: ignore[misc] # PyYAML has no types
    """Reads Compose's own tags."""


_Loader.add_constructor("!override", lambda loader, node: loader.construct_sequence(node))


def read_compose() -> dict[str, Any]:
    found = yaml.load((DEPLOY / "compose.postgresql.yaml").read_text(encoding="utf-8"), _Loader)  # noqa: S506 - a safe one
    assert isinstance(found, dict)
    return found


def script_of_compose() -> str:
    (script,) = read_compose()["services"]["schema"]["command"]
    return str(script).replace("$$", "$")


def script_of_kubernetes() -> str:
    deployment = yaml.safe_load((DEPLOY / "kubernetes/postgresql/deployment.yaml").read_text(encoding="utf-8"))
    (container,) = (
        each for each in deployment["spec"]["template"]["spec"]["initContainers"] if each["name"] == "schema"
    )
    *shell, script = container["command"]
    assert shell == ["sh", "-ec"]
    return str(script)


@pytest.fixture
def database(programs: Path) -> Iterator[Node]:
    """A PostgreSQL whose only roles and database of ours are those that Compose's file makes."""
    with TemporaryDirectory(prefix="pg-") as name, running_node(Path(name), durable=False) as node:
        with psycopg.connect(node.dsn, autocommit=True) as superuser:
            superuser.execute("DROP DATABASE hummock")
        roles = read_compose()["configs"]["roles"]["content"]
        psql: list[str | Path] = [programs / "psql", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", "--dbname", node.dsn]
        environ = {**os.environ, **_PASSWORDS}
        subprocess.run(psql, input=roles, env=environ, text=True, check=True, capture_output=True, timeout=_LIMIT_S)
        yield node


def make_tables(dsn: str, folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run the container's script by this machine's shell, in the environment of the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HUMMOCK_")}
    port = str(free_port())
    environ = {
        **kept,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HUMMOCK_STORE": dsn,
        "HUMMOCK_DATA": str(folder / "schema"),
        "HUMMOCK_MODELS": str(folder / "models"),
        "HUMMOCK_MODEL": toy_models.TINY,
        "HUMMOCK_PORT": port,
        "HUMMOCK_TARGET": f"127.0.0.1:{port}",
    }
    return subprocess.run(
        ["sh", "-ec", script], env=environ, capture_output=True, text=True, check=False, timeout=_LIMIT_S
    )


def test_compose_and_kubernetes_make_the_tables_in_the_same_way() -> None:
    assert script_of_compose() == script_of_kubernetes()


def test_the_owner_makes_the_tables_and_the_service_owns_nothing(database: Node, tmp_path: Path) -> None:
    toy_models.build_tiny(tmp_path / "models")
    of_app = database.dsn_of("hummock", "hummock_app")
    too_early = make_tables(of_app, tmp_path, script_of_kubernetes())
    assert too_early.returncode != 0
    for _ in range(2):  # with each new version again
        made = make_tables(database.dsn_of("hummock", "hummock_owner"), tmp_path, script_of_kubernetes())
        assert (made.returncode, made.stdout.splitlines()[-1]) == (0, "SERVING"), made.stderr
    port = free_port()
    with service(tmp_path / "data", port, tmp_path / "models", store=of_app), Client(f"127.0.0.1:{port}") as client:
        client.note("shop", "parse_date takes ISO 8601")
        assert client.recall("shop", "what does parse_date take?").hits[0].memory.text == "parse_date takes ISO 8601"
    with psycopg.connect(database.dsn_of("hummock", "postgres")) as superuser:
        owners = superuser.execute("SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'hummock'").fetchall()
    assert owners == [("hummock_owner",)]
