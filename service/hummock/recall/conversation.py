"""Preferences of a question about a conversation: turns of the speaker it names, and of the time it asks for."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hummock.core.candidates import FoundBy
from hummock.core.memory import Origin
from hummock.core.recall import Plan, Wanted
from hummock.recall.fuse import Fused
from hummock.text.normalise import CJK, prose
from hummock.text.questions import Trait

SPEAKER_GAIN = 1.12
"""Relevance factor for turns of the one speaker that a question names."""

ASSISTANT_GAIN = 1.06
"""Relevance factor for turns of the model, if the question asks for them. Small, since the user's turns often repeat
them."""

WHEN_GAIN = 1.3
"""Relevance factor for memories that state a time, if the question asks when."""

MAX_CHARACTERS = 256
"""Characters at the start of a question that are searched for names."""

_LONGEST_NAME_WORDS = 3
_LONGEST_CJK_NAME = 4
_UNIT = re.compile(rf"([{CJK}]+)|([^\W_{CJK}]+)")
_BY_NAME = FoundBy.DOMAIN | FoundBy.HOLDER


def boost_speakers(fused: Fused, plan: Plan, text: str) -> Fused:
    """Raise the turns that the question prefers; the best relevance stays the same, so others fall below it.

    Candidates found by name are unchanged, and so is a group without turns of a session.

    Args:
        fused: Best first.
        plan: The plan of the recall.
        text: The question.
    """
    found = fused.candidates
    if not plan.neighbours or not found.session.any() or (found.found_by & _BY_NAME).any():
        return fused
    factor = _factors(fused, plan, text)
    if factor is None:
        return fused
    raised = fused.relevance * factor
    scale = fused.relevance.max() / max(raised.max(), np.finfo(np.float32).tiny)
    order = np.argsort(-raised, kind="stable")
    return fused.take(order, relevance=(raised * scale)[order], score=(fused.score * factor * scale)[order])


def _factors(fused: Fused, plan: Plan, text: str) -> NDArray[np.float32] | None:
    """A factor for each candidate, in order; None if the question prefers none."""
    found, rows = fused.candidates, fused.row
    speaker = named_speaker(text, found.speaker)
    if not speaker and not plan.wanted:
        return None
    factor = np.ones(len(rows), np.float32)
    if speaker:
        factor[found.speaker[rows] == speaker] *= SPEAKER_GAIN
    if Wanted.FROM_ASSISTANT in plan.wanted:
        factor[found.origin[rows] == Origin.AI_OUTPUT] *= ASSISTANT_GAIN
    if Wanted.WHEN in plan.wanted:
        factor[found.traits[rows] & Trait.TELLS_TIME != 0] *= WHEN_GAIN
    return factor if (factor != 1).any() else None


def named_speaker(text: str, speakers: NDArray[np.uint32]) -> int:
    """Return the hash of the one speaker that a question names; 0 if it names none or several.

    Args:
        text: The question.
        speakers: Possible speakers, hashed as in `Candidates.speaker`, repeats and zeros included.
    """
    known = set(speakers.tolist()) - {0}
    if not known:
        return 0
    named = known.intersection(_codes(text))
    return named.pop() if len(named) == 1 else 0


def _codes(text: str) -> Iterator[int]:
    """Hashes, comparable to `Candidates.speaker`, of every part of a text that may be a name.

    Names are folded as speakers are: one to three words, two to four Chinese characters. The checksum of a longer name
    continues that of the shorter one.
    """
    begun: list[int] = []
    for run, letters in _UNIT.findall(prose(text[:MAX_CHARACTERS])):
        if run:
            begun.clear()
            characters = [each.encode("utf-8", "surrogatepass") for each in run]
            for at in range(len(characters)):
                code = zlib.crc32(characters[at])
                for character in characters[at + 1 : at + _LONGEST_CJK_NAME]:
                    code = zlib.crc32(character, code)
                    yield code or 1
        else:
            word = letters.encode("utf-8", "surrogatepass")
            begun = [zlib.crc32(b" " + word, code) for code in begun[1 - _LONGEST_NAME_WORDS :]]
            begun.append(zlib.crc32(word))
            yield from [code or 1 for code in begun]
