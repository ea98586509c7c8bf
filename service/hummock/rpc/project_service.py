"""ProjectService: projects, their settings, exports and imports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hummock.core.errors import InvalidRequest
from hummock.core.memory import Origin
from hummock.core.project import EmbeddingStatus, GraphReport, Project
from hummock.rpc import values
from hummock.rpc.call import CallContext
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
from hummock_client.v1 import memory_pb2
from hummock_client.v1 import project_service_pb2 as pb

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
            yield watch_message(now, self._use_cases.embedding_status())

    def UpdateProject(self, request: pb.UpdateProjectRequest, call: CallContext) -> pb.UpdateProjectResponse:
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
        return pb.UpdateProjectResponse(project=project_message(updated, whole=False))

    def DeleteProject(self, request: pb.DeleteProjectRequest, call: CallContext) -> pb.DeleteProjectResponse:
        """Removes a project with all that it has."""
        deleted = self._projects.delete(
            values.project_name("project", request.project),
            values.request_id(request.request_id),
            values.fingerprint(request),
        )
        return pb.DeleteProjectResponse(
            memory_count=deleted.memory_count,
            session_count=deleted.session_count,
            message_count=deleted.message_count,
            event_count=deleted.event_count,
            held_count=deleted.held_count,
            ids_digest=deleted.ids_digest,
        )

    def GetProjectSettings(
        self, request: pb.GetProjectSettingsRequest, call: CallContext
    ) -> pb.GetProjectSettingsResponse:
        """Returns what applies where requests say nothing."""
        shown = self._settings.get(values.project_name("project", request.project))
        return pb.GetProjectSettingsResponse(
            settings=own_settings(shown.own),
            effective=effective_settings(shown),
            defaults=default_settings(shown),
            content_seq=shown.content_seq,
        )

    def UpdateProjectSettings(
        self, request: pb.UpdateProjectSettingsRequest, call: CallContext
    ) -> pb.UpdateProjectSettingsResponse:
        """Changes the named settings of a project."""
        shown = self._settings.change(
            values.project_name("project", request.project),
            values.request_id(request.request_id),
            project_settings(request.settings),
            setting_paths(request.update_mask.paths),
            values.fingerprint(request),
        )
        return pb.UpdateProjectSettingsResponse(
            settings=own_settings(shown.own),
            effective=effective_settings(shown),
            defaults=default_settings(shown),
            seq=shown.seq,
        )

    def ExportProject(self, request: pb.ExportProjectRequest, call: CallContext) -> Steps:
        """Exports a project."""
        return export_project(self._use_cases, request)

    def ImportProject(self) -> ImportStream:
        """Imports the records of a stream, message by message."""
        return ImportStream(self._use_cases)


def project_message(stored: Project, *, whole: bool) -> pb.ProjectDetails:
    """Convert a project; `whole` adds counts by kind and feedback, which take reads of their own."""
    return pb.ProjectDetails(
        name=stored.name,
        info=pb.ProjectInfo(
            tech_stack=stored.info.tech_stack,
            path=stored.info.path,
            tech_stack_origin=memory_pb2.Origin.ValueType(stored.info.tech_stack_origin or 0),
            path_origin=memory_pb2.Origin.ValueType(stored.info.path_origin or 0),
        ),
        memory_count=stored.memory_count,
        kinds=[
            pb.KindCount(kind=memory_pb2.MemoryKind.ValueType(kind), count=count)
            for kind, count in sorted(stored.kinds.items())
        ]
        if whole
        else [],
        seq=stored.seq,
        content_seq=stored.content_seq,
        emb_space=stored.emb_space,
        pending_count=stored.pending_count,
        create_time=values.timestamp(stored.create_time),
        feedback=pb.FeedbackCounts(
            helpful=stored.feedback.helpful, not_helpful=stored.feedback.not_helpful, wrong=stored.feedback.wrong
        )
        if whole
        else None,
        graph=None if stored.graph is None else _graph_message(stored.graph),
    )


def _graph_message(graph: GraphReport) -> pb.GraphStatus:
    return pb.GraphStatus(
        state=pb.GraphState.ValueType(graph.state),
        reason=graph.reason,
        row_count=graph.rows,
        recall=graph.recall,
        time_share=graph.time_share,
    )


def watch_message(stored: Project, embedding: EmbeddingStatus) -> pb.WatchProjectResponse:
    """Progress of a project's embedding, as a message."""
    return pb.WatchProjectResponse(
        memory_count=stored.memory_count,
        pending_count=stored.pending_count,
        rate=embedding.rate,
        time_left=values.optional_duration(embedding.time_left_s(stored.pending_count)),
    )
