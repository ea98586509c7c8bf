"""In-place update of terms made by an earlier analyzer, before anything reads them.

Terms are derived from the stored texts. Each transaction updates some memories and records its progress, so that an
interrupted start continues at the next one. From the first transaction on the directory has this analyzer's version:
an earlier version of Hummock, which would search for other terms, refuses to open it.

Learned keywords are read from the memories' profiles and updated too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

import msgspec

from hummock.core.memory import Memory
from hummock.ports.writes import ALL_PROJECTS, Claim, Claims, Work
from hummock.store.tables import forward_lists, integrity, keys, record_codec
from hummock.store.tables.engine import Engine, Transaction
from hummock.store.tables.forward_lists import TermDictionary, with_learned
from hummock.store.tables.learning_log import StoredLearning
from hummock.store.tables.lookups import DIRECTORY_KEY, project_numbers, project_record
from hummock.store.tables.row_codec import reanalysed
from hummock.store.write.write_batch import WriteBatch
from hummock.text.analyzer import ANALYZER_VERSION
from hummock.text.template import as_draft, pieces_of
from hummock.text.terms import learned_terms, terms_of

REANALYSED_KEY = b"reanalysed"
_MEMORIES_AT_ONCE = 512
_BYTES_AT_ONCE = 1 << 20
"""Record bytes, without the last record, analysed at once: their terms take up to a hundred times as much."""
_MEMORIES_A_LINE = 20_000
_AGAIN_S = 0.5  # Seconds between two checks whether another service has finished.

Say = Callable[[str], None]


def reanalyse(engine: Engine, claims: Claims, say: Say) -> None:
    """Update the terms of all memories to this analyzer; does nothing if they are up to date.

    One service does the work. Others that start meanwhile wait for it, and continue if it dies. Nobody reads the
    engine yet. `say` takes progress lines for people.

    Raises: DirectoryUnusable: a term or a row cannot be read, or there is no space. ClaimLost: this process was
        stopped for longer than its lease.
    """
    failures: tuple[type[Exception], ...] = (*engine.failures, OSError, msgspec.MsgspecError)
    try:
        record, noted = _stored(engine)
        if record.analyzer == ANALYZER_VERSION and noted is None:
            return
        claim = _claimed(claims, say)
        start = _begun(engine, claim)
        if start is not None:
            _Reanalysis(engine, claim, say).run(start)
        claims.release(claim)
    except failures as error:
        raise engine.unusable(error) from error


def _claimed(claims: Claims, say: Say) -> Claim:
    claim = claims.take(Work.REANALYSE, ALL_PROJECTS)
    if claim is None:
        say("another service makes the words of all memories anew; this one starts when that is done")
    while claim is None:
        time.sleep(_AGAIN_S)
        claim = claims.take(Work.REANALYSE, ALL_PROJECTS)
    return claim


def _stored(engine: Engine) -> tuple[record_codec.DirectoryRecord, record_codec.Reanalysed | None]:
    """The record with the analyzer that made a store's terms, and the progress of an update."""
    meta = engine.tables.meta
    with engine.reading() as txn:
        record = record_codec.decode_directory(txn.get(DIRECTORY_KEY, b"", db=meta))
        noted = txn.get(REANALYSED_KEY, db=meta)
    return record, None if noted is None else record_codec.decode_reanalysed(noted)


def _begun(engine: Engine, claim: Claim) -> record_codec.Reanalysed | None:
    """The position to continue from; None if all terms are up to date."""
    meta, (record, noted) = engine.tables.meta, _stored(engine)
    if record.analyzer == ANALYZER_VERSION:
        return noted
    start = record_codec.Reanalysed(project=0, doc=0)
    now = msgspec.structs.replace(record, analyzer=ANALYZER_VERSION)
    with engine.writing() as txn:
        engine.require_claim(txn, claim)
        txn.put(DIRECTORY_KEY, record_codec.encode(now), db=meta)
        txn.put(REANALYSED_KEY, record_codec.encode(start), db=meta)
    return start


@dataclass(slots=True)
class _Reanalysis:
    engine: Engine
    claim: Claim
    say: Say
    done: int = 0

    def run(self, start: record_codec.Reanalysed) -> None:
        """Update projects and their memories in the order of their numbers."""
        tables = self.engine.tables
        with self.engine.reading() as txn:
            numbers = project_numbers(txn, self.engine)
            left = sum(sum(project_record(txn, self.engine, number).kinds.values()) for number in numbers)
        self.say(f"the words of up to {left} memories are made anew, for analyzer {ANALYZER_VERSION}")
        for number in sorted(numbers):
            if number >= start.project:
                self._project(number, start.doc if number == start.project else 0)
        with self.engine.writing() as txn:
            self.engine.require_claim(txn, self.claim)
            txn.delete(REANALYSED_KEY, db=tables.meta)
        self.say(f"the words of {self.done} memories are made anew")

    def _project(self, number: int, doc: int) -> None:
        dictionary = TermDictionary()
        next_doc: int | None = doc
        while next_doc is not None:
            with self.engine.writing(number=number) as txn:
                self.engine.require_claim(txn, self.claim)
                next_doc = self._some(txn, number, next_doc, dictionary)

    def _some(self, txn: Transaction, number: int, doc: int, dictionary: TermDictionary) -> int | None:
        """Update some memories from `doc` on; returns the next document, None at the end."""
        tables = self.engine.tables
        memories = list(_memories(txn, self.engine, number, doc))
        if not memories:
            return None
        record = project_record(txn, self.engine, number)
        made = terms_of([pieces_of(as_draft(memory)) for _, memory in memories])
        batch = WriteBatch(self.engine, txn, number, dictionary)
        learning = StoredLearning(txn, tables, self.engine.damage, number)
        lists = batch.forward_lists(made, record)
        for (key, memory), one, stored in zip(memories, made, lists, strict=True):
            profile = learning.profile(memory.id)
            if profile is not None and profile.words:
                (learned,) = batch.forward_lists([learned_terms(profile.words)], record)
                stored = with_learned(stored, learned)
            doc, space = keys.doc_of_doc_key(key), record.active_space
            is_sound = integrity.is_sound(txn, tables, number, space, doc)
            txn.put(key, stored, db=tables.terms)
            row = txn.get(key, b"", db=tables.column)
            tokens = txn.get(keys.chunk_key(number, space, doc, 0), b"", db=tables.token)
            txn.put(key, reanalysed(row, memory, forward_lists.length(one), tokens), db=tables.column)
            if is_sound:
                integrity.keep_sums(txn, tables, number, space, doc)
        # Older directories lack this flag as well.
        record.has_superseding |= any(memory.supersedes for _, memory in memories)
        txn.put(keys.project_number_key(number), record_codec.encode(record), db=tables.project)
        next_doc = keys.doc_of_doc_key(memories[-1][0]) + 1
        noted = record_codec.Reanalysed(project=number, doc=next_doc)
        txn.put(REANALYSED_KEY, record_codec.encode(noted), db=tables.meta)
        before, self.done = self.done, self.done + len(memories)
        if before // _MEMORIES_A_LINE < self.done // _MEMORIES_A_LINE:
            self.say(f"the words of {self.done} memories are made anew so far")
        return next_doc


def _memories(txn: Transaction, engine: Engine, number: int, doc: int) -> Iterator[tuple[bytes, Memory]]:
    """Keys and memories of a project from `doc` on, in order, up to the limits of one transaction."""
    tables = engine.tables
    found = keys.entries(txn, tables.memory, keys.project_prefix(number), keys.doc_key(number, doc))
    read_bytes = 0
    for key, value in islice(found, _MEMORIES_AT_ONCE):
        if read_bytes >= _BYTES_AT_ONCE:
            return
        payload = txn.get(key, b"", db=tables.payload)
        read_bytes += len(value) + len(payload)
        # An unreadable memory stays as it is; reading it reports the damage.
        with suppress(msgspec.DecodeError):
            yield key, record_codec.memory_of(value, payload)
