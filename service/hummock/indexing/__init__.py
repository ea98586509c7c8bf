"""Repository indexing: a folder of source files as memories."""

from .chunker import fragments
from .fragment import Fragment
from .markdown import DomainEntry, domain_entries
from .plan import Changes, changes, content_hash
from .skips import SkipReason, Tally, WalkCounts
from .source import SourceFile
from .walk import walk

__all__ = [
    "Changes",
    "DomainEntry",
    "Fragment",
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
