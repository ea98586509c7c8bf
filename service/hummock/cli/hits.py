"""Recall's answer as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

from hummock.cli.output import age, columns, milliseconds, new_table, note, print_table, printable, warn
from hummock.v1 import memory_pb2 as memory_pb
from hummock.v1 import recall_pb2 as pb

__all__ = ["kind_word", "print_degraded", "print_recall", "print_receipt", "title_of"]

_KIND_WORDS = {
    memory_pb.MEMORY_KIND_LEARNING_RECORD: "record",
    memory_pb.MEMORY_KIND_DOMAIN_KNOWLEDGE: "domain",
    memory_pb.MEMORY_KIND_CODE_FRAGMENT: "code",
    memory_pb.MEMORY_KIND_NOTE: "note",
    memory_pb.MEMORY_KIND_ENTRY: "entry",
}
_MAX_TITLE_CHARACTERS = 120
# Below this an id or a whole path would leave no room for the title; --json has them always.
_WIDE_COLUMNS = 110


def print_recall(response: pb.RecallResponse) -> None:
    """Hits, code fragments and domains as tables to stdout; the receipt to stderr."""
    if not (response.hits or response.code_fragments or response.domains):
        note("nothing was recalled")
    for title, hits in (
        ("", response.hits),
        ("code fragments", response.code_fragments),
        ("domains", response.domains),
    ):
        if hits:
            print_table(_table(title, hits, wide=columns() >= _WIDE_COLUMNS))
    print_receipt(response.receipt)
    print_degraded(response.degraded)


def print_receipt(receipt: pb.Receipt) -> None:
    """One line to stderr: the time that the recall and each of its stages took, and how much was searched."""
    stages = " · ".join(f"{each.stage} {milliseconds(each.elapsed)}" for each in receipt.stages)
    searched = sum(group.searched for group in receipt.groups)
    note(f"{milliseconds(receipt.elapsed)}: {stages} · {searched} searched")


def print_degraded(degraded: Iterable[pb.Degradation]) -> None:
    """What the service had to leave out, to stderr."""
    for each in degraded:
        warn(f"degraded: {each.path}: {each.message or each.reason}")


def kind_word(kind: memory_pb.MemoryKind.ValueType) -> str:
    """A kind in one short word; a kind of a newer service by its number."""
    return _KIND_WORDS.get(kind, str(int(kind)))


def title_of(memory: memory_pb.Memory, *, whole_path: bool = True) -> str:
    """What names a memory: symbol and place of code on two lines, else its title, else its id.

    Args:
        memory: In any view.
        whole_path: Whether there is room for a path; else the file's name stands for it.
    """
    fragment = memory.payload.code_fragment
    if not fragment.path:
        return _one_line(memory.index.title or memory.id)
    path = fragment.path if whole_path else fragment.path.rpartition("/")[2]
    place = f"{_one_line(path)}:{fragment.start_line}" if fragment.start_line else _one_line(path)
    return f"{_one_line(fragment.symbol)}\n{place}" if fragment.symbol else place


def _one_line(text: str) -> str:
    line = " ".join(printable(text).split())
    return line if len(line) <= _MAX_TITLE_CHARACTERS else f"{line[: _MAX_TITLE_CHARACTERS - 1]}…"


def _table(title: str, hits: Sequence[pb.Hit], *, wide: bool) -> Table:
    table = new_table(title=title)
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("sim", justify="right", no_wrap=True)
    table.add_column("words", justify="right", no_wrap=True)
    table.add_column("kind", no_wrap=True)
    table.add_column("title", ratio=3, overflow="fold")
    table.add_column("why", ratio=2, overflow="fold")
    table.add_column("age", justify="right", no_wrap=True)
    if wide:
        table.add_column("id", ratio=2, overflow="fold")
    for hit in hits:
        table.add_row(
            Text(f"{hit.score:.2f}", style="bold"),
            f"{hit.similarity:.2f}",
            f"{hit.keyword_score:.1f}",
            kind_word(hit.memory.kind),
            Text(title_of(hit.memory, whole_path=wide)),
            Text(_why(hit), style="dim"),
            age(hit.age_days),
            *([Text(printable(hit.memory.id))] if wide else []),
        )
    return table


def _why(hit: pb.Hit) -> str:
    paths = "+".join(pb.RecallPath.Name(path).removeprefix("RECALL_PATH_").lower() for path in hit.paths)
    terms = _one_line(" ".join(hit.matched_terms))
    twin = "near twin" if hit.near_twin else ""
    return ", ".join(part for part in (paths, terms, twin) if part)
