"""The image's Dockerfile as a container engine takes it, with Debian's tools: no engine, and no registry of images.

The root is made by the script that the Dockerfile runs, in Debian's own minimal system. A container is a process in
namespaces of its own by bubblewrap: process 1, the image's user, a root that is read only.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from hummock_tools.cli.background import SERVING_ON
from tests.client.consumers import sources
from tests.service.running import free_port

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "service" / "deploy"
_LIMIT_S = 900
_TOOLS = ("mmdebstrap", "bwrap", "setpriv")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dockerfile:
    """What the Dockerfile says of the last stage.

    Attributes:
        suite: Debian's suite in the name of the base.
        environ: Its variables, those of ARM left out.
        user: `uid:gid`.
        volume: The folder that is kept.
        entrypoint: The program, before a container's own arguments.
        command: Arguments of a container that has none of its own.
        health: The command of its health check.
    """

    suite: str
    environ: dict[str, str]
    user: str
    volume: str
    entrypoint: list[str]
    command: list[str]
    health: list[str]


def instructions_of(text: str) -> Iterator[tuple[str, str]]:
    """Each instruction of a Dockerfile and what it is given, lines that go on joined."""
    joined = re.sub(r"\\\n\s*", "", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE))
    for line in filter(None, map(str.strip, joined.splitlines())):
        name, _, given = line.partition(" ")
        yield name, given.strip()


def read_dockerfile() -> Dockerfile:
    """What the image is, by its Dockerfile."""
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    suite = re.search(r"^FROM debian:(\w+)-slim AS debian-amd64$", text, re.MULTILINE)
    assert suite is not None
    said: dict[str, str] = {}
    environ: dict[str, str] = {}
    for name, given in instructions_of(text[text.rindex("\nFROM ") :]):
        said[name] = given
        if name == "ENV":
            environ |= dict(pair.split("=", 1) for pair in given.split(" "))
    return Dockerfile(
        suite=suite[1],
        environ=environ,
        user=said["USER"],
        volume=said["VOLUME"],
        entrypoint=json.loads(said["ENTRYPOINT"]),
        command=json.loads(said["CMD"]),
        health=json.loads(said["HEALTHCHECK"].partition(" CMD ")[2]),
    )


def require_tools() -> None:
    """Skip, aloud, where no root can be made."""
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        pytest.skip(
            f"no root can be made: {', '.join(missing)} is missing (Debian: mmdebstrap, bubblewrap, util-linux)"
        )
    if os.geteuid() != 0:
        pytest.skip("no root can be made but by root")


def build_root(dockerfile: Dockerfile, folder: Path) -> Path:
    """The root as the Dockerfile's RUN makes it, without models."""
    root, given = folder / "root", folder / "build"
    given.mkdir()
    clone = folder / "clone"
    for name in ("service", "kernels", "proto", "clients/python", "pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        sources(name, clone)
    wheel: list[str | Path] = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", given]
    subprocess.run(wheel, cwd=clone, check=True, capture_output=True, timeout=_LIMIT_S)
    for path in (ROOT / "service" / "locks" / "image.txt", DEPLOY / "build-root.sh"):
        shutil.copy(path, given)
    debian: list[str | Path] = ["mmdebstrap", "--quiet", "--variant=minbase", dockerfile.suite, root]
    subprocess.run(debian, check=True, capture_output=True, timeout=_LIMIT_S)
    # Packages are fetched as this machine fetches them.
    environ = {"PATH": os.defpath + ":/usr/sbin:/sbin", "HOME": "/root"}
    authorities = ssl.get_default_verify_paths().cafile
    if authorities is not None:
        shutil.copy(authorities, given / "authorities.pem")
        environ |= dict.fromkeys(("PIP_CERT", "SSL_CERT_FILE"), "/build/authorities.pem")
    place: list[str | Path] = [
        "bwrap",
        "--bind",
        root,
        "/",
        "--ro-bind",
        given,
        "/build",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
    ]
    place += ["--ro-bind", Path("/etc/resolv.conf").resolve(), "/etc/resolv.conf"]
    done = subprocess.run(
        [*place, "--cap-add", "ALL", "sh", "/build/build-root.sh", "/build"],
        env=environ,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_LIMIT_S,
    )
    assert done.returncode == 0, done.stdout
    print(done.stdout[done.stdout.index("image without models") :])
    return root


class Container:
    """A container that runs."""

    def __init__(self, process: subprocess.Popen[str], pid: int, target: str) -> None:
        self.process = process
        self.pid = pid
        """Its process 1, by its number outside."""
        self.target = target

    def lines(self) -> Iterator[str]:
        """Lines of stdout, as they come."""
        assert self.process.stdout is not None
        yield from self.process.stdout

    def signal(self, number: int) -> int:
        """Send a signal to process 1, wait until it has ended, and return its status."""
        os.kill(self.pid, number)
        return self.process.wait(_LIMIT_S)


class Engine:
    """Runs containers of a root, as an engine runs those of the image."""

    def __init__(self, dockerfile: Dockerfile, root: Path, data: Path, log: Path) -> None:
        """A volume in the folder `data`, which becomes the image's user's; stderr of all containers goes to `log`."""
        self.dockerfile = dockerfile
        self._root = root
        self.data = data
        self._log = log
        self._port = free_port()
        uid, gid = map(int, dockerfile.user.split(":"))
        data.mkdir(mode=0o700)
        os.chown(data, uid, gid)

    def run(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """What a container with these arguments does, with its output."""
        return self.run_program([*self.dockerfile.entrypoint, *arguments], **environ)

    def run_program(self, program: Sequence[str], **environ: str) -> subprocess.CompletedProcess[str]:
        """What a program does in a container, with its output."""
        command = self._command(program, environ)
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=_LIMIT_S)

    @contextmanager
    def started(self, **environ: str) -> Iterator[Container]:
        """A container with the image's command, which has said that it serves; it is gone at exit."""
        reads, writes = os.pipe()
        program = [*self.dockerfile.entrypoint, *self.dockerfile.command]
        command = self._command(program, environ, "--info-fd", str(writes))
        with (
            self._log.open("a", encoding="utf-8") as log,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, pass_fds=[writes]) as process,
        ):
            os.close(writes)
            try:
                with os.fdopen(reads, encoding="utf-8") as info:
                    pid = json.load(info)["child-pid"]
                assert process.stdout is not None
                line = process.stdout.readline()
                assert line.startswith(SERVING_ON), self._log.read_text(encoding="utf-8")
                yield Container(process, pid, f"127.0.0.1:{self._port}")
            finally:
                process.kill()  # and with it, by bubblewrap, all that is in the container

    def _command(self, program: Sequence[str], environ: dict[str, str], *more: str) -> list[str]:
        """The program as process 1: the image's user, no rights, its root read only, /data and /tmp its own."""
        uid, gid = self.dockerfile.user.split(":")
        # All containers share this machine's loopback: the port is one that is free.
        at = {"HUMMOCK_PORT": str(self._port), "HUMMOCK_TARGET": f"127.0.0.1:{self._port}"}
        all_of_them = {**self.dockerfile.environ, "HOME": self.dockerfile.volume, **at, **environ}
        root, data = str(self._root), str(self.data)
        return [
            *("setpriv", "--reuid", uid, "--regid", gid, "--clear-groups", "--no-new-privs", "--"),
            *("bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--as-pid-1"),
            *("--die-with-parent", "--ro-bind", root, "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),  # noqa: S108 - the container's own
            *("--bind", data, self.dockerfile.volume, "--chdir", "/", *more, "--clearenv"),
            *(word for name, value in all_of_them.items() for word in ("--setenv", name, value)),
            *program,
        ]
