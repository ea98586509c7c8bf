"""The account that servers run as: PostgreSQL refuses root; any other user runs it as himself."""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, TypeAlias

Command: TypeAlias = Sequence[str | Path]
"""A program's path and its arguments."""
_FOR_ROOT: Final = "nobody"
"""An account of every machine, which need not be made and owns nothing; `postgres` may own a cluster in use."""
_UNSET: Final = ("PG", "PATRONI", "ETCD", "PYTHON", "LC_", "LANG")
"""Begin the variables of the caller's that would change what a server does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A user of this machine.

    Attributes:
        user_id: None, as `group_id` is, where servers run as the caller.
    """

    name: str
    user_id: int | None = None
    group_id: int | None = None

    def start(
        self,
        command: Command,
        directory: Path,
        log: IO[str],
        *,
        keep: Sequence[int] = (),
        environ: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Starts a program in a session of its own, so that a Ctrl-C at the terminal is the caller's alone.

        Args:
            directory: Working directory.
            log: Takes all that it says.
            keep: File descriptors that it inherits.
            environ: Joins the environment, which has nothing about databases or languages.
        """
        return subprocess.Popen(
            list(map(str, command)),
            cwd=directory,
            env=_environment(environ or {}),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=keep,
            start_new_session=True,
            user=self.user_id,
            group=self.group_id,
            extra_groups=None if self.user_id is None else [],
        )

    def run(self, command: Command, directory: Path, log: IO[str]) -> int:
        """Runs a program to its end; its exit status. An interruption ends it."""
        with self.start(command, directory, log) as process:
            try:
                return process.wait()
            except BaseException:
                process.terminate()
                raise

    def can_run(self, command: Command, environ: Mapping[str, str] | None = None) -> bool:
        """True if this account can find, read and load the program, and it exits with 0."""
        with Path(os.devnull).open("w") as nowhere:
            try:
                with self.start(command, Path("/"), nowhere, environ=environ) as process:
                    return process.wait() == 0
            except OSError:
                return False

    def own(self, directory: Path) -> None:
        """Makes a directory, unless it is there, that only this user may enter.

        Raises:
            Unusable: It holds something else, or a directory above it is closed to this user.
        """
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()) and not self._owns(directory):
            raise Unusable(f"{directory} is not empty and not {self.name}'s alone; name a new directory")
        directory.chmod(0o700)
        if self.user_id is not None and self.group_id is not None:
            os.chown(directory, self.user_id, self.group_id)
        if not self.can_run(["/usr/bin/env", "test", "-w", directory]):
            raise Unusable(
                f"{directory} cannot be reached by {self.name}, whom servers run as where root starts them: a directory"
                " above it is closed to others; name one elsewhere, as below /var/tmp"
            )

    def write(self, path: Path, text: str) -> None:
        """Writes a file that only this user may read."""
        path.unlink(missing_ok=True)
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8")
        if self.user_id is not None and self.group_id is not None:
            os.chown(path, self.user_id, self.group_id)

    def _owns(self, directory: Path) -> bool:
        status = directory.stat()
        return status.st_uid == (os.geteuid() if self.user_id is None else self.user_id) and not status.st_mode & 0o077


def server_account() -> Account:
    """The account that this process starts servers as."""
    if os.geteuid() != 0:
        return Account(name=pwd.getpwuid(os.geteuid()).pw_name)
    entry = pwd.getpwnam(_FOR_ROOT)
    return Account(name=entry.pw_name, user_id=entry.pw_uid, group_id=entry.pw_gid)


class Unusable(Exception):
    """A directory that a server cannot have for its own; says why."""


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_UNSET)}
    return {**kept, "LC_ALL": "C", **more}
