"""Code that is asked for by a place of a stack trace or by its class, and functions that differ in their parameters."""

from __future__ import annotations

import pytest

from hummock_client import vector
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, learn
from tests.service.running import Stubs

pytestmark = pytest.mark.storeless


def function(path: str, symbol: str, content: str, first: int, vector: pb.Embedding | None = None) -> pb.Memory:
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
        *(function(f"{folder}/Cart.java", f"Cart.{name}", f"{folder} Cart {name}(Item item) {body}", first)
          for folder in ("shop", "old")
          for name, first in (("add", 20), ("remove", 30), ("total", 40))),
        *(function(f"shop/Main{n}.java", "Main.main", f"void main{n}(String[] a) {body}", 1) for n in range(20)),
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
        function("shop/Cart.java", "Cart", "/** Holds goods until they are paid. */\nclass Cart {\n  int size;\n}", 1),
        function("shop/Cart.java", "Cart", "  int total;\n  int weight;", 60),
        function("shop/Cart.java", "Cart.Cart", "Cart(Shop shop) { this.shop = shop; }", 5),
        *(
            function("shop/Cart.java", f"Cart.do{n}", f"Cart do{n}(Cart cart) {{ do class Cart; }}", 10 + n)
            for n in range(9)
        ),
        *(
            function(f"shop/Use{n}.java", f"Use{n}", f"class Use{n} {{ Cart cart; }} // what class Cart does", 1)
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
    learn(
        service,
        project,
        *(function("geo/Area.java", "Area.area", text, 10 * n, same) for n, text in enumerate(told, 1)),
    )
    reply = ask(service, project, "the overloads of area", preset=recall.PRESET_CODE, query_vector=same)
    hits = [*reply.hits, *reply.code_fragments]
    assert len(hits) == 3
    assert not any(hit.near_twin for hit in hits)


def test_one_overload_told_twice_is_a_version(service: Stubs, project: str) -> None:
    """S2-05."""
    model = service.admin.GetStatus().model
    same = vector([1.0, *[0.0] * (model.dim - 1)], model.emb_space)
    for n, text in enumerate(("double area(Circle c) { return 1; }", "double area( Circle c ) { return 2; }"), 1):
        learn(service, project, function("geo/Area.java", "Area.area", text, 10 * n, same))
    reply = ask(service, project, "the overloads of area", preset=recall.PRESET_CODE, query_vector=same)
    assert [hit.near_twin for hit in (*reply.hits, *reply.code_fragments)] == [False, True]
