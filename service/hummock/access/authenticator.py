"""Authentication of callers by their tokens."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from typing import NamedTuple

import structlog

from hummock.access.tokens import Token, TokenFile, TokensUnreadable, digest_of, id_of, shown_time
from hummock.core.access import LOCAL, Caller, TokenInvalid

_log = structlog.get_logger("hummock.access")
_SCHEME = "bearer"
_KEPT_NEWS = 16
_NEVER_READ = (-1,)


class Exposure(Enum):
    """Range of users who can reach the service."""

    OWNER = auto()
    """The user who runs it: a Unix socket."""
    MACHINE = auto()
    """All users of this machine: loopback."""
    NETWORK = auto()
    """Other machines."""


class _Known(NamedTuple):
    """A verified caller, and when the token expires (Unix seconds; None never)."""

    caller: Caller
    until_s: float | None


class _Tokens(NamedTuple):
    """The tokens of one version of the file, and the callers verified with them."""

    by_id: Mapping[str, Token]
    callers: dict[bytes, _Known]


class TokenNews(NamedTuple):
    """Changes of the tokens since they were read last; the first time, since there were none.

    Attributes:
        is_first: Whether they were never read before.
        live: Number of tokens that are not revoked.
        made, revoked: Names; a token removed from the file counts as revoked.
    """

    is_first: bool
    live: int
    made: tuple[str, ...]
    revoked: tuple[str, ...]


class Authenticator:
    """Authenticates callers by tokens. Creating or revoking one takes effect with the next call, in every process.

    Callers from the network always need a token; those from the machine if any token exists; the owner, who could
    read the files anyway, never. A token that is sent is always checked.
    """

    def __init__(self, data_dir: Path, exposure: Exposure, now: Callable[[], float] = time.time) -> None:
        """Create an authenticator for the tokens of a data directory; `now` returns Unix seconds."""
        self._file = TokenFile(data_dir)
        self._exposure = exposure
        self._now = now
        self._version: tuple[int, ...] | None = _NEVER_READ
        self._tokens = _Tokens({}, {})
        self._has_tokens = False
        self._told: Mapping[str, str] | None = None
        self.news: deque[TokenNews] = deque(maxlen=_KEPT_NEWS)
        """Latest changes not yet consumed, the oldest first."""

    @property
    def has_tokens(self) -> bool:
        """Whether there are or were any tokens, live or not."""
        self._read_again()
        return self._has_tokens

    def caller(self, authorization: str | None, *, is_over_http: bool = False) -> Caller:
        """The authenticated caller.

        Args:
            authorization: The header's value, `Bearer` and a token; None if missing.
            is_over_http: Whether the call came over HTTP, which all users of the machine can reach.

        Raises:
            TokenInvalid: A required token is missing, or the token is unknown, revoked or expired.
        """
        self._read_again()
        if authorization is None:
            if self._asks(is_over_http=is_over_http):
                raise TokenInvalid(
                    "this service asks for a token: set HUMMOCK_TOKEN, or send `authorization: Bearer …`; its operator "
                    "makes one with `hummock tokens create`"
                )
            return LOCAL
        # Cached by the header's hash, so that no token stays in memory.
        seen = sha256(authorization.encode()).digest()
        tokens = self._tokens
        known = tokens.callers.get(seen)
        if known is not None and (known.until_s is None or self._now() < known.until_s):
            return known.caller
        token = self._verified(authorization, tokens.by_id)
        caller = Caller(name=token.name, scopes=token.scopes)
        tokens.callers[seen] = _Known(caller, token.expires_s)
        return caller

    def _verified(self, authorization: str, by_id: Mapping[str, Token]) -> Token:
        """The record of the token that was sent. Raises: TokenInvalid."""
        scheme, _, text = authorization.partition(" ")
        token = by_id.get(id_of(text)) if scheme.lower() == _SCHEME else None
        # Compared even for an unknown id, so that it takes the same time.
        is_known = compare_digest(digest_of(text), token.digest if token else digest_of(""))
        if token is None or not is_known or token.revoked_s is not None:
            raise TokenInvalid("the token is not known here, or was revoked; ask the service's operator for a new one")
        if token.state(self._now()) == "expired":
            raise TokenInvalid(
                f"the token {token.name} expired at {shown_time(token.expires_s)}; ask the service's operator for a "
                "new one"
            )
        return token

    def _asks(self, *, is_over_http: bool) -> bool:
        if self._exposure is Exposure.NETWORK:
            return True
        return self._has_tokens and (self._exposure is Exposure.MACHINE or is_over_http)

    def _read_again(self) -> None:
        """Reload the tokens if the file has changed; the check is one system call of some microseconds."""
        version = self._file.version()
        if version == self._version:
            return
        try:
            tokens = self._file.read()
        except TokensUnreadable as error:
            # Rejecting valid tokens for a while is better than accepting everyone.
            _log.error("tokens_unreadable", problem=str(error))
            tokens, self._has_tokens = (), True
        else:
            self._tell(tokens)
        # In one step: a caller being verified with the old tokens is cached with those.
        self._tokens = _Tokens({each.id: each for each in tokens}, {})
        self._has_tokens = self._has_tokens or bool(tokens)
        # Set last: a thread that finds this version uses the tokens above.
        self._version = version

    def _tell(self, tokens: Sequence[Token]) -> None:
        before, now = self._told, {token.id: token.name for token in tokens if token.revoked_s is None}
        made = tuple(name for id, name in now.items() if before is None or id not in before)
        revoked = tuple(name for id, name in before.items() if id not in now) if before else ()
        self._told = now
        if made or revoked:
            self.news.append(TokenNews(before is None, len(now), made, revoked))
