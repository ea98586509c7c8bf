"""A project's policies for secrets and for texts that read like an instruction, as its writes find them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import NamedTuple

from hummock.core.review import ReviewPolicy
from hummock.core.secrets import SecretPolicy
from hummock.core.settings import ProjectSettings
from hummock.ports.store import Store

_MOST_PROJECTS = 1024


class Policies(NamedTuple):
    """The policies by which drafts are screened."""

    secrets: SecretPolicy
    review: ReviewPolicy

    @classmethod
    def of(cls, settings: ProjectSettings) -> Policies:
        """Those that settings have."""
        return cls(settings.secret_policy(), settings.review_policy())


class PoliciesSeen:
    """The policies, as they were last seen, of those projects that were written to last. For several threads.

    Another service may have changed them: what is screened by them is to be screened again where a write finds others.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._seen: OrderedDict[str, Policies] = OrderedDict()

    def last(self, project: str) -> Policies:
        """Those that a project had when they were last seen; where they never were, those that it has."""
        return self._seen.get(project) or self.now(project)

    def now(self, project: str) -> Policies:
        """Those that it has."""
        policies = Policies.of(self._store.settings(project))
        self.note(project, policies)
        return policies

    def note(self, project: str, policies: Policies) -> None:
        """Takes note of those that were found."""
        with self._lock:
            self._seen[project] = policies
            self._seen.move_to_end(project)
            if len(self._seen) > _MOST_PROJECTS:
                self._seen.popitem(last=False)
