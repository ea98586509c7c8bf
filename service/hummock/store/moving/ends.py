"""Source and target of a copy, each a data directory or a database: opening one to read and one to write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from hummock.core.embedding import Calibration, EmbeddingSpace
from hummock.ports.writes import Claims
from hummock.store.errors import CopiedOntoItself, NotADatabase, NothingToCopy, SpacesDiffer, WordsOutdated
from hummock.store.limits import DEFAULT_LIMITS, MAP_BYTES
from hummock.store.lmdb.environment import Environment, recorded_directory
from hummock.store.lmdb.opening import OnlyWriter
from hummock.store.moving.copying import Copied, CopyCallbacks, Copying
from hummock.store.tables.engine import TABLE_NAMES, Engine
from hummock.store.tables.lookups import active_space
from hummock.store.tables.record_codec import DirectoryRecord
from hummock.store.upkeep.moment import Moment, inspected
from hummock.store.write.reanalyse import REANALYSED_KEY, Say, reanalyse
from hummock.text.analyzer import ANALYZER_VERSION

_SCHEMES = ("postgresql://", "postgres://")
_CONNECTIONS = 2  # One connection to read or write, and a spare one.


def is_database(end: str) -> bool:
    """Whether an end is a PostgreSQL database rather than a data directory."""
    return end.startswith(_SCHEMES)


def copy_between(
    source: str,
    target: str,
    *,
    replaces: bool = False,
    told: CopyCallbacks | None = None,
    map_bytes: int = MAP_BYTES,
    say: Say = lambda line: None,
) -> Copied:
    """Copy one store into another, each a data directory or "postgresql://…"; see `Copying`.

    The target is created if missing; no service may use a directory meanwhile. `map_bytes` bounds a data file. `say`
    takes progress lines for people if opening takes long.

    Raises: StartError: nothing was copied. HummockError.
    """
    places = places_of(source, target)
    recorded = _recorded(source)
    if recorded is None:
        raise NothingToCopy(places[0])
    space = _space_of(recorded)
    target_record = _recorded(target)
    theirs = space if target_record is None else active_space(target_record)
    if space.id != theirs.id:
        raise SpacesDiffer((places[0], space.model, space.id), (places[1], theirs.model, theirs.id))
    with _read(source, space, map_bytes) as read:
        _require_current(read, recorded)
        with _written(target, space, map_bytes) as (written, claims):
            reanalyse(written, claims, say)
            return Copying(read, written, claims, replaces, told or CopyCallbacks()).run()


def places_of(source: str, target: str) -> tuple[str, str]:
    """Both ends for messages, without secrets. Raises: CopiedOntoItself, NotADatabase."""
    places = _place_of(source, "FROM"), _place_of(target, "TO")
    if places[0] == places[1]:
        raise CopiedOntoItself(places[0])
    return places


def _place_of(end: str, which: str) -> str:
    if not is_database(end):
        return str(Path(end).resolve())
    import psycopg

    from hummock.store.postgresql.connections import place_of

    try:
        return place_of(end)
    except psycopg.ProgrammingError:
        # Without its cause, whose message repeats a part of the string.
        raise NotADatabase(which) from None


def _recorded(end: str) -> DirectoryRecord | None:
    if not is_database(end):
        return recorded_directory(Path(end), is_in_use=True)
    from hummock.store.postgresql.opening import recorded_directory_of

    return recorded_directory_of(end)


def _space_of(recorded: DirectoryRecord) -> EmbeddingSpace:
    space = active_space(recorded)
    return EmbeddingSpace(
        id=space.id,
        model=space.model,
        dim=space.dim,
        token_dim=space.token_dim,
        max_tokens=0,
        scripts=frozenset(),
        calibration=Calibration(unrelated_latin=0.0, unrelated_han=0.0, near_twin_bar=1.0),
    )


def _require_current(engine: Engine, recorded: DirectoryRecord) -> None:
    with engine.answering() as txn:
        is_under_way = Moment.of(engine, txn).get("meta", REANALYSED_KEY) is not None
    if is_under_way or recorded.analyzer != ANALYZER_VERSION:
        raise WordsOutdated(engine.place)


@contextmanager
def _read(end: str, space: EmbeddingSpace, map_bytes: int) -> Iterator[Engine]:
    if is_database(end):
        from hummock.store.postgresql.database import Database

        with closing(Database(end, space, _CONNECTIONS)) as database:
            yield database
        return
    with inspected(Path(end)) as snapshot:
        if len(snapshot.tables) < len(TABLE_NAMES):
            raise WordsOutdated(str(Path(end).resolve()))
    with closing(Environment(Path(end).resolve(), space, map_bytes, is_read_only=True)) as environment:
        yield environment


@contextmanager
def _written(end: str, space: EmbeddingSpace, map_bytes: int) -> Iterator[tuple[Engine, Claims]]:
    """Open a store for writing, locked against other copies, with claims to work in it."""
    if is_database(end):
        from hummock.store.postgresql.claims import LeasedClaims
        from hummock.store.postgresql.database import Database

        with (
            closing(Database(end, space, _CONNECTIONS)) as database,
            database.copied_into(),
            closing(LeasedClaims(database, DEFAULT_LIMITS.lease_s)) as claims,
        ):
            yield database, claims
        return
    with closing(Environment(Path(end).resolve(), space, map_bytes)) as environment:
        yield environment, OnlyWriter()
