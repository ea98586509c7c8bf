"""Files of saved graphs in `views/` in the data directory: of each project a head, and a body that hnswlib wrote.

The head begins with its own SHA-256; it names the body by the body's, and the vector rows by a digest of their signs. A
graph whose files or rows differ in a byte is not read, and is built again: it only makes searches faster.
"""

from __future__ import annotations

import logging
import os
import stat
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import BinaryIO

import lmdb
import msgspec
import numpy as np

from hummock.core.errors import HummockError
from hummock.store.limits import MIB
from hummock.store.lmdb.environment import Environment, sync_folder
from hummock.store.lmdb.saved_views import SavedFiles, created
from hummock.store.tables import keys
from hummock.store.views.row_graph import Floats, HeldGraph, Projection, RowGraph
from hummock.store.views.view import ProjectView
from hummock_kernels.signbit import BLOCK_ROWS

_FORMAT = 1
"""Increased with every change of a graph's content; each version of hnswlib reads only its own files anyway."""

_DIGEST_BYTES = 32
_DIGITS = 16
_MOST_HEAD_BYTES = 64 * MIB
_PIECE_BYTES = MIB

_log = logging.getLogger(__name__)


class SavedGraph(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """The head of a saved graph; `projection` as in `Projection`, float32, and the rest as in `HeldGraph`."""

    made_by: str  # Format and versions that wrote it; others do not read it.
    space: int  # The number of the embedding space of its rows.
    number: int  # The project's number.
    rows: int  # Number of rows in the graph, the first of the view.
    content: bytes  # Digest of these rows.
    body_bytes: int
    body: bytes  # SHA-256 of the body.
    dim: int
    projection: tuple[bytes, bytes, bytes]
    usual: float
    removed: int
    width: int
    recall: float
    time_share: float


_decode = msgspec.msgpack.Decoder(SavedGraph).decode
_encode = msgspec.msgpack.Encoder().encode


class SavedGraphFiles:
    """The `SavedGraphs` of a data directory. Used by one thread at a time."""

    def __init__(self, environment: Environment, *, is_writer: bool) -> None:
        """`is_writer`: whether this process may save; if so, files of removed projects are removed at once."""
        self._environment = environment
        self._is_writer = is_writer
        self._files = SavedFiles(environment, "graph")
        if is_writer:
            try:
                self._remove_strangers()
            except (OSError, lmdb.Error, HummockError) as error:
                _log.warning("files of graphs that are of no use could not be removed: %s", error)

    def graph(self, view: ProjectView) -> HeldGraph | None:
        try:
            saved = self._head(view.number)
            if saved is None or not self._is_of(saved, view):
                return None
            path = self._body(saved)
            if _digest_of(path, saved.body_bytes) != saved.body:
                _log.warning("the saved graph of project number %d is damaged; it is built again", view.number)
                return None
            return _held(saved, RowGraph.load(str(path), saved.rows, _projection(saved)), view)
        except FileNotFoundError:
            return None
        except (OSError, RuntimeError, ValueError) as error:
            _log.warning("the saved graph of project number %d cannot be read: %s", view.number, error)
            return None

    def save(self, view: ProjectView, held: HeldGraph) -> None:
        if not self._is_writer:
            return
        try:
            self._save(view, held)
        except (OSError, RuntimeError, HummockError) as error:
            _log.warning("the graph of project number %d could not be saved: %s", view.number, error)

    def _save(self, view: ProjectView, held: HeldGraph) -> None:
        if not self._files.may_save(view.number, 2 * held.graph.nbytes):
            return
        part = self._files.folder / f"{view.number}.graph.part"
        try:
            with created(part):
                pass  # hnswlib would write through a link
            held.graph.save(str(part))
            body_bytes = part.stat().st_size
            saved = _saved(view, held, self._environment.space_number, body_bytes, _digest_of(part, body_bytes))
            with part.open("rb") as file:
                os.fsync(file.fileno())
            part.replace(self._body(saved))
            head = _encode(saved)
            with created(part) as file:
                file.write(sha256(head).digest() + head)
            part.replace(self._files.folder / f"{view.number}.graph.head")
            sync_folder(self._files.folder)
        finally:
            part.unlink(missing_ok=True)
        self._files.remove(but={self._body(saved).name, f"{view.number}.graph.head"}, number=view.number)

    def _head(self, number: int) -> SavedGraph | None:
        with _opened(self._files.folder / f"{number}.graph.head") as file:
            content = file.read(_MOST_HEAD_BYTES)
        digest, head = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        if sha256(head).digest() != digest:
            _log.warning("the saved graph of project number %d is damaged; it is built again", number)
            return None
        try:
            saved = _decode(head)
        except msgspec.MsgspecError:  # another version wrote it
            return None
        is_ours = (saved.made_by, saved.space, saved.number) == (_made_by(), self._environment.space_number, number)
        return saved if is_ours else None

    def _is_of(self, saved: SavedGraph, view: ProjectView) -> bool:
        return saved.rows <= view.row_doc.size and _content_of(view, saved.rows) == saved.content

    def _body(self, saved: SavedGraph) -> Path:
        return self._files.folder / f"{saved.number}.graph-{saved.body.hex()[:_DIGITS]}"

    def _remove_strangers(self) -> None:
        projects = self._environment.tables.project
        with self._environment.reading() as txn:
            for path, number in self._files.numbered():
                if path.suffix == ".part" or txn.get(keys.project_number_key(number), db=projects) is None:
                    path.unlink(missing_ok=True)


def _opened(path: Path) -> BinaryIO:
    """Open a regular file for reading. O_NONBLOCK: a pipe would keep us waiting. Raises: OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path.name} is no regular file")
    return os.fdopen(descriptor, "rb")


def _digest_of(path: Path, size_bytes: int) -> bytes:
    """SHA-256 of a file of this size; empty for any other. Raises: OSError."""
    digest = sha256()
    with _opened(path) as file:
        if os.fstat(file.fileno()).st_size != size_bytes:
            return b""
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
    return digest.digest()


def _content_of(view: ProjectView, rows: int) -> bytes:
    """Digest of the first rows of a view: their signs, a sixteenth of their bytes, and the last ones themselves."""
    whole = rows // BLOCK_ROWS if view.signs is not None else 0
    digest = sha256()
    if view.signs is not None:
        digest.update(np.ascontiguousarray(view.signs.blocks[:whole]).data)
    digest.update(np.ascontiguousarray(view.vectors.values[whole * BLOCK_ROWS : rows]).data)
    return digest.digest()


def _made_by() -> str:
    return f"{_FORMAT} {version('hummock')} {version('hnswlib')}"


def _saved(view: ProjectView, held: HeldGraph, space: int, body_bytes: int, body: bytes) -> SavedGraph:
    projection = held.graph.projection
    return SavedGraph(
        made_by=_made_by(),
        space=space,
        number=view.number,
        rows=held.graph.size,
        content=_content_of(view, held.graph.size),
        body_bytes=body_bytes,
        body=body,
        dim=len(projection.outside),
        projection=(projection.rows.tobytes(), projection.questions.tobytes(), projection.outside.tobytes()),
        usual=projection.usual,
        removed=held.removed,
        width=held.width,
        recall=held.recall,
        time_share=held.time_share,
    )


def _projection(saved: SavedGraph) -> Projection:
    def matrix(content: bytes) -> Floats:
        return np.frombuffer(content, np.float32).reshape(saved.dim, -1)

    rows, questions, outside = saved.projection
    return Projection(
        rows=matrix(rows), questions=matrix(questions), outside=np.frombuffer(outside, np.float32), usual=saved.usual
    )


def _held(saved: SavedGraph, graph: RowGraph, view: ProjectView) -> HeldGraph:
    return HeldGraph(
        graph=graph,
        lineage=view.lineage,
        removed=saved.removed,
        width=saved.width,
        recall=saved.recall,
        time_share=saved.time_share,
    )
