"""Entries that a text refers to."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from hummock.core.learning import Entry, Reference
from hummock.learning.references import Entries, NameIndex, ProjectReferences, references
from hummock.store.snapshot import TableSnapshot
from tests.learning.said import World, worlds
from tests.learning_desk import PROJECT, LearningDesk, learning_desk
from tests.strategies import delete_request, learned_request

FUSE = 0.6
NAMES = st.text(st.sampled_from("潮汐木芯火球术水果然后Tide woodArt· （）_"), max_size=8)


def entry(memory_id: str, title: str, *keywords: str) -> Entry:
    return Entry(memory_id=memory_id, title=title, keywords=keywords)


def found(text: str, *entries: Entry, min_similarity: float = FUSE) -> dict[str, float]:
    return {one.memory_id: one.similarity for one in references(text, entries, min_similarity)}


def _counts(several: list[World]) -> tuple[int, int, int]:
    """References that are right, wrong and missing."""
    right = wrong = missing = 0
    for world in several:
        for text, meant in world.said:
            got = {one.memory_id for one in references(text, world.entries, FUSE)}
            right, wrong, missing = right + len(got & meant), wrong + len(got - meant), missing + len(meant - got)
    return right, wrong, missing


def test_nine_of_ten_references_are_right_and_nearly_all_are_found() -> None:
    """S3-17, S3-18, S3-43, 1.1-8: names of two characters among them, and near misses alongside every name."""
    everything = worlds()
    assert sum(len(world.said) for world in everything) >= 150
    right, wrong, missing = _counts(everything)
    assert right / (right + wrong) >= 0.9
    assert right / (right + missing) >= 0.95


def _one(name: str) -> list[Entry]:
    return [entry(name, name)]


WOOD = entry("世界.图鉴.物品.潮汐木芯", "潮汐木芯", "硬木头", "hard timber")
NESTED = [entry("ball", "火球"), entry("spell", "火球术"), entry("plan", "还款计划"), entry("pay", "还款")]
DRAGONS = [entry("d", "冰霜巨龙"), entry("b", "冰霜巨熊")]
TICKETS = [entry("a", "二级船票"), entry("b", "2级船票权限"), entry("c", "已结清证明")]


@pytest.mark.parametrize(
    ("text", "entries", "expected"),
    [
        # A learned keyword refers to its entry as its name does.
        *((text, [WOOD], {WOOD.memory_id: 1.0}) for text in ("潮汐木芯呢", "找硬木头", "Some hard timber!")),
        # A slip is as similar as the bar.
        ("潮汐木心", _one("潮汐木芯"), {"潮汐木芯": pytest.approx(FUSE)}),
        ("RepaymentServise", _one("RepaymentService"), {"RepaymentService": pytest.approx(0.8)}),
        # What only happens to meet is no name.
        *(
            (text, _one(name), {})
            for text, name in (("结果子弹打完了", "果子"), ("草木剑拔弩张", "木剑"), ("宝剑", "剑"))
        ),
        *((text, _one(name), {}) for text, name in (("start the party", "art"), ("maple", "map"))),
        # A phrase inside a longer name is part of it.
        ("火球术", NESTED, {"spell": 1.0}),
        ("火球术打散了火球", NESTED, {"spell": 1.0, "ball": 1.0}),
        # A slip that could be of several names is of none; entries of one name are both meant.
        ("冰霜巨狼", DRAGONS, {}),
        ("冰霜巨龙", DRAGONS, {"d": 1.0}),
        ("去风车镇", [entry("b", "风车镇"), entry("a", "风车镇")], {"a": 1.0, "b": 1.0}),
        # A part that another entry has too means neither by itself.
        ("木芯呢", [entry("whole", "潮汐木芯"), entry("other", "铁石木芯")], {}),
        ("木芯呢", [entry("whole", "潮汐木芯"), entry("other", "木芯")], {"other": 1.0}),
        ("木芯呢", [entry("whole", "潮汐木芯"), entry("other", "木芯工坊")], {"whole": 0.8}),
        ("潮汐", [], {}),
        ("", [entry("a", "潮汐")], {}),
        # A number or a not is no slip.
        *((text, TICKETS, {}) for text in ("三级船票", "3级船票权限", "未结清证明")),
        # Case, width, plural and spacing do not count.
        *(
            (text, [entry("g", "API网关", "Salt Roads")], {"g": 1.0})
            for text in ("api 网关", "ＡＰＩ网关", "salt   roads")
        ),
        ("the SALT road", [entry("g", "API网关", "Salt Roads")], {"g": 1.0}),
        # A name that is an everyday word is one as it is written.
        ("Will knows", _one("Will"), {"Will": 1.0}),
        *((text, _one("Will"), {}) for text in ("I will go", "will")),
    ],
)
def test_a_text_refers_to_these_entries(text: str, entries: list[Entry], expected: dict[str, float]) -> None:
    """S3-01, S3-18, 1.1-8: Fuse's distance of 0.4."""
    assert found(text, *entries) == expected


def test_a_slip_and_a_part_are_less_similar_than_a_name_and_one_of_two_characters_is_found_by_no_slip() -> None:
    """1.1-8."""
    assert found("木芯呢", *NAMED) == {"潮汐木芯": pytest.approx(0.8)}
    assert found("木芯呢", *NAMED, min_similarity=0.81) == {}
    assert found("潮汐木心", *_one("潮汐木芯"), min_similarity=0.61) == {}
    assert found("木箭和铜剑", *_one("木剑"), min_similarity=0.0) == {}


NAMED = [
    entry(name, name)
    for name in (
        *("潮汐木芯", "二级船票", "已结清证明", "欧阳若兰", "玄铁重剑", "数据备份", "北京大学"),
        *("Captain Elira Vance", "Grey Harbour", "San Francisco"),
    )
]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("我想买木芯", "潮汐木芯"), ("木芯需要多少？", "潮汐木芯"), ("若兰在哪里", "欧阳若兰"),
        ("ask Vance about it", "Captain Elira Vance"), ("Elira, 你在哪里？", "Captain Elira Vance"),
        ("the Harbour", "Grey Harbour"), ("潮汐木心", "潮汐木芯"), ("歐陽若蘭", "欧阳若兰"), ("三级船票", None),
        ("未结清证明", None), ("一级和二楼", None), ("is there a harbour", None), ("elira", None), ("玄铁很贵", None),
        ("Ask Vance.", "Captain Elira Vance"), ("Is it Elira Vance?", "Captain Elira Vance"),
        ("Captain Ahab hunts the whale", None), ("I read of Cyrus Vance", None), ("Grey days are over", None),
        ("The end. Harbour prices rise", None), ("记得备份", None), ("我明天要去北京", None),
        ("San Diego is far", None),
    ],
)  # fmt: skip
def test_a_part_of_a_compound_name_refers_to_it_as_people_say_it(text: str, meant: str | None) -> None:
    """S3-17, 1.1-8: the last or first part, and traditional characters for simplified ones."""
    assert set(found(text, *NAMED)) == ({meant} if meant else set())


@pytest.mark.parametrize("name", ["", " ", "，。", "the", "a", "的" * 200, "\ud800", "()", "（）", "·", "_"])
def test_what_is_no_name_refers_to_nothing(name: str) -> None:
    assert set(found("the a 的的的 \ud800 () · hello", entry("n", name))) <= set()


def test_the_most_similar_come_first_and_equal_ones_by_id() -> None:
    entries = [entry("c", "火山"), entry("b", "潮汐木芯"), entry("a", "风车镇")]
    order = references("火山上的潮汐木心，风车镇", entries, FUSE)
    assert [one.memory_id for one in order] == ["a", "c", "b"]
    assert all(isinstance(one, Reference) for one in order)


@pytest.mark.long
@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    versions=st.lists(st.dictionaries(st.sampled_from("abcd"), st.lists(NAMES, min_size=1, max_size=3)), max_size=4),
    text=NAMES,
    min_similarity=st.sampled_from([0.0, 0.5, FUSE, 1.0]),
)
def test_a_followed_index_answers_as_new(
    versions: list[dict[str, list[str]]], text: str, min_similarity: float
) -> None:
    index = NameIndex()
    entries: list[Entry] = []
    for version in versions:
        entries = [entry(memory_id, *names) for memory_id, names in version.items()]
        index.follow(entries)
    assert index.references(text, min_similarity) == references(text, entries[::-1], min_similarity)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(names=st.lists(NAMES, min_size=1, max_size=5, unique=True), before=NAMES, behind=NAMES)
def test_a_lower_bar_finds_no_less(names: list[str], before: str, behind: str) -> None:
    entries = [entry(f"{number}", name) for number, name in enumerate(names)]
    exact, similar = (set(found(f"{before} {names[0]} {behind}", *entries, min_similarity=bar)) for bar in (1.0, FUSE))
    assert exact <= similar


@pytest.mark.long
def test_of_ten_thousand_entries_few_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed."""
    entries = [
        entry(f"{number}", f"{chr(0x4E00 + number)}{chr(0x5E00 + number % 977)}木芯") for number in range(10_000)
    ]
    index = NameIndex()
    index.follow(entries)
    compared = counted(monkeypatch)
    text = f"我要去找{entries[77].title}，听说它在很远的地方，而且没有人见过它"
    assert index.references(text, FUSE)[0].memory_id == "77"
    assert len(compared) < 1000


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "most_looked_at"), [("去灰港灯塔的路", 50), ("灰港灯塔" * 200, 200 * 50), ("灰港登塔" * 200, 200 * 50)]
)
def test_entries_of_one_name_cost_as_one_does(monkeypatch: pytest.MonkeyPatch, text: str, most_looked_at: int) -> None:
    """Counted, not timed."""
    index = NameIndex()
    index.follow([entry(f"{number:04}", "灰港灯塔") for number in range(3000)])
    compared = counted(monkeypatch)
    assert len(index.references(text, FUSE)) in (0, 3000)
    assert 0 < len(compared) < most_looked_at


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Texts that are compared from now on, in order."""
    compared: list[str] = []

    class Counting:
        @staticmethod
        def distance(one: str, other: str, *, score_cutoff: int) -> int:
            compared.append(one)
            return OSA.distance(one, other, score_cutoff=score_cutoff)

    monkeypatch.setattr("hummock.learning.references.OSA", Counting)
    return compared


def test_what_is_kept_of_a_project_serves_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    find = ProjectReferences()
    ours, theirs = (entry("a", "潮汐"),), (entry("b", "火山"),)
    assert [one.memory_id for one in find("p", "潮汐和火山", ours, FUSE)] == ["a"]
    assert [one.memory_id for one in find("q", "潮汐和火山", theirs, FUSE)] == ["b"]
    assert [one.memory_id for one in find("p", "潮汐和火山", (*ours, *theirs), FUSE)] == ["a", "b"]
    assert find("p", "潮汐和火山", (), FUSE) == []
    # With more projects than the cache holds, each still finds its own entries.
    monkeypatch.setattr("hummock.learning.references.MAX_PROJECTS", 1)
    find = ProjectReferences()
    for _ in range(2):
        assert [one.memory_id for one in find("p", "潮汐和火山", ours, FUSE)] == ["a"]
        assert [one.memory_id for one in find("q", "潮汐和火山", theirs, FUSE)] == ["b"]


# Entries as they are kept from turn to turn.


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[LearningDesk]:
    with learning_desk(tmp_path) as opened:
        opened.entries("wood", "star")
        yield opened


def set_keywords(desk: LearningDesk, memory_id: str, *keywords: str) -> None:
    desk.place.store.write(PROJECT, learned_request(memory_id, *keywords)).result()


def listed(desk: LearningDesk, entries: Entries) -> tuple[Entry, ...]:
    return desk.place.store.read(PROJECT, partial(entries.of, PROJECT))


def test_what_is_learnt_is_seen_without_reading_memories_again(
    desk: LearningDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = Entries()
    before = listed(desk, entries)
    reads = 0
    page = TableSnapshot.page

    def counting(*arguments: object, **named: object) -> object:
        nonlocal reads
        reads += 1
        return page(*arguments, **named)  # type: ignore[arg-type] # as they came

    monkeypatch.setattr(TableSnapshot, "page", counting)
    set_keywords(desk, "wood", "timber")
    after = listed(desk, entries)
    assert after == (Entry(memory_id="wood", title="wood", keywords=("timber",)), before[1])
    assert after[1] is before[1]
    assert listed(desk, entries) is after
    assert reads == 0


def test_an_entry_that_is_new_changed_or_gone_is_seen(desk: LearningDesk) -> None:
    entries = Entries()
    listed(desk, entries)
    set_keywords(desk, "star", "chart")
    listed(desk, entries)
    desk.entries("port")
    assert {entry.memory_id: entry.keywords for entry in listed(desk, entries)} == {
        "wood": (),
        "star": ("chart",),
        "port": (),
    }
    desk.place.store.write(PROJECT, delete_request(["star"])).result()
    assert [entry.memory_id for entry in listed(desk, entries)] == ["wood", "port"]


def test_of_more_projects_than_are_cached_each_has_its_own(desk: LearningDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hummock.learning.references.MAX_PROJECTS", 1)
    entries = Entries()
    for _ in range(2):
        assert [entry.memory_id for entry in listed(desk, entries)] == ["wood", "star"]
        assert desk.place.store.read("another", partial(entries.of, "another")) == ()
