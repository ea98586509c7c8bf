"""What an unverified memory may not do: read like an instruction to a model, or be pinned to every prompt.

One that reads like an instruction is held for review. A pinned text reaches every prompt, whatever is asked, so nobody
gets there with a text that a model wrote or that has low trust, unless an administrator pins it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from hummock.core.deadline import NO_DEADLINE, Deadline
from hummock.core.errors import InvalidRequest
from hummock.core.memory import CodeFragment, Detail, DomainKnowledge, Draft, LearningRecord, Memory, Payload
from hummock.core.review import ReviewPolicy, is_note_of_agent, is_of_no_hand
from hummock.core.settings import ProjectSettings
from hummock.memories.preparation import Prepared
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
    every = (body, about, (("raw", payload.raw),), (("files", "\n".join(said.files)),), *_of_detail(payload.detail))
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


def without_unverified_pin(draft: Draft) -> Draft:
    """The draft to store: of an unverified one the pin is dropped."""
    return replace(draft, pinned=False) if draft.pinned and is_of_no_hand(draft) else draft


def require_may_be_pinned(draft: Draft, before: Draft, *, is_admin: bool) -> None:
    """Check an update that pins an unverified memory, or changes its texts while it is pinned.

    Raises: InvalidRequest, unless the caller is an administrator.
    """
    if draft.pinned and is_of_no_hand(draft) and not is_admin and _is_unseen(draft, before):
        raise InvalidRequest(
            "pinned",
            f"is for what somebody vouches for: its origin is {draft.origin.name} and its trust {draft.trust:.2g}. A "
            "caller with the verb admin may pin it, or say that a person wrote it (origin MANUAL, trust 0.5 or more)",
        )


def require_room(field: str, one: Prepared, settings: ProjectSettings, before: Draft | None = None) -> None:
    """Check that a memory that is pinned, or changed while it is, fits into prompts by itself.

    Several that do not fit together are no error, since prompts have different scopes: they leave out the oldest.

    Raises: InvalidRequest.
    """
    if not one.draft.pinned or (before is not None and not _is_unseen(one.draft, before)):
        return
    tokens, limit = one.words.analysed().token_count, settings.pinned_tokens()
    if tokens > limit:
        raise InvalidRequest(
            field,
            f"has {tokens} tokens; prompts give {limit} to all that is pinned. Pin a shorter text, or raise the "
            "project's setting budget_tokens.pinned",
        )


def _is_unseen(draft: Draft, before: Draft) -> bool:
    return not before.pinned or passages_of(draft) != passages_of(before)
