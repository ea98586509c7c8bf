"""The log gives the state, for any history and after any interruption."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from hummock.core.learning import KeywordsSet, Profile, Usage
from hummock.core.learning_requests import SettingsChanges
from hummock.core.memory import MemoryKind
from tests.learning import fuzz
from tests.learning.living import SCOPES, WORDS, begin, live
from tests.learning.workbench import TITLES, Workbench, entry_id
from tests.store.opening import opened

pytestmark = pytest.mark.long


EVENTS = 2000

ANY_TITLES = st.lists(st.sampled_from(TITLES), max_size=3, unique=True)
ANY_WORDS = st.lists(st.sampled_from(WORDS), max_size=3, unique=True).map(tuple)
ANY_SCOPE = st.sampled_from(SCOPES)
ANY_TURN = st.integers(0, 40)


class Life(RuleBasedStateMachine):
    """Every operation on a project's learning, restarts among them.

    What was learnt and counted is kept by title alongside it, so that nothing but what should changes it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()
        self._directory = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        self._open = ExitStack()

    @initialize()
    def begin(self) -> None:
        self.bench = Workbench(self._open.enter_context(opened(self._directory)))
        begin(self.bench)

    @rule(titles=ANY_TITLES, words=ANY_WORDS, turn=ANY_TURN, scope=ANY_SCOPE, room=st.integers(0, 5))
    def say(self, titles: list[str], words: tuple[str, ...], turn: int, scope: str, room: int) -> None:
        before = self.bench.usage(scope)
        is_on = self.bench.state().enabled
        self.bench.say(" / ".join((*titles, *words)), turn, scope=scope, room=room)
        event = self.bench.injected()[-1]
        for memory_id in event.referenced_ids:
            title = memory_id.removeprefix("世界.v1.")
            known = before.get(title, Usage())
            assert self.bench.usage(scope)[title].frequency == known.frequency + (known.counted_turn != turn)
        assert is_on or self.bench.usage(scope) == before

    @rule(turn=ANY_TURN, scope=ANY_SCOPE)
    def observe(self, turn: int, scope: str) -> None:
        before = self._learnt()
        self.bench.observe([turn], "words", scope)
        assert self._learnt() == before

    @rule(titles=ANY_TITLES.filter(bool), words=ANY_WORDS)
    def learn(self, titles: list[str], words: tuple[str, ...]) -> None:
        known = self.bench.profiles().get(titles[0], Profile())
        self.bench.learn(titles[0], *words, analyzed=titles[1:])
        learnt = self.bench.profiles()[titles[0]]
        assert set(learnt.keywords) == {*known.keywords, *words}
        assert learnt.miss_count == (0 if {*words} - {*known.keywords} else known.miss_count + 1)

    @rule(title=st.sampled_from(TITLES), words=ANY_WORDS)
    def write_keywords(self, title: str, words: tuple[str, ...]) -> None:
        self.bench.put(title)
        self.bench.update(keywords=[KeywordsSet(memory_id=entry_id(title), keywords=words)])
        assert self.bench.profiles().get(title, Profile()).keywords == words

    @rule(enabled=st.booleans())
    def switch(self, enabled: bool) -> None:
        before = self._learnt()
        self.bench.update(enabled=enabled)
        assert self._learnt() == before
        assert self.bench.state().enabled == enabled

    @rule(mid=st.integers(0, 4), more=st.integers(0, 8))
    def tune(self, mid: int, more: int) -> None:
        before = self._learnt()
        self.bench.update(changes=SettingsChanges(mid_above=mid, high_above=mid + more))
        assert self._learnt() == before

    @rule(titles=ANY_TITLES.filter(bool), kind=st.sampled_from([MemoryKind.ENTRY, MemoryKind.NOTE]))
    def put(self, titles: list[str], kind: MemoryKind) -> None:
        self.bench.put(*titles, kind=kind)

    @rule(titles=ANY_TITLES.filter(bool))
    def remove(self, titles: list[str]) -> None:
        self.bench.remove(*titles)
        assert not set(titles) & self.bench.profiles().keys()
        assert not any(set(titles) & self.bench.usage(scope).keys() for scope in SCOPES)

    @rule(title=st.sampled_from(TITLES), is_useful=st.booleans())
    def judge(self, title: str, is_useful: bool) -> None:
        self.bench.judge(title, is_useful=is_useful)

    @rule()
    def restart(self) -> None:
        before = (self.bench.state(), self._learnt())
        self._open.close()
        self._open = ExitStack()
        self.bench = Workbench(self._open.enter_context(opened(self._directory)))
        assert (self.bench.state(), self._learnt()) == before

    @invariant()
    def the_log_gives_the_state(self) -> None:
        replayed = self.bench.replay(SettingsChanges())
        assert replayed.matches
        assert replayed.events == self.bench.state().events == len(self.bench.log())
        assert replayed.fork is not None
        assert replayed.fork.differing_count == 0

    def teardown(self) -> None:
        self._open.close()
        self._stack.close()

    def _learnt(self) -> tuple[object, ...]:
        return self.bench.profiles(), *(self.bench.usage(scope) for scope in SCOPES)


TestLife = pytest.mark.long(Life.TestCase)
TestLife.settings = settings(max_examples=10, stateful_step_count=20, deadline=None)


def test_two_thousand_events_give_the_state(tmp_path: Path) -> None:
    """S3-28, and I7 of the reliability notes."""
    random = Random(7)  # noqa: S311 - to be repeated, not to be secret
    with opened(tmp_path) as store:
        bench = Workbench(store)
        begin(bench)
        while bench.state().events < EVENTS:
            live(bench, random)
        assert bench.replay().matches


def test_the_log_gives_the_state_however_often_it_is_killed(tmp_path: Path) -> None:
    """S3-28: kill -9 at any moment loses nothing that was acknowledged."""
    kept, kills = fuzz.run(tmp_path, events=40, seed=3, most_steps=5)
    assert kept >= 40
    assert kills >= 2
