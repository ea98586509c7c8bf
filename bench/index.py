"""`python -m bench.index PATH`: how long a repository takes to index, and to index again when nothing changed."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.machine import Machine
from bench.service import Bench, BenchFailed, Serving
from hummock.core.errors import HummockError
from hummock.indexing.sync import SyncReport, sync

_PROJECT = "bench"
NOT_MEASURED = (
    "a cold page cache: the files may have been read before",
    "an index run after a few files changed",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of the indexer: reading, cutting, embedding, storing and all the calls between.

    `skipped` are paths that the walk left out; `by_lines` names languages that were cut without their grammar.
    """

    seconds: float
    files: int
    skipped: int
    fragments: int
    domain_entries: int
    sent: int
    unchanged: int
    deleted: int
    by_lines: tuple[str, ...]

    @classmethod
    def of(cls, report: SyncReport, seconds: float) -> Run:
        """What the indexer says that it did, and how long it took."""
        return cls(
            seconds=seconds,
            files=report.walked.files,
            skipped=report.walked.skipped_total,
            fragments=report.fragments,
            domain_entries=report.domain_entries,
            sent=report.sent,
            unchanged=report.unchanged,
            deleted=report.deleted,
            by_lines=report.without_grammar,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Both runs, on one service, the first of them into an empty project.

    Attributes:
        sent_per_s: Code fragments and domain entries a second of the first run.
        second_to_first: The second run's seconds as a part of the first one's.
    """

    model: str
    machine: Machine
    first: Run
    second: Run
    sent_per_s: float
    second_to_first: float
    not_measured: tuple[str, ...] = NOT_MEASURED


def measure(root: Path, model: str, models_dir: Path | None, directory: Path) -> Report:
    """Index a folder twice with a service in an empty directory.

    Raises:
        BenchFailed: Nothing was there to index, or a batch was refused.
        FileNotFoundError, NotADirectoryError: `root` is not a directory.
    """
    machine = Machine.here(directory)
    bench = Bench.prepare(directory, model, models_dir)
    with bench.serving() as service:
        first, second = _run(root, service), _run(root, service)
    return Report(
        model=bench.model,
        machine=machine,
        first=first,
        second=second,
        sent_per_s=first.sent / first.seconds,
        second_to_first=second.seconds / first.seconds,
    )


def _run(root: Path, service: Serving) -> Run:
    started_s = time.perf_counter()
    report = sync(root, _PROJECT, service.channel, on_progress=lambda progress: None, on_skip=lambda path, reason: None)
    seconds = time.perf_counter() - started_s
    if report.failures:
        raise BenchFailed(f"{len(report.failures)} batches were refused; the first: {report.failures[0].message}")
    if not report.fragments + report.domain_entries:
        raise BenchFailed(f"there is nothing to index in {root}")
    return Run.of(report, seconds)


def markdown(report: Report, root: Path) -> str:
    """The report as Markdown."""
    counts = ("files", "skipped", "fragments", "domain_entries", "sent", "unchanged", "deleted")
    first, second = report.first, report.second
    return "\n".join(
        [
            f"## Indexing {root.name}",
            "",
            f"- model {report.model}",
            *report.machine.lines(),
            *(f"- cut by lines for want of the extra `code`: {language}" for language in first.by_lines),
            "",
            "| | first run | second run |",
            "|---|---:|---:|",
            *(f"| {name.replace('_', ' ')} | {getattr(first, name)} | {getattr(second, name)} |" for name in counts),
            f"| seconds | {first.seconds:.2f} | {second.seconds:.2f} |",
            f"| fragments and entries a second | {report.sent_per_s:.1f} | |",
            f"| seconds as a part of the first run's | | {report.second_to_first:.3f} |",
            "",
            "Not measured:",
            *(f"- {each}" for each in report.not_measured),
        ]
    )


def main() -> None:
    """The command line: the table to stdout, the whole report to the file of --json."""
    parser = argparse.ArgumentParser(prog="python -m bench.index", description=(__doc__ or "").partition(": ")[2])
    parser.add_argument("path", type=Path, metavar="PATH", help="the folder to index")
    parser.add_argument("--model", default="tiny", help="embeds the fragments; tiny is built on the spot")
    parser.add_argument("--models-dir", type=Path, help="where the model is, or is fetched to")
    parser.add_argument("--dir", type=Path, help="an existing directory on the disk to use; unset: the system's")
    parser.add_argument("--json", type=Path, help="write the report there")
    given = parser.parse_args()
    root = given.path.resolve()
    try:
        with tempfile.TemporaryDirectory(prefix="hummock-bench-", dir=given.dir) as directory:
            report = measure(root, given.model, given.models_dir, Path(directory))
    except (BenchFailed, HummockError, OSError) as failed:
        sys.exit(f"error: {failed}")
    if given.json:
        values = asdict(report)
        given.json.write_text(json.dumps(values, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    print(markdown(report, root))


if __name__ == "__main__":
    main()
