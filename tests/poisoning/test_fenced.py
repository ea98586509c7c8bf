"""An attack that a person has stored, or that somebody let in, is in a prompt as data and as nothing else."""

from __future__ import annotations

import pytest

from hummock.core.memory import Origin
from hummock.core.project import ProjectInfo
from hummock.core.render import Locale
from hummock.render.context import render_context
from hummock.render.escape import clean
from hummock.render.listing import render_memories
from hummock.render.section import Frame, Selected, wording_of
from hummock.render.waterfall import render_waterfall
from hummock.text.tokens import EstimatedTokens
from tests.poisoning.corpus import ATTACKS, BENIGN
from tests.render import reader
from tests.render.hostile import assert_disarmed, assert_nobody_speaks
from tests.render.samples import note

ZH = wording_of(Locale.ZH)
FRAME = Frame(wording=ZH, budget_tokens=1_000_000, counter=EstimatedTokens(), info=ProjectInfo(path="/srv"))
TEXTS = [sample.text for sample in (*ATTACKS, *BENIGN)]


@pytest.mark.parametrize("origin", [Origin.MANUAL, Origin.USER_INPUT])
def test_every_attack_is_read_back_from_a_prompt_as_it_was_stored(origin: Origin) -> None:
    """All in one prompt, alongside what looks like them: none closes another's place, or speaks for itself."""
    notes = [note(f"n{place}", text, origin=origin) for place, text in enumerate(TEXTS)]
    chosen = [Selected(memory=one, score=0.5) for one in notes]
    stored = [clean(text).strip("\n") for text in TEXTS]

    full, listed = reader.read_waterfall((waterfall := render_waterfall(chosen, FRAME)).text, ZH)
    assert (listed, [body for _, body in full]) == ([], stored)
    memories = render_memories(chosen, FRAME)
    assert [body for _, body in reader.read_memories(memories.text, ZH)] == stored
    for text in (waterfall.text, memories.text, render_context(chosen, FRAME).text):
        assert_disarmed(text)
        assert_nobody_speaks(text)
