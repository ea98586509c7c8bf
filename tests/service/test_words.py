"""Words as people write them, through the socket."""

from __future__ import annotations

import pytest

from tests.service.calls import ask, learn
from tests.service.inputs import note
from tests.service.running import Stubs


@pytest.mark.parametrize(
    ("query", "held", "shown"),
    [
        ("Which parties are PARSING it?", "we parse it for the party", ["parties", "PARSING"]),
        ("parseDates of the 还款日", "parse dates; 还款", ["parse", "Dates", "还款"]),
        ("what doesn't load, ｆｕｌｌ width", "it doesn't load full width", ["doesn't", "load", "full", "width"]),
    ],
)
def test_matched_terms_stand_as_the_query_writes_them(
    service: Stubs, project: str, query: str, held: str, shown: list[str]
) -> None:
    learn(service, project, note(held))
    (hit,) = ask(service, project, query).hits
    assert [term for term in hit.matched_terms if term in shown] == shown
