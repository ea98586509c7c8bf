"""Pins: which memories may be in every prompt, checked as they are written.

A pinned text reaches every prompt, whatever is asked. So nobody gets there with a text that a model wrote or that has
low trust, unless an administrator pins it.
"""

from __future__ import annotations

from msgspec.structs import replace

from hummock.core.errors import InvalidRequest
from hummock.core.memory import Draft
from hummock.core.review import is_of_no_hand
from hummock.core.settings import ProjectSettings
from hummock.memories.preparation import Prepared
from hummock.memories.screening import passages_of


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
