"""One PostgreSQL of a cluster, with the Patroni that looks after it."""

from __future__ import annotations

import json
import signal
import subprocess
from base64 import b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Final

import psutil

from tests.postgresql.account import Account
from tests.postgresql.etcd import Certificate
from tests.postgresql.family import family, kill_all, signal_all
from tests.postgresql.interpreter import Python
from tests.postgresql.node import SUPERUSER

TTL_S: Final = 20
"""A leader that is not heard of for so long leads no more: Patroni's least."""
_LOOP_WAIT_S: Final = 2
_RETRY_TIMEOUT_S: Final = 9
"""The most that Patroni allows with the other two: loop_wait + 2 * retry_timeout <= ttl."""
_PRIMARY_START_S: Final = 20
"""A leader whose PostgreSQL has died and does not recover within this is succeeded."""
_REPLICATION_TIMEOUT: Final = "10s"
"""Commits wait for a synchronous replica that is frozen until it is given up."""
_ANSWER_S: Final = 2
_SWITCHOVER_S: Final = 30
_STOP_S: Final = 30
_REPLICATOR: Final = "replicator"


@dataclass(frozen=True, slots=True, kw_only=True)
class Passwords:
    """Made at random for one cluster.

    Attributes:
        service: Password of Hummock's role.
        api: For what changes something by Patroni's own API.
    """

    superuser: str
    replication: str
    service: str
    api: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """State of a member as Patroni reports it.

    Attributes:
        role: `leader`, `sync_standby` or `replica`.
        state: `running` of a leader, `streaming` of a replica that follows it; else what it is busy with.
    """

    name: str
    role: str
    state: str


@dataclass(slots=True, kw_only=True)
class Member:
    """A PostgreSQL and its Patroni.

    Attributes:
        directory: Holds the data, Patroni's settings and the log of both.
        port: PostgreSQL's, on loopback.
        api_port: Patroni's, on loopback.
        etcd_ports: Client ports of all three etcd.
        lock: The file descriptor of the directory's lock.
        patroni: None while it does not run.
    """

    account: Account
    python: Python
    programs: Path
    certificate: Certificate
    passwords: Passwords
    directory: Path
    name: str
    port: int
    api_port: int
    etcd_ports: Sequence[int]
    lock: int
    patroni: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        """Log file of Patroni and PostgreSQL."""
        return self.directory / "log"

    def start(self) -> None:
        """Starts Patroni, which starts PostgreSQL, unless it runs."""
        if self.patroni is not None:
            return
        self.account.own(self.directory)
        settings = self.directory / "patroni.yml"
        self.account.write(settings, json.dumps(self._settings(), indent=2))
        # Patroni puts the superuser's password into a temporary file; the caller's folder for such may be closed to it.
        environ = {**self.python.environ, "TMPDIR": str(self.directory)}
        command: list[str | Path] = [self.python.program, "-m", "patroni", settings]
        with self.log.open("a", encoding="utf-8") as log:
            self.patroni = self.account.start(command, self.directory, log, keep=[self.lock], environ=environ)

    def processes(self) -> list[psutil.Process]:
        """Patroni's and PostgreSQL's, which are no children of Patroni's: they outlive it."""
        patroni = [] if self.patroni is None else [self.patroni.pid]
        return family(*patroni, *self._postmasters())

    def kill(self) -> None:
        """Ends all of it as a power cut would."""
        while left := self.processes():  # Patroni may have started something meanwhile
            kill_all(left)
            if self.patroni is not None:
                self.patroni.wait()
                self.patroni = None

    def kill_postmaster(self) -> None:
        """Ends PostgreSQL; Patroni is there to notice."""
        kill_all(family(*self._postmasters()))

    def freeze(self) -> None:
        """Stops all of it where it is."""
        for _ in range(2):  # what was forked meanwhile is seen the second time
            signal_all(self.processes(), signal.SIGSTOP)

    def thaw(self) -> None:
        """Lets it go on."""
        signal_all(self.processes(), signal.SIGCONT)

    def begin_stop(self) -> None:
        """Tells Patroni to stop PostgreSQL and itself."""
        self.thaw()
        if self.patroni is not None:
            self.patroni.send_signal(signal.SIGTERM)

    def stop(self) -> None:
        """Stops it, by force where that takes long."""
        self.begin_stop()
        try:
            if self.patroni is not None:
                with suppress(subprocess.TimeoutExpired):
                    self.patroni.wait(_STOP_S)
        finally:
            self.kill()

    def leads(self) -> bool:
        """True if it holds the leader's lock; its PostgreSQL may still have to be promoted."""
        return self._ask("GET", "/primary")[0] == 200

    def see(self) -> list[Seen]:
        """State of all members as this one knows it; empty if it does not answer."""
        status, answer = self._ask("GET", "/cluster")
        members: list[dict[str, Any]] = json.loads(answer)["members"] if status == 200 else []
        return [Seen(name=one["name"], role=one["role"], state=one["state"]) for one in members]

    def switch_over(self, leader: str, candidate: str | None) -> tuple[int, str]:
        """Asks it to have another lead; the status and Patroni's words on it."""
        wanted = {"leader": leader, **({"candidate": candidate} if candidate else {})}
        return self._ask("POST", "/switchover", json.dumps(wanted), timeout_s=_SWITCHOVER_S)

    def _ask(self, method: str, path: str, body: str | None = None, timeout_s: float = _ANSWER_S) -> tuple[int, str]:
        token = b64encode(f"hummock:{self.passwords.api}".encode()).decode()
        connection = HTTPConnection("127.0.0.1", self.api_port, timeout=timeout_s)
        try:
            connection.request(method, path, body, {"Authorization": f"Basic {token}"})
            response = connection.getresponse()
            return response.status, response.read().decode()
        except (OSError, HTTPException) as error:
            return 0, str(error)
        finally:
            connection.close()

    def _postmasters(self) -> list[int]:
        """Process ids of those whose data these are: of PostgreSQL, or of one of its tools."""
        wanted = ["-D", str(self.directory / "data")]
        return [one.pid for one in psutil.process_iter(["cmdline"]) if (one.info["cmdline"] or [])[1:3] == wanted]

    def _settings(self) -> Mapping[str, object]:
        """Patroni's settings, as JSON and so as YAML."""
        api = f"127.0.0.1:{self.api_port}"
        return {
            "scope": "hummock",
            "name": self.name,
            "restapi": {
                "listen": api,
                "connect_address": api,
                "authentication": {"username": "hummock", "password": self.passwords.api},
            },
            "etcd3": {
                "hosts": [f"127.0.0.1:{port}" for port in self.etcd_ports],
                "protocol": "https",
                "cacert": str(self.certificate.certificate),
                "cert": str(self.certificate.certificate),
                "key": str(self.certificate.key),
            },
            "bootstrap": {
                "dcs": _shared_settings(),
                "initdb": [{"encoding": "UTF8"}, {"locale": "C"}, "data-checksums"],
            },
            "postgresql": self._postgresql_settings(),
            "watchdog": {"mode": "off"},
        }

    def _postgresql_settings(self) -> Mapping[str, object]:
        address = f"127.0.0.1:{self.port}"
        return {
            "listen": address,
            "connect_address": address,
            "data_dir": str(self.directory / "data"),
            "bin_dir": str(self.programs),
            "pgpass": str(self.directory / "pgpass"),
            "authentication": {
                "superuser": {"username": SUPERUSER, "password": self.passwords.superuser},
                "replication": {"username": _REPLICATOR, "password": self.passwords.replication},
            },
            "parameters": {"unix_socket_directories": "", "log_timezone": "UTC"},
            "pg_hba": [
                f"host replication {_REPLICATOR} 127.0.0.1/32 scram-sha-256",
                "host all all 127.0.0.1/32 scram-sha-256",
            ],
            # A replica is not to wait for the next checkpoint.
            "basebackup": [{"checkpoint": "fast"}],
            # A leader that was killed comes back as a replica, whatever it had written last.
            "remove_data_directory_on_rewind_failure": True,
            "remove_data_directory_on_diverged_timelines": True,
        }


def _shared_settings() -> Mapping[str, object]:
    """Settings that etcd keeps for all members, from the cluster's first start on."""
    timeouts = {"wal_sender_timeout": _REPLICATION_TIMEOUT, "wal_receiver_timeout": _REPLICATION_TIMEOUT}
    return {
        "ttl": TTL_S,
        "loop_wait": _LOOP_WAIT_S,
        "retry_timeout": _RETRY_TIMEOUT_S,
        "primary_start_timeout": _PRIMARY_START_S,
        "synchronous_mode": True,
        "postgresql": {"use_pg_rewind": True, "use_slots": True, "parameters": timeouts},
    }
