"""The shape in which each reader gives what another tool keeps, and the project that it belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PureWindowsPath
from urllib.parse import unquote, urlsplit

from google.protobuf.timestamp_pb2 import Timestamp

from hummock_client.v1 import memory_pb2 as pb
from hummock_tools.changed_files import below_root

LONGEST_SIDE_BYTES = 32 << 10
"""Limit for what one side of a turn says, as of `hummock-hook`: a longer text is mostly pasted."""

SOURCE = "imported_from"
"""Metadata key that names the tool a memory came from."""

_CUT = "\n… (cut)"
_HASH_DIGITS = 32
_LONGEST_ID_BYTES = 200
_LONGEST_PROJECT = 256
_LONGEST_TITLE = 80
_LONGEST_GIT_FILE_BYTES = 4096
_DRIVE = re.compile(r"[A-Za-z]:[\\/]|\\\\")
_WORKTREES = "/.git/worktrees/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A session of a tool: its id there, the working directory that it began in ("" if unknown), and a title."""

    source: str
    id: str
    folder: str
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A memory to learn, with an id and a source_hash that are the same in each run.

    Attributes:
        folder: The working directory that it was said in; empty if unknown.
        project: The tool's own name for the project; empty if the folder says it.
        message_id: Its message in the session; empty if it is no part of a conversation.
        title: Title for that session.
    """

    memory: pb.Memory
    folder: str = ""
    project: str = ""
    message_id: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Something that is not learnt on purpose, and why."""

    reason: str
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """A line, row or file that cannot be read: where it is, and why."""

    where: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a user said, and all that the model said to it; "" while it has not answered.

    `id` is the tool's own, unique in all of its sessions. `files` are those that its tools
    were to change, as they name them.
    """

    id: str
    user: str
    user_time: Timestamp | None
    agent: str = ""
    agent_time: Timestamp | None = None
    files: tuple[str, ...] = ()


Part = Found | LeftOut | Wrong


def sides(turn: Turn, conversation: Conversation) -> Iterator[Found]:
    """The memories of a turn; message ids are those that `hummock-hook` gives, so that it is stored by one of both."""
    said = (
        ("user", turn.user, turn.user_time, pb.ORIGIN_USER_INPUT),
        ("agent", turn.agent, turn.agent_time, pb.ORIGIN_AI_OUTPUT),
    )
    files = below_root(conversation.folder, turn.files)
    for side, text, time, origin in said:
        if not text:
            continue
        shown = cut(text)
        memory = pb.Memory(
            id=made_id(conversation.source, turn.id, side),
            kind=pb.MEMORY_KIND_NOTE,
            origin=origin,
            content=shown,
            session_id=made_id(conversation.id),
            speaker="user" if side == "user" else "assistant",
            event_time=time,
            create_time=time,
            source_hash=hash_of("\0".join((shown, *files)).encode()),
            files=files,
            metadata={SOURCE: conversation.source},
        )
        title = conversation.title or title_of(turn.user)
        yield Found(memory=memory, folder=conversation.folder, message_id=f"{made_id(turn.id)}:{side}", title=title)


def made_id(*parts: str) -> str:
    """The parts with ":" between; a hash of them if the contract would refuse that as an id."""
    whole = ":".join(parts)
    if whole.isprintable() and 0 < len(whole.encode(errors="replace")) <= _LONGEST_ID_BYTES:
        return whole
    return hash_of("\0".join(parts).encode(errors="replace"))


def hash_of(data: bytes) -> str:
    """SHA-256 as 32 hexadecimal digits."""
    return sha256(data).hexdigest()[:_HASH_DIGITS]


def title_of(text: str) -> str:
    """The first line of a text, at most 80 characters, without what a title may not hold."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return "".join(character if character.isprintable() else " " for character in line)[:_LONGEST_TITLE].strip()


def cut(text: str) -> str:
    """The beginning of a text that is too long, and a mark."""
    data = text.encode()
    if len(data) <= LONGEST_SIDE_BYTES:
        return text
    return data[: LONGEST_SIDE_BYTES - len(_CUT.encode())].decode(errors="ignore") + _CUT


def folder_at(uri: object) -> str:
    """The path that a file's URI names, as editors write it; empty if it is none."""
    if not isinstance(uri, str) or not uri.startswith("file:"):
        return ""
    path = unquote(urlsplit(uri).path)
    # A drive stands behind the slash of its URI.
    return path[1:] if path[2:3] == ":" else path


def project_of(folder: str) -> str:
    """The project of a working directory; empty if it is no absolute path.

    It is the name of the folder around it that holds `.git`, or else its own, which may be gone. A worktree has its
    repository's name. `hummock-hook` chooses likewise.
    """
    if _DRIVE.match(folder):
        return PureWindowsPath(folder).name[:_LONGEST_PROJECT]
    root = Path(folder)
    if not root.is_absolute():
        return ""
    for above in (root, *root.parents):
        try:
            git = (above / ".git").lstat()
        except (OSError, ValueError):
            continue
        root = above if (git.st_mode & 0o170000) == 0o040000 else _repository_of(above)
        break
    return root.name.encode(errors="replace").decode()[:_LONGEST_PROJECT]


def _repository_of(worktree: Path) -> Path:
    """The repository that a worktree belongs to; itself where its `.git` names none, as a submodule's."""
    try:
        with (worktree / ".git").open("rb") as file:
            text = file.read(_LONGEST_GIT_FILE_BYTES).decode(errors="replace").strip()
    except OSError:
        return worktree
    path, found, _ = text.removeprefix("gitdir: ").replace("\\", "/").partition(_WORKTREES)
    is_link = text.startswith("gitdir: ") and bool(found) and Path(path).is_absolute()
    return Path(path) if is_link else worktree
