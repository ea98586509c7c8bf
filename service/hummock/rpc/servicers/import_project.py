"""One message of an import: records of which each is checked by itself."""

from __future__ import annotations

from hummock.core.errors import InvalidRequest
from hummock.core.transfer import Given
from hummock.rpc.parse import values
from hummock.rpc.parse.transfer import given
from hummock.rpc.present import transfer as present_transfer
from hummock.rpc.use_cases import UseCases
from hummock.v1 import project_service_pb2 as pb


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
            failures.append(present_transfer.import_failure(line.number, error))
            continue
        if part is not None:
            numbers.append(line.number)
            parts.append(part)
    response = present_transfer.import_response(numbers, use_cases.import_parts(project, parts))
    response.failures.extend(failures)
    response.failures.sort(key=lambda failure: failure.number)
    return response
