"""All corpora by name: those of others' sets, then those that are made here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from bench.eval import sets
from bench.eval.changes import changes
from bench.eval.code_questions import code
from bench.eval.diary import diary
from bench.eval.follow_ups import follow_ups
from bench.eval.history import history
from bench.eval.languages import languages
from bench.eval.noise import facts
from bench.eval.nothing import nothing
from bench.eval.sets import Corpus
from bench.eval.siblings import siblings
from bench.eval.speakers import speakers
from bench.eval.spelling import spelling
from bench.eval.talk import later, talk
from bench.eval.weeks import weeks

CORPORA: Mapping[str, Callable[[Path], Corpus]] = {
    **sets.CORPORA,
    "talk-zh": lambda datasets: talk(datasets, "zh"),
    "talk-en": lambda datasets: talk(datasets, "en"),
    "later-zh": lambda datasets: later(datasets, "zh"),
    "later-en": lambda datasets: later(datasets, "en"),
    "facts": facts,
    "nothing": nothing,
    "changes": changes,
    "diary": diary,
    "weeks": weeks,
    "siblings": siblings,
    "speakers": speakers,
    "spelling": spelling,
    "follow-ups": follow_ups,
    "languages": languages,
    "code": code,
    "history": history,
}
"""Each takes the folder of the shared sets, which those that are made here have no use for. Raises: SetSkipped."""

_COSTLY: Mapping[str, tuple[str, ...]] = {"code": ("code", "noise", "names", "classes"), "history": ("history",)}
"""Corpora that take seconds of cutting, and the sets that they hold slices of."""


def may_hold(name: str, asked: str | None) -> bool:
    """True if the corpus of that name may have what `--set` names; None names everything."""
    return asked is None or name not in _COSTLY or asked.startswith(_COSTLY[name])
