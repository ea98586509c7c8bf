"""Repository indexing: a folder of source files as memories."""

from hummock_tools.indexing.chunker import fragments
from hummock_tools.indexing.fragment import Fragment, SourceFile
from hummock_tools.indexing.markdown import DomainEntry, domain_entries
from hummock_tools.indexing.skips import MissingExtra, SkipReason, Tally, WalkCounts
from hummock_tools.indexing.wire import Changes, changes, content_hash

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
