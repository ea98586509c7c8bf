"""Hummock's tables in PostgreSQL: creation, migrations and row-level security.

All are in the schema `hummock`. Each table has a project's number, a key and a value; the key is the same in any engine
(`tables/keys.py`), and the project is a column before it so that rows can be isolated, and sharded, by project. Rows
of no project have the number 0.

Rows are isolated twice: every statement names its project, and row-level security lets a transaction see and write
only the projects that it has entered (`hummock.enter…`). The service's role owns nothing and cannot bypass that; it
applies to owners too.
"""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
from psycopg import sql

from hummock.core.errors import StartError, Unavailable
from hummock.store.tables.engine import TABLE_NAMES

SERVICE_ROLE = "hummock_service"
SHARED_TABLES = frozenset({"meta", "project", "project_removed", "expiry", "by_digest", "retired", "retired_age"})
"""Tables with keys that do not begin with a project: the projects, expiry times, and vectors by text."""

_UNCOMPRESSED = ("vector", "token", "retired")  # Tables whose values do not compress.
_TELLS_NEEDS = 2  # The first form whose table of migrations has the column `needs`; before, each form needed itself.
_MIGRATION_LOCK = 0x68756D6D  # Key of the lock held while the schema is changed.

_FUNCTIONS = """
CREATE FUNCTION hummock.scope() RETURNS int[] LANGUAGE sql STABLE AS $$
  SELECT coalesce(string_to_array(nullif(current_setting('hummock.scope', true), ''), ',')::int[], '{}')
$$;

CREATE FUNCTION hummock.number_of(value bytea) RETURNS int LANGUAGE sql IMMUTABLE AS $$
  SELECT ('x' || encode(value, 'hex'))::bit(32)::int
$$;

CREATE FUNCTION hummock.enter(name_key bytea) RETURNS TABLE (number bytea, record bytea) LANGUAGE plpgsql AS $$
DECLARE found bytea;
BEGIN
  SELECT value INTO found FROM hummock.project WHERE project = 0 AND key = name_key;
  PERFORM set_config('hummock.scope', coalesce(hummock.number_of(found)::text, ''), true);
  RETURN QUERY SELECT found, (SELECT value FROM hummock.project WHERE project = 0 AND key = 'p'::bytea || found);
END $$;

CREATE FUNCTION hummock.enter_to_write(name_keys bytea[])
RETURNS TABLE (name_key bytea, number bytea, record bytea) LANGUAGE plpgsql AS $$
DECLARE one bytea; found bytea; numbers text[] := '{}';
BEGIN
  FOREACH one IN ARRAY name_keys LOOP
    PERFORM pg_advisory_xact_lock(hashtextextended(encode(one, 'hex'), 0));
  END LOOP;
  FOREACH one IN ARRAY name_keys LOOP
    SELECT value INTO found FROM hummock.project WHERE project = 0 AND key = one;
    IF found IS NOT NULL THEN
      numbers := numbers || hummock.number_of(found)::text;
    END IF;
    RETURN QUERY SELECT one, found,
      (SELECT value FROM hummock.project WHERE project = 0 AND key = 'p'::bytea || found);
  END LOOP;
  PERFORM set_config('hummock.scope', array_to_string(numbers, ','), true);
END $$;

CREATE FUNCTION hummock.new_project() RETURNS int LANGUAGE plpgsql AS $$
DECLARE made int := nextval('hummock.project_number');
BEGIN
  PERFORM set_config('hummock.scope', array_to_string(hummock.scope() || made, ','), true);
  RETURN made;
END $$;
"""

_TABLE = """
CREATE TABLE hummock.{table} (
  project int NOT NULL, key bytea NOT NULL, value bytea NOT NULL, PRIMARY KEY (project, key)
);
ALTER TABLE hummock.{table} ENABLE ROW LEVEL SECURITY;
ALTER TABLE hummock.{table} FORCE ROW LEVEL SECURITY;
CREATE POLICY of_its_project ON hummock.{table}
  USING (project = 0 OR project = ANY ((SELECT hummock.scope())::int[]));
"""


def _first() -> str:
    tables = "".join(_TABLE.format(table=name) for name in TABLE_NAMES)
    storage = "".join(f"ALTER TABLE hummock.{name} ALTER COLUMN value SET STORAGE EXTERNAL;" for name in _UNCOMPRESSED)
    return f"CREATE SEQUENCE hummock.project_number AS int;{_FUNCTIONS}{tables}{storage}"


_CLAIMS = """
CREATE SEQUENCE hummock.fence AS bigint;
CREATE TABLE hummock.service (id text PRIMARY KEY, until timestamptz NOT NULL);
CREATE TABLE hummock.claim (
  work text NOT NULL, project bytea NOT NULL, fence bigint NOT NULL, holder text NOT NULL, PRIMARY KEY (work, project)
);
ALTER TABLE hummock.migration ADD COLUMN needs int;
"""

_TOKENS_IN_ROWS = "ALTER TABLE hummock.token SET (toast_tuple_target = 8160);"
"""Stores token vectors, some 2 KB each, in their rows: out of line, each of the dozens that a recall reads takes two
more look-ups. Vectors stored earlier stay where they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """Migration of the schema to the next form."""

    script: str  # SQL script, never changed.
    # Lowest form that a service must know to use the new one. It stays that of the previous migration as long as
    # migrations only add tables, columns with a default, or functions with new names.
    needs: int


MIGRATIONS = (
    Migration(script=_first(), needs=1),
    Migration(script=_CLAIMS, needs=1),
    Migration(script=_TOKENS_IN_ROWS, needs=1),
)

_GRANTS = f"""
GRANT USAGE ON SCHEMA hummock TO {SERVICE_ROLE};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA hummock TO {SERVICE_ROLE};
REVOKE INSERT, UPDATE, DELETE ON hummock.migration FROM {SERVICE_ROLE};
GRANT USAGE ON ALL SEQUENCES IN SCHEMA hummock TO {SERVICE_ROLE};
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA hummock TO {SERVICE_ROLE};
"""


class SchemaMissing(StartError):
    """The database has no Hummock tables, or those of an earlier form, and this role may not create them."""

    reason = "STORE_SCHEMA_MISSING"

    def __init__(self, place: str, why: str) -> None:
        super().__init__(
            f"{place} has not the tables that this version needs, and they cannot be made: {why.strip()}; start the "
            f"service once with a role that may create roles and a schema there, then GRANT {SERVICE_ROLE} to the "
            "role that it is to use"
        )


class SchemaNewer(StartError):
    """The tables are of a later form than this version can write."""

    reason = "SCHEMA_TOO_NEW"

    def __init__(self, place: str, form: int) -> None:
        super().__init__(
            f"{place} has tables of form {form}; this version knows forms up to {len(MIGRATIONS)}; start it with the "
            "version of Hummock that made them, or a newer one"
        )


class SchemaOutgrown(Unavailable):
    """The tables were migrated to a form that this version does not know, while it ran."""

    reason = "SCHEMA_TOO_NEW"

    def __init__(self, place: str, needed: int) -> None:
        super().__init__(
            f"{place} was brought to a form of tables that needs a version which knows form {needed}; this one knows "
            f"forms up to {len(MIGRATIONS)}: stop this service, and start the version that the others have"
        )
        self.place = place


class RoleTooStrong(StartError):
    """The service would use a role that bypasses row-level security."""

    reason = "STORE_ROLE_TOO_STRONG"

    def __init__(self, place: str, role: str) -> None:
        super().__init__(
            f"{place}: role {role} owns tables or bypasses row-level security; GRANT {SERVICE_ROLE} to the role that "
            "the service is to use"
        )


def bring_up(connection: psycopg.Connection, place: str) -> None:
    """Create the tables, or migrate them to this version's form. Raises: SchemaMissing, SchemaNewer.

    `connection` is in autocommit mode, with the role of the connection string.
    """
    try:
        form = form_of(connection)
        if form > len(MIGRATIONS) and needed_form_of(connection) > len(MIGRATIONS):
            raise SchemaNewer(place, form)
        if form >= len(MIGRATIONS):
            return
        with connection.transaction():
            # Only one of several services that start together migrates.
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATION_LOCK,))
            _bring_up(connection, form_of(connection))
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedObject) as error:
        raise SchemaMissing(place, str(error)) from error


def form_of(connection: psycopg.Connection) -> int:
    """Version of the schema; 0 without tables."""
    row = connection.execute("SELECT to_regclass('hummock.migration') IS NOT NULL").fetchone()
    if row is None or not row[0]:
        return 0
    found = connection.execute("SELECT max(form) FROM hummock.migration").fetchone()
    return int(found[0]) if found is not None and found[0] is not None else 0


def needed_form_of(connection: psycopg.Connection) -> int:
    """Version of the schema that a service must know to use the tables, as recorded in the database."""
    found = connection.execute("SELECT max(coalesce(needs, form)) FROM hummock.migration").fetchone()
    return int(found[0]) if found is not None and found[0] is not None else 0


def _bring_up(connection: psycopg.Connection, form: int) -> None:
    if form == 0:
        connection.execute("CREATE SCHEMA IF NOT EXISTS hummock")
        connection.execute(
            "CREATE TABLE hummock.migration (form int PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now())"
        )
        _make_role(connection)
    for number, migration in enumerate(MIGRATIONS[form:], start=form + 1):
        connection.execute(migration.script.encode())
        if number < _TELLS_NEEDS:
            connection.execute("INSERT INTO hummock.migration (form) VALUES (%s)", (number,))
        else:
            connection.execute("INSERT INTO hummock.migration (form, needs) VALUES (%s, %s)", (number, migration.needs))
    connection.execute(_GRANTS.encode())


def _make_role(connection: psycopg.Connection) -> None:
    """Create the service's role; roles are shared by the cluster, so it may exist for another database."""
    role = sql.Identifier(SERVICE_ROLE)
    known = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (SERVICE_ROLE,)).fetchone()
    if known is None:
        try:
            with connection.transaction():
                connection.execute(sql.SQL("CREATE ROLE {} NOLOGIN NOSUPERUSER NOBYPASSRLS").format(role))
        except (psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
            pass  # created for another database at the same moment
    row = connection.execute("SELECT pg_has_role(current_user, %s, 'SET')", (SERVICE_ROLE,)).fetchone()
    if row is None or not row[0]:
        connection.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(role))


def become_service(connection: psycopg.Connection, place: str) -> None:
    """Switch the connection to the service's role, which owns nothing. Raises: SchemaMissing, RoleTooStrong."""
    try:
        connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(SERVICE_ROLE)))
    except psycopg.errors.InsufficientPrivilege as error:
        raise SchemaMissing(place, str(error)) from error
    row = connection.execute(
        "SELECT rolsuper OR rolbypassrls OR EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n "
        "ON n.oid = c.relnamespace WHERE n.nspname = 'hummock' AND c.relowner = r.oid) "
        "FROM pg_roles r WHERE rolname = current_user"
    ).fetchone()
    if row is None or row[0]:
        raise RoleTooStrong(place, SERVICE_ROLE)
