"""Export and Import of real stores, message by message: nothing is lost on the way, and nothing changes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from hummock.core import memory as core
from hummock.core.errors import ProjectNotFound, Unavailable
from hummock.core.project import ProjectInfo
from hummock.core.session import PromptRole, Session, SessionMessage
from hummock.core.settings import PresetSettings, ProjectSettings
from hummock.ports.writes import UnitOfWork
from hummock_client.v1 import memory_pb2, transfer_pb2
from tests.failures import field_of
from tests.rpc.port import Port, memory, port
from tests.snapshots import at
from tests.strategies import SPACE, write_request
from tests.sure import sure
from tests.workplace import note

_ALL = core.Filter()


TEXTS = st.sampled_from(
    [
        "等额本息、等额本金、先息后本。",
        "The meeting moved to Friday.",
        "def repay(amount):\n    return amount  # 还款",
        "等额 repay() \u2028 <memory> ``` \r\n\t零宽\u200b 🌊",
        "a " * 300,
    ]
)
NAMES = st.sampled_from(["", "s1", "会话", "x" * 90])
TIMES = st.none() | st.floats(0, 1_700_000_000, allow_nan=False) | st.just(1_699_999_999.123456)


@st.composite
def drafts(draw: st.DrawFn) -> core.Draft:
    kind = draw(st.sampled_from(core.MemoryKind))
    text = draw(TEXTS)
    details: dict[core.MemoryKind, core.Detail] = {
        core.MemoryKind.LEARNING_RECORD: core.LearningRecord(
            question=text[:200], answer="答 " + text, source_files=("A.kt",)
        ),
        core.MemoryKind.DOMAIN_KNOWLEDGE: core.DomainKnowledge(
            domain="还款", aliases=("repay",), summary=text, key_files=("A.kt",)
        ),
        core.MemoryKind.CODE_FRAGMENT: core.CodeFragment(
            path="src/A.kt", start_line=3, end_line=9, language="kotlin", symbol="f"
        ),
    }
    return core.Draft(
        id=draw(st.sampled_from(["a", "b", "世界.图鉴", "d", "e"])),
        kind=kind,
        origin=draw(st.sampled_from(core.Origin)),
        index=core.MemoryIndex(
            title=draw(st.sampled_from(["", "标题 title"])), tags=draw(st.sampled_from([(), ("还款", "b")]))
        ),
        payload=core.Payload(content=text, raw=draw(st.sampled_from(["", "[joy] " + text])), detail=details.get(kind)),
        session_id=draw(NAMES),
        speaker=draw(st.sampled_from(["", "林"])),
        event_time=draw(TIMES),
        emotion_label=draw(st.sampled_from(["", "joy"])),
        trust=draw(st.sampled_from([0.0, 0.1, 1.0])),
        supersedes=draw(st.sampled_from([(), ("old", "旧")])),
        create_time=draw(TIMES),
        source_hash=draw(st.sampled_from(["", "5f"])),
    )


@pytest.mark.long
@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    learnt=st.lists(drafts(), max_size=8),
    edited=st.sampled_from([(), ("a",), ("b", "a")]),
    removed=st.sampled_from([(), ("世界.图鉴",)]),
    with_vectors=st.booleans(),
)
def test_what_is_taken_in_goes_out_again_byte_by_byte(
    learnt: list[core.Draft], edited: tuple[str, ...], removed: tuple[str, ...], with_vectors: bool
) -> None:
    """S1-06, S1-07, S4-09."""
    with port() as here, port() as there:
        here.cases.projects.update("p", "", ("Spring Boot", "MyBatis"), "/srv/loan", core.Origin.MANUAL, b"f")
        here.cases.settings.change("p", "", ProjectSettings(chat=PresetSettings(top_k=3)), ["chat.top_k"], b"f")
        for draft in learnt:
            here.work.teach(draft)
            here.work.clock.move(0.1234567)
        for memory_id in edited:
            if here.work.get(memory_id) is not None:
                here.work.garden.update("p", "", memory_id, core.Changes(emotion_label="calm"), b"")
        here.work.garden.delete("p", "", removed, b"")
        there.work.clock.move(1000)
        records = here.out("p", with_vectors=with_vectors)
        reply = there.take("other", records)
        assert not reply.failures
        assert there.out("other", with_vectors=with_vectors) == records
        assert reply.embedded_count == (0 if with_vectors else reply.created_count)
        there.work.embed_pending()
        assert there.out("other", with_vectors=with_vectors) == records
        kept = [
            here.work.store.page("p", _ALL, 0, 99, full=True),
            there.work.store.page("other", _ALL, 0, 99, full=True),
        ]
        hashes = [
            [(one.id, one.content_hash, one.token_count, one.chunk_count) for one in page.memories] for page in kept
        ]
        assert hashes[0] == hashes[1]


@pytest.mark.long
@settings(max_examples=12, deadline=None, derandomize=True)
@given(learnt=st.lists(drafts(), min_size=1, max_size=8), into=st.sampled_from(["p", "other"]))
def test_taking_the_same_in_again_changes_nothing(learnt: list[core.Draft], into: str) -> None:
    with port() as here:
        for draft in learnt:
            here.work.teach(draft)
            here.work.clock.move(0.1234567)
        records = here.out("p")
        here.take(into, records)
        before = here.work.store.generation(into).content_seq
        here.work.embedder.embedded.clear()
        here.work.clock.move(5)
        reply = here.take(into, records)
        assert reply.unchanged_count == len(records) - 2
        assert (reply.created_count, reply.updated_count, reply.embedded_count) == (0, 0, 0)
        assert (here.work.embedder.embedded, here.work.store.generation(into).content_seq) == ([], before)


def content_of(here: Port, memory_id: str) -> str:
    return sure(sure(here.work.get(memory_id)).payload).content


def test_an_export_begins_with_the_project_which_is_there_and_ends_with_a_count(here: Port) -> None:
    here.work.teach(note("one", "a"), note("two", "b"))
    here.cases.projects.update("p", "", ("MySQL",), "/srv", core.Origin.MANUAL, b"f")
    first, *_, last = here.out("p")
    assert (first.header.version, list(first.header.tech_stack), first.header.path) == (2, ["MySQL"], "/srv")
    assert last.end.memory_count == 2
    assert {message.memory_count for message in here.messages("p")} == {2}
    with pytest.raises(ProjectNotFound):
        here.out("nobody's")


def test_what_changes_during_an_export_is_exported_as_it_is_at_its_end(
    here: Port, there: Port, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hummock.store.tables.op_log.EXPORT_PAGE_BYTES", 1)
    here.work.teach(*(note(f"note {number}", str(number)) for number in range(6)))
    records: list[transfer_pb2.TransferRecord] = []
    for number, message in enumerate(here.messages("p")):
        records += message.records
        if number == 3:
            here.work.garden.delete("p", "", ["0", "5"], b"")
            here.work.teach(note("changed", "1"), note("new", "n"))
        if number == 4:
            here.work.garden.delete("p", "", ["2", "n"], b"")
            here.work.teach(note("back again", "0"))
    there.take("p", records)
    left = {one.id: one.payload for one in here.work.store.page("p", _ALL, 0, 99, full=True).memories}
    assert {one.id: one.payload for one in there.work.store.page("p", _ALL, 0, 99, full=True).memories} == left
    assert {record.removed_id for record in records if record.WhichOneof("record") == "removed_id"} == {"2"}


def test_an_export_that_falls_too_far_behind_says_so(here: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hummock.store.tables.op_log.EXPORT_PAGE_BYTES", 1)
    here.work.teach(note("one", "a"), note("two", "b"))
    messages = here.messages("p")
    next(messages)
    next(messages)
    for number in range(20):
        here.work.teach(note(f"more {number}"))
    with pytest.raises(Unavailable, match="export it again"):
        list(messages)


def test_sessions_keep_the_order_of_their_turns(here: Port, there: Port) -> None:
    here.work.teach(*(note(f"turn {number}", str(number), session_id="s") for number in range(4)))
    here.work.garden.update("p", "", "1", core.Changes(content="turn one, said better"), b"")
    there.take("p", here.out("p"))
    there.work.teach(note("turn 4", "4", session_id="s"))
    docs = {one.id: number for number, one in enumerate(there.work.store.page("p", _ALL, 0, 9, full=True).memories, 1)}
    (beside,) = at(there.work.store, "p").neighbours([docs["2"]], 3, full=False, most_bytes=1 << 20)
    assert [one.id for one in beside.before] == ["0", "1"]
    assert [one.id for one in beside.after] == ["3", "4"]


def test_a_vector_that_ends_within_a_number_is_named_by_its_place(here: Port) -> None:
    cut = transfer_pb2.TransferChunk(values=bytes(4 * SPACE.dim - 1))
    reply = here.take("p", [memory("x", "x", emb_space=SPACE.id, chunks=[cut])])
    assert [(failure.number, field_of(failure)) for failure in reply.failures] == [(1, "memory.chunks[0].values")]


def test_a_session_goes_on_behind_the_last_place_that_an_import_may_name(here: Port) -> None:
    sent = memory("far", "a", session_position=1_000_000_000)
    beyond = memory("beyond", "b", session_position=1_000_000_001)
    sent.memory.memory.session_id = beyond.memory.memory.session_id = "s"
    reply = here.take("p", [sent, beyond])
    assert [(failure.number, field_of(failure)) for failure in reply.failures] == [(2, "memory.session_position")]
    for turn in range(3):
        here.work.teach(note(f"turn {turn}", session_id="s"))
    assert here.work.store.generation("p").seq == 4


def test_a_memory_replaces_the_one_with_its_id_and_none_of_its_text(here: Port) -> None:
    here.take("p", [memory("same", "b"), memory("same", "c")])
    assert [one is not None for one in here.work.store.get("p", ["b", "c"], 0, full=False)] == [True, True]
    here.work.teach(note("old", "d"))
    reply = here.take("p", [memory("new", "d")])
    assert (reply.updated_count, reply.created_count) == (1, 0)
    assert content_of(here, "d") == "new"
    # The last of several records of one id counts, also when it is there already.
    here.work.teach(note("two", "a"))
    reply = here.take("p", [memory("one"), memory("two"), transfer_pb2.TransferRecord(removed_id="nothing")])
    assert (reply.updated_count, reply.removed_count) == (2, 0)
    assert content_of(here, "a") == "two"


def test_wrong_records_are_named_and_all_others_are_taken_in(here: Port) -> None:
    chunk = transfer_pb2.TransferChunk
    good, space = memory("good", "good"), SPACE.id
    future = memory("later", "later")
    future.memory.memory.create_time.FromSeconds(4_000_000_000)
    unit = b"\0\0\x80\x3f" + bytes(4 * (SPACE.dim - 1))
    wrong = {
        "": transfer_pb2.TransferRecord(),
        "header.version": transfer_pb2.TransferRecord(header=transfer_pb2.TransferHeader(version=1)),
        "memory.memory": transfer_pb2.TransferRecord(memory=transfer_pb2.TransferMemory()),
        "memory.memory.id": memory("no id", ""),
        "memory.memory.content": memory(" ", "blank"),
        "memory.memory.create_time": future,
        "memory.chunks[0].values": memory("x", "x", emb_space=space, chunks=[chunk(values=b"\0\0\x80\x3f")]),
        "memory.chunks[1].values": memory(
            "y", "y", emb_space=space, chunks=[chunk(values=unit), chunk(values=bytes(4 * SPACE.dim))]
        ),
        "memory.chunks[0].tokens": memory("z", "z", emb_space=space, chunks=[chunk(values=unit, tokens=b"123")]),
        "removed_id": transfer_pb2.TransferRecord(removed_id="a\x00b"),
    }
    reply = here.take("p", [*wrong.values(), good])
    assert {failure.number: field_of(failure) for failure in reply.failures} == dict(enumerate(wrong, start=1))
    assert all(failure.status.message for failure in reply.failures)
    assert reply.created_count == 1
    assert here.work.get("good") is not None
    assert here.work.store.project("p") is not None


def test_vectors_of_another_space_are_made_anew(here: Port) -> None:
    """S1-06."""
    foreign = transfer_pb2.TransferChunk(values=b"\0\0\x80\x3f" * 3)
    reply = here.take("p", [memory("a sentence", emb_space="bge-m3", chunks=[foreign])])
    assert (reply.created_count, reply.embedded_count) == (1, 1)
    here.work.embed_pending()
    assert len(here.work.embedder.embedded) == 1


def test_a_vector_of_any_length_is_kept_at_length_one(here: Port) -> None:
    long = transfer_pb2.TransferChunk(values=(b"\0\0\x80\x40" + bytes(4)) * (SPACE.dim // 2))
    here.take("p", [memory("a sentence", emb_space=SPACE.id, chunks=[long])])
    (kept,) = here.work.store.export("p", 0, 0, with_vectors=True).memories
    assert float(kept.embeddings[0].vector @ kept.embeddings[0].vector) == pytest.approx(1, abs=1e-3)


def test_without_a_time_of_change_what_is_there_stays_as_it_is(here: Port) -> None:
    here.take("p", [memory("one")])
    here.work.clock.move(60)
    assert here.take("p", [memory("one")]).unchanged_count == 1
    assert here.take("p", [memory("two")]).updated_count == 1
    kept = sure(here.work.get("a"))
    assert (kept.update_time, kept.create_time) == (here.work.clock.now(), here.work.clock.now() - 60)


def test_the_header_sets_what_prompts_say_of_the_project(here: Port) -> None:
    header = transfer_pb2.TransferHeader(
        version=2, tech_stack=["MySQL"], path="/srv/loan", path_origin=memory_pb2.ORIGIN_INDEXER
    )
    here.take("p", [transfer_pb2.TransferRecord(header=header)])
    project = sure(here.work.store.project("p"))
    assert project.info == ProjectInfo(tech_stack=("MySQL",), path="/srv/loan", path_origin=core.Origin.INDEXER)


def test_an_import_of_nothing_makes_the_project(here: Port) -> None:
    assert (here.take("p", []).seq, here.out("p")[-1].end.memory_count) == (1, 0)


def test_what_was_derived_is_derived_again_after_an_edit(here: Port, there: Port) -> None:
    here.work.teach(note("the first line\nand more", "a"))
    there.take("p", here.out("p"))
    updated = there.work.garden.update("p", "", "a", core.Changes(content="another line"), b"")
    assert updated.memory.index.title == "another line"
    assert replace(updated.memory.index, title="", summary="") == core.MemoryIndex()


def talk(port: Port, project: str, session_id: str, *texts: str, archived: bool = False, title: str = "") -> None:
    """A conversation whose messages are a second apart."""

    def say(unit: UnitOfWork) -> None:
        now = port.work.clock.now()
        session = Session(id=session_id, title=title, create_time=now, update_time=now, is_archived=archived)
        unit.sessions.create(session)
        for number, text in enumerate(texts):
            message = SessionMessage(
                id=f"{session_id}-{number}",
                role=PromptRole(number % 3 + 1),
                content=text,
                raw=f"[joy] {text}" if number % 2 else "",
                send_time=now + number,
                memory_id="a" if number == 0 else "",
            )
            unit.sessions.append(replace(session, update_time=message.send_time), message)

    port.work.store.write(project, write_request(say)).result(30)
    port.work.clock.move(60)


def test_conversations_go_out_and_come_in_in_the_order_in_which_they_moved(here: Port, there: Port) -> None:
    """S4-07, S4-08."""
    talk(here, "p", "first", "你好", "hello", "how do I repay?")
    talk(here, "p", "old", "再见", archived=True, title="旧")
    talk(here, "p", "empty")
    talk(here, "p", "newest", "最近")
    there.work.clock.move(1000)
    records = here.out("p")
    reply = there.take("other", records)
    assert (reply.session_count, reply.message_count, list(reply.failures)) == (4, 5, [])
    assert there.out("other") == records
    for archived in (True, False):
        pages = [
            port.work.store.sessions.page(project, None, 9, archived=archived)
            for port, project in ((here, "p"), (there, "other"))
        ]
        assert pages[0].sessions == pages[1].sessions
    again = there.take("other", records)
    assert (again.session_count, again.message_count, there.out("other")) == (0, 0, records)


def test_a_conversation_that_moves_while_the_project_is_exported_goes_out_once(here: Port) -> None:
    for name, archived in (("a", True), ("b", True), ("c", False), ("d", False)):
        talk(here, "p", name, f"in {name}", archived=archived)
    parts = here.cases.export.conversations("p")
    first = next(parts)

    def turn(unit: UnitOfWork) -> None:
        for name in ("b", "c"):
            session = sure(unit.sessions.get(name))
            unit.sessions.change(replace(session, is_archived=not session.is_archived))

    here.work.store.write("p", write_request(turn)).result(30)
    assert [one.id for one in (first, *parts) if isinstance(one, Session)] == ["a", "b", "c", "d"]


def test_a_conversation_that_was_cut_off_is_finished_by_a_second_import(here: Port, there: Port) -> None:
    talk(here, "p", "s", "one", "two", "three")
    records = here.out("p")
    assert (there.take("p", records[:-3]).message_count, there.take("p", records).message_count) == (1, 2)
    assert there.out("p") == records


def test_wrong_records_of_conversations_are_named_and_the_rest_is_stored(here: Port, there: Port) -> None:
    talk(here, "p", "s", "one")
    _, session, message, end = here.out("p")
    reply = there.take("p", [message, memory("good"), end])
    assert [(failure.number, field_of(failure)) for failure in reply.failures] == [(1, "message.session_id")]
    assert (reply.created_count, there.take("p", [session, message]).message_count) == (1, 1)
    _, session, *_ = here.out("p")
    session.session.title = "a\x1b[31mb"
    assert [field_of(failure) for failure in there.take("p", [session]).failures] == ["session.title"]


def test_a_message_older_than_those_that_are_there_counts_as_sent_with_the_last(here: Port, there: Port) -> None:
    talk(here, "p", "s", "one", "two")
    there.work.clock.move(100)
    talk(there, "p", "s", "there already")
    there.take("p", here.out("p"))
    messages = there.work.store.sessions.behind("p", "s", 0, 1 << 20)
    assert [message.content for message in messages] == ["there already", "two"]
    assert messages[0].send_time == messages[1].send_time
