"""What a model reads when the service did not do what was asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import grpc
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError

from hummock_client import HummockCallError

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
        raise failure(_describe(error, target)) from error


def _describe(error: HummockCallError, target: str) -> str:
    # Without a reason of the service's own it was the channel that gave up.
    if error.reason == grpc.StatusCode.UNAVAILABLE.name:
        return (
            f"the Hummock service cannot be reached at {target}: start it with `hummock serve`, "
            "or name another with --target or HUMMOCK_TARGET; this call can then be repeated"
        )
    if error.reason == grpc.StatusCode.DEADLINE_EXCEEDED.name:
        return f"the Hummock service at {target} did not answer in time; this call can be repeated"
    if error.code is grpc.StatusCode.UNIMPLEMENTED:
        return f"what listens at {target} does not know this call: is it `hummock serve`, and as new?"
    broken = [f"{each.field}: {each.rule}" if each.field else each.rule for each in error.field_violations]
    return "; ".join(broken) or error.message or error.reason
