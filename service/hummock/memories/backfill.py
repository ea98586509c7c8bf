"""Backfill: memories that were stored without vectors get theirs while the processor has nothing better to do."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from msgspec.structs import replace

from hummock.core.embedding import DIGEST_BYTES, Embedding
from hummock.core.errors import ProjectNotFound, places_of
from hummock.core.memory import Memory, Origin, WriteCommand
from hummock.core.project import EmbeddingStatus
from hummock.core.threads import give_way
from hummock.memories.preparation import chunks_of
from hummock.memories.sessions import NoReply, written
from hummock.ports.models import Clock, Embedder
from hummock.ports.store import Store
from hummock.ports.writes import Claim, ClaimLost, UnitOfWork, Work
from hummock.text.template import as_draft

_MEMORIES_A_WRITE = 8
"""Memories that a worker embeds for one write. Each write costs a sync, and preferred memories wait for it."""

_WANTED = 256
"""Memories of a project that recalls found by words and that are embedded first; beyond this number, the least recently
found lose their priority."""

_RATE_OVER_S = 30.0
_REST_S = 5.0
"""Seconds that a worker rests when the store refuses to write."""

_HELD_S = 1.0
"""Between two looks at a project where another service makes vectors."""

_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Waiting:
    """A project that may have memories without vectors, by document number.

    Attributes:
        wanted: Memories to embed first, the most recently requested last.
        taken: Memories that a worker is embedding.
        failed: Memories that the model failed on.
        claim: The claim to the project, while any worker embeds in it.
        held_until_s: Time before which the claim of another service is not checked again.
    """

    wanted: OrderedDict[int, None] = field(default_factory=OrderedDict)
    taken: set[int] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)
    claim: Claim | None = None
    held_until_s: float = 0.0


class Backfill:
    """Embeds memories without vectors, on threads of its own. Safe to call from several threads.

    The queue is in the store, written with the memories themselves; this object only holds priorities. A memory that
    changes meanwhile stays queued for its new text. Of several services with one store, one at a time embeds in a
    project; the others watch until the memories they have taken have vectors.
    """

    def __init__(self, store: Store, embedder: Embedder, clock: Clock, workers: int) -> None:
        self._store = store
        self._embedder = embedder
        self._clock = clock
        self._condition = threading.Condition()
        self._projects: OrderedDict[str, _Waiting] = OrderedDict()
        self._failed: dict[str, set[int]] = {}
        self._done: deque[tuple[float, int]] = deque()
        self._embedded = self._reused = 0
        self._failure = ""
        self._moves = 0
        self._must_look = False
        self._is_closed = False
        self._threads = [
            threading.Thread(target=self._run, name=f"backfill-{number}", daemon=True) for number in range(workers)
        ]

    def start(self) -> None:
        """Start the threads; they also take over the work of an earlier process, and of another one that dies."""
        self._store.claims.follow(self.look_everywhere)
        self._look()
        for thread in self._threads:
            thread.start()

    def look_everywhere(self) -> None:
        """Look for memories of any project that wait without this process knowing."""
        with self._condition:
            self._must_look = True
            self._move()

    def wake(self, project: str) -> None:
        """A project may have memories without vectors."""
        with self._condition:
            if project not in self._projects:
                self._projects[project] = _Waiting(failed=self._failed.get(project, set()))
            self._move()

    def forget(self, project: str) -> None:
        """Drop the state of a deleted project."""
        with self._condition:
            self._projects.pop(project, None)
            self._failed.pop(project, None)

    def want(self, project: str, docs: Sequence[int]) -> None:
        """Somebody asks about these memories: they go first."""
        with self._condition:
            waiting = self._projects.get(project)
            if waiting is None:
                return
            for doc in docs:
                waiting.wanted.pop(doc, None)
                waiting.wanted[doc] = None
            while len(waiting.wanted) > _WANTED:
                waiting.wanted.popitem(last=False)

    def status(self) -> EmbeddingStatus:
        """Progress of the embedding."""
        pending = self._store.status().pending_count
        with self._condition:
            failed = sum(map(len, self._failed.values()))
            return EmbeddingStatus(
                pending=pending,
                rate=self._rate() if pending else 0.0,
                failed=min(failed, pending),  # one that failed may have been removed since
                embedded=self._embedded,
                reused=self._reused,
            )

    def close(self) -> None:
        """Stop after the running inferences; unfinished memories are embedded by the next process."""
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def _move(self) -> None:
        self._moves += 1
        self._condition.notify_all()

    def _rate(self) -> float:
        now = self._clock.monotonic()
        while self._done and self._done[0][0] < now - _RATE_OVER_S:
            self._done.popleft()
        if not self._done:
            return 0.0
        return sum(count for _, count in self._done) / max(now - self._done[0][0], 1.0)

    def embed_some(self) -> bool:
        """Embed a few memories of one project on the caller's thread; False if no untaken memory is queued."""
        if self._must_look:
            self._must_look = False
            self._look()
        found = self._take()
        if found is None:
            return False
        project, waiting, docs, claim = found
        try:
            self._embed(project, waiting, docs, claim)
        except ClaimLost:
            _log.warning("vectors of memories came too late: another service makes them, or may by now")
            if waiting.claim is claim:
                waiting.claim = None
        finally:
            self._give_back(waiting, docs)
        return True

    def _run(self) -> None:
        give_way()
        while not self._is_closed:
            moves = self._moves
            try:
                if self.embed_some():
                    continue
            except Exception as error:
                self._tell(error)
                self._wait(self._moves, _REST_S)
            else:
                # What waits for others is looked at again.
                self._wait(moves, _HELD_S if self._is_held_elsewhere() else None)

    def _look(self) -> None:
        try:
            after = ""
            while self._store.status().pending_count and (page := self._store.projects(after, 1000)):
                for project in page:
                    if project.pending_count:
                        self.wake(project.name)
                after = page[-1].name
        except BaseException:
            self._must_look = True
            raise

    def _tell(self, error: Exception) -> None:
        """Log that the store refuses writes: once, until the error changes or writes work again."""
        failure = f"{type(error).__name__} at {places_of(error)}"
        if failure != self._failure and not self._is_closed:
            _log.warning("vectors could not be stored; trying again every %.0f s: %s", _REST_S, failure)
        self._failure = failure

    def _wait(self, moves: int, most_s: float | None = None) -> None:
        """Returns when something has happened since that many moves, or at the end."""
        with self._condition:
            self._condition.wait_for(lambda: self._is_closed or self._moves != moves, most_s)

    def _take(self) -> tuple[str, _Waiting, list[int], Claim] | None:
        """A project and some of its memories, which no other worker of any service has. Projects take turns."""
        with self._condition:
            for project in list(self._projects):
                waiting = self._projects[project]
                claim = self._claim(project, waiting)
                if claim is None:
                    continue
                if docs := self._some(project, waiting):
                    self._projects.move_to_end(project)
                    waiting.taken.update(docs)
                    return project, waiting, docs, claim
                if not waiting.taken:
                    del self._projects[project]
                    self._release(waiting)
        return None

    def _claim(self, project: str, waiting: _Waiting) -> Claim | None:
        """This service's claim to make vectors in a project; None while it is another's."""
        if waiting.claim is not None and not self._store.claims.holds(waiting.claim):
            waiting.claim = None
        if waiting.claim is None and waiting.held_until_s <= self._clock.monotonic():
            waiting.claim = self._store.claims.take(Work.EMBED, project)
            if waiting.claim is None:
                waiting.held_until_s = self._clock.monotonic() + _HELD_S
        return waiting.claim

    def _is_held_elsewhere(self) -> bool:
        """Whether another service is embedding in a project with memories that this service accepted."""
        with self._condition:
            return any(waiting.claim is None for waiting in self._projects.values())

    def _give_back(self, waiting: _Waiting, docs: Sequence[int]) -> None:
        with self._condition:
            waiting.taken.difference_update(docs)
            self._move()
            if not waiting.taken:
                self._release(waiting)

    def _release(self, waiting: _Waiting) -> None:
        claim, waiting.claim = waiting.claim, None
        if claim is not None:
            self._store.claims.release(claim)

    def _some(self, project: str, waiting: _Waiting) -> list[int]:
        """Return untaken memories: the most recently requested first, then the oldest."""
        taken = waiting.taken | waiting.failed
        wanted = [doc for doc in reversed(waiting.wanted) if doc not in taken][:_MEMORIES_A_WRITE]
        for doc in wanted:
            del waiting.wanted[doc]
        if wanted:
            return wanted
        pending = self._store.pending(project, _MEMORIES_A_WRITE + len(taken))
        return [doc for doc in pending if doc not in taken][:_MEMORIES_A_WRITE]

    def _embed(self, project: str, waiting: _Waiting, docs: Sequence[int], claim: Claim) -> None:
        made: list[tuple[Memory, tuple[Embedding, ...]]] = []
        for doc, memory in zip(docs, self._store.load(project, docs, full=True), strict=True):
            # One that was changed since is another document; one that was wanted may have its vectors.
            if memory is None or memory.chunk_count:
                continue
            try:
                embeddings = self._vectors(memory)
            except Exception as error:  # whatever the runtime raises: the others go on
                if self._is_closed:
                    return
                _log.warning("a memory could not be embedded: %s at %s", type(error).__name__, places_of(error))
                with self._condition:
                    waiting.failed.add(doc)
                    self._failed[project] = waiting.failed
                continue
            if embeddings is None:
                break
            made.append((memory, embeddings))
        if made:
            self._write(project, made, claim)

    def _vectors(self, memory: Memory) -> tuple[Embedding, ...] | None:
        """The vectors of a memory; None when the service stops meanwhile."""
        texts = chunks_of(self._embedder, as_draft(memory))
        # Indexed text recurs: under another path, on another branch, in another project.
        digests = _digests(self._embedder.space.id, texts) if memory.origin is Origin.INDEXER else [b""] * len(texts)
        if digests[0]:
            known = [one for one in self._store.vectors(digests) if one is not None]
            if len(known) == len(texts):
                with self._condition:
                    self._reused += 1
                return tuple(known)
        made: list[Embedding] = []
        for embedding, digest in zip(self._embedder.embed_in_turn(texts), digests, strict=True):
            made.append(replace(embedding, digest=digest))
            if self._is_closed:
                return None
        with self._condition:
            self._embedded += 1
        return tuple(made)

    def _write(self, project: str, made: Sequence[tuple[Memory, tuple[Embedding, ...]]], claim: Claim) -> None:
        def apply(work: UnitOfWork) -> NoReply:
            for memory, embeddings in made:
                work.embed(memory.id, memory.fingerprint, embeddings)
            return NoReply()

        try:
            written(self._store, WriteCommand(project=project), NoReply, apply, is_bulk=True, claim=claim)
        except ProjectNotFound:  # it was deleted meanwhile
            return
        with self._condition:
            self._done.append((self._clock.monotonic(), len(made)))
            self._failure = ""


def _digests(space_id: str, texts: Sequence[str]) -> list[bytes]:
    """Hash all inputs of each chunk's vectors: the chunk and the memory's first one, which a model may read with it."""
    begun = blake2b(f"{space_id}\0{texts[0]}\0".encode(), digest_size=DIGEST_BYTES)
    digests = []
    for text in texts:
        own = begun.copy()
        own.update(text.encode())
        digests.append(own.digest())
    return digests
