"""What language models take for more than text: markers of chat templates, of roles and of tool calls.

Stored text keeps its letters and loses that meaning: "<" and "[" of such a marker are written "&lt;" and "&#91;", so
that no tokenizer finds it, and a backslash stands before a line that begins as a speaker's does. Both can be undone.
"""

from __future__ import annotations

import re
from typing import Final

_TAG_NAMES: Final = (
    # Our own: what delimits memories.
    "recalled_memories",
    "recalled_memory",
    "memory_index",
    # Tool calls and their results, thoughts.
    "tool_",
    "function_",
    "function=",
    "invoke",
    "antml:",
    "think",
    # Turns and roles.
    "start_of_",
    "end_of_",
    "system",
    "assistant[^a-z]",
    "human[^a-z]",
    "user[>_]",
    "reserved_",
    "sop>",
    "s>",
    "bos>",
    "eos>",
    "pad>",
    "unk>",
    "mask>",
    "sys>",
)
# "<|…|>" of most templates, its full-width cousin, and "<name|>".
_PIPES: Final = r"[|｜]|\w{1,32}\|>"
_BRACKET_NAMES: Final = "|".join(
    (
        *("INST", "SYS", "SYSTEM_PROMPT", "TOOL_CALLS", "AVAILABLE_TOOLS", "TOOL_RESULTS", "TOOL_CONTENT"),
        *("gMASK", "sMASK", "CLS", "SEP", "MASK", "PAD", "UNK", "BOS", "EOS"),
    )
)
_SPEAKERS: Final = (
    "human|user|assistant|system|developer|ai|bot|tool|observation|thought|action|action input|final answer"
    "|instruction|response|用户|用戶|助手|助理|系统|系統|人类|人類|工具|开发者|開發者"
)

# The bounds keep the time linear, whatever stands behind a "<" or a "[".
_TAG = re.compile(rf"(?:<|&(?:amp;)*lt;)(?={_PIPES}|\s{{0,8}}/?\s{{0,8}}(?:{'|'.join(_TAG_NAMES)}))", re.IGNORECASE)
_BRACKET = re.compile(rf"(?:\[|&(?:amp;)*#91;)(?=/?(?:{_BRACKET_NAMES})\])")
_ENTITIES: Final = {"<": "&lt;", "[": "&#91;"}

SPEAKER: Final = rf"(?i:[*_#>]{{0,4}}[^\S\n]{{0,2}}(?:{_SPEAKERS})[^\S\n]{{0,2}}[*_]{{0,4}}[^\S\n]{{0,2}}[:：])"
"""A pattern: how a line begins that reads as a speaker's."""


def inert(text: str) -> str:
    """The text with markers disarmed that work anywhere in a line; what is disarmed already is so once more."""
    return _BRACKET.sub(_entity, _TAG.sub(_entity, text))


def _entity(found: re.Match[str]) -> str:
    return _ENTITIES.get(found[0]) or "&amp;" + found[0][1:]
