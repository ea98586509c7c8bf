"""Repository indexing: a folder of source files as memories."""

from hummock.indexing.chunker import fragments
from hummock.indexing.fragment import Fragment, SourceFile
from hummock.indexing.ignores import MissingExtra
from hummock.indexing.markdown import DomainEntry, domain_entries
from hummock.indexing.skips import SkipReason, Tally, WalkCounts
from hummock.indexing.wire import Changes, changes, content_hash

__all__ = [
    "Changes",
    "DomainEntry",
    "Fragment",
    "MissingExtra",
    "SkipReason",
    "SourceFile",
    "Tally",
    "WalkCounts",
    "changes",
    "content_hash",
    "domain_entries",
    "fragments",
]
