"""A scan of entries for keywords: what is asked for, and what is told of it."""

from __future__ import annotations

from collections.abc import Iterator

from hummock.core.errors import InvalidRequest
from hummock.core.keyword_scan import EntryLearnt, ScanScope
from hummock.rpc.parse import values
from hummock.rpc.reply_stream import UNTIL_WRITTEN, Steps
from hummock.rpc.use_cases import RunningScan
from hummock.v1 import learning_service_pb2 as pb

_SCOPES = {
    pb.SCAN_SCOPE_UNSPECIFIED: ScanScope.UNLEARNED,
    pb.SCAN_SCOPE_UNLEARNED: ScanScope.UNLEARNED,
    pb.SCAN_SCOPE_ALL: ScanScope.ALL,
}


def asked_scan(request: pb.LearningServiceLearnKeywordsRequest) -> tuple[str, ScanScope, tuple[str, ...]]:
    """The project, which entries, and their ids where they are named."""
    project = values.project_name("project", request.project)
    chosen = tuple(values.identifier(f"memory_ids[{place}]", one) for place, one in enumerate(request.memory_ids))
    if chosen and request.scope != pb.SCAN_SCOPE_UNSPECIFIED:
        raise InvalidRequest("scope", "must be unset where entries are named by memory_ids")
    return project, ScanScope.CHOSEN if chosen else _SCOPES[request.scope], chosen


def told(scan: RunningScan) -> Steps:
    """Where it is now, each entry as it is read, and why it is over. What it has read before counts as done."""
    before = scan.since(0)
    done = len(before.learnt)
    if before.end is None:
        yield pb.LearningServiceLearnKeywordsResponse(total=before.total, done=done)
    while True:
        progress = scan.since(done)
        yield from _entries(progress.learnt, progress.total, done)
        done += len(progress.learnt)
        if progress.end is not None:
            yield pb.LearningServiceLearnKeywordsResponse(
                total=progress.total, done=done, end=pb.ScanEnd.ValueType(progress.end), reason=progress.reason
            )
            return
        if not progress.learnt:
            yield UNTIL_WRITTEN


def _entries(
    learnt: tuple[EntryLearnt, ...], total: int, done: int
) -> Iterator[pb.LearningServiceLearnKeywordsResponse]:
    for number, one in enumerate(learnt, start=done + 1):
        entry = pb.EntryLearnt(
            memory_id=one.memory_id,
            outcome=pb.EntryOutcome.ValueType(one.outcome),
            keywords=one.keywords,
            reason=one.reason,
        )
        yield pb.LearningServiceLearnKeywordsResponse(total=total, done=number, entry=entry)
