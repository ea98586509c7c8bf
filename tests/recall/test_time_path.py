"""Memories about a time that the query names are found by the time alone."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from hummock.core.memory import Filter, Origin
from hummock.core.recall import Preset, RecallPath
from tests.desk import Desk, ids, note

DAY_S = 86_400.0
FIRST = datetime(2024, 1, 1, 12, tzinfo=UTC).timestamp()
ENTRIES = 200
AS_OF = FIRST + ENTRIES * DAY_S
SUBJECTS = ("修好了自行车的链条", "the kettle broke again", "和邻居下了三盘棋", "read about tides", "剪短了头发")


@pytest.fixture
def diary(desk: Desk) -> Desk:
    """Two entries a day for as many days; none says which day it was."""
    entries = [
        replace(
            note(f"{SUBJECTS[number % len(SUBJECTS)]}，第{number}回", f"e{number}", origin=Origin.USER_INPUT),
            event_time=FIRST + number // 2 * DAY_S,
            create_time=FIRST,
        )
        for number in range(ENTRIES)
    ]
    desk.clock.move(AS_OF - desk.clock.now())
    desk.teach(*entries)
    return desk


@pytest.mark.parametrize("preset", [Preset.CHAT, Preset.AGENT])
@pytest.mark.parametrize(
    ("text", "day"), [("2月19日我做了什么", 49), ("What did I do on March 3rd?", 62), ("情人节那天发生了什么", 44)]
)
def test_a_day_brings_what_is_told_of_it(diary: Desk, preset: Preset, text: str, day: int) -> None:
    """S4-24, S4-26."""
    found = ids(diary.recall(text, preset=preset))
    assert {f"e{2 * day}", f"e{2 * day + 1}"} == set(found[:2])


def test_a_time_gives_its_nearest_under_a_filter_and_changes_no_lone_path(diary: Desk) -> None:
    """1.1-10."""
    first = diary.recall("2024年2月和邻居下棋", top_k=5, candidates=5).hits[0].memory
    assert "棋" in first.index.title
    assert 31 * DAY_S <= (first.event_time or 0.0) - FIRST + DAY_S / 2 < 60 * DAY_S
    text = "2月19日我做了什么"
    alone = frozenset({RecallPath.VECTOR})
    without = diary.recall(text, preset=Preset.CHAT, paths=alone, time_words=False)
    assert ids(diary.recall(text, preset=Preset.CHAT, paths=alone)) == ids(without)
    where = Filter(excluded_ids=("e98",), event_before=FIRST + 49.5 * DAY_S)
    assert ids(diary.recall("2月19日我做了什么", filter=where))[0] == "e99"
    assert "e98" not in ids(diary.recall("2月19日我做了什么", filter=where))
