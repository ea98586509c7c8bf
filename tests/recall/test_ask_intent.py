"""A language model that does not answer, inside a caller's deadline."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from types import SimpleNamespace
from typing import Any, cast

from hummock.core.recall import IntentMode, RecallPath, RecallQuery
from hummock.ports.models import Llm
from hummock.recall.intent import BUDGET_S, AskIntent
from hummock.recall.pipeline import Recall
from hummock.recall.stage_budget import RESERVE_S
from tests.desk import Desk, ids, note
from tests.snapshots import over

LEFT_S = 0.02


class Silent(Executor):
    """Begins nothing that it is given, and knows until when an answer was wanted."""

    def __init__(self) -> None:
        self.asked_until_s: list[float] = []

    def submit(self, work: Callable[..., Any], /, *args: Any, **_: Any) -> Future[Any]:
        self.asked_until_s.append(args[-1])
        return Future()


def test_the_deadline_is_shorter_than_the_budget(desk: Desk) -> None:
    """1.1-15, S0-36: what is late is left out and said, and the words of the query answer."""
    desk.teach(note("the harbour is deep", "a"))
    silent, nobody = Silent(), cast(Llm, SimpleNamespace(ask=None))
    ask_intent = AskIntent(nobody, silent, IntentMode.LLM, desk.clock)
    recall = over(desk.store, Recall(desk.embedder, desk.clock, ask_intent=ask_intent))
    until_s = desk.clock.monotonic() + RESERVE_S + LEFT_S
    words = frozenset({RecallPath.KEYWORD})  # a model's inference would take real time
    answer = recall(RecallQuery(project="p", text="harbour", paths=words, until_s=until_s))
    assert (ids(answer), [each.reason for each in answer.degraded]) == (["a"], ["INTENT_LATE"])
    assert silent.asked_until_s == [until_s]
    assert until_s < desk.clock.monotonic() + BUDGET_S
