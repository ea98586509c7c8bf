"""The stage of a recall that asks a language model what the user wants, while other stages run."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from dataclasses import dataclass

from hummock.core.recall import Degradation, Intent, IntentMode, RecallQuery
from hummock.ports import Clock, Llm, LlmFailed, LlmLate
from hummock.recall.intent import IntentUnusable, intent_of, intent_question

BUDGET_S = 0.3
"""A recall waits no longer for a language model, whatever its deadline."""

_NOBODY = Degradation(path="intent", reason="INTENT_ABSENT", message="the service knows no language model; see llm")


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedIntent:
    """What came of it: an intent, or why there is none."""

    intent: Intent | None = None
    degraded: tuple[Degradation, ...] = ()


class AskIntent:
    """Asks for intents. Safe to call from several threads."""

    def __init__(self, llm: Llm | None, executor: Executor, mode: IntentMode, clock: Clock) -> None:
        """`mode` is what a request that says nothing gets; the questions run on the executor."""
        self._llm = llm
        self._executor = executor
        self._mode = mode
        self._clock = clock

    def is_wanted(self, query: RecallQuery) -> bool:
        """Whether the caller gave nothing to go by, and wants it."""
        is_given = query.intent is not None and (query.intent.domains or query.intent.keywords)
        return not is_given and (query.intent_mode or self._mode) is IntentMode.LLM

    def begin(self, query: RecallQuery) -> Asking | None:
        """Asks, where it is wanted; does not wait."""
        if not self.is_wanted(query):
            return None
        until_s = self._clock.monotonic() + BUDGET_S
        if self._llm is None:
            return Asking(None, until_s, self._clock)
        asked_until_s = until_s if query.until_s is None else min(until_s, query.until_s)
        future = self._executor.submit(self._llm.ask, intent_question(query.text), asked_until_s)
        return Asking(future, until_s, self._clock)


class Asking:
    """A question under way; without a future there is nobody to ask."""

    def __init__(self, future: Future[object] | None, until_s: float, clock: Clock) -> None:
        self._future = future
        self._until_s = until_s
        self._clock = clock

    def answer(self, left_s: float | None) -> AskedIntent:
        """The answer, waited for within the budget, and no longer than `left_s` if that is given."""
        if self._future is None:
            return AskedIntent(degraded=(_NOBODY,))
        budget_s = self._until_s - self._clock.monotonic()
        patience_s = max(0.0, budget_s if left_s is None else min(budget_s, left_s))
        try:
            return AskedIntent(intent=intent_of(self._future.result(patience_s)))
        except (TimeoutError, LlmLate):
            self._future.cancel()
            return _left_out("INTENT_LATE", f"the language model was waited for {patience_s * 1000:.1f} ms at the end")
        except (LlmFailed, IntentUnusable) as error:
            return _left_out("INTENT_FAILED", str(error))
        except Exception as error:  # whatever the client raises: the words of the query still say something
            return _left_out("INTENT_FAILED", type(error).__name__)


def _left_out(reason: str, message: str) -> AskedIntent:
    return AskedIntent(degraded=(Degradation(path="intent", reason=reason, message=message),))
