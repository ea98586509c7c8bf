"""Three etcd on loopback, in which Patroni keeps who leads; they hear nobody without the cluster's certificate."""

from __future__ import annotations

import shutil
import signal
import ssl
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from platform import machine
from typing import Final

from tests.postgresql.account import Account
from tests.postgresql.family import family, kill_all
from tests.postgresql.programs import ProgramsMissing

_HEARTBEAT_MS: Final = 200
_ELECTION_MS: Final = 2000
"""Longer than etcd's own: here three write to one disk, alongside three PostgreSQL."""
_ANSWER_S: Final = 2
_STOP_S: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """Certificate of the cluster: each of its processes presents it and trusts no other."""

    certificate: Path
    key: Path


@dataclass(slots=True, kw_only=True)
class Etcd:
    """One of the three.

    Attributes:
        directory: Holds its data and its log.
        client_port: Port for Patroni.
        peer_port: Port for the other members.
        cluster: All three as `--initial-cluster` wants them.
        lock: The file descriptor of the directory's lock.
        process: None while it does not run.
    """

    account: Account
    program: Path
    certificate: Certificate
    directory: Path
    name: str
    client_port: int
    peer_port: int
    cluster: str
    lock: int
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it, unless it runs."""
        if self.process is not None:
            return
        self.account.own(self.directory)
        client, peer = _address(self.client_port), _address(self.peer_port)
        tls = {"cert-file": self.certificate.certificate, "key-file": self.certificate.key}
        tls["trusted-ca-file"] = self.certificate.certificate
        flags = {
            "name": self.name,
            "data-dir": self.directory / "data",
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": self.cluster,
            "heartbeat-interval": _HEARTBEAT_MS,
            "election-timeout": _ELECTION_MS,
            "log-level": "warn",
            "logger": "zap",
            **tls,
            **{f"peer-{name}": path for name, path in tls.items()},
        }
        command: list[str | Path] = [self.program, "--client-cert-auth", "--peer-client-cert-auth"]
        command += [f"--{name}={value}" for name, value in flags.items()]
        # Debian's etcd runs on ARM only when it is told that this is meant.
        environ = {"ETCD_UNSUPPORTED_ARCH": "arm64"} if machine() in ("aarch64", "arm64") else {}
        with (self.directory / "log").open("a", encoding="utf-8") as log:
            self.process = self.account.start(command, self.directory, log, keep=[self.lock], environ=environ)

    def kill(self) -> None:
        """Ends it as a power cut would."""
        if self.process is not None:
            kill_all(family(self.process.pid))
            self.process.wait()
            self.process = None

    def stop(self) -> None:
        """Ends it in order, or by force where that takes long."""
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(_STOP_S)
            self.kill()

    def is_healthy(self) -> bool:
        """True if it answers and a majority of the three has a leader."""
        context = ssl.create_default_context(cafile=self.certificate.certificate)
        context.load_cert_chain(self.certificate.certificate, self.certificate.key)
        connection = HTTPSConnection("127.0.0.1", self.client_port, timeout=_ANSWER_S, context=context)
        try:
            connection.request("GET", "/health")
            return b'"true"' in connection.getresponse().read()
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()


def initial_cluster(names: Sequence[str], peer_ports: Sequence[int]) -> str:
    """All members, by name and address."""
    return ",".join(f"{name}={_address(port)}" for name, port in zip(names, peer_ports, strict=True))


def find_etcd() -> Path:
    """The program. Raises: ProgramsMissing."""
    found = shutil.which("etcd")
    if found is None:
        raise ProgramsMissing(
            "etcd is not installed; get it with:"
            " apt-get update && apt-get install -y --no-install-recommends etcd-server"
        )
    return Path(found)


def make_certificate(account: Account, directory: Path) -> Certificate:
    """The cluster's certificate, made unless it is there. Raises: ProgramsMissing."""
    made = Certificate(certificate=directory / "certificate.pem", key=directory / "key.pem")
    if made.certificate.exists():
        return made
    openssl = shutil.which("openssl")
    if openssl is None:
        raise ProgramsMissing("openssl is not installed; get it with: apt-get install -y openssl")
    account.own(directory)
    unfinished = directory / "certificate.new"
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc"]
    command += ["-days", "3650", "-subj", "/CN=hummock", "-keyout", str(made.key), "-out", str(unfinished)]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "extendedKeyUsage=serverAuth,clientAuth"]
    with (directory / "log").open("a", encoding="utf-8") as log:
        if account.run(command, directory, log) != 0:
            raise ProgramsMissing(f"{openssl} made no certificate; {directory / 'log'} says why")
    unfinished.rename(made.certificate)
    return made


def _address(port: int) -> str:
    return f"https://127.0.0.1:{port}"
