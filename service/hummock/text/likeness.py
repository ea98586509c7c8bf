"""Decides which texts are equal, versions of one thing, or repeats of each other or of a question.

Two drafts are one memory if every field is equal, with texts compared as written: `identity` is the one definition for
all callers and stores. The forms used to find, rank and show texts fold more and do not matter there.

Similar texts may be versions of one thing, of which a reader wants the best, or siblings, of which it wants all: four
environments' addresses, the rows of a table, functions of one family. Vectors do not distinguish these cases; names do
(`name_of`).
"""

from __future__ import annotations

import re
import struct
import zlib
from hashlib import blake2b
from pathlib import PurePosixPath
from typing import Final

import msgspec
from msgspec.structs import astuple

from hummock.core.memory import CodeFragment, Draft, LearningRecord, Memory, MemoryIndex, Origin
from hummock.text.normalise import CJK, code, nfkc, normal_hash, prose, short_hash, with_plain_marks

_FLOAT = struct.Struct("<f")


def identity(told: Draft | Memory, index: MemoryIndex) -> bytes:
    """Return 16 bytes that are equal for equal memories of one kind and one origin.

    The id is not part of it, since the server makes one if none is given. Neither is the create time, which is matched
    separately if given (`ports.TextKey`). The memory has its payload, the index the derived fields too.
    """
    payload = told.payload
    if payload is None:
        raise ValueError("the memory was read without its payload")
    said = (
        written(payload.content),
        written(payload.raw),
        () if payload.detail is None else [_written(part) for part in astuple(payload.detail)],
        written(index.title),
        written(index.summary),
        sorted(index.tags),
        told.session_id,
        told.speaker,
        told.writer,
        told.metadata,
        told.event_time,
        told.expire_time,
        told.emotion_label,
        # The precision on the wire.
        _FLOAT.pack(told.trust),
        sorted(told.supersedes),
        told.source_hash,
        # Nothing for others, so that stored values stay valid.
        *((True,) if told.pinned else ()),
    )
    return blake2b(msgspec.msgpack.encode(said), digest_size=16).digest()


def written(text: str) -> str:
    """The text with LF for line ends and without outer white space.

    The first line of several keeps its indentation, which says how far the others are indented.
    """
    plain = text.replace("\r\n", "\n").replace("\r", "\n").rstrip()
    if "\n" not in plain.lstrip():
        return plain.lstrip()
    first = len(plain) - len(plain.lstrip())
    return plain[plain.rfind("\n", 0, first) + 1 :]


def _written(part: str | int | tuple[str, ...]) -> str | int | tuple[str, ...]:
    return written(part) if isinstance(part, str) else part


LONGER_THAN_A_ROW: Final = 160
"""Characters. A shorter text on one line may be a row of a table, whose rows share one title."""

_HEAD = 2048
"""Characters at the beginning of a fragment in which its signature stands."""

_JOINT = re.compile("[.:#]")
_WORD_CHARACTER = re.compile(r"\w")
_PARAMETERS = re.compile(r"\s*(?:<[^<>()]{0,200}>\s*)?\(([^()]*(?:\([^()]*\)[^()]*)*)\)")

_MARK = re.compile(
    r"(?i:[\s_.\-]*(?:\((?:v|version\s*)?\d+(?:\.\d+)*\)|(?<![a-z])(?:v|version[\s_\-]?)\d+(?:\.\d+)*)(?![a-z0-9]))"
    r"|(?<=[a-z])V\d+(?![A-Za-z0-9])|[_.\-](?:old|new|legacy|copy|backup|bak|orig|draft|final)(?![A-Za-z0-9])"
    r"|\s*第[\d一二三四五六七八九十]+版",
    re.ASCII,
)


def name_of(memory: Memory) -> str:
    """Return the normalised name, without version marks (`_v2`, "(3)", 第二版); empty without a name.

    It is the path and the symbol of code, the question of a learning record, else the title that the caller gave,
    unless the text is so short that it may be a row of a table. Without either it is the name of the file or the id, if
    that has a version mark. Of one file the indexer keeps no old versions, so that two of its fragments of one symbol
    are overloads: there the parameters belong to the name.
    """
    payload = memory.payload
    if payload is None:
        return ""
    match payload.detail:
        case CodeFragment(path=path, symbol=symbol) if symbol.strip():
            # One symbol in two files may be two things: the blocking and the asynchronous form of a call.
            parameters = _parameters(symbol, payload.content) if memory.origin is Origin.INDEXER else ""
            return f"{prose(_MARK.sub('', path))} {_unmarked(symbol)}{parameters}"
        case CodeFragment(path=path):
            return _if_marked(path)
        case LearningRecord(question=question):
            return prose(question)
        case _:
            title = memory.index.title
            if title and _is_own(title, payload.content) and _says_enough(payload.content):
                return _unmarked(title)
            return _if_marked(memory.id)


def _parameters(symbol: str, content: str) -> str:
    """What stands in parentheses behind the first mention of a symbol's last part, without spaces; empty if nothing."""
    name, head = _JOINT.split(symbol)[-1], content[:_HEAD]
    # A pattern with the name in it would be compiled for each symbol, which takes longer than the rest of a row.
    at = head.find(name)
    while at >= 0:
        found = None if at and _WORD_CHARACTER.match(head, at - 1) else _PARAMETERS.match(head, at + len(name))
        if found:
            return f"({''.join(found[1].split())})"
        at = head.find(name, at + 1)
    return ""


def _is_own(title: str, content: str) -> bool:
    """Whether a title was given, and not taken from the first line of the text."""
    return not " ".join(content.split()).startswith(title.removesuffix("…"))


def _says_enough(content: str) -> bool:
    text = content.strip()
    return len(text) > LONGER_THAN_A_ROW or "\n" in text


def _unmarked(name: str) -> str:
    return prose(_MARK.sub("", name)) or prose(name)


def _if_marked(path: str) -> str:
    """Return the last part of a path without its marks; empty if it has none, or is one."""
    if not _MARK.search(path):
        return ""
    last = PurePosixPath(path).name
    return prose(_MARK.sub("", last)) if _MARK.search(last) else ""


MOST_FOLDED: Final = 2048
"""Characters. A longer text is a duplicate or an echo only if it is equal as written."""

_END_CHARACTERS = 120
"""At the end of a text that may be marks and faces."""

_JOINERS = "\ufe0f\u200d\U0001f3fb-\U0001f3ff"
_GLAD = (
    f"{_JOINERS}\u263a\u2665\u2728\u2763\u2764\U0001f339\U0001f389\U0001f38a\U0001f44b\U0001f44f\U0001f493"
    "\U0001f495-\U0001f49f\U0001f4aa\U0001f5a4\U0001f600-\U0001f60e\U0001f617-\U0001f61d\U0001f638-\U0001f63b\U0001f63d"
    "\U0001f642\U0001f647-\U0001f64c\U0001f64f\U0001f90d\U0001f90e\U0001f917\U0001f920\U0001f923\U0001f924\U0001f929"
    "\U0001f970\U0001f973\U0001f9e1\U0001fa75-\U0001fa77"
)
_GLUM = (
    "\u2639\U0001f494\U0001f60f-\U0001f616\U0001f61e-\U0001f637\U0001f63c\U0001f63e-\U0001f641\U0001f643\U0001f644"
    "\U0001f64d\U0001f64e\U0001f90f-\U0001f916\U0001f921\U0001f922\U0001f925-\U0001f928\U0001f92a-\U0001f92f"
    "\U0001f971\U0001f972\U0001f974-\U0001f97a\U0001f9d0\U0001fae0-\U0001faef"
)
"""Sadness, anger and doubt."""

_FACES = _GLAD + _GLUM
"""What adds a feeling and no fact, as ✅, 👎 or 🦄 do."""

_ADORNS = f"{_FACES}\u2600-\u2604\U0001f300-\U0001f3f0"
"""Emoji after a final mark that add no fact: weather, plants, food, feasts."""

# Begins with a plain class, so that the search skips ahead.
_EMOTICON = (
    r"[:;=<^TQxXoO>-](?<![A-Za-z0-9(\[,=].)(?:(?<=[:;=])[-'^o]?[()\[\]DPpOo*/\\|]+|(?<=<)3+|(?<=\^)[_.o-]?\^"
    r"|(?<=[TQ])[_.A][TQ]|(?<=[xX])D+|(?<=[oO>])[_.]+[oO<]|(?<=-)_-)(?![A-Za-z0-9])"
)
_EMOTICONS = re.compile(_EMOTICON)
# A class of few ranges is looked through several times as fast.
_FACE_RUNS = re.compile(
    f"[\u200d\u2639\u263a\u2665\u2728\u2763\u2764\ufe0f\U0001f300-\U0001faff](?<=[{_FACES}])[{_FACES}]*"
)
_GLUM_FACE = re.compile(rf"[{_GLUM}]|[:;=][-'^o]?[(\[/\\|]|[TQ][_.A][TQ]|[oO>][_.]+[oO<]|-_-")
_TAIL = re.compile(rf"(?>[!?.。]\s*+[{_ADORNS}]++|[!?。\s]|(?<=[^\s.~])[.~]++|{_EMOTICON}|[{_FACES}])++\Z")
"""Final marks and faces, and what adorns a mark. A dot or a tilde behind a space may be a path."""

_BEFORE_TAIL = re.compile(r"(?s:.*)[^\W_ADOPQTXopx3]")
"""Up to the last letter or digit that is no part of an emoticon: a tail begins behind it."""

_SIGN_CHARACTERS = r"""\x00-\x1f"#$%&*+/<=>@\[\\\]^_`{|}“”„«»「」『』"""
_SIGNS = re.compile(rf"[{_SIGN_CHARACTERS}'-](?:(?<=[{_SIGN_CHARACTERS}])|(?<!\w['-])(?=\S)|(?<=\S')(?!\w))")
"""What code, addresses, quotations and formulas are written with; there every space and capital counts."""

_CODES = re.compile(r"\d|[A-Z]{2}|[a-z][A-Z]")
"""Possible numbers, keys or names; next to them two spaces may be intended."""

_SPACE_IN_CJK = re.compile(rf" (?:(?<=[{CJK}] )|(?=[{CJK}]))")


def forms(text: str) -> tuple[str, str]:
    """Return two normal forms: texts equal in the first are duplicates, a turn equal in the second is an echo.

    Shown once: prose is equal whatever its final marks, faces and runs of spaces are, the width of its punctuation and
    the capital that it begins with. A question stays one, and a sad face is no glad one. Text with signs, several
    lines or characters of compatibility is equal only as it is written.

    Echo: folded, without faces, emoticons and final marks. What has signs in it keeps its case. A text that is nothing
    but marks and faces is its own form.
    """
    exact = written(text)
    if len(exact) > MOST_FOLDED:
        return exact, exact
    stem, tail = _parted(exact)
    is_plain = _is_plain(stem)
    echo = _echo(stem, is_plain=is_plain) or prose(text)
    if not stem or not is_plain or ("  " in stem and _CODES.search(stem)):
        return exact, echo
    spaced = " ".join(code(stem).split())
    together = _without_space_in_cjk(spaced)
    # A space may be what keeps a dash from being a sign, or a tilde from being a final mark.
    if together != spaced and (_SIGNS.search(together) or _parted(together)[1]):
        return exact, echo
    words = together.split()
    first = words[0]
    if first in ("A", "I") or first[1:].islower():
        words[0] = first[0].lower() + first[1:]
    return " ".join(words) + ("?" if "?" in tail else "") + (" :(" if _GLUM_FACE.search(tail) else ""), echo


def echo_and_stem(text: str) -> tuple[str, str]:
    """The second of the `forms` of a text, and the text in plain punctuation without its final marks and faces."""
    exact = written(text)
    stem, _ = _parted(exact)
    return exact if len(exact) > MOST_FOLDED else _echo(stem, is_plain=_is_plain(stem)) or prose(text), stem


def without_faces(text: str) -> str:
    """Remove all faces and emoticons, and the final marks."""
    return _faceless(_parted(written(text))[0])


def likeness(text: str, metadata: object, *, is_code: bool) -> tuple[int, int]:
    """What a row holds: the hash of its echo, 64 bits, and 32 bits that differ where both of one echo are shown.

    These are 0 of plain text of nobody's. Code is its own form.
    """
    shown, echo = ("", code(text)) if is_code else forms(text)
    told = "" if is_code or shown == echo else shown
    apart = zlib.crc32(repr((told, metadata)).encode("utf-8", "surrogatepass")) or 1 if told or metadata else 0
    return short_hash(normal_hash(echo)), apart


def _is_plain(stem: str) -> bool:
    return not _SIGNS.search(stem) and nfkc(stem) == code(stem)


def _parted(exact: str) -> tuple[str, str]:
    """The text in plain punctuation, and its final marks and faces."""
    plain = exact if exact.isascii() else with_plain_marks(exact).replace("\u00a0", " ").replace("〜", "~")
    head, end = plain[:-_END_CHARACTERS], plain[-_END_CHARACTERS:]
    before = _BEFORE_TAIL.match(end)
    found = _TAIL.search(end, before.end() if before else 0)
    return (head + end[: found.start()], found[0]) if found else (plain, "")


def _echo(stem: str, *, is_plain: bool) -> str:
    bare = _faceless(stem)
    if is_plain:
        return _without_space_in_cjk(prose(bare))
    has_sign = _SIGNS.search
    words = [
        (word.lower() if word.isalnum() or not has_sign(word) else word) if word.isascii() else _folded(word)
        for word in bare.split()
    ]
    return _without_space_in_cjk(" ".join(words))


def _faceless(text: str) -> str:
    bare = _EMOTICONS.sub(" ", text)
    return bare if bare.isascii() else _FACE_RUNS.sub(" ", bare)


def _folded(word: str) -> str:
    """The word as prose; as it is written if it has a sign, or a number such as ² that folding makes another one."""
    numbers = filter(str.isnumeric, word)
    if _SIGNS.search(word) or any(not (one.isdecimal() or one.isalpha()) for one in numbers):
        return word
    return prose(word)


def _without_space_in_cjk(text: str) -> str:
    """The text without single spaces beside characters that need none."""
    return text if text.isascii() else _SPACE_IN_CJK.sub("", text)
