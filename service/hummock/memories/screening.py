"""Selects the memories of a request to hold for review: unverified ones that read like an instruction to a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hummock.core.deadline import NO_DEADLINE, Deadline
from hummock.core.memory import CodeFragment, Detail, DomainKnowledge, Draft, LearningRecord, Memory, Payload
from hummock.core.review import ReviewPolicy, is_note_of_agent, is_of_no_hand
from hummock.text.attacks import FAMILIES, families_in

NOTHING: tuple[str, ...] = ()

_MAY_BE_WISHES = frozenset(family.name for family in FAMILIES if family.may_be_wish)


class Passage(NamedTuple):
    """Fields that are read as one text, by their names in the contract."""

    fields: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """The joined text of all fields: a sentence may begin in one and end in the next."""
        return "\n".join(text for _, text in self.fields)

    def field_of(self, families: Sequence[str]) -> str:
        """Return the first field that matches one of these families by itself, else the last field."""
        alone = (name for name, text in self.fields if not set(families).isdisjoint(families_in([text])))
        return next(alone, self.fields[-1][0])


def families_of(
    drafts: Sequence[Draft], policy: ReviewPolicy, deadline: Deadline = NO_DEADLINE
) -> list[tuple[str, ...]]:
    """Return the families of instructions for which each draft is held by the policy; none for users' text.

    Raises: what the deadline raises, which is checked before each draft.
    """
    found = []
    for draft in drafts:
        deadline.check()
        found.append(_families_of(draft, passages_of(draft)) if _is_read(draft, policy) else NOTHING)
    return found


def unseen_in(draft: Draft, before: Draft | Memory, policy: ReviewPolicy) -> tuple[tuple[str, ...], str]:
    """Return the families that a draft adds to the version before it, and the first field that matches.

    Both have a complete index, or neither has the derived fields.
    """
    if _is_read(draft, policy):
        seen = set(passages_of(before))
        unseen = [passage for passage in passages_of(draft) if passage not in seen]
        for passage in unseen:
            if _families_of(draft, [passage]):
                families = _families_of(draft, unseen)
                return families, passage.field_of(families)
    return NOTHING, ""


def passages_of(said: Draft | Memory) -> list[Passage]:
    """Return all texts that a prompt or an agent may be shown."""
    index, payload = said.index, said.payload or Payload()
    about = (
        ("id", said.id),
        ("session_id", said.session_id),
        ("tags", " ".join(index.tags)),
        ("speaker", said.speaker),
        ("emotion_label", said.emotion_label),
    )
    body = (("title", index.title), ("summary", index.summary), ("content", payload.content))
    every = (body, about, (("raw", payload.raw),), *_of_detail(payload.detail))
    return [Passage(fields) for fields in every if any(text for _, text in fields)]


def _of_detail(detail: Detail) -> Iterator[tuple[tuple[str, str], ...]]:
    match detail:
        case LearningRecord(question=question, answer=answer, source_files=files):
            yield ("learning_record.question", question), ("learning_record.answer", answer)
            yield (("learning_record.source_files", "\n".join(files)),)
        case DomainKnowledge(domain=domain, aliases=aliases, summary=summary, key_files=files):
            names = ("domain_knowledge.domain", domain), ("domain_knowledge.aliases", "\n".join(aliases))
            yield *names, ("domain_knowledge.summary", summary)
            yield (("domain_knowledge.key_files", "\n".join(files)),)
        case CodeFragment(path=path, symbol=symbol, language=language):
            yield ("code_fragment.path", path), ("code_fragment.symbol", symbol), ("code_fragment.language", language)


def _is_read(draft: Draft, policy: ReviewPolicy) -> bool:
    return policy is ReviewPolicy.HOLD and is_of_no_hand(draft)


def _families_of(draft: Draft, passages: Sequence[Passage]) -> tuple[str, ...]:
    families = families_in(passage.text for passage in passages)
    # An agent's notes often state its user's wishes.
    if is_note_of_agent(draft):
        return tuple(name for name in families if name not in _MAY_BE_WISHES)
    return families
