"""What the servicers call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from hummock.core.explain import Explained, ExplainQuery
from hummock.core.later import Later
from hummock.core.learning import LoggedEvent
from hummock.core.learning_requests import (
    FeedbackCommand,
    FeedbackNoted,
    LearningCommand,
    LearningPage,
    LearningUpdated,
    ObserveCommand,
    Replayed,
    ScanProgress,
    ScanScope,
    SettingsChanges,
)
from hummock.core.memory import Changes, Deleted, EventPage, Filter, LearnCommand, Learned, Memory, Origin, Updated
from hummock.core.project import Project, ServiceStatus
from hummock.core.recall import Recalled, RecallQuery, Searched, SearchQuery
from hummock.core.render import Rendered, RenderQuery
from hummock.core.session import LearnedTurn, LearnTurnCommand, Session
from hummock.core.settings import ProjectSettings, SettingsShown
from hummock.core.transfer import Given, GivenMessage, Imported, KeptPage
from hummock.memories.sessions import Sessions
from hummock.ports.store import Page


class Recall(Protocol):
    """The memories that bear on a query."""

    def __call__(self, query: RecallQuery) -> Recalled:
        """The best memories of each group of the query's preset, and why."""

    def at_once(self, query: RecallQuery) -> Recalled | None:
        """The same where it takes a moment and waits for nothing, so that an event loop can do it; None elsewhere."""


class Garden(Protocol):
    """Memories one by one."""

    def get(self, project: str, ids: Sequence[str], min_seq: int, *, full: bool) -> list[Memory | None]:
        """The memories with these ids, in order; None where there is none."""

    def page(
        self,
        project: str,
        where: Filter,
        after: int,
        limit: int,
        *,
        full: bool,
        newest_first: bool = False,
        contains: str = "",
    ) -> Page:
        """At most `limit` memories behind position `after` that pass the filter and hold the string."""

    def seq(self, project: str) -> int:
        """Writes that the project has accepted."""

    def events(self, project: str, after: int, where: Filter, *, full: bool) -> EventPage:
        """What happened behind the write `after`."""

    def update(self, project: str, request_id: str, memory_id: str, changes: Changes, fingerprint: bytes) -> Updated:
        """Changes one memory."""

    def delete(self, project: str, request_id: str, ids: Sequence[str], fingerprint: bytes) -> Deleted:
        """Removes memories."""


class Projects(Protocol):
    """What is kept apart."""

    def get(self, name: str) -> Project:
        """One project. Raises: ProjectNotFound."""

    def page(self, after: str, limit: int) -> list[Project]:
        """At most `limit` projects behind the name `after`."""

    def update(
        self,
        name: str,
        request_id: str,
        tech_stack: tuple[str, ...] | None,
        path: str | None,
        origin: Origin,
        fingerprint: bytes,
    ) -> Project:
        """Changes what is not None and may be changed by this origin; creates the project."""


class Settings(Protocol):
    """What projects say where their requests say nothing."""

    def get(self, project: str) -> SettingsShown:
        """What applies to a project. Raises: ProjectNotFound."""

    def change(
        self, project: str, request_id: str, values: ProjectSettings, paths: Collection[str], fingerprint: bytes
    ) -> SettingsShown:
        """Gives the named settings these values; creates the project."""


class Export(Protocol):
    """Gives out projects."""

    def __call__(self, project: Project, *, with_vectors: bool) -> Iterator[KeptPage]:
        """The memories of a project, page by page."""

    def conversations(self, project: str) -> Iterator[Session | GivenMessage]:
        """The sessions of a project, each before its messages."""


class Learning(Protocol):
    """How projects learn."""

    def page(self, project: str, scope: str, turn: int | None, after: int, limit: int) -> LearningPage:
        """At most `limit` entries behind position `after`, as the scope's turn would inject them."""

    def whole(self, project: str, scope: str) -> LearningPage:
        """All entries, as the turn behind the scope's newest would inject them."""

    def version(self, project: str) -> tuple[int, int] | None:
        """Of all that `whole` shows; None where it may be another one in a moment."""

    def events(self, project: str, after: int, limit: int) -> Sequence[LoggedEvent]:
        """At most `limit` events behind the one of number `after`, oldest first."""

    def event_count(self, project: str) -> int:
        """Events in the log."""

    def update(self, command: LearningCommand) -> LearningUpdated:
        """Changes all of it or nothing."""

    def replay(self, project: str, fork: SettingsChanges | None) -> Replayed:
        """Folds the log again, and compares."""


class RunningScan(Protocol):
    """Entries that are read for keywords, beside the calls."""

    def since(self, read: int) -> ScanProgress:
        """How far it is; `read` entries of it are known."""


BeginScan = Callable[[str, ScanScope, Sequence[str]], RunningScan]


@dataclass(frozen=True, slots=True, kw_only=True)
class UseCases:
    """One of each. All are synchronous and safe to call from several threads."""

    recall: Recall
    render: Callable[[RenderQuery], Rendered]
    render_turn: Callable[[RenderQuery], Callable[[], Rendered]]
    """Renders a query with a commit; what is returned counts it, and waits for the disk."""
    learn: Callable[[LearnCommand], Later[Learned]]
    """The result is there when all is durable."""
    learn_turn: Callable[[LearnTurnCommand], LearnedTurn]
    search: Callable[[SearchQuery], Searched]
    explain: Callable[[ExplainQuery], Explained]
    feedback: Callable[[FeedbackCommand], FeedbackNoted]
    garden: Garden
    projects: Projects
    export: Export
    import_parts: Callable[[str, Sequence[Given]], Imported]
    sessions: Sessions
    settings: Settings
    learning: Learning
    observe: Callable[[ObserveCommand], int]
    scan: BeginScan
    """Begins to read entries of a project, or joins what reads them already; the ids are those of chosen ones."""
    status: Callable[[], ServiceStatus]
    follow: Callable[[Callable[[str, int], None]], None]
    """Has a function told of every write, as `ports.Store` says, and of every step of a scan."""
