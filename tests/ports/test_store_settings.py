"""Storage of a project's settings."""

from __future__ import annotations

from pathlib import Path

from hummock.core.memory import Filter
from hummock.core.settings import NO_SETTINGS, PresetSettings, ProjectSettings
from hummock.ports.store import Generation, Store
from hummock.ports.writes import UnitOfWork
from tests.ports.asking import put
from tests.store.opening import opened
from tests.strategies import Entry, write_request

EIGHT = ProjectSettings(chat=PresetSettings(top_k=8))


def set_to(store: Store, settings: ProjectSettings, project: str = "p") -> int:
    def apply(work: UnitOfWork) -> None:
        work.set_settings(settings)
        assert work.settings() == settings

    return store.write(project, write_request(apply)).result().seq


def test_settings_are_there_after_the_write_and_move_the_generation(store: Store) -> None:
    """S4-46."""
    put(store, "p", Entry(id="a"))
    assert store.generation("p").settings is NO_SETTINGS
    set_to(store, EIGHT)
    assert store.generation("p") == Generation(seq=2, content_seq=2, settings=EIGHT)


def test_the_same_settings_again_move_nothing_but_seq(store: Store) -> None:
    """S4-46."""
    set_to(store, EIGHT)
    set_to(store, EIGHT)
    assert store.generation("p") == Generation(seq=2, content_seq=1, settings=EIGHT)


def test_settings_that_say_nothing_leave_nothing_behind(store: Store) -> None:
    """S4-46."""
    set_to(store, EIGHT)
    set_to(store, NO_SETTINGS)
    assert store.generation("p").settings is NO_SETTINGS
    put(store, "p", Entry(id="a"))
    assert store.generation("p").settings is NO_SETTINGS


def test_settings_are_a_projects_own(store: Store) -> None:
    """S0-06, S4-46."""
    set_to(store, EIGHT)
    put(store, "q", Entry(id="a"))
    assert store.generation("q").settings is NO_SETTINGS
    assert store.generation("unknown").settings is NO_SETTINGS


def test_settings_survive_a_restart_in_memory_or_not(tmp_path: Path) -> None:
    """S4-46, S4-02."""
    with opened(tmp_path) as store:
        put(store, "p", Entry(id="a"))
        set_to(store, EIGHT)
    with opened(tmp_path) as store:
        assert store.generation("p").settings == EIGHT
        assert store.page("p", Filter(), 0, 10, full=False).memories
        assert store.generation("p").settings == EIGHT


def test_a_write_that_fails_changes_no_setting(store: Store) -> None:
    def apply(work: UnitOfWork) -> None:
        work.set_settings(EIGHT)
        raise ValueError

    put(store, "p", Entry(id="a"))
    assert isinstance(store.write("p", write_request(apply)).exception(), ValueError)
    assert store.generation("p") == Generation(seq=1, content_seq=1)
