"""Counts what a language model is asked, and the tokens that its endpoint says it took."""

from __future__ import annotations

from dataclasses import replace
from threading import Lock

from hummock.ports import LlmUsage

_MOST_TOKENS = 1 << 32
"""Of one reply; what is more is no count."""


class Meter:
    """Safe to use from several threads."""

    def __init__(self) -> None:
        self._usage = LlmUsage()
        self._lock = Lock()

    @property
    def usage(self) -> LlmUsage:
        """So far."""
        return self._usage

    def asked(self) -> None:
        """A question was sent."""
        with self._lock:
            self._usage = replace(self._usage, requests=self._usage.requests + 1)

    def answered(self, reply: object) -> None:
        """An answer came, usable or not: its tokens were paid for."""
        with self._lock:
            self._usage = replace(
                self._usage,
                prompt_tokens=self._usage.prompt_tokens + _tokens(reply, "prompt_tokens"),
                completion_tokens=self._usage.completion_tokens + _tokens(reply, "completion_tokens"),
            )

    def was_usable(self) -> None:
        """The last answer was."""
        with self._lock:
            self._usage = replace(self._usage, replies=self._usage.replies + 1)


def _tokens(reply: object, name: str) -> int:
    usage = reply.get("usage") if isinstance(reply, dict) else None
    count = usage.get(name) if isinstance(usage, dict) else None
    return count if isinstance(count, int) and not isinstance(count, bool) and 0 <= count < _MOST_TOKENS else 0
