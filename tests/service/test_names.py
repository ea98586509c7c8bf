"""A query that is one name, or a place of a stack trace; and versions and overloads of one function."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from hummock_client import vector
from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, learn, render
from tests.service.inputs import fragment, note
from tests.service.running import Stubs

pytestmark = pytest.mark.storeless

MEMORIES = 3000
BATCH = 500
PARTS = "parse date user ledger repayment interest plan book entry close open total rate".split()  # noqa: SIM905 - reads as words
CHARACTERS = "先本后息还款方式合同利率账户日期计算逻辑分期提前逾期罚金客户经理审批额度"
SEEDS = (1, 2, 3)


def made_up(rng: random.Random, words: int) -> str:
    """A text out of the parts of names and of Chinese characters, none of which is a whole name."""
    pieces = [rng.choice((rng.choice(PARTS), "".join(rng.choices(CHARACTERS, k=3)))) for _ in range(words)]
    return " ".join(pieces)


def names_of(rng: random.Random) -> list[str]:
    first, second, third = rng.sample(PARTS, 3)
    return [
        f"{first}_{second}_{rng.choice('qxz')}w",
        f"{first.capitalize()}{second.capitalize()}Q{third}",
        f"{first}.{second}.v{rng.randrange(70, 99)}",
        rng.choice(("潮汐", "木芯", "罗盘", "灯塔")),
        "世界.图鉴.物品." + rng.choice(("鲸骨", "磷火")),
        rng.choice(("zymurgy", "quixotry")),
    ]


@pytest.fixture(scope="module", params=SEEDS)
def filled(request: pytest.FixtureRequest, service: Stubs) -> tuple[str, dict[str, set[str]]]:
    """A project with many memories, and who holds each name. Some holders are long, and old."""
    rng = random.Random(request.param)  # noqa: S311 - a seed, not a secret
    vectors = np.random.default_rng(request.param)
    project = f"names-{request.param}"
    holders: dict[str, set[str]] = {name: set() for name in names_of(rng)}
    texts = {f"m{number}": made_up(rng, rng.choice((4, 12, 60))) for number in range(MEMORIES)}
    for name in holders:
        for memory_id in rng.sample(sorted(texts), rng.choice((1, 2, 3))):
            texts[memory_id] = f"{made_up(rng, rng.choice((1, 400)))} {name} {texts[memory_id]}"
            holders[name].add(memory_id)
    model = service.admin.GetStatus().model
    inputs = []
    for memory_id, text in texts.items():
        values = vectors.standard_normal(model.dim).astype("<f4")
        memory = note(text, id=memory_id, vector=pb.Embedding(values=values.tobytes(), emb_space=model.emb_space))
        memory.create_time.FromSeconds(1_600_000_000 + rng.randrange(10_000_000))
        inputs.append(memory)
    for start in range(0, len(inputs), BATCH):
        learn(service, project, *inputs[start : start + BATCH])
    return project, holders


@pytest.mark.long
@pytest.mark.parametrize("preset", [recall.PRESET_AGENT, recall.PRESET_CODE, recall.PRESET_CHAT])
def test_all_holders_of_a_rare_name_are_the_first_hits(
    service: Stubs, filled: tuple[str, dict[str, set[str]]], preset: recall.Preset.ValueType
) -> None:
    """Identifiers, dotted ids and words of two Chinese characters, held by at most three memories: all in the top 3."""
    project, holders = filled
    for name, expected in holders.items():
        hits = ask(service, project, name, preset=preset).hits
        assert {hit.memory.id for hit in hits[: len(expected)]} == expected, name
        scores = [hit.score for hit in hits]
        assert scores == sorted(scores, reverse=True)


def test_holders_that_say_nearly_the_same_are_all_shown_first(service: Stubs, project: str) -> None:
    """A name is looked up: near-twins are not sent to the end (1.1-7)."""
    learn(service, project, *(note(f"call parse_dates_qw twice, {number}") for number in ("one", "two", "three")))
    learn(service, project, *(note(f"parse the dates of {number} entries twice") for number in range(20)))
    hits = ask(service, project, "parse_dates_qw").hits
    assert all("parse_dates_qw" in hit.memory.content for hit in hits[:3])


def test_a_name_that_many_hold_is_searched_for(service: Stubs, project: str) -> None:
    learn(service, project, *(note(f"parse_dates_qw in file {number}") for number in range(8)))
    answer = ask(service, project, "parse_dates_qw", top_k=5)
    assert len(answer.hits) == 5


@pytest.mark.long
@pytest.mark.parametrize("name", ["__reload__", "confirm", "Max", "parse_Date", "Ledger.Max"])
def test_a_name_is_told_from_other_forms_of_its_word(service: Stubs, project: str, name: str) -> None:
    """One exact identifier, whose terms many others hold, all of its holders in the top 3."""
    known = {"__reload__": "reload", "confirm": "confirmed", "Max": "max", "parse_Date": "parse_date"}
    others = known.get(name, "ledger.Max, Ledger")
    learn(service, project, *(note(f"{others} {number}") for number in range(40)))
    long_text = "the ledger is closed at the end of the month by two people " * 8
    learn(service, project, *(note(f"{long_text} {number} {name}") for number in range(3)))
    hits = ask(service, project, name).hits
    assert all(name in hit.memory.content for hit in hits[:3])


@pytest.mark.long
@pytest.mark.parametrize("name", ["__str__", "_str", "Str", "STR", "str_"])
def test_capitals_and_underscores_tell_a_name_from_any_number_of_others(
    service: Stubs, project: str, name: str
) -> None:
    """There are more others than are read for it."""
    others = {"__str__", "_str", "Str", "STR", "str_", "str", "__str"} - {name}
    texts = [f"{other} in place {number}" for number in range(60) for other in sorted(others)]
    learn(service, project, *map(note, texts))
    learn(service, project, *(note(f"{'the ledger is closed ' * 30}{number} {name}: 账本") for number in range(2)))
    hits = ask(service, project, name, preset=recall.PRESET_CODE).hits
    assert all(f"{name}: 账本" in hit.memory.content for hit in hits[:2])
    assert all(f"{name}: 账本" not in hit.memory.content for hit in hits[2:])


CASES = (
    "parse_repayment_date",
    "parseRepaymentDate",
    "ParseRepaymentDate",
    "PARSE_REPAYMENT_DATE",
    "parse-repayment-date",
)
BODY = "if value is None: raise ValueError"


def function(name: str, file: str) -> pb.Memory:
    return fragment(f"{file}.py", name, f"def {name}(value):\n    {BODY}", id=file)


def teach_parts(service: Stubs, project: str) -> None:
    """Functions with some of the parts of the name, and one with all of them in another order."""
    names = ("parse_date", "parse_repayment", "repayment_date_parse", "date_of_repayment", "parse_the_repayment_date")
    inputs = [function(name, f"{name}-{number}") for name in names for number in range(8)]
    learn(service, project, *inputs)


@pytest.mark.parametrize("preset", [recall.PRESET_AGENT, recall.PRESET_CODE])
@pytest.mark.parametrize("written", CASES)
def test_a_name_is_found_in_whatever_case_it_is_asked_for(
    service: Stubs, project: str, written: str, preset: recall.Preset.ValueType
) -> None:
    teach_parts(service, project)
    learn(service, project, function(written, "definition"))
    for asked in CASES:
        answer = ask(service, project, asked, preset=preset)
        assert [*answer.hits, *answer.code_fragments][0].memory.id == "definition", asked


def test_a_name_in_the_case_that_is_asked_for_comes_first(service: Stubs, project: str) -> None:
    teach_parts(service, project)
    learn(service, project, *(function(name, f"file-{name}") for name in CASES))
    for asked in CASES:
        hits = ask(service, project, asked, near_twin_bar=2.0).hits
        assert hits[0].memory.id == f"file-{asked}"
        assert {hit.memory.id for hit in hits[: len(CASES)]} == {f"file-{name}" for name in CASES}


def test_a_name_in_camel_case_is_found_in_small_letters(service: Stubs, project: str) -> None:
    teach_parts(service, project)
    learn(service, project, function("parseRepaymentDate", "definition"))
    hits = ask(service, project, "parserepaymentdate").hits
    assert hits[0].memory.id == "definition"
    assert [(one.asked, one.meant) for one in hits[0].corrections] == [("parserepaymentdate", "parseRepaymentDate")]


REAL = pytest.mark.usefixtures("real_models")
V1 = '''def parse_date(text):
    """Parse a date such as 2024-05-02 and return a datetime."""
    return datetime.strptime(text, "%Y-%m-%d")
'''
V2 = '''def parse_date(text, default=None):
    """Parse a date such as 2024-05-02 or 2024/05/02 and return a datetime."""
    for form in ("%Y-%m-%d", "%Y/%m/%d"):
        try:
            return datetime.strptime(text, form)
        except ValueError:
            continue
    return default
'''
DISCLAIMER = "This software is provided as is, without warranty of any kind, express or implied. The parties agree."
QUERY = "parse_date with a default for a date such as 2024/05/02"


@pytest.fixture
def versions(service: Stubs, project: str) -> str:
    legal = note(DISCLAIMER, id="legal_disclaimer.txt")
    learn(service, project, named("parse_date_v1.py", V1), named("parse_date_v2.py", V2), legal)
    return project


def named(path: str, content: str) -> pb.Memory:
    return fragment(path, "parse_date", content, id=path)


def ids(answer: recall.RecallResponse) -> list[str]:
    return [hit.memory.id for hit in answer.hits]


@REAL
@pytest.mark.parametrize(
    "query", [QUERY, "parse_date v2 with white space", "how do I parse an ISO date?", "日期 parse_date"]
)
def test_behind_one_version_never_comes_the_other(service: Stubs, versions: str, query: str) -> None:
    """S2-07, S2-01, 1.1-7."""
    answer = ask(service, versions, query)
    first, second, third = ids(answer)
    assert ({first, third}, second) == ({"parse_date_v2.py", "parse_date_v1.py"}, "legal_disclaimer.txt")
    assert [hit.near_twin for hit in answer.hits] == [False, False, True]
    assert first == "parse_date_v2.py" or query != QUERY


@REAL
def test_versions_stand_apart_and_the_newest_comes_first(service: Stubs, versions: str) -> None:
    """1.1-7, S2-01, S2-07, S2-10, S2-19: λ 0.7 alone does not part them; the last query is the name itself."""
    assert ids(ask(service, versions, QUERY, near_twin_bar=2.0))[:2] == ["parse_date_v2.py", "parse_date_v1.py"]
    rendered = render(service, versions, QUERY, form=context.RENDER_FORM_WATERFALL)
    assert rendered.text.index("return default") < rendered.text.index("without warranty")
    shown = [one.memory_id for one in rendered.memories]
    assert shown == ["parse_date_v2.py", "legal_disclaimer.txt", "parse_date_v1.py"]
    newest = named("parse_date_v3.py", V3)
    newest.create_time.FromDatetime(datetime.now(UTC) + timedelta(minutes=1))
    learn(service, versions, newest, note("parse_date is called by the importer.", id="caller"))
    for answer in (ask(service, versions, "parse_date"), ask(service, versions, "parse_date", top_k=50)):
        assert ids(answer)[0] == "parse_date_v3.py"
        assert set(ids(answer)[-2:]) == {"parse_date_v1.py", "parse_date_v2.py"}
        assert [hit.near_twin for hit in answer.hits][-2:] == [True, True]


V3 = V2.replace("parse_date(text, default=None)", "parse_date(text, default=None, zone=None)")


@REAL
def test_siblings_are_no_twins(service: Stubs, project: str) -> None:
    """S2-07: four environments' addresses, rows of a table and functions of one family are all wanted."""
    places = ("development", "testing", "staging", "production")
    texts = [f"The address of the {place} environment is 10.0.{n}.7:5432" for n, place in enumerate(places)]
    others = "Lunch is at noon.", DISCLAIMER, "我们周五不发版", "The office cat is called Miso."
    rows = [note(text, id=place) for place, text in zip(places, texts, strict=True)]
    learn(service, project, *rows, *map(note, others))
    answer = ask(service, project, "What are the addresses of our environments?")
    assert set(ids(answer)[:4]) == set(places)
    assert not any(hit.near_twin for hit in answer.hits)


def java(path: str, symbol: str, content: str, first: int, vector: pb.Embedding | None = None) -> pb.Memory:
    last = first + content.count("\n")
    return pb.Memory(
        id=f"{path}:{first}",
        kind=pb.MEMORY_KIND_CODE_FRAGMENT,
        origin=pb.ORIGIN_INDEXER,
        content=content,
        vector=vector,
        code_fragment=pb.CodeFragment(path=path, symbol=symbol, language="java", start_line=first, end_line=last),
    )


def codes(reply: recall.RecallResponse) -> list[str]:
    return [hit.memory.id for hit in (*reply.hits, *reply.code_fragments) if hit.memory.HasField("code_fragment")]


@pytest.mark.parametrize("preset", [recall.PRESET_CODE, recall.PRESET_AGENT])
@pytest.mark.parametrize(
    ("trace", "found"),
    [
        ("java.lang.IllegalStateException\n\tat shop.Cart.add(Cart.java:23)", "shop/Cart.java:20"),
        ("\tat shop.Cart.total(Cart.java:41)\n\tat shop.Main.main(Main.java:5)", "shop/Cart.java:40"),
        ("why does it fail at /home/me/work/old/Cart.java:21 ?", "old/Cart.java:20"),
    ],
)
def test_the_fragment_that_a_trace_names_comes_first(
    service: Stubs, project: str, trace: str, found: str, preset: recall.Preset.ValueType
) -> None:
    body = "{\n  check(item);\n  items.add(item);\n  return this;\n}"
    learn(
        service,
        project,
        *(java(f"{folder}/Cart.java", f"Cart.{name}", f"{folder} Cart {name}(Item item) {body}", first)
          for folder in ("shop", "old")
          for name, first in (("add", 20), ("remove", 30), ("total", 40))),
        *(java(f"shop/Main{n}.java", "Main.main", f"void main{n}(String[] a) {body}", 1) for n in range(20)),
    )  # fmt: skip
    assert codes(ask(service, project, trace, preset=preset))[0] == found


@pytest.mark.parametrize("preset", [recall.PRESET_CODE, recall.PRESET_AGENT])
@pytest.mark.parametrize("question", ["What does the class Cart do?", "Cart 这个类是做什么的？"])
def test_what_a_class_does_is_answered_by_its_documentation(
    service: Stubs, project: str, question: str, preset: recall.Preset.ValueType
) -> None:
    """Its first fragment, not a later part, a method, or code that speaks of it."""
    learn(
        service,
        project,
        java("shop/Cart.java", "Cart", "/** Holds goods until they are paid. */\nclass Cart {\n  int size;\n}", 1),
        java("shop/Cart.java", "Cart", "  int total;\n  int weight;", 60),
        java("shop/Cart.java", "Cart.Cart", "Cart(Shop shop) { this.shop = shop; }", 5),
        *(
            java("shop/Cart.java", f"Cart.do{n}", f"Cart do{n}(Cart cart) {{ do class Cart; }}", 10 + n)
            for n in range(9)
        ),
        *(
            java(f"shop/Use{n}.java", f"Use{n}", f"class Use{n} {{ Cart cart; }} // what class Cart does", 1)
            for n in range(9)
        ),
    )
    assert codes(ask(service, project, question, preset=preset))[0] == "shop/Cart.java:1"


def test_overloads_of_an_indexed_file_are_no_versions_of_each_other(service: Stubs, project: str) -> None:
    """S2-05, S2-07."""
    model = service.admin.GetStatus().model
    same = vector([1.0, *[0.0] * (model.dim - 1)], model.emb_space)
    kinds = ("Circle circle", "Square square", "List<Shape> shapes, int digits")
    told = [f"double area({kind}) {{ return {place}; }}" for place, kind in enumerate(kinds)]
    learn(service, project, *(java("geo/Area.java", "Area.area", text, 10 * n, same) for n, text in enumerate(told, 1)))
    reply = ask(service, project, "the overloads of area", preset=recall.PRESET_CODE, query_vector=same)
    hits = [*reply.hits, *reply.code_fragments]
    assert len(hits) == 3
    assert not any(hit.near_twin for hit in hits)


def test_one_overload_told_twice_is_a_version(service: Stubs, project: str) -> None:
    """S2-05."""
    model = service.admin.GetStatus().model
    same = vector([1.0, *[0.0] * (model.dim - 1)], model.emb_space)
    for n, text in enumerate(("double area(Circle c) { return 1; }", "double area( Circle c ) { return 2; }"), 1):
        learn(service, project, java("geo/Area.java", "Area.area", text, 10 * n, same))
    reply = ask(service, project, "the overloads of area", preset=recall.PRESET_CODE, query_vector=same)
    assert [hit.near_twin for hit in (*reply.hits, *reply.code_fragments)] == [False, True]
