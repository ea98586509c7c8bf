"""Hummock's client for Python: needs grpcio and protobuf, nothing of the server."""

from hummock_client.async_client import AsyncClient
from hummock_client.batches import batches
from hummock_client.channel import Deadlines
from hummock_client.client import Client
from hummock_client.errors import FieldViolation, HummockCallError
from hummock_client.requests import new_request_id, note
from hummock_client.target import DEFAULT_TARGET, resolve_target
from hummock_client.vector import components, vector

__all__ = [
    "DEFAULT_TARGET",
    "AsyncClient",
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
