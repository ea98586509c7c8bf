"""Pairs of drafts of which both have to be kept: they differ in one thing that a reader or an owner may need.

`python -m tests.memories.pairs 10000` learns so many pairs over a store and counts what is lost.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from msgspec.structs import replace

from hummock.core.memory import Draft, LearnResult, LearnStatus, MemoryIndex
from hummock.text.template import as_draft, left_open
from tests.workplace import Workplace, note, workplace

_WORDS = (
    "area", "flag", "Polish", "还款", "ｶﾅ", "run()", "10", "m²", "2", "-v", "x_1", "café", "µ", "K", "①", "™", "Ⅳ",
)  # fmt: skip
_COMPATIBLE = {
    "2": "²", "1": "①", "m": "ｍ", "a": "ａ", "fi": "ﬁ", "²": "2", "①": "1", "™": "TM", "Ⅳ": "IV", "µ": "μ",
    "ｶ": "カ", "(": "（", "-": "－", "é": "e\u0301", "K": "\u212a",
}  # fmt: skip
_PER_WRITE = 50
Make = Callable[[Random, Draft], Draft]


def _with_text(change: Callable[[Random, str], str]) -> Make:
    def make(random: Random, draft: Draft) -> Draft:
        return replace(draft, payload=replace(draft.payload, content=change(random, draft.payload.content)))

    return make


def _other_case(random: Random, text: str) -> str:
    at = random.choice([place for place, one in enumerate(text) if one.swapcase() != one])
    return text[:at] + text[at].swapcase() + text[at + 1 :]


def _other_width(random: Random, text: str) -> str:
    old = random.choice([one for one in _COMPATIBLE if one in text.strip()])
    return text.replace(old, _COMPATIBLE[old], 1)


def _other_space(random: Random, text: str) -> str:
    at = random.choice([place for place, one in enumerate(text) if one == " "])
    return text[:at] + random.choice(["", "  ", "\t", "\u00a0", "\n"]) + text[at + 1 :]


def _other_indentation(random: Random, text: str) -> str:
    return text.replace("\n", "\n" + " " * random.choice([1, 2, 4, 8]))


def _with(name: str, *values: object) -> Make:
    return lambda random, draft: replace(draft, **{name: random.choice(values)})


DIFFERENCES: dict[str, Make] = {
    "case": _with_text(_other_case),
    "compatibility": _with_text(_other_width),
    "inner white space": _with_text(_other_space),
    "indentation": _with_text(_other_indentation),
    "owner": _with("metadata", (("user_id", "bob"),), (("user_id", "alice"), ("via", "web")), (("user", "alice"),)),
    "session": _with("session_id", "s1", "S1", "会话"),
    "speaker": _with("speaker", "Bob", "bob", "小明"),
    "writer": _with("writer", "ci", "laptop"),
    "id": _with("id", "own-1", "own-2"),
    "day": _with("event_time", 1_699_000_000.0, 1_699_086_400.0),
    "time of learning": _with("create_time", 1_699_000_000.0, 1_699_086_400.0),
    "end": _with("expire_time", 1_799_000_000.0),
    "index": _with("index", MemoryIndex(tags=("b",)), MemoryIndex(title="t"), MemoryIndex(summary="s")),
    "trust": _with("trust", 0.25, 0.5),
    "emotion": _with("emotion_label", "calm"),
    "what it replaces": _with("supersedes", ("older",)),
    "source": _with("source_hash", "5f"),
}
"""Differences between the two of a pair."""


def pairs(random: Random, count: int) -> Iterator[tuple[str, Draft, Draft]]:
    """Pairs whose texts occur in no other pair: the difference, and the two."""
    for number in range(count):
        words = random.choices(_WORDS, k=5)
        first = note(f"No.{number} {' '.join(words)} a 2 fi\n{random.choice(_WORDS)} end")
        if random.random() < 0.3:
            first = replace(first, metadata=(("user_id", "alice"),))
        name = random.choice(list(DIFFERENCES))
        second = DIFFERENCES[name](random, first)
        if second.id:
            second = replace(second, id=f"{second.id}-{number}")
        # Without an id or a time of learning of its own, what is told after one that has it is that one told again.
        if name in ("id", "time of learning") or random.random() < 0.5:
            yield name, first, second
        else:
            yield name, second, first


def lost(work: Workplace, count: int, seed: int) -> list[tuple[str, Draft, Draft]]:
    """The pairs of which one is not there as it was told, of which a repeat is stored, or which have one id."""
    found = []
    random = Random(seed)  # noqa: S311 - to be repeated, not to be secret
    made = list(pairs(random, count))
    for start in range(0, count, _PER_WRITE):
        some = made[start : start + _PER_WRITE]
        firsts, seconds = [one for _, one, _ in some], [one for _, _, one in some]
        # One request for both, or one each.
        if random.random() < 0.5:
            results = work.teach(*firsts, *seconds, is_deferred=True).results
        else:
            results = sum((work.teach(*drafts, is_deferred=True).results for drafts in (firsts, seconds)), ())
        again = work.teach(*firsts, *seconds, is_deferred=True).results
        kept = [_is_kept(work, *each) for each in zip((*firsts, *seconds), results, again, strict=True)]
        both = zip(kept, kept[len(some) :], strict=False)
        found += [pair for pair, (one, other) in zip(some, both, strict=True) if not (one and other and one != other)]
    return found


def _is_kept(work: Workplace, draft: Draft, result: LearnResult, again: LearnResult) -> str:
    """Id of the result if the memory is stored as given and learning it again changes nothing; else empty."""
    stored = work.get(result.id)
    if stored is None or result.status is not LearnStatus.CREATED or again.id != result.id:
        return ""
    told = replace(as_draft(stored), id=draft.id, create_time=draft.create_time)
    is_repeat = again.status is (LearnStatus.UNCHANGED if draft.id else LearnStatus.DUPLICATE)
    return result.id if told == left_open(draft) and is_repeat else ""


def main() -> None:
    """Counts what is lost of as many pairs as the first argument says."""
    count = int(sys.argv[1])
    with TemporaryDirectory() as directory, workplace(Path(directory)) as work:
        missing = lost(work, count, seed=1)
    for name, first, second in missing[:10]:
        print(name, first, second, sep="\n  ")
    print(f"{len(missing)} of {count} pairs lost")


if __name__ == "__main__":
    main()
