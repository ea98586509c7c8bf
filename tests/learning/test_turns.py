"""Turns that meet: what is counted when several are under way, and when something changes meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from random import Random

import pytest

from hummock.core.errors import RequestIdReused
from hummock.core.learning import NEVER, Entry, Injected, Usage
from hummock.core.learning_requests import ObserveCommand, SettingsChanges
from hummock.core.memory import Memory, MemoryKind
from hummock.core.session import ObservedTurn
from hummock.learning.log import KeptUsage
from hummock.learning.observe import Observe
from hummock.learning.references import Entries, ProjectReferences
from hummock.ports.store import Snapshot
from hummock.render.turn import RenderTurn
from hummock.store.tables.learning_log import StoredLearning
from tests.learning.workbench import Workbench, entry_id, titles, uuid
from tests.store.opening import opened

COMMITS = 500


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Workbench]:
    with opened(tmp_path) as store:
        made = Workbench(store)
        made.put("alder", "birch", "cedar")
        made.update(enabled=True)
        yield made


@pytest.mark.long
def test_five_hundred_turns_at_once_are_each_counted_once(bench: Workbench) -> None:
    """1.1-8: the counter is the writer's, so that nothing is lost between a read and a write."""
    turns = RenderTurn(bench.store, Entries(), ProjectReferences())

    def one(number: int) -> list[str]:
        text = "alder and birch" if number % 2 else "alder"
        return titles(bench.prepare(text, number, turns=turns)())

    with ThreadPoolExecutor(16) as workers:
        shown = list(workers.map(one, range(COMMITS)))
    assert all("alder" in titles for titles in shown)
    frequencies = {title: used.frequency for title, used in bench.usage().items()}
    assert frequencies == {"alder": COMMITS, "birch": COMMITS // 2}
    assert len(bench.injected()) == COMMITS
    assert bench.replay().matches


@pytest.mark.long
def test_five_hundred_repeats_of_one_turn_count_once(bench: Workbench) -> None:
    """S3-19."""
    turns = RenderTurn(bench.store, Entries(), ProjectReferences())
    with ThreadPoolExecutor(16) as workers:
        shown = list(
            workers.map(lambda _: bench.prepare("alder", 1, request_id=uuid(7), turns=turns)(), range(COMMITS))
        )
    assert len({rendered.text for rendered in shown}) == 1
    assert bench.usage() == {"alder": Usage(frequency=1, last_sent_turn=1, counted_turn=1)}
    assert len(bench.injected()) == 1


@pytest.mark.parametrize("is_observed", [False, True])
def test_a_turn_that_is_rendered_again_counts_once(bench: Workbench, *, is_observed: bool) -> None:
    """S3-19: each rendering with an id of its own, also after the answer that it replaces."""
    bench.say("alder", 4, request_id=uuid(1))
    if is_observed:
        bench.observe([4], "alder")
    assert bench.say("alder and birch", 4, request_id=uuid(2)) == ["alder", "birch"]
    assert {title: used.frequency for title, used in bench.usage().items()} == {"alder": 1, "birch": 1}
    bench.say("alder", 5, request_id=uuid(3))
    assert bench.usage()["alder"].frequency == 2
    assert bench.replay().matches


def test_a_turn_that_was_overtaken_is_rendered_again(bench: Workbench) -> None:
    """S3-24: the decision is that of the state in which it is counted."""
    late = bench.prepare("alder", 5)
    bench.say("birch", 5)
    assert titles(late()) == ["alder", "birch"]
    assert bench.injected()[-1].injected_ids == (entry_id("alder"), entry_id("birch"))


@pytest.mark.parametrize("change", [Workbench.remove, partial(Workbench.put, kind=MemoryKind.NOTE)])
def test_nothing_is_counted_for_what_is_no_entry_by_then(
    bench: Workbench, change: Callable[[Workbench, str], None]
) -> None:
    late = bench.prepare("alder and birch", 1)
    change(bench, "alder")
    assert titles(late()) == ["birch"]
    assert set(bench.usage()) == {"birch"}
    assert bench.replay().matches


def test_off_no_more_is_read_than_memory_has_room_for(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    """S3-37. All entries are tried, but for those after very long ones."""
    bench.update(enabled=False)
    assert bench.say("hello", 1) == ["alder", "birch", "cedar"]
    monkeypatch.setattr("hummock.render.turn._MOST_CHARACTERS", 2 * len("entry"))
    assert bench.say("hello", 2) == ["alder", "birch"]


def test_a_turn_during_which_learning_is_switched_off_injects_everything(bench: Workbench) -> None:
    """S3-37."""
    late = bench.prepare("alder", 1)
    bench.update(enabled=False)
    rendered = late()
    assert titles(rendered) == ["alder", "birch", "cedar"]
    assert rendered.decision
    assert bench.usage() == {}


def test_a_turn_during_which_learning_is_switched_on_is_decided(bench: Workbench) -> None:
    """S3-35."""
    bench.update(enabled=False)
    late = bench.prepare("alder", 1)
    bench.update(enabled=True)
    assert titles(late()) == ["alder"]
    assert bench.usage() == {"alder": Usage(frequency=1, last_sent_turn=1, counted_turn=1)}


def test_what_had_no_room_was_not_sent(bench: Workbench) -> None:
    """S3-22."""
    assert bench.say("alder birch cedar", 1, room=2) == ["alder", "birch"]
    assert bench.usage()["cedar"] == Usage(frequency=1, last_sent_turn=NEVER, counted_turn=1)
    assert bench.injected()[-1].dropped_ids == (entry_id("cedar"),)
    assert bench.say("nothing", 2) == ["cedar"]


def test_an_id_of_another_turn_is_refused_and_counts_nothing(bench: Workbench) -> None:
    bench.say("alder", 1, request_id=uuid(1))
    with pytest.raises(RequestIdReused):
        bench.say("birch", 1, request_id=uuid(1))
    assert set(bench.usage()) == {"alder"}


def test_entries_are_read_again_when_one_of_them_changes(bench: Workbench) -> None:
    entries = Entries()

    def now() -> tuple[Entry, ...]:
        return bench.store.read("p", partial(entries.of, "p"))

    first = now()
    assert now() is first
    bench.say("alder", 1)
    bench.put("a note", kind=MemoryKind.NOTE)
    assert now() is first
    bench.learn("alder", "harbour wood")
    assert [one.keywords for one in now() if one.title == "alder"] == [("harbour wood",)]
    bench.remove("birch")
    assert {one.title for one in now()} == {"alder", "cedar"}


def found(bench: Workbench, scope: str) -> Mapping[str, Usage]:
    return bench.store.read_learning("p", lambda learning: learning.usage(scope))


@pytest.mark.parametrize("seed", range(4))
def test_kept_usage_is_that_of_the_log(bench: Workbench, seed: int) -> None:
    """Whatever is logged between two turns of a scope."""
    made, kept = Random(seed), KeptUsage()  # noqa: S311 - made-up turns, no secrets
    for turn in range(1, 40):
        scope = made.choice(("", "other"))
        texts = made.sample(("alder", "birch", "cedar"), 2)
        match made.randrange(6):
            case 0:
                bench.remove(texts[0])
            case 1:
                bench.learn(texts[0], f"word {turn}", analyzed=texts[1:])
            case 2:
                bench.observe(range(turn, turn + made.choice((1, 40))), texts[0], scope)
            case _:
                bench.say(" and ".join(texts), turn, scope=scope, room=1)
        for asked in made.choices(("", "other"), k=2):
            assert bench.store.read_learning("p", partial(kept.of, scope=asked)).by_id == found(bench, asked)


def test_decoded_entries_are_not_looked_up_again_until_one_changes(bench: Workbench) -> None:
    entries, asked = Entries(), [entry_id(title) for title in ("alder", "birch", "nothing")]

    def loaded(snapshot: Snapshot) -> tuple[list[Memory | None], list[Memory | None]]:
        known = entries.of("p", snapshot)
        return entries.load("p", known, snapshot, asked), snapshot.get(asked)

    first, stored = bench.store.read("p", loaded)
    assert first == stored
    assert first[2] is None
    again, _ = bench.store.read("p", loaded)
    assert again[0] is first[0]
    bench.put("alder", kind=MemoryKind.NOTE)
    bench.remove("birch")
    changed, stored = bench.store.read("p", loaded)
    assert changed == stored
    assert changed != first


def test_a_later_turn_reads_only_the_events_since(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = KeptUsage()
    bench.say("alder", 1)
    assert bench.store.read_learning("p", lambda learning: set(kept.of(learning, "").ids)) == {entry_id("alder")}
    bench.note(Injected(scope="", turn=2, referenced_ids=(entry_id("birch"),)), Injected(scope="other", turn=2))
    monkeypatch.delattr(StoredLearning, "usage")
    usage = bench.store.read_learning("p", lambda learning: kept.of(learning, "").by_id)
    assert usage[entry_id("birch")] == Usage(frequency=1, counted_turn=2)


def test_a_restart_changes_nothing(tmp_path: Path) -> None:
    """S3-16, S3-38."""
    with opened(tmp_path) as store:
        bench = Workbench(store)
        bench.put("alder", "birch")
        bench.update(enabled=True, changes=SettingsChanges(high_above=5, mid_above=2))
        bench.say("alder", 3)
        bench.learn("birch", "pale")
        before = (bench.state(), bench.usage(), bench.profiles(), bench.replay())
    with opened(tmp_path) as store:
        bench = Workbench(store)
        assert (bench.state(), bench.usage(), bench.profiles(), bench.replay()) == before
        assert bench.say("nothing", 4) == []
        assert bench.say("a pale tree", 5) == ["birch"]


def test_a_turn_that_is_observed_again_is_learnt_from_once(bench: Workbench) -> None:
    """I6: a repeat that comes late would have the learner read old words for the newest."""
    told: list[str] = []
    observe = Observe(bench.store, lambda project, text: told.append(text))
    for text, request_id in (("alder", uuid(1)), ("birch", uuid(2)), ("alder", uuid(1))):
        observe(_observation(text, request_id))
    assert told == ["alder", "birch"]


def test_a_stored_turn_that_is_told_of_again_is_learnt_from_once(bench: Workbench) -> None:
    """I6: as a repeated LearnTurn does it."""
    told: list[str] = []
    observe = Observe(bench.store, lambda project, text: told.append(text))
    for text, seq in (("alder", 100), ("birch", 101), ("alder", 100)):
        observe.follow(
            ObservedTurn(project="p", session_id="s", user_text=text, assistant_text="", used_memory_ids=(), seq=seq)
        )
    bench.update(enabled=False)  # after it all that was written before has been told
    assert told == ["alder", "birch"]


def _observation(text: str, request_id: str) -> ObserveCommand:
    return ObserveCommand(
        project="p", scope="s", turn=1, user_text=text, assistant_text="", used_ids=(), request_id=request_id,
        fingerprint=text.encode(),
    )  # fmt: skip
