"""Counts what one call to the service runs through: its files, its calls, and how often it enters the store.

`python -m tests.weight.tracing` prints the counts as JSON; `--list CALL` prints the files and functions of one call.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import hummock
import hummock_kernels
from bench import toy_models

SERVICE, KERNELS = (f"{Path(str(package.__file__)).parent}/" for package in (hummock, hummock_kernels))

PURE = ("core/", "kernels/", "ports/", "text/", "wiring/")
"""Files of values, text and kernels: they run, and control does not pass through them to another stage."""

BYTES = frozenset(
    f"store/{file}.py"
    for file in (
        "tables/keys",
        "tables/record_codec",
        "tables/term_dictionary",
        "views/columns",
        "tables/forward_lists",
        "growing",
        "views/postings",
        "tables/row_codec",
    )
)
"""Files of bytes and terms, which read and write columns, postings and records: as `PURE`."""

SNAPSHOT = "store/snapshot.py"

ROUNDS = 16
"""Rounds of each call; the smallest of each count is taken, as other threads of the service may work during a call, and
a column that is full makes room for more."""

_SETTLE_S = 0.2
"""Wait before and after a call: work that it leaves for other threads is neither counted with the next one nor lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """Counts of one call.

    Attributes:
        passed: Files, without `PURE` and `BYTES`, that call a function of another file.
        run: Files of which a function runs.
        calls: Python calls of our own functions; a generator's resumption is one, a comprehension none.
        store_entries: Calls from outside `store/` into it, but for the reads of a snapshot that was opened before.
        transactions: Transactions of LMDB that were begun.
    """

    passed: int
    run: int
    calls: int
    store_entries: int
    transactions: int


@dataclass(slots=True)
class Trace:
    """The function calls of one call, in the order of their beginning."""

    calls: list[tuple[str, str, str, str]] = field(default_factory=list)
    """File and name of a function, then those of the nearest function of ours that called it, or ""."""
    transactions: int = 0

    def passed(self) -> set[str]:
        """Files through which control passes to another one."""
        callers = {caller for file, _, caller, _ in self.calls if caller != file}
        return {file for file in callers if file and not file.startswith(PURE) and file not in BYTES}

    def entries(self) -> list[str]:
        """Each call into the store, with its caller."""
        return [
            f"{caller} {caller_name} -> {file} {name}"
            for file, name, caller, caller_name in self.calls
            if file.startswith("store/") and caller and not caller.startswith("store/") and file != SNAPSHOT
        ]

    def weight(self) -> Weight:
        """Counts of the trace."""
        return Weight(
            passed=len(self.passed()),
            run=len({file for file, *_ in self.calls}),
            calls=len(self.calls),
            store_entries=len(self.entries()),
            transactions=self.transactions,
        )


class Tracer:
    """Notes function calls of all threads that begin after it, while it is on."""

    def __init__(self) -> None:
        self._trace: Trace | None = None
        self._files: dict[CodeType, str] = {}
        threading.setprofile(self._note)

    @contextmanager
    def tracing(self) -> Iterator[Trace]:
        """Records the calls of other threads during the block."""
        time.sleep(_SETTLE_S)
        trace = self._trace = Trace()
        try:
            yield trace
            time.sleep(_SETTLE_S)
        finally:
            self._trace = None

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        trace = self._trace
        if trace is None:
            return
        if event == "call":
            file = self._file(frame.f_code)
            if file and frame.f_code.co_name not in ("<listcomp>", "<setcomp>", "<dictcomp>"):
                trace.calls.append((file, frame.f_code.co_name, *self._caller(frame)))
        elif event == "c_call" and argument.__name__ == "begin":
            trace.transactions += type(argument.__self__).__name__ == "Environment"

    def _caller(self, frame: FrameType) -> tuple[str, str]:
        caller = frame.f_back
        while caller is not None and not self._file(caller.f_code):
            caller = caller.f_back
        return ("", "") if caller is None else (self._file(caller.f_code), caller.f_code.co_name)

    def _file(self, code: CodeType) -> str:
        """Path of our source file, relative to its package; "" for others and for stubs."""
        found = self._files.get(code)
        if found is None:
            path = code.co_filename
            found = path.removeprefix(SERVICE) if path.startswith(SERVICE) else ""
            if path.startswith(KERNELS):
                found = f"kernels/{path.removeprefix(KERNELS)}"
            if found.startswith("v1/"):
                found = ""
            self._files[code] = found
        return found


def traced() -> dict[str, list[Trace]]:
    """Traces of each kind of call, made over a real socket of a service with the toy model and LMDB."""
    tracer = Tracer()  # before the service begins its threads
    from tests.service.running import in_thread, settings
    from tests.weight.calls import calls_of, prepare

    with tempfile.TemporaryDirectory() as directory:
        models_dir, data = Path(directory) / "models", Path(directory) / "data"
        models_dir.mkdir()
        data.mkdir()
        model = toy_models.build_tiny(models_dir).name
        with in_thread(settings(data, models_dir, model, store=None)) as service:
            prepare(service)
            return {name: _traces(tracer, call) for name, call in calls_of(service).items()}


def _traces(tracer: Tracer, call: Callable[[int], object]) -> list[Trace]:
    traces = []
    for number in range(ROUNDS):
        with tracer.tracing() as trace:
            call(number)
        traces.append(trace)
    return traces


def weights() -> dict[str, Weight]:
    """The counts of each kind of call."""
    return {name: _smallest([trace.weight() for trace in traces]) for name, traces in traced().items()}


def _smallest(found: Sequence[Weight]) -> Weight:
    return Weight(**{each.name: min(getattr(weight, each.name) for weight in found) for each in fields(Weight)})


def _print(trace: Trace) -> None:
    print("files passed:", *sorted(trace.passed()), sep="\n  ")
    print("store entries:", *trace.entries(), sep="\n  ")
    print("calls:")
    for (file, name), times in Counter(call[:2] for call in trace.calls).most_common():
        print(f"  {times:4} {file} {name}")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", metavar="CALL", help="a call whose files and functions are listed")
    given = parser.parse_args()
    if given.list:
        _print(min(traced()[given.list], key=lambda trace: len(trace.calls)))
        return
    json.dump({name: asdict(weight) for name, weight in weights().items()}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
