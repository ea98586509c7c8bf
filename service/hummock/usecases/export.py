"""Export: all of a project, page by page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from hummock.core.errors import SessionNotFound, Unavailable
from hummock.core.project import Project
from hummock.core.session import Session
from hummock.core.transfer import GivenMessage, KeptPage
from hummock.ports import Store

_MESSAGE_BYTES = 1024 * 1024


class Export:
    """Gives out projects. Safe to call from several threads."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __call__(self, project: Project, *, with_vectors: bool) -> Iterator[KeptPage]:
        """The memories of a project in the order of their writes, then the ids of those removed meanwhile.

        Pages are read one by one, so that nothing is held while the reader is slow. What is written meanwhile comes
        behind what was there, and of what came twice the later one counts: all pages together are the project as it is
        when the last one is read.

        Raises: Unavailable when more was written between two pages than is kept.
        """
        after, seq = 0, project.seq
        gone: dict[str, None] = {}
        while True:
            page = self._store.kept(project.name, after, seq, with_vectors=with_vectors)
            if page.is_reset:
                raise Unavailable(f"project {project.name} changes faster than it is read; export it again")
            gone.update(dict.fromkeys(page.removed_ids))
            for kept in page.memories:
                gone.pop(kept.memory.id, None)
            is_last = page.next_after is None
            yield KeptPage(
                memories=page.memories,
                removed_ids=tuple(gone) if is_last else (),
                next_after=page.next_after,
                seq=page.seq,
            )
            if page.next_after is None:
                return
            after, seq = page.next_after, page.seq

    def conversations(self, project: str) -> Iterator[Session | GivenMessage]:
        """The sessions that a project has when this begins, each before its messages.

        Archived ones come first, and what moved last at the end.
        """
        for session in self._store.sessions.all(project):
            yield session
            yield from self._messages(project, session)

    def _messages(self, project: str, session: Session) -> Iterator[GivenMessage]:
        position = 0
        # One that is removed meanwhile ends there.
        with suppress(SessionNotFound):
            while messages := self._store.sessions.behind(
                project, session.id, position, _MESSAGE_BYTES, session.number
            ):
                yield from (GivenMessage(session_id=session.id, message=message) for message in messages)
                position = messages[-1].position
