"""The services of the contract."""

from __future__ import annotations

from google.protobuf.descriptor import ServiceDescriptor

from hummock.v1 import (
    admin_service_pb2,
    context_service_pb2,
    learning_service_pb2,
    memory_service_pb2,
    project_service_pb2,
    session_service_pb2,
)

SERVICES: tuple[ServiceDescriptor, ...] = tuple(
    file.DESCRIPTOR.services_by_name[name]
    for file, name in (
        (context_service_pb2, "ContextService"),
        (memory_service_pb2, "MemoryService"),
        (session_service_pb2, "SessionService"),
        (project_service_pb2, "ProjectService"),
        (learning_service_pb2, "LearningService"),
        (admin_service_pb2, "AdminService"),
    )
)
