"""Several roots in one project: each has an index of its own, and all of them together are what lies on disk."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from random import Random

import grpc
import pytest

from hummock_client.v1 import admin_service_pb2 as admin_pb
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import memory_service_pb2 as memory_pb
from hummock_client.v1 import project_service_pb2 as project_pb
from hummock_tools.indexing.folder import Folder, Indexed, OtherIndex
from hummock_tools.indexing.sync import SyncReport, bring, remove, sync
from hummock_tools.indexing.tree import Changes
from hummock_tools.indexing.walk import open_root
from hummock_tools.indexing.watch import Follower, WatchCallbacks
from tests.indexing.test_walk import git, write
from tests.service.conftest import model, models_dir, project, service
from tests.service.running import Stubs

__all__ = ["model", "models_dir", "project", "service"]

NOTHING: frozenset[str] = frozenset()


def code(word: str) -> str:
    return f"def {word}():\n    return 1\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """A project on the real service, and the folders that are indexed into it."""

    project: str
    stubs: Stubs
    folders: Path

    def dial(self) -> AbstractContextManager[grpc.Channel]:
        return nullcontext(self.stubs.channel)

    def index(self, folder: str, name: str = "") -> SyncReport:
        return sync(
            self.folders / folder, self.project, self.stubs.channel, name=name, on_progress=lambda progress: None,
            on_skip=lambda path, reason: None,
        )  # fmt: skip

    def remove(self, folder: str, name: str = "") -> int:
        quiet = self.folders / folder
        return remove(quiet, self.project, self.stubs.channel, name=name, on_progress=lambda progress: None)

    def follower(self, folder: str) -> Follower:
        told = WatchCallbacks(on_away=print, on_trouble=print, on_progress=lambda progress: None)
        path = self.folders / folder
        followed = Folder(path, on_file=lambda files: None, on_skip=lambda path, reason: None)
        return Follower(followed, self.project, self.dial, told)

    def memories(self) -> list[pb.Memory]:
        request = memory_pb.ListMemoriesRequest(
            project=self.project, page_size=1_000, view=pb.MEMORY_VIEW_FULL, allow_missing=True
        )
        return list(self.stubs.memory.ListMemories(request).memories)

    @property
    def ids(self) -> set[str]:
        return {memory.id for memory in self.memories()}

    @property
    def files(self) -> list[str]:
        """`path: text` of each memory, below the folders, sorted; what is stored twice is there twice."""
        return sorted(map(self._shown, self.memories()))

    def _shown(self, memory: pb.Memory) -> str:
        path, root = memory.code_fragment.path, memory.metadata["root"]
        for tag in memory.tags:
            path = path.removeprefix(f"{tag.removeprefix('repository:')}/")
        return f"{os.path.relpath(root, self.folders)}/{path}: {memory.content}".removeprefix("./")

    def forget_roots(self) -> None:
        """Leave the memories as a version did that recorded no root."""
        for memory in self.memories():
            bare = memory_pb.UpdateMemoryRequest(project=self.project, memory=pb.Memory(id=memory.id))
            bare.update_mask.paths.append("metadata")
            self.stubs.memory.UpdateMemory(bare)

    def embedded(self) -> int:
        return self.stubs.admin.GetStatus(admin_pb.GetStatusRequest()).embedding.embedded_count


@pytest.fixture
def shop(tmp_path: Path, service: Stubs, project: str) -> Shop:
    folders = tmp_path / "folders"
    write(folders, {"a/one.py": code("one"), "a/sub/two.py": code("two"), "b/one.py": code("other")})
    return Shop(project=project, stubs=service, folders=folders)


def counts(report: SyncReport) -> tuple[int, int, int]:
    return report.sent, report.deleted, report.unchanged


def test_a_second_root_deletes_nothing_of_the_first(shop: Shop) -> None:
    shop.index("a")
    report = shop.index("b")
    assert counts(report) == (1, 0, 0)
    assert report.name.startswith("b-")
    assert shop.ids == {"one.py#one", "sub/two.py#two", f"{report.name}/one.py#other"}
    assert [counts(shop.index(folder)) for folder in ("a", "b")] == [(0, 0, 2), (0, 0, 1)]


def test_a_root_whose_name_is_taken_for_a_folder_has_another(shop: Shop) -> None:
    shop.index("b", name="sub")
    report = shop.index("a")
    assert report.name.startswith("a-")
    assert len(shop.ids) == 3
    with pytest.raises(ValueError, match="give another --name"):
        shop.index("a", name="sub")


def test_a_link_to_a_root_is_that_root_also_under_a_name(shop: Shop) -> None:
    shop.index("a")
    (shop.folders / "link").symlink_to(shop.folders / "a")
    assert counts(shop.index("link")) == (0, 0, 2)
    assert counts(shop.index("link/sub")) == (0, 0, 1)
    assert counts(shop.index("a", name="web")) == (2, 2, 0)
    assert shop.ids == {"web/one.py#one", "web/sub/two.py#two"}


def test_a_part_of_a_root_renews_that_part_alone(shop: Shop) -> None:
    shop.index("a")
    write(shop.folders, {"a/one.py": code("changed"), "a/sub/three.py": code("three")})
    (shop.folders / "a/sub/two.py").unlink()
    report = shop.index("a/sub", name="ignored")
    assert (report.part, report.walked.files, counts(report)) == ("sub", 1, (1, 1, 0))
    assert shop.ids == {"one.py#one", "sub/three.py#three"}
    (shop.folders / "a/sub/three.py").unlink()
    assert counts(shop.index("a/sub")) == (0, 1, 0)


def test_a_parent_takes_its_folders_index_in(shop: Shop) -> None:
    shop.index("a/sub")
    shop.index("b")
    assert counts(shop.index("a")) == (2, 1, 0)
    assert shop.files == [
        "a/one.py: def one():\n    return 1",
        "a/sub/two.py: def two():\n    return 1",
        *shop.files[2:],
    ]
    assert counts(shop.index("a/sub")) == (0, 0, 1)
    assert counts(shop.index(".")) == (3, 3, 0)
    assert len(shop.ids) == 3


def test_a_nested_repository_has_its_own_index_inside_its_parents(shop: Shop) -> None:
    git(shop.folders / "a/sub", "init")
    nested = str(shop.folders / "a/sub")
    assert shop.index("a").nested == (nested,)
    assert counts(shop.index("a/sub")) == (1, 0, 0)
    report = shop.index("a")
    assert (counts(report), report.nested, [each.root for each in report.others]) == ((0, 0, 1), (), [nested])


@pytest.mark.long
@pytest.mark.parametrize("name", ["", "web"])
def test_an_index_of_an_older_version_is_gone_on_with(shop: Shop, name: str) -> None:
    shop.index("a", name=name)
    shop.forget_roots()
    embedded = shop.embedded()
    report = shop.index("a", name=name)
    # Under a name one is sent that has the root on record.
    assert (report.sent, report.deleted, report.unchanged + report.sent) == (bool(name), 0, 2)
    assert shop.embedded() == embedded
    assert counts(shop.index("b"))[:2] == (1, 0)
    assert counts(shop.index("a/sub")) == (0, 0, 1)
    assert counts(shop.index("a")) == (0, 0, 2)


def test_an_older_index_whose_path_a_person_said_is_known_by_what_it_has(shop: Shop) -> None:
    info = project_pb.ProjectInfo(path="on the build machine")
    update = project_pb.UpdateProjectRequest(project=shop.project, info=info)
    update.update_mask.paths.append("path")
    shop.stubs.project.UpdateProject(update)
    shop.index("a")
    shop.forget_roots()
    assert counts(shop.index("b")) == (1, 0, 0)
    assert counts(shop.index("a"))[1:] == (0, 1)
    assert counts(shop.index("a")) == (0, 0, 2)


def test_a_root_that_is_gone_stays_until_it_is_removed(shop: Shop) -> None:
    shop.index("a")
    shop.index("b")
    (shop.folders / "a").rename(shop.folders / "moved")
    (shop.folders / "b").rename(shop.folders / "gone")
    report = shop.index("moved")
    assert (report.deleted, len(shop.ids)) == (0, 5)
    assert shop.remove("a") == 2
    assert shop.remove("b") == 1
    assert [line.partition(":")[0] for line in shop.files] == ["moved/one.py", "moved/sub/two.py"]
    with pytest.raises(ValueError, match=f"indexed is {shop.folders}/moved$"):
        shop.remove("b")


def test_a_folder_that_moved_goes_on_under_its_name(shop: Shop) -> None:
    shop.index("a", name="web")
    (shop.folders / "a/one.py").unlink()
    (shop.folders / "a").rename(shop.folders / "moved")
    assert counts(shop.index("moved", name="web")) == (1, 1, 0)
    assert counts(shop.index("moved")) == (0, 0, 1)
    with pytest.raises(ValueError, match="give another --name"):
        shop.index("b", name="web")


def replaced(shop: Shop, folder: str, files: dict[str, str]) -> None:
    """Replaces a folder by another machine's folder at the same path."""
    (shop.folders / folder).rename(shop.folders.parent / f"away-{len(list(shop.folders.parent.iterdir()))}")
    write(shop.folders, {f"{folder}/{path}": text for path, text in files.items()})


@pytest.mark.parametrize("first", ["one", ""])
def test_repositories_at_one_path_of_two_machines_stay_apart_by_their_names(shop: Shop, first: str) -> None:
    shop.index("a", name=first)
    ids = shop.ids
    replaced(shop, "a", {"other.py": code("other"), "third.py": code("third")})
    assert [counts(shop.index("a", name="two")) for _ in range(2)] == [(2, 0, 0), (0, 0, 2)]
    assert shop.ids == ids | {"two/other.py#other", "two/third.py#third"}


def test_a_path_with_two_named_indexes_needs_the_name(shop: Shop) -> None:
    for name in ("one", "two"):
        shop.index("a", name=name)
    with pytest.raises(ValueError, match="one, two: give the --name"):
        shop.index("a")
    with pytest.raises(ValueError, match="one, two: give the --name"):
        shop.remove("a")
    write(shop.folders, {"a/sub/new.py": code("new")})
    assert counts(shop.index("a/sub", name="two")) == (1, 0, 1)
    assert shop.remove("a", name="one") == 2
    assert counts(shop.index("a")) == (0, 0, 3)


@pytest.mark.parametrize("around", ["", "whole"])
def test_an_index_that_a_person_named_is_not_taken_into_one_around_it(shop: Shop, around: str) -> None:
    shop.index("a/sub", name="sub")
    named = shop.ids
    assert counts(shop.index("a", name=around)) == (2, 0, 0)
    assert len(shop.ids) == 3
    assert named < shop.ids
    write(shop.folders, {"a/sub/two.py": code("changed")})
    assert counts(shop.index("a/sub", name="sub")) == (1, 1, 0)


def test_a_name_is_not_spent_on_a_part_of_another_named_index(shop: Shop) -> None:
    shop.index("a", name="one")
    ids = shop.ids
    replaced(shop, "a", {"sub/other.py": code("other")})
    assert counts(shop.index("a/sub", name="two")) == (1, 0, 0)
    assert shop.ids == ids | {"two/other.py#other"}


def test_what_another_index_has_under_an_id_is_left_out_and_said(shop: Shop) -> None:
    shop.index("a")
    shop.index("b", name="backend")
    theirs = [line for line in shop.files if line.startswith("b/")]
    write(shop.folders, {"a/backend/one.py": code("other") + code("mine")})
    for sent in (1, 0):
        report = shop.index("a")
        assert (report.sent, report.deleted, report.taken) == (sent, 0, ("backend/one.py",))
        assert [line for line in shop.files if line.startswith("b/")] == theirs
    (shop.folders / "a/backend/one.py").unlink()
    report = shop.index("a")
    assert (report.deleted, report.taken) == (1, ())
    assert [line for line in shop.files if line.startswith("b/")] == theirs


def test_a_root_that_may_not_be_looked_at_is_there(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.index("a", name="web")
    looked = os.stat

    def closed(path: str | Path, *args: object, **options: object) -> os.stat_result:
        if str(path).startswith(str(shop.folders / "a")):
            raise PermissionError(13, "Permission denied", str(path))
        return looked(path, *args, **options)  # type: ignore[arg-type] # as it was called

    monkeypatch.setattr(os, "stat", closed)
    report = shop.index("b", name="other")
    assert counts(report) == (1, 0, 0)
    assert not any(each.is_gone() for each in report.others)
    with pytest.raises(ValueError, match="give another --name"):
        shop.index("b", name="web")


def test_a_root_around_that_is_closed_keeps_nobody_from_a_folder_in_it(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.index("a")

    def closed(root: Path) -> AbstractContextManager[int]:
        if root == shop.folders / "a":
            raise PermissionError(13, "Permission denied", str(root))
        return open_root(root)

    with monkeypatch.context() as patch:
        patch.setattr("hummock_tools.indexing.tree.open_root", closed)
        assert counts(shop.index("a/sub")) == (1, 0, 0)
        assert len(shop.ids) == 3
    assert counts(shop.index("a")) == (0, 1, 2)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_two_machines_that_name_their_indexes_never_touch_each_others(shop: Shop, seed: int) -> None:
    random = Random(seed)  # noqa: S311 # a game, no secret
    machines = {name: shop.folders.parent / name for name in ("left", "right")}
    expected: dict[str, list[str]] = {}
    for machine in machines.values():
        write(machine, {f"{folder}/f.py": code(f"{machine.name}_first") for folder in Game.FOLDERS})
    shop.folders.rename(shop.folders.parent / "unused")
    for _ in range(16):
        name, folder = random.choice(sorted(machines)), random.choice(Game.FOLDERS)
        machines[name].rename(shop.folders)
        word = f"{name}_w{random.randrange(9)}"
        write(shop.folders, {f"{random.choice(Game.FOLDERS)}/f{random.randrange(3)}.py": code(word)})
        shop.index(folder, name=f"{name}-{folder.replace('/', '-')}")
        found = sorted((shop.folders / folder).rglob("*.py"))
        expected[f"{name} {folder}"] = [
            f"{path.relative_to(shop.folders)}: {path.read_text().strip()}" for path in found
        ]
        assert shop.files == sorted(line for lines in expected.values() for line in lines)
        shop.folders.rename(machines[name])


def test_technologies_of_roots_add_up_in_any_order(shop: Shop) -> None:
    write(shop.folders, {"a/go.mod": "module x\n", "b/package.json": "{}"})
    shop.index("a")
    seen = [info.tech_stack for folder in ("b", "a", "b") if (info := shop.index(folder).info)]
    assert seen == [("Go", "JavaScript")] * 3


class Interrupted(Folder):
    """An index during which another root begins its own, when the first memories are on their way."""

    def __init__(self, shop: Shop, folder: str, other: str) -> None:
        super().__init__(shop.folders / folder, on_file=lambda files: None, on_skip=lambda path, reason: None)
        self._begin = [lambda: shop.index(other)]

    def plan(self, indexed: Indexed) -> tuple[Changes, tuple[OtherIndex, ...]]:
        planned = super().plan(indexed)
        if self._begin:
            self._begin.pop()()
        return planned


@pytest.mark.long
@pytest.mark.parametrize(("folder", "other"), [("a", "b"), ("a", "a"), ("a/sub", "a"), ("a", "a/sub")])
def test_two_that_begin_at_the_same_moment_find_their_places(shop: Shop, folder: str, other: str) -> None:
    bring(Interrupted(shop, folder, other), shop.project, shop.stubs.channel, on_progress=lambda progress: None)
    for each in (other, folder):
        shop.index(each)
    assert [shop.index(each).sent + shop.index(each).deleted for each in (folder, other)] == [0, 0]
    expected = ["a/one.py", "a/sub/two.py", "b/one.py"] if other == "b" else ["a/one.py", "a/sub/two.py"]
    assert [line.partition(":")[0] for line in shop.files] == expected


class Game:
    """Random edits of folders, and roots that are indexed and followed; what is stored must be what lies on disk."""

    FOLDERS = ("a", "a/sub", "a/sub/deep", "b", "b/sub", "a-b", "c/nested")

    def __init__(self, shop: Shop, seed: int) -> None:
        self.shop = shop
        self.random = Random(seed)  # noqa: S311 # a game, no secret
        self.followers: dict[str, list[Follower]] = {}
        self.roots: set[str] = set()
        write(shop.folders, {f"{folder}/f.py": code("first") for folder in self.FOLDERS})
        git(shop.folders / "c/nested", "init")

    def play(self, steps: int) -> None:
        for _ in range(steps):
            self.random.choice((self.edit, self.edit, self.delete, self.index, self.index, self.follow, self.take))()
        for folder in sorted(self.roots, key=lambda root: (self.random.random(), root)):
            self.shop.index(folder)
        assert self.shop.files == self.expected()

    def edit(self) -> None:
        word = f"w{self.random.randrange(1_000)}"
        write(self.shop.folders, {f"{self.random.choice(self.FOLDERS)}/f{self.random.randrange(3)}.py": code(word)})

    def delete(self) -> None:
        found = sorted((self.shop.folders / self.random.choice(self.FOLDERS)).glob("*.py"))
        if found:
            self.random.choice(found).unlink()

    def index(self) -> None:
        folder = self.random.choice((*self.FOLDERS, "c"))
        self.roots.add(folder)
        self.shop.index(folder)
        assert self.below(folder, self.shop.files) == self.below(folder, self.expected())

    def below(self, folder: str, lines: list[str]) -> list[str]:
        """Lines of a folder, without those of a nested repository in it."""
        inside = [line for line in lines if line.startswith(f"{folder}/")]
        return [line for line in inside if folder != "c" or not line.startswith("c/nested/")]

    def follow(self) -> None:
        folder = self.random.choice((*self.FOLDERS, "c"))
        self.roots.add(folder)
        follower = self.shop.follower(folder)
        follower.take(NOTHING)
        self.followers.setdefault(folder, []).append(follower)

    def take(self) -> None:
        """All who follow a folder that holds it look, in some order."""
        folder = self.random.choice(self.FOLDERS)
        heard = [each for root, some in self.followers.items() if f"{folder}/".startswith(f"{root}/") for each in some]
        before = self.shop.files
        for follower in self.random.sample(heard, len(heard)):
            follower.take(NOTHING)
        outside = [line for line in before if not any(line.startswith(f"{root}/") for root in self.followers)]
        assert outside == [line for line in self.shop.files if line in outside]

    def expected(self) -> list[str]:
        covered = {
            path
            for root in self.roots
            for path in (self.shop.folders / root).rglob("*.py")
            if root != "c" or "nested" not in path.parts
        }
        shown = (f"{path.relative_to(self.shop.folders)}: {path.read_text().strip()}" for path in covered)
        return sorted(shown)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
def test_what_is_stored_is_what_lies_on_disk_under_all_roots(shop: Shop, seed: int) -> None:
    Game(shop, seed).play(12)
