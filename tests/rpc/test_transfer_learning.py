"""Export and import of learning with a project: the log of its events, and the state that they make."""

from __future__ import annotations

from random import Random
from typing import get_args

import pytest
from msgspec import Struct
from msgspec.structs import fields, replace

from hummock.core import learning as core
from hummock.core.memory import Filter
from hummock.core.transfer import GivenEvent
from hummock.learning.log import digest, record
from hummock.ports.writes import UnitOfWork
from hummock.rpc.learning_transfer import event_record, given_event
from hummock.text.normalise import short_hash
from hummock_client.v1 import learning_pb2, learning_service_pb2, transfer_pb2
from tests.failures import field_of
from tests.learning.living import begin, live
from tests.learning.workbench import TITLES, Workbench, entry_id
from tests.rpc.port import Port, memory
from tests.snapshots import at
from tests.strategies import write_request
from tests.workplace import note

STEPS = 40


def bench(here: Port) -> Workbench:
    return Workbench(here.work.store, "p")


def lived(here: Port, seed: int) -> None:
    """A life of chance, in which time passes."""
    random = Random(seed)  # noqa: S311 - to be repeated, not to be secret
    begin(bench(here))
    for _ in range(STEPS):
        here.work.clock.move(random.choice((0.0, 1.5)))
        live(bench(here), random)


def events(here: Port) -> list[core.LoggedEvent]:
    return bench(here).log()


def learnt(here: Port) -> str:
    return here.work.store.read_learning("p", digest)


def listed(here: Port) -> list[str]:
    return [one.id for one in here.work.store.page("p", Filter(), 0, 1000, full=False).memories]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_what_was_learnt_is_there_after_an_import_and_goes_out_again(here: Port, there: Port, seed: int) -> None:
    lived(here, seed)
    there.work.clock.move(1e6)
    records = here.out("p")
    reply = there.take("p", records)
    assert (reply.event_count, reply.left_event_count, list(reply.failures)) == (len(events(here)), 0, [])
    assert [one.time for one in events(there)] == pytest.approx([one.time for one in events(here)])
    assert (bench(there).state(), bench(there).profiles()) == (bench(here).state(), bench(here).profiles())
    assert (learnt(there), bench(there).replay().matches, listed(there)) == (learnt(here), True, listed(here))
    # What was derived of these memories is none of the log's.
    sent = there.out("p")
    of_both = [[one for one in some if not one.HasField("memory")] for some in (sent, records)]
    assert of_both[0] == of_both[1]
    again = there.take("p", records)
    assert (again.event_count, again.left_event_count, again.created_count, again.updated_count) == (0, 0, 0, 0)
    assert there.out("p") == sent


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_an_import_that_goes_on_takes_in_the_events_that_came_since(here: Port, there: Port, seed: int) -> None:
    lived(here, seed)
    records = here.out("p")
    for end in (len(records) // 3, len(records)):
        there.take("p", records[:end])
    here.work.clock.move(5)
    bench(here).say(TITLES[0], 90)
    bench(here).put(TITLES[0])
    there.take("p", here.out("p"))
    assert learnt(there) == learnt(here)


def test_keywords_and_verdicts_rank_where_a_project_was_taken_in(here: Port, there: Port) -> None:
    """S3-14, S3-33."""
    here.work.teach(note("the lighthouse needs paint", "a"))
    kept = here.work.get("a")
    assert kept is not None
    verdict = core.Verdict(memory_id="a", judgement=core.Judgement.HELPFUL, text=short_hash(kept.content_hash))
    bench(here).put("alder")
    here.work.clock.move(1)
    bench(here).note(
        core.KeywordsSet(memory_id=entry_id("alder"), keywords=("硬木头",)),
        core.FeedbackGiven(query_text="paint?", verdicts=(verdict,), note="yes", session_id="s", voice=7),
        core.TurnObserved(scope="s", turn=3, user_text="hi", assistant_hash=b"\x01\x02", used_ids=("a",)),
        core.Injected(scope="s", turn=3, injected_ids=("a",), request_id="r"),
    )
    there.take("p", here.out("p"))
    assert events(there) == events(here)
    for one in (here, there):
        assert at(one.work.store, "p").holds_any(["硬木头", "硬木"])
        profile = bench(one).profiles()["a"]
        assert profile.verdicts_on(verdict.text) == (1, 0)


@pytest.mark.long
def test_a_project_that_has_learnt_otherwise_keeps_what_it_has_learnt(here: Port, there: Port) -> None:
    lived(here, 1)
    there.work.clock.move(7)
    bench(there).put("alder")
    bench(there).update(enabled=True)
    before = learnt(there)
    reply = there.take("p", here.out("p"))
    assert (reply.event_count, reply.left_event_count, learnt(there)) == (0, len(events(here)), before)
    assert not reply.failures


@pytest.mark.long
def test_events_that_do_not_follow_are_left_out(here: Port, there: Port) -> None:
    lived(here, 2)
    records = here.out("p")
    logged = [record for record in records if record.HasField("event")]
    assert there.take("p", logged[1:]).event_count == 0
    assert there.take("p", [*logged[:2], *logged[3:]]).event_count == 2


@pytest.mark.long
def test_what_was_redacted_is_taken_in_as_it_is(here: Port, there: Port) -> None:
    lived(here, 3)

    def redact(work: UnitOfWork) -> None:
        for logged in events(here):
            match logged.event:
                case core.KeywordsSet() as event:
                    work.learning.rewrite(logged.number, replace(event, memory_id="", keywords=()))
                case core.TurnObserved() as event:
                    work.learning.rewrite(logged.number, replace(event, scope="\0" + str(logged.number)))

    here.work.store.write("p", write_request(redact)).result(30)
    reply = there.take("p", here.out("p"))
    assert (reply.event_count, list(reply.failures)) == (len(events(here)), [])
    redacted = [one.event for one in events(here) if not isinstance(one.event, core.KeywordsLearned)]
    assert [one.event for one in events(there) if not isinstance(one.event, core.KeywordsLearned)] == redacted
    assert bench(there).replay().matches


EVENTS: dict[type[Struct], core.LearningEvent] = {
    type(event): event
    for event in (
        core.TurnObserved(scope="s", turn=3, user_text="hi", assistant_hash=b"\1\2", used_ids=("a",)),
        core.KeywordsLearned(
            learner=core.Learner.OFFLINE,
            turn=9,
            updates=(
                core.KeywordUpdate(memory_id="a", keywords=("木",), hints=("灯",)),
                core.KeywordUpdate(memory_id="b", keywords=(), hints=("wood",)),
            ),
            analyzed_ids=("a", "c"),
            rule=2,
        ),
        core.Injected(
            scope="s",
            turn=3,
            request_id="r",
            referenced_ids=("a", "b"),
            injected_ids=("a", "b", "c"),
            dropped_ids=("c",),
            counted_ids=("b",),
        ),
        core.KeywordsSet(memory_id="a", keywords=("x", "y")),
        core.Switched(enabled=True),
        core.SettingsChanged(settings=core.LearningSettings(high_above=7, cold_start_pause_s=0.1, min_similarity=0.3)),
        core.Forgotten(memory_ids=("a", ""), scopes=("\x005.0",)),
        core.FeedbackGiven(
            query_text="q",
            verdicts=tuple(core.Verdict(memory_id=str(one), judgement=one, text=2**64 - one) for one in core.Judgement),
            note="n",
            session_id="s",
            voice=2**64 - 1,
        ),
    )
}


def test_every_field_of_every_event_goes_out_and_comes_in() -> None:
    assert set(EVENTS) == set(get_args(core.LearningEvent))
    for kind, event in EVENTS.items():
        bare = {field.name: field.default for field in fields(kind)}
        assert all(getattr(event, name) != default for name, default in bare.items()), kind
        given = GivenEvent(logged=core.LoggedEvent(number=2, time=1.5, event=event), previous_time=0.25)
        sent = transfer_pb2.TransferRecord.FromString(event_record(given).SerializeToString())
        assert given_event(sent.event) == given


def wrong_events() -> dict[str, learning_service_pb2.LearningEvent]:
    event = learning_service_pb2.LearningEvent
    long = event(turn_observed=learning_service_pb2.TurnObserved(scope="x" * 257))
    keywords = learning_service_pb2.EntryKeywords(memory_id="a", keywords=["x" * 33])
    made = {
        "event.event": long,
        "event.event ": event(keywords_set=keywords),
        "event.event  ": event(),
        "event.event.keywords_learned.learner": event(keywords_learned=learning_service_pb2.KeywordsLearned(learner=9)),  # type: ignore[arg-type] # unknown
        "event.event.feedback_given.judged_texts": event(
            feedback_given=learning_service_pb2.FeedbackGiven(useful_ids=["a"])
        ),
        "candidates": event(settings_changed=learning_pb2.LearningSettings(candidates=0)),
    }
    for one in made.values():
        one.number = 1
        one.event_time.FromSeconds(1)
    late = event(number=1, switched=True)
    late.event_time.FromSeconds(4_000_000_000)
    return made | {"event.event.event_time": late, "event.event   ": event(number=1, switched=True)}


def test_events_that_are_wrong_are_named_and_the_rest_is_stored(here: Port) -> None:
    wrong = wrong_events()
    sent = [transfer_pb2.TransferRecord(event=transfer_pb2.TransferEvent(event=one)) for one in wrong.values()]
    reply = here.take("p", [*sent, memory("good")])
    named = [field_of(failure) for failure in reply.failures]
    assert named == [field.strip() for field in wrong]
    assert (reply.created_count, bench(here).state().events) == (1, 0)


def test_a_secret_in_an_event_is_redacted_as_it_would_have_been(here: Port, there: Port) -> None:
    bench(here).put("alder")

    def say(work: UnitOfWork) -> None:
        record(work.learning, core.TurnObserved(scope="", turn=1, user_text="my key is AKIAIOSFODNN7EXAMPLE"))

    here.work.store.write("p", write_request(say)).result(30)
    there.take("p", here.out("p"))
    (logged,) = events(there)
    assert isinstance(logged.event, core.TurnObserved)
    assert "AKIAIOSFODNN7EXAMPLE" not in logged.event.user_text
