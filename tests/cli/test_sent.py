"""The whole request that a command sends, against a service with canned answers."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict

from tests.cli.conftest import Run
from tests.cli.fake_service import FakeService

X = {"project": "还款", "queryText": "x", "tuning": {}, "filter": {}}
NOTED = {"kind": "MEMORY_KIND_NOTE", "origin": "ORIGIN_MANUAL"}
SUMMED_UP = {"kind": "MEMORY_KIND_NOTE", "origin": "ORIGIN_SUMMARY", "title": "t", "tags": ["x"]}


@pytest.mark.parametrize(
    ("line", "sent"),
    [
        ("memories ls --since 2023-05-02", {"filter": {"eventAfter": "2023-05-02T00:00:00Z"}, "pageSize": 100}),
        ("memories ls --pinned", {"filter": {"pinned": True}, "pageSize": 100}),
        ("memories ls --meta env=prod", {"filter": {"metadata": {"env": "prod"}}, "pageSize": 100}),
        (
            "garden ls --newest --session s1 --contains 潮汐",
            {"filter": {"sessionIds": ["s1"]}, "pageSize": 100, "order": "LIST_ORDER_NEWEST_FIRST", "contains": "潮汐"},
        ),
        (
            "memories ls --kind note --origin manual --limit 2 --page t0",
            {"filter": {"kinds": ["MEMORY_KIND_NOTE"], "origins": ["ORIGIN_MANUAL"]}, "pageSize": 2, "pageToken": "t0"},
        ),
        (
            "memories watch --after 7 --tag 还款 --kind note",
            {"afterSeq": "7", "filter": {"kinds": ["MEMORY_KIND_NOTE"], "tags": ["还款"]}},
        ),
        ("garden watch --json", {"filter": {}}),
        ("sessions ls --archived", {"archived": True, "pageSize": 100}),
        ("sessions show 会话-1 --limit 2", {"sessionId": "会话-1", "pageSize": 2}),
        ("sessions watch 会话-1 --after 0", {"sessionId": "会话-1", "afterPosition": 0}),
        (
            "recall 增加先本后息 --preset code --top-k 0 --tag 还款 --tag code",
            {
                "queryText": "增加先本后息",
                "preset": "PRESET_CODE",
                "tuning": {"topK": 0},
                "filter": {"tags": ["还款", "code"]},
            },
        ),
        ("recall x", X),
        ("recall x --path dates.py --path src/a.py", X | {"filter": {"paths": ["dates.py", "src/a.py"]}}),
        (
            "render x --path dates.py",
            {"recall": X | {"filter": {"paths": ["dates.py"]}}, "form": "RENDER_FORM_CONTEXT"},
        ),
        ("explain x --id m1 --path a.py", {"recall": X | {"filter": {"paths": ["a.py"]}}, "memoryId": "m1"}),
        ("search x --path a.py", {"queryText": "x", "scope": "SEARCH_SCOPE_BOTH", "filter": {"paths": ["a.py"]}}),
        ("memories ls --path a.py", {"filter": {"paths": ["a.py"]}, "pageSize": 100}),
        ("recall x --until 2023-05-02T09:30+08:00", X | {"filter": {"eventBefore": "2023-05-02T01:30:00Z"}}),
        (
            "render x --form waterfall --budget 100 --locale zh",
            {"recall": X, "form": "RENDER_FORM_WATERFALL", "budgetTokens": 100, "locale": "zh"},
        ),
        ("render x --form index --read a --read b", {"recall": X, "form": "RENDER_FORM_INDEX", "readIds": ["a", "b"]}),
        ("render --id a --id b", {"memories": {"ids": ["a", "b"]}, "form": "RENDER_FORM_CONTEXT"}),
        ("search create --scope code", {"queryText": "create", "scope": "SEARCH_SCOPE_CODE", "filter": {}}),
        (
            "explain x --id m1 --preset code --tag 还款",
            {"recall": X | {"preset": "PRESET_CODE", "filter": {"tags": ["还款"]}}, "memoryId": "m1"},
        ),
    ],
)
def test_a_read_asks_for_what_is_named_and_leaves_the_rest_to_the_service(
    run: Run, fake: FakeService, line: str, sent: dict[str, Any]
) -> None:
    """S2-17, S4-07, S4-12, S4-13, S4-40, S4-41."""
    assert run(*line.split()).exit_code == 0
    project = {} if "memoryId" in sent else {"project": "还款"}
    assert MessageToDict(fake.asked[0]) == project | sent


@pytest.mark.parametrize(
    ("line", "sent"),
    [
        (
            "memories edit m1 --title 新标题 --trust 0",
            {"memory": {"id": "m1", "title": "新标题", "trust": 0}, "updateMask": "title,trust"},
        ),
        (
            "garden edit m1 --origin summary --emotion=",
            {"memory": {"id": "m1", "origin": "ORIGIN_SUMMARY"}, "updateMask": "origin,emotionLabel"},
        ),
        ("projects set 还款 --tech MySQL", {"info": {"techStack": ["MySQL"]}, "updateMask": "techStack"}),
        ("projects settings unset 还款 chat code.top_k", {"settings": {}, "updateMask": "chat,code.topK"}),
        (
            "learn 第一句 second --title t --tag x --origin summary",
            {"memories": [SUMMED_UP | {"content": "第一句"}, SUMMED_UP | {"content": "second"}]},
        ),
        ("learn x --kind entry", {"memories": [NOTED | {"kind": "MEMORY_KIND_ENTRY", "content": "x"}]}),
        ("learn peanuts --pin", {"memories": [NOTED | {"content": "peanuts", "pinned": True}]}),
        (
            "learn tide --meta env=prod --meta url=http://a/?b=c",
            {"memories": [NOTED | {"content": "tide", "metadata": {"env": "prod", "url": "http://a/?b=c"}}]},
        ),
    ],
)
def test_a_write_sends_what_is_named_alone_under_a_request_id(
    run: Run, fake: FakeService, line: str, sent: dict[str, Any]
) -> None:
    """S4-42, S4-46."""
    assert run(*line.split()).exit_code == 0
    (request,) = map(MessageToDict, fake.asked)
    assert len(request.pop("requestId")) == 36
    assert request == {"project": "还款", **sent}
