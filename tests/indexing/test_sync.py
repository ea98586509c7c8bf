"""Indexing against a service: only what changed travels, and both sides end up equal."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import project_service_pb2 as project_pb
from hummock_tools.demo import sample_repository
from hummock_tools.indexing.chunker import Fragment
from hummock_tools.indexing.sync import Progress, SyncReport, sync
from hummock_tools.indexing.tree import changes, content_hash
from tests.indexing.service import KeptMemories, serving
from tests.sure import sure


class Run:
    """A repository, the service, and the progress that was told."""

    def __init__(self, root: Path, kept: KeptMemories, channel: grpc.Channel) -> None:
        self.root = root
        self.kept = kept
        self._channel = channel
        self.told: list[Progress] = []

    def sync(self, name: str = "", root: Path | None = None) -> SyncReport:
        self.told.clear()
        self.kept.batches.clear()
        return sync(
            root or self.root, "p", self._channel, name=name, on_progress=self.told.append,
            on_skip=lambda path, reason: None,
        )  # fmt: skip

    @property
    def ids(self) -> set[str]:
        return set(self.kept.memories.get("p", {}))


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    kept = KeptMemories()
    root = tmp_path / "repository"
    root.mkdir()
    (root / "a.py").write_text("def f():\n    return 1\n\n\ndef g():\n    return 2\n", encoding="utf-8")
    (root / "README.md").write_text("# 项目\n\n概述见 a.py。\n", encoding="utf-8")
    with serving(kept) as channel:
        yield Run(root, kept, channel)


def test_a_first_run_sends_everything_as_the_indexers_and_tells_how_far_it_is(run: Run) -> None:
    report = run.sync()
    assert run.ids == {"a.py#f", "a.py#g", "README.md#项目"}
    assert (report.fragments, report.domain_entries, report.sent, report.deleted, report.unchanged) == (2, 1, 3, 0, 0)
    code, domain = run.kept.memories["p"]["a.py#f"], run.kept.memories["p"]["README.md#项目"]
    assert (code.origin, domain.origin) == (pb.ORIGIN_INDEXER, pb.ORIGIN_INDEXER)
    assert list(code.tags) == ["code", "python"]
    assert (code.code_fragment.path, code.code_fragment.end_line) == ("a.py", 2)
    assert list(domain.domain_knowledge.key_files) == ["a.py"]
    assert [progress for progress in run.told if progress.stage == "send"][-1] == Progress(
        stage="send", done=3, total=3
    )
    assert [progress.done for progress in run.told if progress.stage == "read"] == [1, 2]


def test_an_unchanged_repository_sends_nothing(run: Run) -> None:
    run.sync()
    report = run.sync()
    assert run.kept.batches == []
    assert (report.sent, report.deleted, report.unchanged) == (0, 0, 3)
    assert {progress.stage for progress in run.told} == {"read"}


def test_only_what_changed_is_sent_and_what_vanished_is_deleted(run: Run) -> None:
    """S1-18: the index of vectors grows by what changed."""
    run.sync()
    (run.root / "a.py").write_text("def f():\n    return 1\n\n\ndef h():\n    return 3\n", encoding="utf-8")
    (run.root / "README.md").unlink()
    report = run.sync()
    assert [memory.id for batch in run.kept.batches for memory in batch.memories] == ["a.py#h"]
    assert (report.sent, report.deleted, report.unchanged) == (1, 2, 1)
    assert run.ids == {"a.py#f", "a.py#h"}


def test_memories_that_the_indexer_did_not_make_are_left_alone(run: Run) -> None:
    note = pb.Memory(id="note", kind=pb.MEMORY_KIND_NOTE, origin=pb.ORIGIN_MANUAL)
    code = pb.Memory(id="own", kind=pb.MEMORY_KIND_CODE_FRAGMENT, origin=pb.ORIGIN_MANUAL)
    run.kept.memories["p"] = {"note": note, "own": code}
    run.sync()
    assert {"note", "own"} <= run.ids


def test_repositories_of_one_project_do_not_delete_each_other(run: Run) -> None:
    run.sync()
    with sample_repository() as other:
        run.sync(name="repayment", root=other)
        assert run.sync().deleted == 0
        again = run.sync(name="repayment", root=other)
    assert (again.sent, again.deleted) == (0, 0)
    assert "a.py#f" in run.ids
    assert "repayment/README.md#贷款还款模块/还款" in run.ids


@pytest.mark.long
def test_pages_and_batches_lose_nothing(run: Run) -> None:
    functions = "\n\n".join(f"def f{turn}():\n    return {turn}" for turn in range(1_500))
    (run.root / "a.py").write_text(functions, encoding="utf-8")
    assert run.sync().sent == 1_501
    assert max(len(batch.memories) for batch in run.kept.batches) <= 64
    assert len({batch.request_id for batch in run.kept.batches}) == len(run.kept.batches)
    assert run.sync().unchanged == 1_501
    (run.root / "a.py").unlink()
    assert run.sync().deleted == 1_500


def test_a_refused_batch_is_reported_and_the_next_run_sends_it_again(run: Run) -> None:
    run.kept.refuses = lambda memory: memory.id == "a.py#g"
    report = run.sync()
    assert report.sent == 0
    assert [(failure.reason, failure.message) for failure in report.failures] == [
        ("INVALID_REQUEST", "memories[0]: no")
    ]
    run.kept.refuses = lambda memory: False
    assert run.sync().sent == 3


def test_a_stream_that_breaks_keeps_what_was_stored(run: Run) -> None:
    functions = "\n\n".join(f"def f{turn}():\n    return {turn}" for turn in range(200))
    (run.root / "a.py").write_text(functions, encoding="utf-8")
    run.kept.cut_after = 2
    with pytest.raises(grpc.RpcError):
        run.sync()
    run.kept.cut_after = None
    report = run.sync()
    assert (report.unchanged, report.sent) == (128, 73)


@pytest.mark.parametrize("name", ["a/b", "..", ".", "x" * 101, "a\nb", " a"])
def test_a_repository_name_is_one_part_of_a_path(run: Run, name: str) -> None:
    with pytest.raises(ValueError, match="repository name"):
        run.sync(name=name)


def manifest(run: Run) -> None:
    (run.root / "package.json").write_text('{"dependencies": {"react": "18"}}', encoding="utf-8")


def test_a_run_says_once_what_the_project_is_made_with_and_where_it_lies(run: Run) -> None:
    """S0-19."""
    manifest(run)
    info = sure(run.sync().info)
    assert (info.tech_stack, info.path, info.kept) == (("JavaScript", "React"), str(run.root.resolve()), ())
    assert info.made.manifests == ("package.json",)
    (update,) = run.kept.updates
    assert update.origin == pb.ORIGIN_INDEXER
    run.sync()
    run.sync()
    assert len(run.kept.updates) == 1


def test_what_somebody_said_is_kept_and_reported(run: Run) -> None:
    """S0-19."""
    manifest(run)
    run.kept.infos["p"] = project_pb.ProjectInfo(tech_stack=["Vue"], tech_stack_origin=pb.ORIGIN_MANUAL)
    info = sure(run.sync().info)
    assert (info.tech_stack, info.kept) == (("Vue",), ("tech_stack",))


def test_repositories_of_one_project_add_up_and_none_is_its_path(run: Run) -> None:
    """S0-19."""
    manifest(run)
    run.sync(name="web")
    (run.root / "package.json").unlink()
    (run.root / "go.mod").write_text("module example.org/api\n", encoding="utf-8")
    info = sure(run.sync(name="api").info)
    assert (info.tech_stack, info.path) == (("JavaScript", "React", "Go"), "")


def test_a_folder_without_anything_to_index_says_nothing(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert run.sync(root=tmp_path / "empty").info is None
    assert not run.kept.updates


def test_a_heading_that_comes_to_be_shared_renames_what_had_it_alone(run: Run) -> None:
    """S0-10, S1-18."""
    text = "# {}\n\n概述。\n\n## Choice\n\nRows are scanned.\n"
    (run.root / "one.md").write_text(text.format("One"), encoding="utf-8")
    run.sync()
    (run.root / "README.md").write_text(text.format("Two"), encoding="utf-8")
    run.sync()
    named = {key: one.domain_knowledge.domain for key, one in run.kept.memories["p"].items() if "Choice" in key}
    assert named == {"one.md#One/Choice": "One > Choice", "README.md#Two/Choice": "Two > Choice"}
    assert run.kept.memories["p"]["one.md#One/Choice"].title == "One > Choice"


# Requests that the indexer sends: learns and deletes.


HASHES = st.dictionaries(st.text(max_size=3), st.sampled_from(["a", "b", ""]), max_size=8)
FRAGMENT = Fragment(
    id="a.py#f", path="a.py", language="python", symbol="f", title="f()", start_line=1, end_line=2,
    content="还款",
)  # fmt: skip


@given(local=HASHES, remote=HASHES)
def test_after_the_changes_both_sides_are_equal(local: dict[str, str], remote: dict[str, str]) -> None:
    plan = changes(local, remote)
    after = {key: digest for key, digest in remote.items() if key not in plan.delete}
    after |= {key: local[key] for key in plan.send}
    assert after == local
    assert plan.unchanged + len(plan.send) == len(local)


@given(both=HASHES)
def test_equal_hashes_send_nothing(both: dict[str, str]) -> None:
    plan = changes(both, both)
    assert (plan.send, plan.delete) == ((), ())


def test_everything_is_sent_in_the_repositorys_order() -> None:
    assert changes({"b": "1", "a": "1"}, {}).send == ("b", "a")


def test_a_hash_is_the_same_in_every_process() -> None:
    assert content_hash(FRAGMENT) == content_hash(replace(FRAGMENT))
    assert content_hash(FRAGMENT) == "16e95571c919af6c09b3f0695cca22cb"


def test_a_hash_moves_with_every_field() -> None:
    others = [
        replace(FRAGMENT, content="x"),
        replace(FRAGMENT, start_line=2),
        replace(FRAGMENT, end_line=3),
        replace(FRAGMENT, title="x"),
        replace(FRAGMENT, symbol="x"),
        replace(FRAGMENT, language="x"),
    ]
    assert len({content_hash(each) for each in [FRAGMENT, *others]}) == 7
