"""Re-embedding: memories get the vectors of another model in the background, for a later start to switch to."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from hummock.core.embedding import EmbeddingSpace
from hummock.core.errors import places_of
from hummock.core.threads import give_way
from hummock.memories.preparation import chunks_of
from hummock.ports.models import Embedder
from hummock.ports.store import Embedded, SpaceBeside, Store
from hummock.text.template import as_draft

_MEMORIES_A_WRITE = 32
_REST_S = 60.0
"""Seconds between the end of one pass and the next: what was stored meanwhile is embedded too."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Progress:
    """Memories with vectors in use, and how many of them have vectors of the space."""

    total: int = 0
    done: int = 0


class Reembedding:
    """Embeds all memories for another space, on a thread of its own that gives way.

    Progress is in the store: a later process goes on where this one ended. The model is in memory only while there is
    something to embed.
    """

    def __init__(
        self, store: Store, space: EmbeddingSpace, beside: SpaceBeside, open_embedder: Callable[[], Embedder]
    ) -> None:
        """`space` is that of `open_embedder`'s embedder, and of the vectors in `beside`."""
        self._store = store
        self._space = space
        self._beside = beside
        self._open = open_embedder
        self._after: dict[str, int] = {}
        self._progress: _Progress | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reembed", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """Stop after the running inference."""
        self._closed.set()
        if self._thread.ident is not None:
            self._thread.join()

    def advice(self) -> str:
        """How far it is, and what to do then, in words."""
        progress = self._progress
        if progress is None:
            return f"memories are about to be embedded anew with {self._space.model}"
        if progress.done < progress.total:
            return (
                f"{progress.done} of {progress.total} memories are embedded anew with {self._space.model}; "
                "once all are, the next start uses it"
            )
        return f"all memories are embedded anew with {self._space.model}; restart the service to use it"

    def _run(self) -> None:
        give_way()
        while not self._closed.is_set():
            try:
                self.embed_missing()
            except Exception as error:  # whatever the store or the model raises: tried again later
                _log.warning("memories could not be embedded anew: %s at %s", type(error).__name__, places_of(error))
                self._after, self._progress = {}, None
            self._closed.wait(_REST_S)

    def embed_missing(self) -> None:
        """Embed all memories that lack vectors of the space, on the caller's thread, until `close`."""
        missing = self._look()
        if not any(missing.values()):
            return
        with closing(self._open()) as embedder:
            for project, docs in missing.items():
                for start in range(0, len(docs), _MEMORIES_A_WRITE):
                    if self._closed.is_set():
                        return
                    self._embed(embedder, project, docs[start : start + _MEMORIES_A_WRITE])

    def _look(self) -> dict[str, Sequence[int]]:
        """Memories without vectors of the space, by project, behind those that were looked at before."""
        found: dict[str, Sequence[int]] = {}
        scanned, name = 0, ""
        while page := self._store.projects(name, 1000):
            for project in page:
                missing = self._beside.missing(project.name, self._after.get(project.name, 0))
                found[project.name], scanned = missing.docs, scanned + missing.scanned
                self._after[project.name] = missing.last
            name = page[-1].name
        lacking = sum(map(len, found.values()))
        before = self._progress or _Progress()
        self._progress = _Progress(total=before.total + scanned, done=before.done + scanned - lacking)
        return found

    def _embed(self, embedder: Embedder, project: str, docs: Sequence[int]) -> None:
        made: list[Embedded] = []
        for doc, memory in zip(docs, self._store.load(project, docs, full=True), strict=True):
            if memory is not None and not self._closed.is_set():
                try:
                    made.append((doc, tuple(embedder.embed_in_turn(chunks_of(embedder, as_draft(memory))))))
                except Exception as error:  # whatever the runtime raises: it waits for its vectors after the switch
                    _log.warning("a memory could not be embedded: %s at %s", type(error).__name__, places_of(error))
        self._beside.put(project, made)
        before = self._progress
        if before is not None and not self._closed.is_set():
            self._progress = replace(before, done=before.done + len(docs))
