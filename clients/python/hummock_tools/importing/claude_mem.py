"""Reads the SQLite database of claude-mem: what it observed of an agent's work, and its summaries of sessions.

Prompts are left out: the agent's own transcripts have them.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from hummock_client.v1 import memory_pb2 as pb
from hummock_tools.importing.databases import columns, json_texts, opened
from hummock_tools.importing.found import SOURCE, Found, LeftOut, Part, Wrong, hash_of, made_id, title_of
from hummock_tools.importing.own_words import answer_words
from hummock_tools.importing.transcripts import time_of
from hummock_tools.private_text import without_private

NAME = "claude-mem"
TABLES = frozenset({"sdk_sessions", "observations"})

_SUMMARY: Final = {
    "investigated": "Investigated",
    "learned": "Learned",
    "completed": "Completed",
    "next_steps": "Next steps",
    "notes": "Notes",
}
_STATEMENTS: Final = {
    "sdk_sessions": "SELECT * FROM sdk_sessions",
    "observations": "SELECT * FROM observations ORDER BY id",
    "session_summaries": "SELECT * FROM session_summaries ORDER BY id",
}
_FILES: Final = ("files_read", "files_modified", "files_edited")
_MOST_TAGS, _LONGEST_TAG = 64, 128
_MOST_FILES, _LONGEST_FILE = 256, 1024
_LONGEST_QUESTION, _LONGEST_ANSWER_BYTES = 8192, 256 << 10


def well_known() -> Path:
    """The database of this user."""
    home = os.environ.get("CLAUDE_MEM_DATA_DIR")
    return (Path(home) if home else Path.home() / ".claude-mem") / "claude-mem.db"


def read(path: Path) -> Iterator[Part]:
    """The learning records of a database. Raises: NotRead."""
    with opened(path) as database:
        sessions = dict(_sessions(database))
        for row in _rows(database, "observations"):
            texts = (_text(row, name) for name in ("subtitle", "narrative", "text"))
            facts = "\n".join(f"- {fact}" for fact in json_texts(row.get("facts")))
            answer = "\n\n".join(filter(None, (*dict.fromkeys(texts), facts)))
            tags = [_text(row, "type"), *json_texts(row.get("concepts"))]
            yield _record(path, row, sessions, "observation", _text(row, "title"), answer, tags)
        for row in _rows(database, "session_summaries"):
            said = ((title, _text(row, name)) for name, title in _SUMMARY.items())
            answer = "\n\n".join(f"{title}: {text}" for title, text in said if text)
            yield _record(path, row, sessions, "summary", _text(row, "request"), answer, [])
        if columns(database, "user_prompts"):
            (count,) = database.execute("SELECT count(*) FROM user_prompts").fetchone()
            if count:
                yield LeftOut(reason="prompts, which the agent's own transcripts have", count=count)


def _sessions(database: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """The agent's own session ids by those that the other tables name."""
    for row in _rows(database, "sdk_sessions"):
        inner, outer = _inner(row), row.get("content_session_id") or row.get("claude_session_id")
        if inner and isinstance(outer, str):
            yield inner, outer


def _rows(database: sqlite3.Connection, table: str) -> Iterator[Mapping[str, object]]:
    if columns(database, table):
        for row in database.execute(_STATEMENTS[table]):
            yield dict(zip(row.keys(), row, strict=True))


def _inner(row: Mapping[str, object]) -> str:
    """The id of its session; before version 7 of claude-mem it had another name."""
    found = row.get("memory_session_id") or row.get("sdk_session_id")
    return found if isinstance(found, str) else ""


def _record(
    path: Path,
    row: Mapping[str, object],
    sessions: Mapping[str, str],
    kind: str,
    question: str,
    answer: str,
    tags: Iterable[str],
) -> Part:
    where = f"{path}, {kind} {row.get('id')}"
    if not question or not answer:
        return Wrong(where=where, reason="has no text" if question else "has no title")
    if len(answer.encode()) > _LONGEST_ANSWER_BYTES:
        return Wrong(where=where, reason=f"is longer than {_LONGEST_ANSWER_BYTES >> 10} KiB")
    inner = _inner(row)
    session = sessions.get(inner, inner)
    time = time_of({"at": _number(row.get("created_at_epoch"))}, "at")
    named = dict.fromkeys(file for name in _FILES for file in json_texts(row.get(name)) if len(file) <= _LONGEST_FILE)
    memory = pb.Memory(
        id=made_id(NAME, inner, kind, str(row.get("id"))),
        kind=pb.MEMORY_KIND_LEARNING_RECORD,
        origin=pb.ORIGIN_SUMMARY,
        title=title_of(question),
        tags=list(dict.fromkeys(tag for tag in tags if 0 < len(tag) <= _LONGEST_TAG and tag.isprintable()))[
            :_MOST_TAGS
        ],
        learning_record=pb.LearningRecord(
            question=question[:_LONGEST_QUESTION], answer=answer, source_files=list(named)[:_MOST_FILES]
        ),
        session_id=made_id(session) if session else "",
        event_time=time,
        create_time=time,
        metadata={SOURCE: NAME},
    )
    memory.source_hash = hash_of(memory.SerializeToString(deterministic=True))
    return Found(memory=memory, project=_text(row, "merged_into_project") or _text(row, "project"))


def _text(row: Mapping[str, object], name: str) -> str:
    value = row.get(name)
    return without_private(answer_words(value)) if isinstance(value, str) else ""


def _number(value: object) -> int | float | None:
    return value if isinstance(value, int | float) else None
