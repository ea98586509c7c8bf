"""`hummock save project` and `hummock import` against a running service."""

from __future__ import annotations

import base64
import gzip
import json
import struct
from pathlib import Path
from typing import Any

import pytest

from hummock_client.v1 import memory_pb2 as pb
from tests.service.calls import ask, await_vectors, chat, hummock, learn
from tests.service.inputs import domain, fragment, note
from tests.service.running import Stubs

pytestmark = pytest.mark.long


FIRST_VERSION = Path(__file__).parents[1] / "golden" / "export" / "v1.jsonl"


def taken_in(service: Stubs, *arguments: str, stdin: bytes | None = None) -> dict[str, Any]:
    """The outcome of an import."""
    result = hummock(service, "import", *arguments, "--json", stdin=stdin)
    outcome: dict[str, Any] = json.loads(result.stdout)
    assert result.exit_code == (1 if outcome["failures"] or not outcome["whole"] else 0), result.stderr
    return outcome


def lines(*values: object) -> bytes:
    return b"".join(json.dumps(value, ensure_ascii=False).encode() + b"\n" for value in values)


def _some(counts: dict[str, Any]) -> dict[str, Any]:
    """Counts that are not 0."""
    return {name: count for name, count in counts.items() if count}


def memories(service: Stubs, project: str) -> dict[str, pb.Memory]:
    return {one.id: one for one in service.memory.ListMemories(project=project, view=pb.MEMORY_VIEW_FULL).memories}


@pytest.mark.parametrize("vectors", [(), ("--vectors",)])
def test_a_project_goes_to_a_file_and_back_byte_by_byte(
    service: Stubs, project: str, tmp_path: Path, vectors: tuple[str, ...]
) -> None:
    """S1-07."""
    odd = note("潮汐木的心材，退潮时发光\u2028\x85next", id="世界.图鉴", emotion_label="joy")
    learn(service, project, odd, domain("还款", "还款模块"), fragment("a.py", "f", "def f():\r\n\tpass"))
    file = tmp_path / "loan.jsonl"
    exported = hummock(service, "export", project, *vectors)
    assert exported.exit_code == 0
    file.write_bytes(exported.stdout_bytes)
    outcome = taken_in(service, f"{project}-moved", str(file))
    assert (outcome["created"], outcome["embedded"]) == (3, 0 if vectors else 3)
    assert hummock(service, "export", f"{project}-moved", *vectors).stdout_bytes == exported.stdout_bytes
    assert taken_in(service, f"{project}-moved", "-", stdin=exported.stdout_bytes)["unchanged"] == 3


HEADER = {"header": {"version": 2}}
ONE, TWO, THREE = (
    {"memory": {"memory": {"id": name, "kind": "MEMORY_KIND_NOTE", "content": text}}}
    for name, text in {"a": "one", "b": "two", "c": "three"}.items()
)
END = {"end": {"memoryCount": 2, "recordCount": 3}}
NOT_WHOLE: dict[str, tuple[list[Any], str]] = {
    "an empty file": ([], "is empty"),
    "nothing but a header": ([HEADER], "it has no end"),
    "cut between two lines": ([HEADER, ONE], "it has no end"),
    "a memory that is missing": ([HEADER, ONE, {"end": {"memoryCount": 2}}], "it says 2 memories, and holds 1"),
    "a memory too many": ([HEADER, ONE, TWO, THREE, {"end": {"memoryCount": 2}}], "it says 2 memories, and holds 3"),
    "a beginning that is missing": ([ONE, TWO, END], "it says 3 records, and holds 2"),
    "two exports": ([HEADER, ONE, TWO, END, HEADER], "another one begins on line 5"),
    "an export behind one that was cut off": ([HEADER, ONE, HEADER, ONE, TWO, END], "another one begins on line 3"),
    "something behind the end": ([HEADER, ONE, TWO, END, {"oops": 1}], "line 5 was not read"),
}  # fmt: skip # a table


@pytest.mark.parametrize("name", NOT_WHOLE)
def test_a_file_that_is_not_whole_is_said_not_to_be(service: Stubs, project: str, name: str) -> None:
    records, why = NOT_WHOLE[name]
    result = hummock(service, "import", project, "-", "--json", stdin=lines(*records))
    outcome = json.loads(result.stdout)
    assert (result.exit_code, outcome["whole"]) == (1, False)
    assert why in outcome["why"]
    assert why in " ".join(result.stderr.split())
    assert set(memories(service, project)) <= {"a", "b", "c"}


def test_a_whole_file_is_said_to_be_whole(service: Stubs, project: str) -> None:
    for data in (lines(HEADER, ONE, TWO, END), lines(HEADER, ONE, TWO, {"end": {"memoryCount": 2}}) + b"\n \n"):
        outcome = taken_in(service, project, "-", stdin=data)
        assert (outcome["whole"], "why" in outcome) == (True, False)


def test_an_export_that_is_cut_anywhere_is_not_whole_and_keeps_what_was_read(service: Stubs, project: str) -> None:
    learn(service, project, note("one", id="a"), note("潮汐", id="b"))
    whole = hummock(service, "export", project).stdout_bytes
    told = {one.id: one.content for one in memories(service, project).values()}
    line_ends = [at for at in range(len(whole) - 1) if whole[at : at + 1] == b"\n"]
    for end in {*range(0, len(whole) - 1, 101), *line_ends, *(at + 1 for at in line_ends)}:
        result = hummock(service, "import", f"{project}-moved", "-", "--json", stdin=whole[:end])
        assert (result.exit_code, json.loads(result.stdout)["whole"]) == (1, False), whole[:end]
        kept = {one.id: one.content for one in memories(service, f"{project}-moved").values()}
        assert kept.items() <= told.items()
    for data in (whole[:-1], whole):
        assert taken_in(service, f"{project}-moved", "-", stdin=data)["whole"]


def test_wrong_lines_are_said_with_their_number_and_the_rest_is_stored(service: Stubs, project: str) -> None:
    good = {"memory": {"memory": {"id": "a", "kind": "MEMORY_KIND_NOTE", "payload": {"content": "好"}}}}
    bad = {"memory": {"memory": {"id": "b", "kind": "MEMORY_KIND_NOTE", "payload": {"content": " "}}}}
    last = {"memory": {"memory": {**good["memory"]["memory"], "id": "c"}}}
    end = {"end": {"memoryCount": 3, "recordCount": 5}}
    data = lines(HEADER, good, bad) + b"{oops\n" + lines(last, end)
    result = hummock(service, "import", project, "-", stdin=data)
    assert result.exit_code == 1
    assert "stdin, line 3: memory.memory.content:" in result.stderr
    assert "stdin, line 4: " in result.stderr
    assert "2 created, 2 being embedded, 2 records not taken in" in " ".join(result.stderr.split())
    assert set(memories(service, project)) == {"a", "c"}
    outcome = taken_in(service, project, "-", stdin=data)
    assert [failure["line"] for failure in outcome["failures"]] == [3, 4]
    assert outcome["whole"]
    assert outcome["unchanged"] == 2


def test_legacy_memories_are_recalled_by_what_they_were(service: Stubs, project: str) -> None:
    """S4-10, S4-50, S4-51."""
    data = lines(
        {"text": "我喜欢下雨天", "timestamp": 1_700_000_000_000, "tag": "", "emotion": "user"},
        {"text": "下雨天适合喝茶", "timestamp": 1_700_000_000_001, "tag": "", "emotion": "ai", "emotionLabel": "calm"},
        {"text": "下雨天要带伞", "timestamp": 1_700_000_000_002, "tag": "manual", "sessionId": "s"},
    )
    outcome = taken_in(service, project, "-", "--format", "legacy", stdin=data)
    assert outcome["created"] == 3
    found = chat(service, project, "下雨天", min_similarity=0.0)
    assert set(found) == {"我喜欢下雨天", "下雨天要带伞"}
    labels = {one.content: one.emotion_label for one in memories(service, project).values()}
    assert labels == {"我喜欢下雨天": "", "下雨天适合喝茶": "calm", "下雨天要带伞": ""}
    assert taken_in(service, project, "-", "--format", "legacy", stdin=data)["unchanged"] == 3


def test_domain_knowledge_comes_with_its_base64_vector_where_it_is_of_the_model(service: Stubs, project: str) -> None:
    """S1-06."""
    dim = service.admin.GetStatus().model.dim
    vector = base64.b64encode(struct.pack(f"<{dim}f", 1.0, *[0.0] * (dim - 1))).decode()
    knowledge = {"id": "k", "projectKey": project, "title": "还款", "content": "还款模块", "embedding": vector}
    other = {**knowledge, "id": "o", "projectKey": "shop"}
    short = {**knowledge, "id": "s", "embedding": base64.b64encode(struct.pack("<3f", 1, 0, 0)).decode()}
    left_out = taken_in(service, project, "-", "--format", "legacy", stdin=lines(knowledge, other))
    assert (left_out["created"], left_out["embedded"]) == (1, 1)
    assert _some(left_out["leftOut"]) == {"otherProjects": {"shop": 1}, "vectors": 1}
    used = taken_in(service, f"{project}-b", "-", "--format", "legacy", "--vectors", "--project-key", project,
                    stdin=lines(knowledge, short))  # fmt: skip
    assert (used["created"], used["embedded"], _some(used["leftOut"])) == (1, 0, {})
    assert used["failures"][0]["line"] == 2
    assert f"has 3 components; the space has {dim}" in used["failures"][0]["reason"]
    assert [hit.memory.id for hit in ask(service, f"{project}-b", "还款").hits] == ["k"]


def test_memories_of_mem0_are_taken_in_from_the_list_that_it_returns(service: Stubs, project: str) -> None:
    answer = {"count": 2, "results": [{"id": "1", "memory": "喜欢早会", "user_id": "u"}, {"id": "2"}]}
    data = json.dumps(answer, indent=2, ensure_ascii=False).encode()
    outcome = taken_in(service, project, "-", "--format", "mem0", stdin=data)
    assert (outcome["created"], outcome["failures"]) == (1, [{"line": 9, "record": 2, "reason": "memory is missing"}])
    (kept,) = memories(service, project).values()
    assert (kept.origin, dict(kept.metadata)) == (pb.ORIGIN_SUMMARY, {"user_id": "u"})


def test_every_record_of_a_backup_of_mem0_is_stored_or_counted(service: Stubs, project: str, tmp_path: Path) -> None:
    states = ["active", "deleted", "paused", "archived", "active", "", None]
    records = [{"id": str(at), "content": f"content {at}", "state": state, "created_at": "2024-01-02T03:04:05+00:00",
                "categories": ["work"], "metadata": {"user_id": "ada"}} for at, state in enumerate(states)]  # fmt: skip
    records += [
        {"id": "wrong", "content": "", "state": "active"},
        {"id": "x" * 300, "content": "long", "state": "active"},
    ]
    data = json.dumps({"user": {"id": "u"}, "memories": records}).encode()
    packed = tmp_path / "memories.jsonl.gz"
    packed.write_bytes(gzip.compress(lines(*records)))
    for place, outcome in (
        ("record", taken_in(service, project, "-", "--format", "mem0", stdin=data)),
        ("line", taken_in(service, f"{project}-packed", str(packed), "--format", "mem0")),
    ):
        assert (outcome["created"], outcome["leftOut"]["states"]) == (5, {"deleted": 1, "archived": 1})
        assert [failure[place] for failure in outcome["failures"]] == [8, 9]
    await_vectors(service, project)
    await_vectors(service, f"{project}-packed")
    kept = memories(service, project)
    assert (kept, set(kept)) == (memories(service, f"{project}-packed"), {"0", "2", "4", "5", "6"})
    assert (list(kept["0"].tags), dict(kept["0"].metadata)) == (["work"], {"user_id": "ada"})
    assert kept["0"].create_time.ToJsonString() == kept["0"].update_time.ToJsonString() == "2024-01-02T03:04:05Z"


OLD = {
    "jsonl": lines(
        {"memory": {"memory": {"id": "a", "content": "the tide is low", "createTime": "2023-02-01T00:00:00Z"}}},
        {"end": {"memoryCount": 1}},
    ),
    "mem0": lines({"id": "a", "content": "the tide is low", "created_at": "2023-02-01T00:00:00+00:00"}),
    "legacy": lines({"id": "a", "text": "the tide is low", "tag": "manual", "timestamp": 1_675_209_600}),
}  # fmt: skip # records of files


@pytest.mark.parametrize("door", [*OLD, "learn"])
def test_what_was_taken_in_as_old_is_shown_as_old(service: Stubs, project: str, door: str) -> None:
    """S2-26: by when it was told first, whatever day it came here."""
    if door == "learn":
        told = note("the tide is low", id="a")
        told.create_time.FromJsonString("2023-02-01T00:00:00Z")
        learn(service, project, told)
    else:
        assert taken_in(service, project, "-", "--format", door, stdin=OLD[door])["created"] == 1
    (hit,) = ask(service, project, "tide", min_similarity=0.0).hits
    assert hit.age_days > 365
    assert hit.memory.update_time.ToJsonString() == "2023-02-01T00:00:00Z"
    shown = hummock(service, "render", "--project", project, "tide", "--form", "index")
    assert "(Warning: Old)" in shown.stdout, shown.stderr


def test_what_cannot_be_done_is_said_in_one_line(service: Stubs, project: str, tmp_path: Path) -> None:
    missing = hummock(service, "import", project, str(tmp_path / "nothing"))
    assert (missing.exit_code, "cannot be read: No such file" in missing.stderr) == (1, True)
    unknown = hummock(service, "export", "nobody's")
    assert (unknown.exit_code, unknown.stdout_bytes) == (1, b"")
    assert "does not exist" in unknown.stderr
    blank = hummock(service, "import", " ", "-", stdin=b"")
    assert (blank.exit_code, "project" in blank.stderr) == (1, True)
    assert hummock(service, "import", project, "-", "--vectors", stdin=b"").exit_code == 2


def test_an_interrupted_import_says_how_far_it_came(
    service: Stubs, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hummock_tools.cli.output.Meter.show", interrupt)
    record = {"memory": {"memory": {"id": "a", "kind": "MEMORY_KIND_NOTE", "payload": {"content": "one"}}}}
    result = hummock(service, "import", project, "-", stdin=lines(record))
    assert (result.exit_code, "up to line 1 is stored" in result.stderr) == (130, True)
    assert set(memories(service, project)) == {"a"}


def test_an_export_of_the_first_version_is_taken_in_whole(service: Stubs, project: str) -> None:
    """S1-07: a file that an older Hummock wrote; it is kept as it was written then."""
    outcome = taken_in(service, project, str(FIRST_VERSION))
    assert (outcome["created"], outcome["sessions"], outcome["messages"], outcome["failures"]) == (5, 1, 1, [])
    told = memories(service, project)
    assert told["record"].learning_record.question == "还款方式有哪些？"
    assert (told["code"].code_fragment.start_line, told["code"].source_hash) == (3, "abc")
    wood = told["世界.图鉴.物品.潮汐木芯"]
    assert (wood.title, wood.summary, wood.content) == ("潮汐木芯", "发光的木芯", "潮汐木的心材，退潮时发光")
    assert (list(wood.tags), wood.trust) == (["图鉴", "物品"], 0.3)
    settings = service.project.GetProjectSettings(project=project).settings
    assert (settings.chat.top_k, settings.history.max_messages, settings.history.max_characters) == (7, 12, 900)
    assert (settings.quotas.domains, settings.budget_tokens.context, settings.codex.min_similarity) == (2, 1234, 0.5)
    again = hummock(service, "export", project).stdout_bytes
    assert b'"version": 2' in again.splitlines()[0]
    assert taken_in(service, f"{project}-moved", "-", stdin=again)["created"] == 5
