"""Stored text as data: it can neither close nor forge what delimits it, nor what a language model obeys."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from hummock.core.memory import Memory, Origin
from hummock.core.render import MemoryMark
from hummock.render.section import ALL_LABELS

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


ENVELOPE: Final = "recalled_memories"
ENTRY: Final = "recalled_memory"
INDEX: Final = "memory_index"

# Everything that some reader takes for the end of a line.
_LINE_ENDS = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# Beside controls what is drawn as nothing: marks of direction, spaces without width, tag characters. A person does not
# see them, a model does, and a pattern that looks for the beginning of a line finds them in front of it.
_UNSEEN = (
    "\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f"
)
_CONTROLS = re.compile(f"[{_UNSEEN}]")
# Scripts and emoji need what joins letters and what selects their shape. Behind ASCII, white space, a full-width sign
# or nothing it does nothing but hide a marker, a keycap excepted; behind a Chinese character it hides a label of ours,
# unless it selects the variant of an ideograph (U+E0100 and up), as names need it.
_JOINERS = "\u034f\u200c\u200d"
_SELECTORS = "\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
_STRAY = re.compile(
    rf"(?:^|(?<=[\x00-\x7f\s\uff00-\uffef]))[{_JOINERS}{_SELECTORS}]+(?!\u20e3)|(?<=[\u3400-\u9fff])[{_JOINERS}\ufe00-\ufe0f]+"
)
_SURROGATES = re.compile("[\ud800-\udfff]")
# Most texts have none of the four, which one search says.
_UNCLEAN = re.compile(f"[\r\v\f\u2028\u2029\ud800-\udfff{_UNSEEN}{_JOINERS}{_SELECTORS}]")

_BACKTICKS = re.compile("`+")
_FENCE = re.compile(r" {0,3}(?:(`{3,})[^`]*$|(~{3,}))")
_FENCE_END = re.compile(r" {0,3}(`+|~+)[ \t]*$")
_LABELS = "|".join(re.escape(label) for label in ALL_LABELS)
_RULE = r"(?:-[ \t]*){3,}$|(?:=[ \t]*){3,}$|(?:\*[ \t]*){3,}$|(?:_[ \t]*){3,}$"
# A comment in a block of code looks like a title and is left alone; "\# " is escaped so that both can be told apart.
_MARKS = rf"\s*\\*(?:#{{2,}}|{_RULE}|{_LABELS})|\s*\\+#\s"
_MARKED_CODE = re.compile(rf"^(?={_MARKS})(\s*)")
_MARKED = re.compile(rf"^(?={_MARKS}|{SPOKEN_LINE})(\s*)")
_TITLE = re.compile(r"^(?=\s*#\s)(\s*)")
_ENTRY_LINE = r"[^\S\n]*\\*(?:\d+\. \[ID:|> Summary:)"
_LISTED_CODE = beginning(_ENTRY_LINE)
_LISTED = beginning(f"{_ENTRY_LINE}|{SPOKEN_LINE}")
# Begins no heading, rule, title or block of code, and names no speaker and no label: most lines do not.
_PLAIN_LINE = re.compile(r"\s*(?:[^\s\\#\-=*_`~][^:：]*)?$")
_UNPLAIN_ID = re.compile(rf'[\]\\"<>&\s{_UNSEEN}\u2028\u2029\ud800-\udfff]|{_STRAY.pattern}')
_UNPLAIN = rf"\[\t\n\x0b-\x0d\u2028\u2029\ud800-\udfff{_UNSEEN}"
_UNPLAIN_ATTRIBUTE = re.compile(rf"[{_UNPLAIN}][{_JOINERS}{_SELECTORS}]*|{_STRAY.pattern}")
# Most attributes have none of what is escaped in one, which one search says.
_ESCAPED_ATTRIBUTE = re.compile(rf"[&<>\"'{_UNPLAIN}{_JOINERS}{_SELECTORS}]")


def clean(text: str) -> str:
    """The text without what cannot be seen; every kind of line end is a newline, a lone surrogate is U+FFFD."""
    if not _UNCLEAN.search(text):
        return text
    seen = _CONTROLS.sub("", _LINE_ENDS.sub("\n", text))
    return _SURROGATES.sub("\ufffd", _STRAY.sub("", seen))


def one_line(text: str) -> str:
    """The cleaned text with each run of white space one space."""
    return " ".join(clean(text).split())


def inline(text: str) -> str:
    """One line that stands behind something of ours."""
    return inert(one_line(text))


def heading(text: str) -> str:
    """One line that stands behind the "#" of a heading, which a speaker's name must not follow."""
    return escaped(inline(text))


def clip(text: str, limit_characters: int) -> str:
    """The beginning of a text as one line; an ellipsis ends what was cut, within the limit."""
    line = one_line(text)
    return line if len(line) <= limit_characters else line[: limit_characters - 1].rstrip() + "…"


def prose(text: str) -> str:
    """Cleaned text that stands below a heading; a code block that it leaves open is closed."""
    lines, fence = [], ""
    for line in inert(clean(text)).split("\n"):
        if _PLAIN_LINE.match(line):
            lines.append(line)
            continue
        fence = _fence_after(line, fence)
        if fence:
            lines.append(_MARKED_CODE.sub(r"\1\\", line))
            continue
        marked = _MARKED.sub(r"\1\\", line)
        lines.append(marked if marked != line else _TITLE.sub(r"\1\\", line))
    return "\n".join([*lines, fence] if fence else lines)


def _fence_after(line: str, fence: str) -> str:
    """The fence that is open after a line, given the one that was open before it; empty for none."""
    if fence:
        end = _FENCE_END.match(line)
        return "" if end and end[1].startswith(fence) else fence
    found = _FENCE.match(line)
    return (found[1] or found[2]) if found else ""


def open_fence(lines: Sequence[str]) -> str:
    """The fence of the code block that is open after these lines; empty for none."""
    fence = ""
    for line in lines:
        fence = _fence_after(line, fence)
    return fence


def opens_block(text: str) -> bool:
    """Whether the text begins with a code block."""
    return _FENCE.match(text.partition("\n")[0]) is not None


def fenced(code: str) -> str:
    """Cleaned code between fences that it cannot close."""
    body = inert(clean(code).strip("\n"))
    fence = "`" * max(3, 1 + max((len(run) for run in _BACKTICKS.findall(body)), default=0))
    return f"{fence}\n{body}\n{fence}"


def quoted(text: str, *, is_code: bool = False) -> str:
    """Cleaned text that stands between our tags."""
    return escaped(inert(clean(text)), _LISTED_CODE if is_code else _LISTED)


def disarmed(text: str, *, is_code: bool = False) -> str:
    """Cleaned text for lines whose beginnings are the caller's."""
    body = inert(clean(text))
    return body if is_code else escaped(body)


def listed(text: str, *, is_code: bool = False) -> str:
    """Cleaned text that stands behind the mark of a list; its other lines are indented."""
    return disarmed(text, is_code=is_code).strip("\n").replace("\n", "\n  ")


def attribute(text: str) -> str:
    """The text, every character of it, as an attribute's value with its quotes."""
    if not _ESCAPED_ATTRIBUTE.search(text):
        return f'"{text}"'
    return '"' + _UNPLAIN_ATTRIBUTE.sub(_entities, html.escape(text)) + '"'


def _entities(found: re.Match[str]) -> str:
    return "".join(f"&#{ord(character)};" for character in found[0])


def string(text: str) -> str:
    """A line of text between double quotes; quotes and backslashes in it have a backslash before them."""
    escaped = inert(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def parenthesised(text: str) -> str:
    """A line of text between parentheses; those in it, and backslashes, have a backslash before them."""
    return "(" + re.sub(r"([\\()])", r"\\\1", inert(text)) + ")"


def listed_id(memory_id: str) -> str:
    """An id for the index: as it is, or as a JSON string where it holds what could be mistaken."""
    if not _UNPLAIN_ID.search(memory_id):
        return memory_id
    quoted_id = json.dumps(memory_id, ensure_ascii=not memory_id.isprintable())
    return quoted_id.replace("<", "\\u003c").replace("]", "\\u005d").replace("&", "\\u0026")


def bracketed_id(memory_id: str) -> str:
    """An id behind something of ours, as the index has it."""
    return f"[ID: {listed_id(memory_id)}]"


_STALE_DAYS: Final = 90
_VERIFIED_TRUST: Final = 0.5
_SECONDS_A_DAY: Final = 86_400.0

UNVERIFIED: Final = "[Unverified]"
_SHOWN: Final = {MemoryMark.STALE: "(Warning: Old)", MemoryMark.UNVERIFIED: UNVERIFIED}


class _Order(NamedTuple):
    """An order to a model: `pattern` finds it, and a text with none of `triggers`, in lower case, holds none."""

    triggers: tuple[str, ...]
    pattern: re.Pattern[str]


def _order(triggers: str, pattern: str) -> _Order:
    return _Order(tuple(triggers.split("|")), re.compile(pattern, re.IGNORECASE))


# Orders to a model rather than facts. No list is complete: the mark is a hint, what protects is that the text is data.
_ORDERS: Final = (
    _order(
        "ignore|disregard|forget|override|bypass",
        r"\b(?:ignore|disregard|forget|override|bypass)\b.{0,40}"
        r"\b(?:instructions?|prompts?|rules|guidelines|above|previous)\b",
    ),
    _order(" now", r"\byou (?:are|must|will) now\b"),
    _order("prompt", r"\b(?:system|developer) prompt\b"),
    _order("new instruction", r"\bnew instructions?\b"),
    _order("the user", r"\b(?:do not|don't|never) (?:tell|inform|mention (?:this )?to) the user\b"),
    _order(
        "the following|the tool|the command|the function",
        r"\b(?:call|use|run|execute|invoke) the (?:following )?(?:tool|command|function)\b",
    ),
    _order(
        "忽略|无视|忘记|忘掉|不要理会|绕过",
        "(?:忽略|无视|忘记|忘掉|不要理会|绕过).{0,20}(?:指令|指示|提示词?|规则|要求|设定)",
    ),
    _order("你现在是|系统提示", "你现在是|系统提示"),
    _order("从现在", "从现在(?:开始|起).{0,6}你"),
    _order("告诉用户|告知用户|透露", "(?:不要|别|不得)(?:告诉|告知|透露给?)用户"),
    _order("以下|下面", "(?:执行|调用|运行)(?:以下|下面的?)(?:命令|工具|函数)"),
)


def marks_of(memory: Memory, as_of: float) -> tuple[MemoryMark, ...]:
    """What its record says about it; `as_of` is the "now" in Unix seconds."""
    marks = []
    # What the indexer keeps is as new as its file.
    if memory.origin is not Origin.INDEXER and as_of - memory.update_time > _STALE_DAYS * _SECONDS_A_DAY:
        marks.append(MemoryMark.STALE)
    if is_unverified(memory):
        marks.append(MemoryMark.UNVERIFIED)
    return tuple(marks)


def is_unverified(memory: Memory) -> bool:
    """Whether nobody vouches for it."""
    return memory.trust < _VERIFIED_TRUST


def shown_marks(memory: Memory, as_of: float) -> str:
    """The marks as they stand in a text, each behind a space; empty for none."""
    return "".join(f" {_SHOWN[mark]}" for mark in marks_of(memory, as_of))


def reading_as_orders(texts: Sequence[str], are_code: Sequence[bool]) -> list[bool]:
    """Whether each text tells a model what to do, or imitates the markers of a chat; no line of code is a speaker's."""
    joined = "\n".join(texts)
    cleaned = clean(joined)
    if cleaned != joined:
        texts = [clean(text) for text in texts]
    # To look for a trigger is quick, and most are nowhere.
    lowered = cleaned.lower()
    orders = [order for order in _ORDERS if _has_trigger(lowered, order)]
    return [
        _gives(text, orders) or (not is_code and speaks(text)) or inert(text) != text
        for text, is_code in zip(texts, are_code, strict=True)
    ]


def _gives(text: str, orders: Sequence[_Order]) -> bool:
    return any(_has_trigger(text.lower(), order) and order.pattern.search(text) for order in orders)


def _has_trigger(lowered: str, order: _Order) -> bool:
    # One character is found five to fifty times as fast as two.
    return any(one[0] in lowered and one in lowered for one in order.triggers)
