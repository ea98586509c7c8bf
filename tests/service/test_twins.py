"""Two versions of one function alongside a text about something else, with the model of the tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, learn, render
from tests.service.inputs import fragment, note
from tests.service.running import Stubs

pytestmark = [pytest.mark.storeless, pytest.mark.usefixtures("real_models")]

V1 = '''def parse_date(text):
    """Parse a date such as 2024-05-02 and return a datetime."""
    return datetime.strptime(text, "%Y-%m-%d")
'''
V2 = '''def parse_date(text, default=None):
    """Parse a date such as 2024-05-02 or 2024/05/02 and return a datetime."""
    for form in ("%Y-%m-%d", "%Y/%m/%d"):
        try:
            return datetime.strptime(text, form)
        except ValueError:
            continue
    return default
'''
DISCLAIMER = "This software is provided as is, without warranty of any kind, express or implied. The parties agree."
QUERY = "parse_date with a default for a date such as 2024/05/02"


@pytest.fixture
def versions(service: Stubs, project: str) -> str:
    learn(
        service,
        project,
        named("parse_date_v1.py", V1),
        named("parse_date_v2.py", V2),
        note(DISCLAIMER, id="legal_disclaimer.txt"),
    )
    return project


def named(path: str, content: str) -> pb.Memory:
    memory = fragment(path, "parse_date", content)
    memory.id = path
    return memory


def ids(answer: recall.RecallResponse) -> list[str]:
    return [hit.memory.id for hit in answer.hits]


@pytest.mark.parametrize(
    "query", [QUERY, "parse_date v2 with white space", "how do I parse an ISO date?", "日期 parse_date"]
)
def test_behind_one_version_never_comes_the_other(service: Stubs, versions: str, query: str) -> None:
    """S2-07, S2-01, 1.1-7."""
    answer = ask(service, versions, query)
    first, second, third = ids(answer)
    assert ({first, third}, second) == ({"parse_date_v2.py", "parse_date_v1.py"}, "legal_disclaimer.txt")
    assert [hit.near_twin for hit in answer.hits] == [False, False, True]
    assert first == "parse_date_v2.py" or query != QUERY


def test_without_the_bar_the_versions_stand_together(service: Stubs, versions: str) -> None:
    """1.1-7: λ 0.7 alone does not part them."""
    assert ids(ask(service, versions, QUERY, near_twin_bar=2.0))[:2] == ["parse_date_v2.py", "parse_date_v1.py"]


def test_a_prompt_reads_the_second_version_first_and_keeps_the_first_for_last(service: Stubs, versions: str) -> None:
    """S2-01, S2-07, S2-10, S2-19, 1.1-7."""
    rendered = render(service, versions, QUERY, form=context.RENDER_FORM_WATERFALL)
    assert rendered.text.index("return default") < rendered.text.index("without warranty")
    assert [one.memory_id for one in rendered.memories] == [
        "parse_date_v2.py",
        "legal_disclaimer.txt",
        "parse_date_v1.py",
    ]


V3 = V2.replace("parse_date(text, default=None)", "parse_date(text, default=None, zone=None)")


def test_of_the_versions_of_a_name_the_newest_comes_first_and_the_others_last(service: Stubs, versions: str) -> None:
    """S2-07, 1.1-7: the query is the name itself."""
    newest = named("parse_date_v3.py", V3)
    newest.create_time.FromDatetime(datetime.now(UTC) + timedelta(minutes=1))
    learn(service, versions, newest, note("parse_date is called by the importer.", id="caller"))
    for answer in (ask(service, versions, "parse_date"), ask(service, versions, "parse_date", top_k=50)):
        assert ids(answer)[0] == "parse_date_v3.py"
        assert set(ids(answer)[-2:]) == {"parse_date_v1.py", "parse_date_v2.py"}
        assert [hit.near_twin for hit in answer.hits][-2:] == [True, True]


def test_siblings_are_no_twins(service: Stubs, project: str) -> None:
    """S2-07: four environments' addresses, rows of a table and functions of one family are all wanted."""
    places = ("development", "testing", "staging", "production")
    rows = [
        note(f"The address of the {place} environment is 10.0.{n}.7:5432", id=place) for n, place in enumerate(places)
    ]
    others = [
        note(text) for text in ("Lunch is at noon.", DISCLAIMER, "我们周五不发版", "The office cat is called Miso.")
    ]
    learn(service, project, *rows, *others)
    answer = ask(service, project, "What are the addresses of our environments?")
    assert set(ids(answer)[:4]) == set(places)
    assert not any(hit.near_twin for hit in answer.hits)
