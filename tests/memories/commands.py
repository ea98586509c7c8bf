"""Commands of the session "s" of the project "p", with all that a test leaves open."""

from __future__ import annotations

from hummock.core.session import AppendMessage, CreateSession, DeleteSession, LearnTurnCommand, PromptRole, TurnSide


def creation(session_id: str = "s", request_id: str = "") -> CreateSession:
    return CreateSession(project="p", request_id=request_id, fingerprint=b"c", session_id=session_id, title="")


def removal(session_id: str = "s", request_id: str = "") -> DeleteSession:
    return DeleteSession(project="p", request_id=request_id, fingerprint=b"d", session_id=session_id)


def saying(content: str, session_id: str = "s", message_id: str = "") -> AppendMessage:
    return AppendMessage(
        project="p", request_id="", fingerprint=b"a", session_id=session_id, message_id=message_id,
        role=PromptRole.USER, content=content, raw="",
    )  # fmt: skip


def turn(
    user: str, answer: str, *used_ids: str, ids: tuple[str, str] = ("", ""), session_id: str = "s",
    request_id: str = "", anew: bool = False,
) -> LearnTurnCommand:  # fmt: skip
    """A turn whose two messages have these ids."""
    first, second = (
        TurnSide(text=text, message_id=name, raw="", emotion_label="", speaker="")
        for text, name in zip((user, answer), ids, strict=True)
    )
    return LearnTurnCommand(
        project="p", request_id=request_id, fingerprint=b"f", session_id=session_id, user=first, assistant=second,
        used_memory_ids=used_ids, replaces_answer=anew,
    )  # fmt: skip
