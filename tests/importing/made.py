"""Files as other tools write them, made for tests."""

from __future__ import annotations

import gzip
import json
import sqlite3
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

SESSION = "11111111-2222-4333-8444-555555555555"
FOLDER = "/home/me/work/shop"


def moment(number: int) -> str:
    """A time as tools write it; each number is a minute of its own."""
    return f"2026-03-{1 + number // 1440:02}T{number // 60 % 24:02}:{number % 60:02}:00.000Z"


def write_lines(path: Path, lines: Iterable[Any]) -> Path:
    """A file of JSON lines; texts are written as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = (line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines)
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


def claude(kind: str, number: int, content: Any, **fields: Any) -> dict[str, Any]:
    """A line of Claude Code."""
    return {
        "type": kind,
        "uuid": f"{kind}-{number}",
        "sessionId": SESSION,
        "cwd": FOLDER,
        "timestamp": moment(number),
        "version": "2.1.230",
        "isSidechain": False,
        "message": {"role": kind, "content": content},
        **fields,
    }


def claude_turn(number: int, asked: str, answered: str) -> list[dict[str, Any]]:
    """A turn with a tool call between question and answer."""
    call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "a listing"}
    return [
        claude("user", number, asked),
        claude("assistant", number, [{"type": "thinking", "thinking": "hm"}, call]),
        claude("user", number, [result], uuid=f"result-{number}"),
        claude("assistant", number, [{"type": "text", "text": answered}]),
    ]


def codex(number: int, kind: str, **payload: Any) -> dict[str, Any]:
    """A line of Codex."""
    return {"timestamp": moment(number), "type": kind, "payload": payload}


def codex_message(number: int, role: str, *texts: str) -> dict[str, Any]:
    """A message of Codex."""
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": text} for text in texts]
    return codex(number, "response_item", type="message", role=role, content=content)


def codex_header(**more: Any) -> dict[str, Any]:
    """The first line of a rollout."""
    return codex(0, "session_meta", id=SESSION, timestamp=moment(0), cwd=FOLDER, **more)


def write_cursor(path: Path, chats: dict[str, Sequence[dict[str, Any] | str]], *, with_headers: bool = True) -> Path:
    """Cursor's database with these chats and their messages; a text is written as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = {"workspaceIdentifier": {"uri": {"fsPath": FOLDER}}}
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        database.execute("CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        if with_headers:
            database.execute("CREATE TABLE composerHeaders (composerId TEXT, isSubagent INTEGER, value TEXT)")
        for id, bubbles in chats.items():
            names = [f"b{number}" for number in range(len(bubbles))]
            chat = {
                "_v": 17,
                "composerId": id,
                "createdAt": 1_772_323_200_000,
                "fullConversationHeadersOnly": [{"bubbleId": name} for name in names],
                **({} if with_headers else folder),
            }
            database.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", (f"composerData:{id}", json.dumps(chat)))
            if with_headers:
                head = json.dumps({"type": "head", "name": f"chat {id}", **folder})
                database.execute("INSERT INTO composerHeaders VALUES (?, ?, ?)", (id, id.startswith("sub"), head))
            for name, bubble in zip(names, bubbles, strict=True):
                cell = bubble if isinstance(bubble, str) else json.dumps({"bubbleId": f"{id}-{name}", **bubble})
                database.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", (f"bubbleId:{id}:{name}", cell))
    return path


def copilot(number: int, kind: str, data: Any, **fields: Any) -> dict[str, Any]:
    """An event of Copilot CLI."""
    return {"type": kind, "id": f"event-{number}", "timestamp": moment(number), "data": data, **fields}


def copilot_header() -> dict[str, Any]:
    """The first event of a session of Copilot CLI."""
    return copilot(0, "session.start", {"sessionId": SESSION, "context": {"cwd": FOLDER, "branch": "main"}})


def vscode_request(number: int, asked: str, *parts: Any, **fields: Any) -> dict[str, Any]:
    """A question in a chat of VS Code, and the parts of its answer; a text is a part of Markdown."""
    response = [{"value": part} if isinstance(part, str) else part for part in parts]
    message = {"text": asked, "parts": []}
    at_ms = 1_772_323_200_000 + number * 60_000
    return {
        "requestId": f"request-{number}",
        "timestamp": at_ms,
        "message": message,
        "response": response,
        "modelState": {"value": 1, "completedAt": at_ms + 30_000},
        **fields,
    }


def vscode_chat(*requests: Any, **fields: Any) -> dict[str, Any]:
    """A chat of VS Code."""
    return {"version": 3, "sessionId": SESSION, "requests": list(requests), **fields}


def vscode_workspace(user: Path, folder: str = FOLDER) -> Path:
    """The folder of a workspace's chats in VS Code's folder `User`, which has the database that VS Code has there."""
    place = user / "workspaceStorage" / "0f1e" / "chatSessions"
    place.mkdir(parents=True)
    (place.parent / "workspace.json").write_text(json.dumps({"folder": Path(folder).as_uri()}), encoding="utf-8")
    database = user / "globalStorage" / "state.vscdb"
    database.parent.mkdir()
    with closing(sqlite3.connect(database)) as opened, opened:
        opened.execute("CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
    return place


def write_claude_mem(path: Path, *, is_old: bool = False) -> Path:
    """claude-mem's database with an observation, a summary and a prompt; an old one has other names of columns."""
    inner, outer = ("sdk_session_id", "claude_session_id") if is_old else ("memory_session_id", "content_session_id")
    observation = {
        inner: "inner",
        "project": "shop",
        "type": "bugfix",
        "title": "Dates are ISO 8601",
        "subtitle": "parse_date refused others",
        "narrative": "The parser takes ISO 8601 only. <private>my pin is 1234</private>",
        "facts": '["no US dates", "UTC without a zone"]',
        "concepts": '["how-it-works", "gotcha"]',
        "files_read": '["src/dates.py"]',
        "files_modified": "[]",
        "created_at_epoch": 1_772_323_200_000,
    }
    summary = {
        inner: "inner",
        "project": "shop",
        "request": "Mend the dates",
        "learned": "ISO 8601 only",
        "completed": "A test",
        "files_edited": '["src/dates.py"]',
        "created_at_epoch": 1_772_323_260_000,
    }
    rows: dict[str, list[dict[str, Any]]] = {
        "sdk_sessions": [{inner: "inner", outer: SESSION, "project": "shop"}],
        "observations": [observation, observation | {"title": None, "narrative": None}],
        "session_summaries": [summary],
        "user_prompts": [{outer: SESSION, "prompt_text": "mend it"}],
    }
    with closing(sqlite3.connect(path)) as database, database:
        for table, values in rows.items():
            database.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, {', '.join(values[0])})")  # names of ours
            for row in values:
                marks = ", ".join("?" * len(row))
                statement = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})"  # noqa: S608 # names of ours
                database.execute(statement, tuple(row.values()))
    return path


MEM0 = [
    {"id": "m1", "memory": "Likes green tea", "user_id": "u1", "created_at": "2026-03-01T08:00:00Z"},
    {"id": "m2", "memory": "Gone", "state": "deleted"},
]


def write_openmemory(path: Path) -> Path:
    """OpenMemory's ZIP."""
    lines = [
        {"id": "o1", "content": "Drinks oolong", "state": "active", "created_at": "2026-03-01T08:00:00Z", "app": "cli"},
        {"id": "o2", "content": "Gone", "state": "archived"},
    ]
    packed = gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode(), mtime=0)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("memories.json", json.dumps({"memories": []}))
        archive.writestr("memories.jsonl.gz", packed)
    return path
