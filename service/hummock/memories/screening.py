"""What of a request is held for review: what reads like an instruction to a model, and nobody vouches for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hummock.core.memory import CodeFragment, DomainKnowledge, Draft, LearningRecord
from hummock.core.patience import ENDLESS, Patience
from hummock.core.review import ReviewPolicy, is_note_of_agent, is_of_no_hand
from hummock.text.attacks.detect import families_in
from hummock.text.attacks.families import FAMILIES

NOTHING: tuple[str, ...] = ()

_MAY_BE_WISHES = frozenset(family.name for family in FAMILIES if family.may_be_wish)


def families_of(drafts: Sequence[Draft], policy: ReviewPolicy, patience: Patience = ENDLESS) -> list[tuple[str, ...]]:
    """What each draft is to be held for, as the policy has it; nothing of what people say.

    Raises: what the patience raises, which is asked before each draft.
    """
    found = []
    for draft in drafts:
        patience.check()
        is_read = policy is ReviewPolicy.HOLD and is_of_no_hand(draft)
        found.append(_families_of(draft) if is_read else NOTHING)
    return found


def _families_of(draft: Draft) -> tuple[str, ...]:
    families = families_in(_texts(draft))
    # What its user wants of it is what an agent notes first.
    if is_note_of_agent(draft):
        return tuple(name for name in families if name not in _MAY_BE_WISHES)
    return families


def _texts(draft: Draft) -> Iterator[str]:
    """All of a draft that a prompt or an agent may be shown."""
    index, payload = draft.index, draft.payload
    # A sentence may begin in the title and end in the text.
    yield "\n".join((index.title, index.summary, payload.content))
    yield " ".join((*index.tags, draft.speaker, draft.emotion_label))
    yield payload.raw
    match payload.detail:
        case LearningRecord(question=question, answer=answer, source_files=files):
            yield f"{question}\n{answer}"
            yield "\n".join(files)
        case DomainKnowledge(domain=domain, aliases=aliases, summary=summary, key_files=files):
            yield "\n".join((domain, *aliases, summary))
            yield "\n".join(files)
        case CodeFragment(path=path, symbol=symbol):
            yield f"{path}\n{symbol}"
