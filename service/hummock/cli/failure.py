"""What a command says when it cannot do its work: one line, with how to mend it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import grpc

from hummock_client.errors import call_error, describe

__all__ = ["CommandFailed", "calls_to", "packages_of"]


class CommandFailed(Exception):
    """A command ends with status 1; the message is for the user."""


@contextmanager
def calls_to(target: str) -> Iterator[None]:
    """Turn a failed call into a message that names the target or what is wrong with the request.

    Raises:
        CommandFailed: Instead of `grpc.RpcError`.
    """
    try:
        yield
    except grpc.RpcError as error:
        raise CommandFailed(_describe(error, target)) from error


@contextmanager
def packages_of(extra: str) -> Iterator[None]:
    """Imports inside need the packages of an extra, which the base install does not have.

    Raises:
        CommandFailed: One of them is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in {"", "hummock"}:
            raise
        raise CommandFailed(
            f"this command needs the package {error.name}, which is not installed; pip install 'hummock[{extra}]'"
        ) from error


def _describe(error: grpc.RpcError, target: str) -> str:
    if not isinstance(error, grpc.Call):
        return f"the call to {target} failed: {error}"
    return describe(call_error(error), target)
