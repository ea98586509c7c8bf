"""Creation, listing and revocation of tokens in a file of the data directory, with or without a running service."""

from __future__ import annotations

import json
import os
import re
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from hummock.core.access import Scope
from hummock.core.errors import HummockError

FILE_NAME = "tokens.json"
PREFIX = "hmk"
"""Prefix of every token, so that secret scanners find it."""

_VERSION = 1
_ID_BYTES = 6
_SECRET_BYTES = 32
_NAME = re.compile(r"[\w.@-]{1,64}")
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class TokensUnreadable(HummockError):
    """The file of tokens cannot be read or parsed."""

    reason = "TOKENS_UNREADABLE"

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{path} {problem}")


class TokenRefused(HummockError):
    """A token cannot be created or revoked as requested."""

    reason = "TOKEN_REFUSED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """Stored record of a token: enough to recognise it, not enough to use it.

    Attributes:
        id: Public part of the token itself.
        name: Name for people and the audit log; unique among tokens that are not revoked.
        digest: SHA-256 of the whole token, in hexadecimal. It needs no salt and no slow hash: the token is 256 random
            bits, too many to enumerate.
        scopes: Permissions.
        created_s, expires_s, revoked_s: Unix seconds; None means not.
    """

    id: str
    name: str
    digest: str
    scopes: tuple[Scope, ...]
    created_s: float
    expires_s: float | None = None
    revoked_s: float | None = None

    def state(self, now_s: float) -> str:
        """`live`, `expired` or `revoked`."""
        if self.revoked_s is not None:
            return "revoked"
        return "expired" if self.expires_s is not None and now_s >= self.expires_s else "live"


class TokenFile:
    """The token file of a data directory. Revoked tokens stay in it, so that it is never empty again."""

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / FILE_NAME
        self._name = str(self.path)

    def version(self) -> tuple[int, ...] | None:
        """A value that changes whenever the file does; None if there is no file."""
        try:
            # Called for each request, and Path.stat takes several times as long as the system call.
            found = os.stat(self._name)  # noqa: PTH116 # as above
        except FileNotFoundError:
            return None
        except OSError:
            return ()
        return (found.st_ino, found.st_mtime_ns, found.st_size, found.st_mode)

    def read(self) -> tuple[Token, ...]:
        """All tokens, the oldest first. Raises: TokensUnreadable."""
        try:
            with self.path.open("rb") as opened:
                if os.fstat(opened.fileno()).st_mode & _OTHERS:
                    raise TokensUnreadable(self.path, f"is open to other users; chmod 600 {self.path}")
                kept = json.loads(opened.read())
            if kept["version"] != _VERSION:
                raise TokensUnreadable(self.path, f"is of version {kept['version']}; this service knows {_VERSION}")
            return tuple(_token(each) for each in kept["tokens"])
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise TokensUnreadable(self.path, f"cannot be read: {error.strerror}") from error
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise TokensUnreadable(self.path, "is damaged; restore it, or remove it and make new tokens") from error

    def create(
        self, name: str, scopes: Sequence[Scope], now_s: float, expires_s: float | None = None
    ) -> tuple[Token, str]:
        """Create a token; returns its record and the text for its holder, which is stored nowhere.

        Args:
            name: 1 to 64 letters, digits and any of `. _ @ -`.
            scopes: At least one.
            now_s: Unix seconds.
            expires_s: Unix seconds after now; None means never.

        Raises:
            TokenRefused: The name is taken or invalid, there is no scope, or it would have expired already.
            TokensUnreadable: The file cannot be read or written.
        """
        if not _NAME.fullmatch(name):
            raise TokenRefused(f"{name!r} is no name of a token; it has 1 to 64 letters, digits and any of . _ @ -")
        if not scopes:
            raise TokenRefused("a token without a scope allows nothing; give it one, for example --scope 'shop:learn'")
        if expires_s is not None and expires_s <= now_s:
            raise TokenRefused("the token would have expired already; choose a later moment")
        id = secrets.token_hex(_ID_BYTES)
        text = f"{PREFIX}_{id}_{secrets.token_urlsafe(_SECRET_BYTES)}"
        made = Token(
            id=id, name=name, digest=digest_of(text), scopes=tuple(scopes), created_s=now_s, expires_s=expires_s
        )
        with self._changing() as tokens:
            if any(each.name == name and each.revoked_s is None for each in tokens):
                raise TokenRefused(f"there is a token {name} already; revoke it first, or choose another name")
            tokens.append(made)
        return made, text

    def revoke(self, name: str, now_s: float) -> Token:
        """Revoke a token by its name or id, effective at once. Raises: TokenRefused, TokensUnreadable."""
        with self._changing() as tokens:
            for index, each in enumerate(tokens):
                if name in (each.name, each.id) and each.revoked_s is None:
                    tokens[index] = replace(each, revoked_s=now_s)
                    return tokens[index]
        raise TokenRefused(f"there is no token {name}; `hummock tokens ls` shows those that are")

    @contextmanager
    def _changing(self) -> Iterator[list[Token]]:
        """The tokens under an exclusive lock; they are written if the block succeeds."""
        # Windows lacks it, and loads this module with the command line.
        import fcntl

        directory = self.path.parent
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise TokensUnreadable(directory, f"cannot be used: {error.strerror}") from error
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            tokens = list(self.read())
            yield tokens
            _write(self.path, tokens, folder)
        except OSError as error:
            raise TokensUnreadable(self.path, f"cannot be written: {error.strerror}") from error
        finally:
            os.close(folder)


def digest_of(text: str) -> str:
    """Stored digest of a token's text."""
    return sha256(text.encode()).hexdigest()


def id_of(text: str) -> str:
    """The public part of a token's text; empty if it is not a token."""
    prefix, _, rest = text.partition("_")
    return rest.partition("_")[0] if prefix == PREFIX else ""


def _write(path: Path, tokens: Sequence[Token], folder: int) -> None:
    """Write the file atomically and durably."""
    data = json.dumps({"version": _VERSION, "tokens": [_kept(each) for each in tokens]}, ensure_ascii=False, indent=1)
    beside = path.with_suffix(".new")
    beside.unlink(missing_ok=True)
    with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:  # noqa: PTH123 # its mode
        opened.write(data.encode())
        opened.flush()
        os.fsync(opened.fileno())
    beside.replace(path)
    os.fsync(folder)


def _kept(token: Token) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "sha256": token.digest,
        "scopes": [str(scope) for scope in token.scopes],
        "created": shown_time(token.created_s),
        "expires": shown_time(token.expires_s),
        "revoked": shown_time(token.revoked_s),
    }


def _token(kept: dict[str, Any]) -> Token:
    created_s = _seconds(kept["created"])
    if created_s is None or len(bytes.fromhex(kept["sha256"])) != sha256().digest_size:
        raise ValueError("no token")
    return Token(
        id=str(kept["id"]),
        name=str(kept["name"]),
        digest=kept["sha256"],
        scopes=tuple(map(Scope.parse, kept["scopes"])),
        created_s=created_s,
        expires_s=_seconds(kept["expires"]),
        revoked_s=_seconds(kept["revoked"]),
    )


def shown_time(moment_s: float | None) -> str | None:
    """A moment as ISO 8601 in UTC; None for None."""
    return None if moment_s is None else datetime.fromtimestamp(moment_s, UTC).isoformat(timespec="seconds")


def _seconds(text: str | None) -> float | None:
    return None if text is None else datetime.fromisoformat(text).timestamp()
