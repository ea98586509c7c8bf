"""Claims to work as rows: each service has a lease by the database's clock, and its claims last as long as the lease.

A thread renews the lease, one row per service. A claim is a row with its holder and a unique number, the fence. Each
write under a claim locks the claim's row in its own transaction (`Database.require_claim`): it happens before another
service takes over, or not at all.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event, Lock, Thread
from uuid import uuid4

import psycopg

from hummock.core.errors import HummockError
from hummock.ports.writes import Claim, Work
from hummock.store.postgresql.connections import PatientConnection
from hummock.store.postgresql.database import Database
from hummock.store.postgresql.schema import SchemaOutgrown
from hummock.store.tables import keys

_BEATS = 4  # Number of renewals per lease time.
_AGAIN_S = 0.5  # Seconds between two attempts to connect.

_REGISTER = b"INSERT INTO hummock.service (id, until) VALUES (%s, clock_timestamp() + make_interval(secs => %s))"
_RENEW = b"""
UPDATE hummock.service SET until = clock_timestamp() + make_interval(secs => %s)
WHERE id = %s AND until > clock_timestamp()
"""
_BURY = b"""
DELETE FROM hummock.service WHERE id IN (
  SELECT id FROM hummock.service WHERE until <= clock_timestamp() AND id <> %s FOR UPDATE SKIP LOCKED
)
"""
_SWEEP = b"""
DELETE FROM hummock.claim WHERE (work, project) IN (
  SELECT work, project FROM hummock.claim WHERE holder NOT IN (SELECT id FROM hummock.service) FOR UPDATE SKIP LOCKED
)
"""
_LEAVE = b"UPDATE hummock.service SET until = clock_timestamp() WHERE id = %s"
# SKIP LOCKED: a locked claim is in use by a write, or being taken by another service.
_TAKE = b"""
WITH me AS (SELECT id FROM hummock.service WHERE id = %(me)s AND until > clock_timestamp()),
free AS (
  SELECT fence FROM hummock.claim
  WHERE work = %(work)s AND project = %(project)s
    AND holder NOT IN (SELECT id FROM hummock.service WHERE id <> %(me)s AND until > clock_timestamp())
  FOR UPDATE SKIP LOCKED
),
taken_over AS (
  UPDATE hummock.claim SET fence = nextval('hummock.fence'), holder = me.id FROM me, free
  WHERE work = %(work)s AND project = %(project)s AND claim.fence = free.fence
  RETURNING claim.fence
),
made AS (
  INSERT INTO hummock.claim (work, project, fence, holder)
  SELECT %(work)s, %(project)s, nextval('hummock.fence'), me.id FROM me
  WHERE NOT EXISTS (SELECT FROM hummock.claim WHERE work = %(work)s AND project = %(project)s)
  ON CONFLICT DO NOTHING
  RETURNING fence
)
SELECT fence FROM taken_over UNION ALL SELECT fence FROM made
"""
_RELEASE = b"DELETE FROM hummock.claim WHERE work = %s AND project = %s AND fence = %s"
_DISCARD = b"DELETE FROM hummock.claim WHERE holder = %s AND work = %s AND project = %s AND fence <> ALL(%s::bigint[])"

_log = logging.getLogger(__name__)


class LeasedClaims:
    """`ports.Claims` of all services that have a database open."""

    def __init__(self, database: Database, lease_s: float) -> None:
        """Begin a lease by the database's clock, and the thread that renews it. Raises: DatabaseUnreachable."""
        self._database = database
        self._lease_s = lease_s
        self._lock = Lock()
        self._followers: tuple[Callable[[], None], ...] = ()
        self._id, self._fences = "", frozenset[int]()
        # Work for which the database may have a claim of this service that the service does not know of.
        self._doubtful = frozenset[tuple[str, bytes]]()
        self._ending = Event()
        self._has_failed = False
        with database.by_itself() as connection:
            self._begin(connection)
        self._thread = Thread(target=self._run, name="hummock-lease", daemon=True)
        self._thread.start()

    def take(self, work: Work, project: str) -> Claim | None:
        me = self._id
        arguments = {"me": me, "work": work.value, "project": keys.project_name_key(project)}
        try:
            rows = self._database.ask(_TAKE, arguments)
        except (HummockError, psycopg.Error):
            self._doubt(work, project)
            raise
        if not rows:
            return None
        claim = Claim(work=work, project=project, fence=rows[0][0], holder=me)
        with self._lock:
            if me == self._id:
                self._fences |= {claim.fence}
        return claim

    def release(self, claim: Claim) -> None:
        """Release the claim; see `ports.Claims`. If the database does not answer, the next renewal does it."""
        with self._lock:
            self._fences -= {claim.fence}
        key = keys.project_name_key(claim.project)
        try:
            self._database.ask(_RELEASE, (claim.work.value, key, claim.fence))
        except (HummockError, psycopg.Error):
            self._doubt(claim.work, claim.project)

    def holds(self, claim: Claim) -> bool:
        return claim.fence in self._fences

    def follow(self, follower: Callable[[], None]) -> None:
        with self._lock:
            self._followers = (*self._followers, follower)

    def close(self) -> None:
        """End the lease. Others can take over unfinished work at once, as if this service had died."""
        self._ending.set()
        self._thread.join()
        try:
            self._database.ask(_LEAVE, (self._id,))
        except HummockError as error:
            _log.warning("the lease is left to run out: %s", error)

    def renew(self, connection: PatientConnection) -> None:
        """Renew the lease, or begin another if it has run out; notifies followers of services whose lease has."""
        if connection.execute(_RENEW, (self._lease_s, self._id)).rowcount == 0:
            _log.warning("the lease had run out; what this service was doing may be another's by now")
            self._begin(connection)
        for work, project in self._doubtful:
            connection.execute(_DISCARD, (self._id, work, project, list(self._fences)))
            with self._lock:
                self._doubtful -= {(work, project)}
        # Without followers this service takes over no work, and leaves dead services to others.
        if self._followers and connection.execute(_BURY, (self._id,)).rowcount:
            _log.warning("another service is gone; what it was doing is taken over")
            self._tell()
            connection.execute(_SWEEP)

    def _doubt(self, work: Work, project: str) -> None:
        with self._lock:
            self._doubtful |= {(work.value, keys.project_name_key(project))}

    def _begin(self, connection: PatientConnection) -> None:
        """Begin a lease with a new id; the claims of the previous one are void."""
        begun = uuid4().hex
        connection.execute(_REGISTER, (begun, self._lease_s))
        with self._lock:
            self._id, self._fences = begun, frozenset()

    def _tell(self) -> None:
        for follower in self._followers:
            follower()

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                self._keep()
            except SchemaOutgrown as error:
                _log.critical("%s", error)
                return
            except (HummockError, psycopg.Error) as error:
                if not self._has_failed:
                    _log.warning("the lease is not renewed for the moment: %s", error)
                self._has_failed = True
                self._ending.wait(_AGAIN_S)

    def _keep(self) -> None:
        with self._database.by_itself() as connection:
            while self._has_failed or not self._ending.wait(self._lease_s / _BEATS):
                self._database.require_form(connection)
                self.renew(connection)
                if self._has_failed:
                    # A death found when the connection broke is reported to no other service.
                    self._has_failed = False
                    self._tell()
