"""`hummock status`: how the service is."""

from __future__ import annotations

from hummock.cli.connection import CALL_TIMEOUT_S, DEFAULT_TARGET, connect
from hummock.cli.options import JsonFlag, TargetOption
from hummock.cli.output import age, print_json, print_line, printable, warn
from hummock.v1 import admin_service_pb2 as pb

__all__ = ["status"]

_MIB = 1 << 20


def status(json: JsonFlag = False, target: TargetOption = DEFAULT_TARGET) -> None:
    """Say what runs, on what, and how full it is."""
    with connect(target) as service:
        response = service.admin.Status(pb.StatusRequest(), timeout=CALL_TIMEOUT_S)
    if json:
        print_json(response)
        return
    model, storage = response.model, response.storage
    up = age(response.uptime.ToNanoseconds() / 86_400e9)
    print_line(f"hummock {response.version} at {target}, up {up}")
    print_line(
        f"  model    {model.name}, {model.dim} dimensions, {model.max_tokens} tokens, {' and '.join(model.scripts)}"
    )
    print_line(f"  space    {model.emb_space}")
    print_line(printable(f"  data     {storage.directory}"))
    print_line(
        f"  store    {storage.used_bytes / _MIB:.1f} of {storage.quota_bytes / _MIB:.0f} MiB, "
        f"{storage.project_count} projects"
    )
    print_line(f"  memory   {storage.loaded_bytes / _MIB:.1f} MiB for {storage.loaded_project_count} loaded projects")
    print_line(f"  calls    {response.running_calls} running, {response.waiting_calls} waiting")
    print_line(f"  learner  {_learner(response.learner)}")
    if model.advice:
        warn(model.advice)


def _learner(learner: pb.LearnerStatus) -> str:
    turns = f"{learner.waiting_turns} turns waiting, {learner.dropped_turns} dropped"
    if not learner.model:
        return f"no language model, keywords come from observed turns; {turns}"
    tokens = f"{learner.prompt_tokens} + {learner.completion_tokens} tokens"
    return printable(f"{learner.model}, {learner.replies} of {learner.requests} requests answered, {tokens}; {turns}")
