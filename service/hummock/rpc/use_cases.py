"""The functions that servicers call, made by wiring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hummock.core.activity import ProcessLoad
from hummock.core.learning_requests import ScanScope
from hummock.core.project import EmbeddingStatus
from hummock.learning.background import Scan
from hummock.learning.observe import Feedback, Observe
from hummock.learning.state import Learning
from hummock.memories.forget import Forget
from hummock.memories.garden import Garden, Review
from hummock.memories.learn import Learn
from hummock.memories.learn_turn import LearnTurn
from hummock.memories.messages import Messages
from hummock.memories.sessions import Sessions
from hummock.projects.projects import Projects, Settings, Status
from hummock.projects.transfer import Export, Import
from hummock.recall.cache import CachedRecall
from hummock.recall.explain import Explain
from hummock.render.pipeline import Render
from hummock.render.search import Search
from hummock.rpc.stale import FromMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class UseCases:
    """One of each use case. All are synchronous and safe to call from several threads."""

    recall: CachedRecall
    render: Render
    learn: Learn
    learn_turn: LearnTurn
    search: Search
    from_memory: FromMemory | None
    """Recalls, renderings and searches while the store cannot be reached; None where it always can."""
    explain: Explain
    feedback: Feedback
    garden: Garden
    forget: Forget
    review: Review
    projects: Projects
    settings: Settings
    export: Export
    import_parts: Import
    sessions: Sessions
    messages: Messages
    learning: Learning
    observe: Observe
    scan: Callable[[str, ScanScope, Sequence[str]], Scan]
    """Begins to read entries of a project, or joins what reads them already; the ids are those of chosen ones."""
    status: Status
    embedding_status: Callable[[], EmbeddingStatus]
    """Progress of the embedding of memories without vectors."""
    follow: Callable[[Callable[[str, int], None]], None]
    """Registers a callback for every write, as in `ports.Store`, and for every step of a scan."""
    load: Callable[[], ProcessLoad]
    """Load of this process, without its calls."""
    trouble: Callable[[], str]
    """Why the service is unhealthy, for people; empty while it is not. Returns at once."""
