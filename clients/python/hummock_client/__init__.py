"""Hummock's client for Python: needs grpcio and protobuf, nothing of the server."""

from hummock_client.access import Certificate
from hummock_client.channel import DEFAULT_TARGET, Deadlines, resolve_target
from hummock_client.client import AsyncClient, Client
from hummock_client.errors import FieldViolation, HummockCallError
from hummock_client.requests import components, new_request_id, note, vector
from hummock_client.streaming import batches

__all__ = [
    "DEFAULT_TARGET",
    "AsyncClient",
    "Certificate",
    "Client",
    "Deadlines",
    "FieldViolation",
    "HummockCallError",
    "batches",
    "components",
    "new_request_id",
    "note",
    "resolve_target",
    "vector",
]
