"""Markers of chats in stored text: found also where compatibility forms disguise them, and disarmed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from hummock.text.normalise import matches, substituted


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """The markers of a family of models. In `starts` "#" stands for a digit.

    Attributes:
        family: Who is trained with them.
        source: Where they are written down.
        tags: Names in "<...>" and "</...>", to the letter, whatever stands in front.
        starts: What such a name begins with, to the letter.
        brackets: Names in "[...]" and "[/...]", whatever stands in front.
        indexes: Likewise, unless they stand behind a word: an array's index may be called so.
        others: Markers with brackets of their own.
        blocks: What a block of code is called that a program runs or answers with.
        speakers: Who stands before a colon at the beginning of a line, in any case.
        labels: What does so too, and begins a fact as well.
        letters: Likewise in this case only: too short to be a label in another.
        headings: What does so behind two "#" or more, and alone is a word like others.
    """

    family: str
    source: str
    tags: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()
    brackets: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    speakers: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    letters: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()


TEMPLATES: Final = (
    Template(
        family="sentence tokenizers",
        source="SentencePiece and BERT: special_tokens_map.json",
        tags=("s", "bos", "eos", "pad", "unk", "mask"),
        starts=("mask:#", "extra_id_#", "reserved_#", "SPECIAL_#"),
        indexes=("CLS", "SEP", "MASK", "PAD", "UNK", "BOS", "EOS"),
    ),
    Template(
        family="Llama 2",
        source="meta-llama/llama: llama/generation.py",
        starts=("<SYS>>", "</SYS>>"),
        brackets=("INST", "SYS"),
    ),
    Template(
        family="Llama 3 and its tools",
        source="meta-llama/llama-models: prompt_format.md",
        starts=("function=", "parameter="),
    ),
    Template(
        family="Mistral",
        source="mistral-common: control tokens of tokenizers v1 to v13",
        brackets=(
            *("SYSTEM_PROMPT", "AVAILABLE_TOOLS", "TOOL_CALLS", "TOOL_RESULTS", "TOOL_CONTENT"),
            *("ARGS", "CALL_ID", "THINK", "MODEL_SETTINGS", "BEGIN_AUDIO"),
        ),
    ),
    Template(
        family="Gemma",
        source="google/gemma: formatting and function calling",
        tags=("start_of_turn", "end_of_turn", "start_of_image", "end_of_image", "start_of_audio", "end_of_audio"),
        blocks=("tool_code", "tool_output", "tool_outputs", "tool_call", "tool_response"),
        speakers=("gemini",),
        labels=("model",),
    ),
    Template(
        family="Idefics, SmolVLM",
        source="HuggingFaceM4: chat_template.json",
        tags=("end_of_utterance", "start_of_text", "end_of_text", "end_of_audio"),
    ),
    Template(
        family="Hermes, Qwen",
        source="NousResearch/Hermes-Function-Calling, Qwen: chat_template.jinja",
        tags=("tools", "tool_call", "tool_calls", "tool_response", "tool_responses", "think", "scratch_pad"),
        starts=("function=", "parameter="),
        speakers=("qwen", "hermes"),
    ),
    Template(
        family="Claude",
        source="Anthropic: documentation of text completions and of tool use",
        tags=("function_calls", "function_results", "thinking"),
        starts=("invoke name=", "parameter name=", "antml:"),
        speakers=("human", "assistant", "claude"),
    ),
    Template(
        family="ChatGLM, GLM",
        source="zai-org/ChatGLM3: PROMPT.md, GLM-4.5: chat_template.jinja",
        tags=("sop", "eop", "arg_key", "arg_value", "tool_call"),
        brackets=("gMASK", "sMASK"),
        labels=("observation",),
        letters=("问", "答", "問"),
    ),
    Template(
        family="MiniMax",
        source="MiniMaxAI/MiniMax-M2: chat_template.jinja",
        tags=("beginning_of_sentence", "end_of_sentence"),
        starts=("minimax:",),
        others=("]~b]", "]~!b[", "[e~["),
        speakers=("minimax",),
    ),
    Template(family="Seed", source="ByteDance-Seed/Seed-OSS: chat_template.jinja", starts=("seed:",)),
    Template(
        family="StarCoder and other completers of code",
        source="bigcode/starcoder2: special_tokens_map.json",
        tags=("fim_prefix", "fim_middle", "fim_suffix", "fim_pad", "file_sep", "repo_name"),
    ),
    Template(
        family="InternLM, Baichuan",
        source="internlm/internlm-chat-7b, baichuan-inc/Baichuan-13B-Chat: modeling files",
        tags=("eoh", "eoa", "eosys"),
        starts=("TOKENS_UNUSED_#",),
    ),
    Template(
        family="Alpaca, StableBeluga",
        source="tatsu-lab/stanford_alpaca: README, prompt templates",
        labels=("instruction", "response"),
        headings=("input", "output", "context", "prompt", "question", "answer", "task", "指令", "输入", "输出", "回答"),
    ),
    Template(
        family="Vicuna, OpenChat, Falcon, RWKV",
        source="lm-sys/FastChat: conversation.py",
        speakers=("user", "system", "gpt4 correct user", "gpt4 correct assistant", "falcon", "bot", "chatbot"),
        letters=("Q", "A"),
    ),
    Template(
        family="ReAct agents",
        source="Yao et al., ICLR 2023, and the prompts of agent frameworks",
        labels=("thought", "action", "action input", "final answer", "tool"),
    ),
    Template(
        family="OpenAI",
        source="OpenAI: Model Spec, roles of a conversation",
        speakers=("developer", "ai", "chatgpt", "gpt", "gpt-4", "gpt-5"),
    ),
    Template(
        family="other vendors",
        source="the names of their assistants",
        speakers=("deepseek", "llama", "kimi", "grok", "copilot", "mistral", "doubao", "豆包", "文心一言", "通义千问"),
    ),
    Template(
        family="chats in Chinese",
        source="FastChat and LLaMA-Factory: templates with Chinese roles",
        speakers=(
            *("用户", "用戶", "助手", "助理", "系统", "系統", "人类", "人類", "开发者", "開發者"),
            *("机器人", "機器人", "智能体", "系统提示", "系統提示", "系统消息"),
        ),
        labels=("工具", "模型", "指令", "观察", "思考"),
    ),
)
"""Those with "<|...|>", or its cousins, are not listed: whatever stands between such signs is disarmed."""


def _of(column: Callable[[Template], Iterable[str]]) -> str:
    """An alternation of all that a column of the table holds; the longest first."""
    found = {marker for template in TEMPLATES for marker in column(template)}
    ordered = sorted(found, key=lambda marker: (-len(marker), marker))
    return "|".join(re.escape(marker).replace(r"\#", r"\d").replace(r"\ ", r"\s") for marker in ordered)


# Our own: what delimits memories.
_OURS: Final = "(?i:recalled_memor(?:ies|y)|memory_index)"
_TOKENS: Final = f"(?:{_of(lambda row: row.tags)})>|{_of(lambda row: row.starts)}"
# What models read as a role, a call or its result. Types are called so too: behind a word "<" does not open a tag.
_CONVENTIONS: Final = (
    r"(?i:user(?:_\w{1,32})?\s{0,8}>|(?:(?:tool|function|start_of|end_of|reserved)_\w{1,32}|invoke|parameter"
    r"|(?:system|assistant|human)(?:[-:][\w-]{1,32})?)(?:\s{0,8}>|\s{1,8}\w{1,32}[=>]))"
)
# "<|…|>" of most templates, its full-width cousin, and "<name|>"; no operators.
_PIPES: Final = r"[|｜][^\s|>]|\w{1,32}\|>"

# The bounds keep the time linear, whatever stands behind a "<" or a "[".
_LESS: Final = "(?:<|&(?:amp;)*(?:lt|#65308|#65124);)"
_SLASH: Final = r"\s{0,8}/\s{0,8}"
_TAG = re.compile(
    rf"{_LESS}(?:(?={_PIPES}|/?(?:{_TOKENS})|\s{{0,8}}{_OURS}|{_SLASH}(?:{_OURS}|{_CONVENTIONS}))"
    rf"|(?P<type>)(?=\s{{0,8}}{_CONVENTIONS}))"
)
_OTHERS: Final = sorted({other for template in TEMPLATES for other in template.others})


def _behind(sign: str) -> str:
    """An alternation of what follows the sign in the markers with brackets of their own."""
    return "|".join(re.escape(other[1:]) for other in _OTHERS if other[0] == sign)


_BRACKET = re.compile(
    rf"(?:\[|&(?:amp;)*#(?:91|65339|65095);)(?:(?=/?(?:{_of(lambda row: row.brackets)})\]|{_behind('[')})"
    rf"|(?P<index>)(?=(?:{_of(lambda row: row.indexes)})\]))"
    rf"|(?:\]|&(?:amp;)*#(?:93|65341|65096);)(?={_behind(']')})"
)
# What stands in front of a generic's types and of an index. A look-behind in the patterns would make them slow.
_IN_CODE: Final = {"type": re.compile(r"[0-9A-Za-z_]\Z|::\Z"), "index": re.compile(r"[0-9A-Za-z_\])]\Z")}
# A run is taken whole whatever follows: begun at again at each of its characters it would take quadratic time.
_BLOCK = re.compile(rf"(?:`{{3,}}+|~{{3,}}+)(?:[^\S\n]{{0,8}}\\*(?={_of(lambda row: row.blocks)})(?P<called>))?")

# Characters of compatibility that stand for one of ASCII: full width, mathematical and circled letters, small forms.
_COMPATIBLE_RANGES: Final = (
    *((0xA0, 0x100), (0x17F, 0x180), (0x2B0, 0x2E0), (0x1D2C, 0x1DC0), (0x2070, 0x20A0), (0x2100, 0x2190)),
    *((0x2460, 0x2500), (0x2C7C, 0x2C7E), (0xFE30, 0xFE70), (0xFF01, 0xFF5F), (0x1D400, 0x1D800), (0x1F130, 0x1F16A)),
)
_LAST_ASCII: Final = 0x7E


def _folds() -> dict[int, str]:
    pairs = {}
    for first, end in _COMPATIBLE_RANGES:
        for code in range(first, end):
            folded = unicodedata.normalize("NFKC", chr(code))
            # An ampersand is left: what it begins is undone as it is written.
            if len(folded) == 1 and "!" <= folded <= chr(_LAST_ASCII) and folded != "&":
                pairs[code] = folded
    # White letters in circles and squares have no compatible form.
    for first in (0x1F150, 0x1F170):
        pairs.update({first + place: chr(ord("A") + place) for place in range(26)})
    return pairs


_FOLDS: Final = _folds()


def _class_of(codes: Iterable[int]) -> str:
    """A class of characters, as ranges: `re` tries single ones above U+FFFF one after the other."""
    ranges: list[list[int]] = []
    for code in sorted(codes):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "[" + "".join(f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in ranges) + "]"


# A full-width colon or comma disguises no tag, and Chinese is full of them.
_DISGUISE = re.compile(_class_of(code for code, folded in _FOLDS.items() if folded.isalnum() or folded in "<>[]|/_=~`"))

_LINE_BEGINNING: Final = 96
"""Characters of a line in which a speaker's name is looked for."""
COLONS: Final = ":：﹕︓∶꞉ː"
"""The colon, its forms of compatibility and what looks like it."""

_COLON: Final = "[:∶꞉ː]"
_HAS_COLON = re.compile(f"[{COLONS}]")
_CODE_INDENT: Final = r"(?! {0,3}\t| {4})"
"""A line that is indented by a tab or four spaces is code: no chat is written so, and keys and parameters are."""


def _spoken(names: str) -> re.Pattern[str]:
    return re.compile(
        rf"{_CODE_INDENT}[^\S\n]*\\*(?:[*_#>]{{0,4}}[^\S\n]{{0,2}}[\[【「『〔(]?[^\S\n]{{0,2}}(?:{names})"
        rf"[^\S\n]{{0,2}}[\]】」』〕)]?|#{{2,4}}[^\S\n]{{0,2}}(?i:{_of(lambda row: row.headings)}))"
        rf"[^\S\n]{{0,2}}[*_]{{0,4}}[^\S\n]{{0,2}}{_COLON}"
    )


_SPEAKERS: Final = f"(?i:{_of(lambda row: row.speakers)})"
_SPEAKER = _spoken(_SPEAKERS)
_SPOKEN = _spoken(f"(?i:{_of(lambda row: (*row.speakers, *row.labels))})|{_of(lambda row: row.letters)}")
_KEY = re.compile(r"[^\S\n]*[a-z]+(?:[_-][a-z]+)*:(?:\s|$)")
_WHITE = re.compile(r"[^\S\n]*")


def inert(text: str) -> str:
    """The text with markers disarmed that work anywhere in a line; what is disarmed already is so once more."""
    if text.isascii() or not _DISGUISE.search(text):
        return _inert_plain(text)
    text = _disarmed_as_folded(_TAG, text)
    return _BLOCK.sub(_uncalled, _disarmed_as_folded(_BRACKET, text))


def _inert_plain(text: str) -> str:
    has_entity = "&" in text
    if has_entity or "<" in text:
        text = substituted(_TAG, lambda found: _entity(found, found[0]), text)
    if has_entity or "[" in text or "]~" in text:
        text = substituted(_BRACKET, lambda found: _entity(found, found[0]), text)
    return _BLOCK.sub(_uncalled, text) if "```" in text or "~~~" in text else text


def _uncalled(fence: re.Match[str]) -> str:
    """The beginning of a block of code; with a backslash more where a program would run it by its name."""
    return fence[0] if fence["called"] is None else f"{fence[0]}\\"


def _disarmed_as_folded(pattern: re.Pattern[str], text: str) -> str:
    """The text, disarmed where the pattern finds a marker once characters of compatibility are what they stand for."""
    parts, end = [], 0
    for found in matches(pattern, text.translate(_FOLDS)):
        parts += [text[end : found.start()], _entity(found, text[found.start() : found.end()])]
        end = found.end()
    return "".join([*parts, text[end:]])


_NAMED_ENTITIES: Final = {"<": "&lt;"}


def _entity(found: re.Match[str], written: str) -> str:
    """What stands for the sign that was found, of which the text has `written`."""
    start = found.start()
    if found.lastgroup and _IN_CODE[found.lastgroup].search(found.string[max(start - 2, 0) : start]):
        return written
    if written[0] == "&" and not written.isascii():
        return written  # no reader takes it for an entity
    if len(written) == 1:
        return _NAMED_ENTITIES.get(written) or f"&#{ord(written)};"
    return "&amp;" + written[1:]


def has_marker(text: str) -> bool:
    """Whether the text holds a marker that works anywhere in a line."""
    return inert(text) != text


def speaks(text: str) -> bool:
    """Whether a line of the text begins as a speaker's. A label such as "Q:" or "Model:" is nobody."""
    return any(_SPEAKER.match(_folded_beginning(line)) for line in text.split("\n") if _HAS_COLON.search(line))


def is_spoken(line: str, *, keeps_keys: bool = False) -> bool:
    """Whether a line begins as a speaker's, backslashes included; `keeps_keys` leaves out the keys of settings."""
    if not _HAS_COLON.search(line) or not _SPOKEN.match(_folded_beginning(line)):
        return False
    return not (keeps_keys and _KEY.match(line))


def _folded_beginning(line: str) -> str:
    return line if line.isascii() else unicodedata.normalize("NFKC", line[:_LINE_BEGINNING])


def with_backslash(line: str) -> str:
    """The line with one backslash more behind the white space that it begins with."""
    white = _WHITE.match(line)
    end = white.end() if white else 0
    return f"{line[:end]}\\{line[end:]}"


def unspoken(text: str, *, keeps_keys: bool = False) -> str:
    """The text with a backslash before each line that begins as a speaker's."""
    if not _HAS_COLON.search(text):
        return text
    # Most lines hold no colon, and to look for one takes a fiftieth of the pattern's time.
    return "\n".join(
        with_backslash(line) if is_spoken(line, keeps_keys=keeps_keys) else line for line in text.split("\n")
    )
