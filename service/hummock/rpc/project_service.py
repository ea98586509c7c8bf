"""ProjectService: projects, their settings, exports and imports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hummock.core.memory import Origin
from hummock.core.project import Project
from hummock.core.settings import SettingsShown
from hummock.rpc import values
from hummock.rpc.call import CallContext
from hummock.rpc.conversion import message_of
from hummock.rpc.project_transfer import ImportStream, export_project
from hummock.rpc.settings_messages import (
    default_settings,
    effective_settings,
    own_settings,
    project_settings,
    setting_paths,
)
from hummock.rpc.streams import UNTIL_WRITTEN, Steps
from hummock.rpc.tokens import page_position, page_token
from hummock_client.v1 import project_service_pb2 as pb
from hummock_client.v1 import settings_pb2

if TYPE_CHECKING:
    from hummock.rpc.methods import UseCases

_UPDATABLE = ("tech_stack", "path")


class ProjectServicer:
    """Lists, changes, exports and imports projects and their settings."""

    def __init__(self, use_cases: UseCases) -> None:
        self._use_cases = use_cases
        self._projects = use_cases.projects
        self._settings = use_cases.settings

    def GetProject(self, request: pb.GetProjectRequest, call: CallContext) -> pb.GetProjectResponse:
        """Returns one project."""
        found = self._projects.get(values.project_name("project", request.project))
        return pb.GetProjectResponse(project=project_message(found, whole=True))

    def ListProjects(self, request: pb.ListProjectsRequest, call: CallContext) -> pb.ListProjectsResponse:
        """Returns the projects in pages."""
        size = values.page_size(request.page_size)
        # One more than the page holds shows whether another page follows.
        found = self._projects.page(page_position(request, request.page_token), size + 1)
        return pb.ListProjectsResponse(
            projects=[project_message(one, whole=False) for one in found[:size]],
            next_page_token=page_token(request, found[size - 1].name) if len(found) > size else "",
        )

    def WatchProject(self, request: pb.WatchProjectRequest, call: CallContext) -> Steps:
        """Streams the progress of a project's embedding, with a message at each change."""
        name = values.project_name("project", request.project)
        shown: tuple[int, int] | None = None
        while True:
            now = self._projects.stored(name)
            if (now.memory_count, now.pending_count) == shown:
                yield UNTIL_WRITTEN
                continue
            shown = now.memory_count, now.pending_count
            embedding = self._use_cases.embedding_status()
            time_left = embedding.time_left_s(now.pending_count)
            yield message_of(pb.WatchProjectResponse, now, rate=embedding.rate, time_left=time_left)

    def UpdateProject(self, request: pb.UpdateProjectRequest, call: CallContext) -> pb.UpdateProjectResponse:
        """Changes the named fields of a project's information."""
        named = values.mask(request.update_mask.paths, _UPDATABLE)
        write = values.write(request)
        updated = self._projects.update(
            write["project"],
            write["request_id"],
            tuple(request.info.tech_stack) if "tech_stack" in named else None,
            request.info.path if "path" in named else None,
            Origin(request.origin or Origin.MANUAL),
            write["fingerprint"],
        )
        return pb.UpdateProjectResponse(project=project_message(updated, whole=False))

    def DeleteProject(self, request: pb.DeleteProjectRequest, call: CallContext) -> pb.DeleteProjectResponse:
        """Removes a project with all that it has."""
        write = values.write(request)
        deleted = self._projects.delete(write["project"], write["request_id"], write["fingerprint"])
        return message_of(pb.DeleteProjectResponse, deleted)

    def GetProjectSettings(
        self, request: pb.GetProjectSettingsRequest, call: CallContext
    ) -> pb.GetProjectSettingsResponse:
        """Returns what applies where requests say nothing."""
        shown = self._settings.get(values.project_name("project", request.project))
        return pb.GetProjectSettingsResponse(**_settings(shown), content_seq=shown.content_seq)

    def UpdateProjectSettings(
        self, request: pb.UpdateProjectSettingsRequest, call: CallContext
    ) -> pb.UpdateProjectSettingsResponse:
        """Changes the named settings of a project."""
        shown = self._settings.change(
            **values.write(request),
            values=project_settings(request.settings),
            paths=setting_paths(request.update_mask.paths),
        )
        return pb.UpdateProjectSettingsResponse(**_settings(shown), seq=shown.seq)

    def ExportProject(self, request: pb.ExportProjectRequest, call: CallContext) -> Steps:
        """Exports a project."""
        return export_project(self._use_cases, request)

    def ImportProject(self) -> ImportStream:
        """Imports the records of a stream, message by message."""
        return ImportStream(self._use_cases)


def _settings(shown: SettingsShown) -> dict[str, settings_pb2.ProjectSettings]:
    return {
        "settings": own_settings(shown.own),
        "effective": effective_settings(shown),
        "defaults": default_settings(shown),
    }


def project_message(stored: Project, *, whole: bool) -> pb.ProjectDetails:
    """Convert a project; `whole` adds counts by kind and feedback, which take reads of their own."""
    kinds = sorted(stored.kinds.items()) if whole else ()
    return message_of(
        pb.ProjectDetails,
        stored,
        kinds=[message_of(pb.KindCount, kind=kind, count=count) for kind, count in kinds],
        feedback=stored.feedback if whole else None,
        graph=stored.graph and message_of(pb.GraphStatus, stored.graph, row_count=stored.graph.rows),
    )
