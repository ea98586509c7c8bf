"""AdminService: for those who run the service."""

from __future__ import annotations

from collections.abc import Callable

from hummock.core.status import ServiceStatus
from hummock.rpc.gate import Load
from hummock.rpc.present.service import status_response
from hummock.v1 import admin_service_pb2 as pb


class AdminServicer:
    """Says how the service is."""

    def __init__(self, status: Callable[[], ServiceStatus], load: Callable[[], Load]) -> None:
        self._status = status
        self._load = load

    def Status(self, request: pb.StatusRequest) -> pb.StatusResponse:
        """Says what runs, on what, and how full it is."""
        return status_response(self._status(), self._load())
