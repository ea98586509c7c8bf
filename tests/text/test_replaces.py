"""Words by which a sentence replaces an older one, and words that do not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.eval.made import Half, half_of
from bench.eval.noise import rows
from hummock.text.normalise import nfkc, simplified
from hummock.text.questions import tells_change
from hummock.text.replaces import MAX_OLDER_CHARACTERS, Bearing, bearing_of, replaced_by_words

LEAST_RECALL = 0.5
LEAST_RECALL_OF_VALUES = 0.7
LEAST_PRECISION = 0.95

REPLACES = [
    ("缺省分支更名为 main，master 已经锁住。", "缺省分支叫 master。", "缺省分支更名为 main"),
    ("还款提醒改走企业微信推送了。", "还款提醒用短信发送。", "还款提醒改走企业微信推送了"),
    ("還款提醒改走企業微信推送了。", "还款提醒用短信发送。", "还款提醒改走企业微信推送了"),
    ("我不再对猫毛过敏。", "我对猫毛过敏，不能养猫。", "我不再对猫毛过敏"),
    ("站会改到十一点了", "站会改到十点了。", "站会改到十一点了"),
    ("王磊离职了，支付交给陈静。", "负责支付模块的是王磊。", "王磊离职了"),
    ("王磊离职了，支付交给陈静。", "王磊是四川人。", ""),
    ("竹笛断了。", "她随身带着一支竹笛。", "竹笛断了"),
    ("竹笛断了。", "她会吹竹笛。", ""),
    ("Deploys moved to Thursday.", "Deploys go out on Tuesdays.", "Deploys moved to Thursday"),
    ("Deploys moved to Thursday.", "Deploys take twelve minutes.", ""),
    (
        "The cache was cut to thirty seconds",
        "The cache expires after five minutes.",
        "The cache was cut to thirty seconds",
    ),
    ("The cache was cut to five minutes", "The cache expires after five minutes.", ""),
    ("The cache was cut to thirty seconds", "The cache is a Redis cluster.", ""),
    ("The reporting database was upgraded to 16.", "The dev database runs PostgreSQL 14.", ""),
    ("Lena started a pottery class.", "Lena owns the orders service.", ""),
    ("瑜伽课换到滨江店上了。", "瑜伽课在万达那家店上。", "瑜伽课换到滨江店上了"),
    ("站会推到十点开了。", "站会九点半开。", "站会推到十点开了"),
    ("房租现在是四千五了。", "房租每月四千二。", "房租现在是四千五了"),
    ("Standup is now at 10.", "Standup lasts fifteen minutes.", ""),
    ("My aunt has moved to Turin.", "My aunt lives in Genoa.", "My aunt has moved to Turin"),
    ("My aunt has moved to Turin.", "My aunt's cousin lives in Genoa.", ""),
    ("My aunt has moved to Turin.", "My aunt sings in Genoa.", ""),
    ("Book club now meets at Sam's place.", "Book club meets at the library.", "Book club now meets at Sam's place"),
    ("Swimming starts at five from next week.", "Swimming starts at four.", "Swimming starts at five from next week"),
    ("I sold the Civic on Friday", "I drive a white Civic.", "I sold the Civic on Friday"),
    ("I no longer eat meat.", "I eat meat twice a week.", "I no longer eat meat"),
    ("其实不是花生，是腰果过敏。", "我对花生过敏，吃一点嗓子就会肿。", "其实不是花生,是腰果过敏"),
    ("其实不是花生，是腰果过敏。", "我对猫毛过敏。", ""),
    ("更正一下，钥匙放在鞋柜里，不是抽屉里。", "钥匙在信箱里。", ""),
    ("更正一下，钥匙是放在鞋柜里，不是抽屉里。", "备用钥匙放在抽屉里。", "更正一下,钥匙是放在鞋柜里,不是抽屉里"),
    ("Correction: the port is 8443, not 8080.", "The admin port is 8080.", "Correction: the port is 8443, not 8080"),
    (
        "Actually it's not peanuts, it's cashews.",
        "I am allergic to peanuts.",
        "Actually it's not peanuts, it's cashews",
    ),
    (
        "Sorry, the review is not on Tuesday but Friday.",
        "The review is on Tuesday.",
        "Sorry, the review is not on Tuesday but Friday",
    ),
    ("Actually I do not like tea, it is too bitter.", "I like coffee.", ""),
    ("", "I eat meat.", ""),
    ("I no longer eat meat.", "", ""),
    ("The cache was cut to thirty seconds", "The cache expires after five minutes. " + "x" * MAX_OLDER_CHARACTERS, ""),
]


@pytest.mark.parametrize(("newer", "older", "clause"), REPLACES)
def test_a_clause_replaces_what_has_all_its_words_and_another_value(newer: str, older: str, clause: str) -> None:
    assert replaced_by_words(newer, older) == clause


@pytest.mark.parametrize(
    ("newer", "older", "is_other"),
    [
        ("游泳课改到周六了。", "钢琴课在每周三下午四点。", True),
        ("Painting class moved to Thursday.", "Pottery class is on Wednesday evenings.", True),
        ("Pottery class moved to Thursday.", "Pottery class is on Wednesday evenings.", False),
        ("We moved to Bristol, the house has a garden", "I live in a flat in Leeds near the station", False),
        ("Mia has learnt to juggle as well", "Mia rides a unicycle", True),
        ("She started juggling, too.", "She rides a unicycle", True),
        ("她现在也学会了打鼓", "她会拉手风琴", True),
        ("书架上现在还有两盏灯", "书架上有一盆绿萝", True),
        ("Too slow by now", "The build takes a minute", False),
        ("重试次数也提高到五次了", "重试次数是三次", False),
        ("我再也不吃香菜了", "我喜欢吃香菜", False),
        ("", "", False),
    ],
)
def test_a_change_of_a_named_thing_is_none_of_another(newer: str, older: str, is_other: bool) -> None:
    assert (bearing_of(newer, older) is not Bearing.MAY_REPLACE) is is_other


def verdicts() -> Iterator[tuple[str, str, bool]]:
    """Pairs of an older and a newer sentence, and whether the newer one replaces the older."""
    yield from ((old, new, True) for _, old, new, *_ in rows("changes.tsv"))
    yield from ((old, later, verdict == "replaces") for _, old, later, verdict in rows("replacements.tsv"))


def test_of_our_pairs_only_the_right_ones_are_said_to_replace() -> None:
    told = [(tells_change(new) and bool(replaced_by_words(new, old)), right) for old, new, right in verdicts()]
    found = sum(said and right for said, right in told)
    assert found >= LEAST_RECALL * sum(right for _, right in told)
    assert found >= LEAST_PRECISION * sum(said for said, _ in told)


@pytest.mark.parametrize("half", [Half.TUNE, Half.REPORT])
def test_another_day_time_place_or_number_of_the_same_thing_replaces(half: Half) -> None:
    pairs = [
        (old, later, verdict == "replaces")
        for id_, old, later, verdict in rows("rescheduled.tsv")
        if half_of(id_) == half
    ]
    told = [(tells_change(later) and bool(replaced_by_words(later, old)), right) for old, later, right in pairs]
    found = sum(said and right for said, right in told)
    assert found >= LEAST_RECALL_OF_VALUES * sum(right for _, right in told)
    assert found >= LEAST_PRECISION * sum(said for said, _ in told)


@given(
    st.text(max_size=30), st.text(max_size=30), st.sampled_from(["{} was renamed to {}", "{}改成{}", "no longer {}{}"])
)
def test_the_words_that_say_so_are_a_part_of_the_newer_text(first: str, second: str, told: str) -> None:
    newer = told.format(first, second)
    assert replaced_by_words(newer, second) in simplified(nfkc(newer))
