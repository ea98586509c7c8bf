"""Prompts as values: messages and where a section goes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class PromptRole(IntEnum):
    """Who speaks."""

    SYSTEM = 1
    USER = 2
    ASSISTANT = 3


class PromptTarget(IntEnum):
    """Which prompt a section goes into."""

    SYSTEM = 1
    USER = 2


class PromptTemplate(IntEnum):
    """A prompt that Hummock brings with it."""

    CODE_ANALYST = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptMessage:
    """One message of a chat.

    Attributes:
        id: Empty when nobody knows it by one.
        send_time: Unix seconds; None means when the message before it was sent.
    """

    role: PromptRole
    content: str
    id: str = ""
    send_time: float | None = None
