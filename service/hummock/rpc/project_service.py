"""ProjectService: projects, their settings, exports and imports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hummock.core.errors import InvalidRequest
from hummock.core.memory import Origin
from hummock.core.transfer import Given, KeptPage
from hummock.rpc import admin_service, project_messages, values
from hummock.rpc.project_messages import given, project_settings, setting_paths
from hummock.rpc.streams import Steps
from hummock.rpc.tokens import page_position, page_token
from hummock.rpc.use_cases import UseCases
from hummock.v1 import project_service_pb2 as pb
from hummock.v1 import transfer_pb2

_MOST_RECORDS = 512
_MOST_BYTES = 4 * 1024 * 1024
"""Of one message, besides its last record."""


def export_project(use_cases: UseCases, request: pb.ProjectServiceExportRequest) -> Steps:
    """The messages of one export."""
    project = use_cases.projects.get(values.project_name("project", request.project))
    settings = use_cases.settings.get(project.name).own
    yield _message([project_messages.header(project.info, settings)], project.memory_count)
    sent = 0
    for page in use_cases.export(project, with_vectors=request.with_vectors):
        sent += len(page.memories)
        for records in _chunks(_records(page, project.emb_space)):
            yield _message(records, project.memory_count)
    conversations = map(project_messages.conversation, use_cases.export.conversations(project.name))
    for records in _chunks(conversations):
        yield _message(records, project.memory_count)
    yield _message([transfer_pb2.TransferRecord(end=transfer_pb2.TransferEnd(memory_count=sent))], project.memory_count)


def _records(page: KeptPage, emb_space: str) -> Iterator[transfer_pb2.TransferRecord]:
    for kept in page.memories:
        yield project_messages.memory(kept, emb_space)
    for memory_id in page.removed_ids:
        yield transfer_pb2.TransferRecord(removed_id=memory_id)


def _chunks(records: Iterable[transfer_pb2.TransferRecord]) -> Iterator[list[transfer_pb2.TransferRecord]]:
    chunk: list[transfer_pb2.TransferRecord] = []
    chunk_bytes = 0
    for record in records:
        chunk.append(record)
        chunk_bytes += record.ByteSize()
        if len(chunk) == _MOST_RECORDS or chunk_bytes >= _MOST_BYTES:
            yield chunk
            chunk, chunk_bytes = [], 0
    if chunk:
        yield chunk


def _message(records: list[transfer_pb2.TransferRecord], memory_count: int) -> pb.ProjectServiceExportResponse:
    return pb.ProjectServiceExportResponse(records=records, memory_count=memory_count)


def import_lines(use_cases: UseCases, request: pb.ProjectServiceImportRequest) -> pb.ProjectServiceImportResponse:
    """Takes in what is right and names what is wrong."""
    project = values.project_name("project", request.project)
    numbers: list[int] = []
    parts: list[Given] = []
    failures: list[pb.ImportFailure] = []
    for line in request.lines:
        try:
            part = given(line.record)
        except InvalidRequest as error:
            failures.append(project_messages.import_failure(line.number, error))
            continue
        if part is not None:
            numbers.append(line.number)
            parts.append(part)
    response = project_messages.import_response(numbers, use_cases.import_parts(project, parts))
    response.failures.extend(failures)
    response.failures.sort(key=lambda failure: failure.number)
    return response


_DEFAULT_PAGE_SIZE = 100
_UPDATABLE = ("tech_stack", "path")


class ProjectServicer:
    """Each method is a call of the projects, of their settings, or of what brings them out and in."""

    def __init__(self, use_cases: UseCases) -> None:
        self._use_cases = use_cases
        self._projects = use_cases.projects
        self._settings = use_cases.settings

    def Get(self, request: pb.ProjectServiceGetRequest) -> pb.ProjectServiceGetResponse:
        """Returns one project."""
        found = self._projects.get(values.project_name("project", request.project))
        return pb.ProjectServiceGetResponse(project=admin_service.project(found, whole=True))

    def List(self, request: pb.ProjectServiceListRequest) -> pb.ProjectServiceListResponse:
        """Returns the projects in pages."""
        size = request.page_size or _DEFAULT_PAGE_SIZE
        # One more than the page holds tells whether another page follows.
        found = self._projects.page(page_position(request, request.page_token), size + 1)
        return pb.ProjectServiceListResponse(
            projects=[admin_service.project(one, whole=False) for one in found[:size]],
            next_page_token=page_token(request, found[size - 1].name) if len(found) > size else "",
        )

    def Update(self, request: pb.ProjectServiceUpdateRequest) -> pb.ProjectServiceUpdateResponse:
        """Changes the named fields of a project's information."""
        named = frozenset(request.update_mask.paths)
        if not named or not named.issubset(_UPDATABLE):
            raise InvalidRequest("update_mask", f"must name one or more of {', '.join(_UPDATABLE)}, and nothing else")
        updated = self._projects.update(
            values.project_name("project", request.project),
            values.request_id(request.request_id),
            tuple(request.info.tech_stack) if "tech_stack" in named else None,
            request.info.path if "path" in named else None,
            Origin(request.origin or Origin.MANUAL),
            values.fingerprint(request),
        )
        return pb.ProjectServiceUpdateResponse(project=admin_service.project(updated, whole=False))

    def GetSettings(self, request: pb.ProjectServiceGetSettingsRequest) -> pb.ProjectServiceGetSettingsResponse:
        """Returns what applies where requests say nothing."""
        shown = self._settings.get(values.project_name("project", request.project))
        return pb.ProjectServiceGetSettingsResponse(
            settings=project_messages.wire_settings(shown.own),
            values=project_messages.settings(shown.settings),
            content_seq=shown.content_seq,
        )

    def UpdateSettings(
        self, request: pb.ProjectServiceUpdateSettingsRequest
    ) -> pb.ProjectServiceUpdateSettingsResponse:
        """Changes the named settings of a project."""
        shown = self._settings.change(
            values.project_name("project", request.project),
            values.request_id(request.request_id),
            project_settings(request.settings),
            setting_paths(request.update_mask.paths),
            values.fingerprint(request),
        )
        return pb.ProjectServiceUpdateSettingsResponse(
            settings=project_messages.wire_settings(shown.own),
            values=project_messages.settings(shown.settings),
            seq=shown.seq,
        )

    def Export(self, request: pb.ProjectServiceExportRequest) -> Steps:
        """Gives out all of a project."""
        return export_project(self._use_cases, request)

    def Import(self, request: pb.ProjectServiceImportRequest) -> pb.ProjectServiceImportResponse:
        """Takes in the records of one message of a stream."""
        return import_lines(self._use_cases, request)
