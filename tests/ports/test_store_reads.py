from __future__ import annotations

import numpy as np
import pytest

from hummock.core.candidates import FoundBy, GroupQuery
from hummock.core.memory import Filter, MemoryKind, Origin
from hummock.core.settings import NO_SETTINGS
from hummock.ports.store import Generation, LookedUp, Store
from tests.ports.asking import ask, gather, ids, put
from tests.strategies import Entry, delete_request, domain, fragment, unit_vector

pytestmark = pytest.mark.long


def rows(found_by: object, ids: tuple[str, ...]) -> dict[str, int]:
    return dict(zip(ids, np.asarray(found_by).tolist(), strict=True))


def test_an_unknown_project_has_nothing(store: Store) -> None:
    """A Recall on an unknown one is an empty OK."""
    found = ask(store, "unknown", seed=1, terms=["tide"])
    assert len(found) == 0
    assert (store.get("unknown", ["a"], 0, full=True), store.load("unknown", [1], full=True)) == ([None], [None])
    assert store.look_up("unknown", ["a"], [Entry(id="a").key]) == LookedUp(NO_SETTINGS, [None], [None])
    assert store.page("unknown", Filter(), 0, 10, full=True).memories == ()
    assert store.project("unknown") is None
    assert (store.generation("unknown"), store.projects("", 10)) == (Generation(seq=0, content_seq=0), [])


def test_a_name_that_is_too_long_for_a_project_is_an_unknown_one(store: Store) -> None:
    put(store, "项" * 133, Entry(id="a"))
    assert len(ask(store, "项" * 1000, seed=1)) == 0
    assert store.project("项" * 1000) is None
    assert (store.generation("项" * 1000), store.projects("项" * 1000, 10)) == (Generation(seq=0, content_seq=0), [])
    assert [project.name for project in store.projects("项" * 132, 10)] == ["项" * 133]


def test_the_generation_of_content_stands_still_when_nothing_changes(store: Store) -> None:
    put(store, "p", Entry(id="a"))
    store.write("p", delete_request(["unknown"])).result(30)
    assert store.generation("p") == Generation(seq=2, content_seq=1)
    found = gather(store, "p", GroupQuery(name="main", filter=Filter()))
    assert Generation(seq=found.seq, content_seq=found.content_seq) == store.generation("p")


def test_without_a_minimum_even_opposite_vectors_are_found(store: Store) -> None:
    put(store, "p", *(Entry(id=f"m{number}", seeds=(number,)) for number in range(50)))
    for number in range(50):
        query = GroupQuery(name="main", filter=Filter(), vector=-unit_vector(number))
        found = gather(store, "p", query).groups[0]
        assert len(found) == 50
        assert found.cosine.min() >= -1.0


def test_the_vector_path_ranks_by_the_best_chunk(store: Store) -> None:
    put(store, "p", Entry(id="a", seeds=(1, 2)), Entry(id="b", seeds=(3,)), Entry(id="c", seeds=(4, 2, 5)))
    found = ask(store, seed=2, pool=2)
    assert ids(found) == {"a", "c"}
    assert found.cosine == pytest.approx([1.0, 1.0], abs=2e-3)
    assert found.vector(np.arange(2)) == pytest.approx(np.stack([unit_vector(2), unit_vector(2)]), abs=1e-3)


def test_a_minimum_cosine_leaves_others_out_and_a_zero_vector_is_equally_far_from_all(store: Store) -> None:
    put(store, "p", Entry(id="a", seeds=(1,)), Entry(id="b", seeds=(2,)))
    assert ids(ask(store, seed=1, minimum_cosine=0.9)) == {"a"}
    query = GroupQuery(name="main", filter=Filter(), vector=np.zeros(16, np.float32), pool=1)
    found = gather(store, "p", query).groups[0]
    assert (found.memory_id, found.cosine.tolist()) == (("a",), [0.0])


def test_a_memory_without_a_vector_is_found_by_its_words(store: Store) -> None:
    put(store, "p", Entry(id="a", seeds=()), Entry(id="b", words=("other",), seeds=(2,)))
    found = ask(store, seed=2, terms=["tide"])
    at = found.memory_id.index("a")
    assert np.isnan(found.cosine[at])
    assert not found.vector(np.array([at])).any()
    assert found.keyword[at] > 0


def test_candidates_of_one_path_carry_the_score_of_the_other(store: Store) -> None:
    put(store, "p", Entry(id="near", seeds=(1,), words=("tide", "core")), Entry(id="far", seeds=(2,), words=("tide",)))
    found = ask(store, seed=1, terms=["tide"], pool=1)
    flags = rows(found.found_by, found.memory_id)
    assert flags == {"near": FoundBy.VECTOR, "far": FoundBy.KEYWORD}
    assert (found.keyword > 0).all()
    assert np.isfinite(found.cosine).all()


def test_matched_terms_keep_their_places_beside_unknown_ones(store: Store) -> None:
    put(store, "p", Entry(id="a", words=("tide", "还款")), Entry(id="b", words=("tide",)))
    found = ask(store, terms=["nowhere", "还款", "tide"])
    assert rows(found.matched, found.memory_id) == {"a": 0b110, "b": 0b100}


def test_only_the_first_32_terms_are_used(store: Store) -> None:
    put(store, "p", Entry(id="a", words=("tide",)))
    assert not ids(ask(store, terms=[*(f"x{number}" for number in range(32)), "tide"]))


def test_a_tag_is_no_word(store: Store) -> None:
    put(store, "p", Entry(id="a", tags=("java",), session_id="java", words=("tide",)))
    found = ask(store, terms=["\x1ftjava", "\x1fsjava"])
    assert len(found) == 0


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (Filter(), {"a", "b", "c", "f"}),
        (Filter(kinds=frozenset({MemoryKind.CODE_FRAGMENT})), {"f"}),
        (Filter(origins=frozenset({Origin.AI_OUTPUT, Origin.SUMMARY})), {"b", "c"}),
        (Filter(tags=("Java",)), {"a", "b"}),
        (Filter(tags=("java", "重要")), {"b"}),
        (Filter(tags=("nothing",)), set()),
        (Filter(session_ids=("s1", "会话")), {"a", "b"}),
        (Filter(speakers=("小明",)), {"c"}),
        (Filter(writers=("ci", "unknown")), {"b", "c"}),
        (Filter(paths=("A.java",)), {"f"}),
        (Filter(paths=("main/A.java", "no.java")), {"f"}),
        (Filter(paths=("src/",)), {"f"}),
        (Filter(paths=("src/main/",)), {"f"}),
        (Filter(paths=("main/", "no.java")), {"f"}),
        (Filter(paths=("/src/main/",)), {"f"}),
        (Filter(paths=("mai/",)), set()),
        (Filter(paths=("A.java/",)), set()),
        (Filter(paths=("/",)), set()),
        (Filter(created_after=200.0), {"b", "c", "f"}),
        (Filter(created_before=200.0), {"a"}),
        (Filter(created_after=200.0, created_before=300.0), {"b"}),
        (Filter(excluded_ids=("a", "f", "unknown")), {"b", "c"}),
    ],
)
def test_a_filter_lets_only_its_memories_pass(store: Store, where: Filter, expected: set[str]) -> None:
    put(
        store,
        "p",
        Entry(id="a", tags=("java",), session_id="s1", create_time=100.0, seeds=(1,)),
        Entry(
            id="b",
            tags=("Java", "重要"),
            session_id="会话",
            create_time=200.0,
            origin=Origin.SUMMARY,
            seeds=(2,),
            writer="ci",
        ),
        Entry(id="c", speaker="小明", create_time=300.0, origin=Origin.AI_OUTPUT, seeds=(3,), writer="ci"),
    )
    put(store, "p", fragment("f", "src/main/A.java"))
    found = ask(store, seed=1, terms=["tide"], where=where)
    assert (ids(found), found.searched) == (expected, len(expected))
    page = store.page("p", where, 0, 10, full=False)
    assert {memory.id for memory in page.memories} == expected


def test_a_domain_is_found_by_name_and_alias(store: Store) -> None:
    """S0-10."""
    put(store, "p", domain("d", ("还款", "repayment")), domain("e", ("贷款",)), Entry(id="a", words=("还款",)))
    found = ask(store, domain_names=["repayment", "贷款", "不存在"])
    assert ids(found) == {"d", "e"}
    assert found.domain_names == ("repayment", "贷款")
    assert set(found.found_by.tolist()) == {int(FoundBy.DOMAIN)}


def test_domains_are_found_in_a_text_that_names_them(store: Store) -> None:
    """S0-10, S0-36."""
    put(store, "p", domain("d", ("还款", "repayment plan")))
    put(store, "p", domain("e", ("先息后本",)))
    found = ask(store, domain_text="增加 Repayment  Plan 的还款方式")
    assert ids(found) == {"d"}
    assert found.domain_names == ("repayment plan", "还款")


def test_a_domain_that_is_renamed_is_found_by_its_new_name_alone(store: Store) -> None:
    put(store, "p", domain("d", ("还款",)))
    put(store, "p", domain("d", ("贷款",)))
    assert ask(store, domain_text="还款").domain_names == ()
    assert ask(store, domain_text="贷款").domain_names == ("贷款",)


def test_a_domain_that_the_filter_excludes_is_not_named(store: Store) -> None:
    put(store, "p", domain("d", ("还款",)))
    found = ask(store, domain_names=["还款"], where=Filter(kinds=frozenset({MemoryKind.NOTE})))
    assert found.domain_names == ()
    assert len(found) == 0


@pytest.mark.parametrize("vector", [None, unit_vector(9)])
def test_a_named_domain_brings_the_fragments_of_its_key_files(store: Store, vector: np.ndarray | None) -> None:
    """S0-29."""
    put(store, "p", domain("d", ("还款",), ("main/Repayment.java", "Gone.java")))
    put(store, "p", fragment("f", "src/main/Repayment.java"), fragment("g", "src/test/Repayment.java"))
    domains = GroupQuery(name="domains", filter=Filter(), domain_names=frozenset({"还款"}))
    only_code = Filter(kinds=frozenset({MemoryKind.CODE_FRAGMENT}))
    code = GroupQuery(name="code", filter=only_code, vector=vector, minimum_cosine=0.99, with_key_files=True)
    groups = gather(store, "p", domains, code).groups
    assert groups[1].memory_id == ("f",)
    assert groups[1].found_by.tolist() == [FoundBy.KEY_FILE]
    assert gather(store, "p", code, domains).groups[0].memory_id == ()


def test_the_pool_bounds_each_path(store: Store) -> None:
    put(store, "p", *(Entry(id=f"m{number}", seeds=(number,)) for number in range(9)))
    assert (len(ask(store, seed=1, pool=3)), len(ask(store, terms=["tide"], pool=4))) == (3, 4)
    assert len(ask(store, seed=1, terms=["tide"], pool=0)) == 0


def test_equal_scores_keep_the_older_memory(store: Store) -> None:
    put(store, "p", *(Entry(id=f"m{number}", seeds=(1,)) for number in range(6)))
    assert (ids(ask(store, seed=1, pool=2)), ids(ask(store, terms=["tide"], pool=2))) == ({"m0", "m1"}, {"m0", "m1"})


def test_all_groups_are_read_at_one_moment_with_vectors_of_the_stores_dim(store: Store) -> None:
    put(store, "p", Entry(id="a"))
    query = GroupQuery(name="x", filter=Filter(), vector=unit_vector(1))
    gathered = gather(store, "p", query, query)
    assert gathered.groups[0].memory_id == gathered.groups[1].memory_id == ("a",)
    assert (gathered.seq, gathered.content_seq) == (1, 1)
    query = GroupQuery(name="main", filter=Filter(), vector=unit_vector(1, 17))
    with pytest.raises(ValueError, match="dim"):
        gather(store, "p", query)


def test_load_answers_in_the_order_of_the_question(store: Store) -> None:
    put(store, "p", Entry(id="a"), Entry(id="b"))
    docs = dict(zip(ask(store, seed=1).memory_id, ask(store, seed=1).rows["doc"].tolist(), strict=True))
    loaded = store.load("p", [docs["b"], 999, docs["a"]], full=True)
    assert loaded == [Entry(id="b").memory(), None, Entry(id="a").memory()]


def test_pages_follow_the_order_of_writes(store: Store) -> None:
    put(store, "p", *(Entry(id=f"m{number}") for number in range(5)))
    put(store, "p", Entry(id="m1"))
    seen: list[str] = []
    after: int | None = 0
    while after is not None:
        page = store.page("p", Filter(), after, 2, full=True)
        seen.extend(memory.id for memory in page.memories)
        after = page.next_after
    assert seen == ["m0", "m2", "m3", "m4", "m1"]


def test_projects_are_listed_by_the_bytes_of_their_names(store: Store) -> None:
    names = ["b", "a", "还款", "Z"]
    for name in names:
        put(store, name, Entry(id="a"))
    assert [project.name for project in store.projects("", 10)] == ["Z", "a", "b", "还款"]
    assert [project.name for project in store.projects("a", 1)] == ["b"]
    assert (store.projects("", 0), store.status().project_count) == ([], 4)


def test_equal_ids_and_texts_of_two_projects_never_meet(store: Store) -> None:
    """S0-06."""
    shared = Entry(id="a", words=("tide",), tags=("java",), session_id="s1")
    put(store, "p", shared, Entry(id="only-p"))
    put(store, "q", shared)
    store.write("p", delete_request(["a"])).result(timeout=30)
    assert ids(ask(store, "q", seed=1, terms=["tide"])) == {"a"}
    assert ids(ask(store, "p", seed=1, terms=["tide"])) == {"only-p"}
    assert (store.get("q", ["only-p"], 0, full=True), store.look_up("q", [], [shared.key]).holders) == ([None], ["a"])
    doc = int(ask(store, "p", seed=1).rows["doc"][0])
    assert store.load("q", [doc], full=True) == [None]


def test_scores_of_a_project_do_not_depend_on_another(store: Store) -> None:
    put(store, "p", Entry(id="a", words=("tide", "core")), Entry(id="b", words=("loan",)))
    before = ask(store, "p", terms=["tide"]).keyword.tolist()
    put(store, "q", *(Entry(id=f"m{number}", words=("tide",) * number) for number in range(1, 9)))
    assert ask(store, "p", terms=["tide"]).keyword.tolist() == before
