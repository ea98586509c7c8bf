"""MemoryService: the garden."""

from __future__ import annotations

from hummock.core.errors import InvalidRequest, MemoryNotFound
from hummock.rpc.page_token import page_number, page_token
from hummock.rpc.parse import memory as parse_memory
from hummock.rpc.parse import values
from hummock.rpc.present import memory as present_memory
from hummock.rpc.reply_stream import Steps
from hummock.rpc.servicers.watch_memories import watch_memories
from hummock.rpc.status import MAX_REPLY_BYTES
from hummock.rpc.use_cases import Garden
from hummock.v1 import memory_service_pb2 as pb

_DEFAULT_PAGE_SIZE = 100


class MemoryServicer:
    """Each method is a call of the garden."""

    def __init__(self, garden: Garden) -> None:
        self._garden = garden

    def Get(self, request: pb.MemoryServiceGetRequest) -> pb.MemoryServiceGetResponse:
        """Returns one memory."""
        (found,) = self._garden.get(
            values.project_name("project", request.project),
            (values.identifier("id", request.id),),
            request.min_seq,
            full=values.wants_full(request.view, unset_means_full=True),
        )
        if found is None:
            raise MemoryNotFound(request.id)
        return pb.MemoryServiceGetResponse(memory=present_memory.memory(found))

    def BatchGet(self, request: pb.MemoryServiceBatchGetRequest) -> pb.MemoryServiceBatchGetResponse:
        """Returns several memories."""
        ids = values.identifiers("ids", request.ids)
        found = self._garden.get(
            values.project_name("project", request.project),
            ids,
            request.min_seq,
            full=values.wants_full(request.view, unset_means_full=True),
        )
        return present_memory.batch_get_response(ids, found)

    def List(self, request: pb.MemoryServiceListRequest) -> pb.MemoryServiceListResponse:
        """Returns the memories of a project in pages, shorter ones where a page would not fit into a reply."""
        project = values.project_name("project", request.project)
        where = values.memory_filter("filter", request.filter)
        after = page_number(request, request.page_token) or 0
        full = values.wants_full(request.view, unset_means_full=False)
        newest_first = request.order == pb.LIST_ORDER_NEWEST_FIRST
        size = request.page_size or _DEFAULT_PAGE_SIZE
        while True:
            page = self._garden.page(
                project, where, after, size, full=full, newest_first=newest_first, contains=request.contains
            )
            reply = pb.MemoryServiceListResponse(
                memories=map(present_memory.memory, page.memories),
                next_page_token="" if page.next_after is None else page_token(request, str(page.next_after)),
            )
            if reply.ByteSize() <= MAX_REPLY_BYTES or size == 1:
                return reply
            size = min(size, len(page.memories)) // 2 or 1

    def Update(self, request: pb.MemoryServiceUpdateRequest) -> pb.MemoryServiceUpdateResponse:
        """Changes the named fields of a memory."""
        memory_id, changes = parse_memory.memory_changes(request)
        project = values.project_name("project", request.project)
        request_id, fingerprint = values.request_id(request.request_id), values.fingerprint(request)
        try:
            updated = self._garden.update(project, request_id, memory_id, changes, fingerprint)
        except InvalidRequest as error:
            # What the memory would become is known to the garden alone.
            if error.field.startswith("payload"):
                error.move_into("memory.")
            raise
        return present_memory.update_response(updated)

    def Delete(self, request: pb.MemoryServiceDeleteRequest) -> pb.MemoryServiceDeleteResponse:
        """Removes memories."""
        deleted = self._garden.delete(
            values.project_name("project", request.project),
            values.request_id(request.request_id),
            values.identifiers("ids", request.ids),
            values.fingerprint(request),
        )
        return present_memory.delete_response(deleted)

    def Watch(self, request: pb.MemoryServiceWatchRequest) -> Steps:
        """Tells what becomes of a project's memories."""
        return watch_memories(self._garden, request)
