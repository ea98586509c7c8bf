"""Why calls fail: the service's reasons are those of the contract, and the other way round."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import grpc

import hummock
from hummock.core.errors import HummockError
from hummock.rpc.status import InternalError, _code_of
from hummock_client.v1.errors_pb2 import ErrorReason

_PREFIX = "ERROR_REASON_"
# What a package says where it cannot be imported without an extra, or is a program.
_NOT_IMPORTED = ("hummock.__main__",)


def errors() -> Iterator[type[HummockError]]:
    """All classes of errors that the service knows."""
    for module in pkgutil.walk_packages(hummock.__path__, "hummock."):
        if module.name not in _NOT_IMPORTED:
            importlib.import_module(module.name)
    waiting = [HummockError]
    while waiting:
        kind = waiting.pop()
        yield kind
        waiting += kind.__subclasses__()


def sent(kind: type[HummockError]) -> bool:
    """True if a call can end with it: it has a code of its own, and is not just a base class."""
    made = kind.__new__(kind)
    has_code = _code_of(made) is not grpc.StatusCode.INTERNAL or kind is InternalError
    return has_code and (kind.reason in vars(kind).values() or not kind.__subclasses__())


def test_every_reason_is_in_the_contract_and_the_contract_has_no_other() -> None:
    """X3."""
    bases = {"NOT_FOUND", "NOT_READY", "EXHAUSTED"}
    given = {kind.reason for kind in errors() if sent(kind)} - bases
    listed = {name.removeprefix(_PREFIX) for name in ErrorReason.keys()} - {"UNSPECIFIED"}  # noqa: SIM118 # no mapping
    assert given == listed
