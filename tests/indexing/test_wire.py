"""Requests that the indexer sends: learns and deletes."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from hummock_tools.indexing import Fragment, changes, content_hash

HASHES = st.dictionaries(st.text(max_size=3), st.sampled_from(["a", "b", ""]), max_size=8)
FRAGMENT = Fragment(
    id="a.py#f",
    path="a.py",
    language="python",
    symbol="f",
    signature="def f()",
    start_line=1,
    end_line=2,
    content="还款",
)


@given(local=HASHES, remote=HASHES)
def test_after_the_changes_both_sides_are_equal(local: dict[str, str], remote: dict[str, str]) -> None:
    plan = changes(local, remote)
    after = {key: digest for key, digest in remote.items() if key not in plan.delete}
    after |= {key: local[key] for key in plan.send}
    assert after == local
    assert plan.unchanged + len(plan.send) == len(local)


@given(both=HASHES)
def test_an_unchanged_repository_sends_nothing(both: dict[str, str]) -> None:
    plan = changes(both, both)
    assert (plan.send, plan.delete) == ((), ())


def test_everything_is_sent_in_the_repositorys_order() -> None:
    assert changes({"b": "1", "a": "1"}, {}).send == ("b", "a")


def test_a_hash_is_the_same_in_every_process() -> None:
    assert content_hash(FRAGMENT) == content_hash(replace(FRAGMENT))
    assert content_hash(FRAGMENT) == "a4c287e3ff49729932ecf9303dd7ac31"


def test_a_hash_moves_with_every_field() -> None:
    others = [
        replace(FRAGMENT, content="x"),
        replace(FRAGMENT, start_line=2),
        replace(FRAGMENT, end_line=3),
        replace(FRAGMENT, signature="x"),
        replace(FRAGMENT, symbol="x"),
        replace(FRAGMENT, language="x"),
    ]
    assert len({content_hash(each) for each in [FRAGMENT, *others]}) == 7
