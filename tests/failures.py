"""Details of failures inside replies."""

from __future__ import annotations

from hummock_client.errors import status_error
from hummock_client.v1 import project_service_pb2 as pb


def field_of(failure: pb.ImportFailure) -> str:
    """The first field that is wrong; empty where none is."""
    violations = status_error(failure.status).field_violations
    return violations[0].field if violations else ""
