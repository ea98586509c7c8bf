"""Measures how long one hostile text blocks every other thread of the service, its event loop among them.

`python -m tests.service.holds` sends texts at the limits of size to a service in this process, by every call that takes
or shows them, while a thread counts milliseconds. It prints the longest gap of each call next to that of a machine that
does nothing, and ends with 1 above `MOST_MS`.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import grpc
from google.protobuf.field_mask_pb2 import FieldMask

from hummock.wiring.parts import tune_interpreter
from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import recall_pb2 as recall
from tests.growth import run
from tests.service.inputs import note
from tests.service.models import install_model
from tests.service.running import Stubs, in_thread, settings

MOST_MS: Final = 50.0

_BYTES = 256 * 1024
_QUERY_CHARACTERS = 8192
_ROUNDS = 3
_UNITS = ("`", "<", "\n", "a", " ", "字", "(", "&amp;", "<|im_start|>", "system: ", "\u0301", "password=", "- ", "🦄")
_FORMS = tuple(context.RenderForm.values())[1:-1]

Work = Callable[[], object]


def longest_gap_ms(work: Work) -> float:
    """The longest time for which a thread that wants to run each millisecond did not, while the work was done."""
    is_over, longest = threading.Event(), 0.0

    def tick() -> None:
        nonlocal longest
        last = time.monotonic()
        while not is_over.is_set():
            time.sleep(0.001)
            now = time.monotonic()
            longest, last = max(longest, now - last), now

    ticking = threading.Thread(target=tick)
    ticking.start()
    try:
        work()
    except grpc.RpcError as error:
        # A text that says nothing is refused, and what asks for it then finds nothing.
        if error.code() not in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND):
            raise
    finally:
        is_over.set()
        ticking.join()
    return 1000 * longest


def calls(service: Stubs, project: str, text: str) -> Iterator[tuple[str, Work]]:
    """Every call that takes the text or shows it, by its name; the project is the text's alone."""
    query, memory = text[:_QUERY_CHARACTERS], note(text, id="m")
    asked = recall.RecallRequest(project=project, query_text=query)
    named = context.MemorySelection(ids=["m"])
    yield "Learn", lambda: service.context.Learn(project=project, memories=[memory])
    yield (
        "UpdateMemory",
        lambda: service.memory.UpdateMemory(project=project, memory=memory, update_mask=FieldMask(paths=["content"])),
    )
    yield "Recall", lambda: service.context.Recall(asked)
    yield "Search", lambda: service.context.Search(project=project, query_text=query)
    yield "Explain", lambda: service.context.Explain(recall=asked, memory_id="m")
    for form in _FORMS:
        request = context.RenderRequest(project=project, memories=named, form=context.RenderForm.ValueType(form))
        yield f"Render {context.RenderForm.Name(form)}", partial(service.context.Render, request)
    yield (
        "RenderTurn",
        lambda: service.context.RenderTurn(render=context.RenderRequest(project=project, recall=asked), turn=1),
    )
    yield "ListMemories", lambda: service.memory.ListMemories(project=project, view=pb.MEMORY_VIEW_FULL)
    yield "CreateSession", lambda: service.session.CreateSession(project=project, id="s")
    side = context.TurnSide(text=text)
    yield "LearnTurn", lambda: service.context.LearnTurn(project=project, session_id="s", user=side, assistant=side)
    yield "ObserveTurn", lambda: service.learning.ObserveTurn(project=project, user_text=text, assistant_text=text)


def main() -> int:
    """Prints a line a call. Gives the exit status."""
    worst: dict[str, tuple[float, str]] = {}
    with TemporaryDirectory() as place:
        model = install_model(Path(place) / "models")
        (Path(place) / "data").mkdir()
        with in_thread(settings(Path(place) / "data", Path(place) / "models", model)) as service:
            tune_interpreter()  # as a service does that runs by itself
            for number, unit in enumerate(_UNITS):
                text = run(unit, _BYTES // len(unit.encode()) * len(unit))
                gaps: dict[str, float] = {}
                for turn in range(_ROUNDS):
                    for name, work in calls(service, f"p{number}-{turn}", text):
                        gaps[name] = min(gaps.get(name, 1e9), longest_gap_ms(work))
                for name, gap in gaps.items():
                    worst[name] = max(worst.get(name, (0.0, "")), (gap, unit))
    idle = min(longest_gap_ms(lambda: time.sleep(0.5)) for _ in range(_ROUNDS))
    print(f"{idle:6.1f} ms  a machine that does nothing")
    for name, (gap, unit) in sorted(worst.items(), key=lambda one: -one[1][0]):
        print(f"{gap:6.1f} ms  {name}  {unit!r}")
    return int(any(gap > MOST_MS for gap, _ in worst.values()))


if __name__ == "__main__":
    sys.exit(main())
