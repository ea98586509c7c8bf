"""What has to be sent and deleted so that the service holds exactly what the repository has."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import blake2b

from hummock.indexing.fragment import Fragment
from hummock.indexing.markdown import DomainEntry

# Part of every hash: raise it when the same values come to be put on the wire differently.
_RECIPE = 1
_HASH_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Ids to send, in the repository's order; ids to delete, sorted; and how many may stay as they are."""

    send: tuple[str, ...]
    delete: tuple[str, ...]
    unchanged: int


def changes(local: Mapping[str, str], remote: Mapping[str, str]) -> Changes:
    """Compare content hashes by id: what the repository has, and what the service holds of it."""
    send = tuple(key for key, digest in local.items() if remote.get(key) != digest)
    delete = tuple(sorted(remote.keys() - local.keys()))
    return Changes(send=send, delete=delete, unchanged=len(local) - len(send))


def content_hash(memory: Fragment | DomainEntry) -> str:
    """A hash of all that goes on the wire for it: 32 hexadecimal digits, the same in every process and version."""
    fields = {"recipe": _RECIPE, "type": type(memory).__name__, **asdict(memory)}
    canonical = json.dumps(fields, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return blake2b(canonical.encode(), digest_size=_HASH_BYTES).hexdigest()
