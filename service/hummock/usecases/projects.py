"""Projects: what is known of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hummock.core.errors import ProjectNotFound
from hummock.core.memory import Origin
from hummock.core.project import Project
from hummock.ports import Store, UnitOfWork, WriteRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateReply:
    """What is kept of an update for repeats of its request_id: only that it happened."""


class Projects:
    """Reads and changes projects' information. Safe to call from several threads."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, name: str) -> Project:
        """A project. Raises: ProjectNotFound."""
        project = self._store.project(name)
        if project is None:
            raise ProjectNotFound(name)
        return replace(project, feedback=self._store.read_learning(name, lambda learning: learning.state().feedback))

    def page(self, after: str, limit: int) -> list[Project]:
        """At most `limit` projects whose names come behind `after`."""
        return self._store.projects(after, limit)

    def update(
        self,
        name: str,
        request_id: str,
        tech_stack: tuple[str, ...] | None,
        path: str | None,
        origin: Origin,
        fingerprint: bytes,
    ) -> Project:
        """Change what is not None, as `ProjectInfo.said` does; the project is created when it does not exist."""

        def apply(work: UnitOfWork) -> UpdateReply:
            work.set_info(work.info().said(origin, tech_stack=tech_stack, path=path))
            return UpdateReply()

        request = WriteRequest(request_id=request_id, fingerprint=fingerprint, reply_type=UpdateReply, apply=apply)
        self._store.write(name, request).result()
        return self.get(name)
