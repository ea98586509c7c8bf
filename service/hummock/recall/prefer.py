"""Rules after the scores: preferred turns, fragments by file, the bar for code, and substring matches at the end.

A rule takes a group, best first, and returns it in another order or with fewer candidates.
"""

from __future__ import annotations

import re
import zlib
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hummock.core.candidates import FoundBy
from hummock.core.embedding import Calibration
from hummock.core.memory import MemoryKind, Origin
from hummock.core.recall import Plan, Wanted
from hummock.ports.store import Snapshot
from hummock.recall.evidence import LATE_A_SIMILARITY, LATE_AT_NOTHING
from hummock.recall.fuse import Fused, has_bar
from hummock.recall.plan import KEEPS_ALL
from hummock.recall.query_features import QueryFeatures
from hummock.text.normalise import CJK, prose
from hummock.text.question import question_of
from hummock.text.questions import Tense, Trait, tense_of
from hummock.text.replaces import Bearing, bearing_of
from hummock.text.speakers import SAYING, calls_by_name, words_for_who_said
from hummock_kernels.files import FileShares, order_by_files
from hummock_kernels.replaced import Replacing, replaced

SPEAKER_GAIN = 1.12
"""Relevance factor for turns of the one speaker that a question names."""

SAYER_GAIN = 2.0
"""The factor if the question asks what that speaker said: others who name him hold more of its words."""

MOST_SPEAKERS: Final = 16
"""With more of them in a group none is looked for by a part of the name."""

ASSISTANT_GAIN = 1.06
"""Relevance factor for turns of the model, if the question asks for them. Small, since the user's turns often repeat
them."""

WHEN_GAIN = 1.3
"""Relevance factor for memories that state a time, if the question asks when."""

MAX_CHARACTERS = 256
"""Characters at the start of a question that are searched for names."""

_LONGEST_NAME_WORDS = 3
_LONGEST_CJK_NAME = 4
_CJK_RUN = re.compile(rf"([{CJK}]+)")
_WORD = re.compile(r"[^\W_]+")


def apply_rules(
    fused: Fused, plan: Plan, features: QueryFeatures, calibration: Calibration, text: str, project: Snapshot
) -> Fused:
    """Apply all rules to a group, one after the other.

    Args:
        fused: Best first.
        plan: The plan of the recall.
        features: The query.
        calibration: From cosine to similarity.
        text: The query's text.
        project: Holds the candidates, of which a few are read if some tell a change.
    """
    ordered = above_bar(by_files(boost_speakers(fused, plan, text, project), plan), plan, features, calibration)
    ordered = newest_first(ordered, plan, text, calibration.one_thing, project)
    return appended(ordered) if plan.substrings else ordered


def boost_speakers(fused: Fused, plan: Plan, text: str, project: Snapshot) -> Fused:
    """Raise the turns that the question prefers; the best relevance stays the same, so others fall below it.

    Candidates found by name are unchanged, and so is a group without turns of a session.

    Args:
        fused: Best first.
        plan: The plan of the recall.
        text: The question.
        project: Holds the names of speakers.
    """
    if not plan.neighbours or not fused.tally.turns or fused.tally.by_name:
        return fused
    factor = _factors(fused, plan, text, project)
    if factor is None:
        return fused
    raised = fused.relevance * factor
    scale = fused.relevance.max() / max(raised.max(), np.finfo(np.float32).tiny)
    order = np.argsort(-raised, kind="stable")
    return fused.take(order, relevance=(raised * scale)[order], score=(fused.score * factor * scale)[order])


def _factors(fused: Fused, plan: Plan, text: str, project: Snapshot) -> NDArray[np.float32] | None:
    """A factor for each candidate, in order; None if the question prefers none."""
    found, rows = fused.candidates, fused.row
    speaker, gain = 0, SPEAKER_GAIN
    if fused.tally.spoken:
        if SAYING.search(text, 0, MAX_CHARACTERS) and (speaker := _sayer(fused, text, project)):
            gain = SAYER_GAIN
        else:
            speaker = named_speaker(text, found.rows["speaker"])
    if not speaker and not plan.wanted:
        return None
    factor = np.ones(len(rows), np.float32)
    if speaker:
        factor[found.rows["speaker"][rows] == speaker] *= gain
    if Wanted.FROM_ASSISTANT in plan.wanted:
        factor[found.rows["origin"][rows] == Origin.AI_OUTPUT] *= ASSISTANT_GAIN
    if Wanted.WHEN in plan.wanted:
        factor[found.rows["traits"][rows] & Trait.TELLS_TIME != 0] *= WHEN_GAIN
    return factor if (factor != 1).any() else None


def _sayer(fused: Fused, text: str, project: Snapshot) -> int:
    """Return the hash of the one speaker of whom a question asks what they said; 0 if it names none or several."""
    said = words_for_who_said(text, MAX_CHARACTERS)
    if not said:
        return 0
    return named_speaker(said, fused.candidates.rows["speaker"]) or _in_part(fused, said, project)


def _in_part(fused: Fused, text: str, project: Snapshot) -> int:
    """Return the hash of the one speaker of whose name a text has a part; 0 if there is none, or several."""
    rows = fused.candidates.rows
    speakers, first = np.unique(rows["speaker"], return_index=True)
    first = first[~np.isin(speakers, _NOBODY)]
    if not 0 < len(first) <= MOST_SPEAKERS:
        return 0
    memories = project.load(rows["doc"][first].tolist(), full=False)
    named = [
        place
        for place, memory in zip(first.tolist(), memories, strict=True)
        if memory is not None and calls_by_name(text, memory.speaker)
    ]
    return int(rows["speaker"][named[0]]) if len(named) == 1 else 0


def named_speaker(text: str, speakers: NDArray[np.uint32]) -> int:
    """Return the hash of the one speaker that a question names; 0 if it names none or several.

    Args:
        text: The question.
        speakers: Possible speakers, hashed as in `Candidates.speaker`, repeats and zeros included.
    """
    named = _codes(text).intersection(speakers.tolist())
    return named.pop() if len(named) == 1 else 0


def _codes(text: str) -> set[int]:
    """Hashes, comparable to `Candidates.speaker`, of every part of a text that may be a name.

    Names are folded as speakers are: one to three words, two to four Chinese characters. The checksum of a longer name
    continues that of the shorter one.
    """
    codes: set[int] = set()
    for place, part in enumerate(_CJK_RUN.split(prose(text[:MAX_CHARACTERS]))):
        if place % 2:
            units = joined = [each.encode("utf-8", "surrogatepass") for each in part]
            longest = _LONGEST_CJK_NAME
        else:
            units = [each.encode("utf-8", "surrogatepass") for each in _WORD.findall(part)]
            joined, longest = [b" " + unit for unit in units], _LONGEST_NAME_WORDS
        begun = [*map(zlib.crc32, units)]
        if not place % 2:
            codes.update(begun)
        for size in range(1, longest):
            begun = [*map(zlib.crc32, joined[size:], begun)]
            codes.update(begun)
    return {code or 1 for code in codes}


_NOBODY: Final = [0, zlib.crc32(b"user"), zlib.crc32(b"assistant")]
"""Hashes of speakers that are no people: none, and the two sides of a turn."""

# A question about code is answered by a place, and a place has more than one fragment. If several fragments of a file
# resemble the question, the answer is more likely there. A file's head, which has no symbol, describes in prose what
# its functions do: it resembles more questions than it answers. Source of the numbers: docs/decisions/046.

SUPPORT: Final = 0.05
"""Share of the relevance of each of the best other fragments of its file that a fragment gains."""

SUPPORTERS: Final = 3
"""Most other fragments that count: a long file has many that resemble anything a little."""

SECOND_LOSS: Final = 0.05
"""Loss of all but the best fragment of a file, of a relevance in [0, 1]: another file may have the answer."""

HEAD_FACTOR: Final = 0.85
"""Factor for a fragment without a symbol, if another fragment of its file has one."""

_FEWEST_OF_FILES: Final = 2
"""With fewer candidates that have a file the order stays."""

_SHARES: Final = FileShares(SUPPORT, SUPPORTERS, HEAD_FACTOR, SECOND_LOSS)


def by_files(fused: Fused, plan: Plan) -> Fused:
    """Reorder the fragments of code by file; the best keeps its relevance, and other memories are unchanged.

    Results of a look-up by name, of a single path and of substrings keep their order.

    Args:
        fused: Best first.
        plan: What was asked for.
    """
    found, tally = fused.candidates, fused.tally
    if tally.filed < _FEWEST_OF_FILES or not plan.neighbours or plan.substrings or tally.by_name:
        return fused
    order, relevance, score = order_by_files(fused.row, fused.relevance, fused.score, found.rows, _SHARES)
    if not len(order):
        return fused
    return fused.take(order, relevance=relevance, score=score)


# Among thousands of fragments some resemble any question. A bar on similarity alone also cuts answers to questions in
# another language or in other words; together with late interaction and shared words it does not. Source of the
# numbers: docs/decisions/046.

MANY_FRAGMENTS: Final = 4096
"""Number of fragments that the bar is calibrated for. Each halving lowers it by `BAR_A_HALVING`, as fewer fragments
resemble a question by chance; above this number it was not measured and stays the same."""

BAR_A_HALVING: Final = 0.05

WORTH_OF_WORDS: Final = 0.2
"""Weight of the evidence of words, added to a fragment's similarity and late interaction."""

MOST_EVIDENCE: Final = 2.0
"""Most evidence of words that counts."""


BEST_BY_WORDS: Final = 3
"""Number of fragments, the best by words, that need no similarity if they hold enough of the question's words."""

FEWEST_WORDS: Final = 3
"""Fewest terms of the question that such a fragment holds: a rare one may stand in any list of words."""

ABOUT_CODE: Final = 3
"""Number of fragments that pass from which the bar is `LESS_ASKED` lower for the others: the bar is for questions that
have no answer, and a question with so many is about this code."""

LESS_ASKED: Final = 0.1

_EXEMPT = np.uint8(FoundBy.DOMAIN | FoundBy.KEY_FILE | FoundBy.HOLDER)


def above_bar(fused: Fused, plan: Plan, features: QueryFeatures, calibration: Calibration) -> Fused:
    """Remove fragments below the plan's bar from a group of code; any other group is unchanged.

    Exempt are key files of domains that the query names, holders of the name that the query is, memories that match its
    time, and the best by words with enough evidence.

    Args:
        fused: In any order.
        plan: The plan of the recall.
        features: The query.
        calibration: From cosine to similarity.
    """
    found = fused.candidates
    if plan.code_bar is None or not has_bar(found.name, plan, features):
        return fused
    minimum = _minima(fused, plan.code_bar, plan.min_similarity)
    minimum[found.found_by & _EXEMPT != 0] = KEEPS_ALL
    minimum[_best_by_words(fused)] = KEEPS_ALL
    if len(fused.time_match):
        minimum[fused.time_match >= 1] = KEEPS_ALL
    similarity = np.nan_to_num(calibration.similarity(found.cosine, han=features.is_han))
    left = np.flatnonzero((similarity >= minimum)[fused.row])
    if len(left) >= ABOUT_CODE:
        minimum -= LESS_ASKED
        left = np.flatnonzero((similarity >= minimum)[fused.row])
    return fused.take(left, below_min_similarity=len(fused) - len(left), minimum=minimum)


def _best_by_words(fused: Fused) -> NDArray[np.int64]:
    """Return the rows of the fragments that words rank first, with enough evidence of several of them."""
    found = fused.candidates
    best = np.argsort(-found.keyword, kind="stable")[:BEST_BY_WORDS]
    is_told = (fused.evidence[best] >= 1) & (np.bitwise_count(found.matched[best]) >= FEWEST_WORDS)
    return best[is_told & (found.keyword[best] > 0)]


def _minima(fused: Fused, bar: float, without_vector: float) -> NDArray[np.float32]:
    """Return the minimum similarity of each candidate, (n,): the bar less what late interaction and words add.

    A candidate without a vector is judged by its words alone, which must be enough evidence.
    """
    found, late, said = fused.candidates, fused.late, fused.evidence
    halvings = np.log2(MANY_FRAGMENTS / min(max(found.searched, 1), MANY_FRAGMENTS))
    rest = bar - BAR_A_HALVING * halvings - WORTH_OF_WORDS * np.minimum(said, MOST_EVIDENCE)
    by_similarity = (rest - LATE_AT_NOTHING) / (1 + LATE_A_SIMILARITY)
    least = np.where(np.isnan(late), by_similarity, rest - late)
    by_words = np.where(said >= 1, KEEPS_ALL, without_vector)
    return np.where(np.isnan(found.cosine), by_words, least).astype(np.float32)


# An old fact is often worded as one asks for it, and the sentence that replaced it tells the change alone: "we moved to
# Bristol last weekend". So the old one comes first wherever words and meaning decide.

ABOUT_AS_MUCH: Final = 0.05
"""Difference of two cosines that says little about which of two older ones is meant."""

LATER_S: Final = 3600.0
"""Least time between both: what is said in one go belongs together."""

FITTING: Final = 0.4
"""Least relevance of the newer one, as a share of that of the older one."""

BEARING: Final = 0.5
"""Least relevance of the older one, as a share of the best: what has nothing to do with the question is alike by
chance, and is not said to be replaced. Of the newer one where the question is how things were."""

_REPLACING: Final = Replacing(
    traits=int(Trait.TELLS_CHANGE | Trait.ASKS),
    tells=int(Trait.TELLS_CHANGE),
    dated=int(Trait.DATED),
    note=int(MemoryKind.NOTE),
    model=int(Origin.AI_OUTPUT),
    least_age_s=LATER_S,
    about_as_much=ABOUT_AS_MUCH,
    one_thing=1.0,
    fitting=FITTING,
    bearing=BEARING,
)


def newest_first(fused: Fused, plan: Plan, text: str, one_thing: float, project: Snapshot) -> Fused:
    """Move each note that tells a change before the older note that it most likely replaces, if it stands behind it.

    A question how things were before a change has the older one first. Unchanged are groups without such notes, and
    those of other questions about the past, or about a time. However alike both are, a note whose words name another
    thing that changes moves nothing, and only one whose words may replace the older one is said to do so.

    Args:
        fused: Best first.
        plan: The plan of the recall.
        text: The question.
        one_thing: Least cosine of two memories about one thing.
        project: Holds the texts.
    """
    if not len(fused.row) or not plan.neighbours or plan.times or Wanted.FROM_ASSISTANT in plan.wanted:
        return fused
    found, rule = fused.candidates, _REPLACING._replace(one_thing=one_thing)
    if not (found.rows["traits"] & rule.traits == rule.tells).any():
        return fused
    tense = tense_of(question_of(text))
    if tense is Tense.PAST:
        return fused
    if tense is Tense.FORMER:
        rule = rule._replace(bearing=0.0)
    newer, older = replaced(found.vectors, found.vector_row, found.rows, found.writer, fused.row, fused.relevance, rule)
    if tense is Tense.FORMER:
        bears = fused.relevance[newer] >= BEARING * fused.relevance.max()
        newer, older = newer[bears], older[bears]
    if not len(newer):
        return fused
    texts = _texts(fused, np.concatenate([newer, older]), project)
    bearings = list(map(bearing_of, texts[: len(newer)], texts[len(newer) :]))
    is_near = np.array([bearing is not Bearing.ANOTHER_THING for bearing in bearings], np.bool_)
    is_told = np.array([bearing is Bearing.MAY_REPLACE for bearing in bearings], np.bool_)[is_near]
    newer, older = newer[is_near], older[is_near]
    first, second = (newer, older) if tense is Tense.NOW else (older, newer)
    places = np.arange(len(fused), dtype=np.float64)
    relevance, score = fused.relevance.copy(), fused.score.copy()
    for raised, passed in zip(first.tolist(), second.tolist(), strict=True):
        if places[passed] < places[raised] and relevance[raised] >= FITTING * relevance[passed]:
            places[raised] = np.nextafter(places[passed], -1)
            relevance[raised], score[raised] = relevance[passed], score[passed]
    order = np.argsort(places, kind="stable")
    replaced_by = dict(zip(fused.row[older[is_told]].tolist(), fused.row[newer[is_told]].tolist(), strict=True))
    return fused.take(order, relevance=relevance[order], score=score[order], replaced_by=replaced_by)


def _texts(fused: Fused, places: NDArray[np.int64], project: Snapshot) -> list[str]:
    docs = fused.candidates.rows["doc"][fused.row[places]].tolist()
    return [
        "" if memory is None or memory.payload is None else memory.payload.content
        for memory in project.load(docs, full=True)
    ]


# A substring match says that a text holds it, but not how much of the text is about it. So such hits have no score that
# could be mixed with others: the newest of them follow the last similar one.

KEYWORD_SCORE = 0.5
"""Score of a hit that only a substring found, as the requirements document sets it."""

_BY_MORE = np.uint8(FoundBy.VECTOR | FoundBy.DOMAIN | FoundBy.KEY_FILE)


def appended(fused: Fused) -> Fused:
    """Move candidates that only a substring found to the end, newest first; unchanged if no other path found any."""
    by_more = (fused.candidates.found_by[fused.row] & _BY_MORE) != 0
    if by_more.all() or not by_more.any():
        return fused
    similar, held = np.flatnonzero(by_more), np.flatnonzero(~by_more)
    newest = held[np.argsort(-fused.candidates.rows["create_time"][fused.row[held]], kind="stable")]
    order = np.concatenate([similar, newest])
    # Falling, and below the last similar candidate: later stages order by relevance.
    relevance, score = fused.relevance[order], fused.score[order]
    steps = np.linspace(1, 0, len(newest), endpoint=False, dtype=np.float32)
    relevance[len(similar) :] = relevance[: len(similar)].min() * steps
    score[len(similar) :] = KEYWORD_SCORE
    return fused.take(order, relevance=relevance, score=score)
