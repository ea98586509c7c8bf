"""An agent as the hook sees one: a session with its transcript, and a process of the hook for each event."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

LIMIT_S = 60
TRIES = 30
"""Times that an event is told again where busy cores make an answer late."""
TIME = "2026-03-01T09:30:00.000Z"
"""When all is said."""


@dataclass(kw_only=True)
class Agent:
    """A session of an agent that keeps its transcript as Claude Code does, and starts the hook for each event."""

    program: Path
    place: Path
    target: str
    session: str
    _lines: list[str] = field(default_factory=list)

    @property
    def _transcript(self) -> Path:
        return self.place / f"{self.session}.jsonl"

    @property
    def log(self) -> str:
        """What the hook has logged."""
        return (self.place / "state/hummock/hook/hook.log").read_text(encoding="utf-8")

    def fire(self, name: str, **fields: object) -> str:
        """The context that the hook gives for an event; empty where it prints nothing."""
        folder = self.place / "shop"
        (folder / ".git").mkdir(parents=True, exist_ok=True)
        self._transcript.write_text("".join(line + "\n" for line in self._lines), encoding="utf-8")
        sent = {"hook_event_name": name, "session_id": self.session, "cwd": str(folder)}
        event = json.dumps({**sent, "transcript_path": str(self._transcript), **fields}).encode()
        for _ in range(TRIES):
            run = self.start(event)
            # On busy cores an answer may be late. The hook gives nothing then, and the same event may be told again.
            if not self.log.endswith("DEADLINE_EXCEEDED\n"):
                break
        if not run.stdout:
            return ""
        answer = json.loads(run.stdout)["hookSpecificOutput"]
        assert answer["hookEventName"] == name
        text: str = answer["additionalContext"]
        assert text
        return text

    def start(self, sent: bytes) -> subprocess.CompletedProcess[bytes]:
        """The hook's process, which always ends with status 0 and an empty stderr."""
        own = {"HUMMOCK_TARGET": self.target, "XDG_STATE_HOME": str(self.place / "state")}
        unwanted = ("HUMMOCK_PROJECT", "HUMMOCK_TOKEN", "CLAUDE_PROJECT_DIR")
        env = {**{name: text for name, text in os.environ.items() if name not in unwanted}, **own}
        run = subprocess.run([str(self.program)], input=sent, env=env, capture_output=True, timeout=LIMIT_S)
        assert run.returncode == 0
        assert run.stderr == b""
        return run

    def ask(self, text: str) -> str:
        """The user's prompt; returns what the model is given with it."""
        self._lines.append(self._line("user", text))
        return self.fire("UserPromptSubmit", prompt=text)

    def answer(self, *texts: str) -> None:
        """The model looks something up, and answers."""
        tool = [{"type": "tool_use", "name": "Read", "input": {"file_path": "secret/tool-noise.py"}}]
        result = [{"type": "tool_result", "content": "tool-noise " * 100}]
        blocks = [[{"type": "text", "text": text}] for text in texts]
        self._lines += [self._line("assistant", tool), self._line("user", result)]
        self._lines += [self._line("assistant", block) for block in blocks]

    def edit(self, **calls: object) -> None:
        """The model calls tools, by their names."""
        blocks = [{"type": "tool_use", "name": name, "input": given} for name, given in calls.items()]
        self._lines.append(self._line("assistant", blocks))

    def _line(self, role: str, content: object) -> str:
        said = {"uuid": f"{self.session}-{len(self._lines)}", "timestamp": TIME, "message": {"content": content}}
        return json.dumps({"type": role, **said})
