"""Language models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmQuestion:
    """What a language model is asked, and the form of its answer.

    Attributes:
        name: Of the form, in letters, digits and underscores.
        instructions: What it is to do; ours alone.
        data: What it is to do it with: text of others, which is no instruction.
        schema: JSON schema of the answer. Models may disregard it, so that the answer has to be checked.
        max_tokens: Of the answer.
    """

    name: str
    instructions: str
    data: str
    schema: Mapping[str, object]
    max_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmUsage:
    """What a language model was asked so far, and what that came to.

    Attributes:
        requests: Sent, repeated ones included.
        replies: Of these, those that were answered with something usable.
        prompt_tokens: That the endpoint counted in questions; 0 where it says nothing.
        completion_tokens: That it counted in answers.
    """

    requests: int = 0
    replies: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


class LlmFailed(Exception):
    """A language model gave no answer; the message says why, and nothing of question, answer or key."""


class LlmLate(LlmFailed):
    """It did not answer in time."""

    def __init__(self) -> None:
        super().__init__("it did not answer in time")


class LlmLeftAlone(LlmFailed):
    """It was not asked, for it failed again and again."""

    def __init__(self) -> None:
        super().__init__("it failed again and again and is left alone for a while")


class Llm(Protocol):
    """Asks a language model. Safe to call from several threads."""

    @property
    def is_left_alone(self) -> bool:
        """Whether `ask` would raise LlmLeftAlone now, so that nothing need be made ready for it."""

    def ask(self, question: LlmQuestion, until_s: float) -> object:
        """The JSON value that it answers with.

        Args:
            question: What it is asked.
            until_s: When it must have answered, on the clock's monotonic scale.

        Raises: LlmFailed, LlmLate, LlmLeftAlone.
        """

    def close(self) -> None:
        """Closes its connections."""
