"""What an agent tells of itself, whatever it calls its events and their fields."""

from __future__ import annotations

import json
import os

from hummock_tools.changed_files import changed_by, is_failure
from hummock_tools.hook.transcript import loaded
from hummock_tools.private_text import without_private
from hummock_tools.project_name import project_of

LARGEST_EVENT = 16 << 20
"""Bytes; a prompt with pasted files is below it."""

STARTED, PROMPTED, ANSWERED, COMPACTING, SUBAGENT_STARTED, SUBAGENT, CHANGED = (
    "start",
    "prompt",
    "answer",
    "compact",
    "subagent-start",
    "subagent",
    "change",
)
KINDS = {
    "SessionStart": STARTED,
    "UserPromptSubmit": PROMPTED,
    "Stop": ANSWERED,
    "PreCompact": COMPACTING,
    "SubagentStart": SUBAGENT_STARTED,
    "SubagentStop": SUBAGENT,
    "PostToolUse": CHANGED,
    "BeforeAgent": PROMPTED,
    "AfterAgent": ANSWERED,
    "AfterTool": CHANGED,
    "sessionStart": STARTED,
    "beforeSubmitPrompt": PROMPTED,
    "afterAgentResponse": ANSWERED,
    "afterFileEdit": CHANGED,
}
"""Kinds by the names of Claude Code and Codex, of Gemini CLI, and of Cursor."""
COPILOT_KINDS = {
    "agentName": SUBAGENT,
    "source": STARTED,
    "prompt": PROMPTED,
    "stopReason": ANSWERED,
    "trigger": COMPACTING,
    "reason": ANSWERED,
}
"""Kinds of Copilot CLI, whose events have no name, by the first of these fields that an event has."""


class BadEvent(Exception):
    """The event is no JSON object, or too large, or a field has another type than it should."""


class Event:
    """An event.

    Attributes:
        name: The agent's own for the kind; empty for Copilot CLI.
        kind: What happened; "other" for what the hook does not know.
        session: The session's id.
        folder: The agent's working directory, or the root that it works in.
        turn: The agent's id of the turn; empty where it gives none.
        prompt: What the user said, without what is private.
        answer: What the agent said last, likewise.
        source: Why a session started: startup, resume, clear or compact.
        transcript: Path of the transcript, a subagent's own for its events.
        files: Files that a tool has changed, as the agent names them; none where it failed.
        subagent: Its id.
        subagent_type: Its name, for example "Explore".
    """

    def __init__(self, sent: bytes) -> None:
        """Reads what an agent sends. Raises: BadEvent."""
        said = loaded(sent) if len(sent) <= LARGEST_EVENT else []
        if said is None and sent.strip() == b"null":
            said = {}
        if not isinstance(said, dict):
            raise BadEvent

        def text(*names: str) -> str:
            for name in names:
                value = said.get(name)
                if value is not None and not isinstance(value, str):
                    raise BadEvent
                if value:
                    return value
            return ""

        roots = said.get("workspace_roots") or []
        if not isinstance(roots, list) or not all(isinstance(each, str) for each in roots):
            raise BadEvent
        self.name = text("hook_event_name")
        self.kind = KINDS.get(self.name, "other")
        # VS Code starts the hooks of Copilot CLI as well, and spells the name differently.
        if not self.name and "sessionId" in said and "hookEventName" not in said:
            self.kind = next((kind for field, kind in COPILOT_KINDS.items() if field in said), "other")
        self.session = text("session_id", "conversation_id", "sessionId")
        self.folder = roots[0] if roots else text("cwd")
        self.turn = text("turn_id", "generation_id")
        self.prompt = without_private(text("prompt"))
        self.answer = without_private(text("last_assistant_message", "prompt_response", "text"))
        self.source = text("source")
        transcripts = ("agent_transcript_path",) if self.kind == SUBAGENT else ("transcript_path", "transcriptPath")
        self.transcript = text(*transcripts)
        edited, tool = text("file_path"), text("tool_name")
        self.files = [edited] if edited else changed_by(tool, said.get("tool_input"))
        if is_failure(said.get("tool_response")):
            self.files = []
        self.subagent = text("agent_id")
        self.subagent_type = text("agent_type")

    @property
    def takes_reply(self) -> bool:
        """Whether the agent reads what is printed; Copilot CLI drops it for a prompt."""
        return bool(self.name) or self.kind != PROMPTED

    def reply(self, text: str) -> bytes:
        """The line of JSON that has the agent put the text before the model."""
        if not self.name:
            said: dict[str, object] = {"additionalContext": text}
        elif self.name == "sessionStart":
            said = {"additional_context": text}
        elif self.name == "beforeSubmitPrompt":
            said = {"continue": True, "additional_context": text}
        else:
            said = {"hookSpecificOutput": {"hookEventName": self.name, "additionalContext": text}}
        return json.dumps(said).encode() + b"\n"

    @property
    def root(self) -> str:
        """The agent's root, else its folder; empty where it tells none."""
        return os.environ.get("CLAUDE_PROJECT_DIR", "") or self.folder

    def project(self) -> str:
        """HUMMOCK_PROJECT, else that of the agent's root, else of the folder, which changes as the agent moves on."""
        named = os.environ.get("HUMMOCK_PROJECT", "")
        return named or (project_of(self.root) if os.path.isabs(self.root) else "")
