"""What a model reads when the service did not do what was asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import grpc
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError

from hummock_client.errors import HummockCallError, describe

__all__ = ["calls_to"]


@contextmanager
def calls_to(target: str) -> Iterator[None]:
    """Turn a failed call into an error result that says what is wrong, and how to mend it where that is known.

    Raises:
        ResourceNotFoundError: The memory does not exist.
        ResourceError: Anything else; the SDK answers a tool that raises it as it answers one that raises ToolError.
    """
    try:
        yield
    except HummockCallError as error:
        failure = ResourceNotFoundError if error.code is grpc.StatusCode.NOT_FOUND else ResourceError
        raise failure(describe(error, target)) from error
