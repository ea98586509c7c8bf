"""Invalid values of a query or a rendering are refused by the value itself, with the field and the limit."""

from __future__ import annotations

from typing import Any

import pytest

from hummock.core.errors import InvalidRequest
from hummock.core.recall import MAX_CONTEXT_WINDOW, MAX_QUERY_CHARACTERS, MAX_TOP_K, RecallQuery
from hummock.core.render import MAX_BUDGET_TOKENS, RenderCommit, RenderForm, RenderQuery
from hummock.core.session import PromptMessage, PromptRole, PromptTarget

QUERY = RecallQuery(project="p", text="还款 parse_date")
CURRENT = PromptMessage(role=PromptRole.USER, content="还款？")


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("query_text", {"text": " \n"}),
        ("query_text", {"text": "还" * (MAX_QUERY_CHARACTERS + 1)}),
        ("top_k", {"top_k": MAX_TOP_K + 1}),
        ("context_window", {"context_window": MAX_CONTEXT_WINDOW + 1}),
    ],
)
def test_a_query_beyond_a_limit_is_refused_by_its_field(field: str, said: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        RecallQuery(**{"project": "p", "text": "还款", **said})
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("source", {}),
        ("source", {"recall": QUERY, "memory_ids": ("a",)}),
        ("recall", {"memory_ids": ("a",), "commit": RenderCommit(scope="", turn=1, request_id="r", fingerprint=b"")}),
        ("budget_tokens", {"recall": QUERY, "budget_tokens": MAX_BUDGET_TOKENS + 1}),
        ("current", {"recall": QUERY, "form": RenderForm.MESSAGES}),
        ("current", {"recall": QUERY, "current": CURRENT}),
        ("target", {"recall": QUERY, "form": RenderForm.MESSAGES, "current": CURRENT, "target": PromptTarget.USER}),
    ],
)
def test_a_rendering_that_contradicts_itself_is_refused_by_its_field(field: str, said: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        RenderQuery(**{"project": "p", "form": RenderForm.WATERFALL, **said})
    assert refused.value.field == field
