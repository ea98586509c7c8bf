"""A service that starts over a directory of an earlier version."""

from __future__ import annotations

from pathlib import Path

import pytest

from hummock.wiring.service import open_use_cases
from tests.service.calls import ask, learn
from tests.service.inputs import note
from tests.service.running import in_thread, settings
from tests.store.aging import made_old


@pytest.mark.lmdb("the terms of its directory are aged by hand")
def test_what_an_earlier_version_learnt_is_found_by_its_words_again(
    tmp_path: Path, models_dir: Path, model: str
) -> None:
    """S4-44: nothing is wiped, and the start says what takes it so long."""
    chosen = settings(tmp_path, models_dir, model)
    with in_thread(chosen) as service:
        learn(service, "p", note("火车 leaves at nine, says __str__", id="a"), note("nothing of the kind", id="b"))
        before = [ask(service, "p", text).hits for text in ("火车", "__str__", "leaving")]
    made_old(tmp_path)
    lines: list[str] = []
    with open_use_cases(chosen, lines.append):
        pass
    assert "the words of 2 memories are made anew" in lines
    with in_thread(chosen) as service:
        after = [ask(service, "p", text).hits for text in ("火车", "__str__", "leaving")]
    assert [[hit.memory.id for hit in hits] for hits in after] == [[hit.memory.id for hit in hits] for hits in before]
    assert [hits[0].memory.id for hits in after] == ["a"] * 3
    assert [list(hits[0].matched_terms) for hits in after] == [list(hits[0].matched_terms) for hits in before]
