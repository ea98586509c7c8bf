"""Stores for the services of a test run: LMDB, or with `--store postgresql` databases."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Final

from tests.postgresql.node import Node

_numbers = count(1)


class Databases:
    """A database for each data directory: a service that starts again in one finds what it had."""

    def __init__(self, node: Node, template: str) -> None:
        self._node = node
        self._template = template
        self._dsns: dict[Path, str] = {}

    def of(self, data_dir: Path) -> str:
        """The DSN of a directory's database, which is made when it is first asked for."""
        if data_dir not in self._dsns:
            self._dsns[data_dir] = self._node.create_database(f"service_{next(_numbers)}", self._template)
        return self._dsns[data_dir]


_used: Final[list[Databases]] = []


def use(databases: Databases) -> None:
    """Makes every service from now on use this store."""
    _used.append(databases)


def store_of(data_dir: Path) -> str | None:
    """The DSN of the database of whatever service has this directory; None means that LMDB lies in it."""
    return _used[-1].of(data_dir) if _used else None
