"""`python -m bench.index PATH`: how long a repository takes to index, and to index again when nothing changed."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.machine import Machine
from bench.service import Bench, BenchFailed, Serving
from hummock import models
from hummock.core.errors import HummockError
from hummock.indexing.sync import SyncReport, sync

_PROJECT = "bench"
_NOT_MEASURED = (
    "a cold page cache: the files may have been read before",
    "an index run after a few files changed",
)


def measure(root: Path, model: str, models_dir: Path | None, directory: Path) -> str:
    """Indexes a folder twice with a service in an empty directory: the table of both runs, as Markdown.

    Raises:
        BenchFailed: Nothing was there to index, or a batch was refused.
        FileNotFoundError, NotADirectoryError: `root` is not a directory.
    """
    machine = Machine.here(directory)
    bench = Bench.prepare(directory, model, models_dir)
    with bench.serving() as service:
        first, first_s = _timed(root, service)
        second, second_s = _timed(root, service)
    twice = zip(_counts(first), _counts(first).values(), _counts(second).values(), strict=True)
    return "\n".join(
        [
            f"## Indexing {root.name}",
            "",
            f"- model {bench.model}",
            *machine.lines(),
            *(f"- cut by lines for want of the extra `code`: {language}" for language in first.without_grammar),
            "",
            "| | first run | second run |",
            "|---|---:|---:|",
            *(f"| {name} | {once} | {again} |" for name, once, again in twice),
            f"| seconds | {first_s:.2f} | {second_s:.2f} |",
            f"| fragments and entries a second | {first.sent / first_s:.1f} | |",
            f"| seconds as a part of the first run's | | {second_s / first_s:.3f} |",
            "",
            "Not measured:",
            *(f"- {each}" for each in _NOT_MEASURED),
        ]
    )


def _timed(root: Path, service: Serving) -> tuple[SyncReport, float]:
    """One run of the indexer, and its seconds: reading, cutting, embedding, storing and all the calls between."""
    started_s = time.perf_counter()
    report = sync(root, _PROJECT, service.channel, on_progress=lambda progress: None, on_skip=lambda path, reason: None)
    seconds = time.perf_counter() - started_s
    if report.failures:
        raise BenchFailed(f"{len(report.failures)} batches were refused; the first: {report.failures[0].message}")
    if not report.fragments + report.domain_entries:
        raise BenchFailed(f"there is nothing to index in {root}")
    return report, seconds


def _counts(report: SyncReport) -> dict[str, int]:
    return {
        "files": report.walked.files,
        "skipped": report.walked.skipped_total,
        "fragments": report.fragments,
        "domain entries": report.domain_entries,
        "sent": report.sent,
        "unchanged": report.unchanged,
        "deleted": report.deleted,
    }


def main() -> None:
    """The command line: the table to stdout."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path, metavar="PATH", help="the folder to index")
    parser.add_argument("--model", default=models.TINY, help="embeds the fragments; tiny is built on the spot")
    parser.add_argument("--models-dir", type=Path, help="where the model is, or is fetched to")
    given = parser.parse_args()
    try:
        with TemporaryDirectory(prefix="hummock-bench-") as directory:
            print(measure(given.path.resolve(), given.model, given.models_dir, Path(directory)))
    except (BenchFailed, HummockError, OSError) as failed:
        sys.exit(f"error: {failed}")


if __name__ == "__main__":
    main()
