"""The authenticator: who a caller is, by the token that he sends."""

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
    """Who can reach the service."""

    OWNER = auto()
    """The user who runs it: a Unix socket."""
    MACHINE = auto()
    """All users of this machine: loopback."""
    NETWORK = auto()
    """Other machines."""


class _Known(NamedTuple):
    """A caller, and until when his token is one (Unix seconds; None for ever)."""

    caller: Caller
    until_s: float | None


class _Tokens(NamedTuple):
    """Those of one state of the file, and the callers that were verified by them."""

    by_id: Mapping[str, Token]
    callers: dict[bytes, _Known]


class TokenNews(NamedTuple):
    """How the tokens differ from what they were when they were read last; at first, from none.

    Attributes:
        is_first: Whether they were never read before.
        live: How many there are by now that nobody revoked.
        made, revoked: Names; one that was taken out of the file is revoked as well.
    """

    is_first: bool
    live: int
    made: tuple[str, ...]
    revoked: tuple[str, ...]


class Authenticator:
    """Knows callers by their tokens. A token that is made or revoked counts from the next call on, in every process.

    From the network a token is always asked for; from the machine as soon as there is one; from the owner, who could
    read the files as well, never. A token that is sent is looked at wherever it comes from.
    """

    def __init__(self, data_dir: Path, exposure: Exposure, now: Callable[[], float] = time.time) -> None:
        """An authenticator before the tokens of a data directory; `now` gives Unix seconds."""
        self._file = TokenFile(data_dir)
        self._exposure = exposure
        self._now = now
        self._version: tuple[int, ...] | None = _NEVER_READ
        self._tokens = _Tokens({}, {})
        self._has_tokens = False
        self._told: Mapping[str, str] | None = None
        self.news: deque[TokenNews] = deque(maxlen=_KEPT_NEWS)
        """The latest that nobody has taken, the oldest first."""

    @property
    def has_tokens(self) -> bool:
        """Whether there are any, live or not; once there were, there are."""
        self._read_again()
        return self._has_tokens

    def caller(self, authorization: str | None, *, is_over_http: bool = False) -> Caller:
        """Who calls.

        Args:
            authorization: What he sent: `Bearer` and a token; None for nothing.
            is_over_http: Whether the call came over HTTP, which all users of the machine can reach.

        Raises:
            TokenInvalid: A token is asked for and there is none, or it is not one that is live.
        """
        self._read_again()
        if authorization is None:
            if self._asks(is_over_http=is_over_http):
                raise TokenInvalid(
                    "this service asks for a token: set HUMMOCK_TOKEN, or send `authorization: Bearer …`; its operator "
                    "makes one with `hummock tokens create`"
                )
            return LOCAL
        # By the hash of what was sent, so that no token stays in memory.
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
        """The token that was sent. Raises: TokenInvalid."""
        scheme, _, text = authorization.partition(" ")
        token = by_id.get(id_of(text)) if scheme.lower() == _SCHEME else None
        # Compared although the id was not found, so that it takes as long.
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
        """Looks whether the file is another one: one system call, of some microseconds."""
        version = self._file.version()
        if version == self._version:
            return
        try:
            tokens = self._file.read()
        except TokensUnreadable as error:
            # Whoever has a token must wait; to let all in would be worse.
            _log.error("tokens_unreadable", problem=str(error))
            tokens, self._has_tokens = (), True
        else:
            self._tell(tokens)
        # In one step: a caller who is being verified by the old tokens is kept with those.
        self._tokens = _Tokens({each.id: each for each in tokens}, {})
        self._has_tokens = self._has_tokens or bool(tokens)
        # Last: another thread that finds it looks no further.
        self._version = version

    def _tell(self, tokens: Sequence[Token]) -> None:
        before, now = self._told, {token.id: token.name for token in tokens if token.revoked_s is None}
        made = tuple(name for id, name in now.items() if before is None or id not in before)
        revoked = tuple(name for id, name in before.items() if id not in now) if before else ()
        self._told = now
        if made or revoked:
            self.news.append(TokenNews(before is None, len(now), made, revoked))
