"""What language models take for more than text: markers of chat templates, of roles and of tool calls.

Stored text keeps its letters and loses that meaning: "<" and "[" of such a marker are written "&lt;" and "&#91;", so
that no tokenizer finds it, and a backslash stands before a line that begins as a speaker's does. Both can be undone.
"""

from __future__ import annotations

import re
from typing import Final

# Our own: what delimits memories.
_OURS: Final = "(?i:recalled_memor(?:ies|y)|memory_index)"
# What tokenizers and parsers of replies know to the letter, whatever stands in front.
_TOKENS: Final = "|".join(
    (
        "(?:s|bos|eos|pad|unk|mask|sys|sop|think|thinking|tool_calls?|tool_responses?|function_calls|function_results)>",
        "(?:start|end)_of_(?:turn|text|image|audio|utterance)>",
        *("</?SYS>>", r"reserved_\d", "function=", "invoke name=", "antml:"),
    )
)
# What models read as a role, a call or its result. Types are called so too: behind a word "<" does not open a tag.
_CONVENTIONS: Final = (
    r"(?i:user(?:_\w{1,32})?\s{0,8}>|(?:(?:tool|function|start_of|end_of|reserved)_\w{1,32}|invoke"
    r"|(?:system|assistant|human)(?:[-:][\w-]{1,32})?)(?:\s{0,8}>|\s{1,8}\w{1,32}=))"
)
# "<|…|>" of most templates, its full-width cousin, and "<name|>"; no operators.
_PIPES: Final = r"[|｜][^\s|>]|\w{1,32}\|>"
_BRACKETS: Final = "INST|SYS|SYSTEM_PROMPT|TOOL_CALLS|AVAILABLE_TOOLS|TOOL_RESULTS|TOOL_CONTENT|gMASK|sMASK"
# What an index into an array may be called.
_BRACKETS_OF_WORDS: Final = "CLS|SEP|MASK|PAD|UNK|BOS|EOS"
_SPEAKERS: Final = (
    "human|user|assistant|system|developer|ai|bot|tool|observation|thought|action|action input|final answer"
    "|instruction|response|用户|用戶|助手|助理|系统|系統|人类|人類|工具|开发者|開發者"
)

# The bounds keep the time linear, whatever stands behind a "<" or a "[".
_LESS: Final = "(?:<|&(?:amp;)*lt;)"
_SLASH: Final = r"\s{0,8}/\s{0,8}"
_TAG = re.compile(
    rf"{_LESS}(?:(?={_PIPES}|/?(?:{_TOKENS})|\s{{0,8}}{_OURS}|{_SLASH}(?:{_OURS}|{_CONVENTIONS}))"
    rf"|(?P<type>)(?=\s{{0,8}}{_CONVENTIONS}))"
)
_BRACKET = re.compile(rf"(?:\[|&(?:amp;)*#91;)(?:(?=/?(?:{_BRACKETS})\])|(?P<index>)(?=(?:{_BRACKETS_OF_WORDS})\]))")
# What stands in front of a generic's types and of an index. A look-behind in the patterns would make them slow.
_IN_CODE: Final = {"type": re.compile(r"[0-9A-Za-z_]\Z|::\Z"), "index": re.compile(r"[0-9A-Za-z_\])]\Z")}
_ENTITIES: Final = {"<": "&lt;", "[": "&#91;"}

_COLONS: Final = (":", "：")

_SPEAKER: Final = rf"(?i:[*_#>]{{0,4}}[^\S\n]{{0,2}}(?:{_SPEAKERS})[^\S\n]{{0,2}}[*_]{{0,4}}[^\S\n]{{0,2}}[:：])"

SPOKEN_LINE: Final = rf"(?! {{0,3}}\t| {{4}})[^\S\n]*\\*{_SPEAKER}"
"""A pattern: how a line begins that reads as a speaker's, backslashes included. It holds a colon.

A line that is indented by a tab or four spaces is code: no chat is written so, and keys and parameters are.
"""


def beginning(pattern: str) -> re.Pattern[str]:
    """What finds the beginning of a line that reads so, white space in front and backslashes included.

    Its one group is the white space, behind which `escaped` puts one backslash more.
    """
    return re.compile(rf"(?={pattern})([^\S\n]*)")


_SPOKEN = beginning(SPOKEN_LINE)


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
    has_entity = "&" in text
    if has_entity or "<" in text:
        text = _TAG.sub(_entity, text)
    return _BRACKET.sub(_entity, text) if has_entity or "[" in text else text


def _entity(found: re.Match[str]) -> str:
    start = found.start()
    if found.lastgroup and _IN_CODE[found.lastgroup].search(found.string[max(start - 2, 0) : start]):
        return found[0]
    return _ENTITIES.get(found[0]) or "&amp;" + found[0][1:]
