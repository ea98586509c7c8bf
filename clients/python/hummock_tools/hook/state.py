"""What is kept between events: sessions, and hook.log. `hummock-hook` keeps the same files in the same form."""

from __future__ import annotations

import json
import os
import stat
import time

from hummock_tools.hook.transcript import hash_of, loaded

_KEPT_S = 30 * 24 * 3600
_LARGEST_LOG = 256 << 10
_MOST_SHOWN = 512
_FIELDS = {
    "shown": list,
    "turns": int,
    "stored_turn": str,
    "stored_digest": str,
    "prompts": int,
    "turn": str,
    "prompt": str,
    "transcript": str,
    "files": list,
}


class Record:
    """What is known of a session.

    Attributes:
        shown: Ids of memories that the model has in its context, oldest first.
        turns: How many were stored and are in the model's context.
        stored_turn: The newest turn that was stored.
        stored_digest: Its texts' digest.
        prompts: How many were seen.
        turn: The newest prompt's id.
        prompt: Its text, for agents whose transcript cannot be read.
        transcript: Path of the transcript, as the agent told it last.
        files: Files that were changed since the newest prompt, as its tools name them.
    """

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.turns = 0
        self.stored_turn = ""
        self.stored_digest = ""
        self.prompts = 0
        self.turn = ""
        self.prompt = ""
        self.transcript = ""
        self.files: list[str] = []

    def forget_context(self) -> None:
        """Note that the model's context was emptied."""
        self.shown, self.turns = [], 0

    def show(self, ids: list[str]) -> None:
        """Note what was put before the model."""
        self.shown = (self.shown + ids)[-_MOST_SHOWN:]


class Home:
    """The folder, made for its owner alone: hummock/hook in XDG_STATE_HOME, else in ~/.local/state."""

    def __init__(self) -> None:
        """Raises: OSError, where it cannot be made."""
        state = os.environ.get("XDG_STATE_HOME", "")
        if not os.path.isabs(state):
            state = os.path.join(os.path.expanduser("~"), ".local", "state")
        self._folder = os.path.join(state, "hummock", "hook")
        self._sessions = os.path.join(self._folder, "sessions")
        os.makedirs(self._sessions, exist_ok=True)

    def read(self, project: str, session: str) -> Record:
        """An empty record where there is none that can be read."""
        record = Record()
        try:
            with open(self._file(project, session), "rb") as file:
                known = loaded(file.read())
        except OSError:
            return record
        if not isinstance(known, dict) or any(
            not isinstance(known.get(name, kind()), kind) for name, kind in _FIELDS.items()
        ):
            return record
        if not all(isinstance(each, str) for each in (*known.get("shown", []), *known.get("files", []))):
            return record
        for name in _FIELDS:
            setattr(record, name, known.get(name, getattr(record, name)))
        return record

    def write(self, project: str, session: str, record: Record) -> None:
        """Replaces the record in one step, so that events that meet leave one of theirs whole. Raises: OSError."""
        path = self._file(project, session)
        temporary = f"{path}.{os.getpid()}"
        try:
            with open(temporary, "x", encoding="utf-8") as file:
                json.dump({name: value for name, value in vars(record).items() if value}, file)
            os.replace(temporary, path)
        except OSError:
            if os.path.exists(temporary):
                os.unlink(temporary)
            raise

    def prune(self) -> None:
        """Removes what no event has touched for 30 days."""
        oldest_s = time.time() - _KEPT_S
        try:
            for entry in os.scandir(self._sessions):
                known = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(known.st_mode) and known.st_mtime < oldest_s:
                    os.unlink(entry.path)
        except OSError:
            return

    def log(self, line: str) -> None:
        """Adds a line to hook.log. Above 256 KiB it begins anew, and the log before it becomes hook.log.1."""
        path = os.path.join(self._folder, "hook.log")
        try:
            if os.path.exists(path) and os.path.getsize(path) > _LARGEST_LOG:
                os.replace(path, f"{path}.1")
            with open(path, "a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError:
            return

    def _file(self, project: str, session: str) -> str:
        return os.path.join(self._sessions, hash_of(project, session) + ".json")
