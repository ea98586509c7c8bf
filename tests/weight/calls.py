"""The calls whose weight is counted, and what the project holds that they are made to."""

from __future__ import annotations

from collections.abc import Callable

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import project_service_pb2 as project
from hummock_client.v1 import recall_pb2 as recall
from tests.service.inputs import note
from tests.service.running import Stubs

PROJECT = "weighed"
QUESTION = "先本后息的还款怎么算"
_FIRST = 99


def prepare(service: Stubs) -> None:
    """Teaches what is asked for, and makes each call once so that nothing is done for the first time."""
    memories = [
        note(f"还款 number {each} is parsed by parseDate of the repay module", id=f"m{each}") for each in range(8)
    ]
    service.context.Learn(context.LearnRequest(project=PROJECT, memories=memories))
    for call in calls_of(service).values():
        call(_FIRST)
    # On busy cores a memory may wait for its vectors, and a prompt shows it as long as nothing else is known of it.
    for state in service.project.WatchProject(project.WatchProjectRequest(project=PROJECT)):
        if not state.pending_count:
            break


def calls_of(service: Stubs) -> dict[str, Callable[[int], object]]:
    """Calls by name; the number makes one call differ from the next, but for the cached one."""

    def ask(text: str) -> recall.RecallRequest:
        return recall.RecallRequest(project=PROJECT, query_text=text)

    def turn(number: int) -> context.RenderTurnRequest:
        wanted = context.RenderRequest(project=PROJECT, recall=ask(f"{QUESTION}，第 {number} 回"))
        return context.RenderTurnRequest(render=wanted, scope="talk", turn=number + 1)

    def learn(number: int) -> context.LearnRequest:
        # The one that is there when turns are rendered has an id, for ids that are made break ties.
        memory_id = "s" if number == _FIRST else ""
        memories = [note(f"sentence number {number} of many", id=memory_id)]
        return context.LearnRequest(project=PROJECT, memories=memories)

    return {
        "Recall": lambda number: service.context.Recall(ask(f"{QUESTION} {number}")),
        "Recall, cached": lambda _: service.context.Recall(ask(QUESTION)),
        "RenderTurn": lambda number: service.context.RenderTurn(turn(number)),
        "Learn": lambda number: service.context.Learn(learn(number)),
    }
