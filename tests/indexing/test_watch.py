"""Following a repository: what changes on disk is at the service, in one batch, once, and nothing else is."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import grpc
import pytest

from hummock_client.v1 import memory_service_pb2 as memory_pb
from hummock_tools.indexing.chunker import SourceFile
from hummock_tools.indexing.folder import Folder, Indexed
from hummock_tools.indexing.skips import Rules
from hummock_tools.indexing.walk import source_file
from hummock_tools.indexing.watch import Batch, Dial, Follower, Wait, WatchCallbacks, changes_of
from tests.indexing.test_walk import git, write
from tests.service.conftest import model, models_dir, service
from tests.service.running import Stubs

pytestmark = pytest.mark.long

__all__ = ["model", "models_dir", "service"]

pytest.importorskip("watchfiles")

NOTHING: frozenset[str] = frozenset()


def forbidden(seconds: float) -> None:
    raise AssertionError(f"waits {seconds} s")


def folder_at(path: Path) -> Folder:
    return Folder(path, on_file=lambda files: None, on_skip=lambda path, reason: None)


class Desk:
    """A repository and who follows it, on the real service."""

    def __init__(self, root: Path, stubs: Stubs, project: str) -> None:
        self.root = root
        self.stubs = stubs
        self.project = project
        self.absences: list[grpc.StatusCode] = []
        self.troubles: list[str] = []

    def dial(self) -> AbstractContextManager[grpc.Channel]:
        return nullcontext(self.stubs.channel)

    def follower(self, dial: Dial | None = None, wait: Wait = forbidden) -> Follower:
        told = WatchCallbacks(
            on_away=lambda error: self.absences.append(error.code()),
            on_trouble=lambda error: self.troubles.append(str(error)),
            on_progress=lambda progress: None,
        )
        return Follower(folder_at(self.root), self.project, dial or self.dial, told, wait)

    @property
    def ids(self) -> set[str]:
        request = memory_pb.ListMemoriesRequest(project=self.project, page_size=1_000)
        return {memory.id for memory in self.stubs.memory.ListMemories(request).memories}


@pytest.fixture
def desk(tmp_path: Path, service: Stubs, request: pytest.FixtureRequest) -> Desk:
    root = tmp_path / "repository"
    root.mkdir()
    git(root, "init", "-b", "main")
    write(root, {"src/a.py": "def f():\n    return 1\n", "src/b.py": "def g():\n    return 2\n"})
    git(root, "add", ".")
    git(root, "commit", "-m", "one")
    return Desk(root, service, f"watch-{request.node.name}"[:100])


@pytest.fixture
def read_again(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that are read, as they are."""
    paths: list[str] = []

    def reading(root_fd: int, path: str, own: Rules | None) -> SourceFile:
        paths.append(path)
        return source_file(root_fd, path, own)

    monkeypatch.setattr("hummock_tools.indexing.tree.source_file", reading)
    return paths


def told(batch: Batch | None) -> tuple[int, int, int, int]:
    assert batch is not None
    return batch.files_changed, batch.report.sent, batch.report.deleted, batch.report.unchanged


def test_only_what_changed_is_read_and_sent(desk: Desk, read_again: list[str]) -> None:
    """S1-18."""
    follower = desk.follower()
    assert told(follower.take(NOTHING)) == (2, 2, 0, 0)
    read_again.clear()
    write(desk.root, {"src/a.py": "def f():\n    return 3\n\n\ndef h():\n    return 4\n"})
    assert told(follower.take(frozenset({"src/a.py"}))) == (1, 2, 0, 1)
    assert read_again == ["src/a.py"]
    assert desk.ids == {"src/a.py#f", "src/a.py#h", "src/b.py#g"}


def test_a_change_that_nobody_told_of_is_found_with_the_next(desk: Desk) -> None:
    follower = desk.follower()
    follower.take(NOTHING)
    write(desk.root, {"src/b.py": "def other():\n    return 2\n"})
    assert told(follower.take(frozenset({"unheard/of"}))) == (1, 1, 1, 1)


def test_a_file_told_of_is_read_even_if_it_looks_as_before(desk: Desk, read_again: list[str]) -> None:
    """Two writes within one tick of the file system's clock."""
    follower = desk.follower()
    follower.take(NOTHING)
    read_again.clear()
    assert follower.take(frozenset({"src"})) is None
    assert read_again == ["src/a.py", "src/b.py"]


def test_nothing_is_said_where_nothing_that_is_indexed_changed(desk: Desk) -> None:
    write(desk.root, {".gitignore": "*.log\n"})
    follower = desk.follower()
    follower.take(NOTHING)
    write(desk.root, {"run.log": "x\n", "uv.lock": "version = 1\n", ".env": "KEY=1\n", "src/x.bin": b"\0"})
    (desk.root / "out.py").symlink_to("/etc/hostname")
    touched = frozenset({"run.log", "uv.lock", ".env", "out.py", "src/x.bin", "../repository/src/a.py", "."})
    assert follower.take(touched) is None


def test_a_renamed_folder_is_one_batch(desk: Desk) -> None:
    follower = desk.follower()
    follower.take(NOTHING)
    git(desk.root, "mv", "src", "lib")
    assert told(follower.take(frozenset({"src", "lib"}))) == (4, 2, 2, 0)
    assert desk.ids == {"lib/a.py#f", "lib/b.py#g"}


def test_a_switched_branch_is_one_batch(desk: Desk) -> None:
    """The system itself reports the changes here: git has written all of it when the batch begins."""
    git(desk.root, "switch", "-c", "other")
    write(desk.root, {f"many/m{turn}.py": f"def m{turn}():\n    return 1\n" for turn in range(60)})
    git(desk.root, "rm", "src/b.py")
    git(desk.root, "add", ".")
    git(desk.root, "commit", "-m", "two")
    git(desk.root, "switch", "main")
    follower = desk.follower()
    follower.take(NOTHING)
    changes = changes_of(folder_at(desk.root))
    assert follower.take(next(changes)) is None
    git(desk.root, "switch", "other")
    assert told(follower.take(next(changes))) == (61, 60, 1, 1)


def test_a_batch_waits_for_git_to_end(desk: Desk) -> None:
    lock = desk.root / ".git" / "index.lock"
    lock.touch()
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            lock.unlink()

    assert next(changes_of(folder_at(desk.root), wait)) == NOTHING
    assert len(waited) == 3


def test_a_lock_that_was_left_behind_holds_nothing_up(desk: Desk) -> None:
    lock = desk.root / ".git" / "index.lock"
    lock.touch()
    os.utime(lock, (0, 0))
    assert next(changes_of(folder_at(desk.root), forbidden)) == NOTHING


def test_what_lies_aside_wakes_nobody(desk: Desk) -> None:
    folder = folder_at(desk.root)
    folder.settle(Indexed((), ""))
    changes = changes_of(folder)
    next(changes)
    write(desk.root, {"node_modules/a/a.js": "a()\n", ".git/x": "x\n", "src/c.py": "c = 1\n"})
    seen: set[str] = set()
    while "src/c.py" not in seen:
        seen |= next(changes)
    assert not {path for path in seen if path.startswith(("node_modules/", ".git/"))}


def test_two_who_follow_one_repository_do_not_fight(desk: Desk) -> None:
    one, two = desk.follower(), desk.follower()
    assert told(one.take(NOTHING))[1:] == (2, 0, 0)
    assert told(two.take(NOTHING))[1:] == (0, 0, 2)
    write(desk.root, {"src/a.py": "def changed():\n    return 1\n", "src/c.py": "def c():\n    return 3\n"})
    (desk.root / "src" / "b.py").unlink()
    touched = frozenset({"src/a.py", "src/b.py", "src/c.py"})
    assert told(two.take(touched))[1:] == (2, 2, 0)
    assert told(one.take(touched))[1:] == (0, 0, 2)
    assert one.take(touched) is None
    assert two.take(touched) is None


def test_what_the_service_has_lost_is_sent_with_the_next_batch(desk: Desk, read_again: list[str]) -> None:
    follower = desk.follower()
    write(desk.root, {"README.md": "# 还款\n\n见 src/a.py。\n"})
    follower.take(NOTHING)
    lost = ["src/a.py#f", "README.md#还款"]
    desk.stubs.memory.DeleteMemories(memory_pb.DeleteMemoriesRequest(project=desk.project, ids=lost))
    read_again.clear()
    write(desk.root, {"src/c.py": "def c():\n    return 3\n"})
    assert told(follower.take(NOTHING)) == (1, 3, 0, 1)
    assert sorted(read_again) == ["src/a.py", "src/c.py"]
    assert set(lost) <= desk.ids


def test_a_document_is_sent_again_when_a_file_that_it_names_appears(desk: Desk, read_again: list[str]) -> None:
    write(desk.root, {"README.md": "# 还款\n\n见 src/later.py。\n"})
    follower = desk.follower()
    follower.take(NOTHING)
    read_again.clear()
    write(desk.root, {"src/later.py": "def later():\n    return 3\n"})
    assert told(follower.take(NOTHING)) == (1, 2, 0, 2)
    assert read_again == ["src/later.py"]


@contextmanager
def nobody() -> Iterator[grpc.Channel]:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        with grpc.insecure_channel(f"127.0.0.1:{bound.getsockname()[1]}") as channel:
            yield channel


def test_a_service_that_was_away_gets_all_that_changed_meanwhile(desk: Desk) -> None:
    away = 3
    waited: list[float] = []

    def dial() -> AbstractContextManager[grpc.Channel]:
        return nobody() if len(waited) < away else desk.dial()

    def wait(seconds: float) -> None:
        waited.append(seconds)
        write(desk.root, {f"src/later{len(waited)}.py": "def later():\n    return 3\n"})

    assert told(desk.follower(dial, wait).take(NOTHING)) == (5, 5, 0, 0)
    assert waited == [1.0, 2.0, 4.0]
    assert desk.absences == [grpc.StatusCode.UNAVAILABLE]


def test_a_service_that_refuses_is_not_asked_again(desk: Desk) -> None:
    desk.project = "x" * 10_000
    with pytest.raises(grpc.RpcError):
        desk.follower().take(NOTHING)
    assert not desk.absences


def test_rules_are_followed_as_they_are_written(desk: Desk) -> None:
    follower = desk.follower()
    follower.take(NOTHING)
    write(desk.root, {".hummockignore": "src/b.py\n!\n"})
    assert follower.take(frozenset({".hummockignore"})) is None
    assert desk.troubles == [".hummockignore: Invalid git pattern: '!'"]
    write(desk.root, {".hummockignore": "src/b.py\n"})
    assert told(follower.take(frozenset({".hummockignore"}))) == (2, 1, 1, 1)
    (desk.root / ".hummockignore").unlink()
    assert told(follower.take(frozenset({".hummockignore"}))) == (2, 1, 1, 1)


def test_a_root_that_is_gone_is_an_error(desk: Desk) -> None:
    follower = desk.follower()
    follower.take(NOTHING)
    desk.root.rename(desk.root.with_name("elsewhere"))
    with pytest.raises(FileNotFoundError):
        follower.take(NOTHING)
    assert desk.ids == {"src/a.py#f", "src/b.py#g"}


def test_the_command_follows_until_it_is_told_to_end(desk: Desk, tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "def changed():\n    return 1\n"})
    command = [sys.executable, "-m", "hummock", "index", os.fspath(desk.root), "--watch", "--json"]
    command += ["--project", desk.project, "--target", desk.stubs.target]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            first = json.loads(process.stdout.readline())
            assert (first["files_changed"], first["sent"], first["walked"]["files"]) == (2, 2, 2)
            # At once: a look between the beginning and the end of a writing would be a batch of its own.
            (tmp_path / "a.py").rename(desk.root / "src" / "a.py")
            second = json.loads(process.stdout.readline())
            assert (second["files_changed"], second["sent"], second["deleted"], second["unchanged"]) == (1, 1, 1, 1)
            process.send_signal(signal.SIGTERM)
            assert process.wait() == 0
            assert process.stderr.read().splitlines() == [
                f"following {desk.root}; Ctrl-C ends it",
                "ended; what was sent is kept, and the next run goes on from there",
            ]
        finally:
            process.kill()


def test_the_command_says_that_the_service_is_away_and_ends_when_told(desk: Desk) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        target = f"127.0.0.1:{bound.getsockname()[1]}"
        command = [sys.executable, "-m", "hummock", "index", os.fspath(desk.root), "--watch", "--project", "p"]
        with subprocess.Popen([*command, "--target", target], stderr=subprocess.PIPE, encoding="utf-8") as process:
            assert process.stderr is not None
            try:
                assert process.stderr.readline() == (
                    f"the service cannot be reached: is `hummock serve` running? target {target}; "
                    "trying again until it answers\n"
                )
                process.send_signal(signal.SIGTERM)
                assert process.wait() == 0
                assert process.stderr.read() == "ended; what was sent is kept, and the next run goes on from there\n"
            finally:
                process.kill()
