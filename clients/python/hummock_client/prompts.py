"""Memory in the system prompt of a chat: what is asked for, and where it goes."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

from hummock_client.time_zone import named_zone
from hummock_client.v1 import context_service_pb2 as context_pb
from hummock_client.v1 import recall_pb2

WARMING_S = 30.0

_LOG = logging.getLogger("hummock_client")
_LONGEST_QUERY = 8192
"""Characters of a query; of a longer message the end is asked for, where the question stands most often."""

Message = TypeVar("Message", bound=Mapping[str, Any])


def query_of(messages: Sequence[Mapping[str, Any]]) -> str:
    """Text of the last user message, at most its last `_LONGEST_QUERY` characters; empty if there is none."""
    said = next((_text(one["content"]) for one in reversed(messages) if one["role"] == "user"), "")
    return said.strip()[-_LONGEST_QUERY:]


def system_of(messages: Sequence[Mapping[str, Any]]) -> str:
    """Text of the first system message; empty if there is none."""
    return next((_text(one["content"]) for one in messages if one["role"] == "system"), "")


def request(
    project: str,
    query: str,
    prompt: str = "",
    form: context_pb.RenderForm.ValueType = context_pb.RENDER_FORM_MEMORIES,
    preset: recall_pb2.Preset.ValueType = recall_pb2.PRESET_UNSPECIFIED,
    budget_tokens: int | None = None,
) -> context_pb.RenderRequest:
    """Asks for a system prompt with what the query recalls; a project that does not exist knows nothing."""
    return context_pb.RenderRequest(
        project=project,
        recall=recall_pb2.RecallRequest(query_text=query, preset=preset, time_zone=named_zone()),
        form=form,
        budget_tokens=budget_tokens,
        prompt=prompt,
        target=context_pb.PROMPT_TARGET_SYSTEM,
        allow_missing=True,
    )


def with_section(messages: Sequence[Message], reply: context_pb.RenderResponse) -> Sequence[Message]:
    """The messages with the finished system prompt; these very ones where there is nothing to say."""
    if not reply.text:
        return messages
    (prompt,) = reply.messages
    at = next((place for place, one in enumerate(messages) if one["role"] == "system"), None)
    if at is None:
        return [cast(Message, {"role": "system", "content": prompt.content}), *messages]
    changed = cast(Message, {**messages[at], "content": prompt.content})
    return [*messages[:at], changed, *messages[at + 1 :]]


def went_wrong(error: Exception) -> None:
    """Says why a prompt goes without memory."""
    _LOG.info("a prompt goes without memory: %s: %s", type(error).__name__, error)


def _text(content: str | Sequence[Mapping[str, Any]]) -> str:
    """Text of a message, also of one that is written in parts."""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part.get("type") == "text")
