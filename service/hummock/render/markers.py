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

_COLONS: Final = (":", "：")

SPEAKER: Final = rf"(?i:[*_#>]{{0,4}}[^\S\n]{{0,2}}(?:{_SPEAKERS})[^\S\n]{{0,2}}[*_]{{0,4}}[^\S\n]{{0,2}}[:：])"
"""A pattern: how a line begins that reads as a speaker's. It holds a colon."""


def beginning(pattern: str) -> re.Pattern[str]:
    """What finds the beginning of a line that reads so, white space in front and backslashes included.

    Its one group is the white space, behind which `escaped` puts one backslash more.
    """
    return re.compile(rf"(?=[^\S\n]*\\*(?:{pattern}))([^\S\n]*)")


_SPOKEN = beginning(SPEAKER)


def escaped(text: str, line_beginning: re.Pattern[str] = _SPOKEN) -> str:
    """The text with a backslash before each line that begins so; the pattern must not match a line without a colon."""
    if not _has_colon(text):
        return text
    # Most lines hold no colon, and to look for one takes a fiftieth of the pattern's time.
    return "\n".join(_with_backslash(line, line_beginning) if _has_colon(line) else line for line in text.split("\n"))


def speaks(text: str) -> bool:
    """Whether a line of the text begins as a speaker's."""
    return _has_colon(text) and any(_has_colon(line) and _SPOKEN.match(line) for line in text.split("\n"))


def _has_colon(text: str) -> bool:
    return _COLONS[0] in text or _COLONS[1] in text


def _with_backslash(line: str, line_beginning: re.Pattern[str]) -> str:
    found = line_beginning.match(line)
    return f"{found[1]}\\{line[found.end() :]}" if found else line


def inert(text: str) -> str:
    """The text with markers disarmed that work anywhere in a line; what is disarmed already is so once more."""
    return _BRACKET.sub(_entity, _TAG.sub(_entity, text))


def _entity(found: re.Match[str]) -> str:
    return _ENTITIES.get(found[0]) or "&amp;" + found[0][1:]
