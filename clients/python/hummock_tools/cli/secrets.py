"""Summary lines about secrets in what a command sent; never the secrets themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from hummock_client.v1.context_service_pb2 import SecretsFound

HOW_TO_KEEP = "`hummock projects settings set {project} secrets.policy=warn` keeps such texts; learn them again then"
"""Advice for people who meant to keep the redacted text."""


def secret_sums(found: Iterable[SecretsFound]) -> Iterator[str]:
    """Summary lines such as "redacted 3 secrets: 2 cloud key, 1 password"; another line for secrets stored as given."""
    replaced: Counter[str] = Counter()
    stored: Counter[str] = Counter()
    for each in found:
        (replaced if each.redacted else stored)[each.kind] += each.count
    if replaced:
        yield f"redacted {_sum(replaced)}"
    if stored:
        yield f"stored as given {_sum(stored)}"


def _sum(counts: Mapping[str, int]) -> str:
    total = sum(counts.values())
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    return f"{total} {'secret' if total == 1 else 'secrets'}: {kinds}"
