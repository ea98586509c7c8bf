"""Claims of a request that its caller is not believed: that a memory was read of a repository."""

from __future__ import annotations

from google.protobuf.message import Message

from hummock.core.access import LOCAL, Caller, ScopeMissing, Verb
from hummock.core.review import UNPROVEN_TRUST
from hummock_client.v1 import context_service_pb2, memory_pb2, memory_service_pb2


def lower_claims(request: Message, caller: Caller) -> None:
    """Lowers the trust of INDEXER memories that come from a caller without the index scope.

    Text with low trust is escaped like all text, and held for review if it reads like an instruction. Updates of stored
    memories are checked by the garden, which sees what is stored.

    Raises: ScopeMissing: an update would make a memory one of the indexer's.
    """
    if caller is LOCAL:
        return
    match request:
        case context_service_pb2.LearnRequest():
            if not caller.may(Verb.INDEX, request.project):
                for memory in request.memories:
                    _lower(memory)
        case memory_service_pb2.UpdateMemoryRequest():
            says_so = request.memory.origin == memory_pb2.ORIGIN_INDEXER and "origin" in request.update_mask.paths
            if says_so and not caller.may(Verb.INDEX, request.project):
                raise ScopeMissing(caller.name, Verb.INDEX, "this project", request.project)


def _lower(memory: memory_pb2.Memory) -> None:
    if memory.origin == memory_pb2.ORIGIN_INDEXER and not (memory.HasField("trust") and memory.trust < UNPROVEN_TRUST):
        memory.trust = UNPROVEN_TRUST
