"""What is known of the calls of a service and its readers: a ledger for each process, and their sums."""

from __future__ import annotations

import mmap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from hummock.activity.ledger import LEDGER_BYTES, Ledger
from hummock.activity.shared_memory import mapped, shared_blocks
from hummock.activity.summary import summed
from hummock.config import Settings
from hummock.core.activity import Activity, ProcessLoad
from hummock.models import OnnxEmbedder
from hummock.recall.cache import CachedRecall
from hummock.rpc.admission import Load
from hummock.store import ReadOnlyStore, WritableStore


class Ledgers:
    """The ledger of a service, and those of its readers."""

    def __init__(self, readers: Sequence[int]) -> None:
        """Counts from now on; `readers` are descriptors of blocks, one for each reader."""
        self.readers = tuple(readers)
        self._memories = (mmap.mmap(-1, LEDGER_BYTES), *map(mapped, readers))
        self._began_s = time.monotonic()
        self.own = Ledger(self._memories[0])

    def activity(self, load: ProcessLoad, calls: Load, living_readers: int) -> Activity:
        """What all have done; given how busy this process is, and with how many calls."""
        self.own.note(replace(load, running_calls=calls.running, waiting_calls=calls.waiting))
        return summed(self._memories, 1 + living_readers, time.monotonic() - self._began_s)


@contextmanager
def counting(settings: Settings) -> Iterator[Ledgers]:
    """The ledgers of all processes that the settings want."""
    with shared_blocks(settings.readers) as readers:
        yield Ledgers(readers)


def ledger_of_reader(descriptor: int | None) -> Ledger:
    """The ledger in which a reader counts: the service's block, or one of its own if it was given none."""
    return Ledger(mmap.mmap(-1, LEDGER_BYTES) if descriptor is None else mapped(descriptor))


def loading(
    recall: CachedRecall, memories: WritableStore | ReadOnlyStore, embedder: OnnxEmbedder
) -> Callable[[], ProcessLoad]:
    """Says how busy these parts of a process are."""

    def load() -> ProcessLoad:
        answers, answer_bytes = recall.usage()
        views, model = memories.views_load(), embedder.load()
        return ProcessLoad(
            cached_answers=answers,
            cached_bytes=answer_bytes,
            loaded_projects=views.count,
            index_bytes=views.nbytes,
            evicted_projects=views.evicted,
            lag_operations=views.lag,
            model_slots=model.slots,
            busy_slots=model.busy,
            waiting_texts=model.waiting,
        )

    return load
