"""Follow-ups: a question that depends on what was said before is asked twice, by itself and together with that.

The mean of both scores counts. It is as good as the joined text for follow-ups, and costs a question that was wrongly
taken for one half as much. Source of the numbers: docs/decisions/009.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from msgspec.structs import replace

from hummock.core.recall import MAX_QUERY_CHARACTERS, Hit, Preset, Recalled, RecallQuery, StageTime
from hummock.ports.store import Snapshot
from hummock.recall.plan import joins_paths
from hummock.text.keywords import keywords
from hummock.text.normalise import CJK
from hummock.text.question import question_of
from hummock.text.questions import is_small_talk

FOLLOW_UP: Final = "follow_up"

MOST_BEFORE: Final = 4
"""Earlier questions that one may depend on."""

MAX_CHARACTERS: Final = 300
"""Characters of each of them that are used, from its start, where the topic usually is."""

_OF_TALK: Final = frozenset({Preset.CHAT, Preset.AGENT})

_MOST_WORDS: Final = 3.0
"""Content words above which a sentence is complete by itself, even if it refers to earlier ones."""

_LOOKED_AT: Final = 8
_TEXTS_KEPT: Final = 256
"""Texts of which it is kept whether they lean back: a query is looked at before its recall begins, and in it."""

_CJK_CHARACTER: Final = re.compile(f"[{CJK}]")

_ENGLISH: Final = (
    r"\b(?:it|its|they|them|their|this|that|these|those|there|he|she|him|his|her|same|else|too|also|instead|another)\b"
    r"|^\W*(?:and|but|or|so|then|what about|how about)\b"
)
# Not where the character belongs to another word: 其他, 应该, 因此.
_CHINESE: Final = (
    "[它这那]|(?<!其)[他她](?![人国乡日])|(?<!尤)其(?![他实中余])|(?<!应)该|(?<!因)此"
    "|上述|上面|刚才|前面|之前|还有|另外|同样|呢\\W*$"
)
_REFERS: Final = re.compile(f"{_ENGLISH}|{_CHINESE}", re.IGNORECASE)
_OF_ONESELF: Final = re.compile(r"我|\b(?:i|me|my|mine|we|us|our|ours)\b", re.IGNORECASE)


@lru_cache(_TEXTS_KEPT)
def leans_back(text: str) -> bool:
    """Whether a question depends on those before it.

    It has no content word ("why?", 为什么?) and is not about oneself (我住在哪里?), or refers to something ("and its
    tests?", 它在哪里被调用?) and has few other words. Two Chinese characters count as a word.
    """
    words = sum(map(_weight, keywords(question_of(text), _LOOKED_AT)))
    if words == 0 and not _OF_ONESELF.search(text):
        return True
    return words <= _MOST_WORDS and _REFERS.search(text) is not None


def _weight(word: str) -> float:
    return max(1.0, len(_CJK_CHARACTER.findall(word)) / 2)


def leant_on(earlier: Sequence[str]) -> tuple[str, ...]:
    """The earlier questions, newest first, back to the last one that is complete by itself."""
    texts: list[str] = []
    for text in earlier:
        texts.append(text)
        if not leans_back(text):
            break
    return tuple(texts)


def cut(text: str) -> str:
    """The part of an earlier question that is used."""
    return text.strip()[:MAX_CHARACTERS]


def leans(query: RecallQuery) -> bool:
    """Whether a query of a conversation depends on something. One with the caller's vector cannot be joined to it."""
    if query.preset not in _OF_TALK or query.vector is not None or not joins_paths(query):
        return False
    return leans_back(query.text) and not is_small_talk(question_of(query.text))


def in_session(query: RecallQuery, project: Snapshot) -> RecallQuery:
    """The query with what it depends on: what the caller says, else the last turns of the session's user.

    The user knows what these turns say, so that they are no hits.
    """
    if query.before or not leans(query):
        return query
    turns = project.last_said(query.session_id, MOST_BEFORE)
    before = _depended_on(query, [turn.payload.content for turn in turns if turn.payload is not None])
    excluded = (*query.filter.excluded_ids, *[turn.id for turn in turns])
    return replace(query, before=before, filter=replace(query.filter, excluded_ids=excluded)) if before else query


def after(query: RecallQuery, said: Sequence[str]) -> RecallQuery:
    """The query with what it depends on of what its user said, newest first; unchanged if it depends on nothing."""
    if query.before or not said or not leans(query):
        return query
    return replace(query, before=_depended_on(query, said))


def _depended_on(query: RecallQuery, said: Sequence[str]) -> tuple[str, ...]:
    """What a query that depends on something depends on, of what its user said, newest first."""
    # A turn may be learnt before it is asked for, and thanks come between.
    own = cut(query.text)
    texts = [text for text in map(cut, said[:MOST_BEFORE]) if text != own and not is_small_talk(question_of(text))]
    return leant_on(texts)


def together(query: RecallQuery) -> RecallQuery:
    """The query joined to what it depends on."""
    return replace(query, text="\n".join((query.text, *query.before))[:MAX_QUERY_CHARACTERS], before=())


def mean(alone: Recalled, joined: Recalled, before: tuple[str, ...]) -> Recalled:
    """The hits of both by the mean of their scores, 0 where one of them has none; as many as the longer list has."""
    return replace(
        alone,
        hits=_mean(alone.hits, joined.hits),
        code_fragments=_mean(alone.code_fragments, joined.code_fragments),
        domains=_mean(alone.domains, joined.domains),
        receipt=replace(
            alone.receipt,
            stages=(*alone.receipt.stages, StageTime(stage=FOLLOW_UP, elapsed_s=joined.receipt.elapsed_s)),
            elapsed_s=alone.receipt.elapsed_s + joined.receipt.elapsed_s,
        ),
        degraded=tuple(dict.fromkeys((*alone.degraded, *joined.degraded))),
        nothing_known=alone.nothing_known if joined.nothing_known else None,
        together_with=before,
    )


def _mean(alone: Sequence[Hit], joined: Sequence[Hit]) -> tuple[Hit, ...]:
    hits = {hit.memory.id: replace(hit, score=hit.score / 2) for hit in alone}
    for hit in joined:
        other = hits.get(hit.memory.id)
        half = replace(hit, score=hit.score / 2)
        hits[hit.memory.id] = half if other is None else _both(other, half)
    best = sorted(hits.values(), key=lambda hit: (-hit.score, hit.memory.id))
    return tuple(best[: max(len(alone), len(joined))])


def _both(alone: Hit, joined: Hit) -> Hit:
    """One hit of both recalls: the sum of their scores, and whatever speaks for it in either."""
    return replace(
        alone,
        score=alone.score + joined.score,
        similarity=max(alone.similarity, joined.similarity),
        cosine=max(alone.cosine, joined.cosine),
        found_by=alone.found_by | joined.found_by,
        matched_terms=tuple(dict.fromkeys((*alone.matched_terms, *joined.matched_terms))),
    )
