"""index against a service with canned answers, and the sample of the demo."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hummock.cli.main import app
from hummock_client.v1 import context_service_pb2 as context_pb
from hummock_client.v1 import memory_pb2
from hummock_client.v1 import memory_service_pb2 as memory_pb
from hummock_client.v1 import project_service_pb2 as project_pb
from tests.cli.conftest import Run
from tests.cli.fake_service import CODE, FakeService

pytest.importorskip("tree_sitter")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "loan.py").write_text("def 还款(amount):\n    return amount\n", encoding="utf-8")
    (tmp_path / "logo.png").write_bytes(b"\x89PNG\0\0")
    return tmp_path


@pytest.mark.long
def test_index_tells_what_was_sent_deleted_and_left_out(run: Run, fake: FakeService, repository: Path) -> None:
    result = run("index", str(repository))
    assert result.exit_code == 0, result.stderr
    assert "1 files: 1 code fragments, 0 domain entries; 1 sent, 0 unchanged, 0 deleted" in result.stdout
    assert "1 paths left out: 1 binary" in result.stdout
    sent = [asked for asked in fake.asked if isinstance(asked, context_pb.LearnStreamRequest)]
    (memory,) = [memory for request in sent for memory in request.learn.memories]
    assert memory.code_fragment.path.endswith("/loan.py")
    assert dict(memory.metadata) == {"root": str(repository)}
    assert not any(isinstance(asked, memory_pb.DeleteMemoriesRequest) for asked in fake.asked)


def test_index_says_what_the_project_is_made_with(run: Run, fake: FakeService, repository: Path) -> None:
    """S0-19."""
    (repository / "pom.xml").write_text("<project/>", encoding="utf-8")
    (repository / "package.json").write_text("{", encoding="utf-8")
    result = run("index", str(repository))
    assert "tech stack: Spring Boot, MyBatis (as somebody said)" in result.stdout
    assert "not read for the tech stack: package.json (not JSON)" in result.stderr
    assert "kept what somebody said: tech_stack; `hummock projects set` changes it" in result.stderr
    (update,) = [asked for asked in fake.asked if isinstance(asked, project_pb.UpdateProjectRequest)]
    assert (list(update.info.tech_stack), update.origin) == (
        ["Spring Boot", "MyBatis", "Java"],
        memory_pb2.ORIGIN_INDEXER,
    )


@pytest.mark.long
def test_index_reports_as_json_and_names_what_it_leaves_out(run: Run, repository: Path) -> None:
    """S0-19."""
    report = json.loads(run("index", str(repository), "--json").stdout)
    assert (report["fragments"], report["sent"]) == (1, 1)
    assert report["walked"]["skipped"] == {"binary": 1}
    assert report["info"]["tech_stack"] == ["Spring Boot", "MyBatis"]
    assert "left out: logo.png (binary)" in run("index", str(repository), "--verbose").stderr
    result = run("index", str(repository), "--remove")
    said = f"error: {repository} is no root that 还款 has an index of; indexed is nothing\n"
    assert (result.exit_code, result.stderr) == (1, said)
    assert run("index", str(repository), "--remove", "--watch").exit_code == 2


@pytest.mark.long
@pytest.mark.parametrize("more", [(), ("--watch",)])
def test_rules_that_cannot_be_read_are_an_error_of_one_line(run: Run, repository: Path, more: tuple[str, ...]) -> None:
    if more:
        pytest.importorskip("watchfiles")
    (repository / ".hummockignore").write_text("!\n", encoding="utf-8")
    result = run("index", str(repository), *more)
    assert (result.exit_code, result.stderr) == (1, "error: .hummockignore: Invalid git pattern: '!'\n")


@pytest.mark.long
def test_nested_repositories_are_named_with_the_command_for_each(run: Run, repository: Path) -> None:
    for turn in range(12):
        (repository / f"clone {turn:02}" / ".git").mkdir(parents=True)
    lines = run("index", str(repository)).stdout.splitlines()
    first = lines.index("12 nested repositories are not indexed; each has an index of its own by:") + 1
    assert lines[first] == f"  hummock index '{repository}/clone 00' -p '还款'"
    assert lines[first + 9 : first + 11] == [
        f"  hummock index '{repository}/clone 09' -p '还款'",
        "  and 2 more (--json has all)",
    ]
    report = json.loads(run("index", str(repository), "--json").stdout)
    assert report["nested"] == [f"{repository}/clone {turn:02}" for turn in range(12)]


@pytest.mark.long
def test_a_guessed_encoding_is_said_and_what_cannot_be_told_is_named(run: Run, repository: Path) -> None:
    (repository / "list.java").write_bytes("// 查询用户的订单列表\nclass A {}\n".encode("gbk"))
    (repository / "odd.c").write_bytes(b"int main() { return 0; } // \xd7\xe9\n")
    said = run("index", str(repository)).stdout
    assert "it was guessed:\n  list.java (gb18030)\n1 files were left out; a line such as `coding: gbk`" in said
    assert "what they are:\n  odd.c\n" in said
    report = json.loads(run("index", str(repository), "--json").stdout)
    assert (report["guessed"], report["undecided"]) == ([{"path": "list.java", "encoding": "gb18030"}], ["odd.c"])


@pytest.mark.long
def test_files_whose_ids_another_index_has_are_named(
    run: Run, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = {"id": "web/loan.py#还款", "tags": ["repository:backend"], "metadata": {"root": "/elsewhere"}}
    for key, value in other.items():
        monkeypatch.setitem(CODE, key, value)
    said = run("index", str(repository), "--name", "web").stdout
    assert "1 files have memories whose ids another index has: those were not sent; --name helps:\n  loan.py\n" in said
    report = json.loads(run("index", str(repository), "--name", "web", "--json").stdout)
    assert (report["taken"], report["sent"], report["deleted"]) == (["loan.py"], 0, 0)


def test_a_folder_with_nothing_to_index_or_that_is_not_there_is_said(run: Run, tmp_path: Path) -> None:
    result = run("index", str(tmp_path))
    assert result.exit_code == 0
    assert result.stdout.startswith("0 files: ")
    assert f"nothing in {tmp_path} is indexed" in result.stderr
    result = run("index", str(tmp_path / "absent"))
    assert result.exit_code == 1
    assert str(tmp_path / "absent") in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_file_is_no_folder_and_who_follows_does_not_wait(run: Run, repository: Path) -> None:
    result = run("index", str(repository / "loan.py"))
    assert (result.exit_code, result.stderr) == (1, f"error: {repository / 'loan.py'}: Not a directory\n")
    result = run("index", str(repository), "--watch", "--wait")
    assert result.exit_code == 2
    assert "leave out --wait" in result.stderr


@pytest.mark.long
def test_a_demo_whose_service_cannot_start_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUMMOCK_WORKERS", "many")
    result = CliRunner().invoke(app, ["demo", "--data", str(tmp_path), "--exit"])
    assert result.exit_code == 1
    assert "error: the service did not start; what it said stands above" in result.stderr
    assert list(tmp_path.iterdir()) == []
