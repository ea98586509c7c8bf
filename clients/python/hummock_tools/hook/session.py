"""An agent's session: what is put before the model for an event, and what is stored of it."""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress

from hummock_tools.changed_files import MOST_FILES, below_root
from hummock_tools.hook.calls import CallFailed, Service
from hummock_tools.hook.event import CHANGED, COMPACTING, PROMPTED, STARTED, SUBAGENT, SUBAGENT_STARTED, Event
from hummock_tools.hook.state import Record
from hummock_tools.hook.transcript import LONGEST_SIDE, Turn, cut, hash_of, past_time, read_turns, with_end

TYPE_CHECKING = False  # importing typing would take a tenth of the program's time
if TYPE_CHECKING:
    from typing import Any

# docs/hooks.md and clients/go/cmd/hummock-hook have the same numbers.
_LIMITS_S = {PROMPTED: 0.13, STARTED: 2.0, SUBAGENT_STARTED: 2.0}
"""A prompt waits 150 ms from the start of the process, of which the interpreter has taken some 20 by then."""
_STORE_LIMIT_S = 9.0
_TURN_LIMIT_S = 4.0
_MOST_PINNED = 50
_SHOWN_TOKENS = 1500
_LONGEST_SHOWN = 10_000
_LEAST_SIMILARITY = 0.15
_LONGEST_QUERY = 8192
_LONGEST_NAME = 256
_MOST_WINDOW = 1000
_MOST_TURNS = 20


class Session:
    """A session with the event that is handled."""

    def __init__(self, service: Service, project: str, given: Event, record: Record, began_s: float) -> None:
        self._service = service
        self._project = project
        self._given = given
        self._record = record
        self._ends_s = began_s + _LIMITS_S.get(given.kind, _STORE_LIMIT_S)

    def handle(self) -> str:
        """Does what the event calls for and says so in a few words. Raises: CallFailed, OSError."""
        if self._given.kind in (STARTED, SUBAGENT_STARTED):
            return self._start()
        if self._given.kind == PROMPTED:
            return self._remind()
        if self._given.kind == CHANGED:
            return self._note_files()
        if self._given.kind == SUBAGENT:
            return self._store_subagent()
        return self._store_turns()

    def _call(self, method: str, request: dict[str, Any], ends_s: float = 0.0) -> dict[str, Any]:
        return self._service.call(method, {"project": self._project, **request}, ends_s or self._ends_s)

    def _start(self) -> str:
        """Shows the pinned memories that the model does not have."""
        if self._given.source in ("clear", "compact"):
            self._record.forget_context()
        # It has the service read the project, so that the first prompt is answered in time.
        warming = self._service.send(
            "ContextService/Render", {"project": self._project, **self._recalling("?")}, self._ends_s
        )
        try:
            listed = self._call(
                "MemoryService/ListMemories",
                {"filter": {"tags": ["pinned"]}, "pageSize": _MOST_PINNED, "allowMissing": True},
            )
            ids = [each["id"] for each in listed.get("memories", []) if each["id"] not in self._record.shown]
            if not ids:
                return "nothing pinned"
            return self._show({**_rendering(), "memories": {"ids": ids}})
        finally:
            with suppress(CallFailed):
                warming.reply()

    def _remind(self) -> str:
        """Shows what bears on the prompt."""
        record, given = self._record, self._given
        record.prompts += 1
        record.files = []
        record.turn = given.turn or f"prompt-{record.prompts}"
        record.prompt = cut(given.prompt, LONGEST_SIDE)
        if not given.prompt or not given.takes_reply:
            return "nothing to do"
        return self._show(self._recalling(given.prompt[-_LONGEST_QUERY:]))

    def _note_files(self) -> str:
        """Notes what a tool has changed, for the turn that it belongs to."""
        known = dict.fromkeys([*self._record.files, *self._given.files])
        self._record.files = list(known)[:MOST_FILES]
        return f"files={len(self._given.files)}"

    def _recalling(self, query: str) -> dict[str, Any]:
        """Asks for what bears on a query, without what the model has in its context already."""
        recall: dict[str, Any] = {
            "queryText": query,
            "preset": "PRESET_AGENT",
            "tuning": {"minSimilarity": _LEAST_SIMILARITY},
            "filter": {"excludedIds": self._record.shown},
        }
        if self._record.turns:
            recall["sessionId"] = self._given.session
            recall["tuning"]["windowTurns"] = min(self._record.turns, _MOST_WINDOW)
        return {**_rendering(), "recall": recall}

    def _show(self, request: dict[str, Any]) -> str:
        """Prints what is rendered, if it holds a memory, and notes which."""
        rendered = self._call("ContextService/Render", request)
        text = rendered.get("text", "")
        shown = [each for each in rendered.get("memories", []) if each.get("tier") in ("TIER_FULL", "TIER_INDEX")]
        reasons = [str(each.get("reason", "")) for each in rendered.get("degraded", [])]
        cut_short = "".join(f" {each.removeprefix('DEGRADATION_REASON_').lower()}" for each in reasons)
        if not shown or not text:
            return "nothing to show" + cut_short
        if len(text) > _LONGEST_SHOWN:
            return "too long to show"
        os.write(1, self._given.reply(text))
        self._record.show([each["memoryId"] for each in shown])
        return f"shown={len(shown)} tokens={rendered.get('tokenCount', 0)}{cut_short}"

    def _store_turns(self) -> str:
        """Stores the turns that have ended, or grown, since those that were stored last."""
        stored, failed = 0, ""
        for each in self.new_turns():
            try:
                self._store_turn(each)
            except CallFailed as error:
                failed = f" failed: {error.reason}"
                if error.code == "unavailable":
                    break
                continue  # it is tried again until one behind it is stored
            self._record.turns += each.id != self._record.stored_turn
            self._record.stored_turn, self._record.stored_digest = each.id, each.digest()
            stored += 1
        return f"stored={stored}{failed}"

    def new_turns(self) -> list[Turn]:
        """The turns from the one that was stored last; where none was, those whose prompts were seen.

        Before a compaction all. Without a transcript that can be read, the event and the prompt before it say the turn.
        """
        record, given = self._record, self._given
        # Copilot CLI does not say where the transcript is when a session ends.
        record.transcript = given.transcript or record.transcript
        turns = read_turns(record.transcript, of_subagent=False)
        if not turns:
            user = given.prompt or record.prompt
            turns = [Turn(given.turn or record.turn or hash_of(user, given.answer), user)]
        if given.answer:
            turns[-1].agent = with_end(turns[-1].agent, given.answer)
        turns[-1].files += record.files
        known = [at for at, each in enumerate(turns) if each.id == record.stored_turn]
        start = known[0] if known else 0 if given.kind == COMPACTING else len(turns) - max(1, record.prompts)
        return [
            each
            for each in turns[max(0, start, len(turns) - _MOST_TURNS) :]
            if each.user and each.agent
            and not (each.id == record.stored_turn and each.digest() == record.stored_digest)
        ]  # fmt: skip

    def _store_turn(self, turn: Turn) -> None:
        """Stores a turn once; with a longer answer it replaces the one that is there. Raises: CallFailed."""
        ends_s = min(self._ends_s, time.monotonic() + _TURN_LIMIT_S)
        request: dict[str, Any] = {
            "requestId": self._request_id(turn.id, turn.digest()),
            "sessionId": self._given.session,
            "user": _side(turn.user, f"{turn.id}:user", turn.user_time),
            "assistant": _side(turn.agent, f"{turn.id}:agent", turn.agent_time),
            "files": below_root(self._given.root, turn.files),
            "timeZone": _own_offset(),
            "embedding": "EMBEDDING_MODE_DEFERRED",
        }
        try:
            try:
                self._call("ContextService/LearnTurn", request, ends_s)
            except CallFailed as error:
                if error.reason not in ("SESSION_NOT_FOUND", "PROJECT_NOT_FOUND"):
                    raise
                self._create_session(ends_s)
                self._call("ContextService/LearnTurn", request, ends_s)
        except CallFailed as error:
            if error.code != "already_exists":
                raise
            replaced = self._request_id(turn.id, turn.digest(), "replaced")
            self._call("ContextService/LearnTurn", {**request, "requestId": replaced, "replaceAnswer": True}, ends_s)

    def _create_session(self, ends_s: float) -> None:
        try:
            self._call("SessionService/CreateSession", {"id": self._given.session}, ends_s)
        except CallFailed as error:
            if error.code != "already_exists":
                raise

    def _store_subagent(self) -> str:
        """Stores what a subagent was asked and what it found, as the agent's own words: the task is not the user's."""
        given = self._given
        turns = read_turns(given.transcript, of_subagent=True)
        if not turns or not turns[0].user or not given.answer:
            return "nothing to store"
        memory = {
            "id": "subagent:" + hash_of(given.session, given.subagent),
            "origin": "ORIGIN_AI_OUTPUT",
            "sessionId": given.session,
            "speaker": given.subagent_type[:_LONGEST_NAME],
            "learningRecord": {"question": turns[0].user[:_LONGEST_QUERY], "answer": cut(given.answer, LONGEST_SIDE)},
        }
        request_id = self._request_id(memory["id"], hash_of(turns[0].user, given.answer))
        request = {"memories": [memory], "requestId": request_id, "embedding": "EMBEDDING_MODE_DEFERRED"}
        self._call("ContextService/Learn", request)
        return "stored=1"

    def _request_id(self, *parts: Any) -> str:
        """Equal for the same write, so that it counts once: a UUID of version 5 with the namespace of OIDs."""
        namespace = bytes.fromhex("6ba7b8129dad11d180b400c04fd430c8")
        name = hash_of(self._project, self._given.session, *parts).encode()
        digest = bytearray(hashlib.sha1(namespace + name, usedforsecurity=False).digest()[:16])
        digest[6] = digest[6] & 0x0F | 0x50
        digest[8] = digest[8] & 0x3F | 0x80
        text = digest.hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _own_offset() -> str:
    """The offset of this machine's clock, such as "+08:00", by which "yesterday" of a turn is read.

    Empty where it shows UTC, as in most containers: that says nothing of where somebody lives.
    """
    offset = time.strftime("%z")
    return "" if offset == "+0000" else f"{offset[:3]}:{offset[3:5]}"


def _side(text: str, message_id: str, time_text: str) -> dict[str, Any]:
    """One side of a turn, which may be stored long after it was said."""
    said = {"text": cut(text, LONGEST_SIDE), "messageId": message_id}
    at = past_time(time_text, time.time())
    return {**said, "createTime": at} if at else said


def _rendering() -> dict[str, Any]:
    return {"form": "RENDER_FORM_CONTEXT", "budgetTokens": _SHOWN_TOKENS, "allowMissing": True}
