"""Access rights: verbs, scopes and callers, and the errors for missing rights."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from hummock.core.errors import HummockError

_ANY = "*"
_LONGEST_PATTERN = 256


class Verb(IntEnum):
    """Kind of a call. A right to one includes those before it, since a reply to a learn shows what is stored.

    INDEX is no separate call: it allows a caller to store memories as read from a repository (INDEXER).
    """

    READ = 1
    LEARN = 2
    INDEX = 3
    ADMIN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """A right: up to which verb, in which projects.

    Attributes:
        pattern: A project's name, in which `*` matches any characters; 1 to 256 characters.
        verb: The highest one that is allowed.
    """

    pattern: str
    verb: Verb

    def __post_init__(self) -> None:
        if not 0 < len(self.pattern) <= _LONGEST_PATTERN:
            raise ValueError(f"a scope's project has {len(self.pattern)} characters; it has 1 to {_LONGEST_PATTERN}")

    @classmethod
    def parse(cls, text: str) -> Scope:
        """The scope that `PROJECT:VERB` names. Raises: ValueError."""
        pattern, _, verb = text.rpartition(":")
        if not pattern or verb.upper() not in Verb.__members__:
            raise ValueError(
                f"{text!r} is no scope; write PROJECT:VERB, as in 'shop-*:learn' (read, learn, index or admin)"
            )
        return cls(pattern=pattern, verb=Verb[verb.upper()])

    def __str__(self) -> str:
        return f"{self.pattern}:{self.verb.name.lower()}"

    @property
    def is_of_all(self) -> bool:
        """Whether it is of every project there is or will be."""
        return not self.pattern.strip(_ANY)

    def covers(self, project: str) -> bool:
        """Whether it is of this project."""
        return self.pattern == _ANY or _matcher(self.pattern).fullmatch(project) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """An authenticated caller: token name and scopes."""

    name: str
    scopes: tuple[Scope, ...]

    @property
    def writer(self) -> str:
        """Writer of the memories that the caller stores: the name of its token; empty without one."""
        return "" if self is LOCAL else self.name

    def may(self, verb: Verb, project: str) -> bool:
        """Whether a scope allows it in a project."""
        return any(scope.verb >= verb and scope.covers(project) for scope in self.scopes)

    def require(self, verb: Verb, projects: Iterable[str]) -> None:
        """Check the scopes by names only, so that a missing project is refused like a forbidden one.

        If the call names no projects, a scope of any project is enough. Raises: ScopeMissing.
        """
        allowing = [scope for scope in self.scopes if scope.verb >= verb]
        for project in projects:
            if not any(scope.covers(project) for scope in allowing):
                raise ScopeMissing(self.name, verb, "this project", project)
        if not allowing:
            raise ScopeMissing(self.name, verb, "any project", "PROJECT")

    def require_all(self, verb: Verb) -> None:
        """Check that the caller may do this in all projects. Raises: ScopeMissing."""
        if not any(scope.is_of_all and scope.verb >= verb for scope in self.scopes):
            raise ScopeMissing(self.name, verb, "all projects", _ANY)


LOCAL = Caller(name="local", scopes=(Scope(pattern=_ANY, verb=Verb.ADMIN),))
"""The caller without a token, if tokens are not required."""


class TokenInvalid(HummockError):
    """A call without a token where one is asked for, or with one that is unknown, revoked or expired."""

    reason = "TOKEN_INVALID"


class ScopeMissing(HummockError):
    """The caller's token does not allow the call."""

    reason = "SCOPE_MISSING"

    def __init__(self, token: str, verb: Verb, of: str, project: str) -> None:
        word = verb.name.lower()
        super().__init__(
            f"the token {token} may not {_PHRASES[verb]} {of}; the operator makes one that may: "
            f"hummock tokens create NAME --scope '{project}:{word}'"
        )
        self.token = token
        self.verb = word


_PHRASES = {Verb.READ: "read", Verb.LEARN: "learn in", Verb.INDEX: "index", Verb.ADMIN: "administer"}


@lru_cache(maxsize=1024)
def _matcher(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, re.split(r"\*+", pattern))), re.DOTALL)
