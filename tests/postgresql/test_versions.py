"""Services of two versions over one database: what the newer one adds leaves the older one at work, and what does not
is told to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg
import pytest

from hummock.core.errors import Unavailable
from hummock.store.lmdb.opening import OnlyWriter
from hummock.store.postgresql import schema
from hummock.store.postgresql.database import Database
from hummock.store.postgresql.freshness import FreshProjects, SeenViews
from hummock.store.postgresql.opening import SharedStore
from hummock.store.postgresql.room import DatabaseRoom
from hummock.store.postgresql.schema import MIGRATIONS, Migration, SchemaNewer, bring_up, form_of
from hummock.store.settled_clock import SettledClock
from hummock.store.tables.recent import RecentReads
from hummock.store.write.writer import start_writer
from tests.fakes import FakeClock
from tests.ports.asking import ask, ids, put
from tests.postgresql.leases import renew
from tests.store.opening import EAGER, MIB, opened_shared
from tests.strategies import SPACE, Entry
from tests.workplace import over

pytestmark = pytest.mark.long


@contextmanager
def of_the_first_form(dsn: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[SharedStore]:
    """A store of the previous version: it knows the first form alone, and claims nothing."""
    clock = SettledClock(FakeClock())
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", MIGRATIONS[:1])
        database = Database(dsn, SPACE, 6)
    recent, claims = RecentReads(EAGER.recent_memory_bytes, EAGER.recent_token_bytes), OnlyWriter()
    projects = FreshProjects(database, clock.now, recent)
    views = SeenViews(projects, 64 * MIB, EAGER, recent, clock.monotonic)
    room = DatabaseRoom(database, 1024 * MIB, clock)
    writer = start_writer(database, claims, room, views, clock, EAGER, room.look)
    with closing(
        SharedStore(database, projects, views, recent, writer, EAGER.request_kept_s, room, claims, clock)
    ) as store:
        yield store


def test_the_version_before_goes_on_over_tables_that_were_brought_up_under_it(
    bare_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with of_the_first_form(bare_database, monkeypatch) as before:
        put(before, "p", Entry(id="old-1"))
        assert forms(bare_database) == 1
        with opened_shared(bare_database) as now:
            assert forms(bare_database) == len(MIGRATIONS)
            written = {"old-1"}
            for number in range(2, 12):
                for store, version in ((before, "old"), (now, "new")):
                    put(store, "p", Entry(id=f"{version}-{number}", words=("tide", f"{version}{number}")))
                    put(store, f"of-{version}", Entry(id="own"))
                    written.add(f"{version}-{number}")
                    assert ids(ask(before, "p", terms=("tide",))) == written
                    assert ids(ask(now, "p", terms=("tide",))) == written
        assert ids(ask(before, "of-new", terms=("tide",))) == {"own"}
    with opened_shared(bare_database) as now:
        assert ids(ask(now, "p", terms=("tide",))) == written


def forms(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        return form_of(connection)


def bring_further(dsn: str, monkeypatch: pytest.MonkeyPatch, needs: int) -> None:
    """Migrates the database as a newer version would."""
    further = Migration(script="CREATE TABLE hummock.later (key bytea PRIMARY KEY)", needs=needs)
    with monkeypatch.context() as patch, psycopg.connect(dsn, autocommit=True) as connection:
        patch.setattr(schema, "MIGRATIONS", (*MIGRATIONS, further))
        bring_up(connection, "here")
        assert form_of(connection) == len(MIGRATIONS) + 1


def test_a_version_may_be_started_over_tables_to_which_a_newer_one_has_only_added(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened_shared(database) as running:
        bring_further(database, monkeypatch, needs=len(MIGRATIONS))
        renew(over(running, FakeClock()))
        put(running, "p", Entry(id="a"))
        with opened_shared(database) as started:
            put(started, "p", Entry(id="b"))
            assert ids(ask(running, "p", terms=("tide",))) == ids(ask(started, "p", terms=("tide",))) == {"a", "b"}


def test_a_version_that_a_newer_one_has_left_behind_says_so_and_does_nothing(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened_shared(database) as running:
        put(running, "p", Entry(id="a"))
        bring_further(database, monkeypatch, needs=len(MIGRATIONS) + 1)
        with running._engine.by_itself() as connection, pytest.raises(Unavailable) as outgrown:  # type: ignore[attr-defined]
            running._engine.require_form(connection)  # type: ignore[attr-defined] # it is PostgreSQL's
        assert outgrown.value.reason == "SCHEMA_TOO_NEW"
        for call in (lambda: put(running, "p", Entry(id="b")), lambda: ask(running, "p", terms=("tide",))):
            with pytest.raises(Unavailable, match="start the version that the others have"):
                call()
        assert "start the version that the others have" in running.trouble()
    with pytest.raises(SchemaNewer, match=f"form {len(MIGRATIONS) + 1}"), opened_shared(database):
        pass
