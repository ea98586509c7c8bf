"""Whether an answer says anything that no memory says, and which of its sentences only quote."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final

from hummock.core.candidates import GroupQuery
from hummock.core.deadline import NO_DEADLINE, Deadline
from hummock.core.memory import DomainKnowledge, Filter, LearningRecord, Memory, Origin
from hummock.ports.store import Snapshot, Store
from hummock.text.analyzer import query_terms
from hummock.text.keywords import phrases
from hummock.text.normalise import CJK, code, prose

LEAST_SHARED: Final = 0.6
"""Least share of a sentence's shingles that a source sentence must hold for a near-quote.

On our list of near-quotes the other conditions decide: from .1 to 1 no sentence that adds a fact passes for a quote.
Below .4 a sentence may leave out half of the other, and with it a condition."""

MOST_SOURCE_CHARACTERS = 262_144
"""Characters of the memories used that an answer is compared with: the first memories, at least one. Quotes of others
are searched for among all memories: reading them takes some 2 s a million characters."""

_MOST_CHARACTERS_IN_ALL = 2 * MOST_SOURCE_CHARACTERS
"""With the memories that were found; an answer beyond that counts as saying something new."""

MOST_LOOKED_UP = 64
"""Passages that no memory named by the caller holds and that are looked for among all others."""

SAID_ORIGINS = frozenset({Origin.USER_INPUT, Origin.AI_OUTPUT})

_NEAREST = 4
_MOST_TERMS = 32
_MOST_CHARACTERS = 2000

_SHINGLE = 3
_MOST_HOLDERS = 8
"""Sentences that a shingle is known by, so that a text of one word over and over costs no more than another."""

_FENCE = re.compile(r"^(?:```|~~~)[^\n]*\n(.*?)(?:^(?:```|~~~)[^\S\n]*$|\Z)", re.MULTILINE | re.DOTALL)
_SENTENCE = re.compile(r"[^。！？!?；;\n]*?(?:[。！？!?；;\n]+|\.(?=\s|$)|：|:(?=\s|[\"“「『]|$)|$)")
_TOKEN = re.compile(rf"[{CJK}]|[^\W_{CJK}]+(?:[._'’-][^\W_{CJK}]+)*|[%‰°]")
_CLAUSE = re.compile(r"[,，、。！？!?；;:：…\n()（）\[\]【】—]|\.(?=\s|$)")
_PARTICLES: Final = frozenset("的了着过地得呢吧啊嘛哦呀就也都还是")
_ARTICLES: Final = frozenset(
    ["a", "an", "the", "is", "are", "was", "were", "that", "this", "also", "so", "and", "then"]
)
_LIGHT: Final = _PARTICLES | _ARTICLES
_NEGATIONS: Final = frozenset(
    ["不", "没", "无", "未", "非", "别", "勿", "莫", "否", "not", "no", "never", "none", "nor", "without", "cannot"]
)
_SOURCES_NAMED: Final = frozenset(["记忆", "记录", "记得", "资料", "笔记", "知识库", "文档"]) | frozenset(
    ["memory", "memories", "notes", "note", "noted", "recorded"]
)


class Quoted:
    """Decides whether an answer only quotes memories: those that it used, and those found by its words."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __call__(
        self, project: str, session_id: str, text: str, used_ids: Sequence[str], deadline: Deadline = NO_DEADLINE
    ) -> bool:
        """Whether every sentence and block of code of the text repeats a memory (1.1-14).

        Turns of the same session do not count unless they were used: a repeated statement is learnt again. The first
        new passage ends the search, so an ordinary answer costs one look-up by words.

        Raises: what the deadline raises, which is checked between memories and passages.
        """
        said = tuple(passages(text))
        if not said:
            return False
        sources = self._used(project, used_ids, deadline)
        unknown = [passage for passage in said if not sources.quote(passage)]
        return len(unknown) <= MOST_LOOKED_UP and all(
            self._is_held(project, session_id, passage, sources, deadline) for passage in unknown
        )

    def _used(self, project: str, used_ids: Sequence[str], deadline: Deadline) -> Sources:
        """Read the first of the used memories, one at a time, since each may be large."""
        sources = Sources()
        for used_id in used_ids:
            if sources.characters >= MOST_SOURCE_CHARACTERS:
                break
            deadline.check()
            for memory in self._store.get(project, [used_id], 0, full=True):
                for part in _texts(memory):
                    sources.add(part)
        return sources

    def _is_held(self, project: str, session_id: str, passage: Passage, sources: Sources, deadline: Deadline) -> bool:
        deadline.check()
        if sources.quote(passage):
            return True  # by a memory that a passage before it has found
        if sources.characters >= _MOST_CHARACTERS_IN_ALL:
            return False
        terms = tuple(dict.fromkeys(query_terms(passage.text[:_MOST_CHARACTERS])))[:_MOST_TERMS]
        # Not a recall, which leaves out echoes of these words.
        queries = [
            GroupQuery(name=name, filter=Filter(origins=origins), terms=terms, pool=_NEAREST)
            for name, origins in (("said", SAID_ORIGINS), ("other", frozenset(Origin) - SAID_ORIGINS))
        ]
        for memory in self._store.read(project, partial(_found, queries)):
            if memory is None or (memory.session_id == session_id and memory.origin in SAID_ORIGINS):
                continue
            for part in _texts(memory):
                sources.add(part)
        return sources.quote(passage)


def _found(queries: Sequence[GroupQuery], project: Snapshot) -> list[Memory | None]:
    groups = project.search(queries).groups
    return project.load([doc for found in groups for doc in found.rows["doc"].tolist()], full=True)


def _texts(memory: Memory | None) -> tuple[str, ...]:
    """The texts of a memory, without its name."""
    if memory is None or memory.payload is None:
        return ()
    content = memory.payload.content
    match memory.payload.detail:
        case LearningRecord(question=question, answer=answer):
            return question, answer, content
        case DomainKnowledge(summary=summary):
            return summary, content
        case _:
            return memory.index.summary, content


@dataclass(frozen=True, slots=True, eq=False)
class _Sentence:
    """A sentence as it is compared: its clauses without marks, each between two line feeds; words and characters.

    These are folded; `content` are those that are no particles or articles.
    """

    clauses: str
    tokens: tuple[str, ...]
    content: tuple[str, ...]


class Sources:
    """Texts of memories, ready to be compared with; `characters` says how long they are together."""

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self.characters = 0
        self._clauses: list[str] = []
        self._lines: list[str] = []
        self._sentences: list[_Sentence] = []
        self._holders: dict[tuple[str, ...], list[int]] = {}
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        """One text more."""
        self.characters += len(text)
        self._lines.append(_lines(text))
        self._clauses.append(_clauses(text))
        for written in _sentences(text):
            sentence = _sentence(written)
            for shingle in set(_shingles(sentence.content)):
                holders = self._holders.setdefault(shingle, [])
                if len(holders) < _MOST_HOLDERS:
                    holders.append(len(self._sentences))
            self._sentences.append(sentence)

    def quote(self, passage: Passage) -> bool:
        """Whether a passage only repeats one of the texts."""
        if passage.is_code:
            lines = _lines(passage.text)
            return any(lines in known for known in self._lines)
        sentence = _sentence(passage.text)
        return any(sentence.clauses in known for known in self._clauses) or self._is_near(sentence)

    def _is_near(self, sentence: _Sentence) -> bool:
        shingles = set(_shingles(sentence.content))
        held = Counter(holder for shingle in shingles for holder in self._holders.get(shingle, ()))
        likely = [
            holder for holder, shared in held.most_common(_MOST_HOLDERS) if shared >= LEAST_SHARED * len(shingles)
        ]
        return any(_adds_nothing(sentence, self._sentences[holder]) for holder in likely)


@dataclass(frozen=True, slots=True)
class Passage:
    """An original sentence, or the code of a block."""

    text: str
    is_code: bool = False


def passages(text: str) -> Iterator[Passage]:
    """The sentences and blocks of code that say something, in order.

    What only announces a quotation ("As I noted:", 根据记忆：) says nothing.
    """
    at = 0
    for block in _FENCE.finditer(text):
        yield from _said(text[at : block.start()])
        if _lines(block[1]).strip():
            yield Passage(block[1], is_code=True)
        at = block.end()
    yield from _said(text[at:])


def _said(text: str) -> Iterator[Passage]:
    return (Passage(sentence) for sentence in _sentences(text) if not _announces(sentence))


def _sentences(text: str) -> Iterator[str]:
    stripped = (match.group().strip() for match in _SENTENCE.finditer(text))
    return (sentence for sentence in stripped if _TOKEN.search(sentence))


def _announces(sentence: str) -> bool:
    if not sentence.endswith((":", "：")):
        return False
    return all(prose(phrase) in _SOURCES_NAMED for phrase in phrases(sentence, lambda term: True))


def _sentence(written: str) -> _Sentence:
    tokens = tuple(_TOKEN.findall(prose(written)))
    content = tuple(token for token in tokens if token not in _LIGHT)
    return _Sentence(clauses=_clauses(written), tokens=tokens, content=content)


def _clauses(text: str) -> str:
    # Folding removes line feeds, so it comes after splitting.
    parts = ("".join(_TOKEN.findall(prose(part))) for part in _CLAUSE.split(text))
    return "\n".join(("", *filter(None, parts), ""))


def _lines(text: str) -> str:
    parts = (" ".join(line.split()) for line in code(text).splitlines())
    return "\n".join(("", *filter(None, parts), ""))


def _shingles(tokens: Sequence[str]) -> Iterator[tuple[str, ...]]:
    if len(tokens) < _SHINGLE:
        return iter([tuple(tokens)] if tokens else [])
    return zip(*(islice(tokens, start, None) for start in range(_SHINGLE)), strict=False)


def _adds_nothing(said: _Sentence, known: _Sentence) -> bool:
    """Whether the known sentence has all content of this one, in order, and no omitted word negates it."""
    rest = iter(known.content)
    if not all(token in rest for token in said.content):
        return False
    left_out = Counter(known.tokens) - Counter(said.tokens)
    return not any(token in _NEGATIONS or token.endswith(("n't", "n’t")) for token in left_out)
