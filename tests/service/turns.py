"""The turn as its document shows it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hummock_client import Client
from hummock_client.v1 import context_service_pb2 as pb

DOCUMENT = Path(__file__).parents[2] / "docs" / "turn.md"
_CODE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

Answer = Callable[[Client, str, str, Callable[[Sequence[pb.PromptMessage]], str]], str]


def documented_answer() -> Answer:
    """The function `answer` of docs/turn.md."""
    (code,) = _CODE.findall(DOCUMENT.read_text(encoding="utf-8"))
    names: dict[str, Any] = {}
    exec(compile(code, DOCUMENT.name, "exec"), names)  # noqa: S102 # our own document, so that it stays true
    answer: Answer = names["answer"]
    return answer


class Model:
    """A language model that gives its answers in turn and keeps what it was sent."""

    def __init__(self, *answers: str) -> None:
        self._answers = list(answers)
        self.prompts: list[list[pb.PromptMessage]] = []

    def __call__(self, messages: Sequence[pb.PromptMessage]) -> str:
        self.prompts.append(list(messages))
        return self._answers.pop(0)

    @property
    def memories(self) -> str:
        """Memories that the last prompt put before the message."""
        return "\n".join(one.content for one in self.prompts[-1][1:] if one.role == pb.PROMPT_ROLE_SYSTEM)

    @property
    def said(self) -> list[str]:
        """Conversation that the last prompt put before the message."""
        return [one.content for one in self.prompts[-1] if one.role != pb.PROMPT_ROLE_SYSTEM]
