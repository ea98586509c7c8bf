"""Whether a project's sessions, its learning and what it keeps of its writes fit together."""

from __future__ import annotations

from collections import Counter

from hummock.store.tables import keys, record_codec
from hummock.store.tables.learning_log import decode_event, decode_profile, decode_state, decode_turn, decode_usage
from hummock.store.tables.op_log import is_removal
from hummock.store.tables.sessions import (
    SessionRecord,
    clock_key,
    decode_message,
    decode_session,
    message_key,
    messages_prefix,
    number_of,
    order_key,
)
from hummock.store.upkeep.check_memories import UNREADABLE
from hummock.store.upkeep.inspection import Snapshot
from hummock.store.upkeep.problems import Problems


class HistoryCheck:
    """One look at all of a project but its memories."""

    def __init__(
        self,
        snapshot: Snapshot,
        number: int,
        record: record_codec.ProjectRecord,
        memory_ids: set[str],
        problems: Problems,
    ) -> None:
        """Arguments as for `MemoriesCheck`; `memory_ids` are those of all the project's memories."""
        self._snapshot = snapshot
        self._number = number
        self._record = record
        self._prefix = keys.project_prefix(number)
        self._memory_ids = memory_ids
        self._problems = problems

    def run(self) -> Counter[str]:
        """Looks at everything; how much there is."""
        sessions = self._sessions()
        self._order(sessions)
        messages = self._messages(sessions)
        events = self._learning()
        self._usage()
        self._writes()
        self._requests()
        self._review()
        return Counter(sessions=len(sessions), messages=messages, events=events)

    def _review(self) -> None:
        for key, value in self._snapshot.values("review", self._prefix):
            try:
                memory_id = record_codec.decode_held(value).memory.id
            except UNREADABLE:
                self._problems.add("what is held for review cannot be read")
            else:
                is_its_own = keys.name_key(self._number, memory_id) == key
                self._problems.require(is_its_own, "what is held for review is under another id")

    def _sessions(self) -> dict[bytes, SessionRecord]:
        found = {}
        for key, value in self._snapshot.values("session_record", self._prefix):
            try:
                found[key] = decode_session(value)
            except UNREADABLE:
                self._problems.add("a session cannot be read")
        return found

    def _order(self, sessions: dict[bytes, SessionRecord]) -> None:
        clock = clock_key(self._number)
        places = {key: value for key, value in self._snapshot.values("session_order", self._prefix) if key != clock}
        for key, record in sessions.items():
            place = order_key(self._number, record.moved, archived=record.session.is_archived)
            self._problems.require(places.pop(place, None) == key, "a session has no place", record.session.number)
        self._problems.require(not places, "a place in the order of sessions has no session")
        last = number_of(self._snapshot.value("session_order", clock) or bytes(8))
        highest = max((max(one.moved, one.session.number) for one in sessions.values()), default=0)
        self._problems.require(highest <= last, "a session's number is still to be given")

    def _messages(self, sessions: dict[bytes, SessionRecord]) -> int:
        """Check the messages and return their number."""
        count = 0
        expected, deleted = set(), {key for key, _ in self._snapshot.entries("session_deleted", self._prefix)}
        for record in sessions.values():
            number = record.session.number
            expected |= {message_key(self._number, number, at + 1) for at in range(record.session.last_position)}
        found = set()
        for key, value in self._snapshot.values("message", self._prefix):
            count += 1
            session = number_of(key[: len(self._prefix) + 8])
            if messages_prefix(self._number, session) in deleted:
                continue
            found.add(key)
            try:
                message = decode_message(value, number_of(key))
            except UNREADABLE:
                self._problems.add("a message cannot be read", session)
                continue
            position = self._snapshot.value("message_id", messages_prefix(self._number, session) + message.id.encode())
            is_found = bool(position) and number_of(position or b"") == message.position
            self._problems.require(is_found, "a message is not found by its id", session)
        for key in sorted(expected - found):
            self._problems.add("a session lacks a message", number_of(key[: len(self._prefix) + 8]))
        for key in sorted(found - expected):
            self._problems.add("a message has no session", number_of(key[: len(self._prefix) + 8]))
        for key, position in self._snapshot.values("message_id", self._prefix):
            prefix = key[: len(self._prefix) + 8]
            there = prefix + position in found or prefix in deleted
            self._problems.require(there, "an id of a message names none", number_of(prefix))
        return count

    def _learning(self) -> int:
        """Check the log and return the number of its events."""
        value = self._snapshot.value("learning", self._prefix)
        try:
            last = 0 if value is None else decode_state(value).events
        except UNREADABLE:
            self._problems.add("the state of learning cannot be read")
            return 0
        numbers = []
        for key, stored in self._snapshot.values("event", self._prefix):
            numbers.append(keys.doc_of_doc_key(key))
            try:
                decode_event(numbers[-1], stored)
            except (*UNREADABLE, KeyError):
                self._problems.add("an event cannot be read", numbers[-1])
        self._problems.compare(
            range(1, last + 1),
            numbers,
            "the learning log lacks an event",
            "an event is behind the end of the learning log",
        )
        for table, decode, what in (
            ("turn", decode_turn, "a turn"),
            ("link", decode_profile, "what was learnt of a memory"),
        ):
            for _, stored in self._snapshot.values(table, self._prefix):
                try:
                    decode(stored)
                except UNREADABLE:
                    self._problems.add(f"{what} cannot be read")
        return len(numbers)

    def _usage(self) -> None:
        noted = dict(self._snapshot.entries("usage_scope", self._prefix))
        begin = len(self._prefix)
        for key, value in self._snapshot.values("usage", self._prefix):
            scope = key[begin : begin + keys.HASH_BYTES]
            memory_id = keys.memory_of_usage_key(key)
            is_noted = noted.pop(keys.usage_scope_key(self._number, memory_id, scope), None) == scope
            self._problems.require(is_noted, "a usage is not found by its memory")
            try:
                decode_usage(value)
            except UNREADABLE:
                self._problems.add("a usage cannot be read")
        self._problems.require(not noted, "a memory has a usage that is not there")

    def _writes(self) -> None:
        removals = set()
        for key, value in self._snapshot.entries("ops", self._prefix):
            seq = keys.seq_of_op_key(key)
            self._problems.require(
                self._record.ops_after <= seq <= self._record.seq, "an operation is of no write that is kept", seq
            )
            if is_removal(value):
                removals.add(key)
        removed = {key for key, _ in self._snapshot.entries("removed", self._prefix)}
        self._problems.require(removed <= removals, "the id of a removed memory has no removal")

    def _requests(self) -> None:
        for key, value in self._snapshot.entries("request", self._prefix):
            try:
                record = record_codec.decode_request(value)
            except UNREADABLE:
                self._problems.add("the answer to a request cannot be read")
                continue
            aged = self._snapshot.get("request_age", keys.age_key(self._number, record.time, record.seq))
            self._problems.require(aged == key, "the answer to a request has no age", record.seq)
