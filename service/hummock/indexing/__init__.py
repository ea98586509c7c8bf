"""Repository indexing: a folder of source files as memories."""

from hummock.indexing.chunker import fragments
from hummock.indexing.fragment import Fragment
from hummock.indexing.listing import MissingExtra
from hummock.indexing.markdown import DomainEntry, domain_entries
from hummock.indexing.plan import Changes, changes, content_hash
from hummock.indexing.skips import SkipReason, Tally, WalkCounts
from hummock.indexing.source import SourceFile
from hummock.indexing.walk import walk

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
    "walk",
]
