"""Redacts secrets in drafts, and reports them, by the project's policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from hummock.core.memory import CodeFragment, Detail, DomainKnowledge, Draft, LearningRecord
from hummock.core.secrets import SecretPolicy, SecretsFound
from hummock.text.credentials import redacted


def screened(draft: Draft, policy: SecretPolicy) -> tuple[Draft, tuple[SecretsFound, ...]]:
    """The draft to store, and the secrets that it has as it is given.

    Where they are redacted, a mark stands in the place of each, in every text that reaches the disk or the model. Ids,
    paths and names of files stay: they are asked for as they are.
    """
    if policy is SecretPolicy.OFF:
        return draft, ()
    search = _Search()
    without = search.draft(draft)
    return (without if policy is SecretPolicy.REDACT else draft), _said(search.found, policy)


def screened_texts(texts: Sequence[str], policy: SecretPolicy) -> tuple[list[str], tuple[SecretsFound, ...]]:
    """The texts to store, in their order, and the secrets found in them; redacted as by `screened`."""
    if policy is SecretPolicy.OFF:
        return list(texts), ()
    search = _Search()
    without = [search.text(text) for text in texts]
    return (without if policy is SecretPolicy.REDACT else list(texts)), _said(search.found, policy)


class _Search:
    """Takes the secrets out of texts, and counts them by kind."""

    def __init__(self) -> None:
        self.found: Counter[str] = Counter()

    def draft(self, draft: Draft) -> Draft:
        index, payload = draft.index, draft.payload
        return replace(
            draft,
            index=replace(
                index,
                title=self.text(index.title),
                summary=self.text(index.summary),
                tags=tuple(map(self.text, index.tags)),
            ),
            payload=replace(
                payload,
                content=self.text(payload.content),
                raw=self.text(payload.raw),
                detail=self._detail(payload.detail),
            ),
            metadata=tuple((name, self._value(name, value)) for name, value in draft.metadata),
        )

    def text(self, text: str) -> str:
        without = redacted(text)
        self.found.update(without.kinds)
        return without.text

    def _value(self, name: str, value: str) -> str:
        """A value by itself, and as what its name says that it is."""
        before = f"{name}="
        return self.text(before + self.text(value)).removeprefix(before)

    def _detail(self, detail: Detail) -> Detail:
        match detail:
            case LearningRecord():
                return replace(detail, question=self.text(detail.question), answer=self.text(detail.answer))
            case DomainKnowledge():
                return replace(detail, summary=self.text(detail.summary))
            case CodeFragment():
                return replace(detail, symbol=self.text(detail.symbol))
        return detail


def _said(found: Mapping[str, int], policy: SecretPolicy) -> tuple[SecretsFound, ...]:
    is_redacted = policy is SecretPolicy.REDACT
    return tuple(SecretsFound(kind=kind, count=count, redacted=is_redacted) for kind, count in sorted(found.items()))
