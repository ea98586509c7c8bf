"""`hummock demo`: the whole of it on one screen, on real input."""

from __future__ import annotations

import re
import sys
import time
from contextlib import redirect_stderr
from pathlib import Path
from typing import Annotated

from typer import Option

from hummock_client.v1 import context_service_pb2, memory_pb2, memory_service_pb2
from hummock_client.v1.admin_service_pb2 import GetStatusRequest
from hummock_tools.cli import options
from hummock_tools.cli.background import running_service
from hummock_tools.cli.connection import CALL_TIMEOUT_S, CommandFailed, Service, connect
from hummock_tools.cli.index import await_vectors, index_repository, print_report
from hummock_tools.cli.learn import store
from hummock_tools.cli.output import note, print_line
from hummock_tools.cli.recall import FormName, print_recall, print_rendered
from hummock_tools.demo import load_sample, sample_repository

_PORT = 7420
_REPOSITORY = "demo"
_SAMPLE = "repayment"
_PAGE_MEMORIES = 200


def demo(
    data: Annotated[Path, Option("--data", help="The demo's own data directory.")] = Path(".demo"),
    repo: Annotated[Path, Option("--repo", help="The repository to index.")] = Path(),
    leave: Annotated[
        bool, Option("--exit", envvar="DEMO_EXIT", help="End after the answers instead of serving on.")
    ] = False,
) -> None:
    """Start the service, learn a sample, index a repository, ask three questions; then serve until Ctrl-C."""
    started_s = time.monotonic()
    with running_service(data, _PORT) as child:
        with connect(child.target) as service:
            _learn_sample(service)
            questions = load_sample().questions
            _ask(service, _SAMPLE, questions["zh"], "code", "context")
            first_s = time.monotonic() - started_s
            _ask(service, _SAMPLE, questions["en"], "agent", "waterfall")
            note(f"indexing {repo.absolute()} into project {_REPOSITORY}")
            print_report(index_repository(service, repo, _REPOSITORY), note)
            # A repository without code, a folder of documents for example, has no symbol to ask for.
            symbol = _symbol(service)
            project = _REPOSITORY if symbol else _SAMPLE
            _ask(service, project, symbol or questions["code"], "code", "context")
            pending = service.admin.GetStatus(GetStatusRequest(), timeout=CALL_TIMEOUT_S).embedding.pending_count
        took_s = time.monotonic() - started_s
        took = f"the first answer came after {first_s:.1f} s, the last after {took_s:.1f} s"
        print_line(f"\n{took}; the data is in {data}")
        if pending:
            shown = "follow in the background: `hummock status` shows how far they are"
            come = "are made when it serves again" if leave else shown
            print_line(f"{pending} memories are found by words and names; their vectors {come}")
        if leave:
            return
        print_line(f"serving on {child.target}; Ctrl-C ends it. In another terminal:")
        print_line(f"  hummock recall '还款方式有哪些' --project {_SAMPLE} --target {child.target}")
        sys.stdout.flush()
        status = child.wait()
    raise CommandFailed(f"the service ended by itself, with status {status}")


def _learn_sample(service: Service) -> None:
    """Index the sample's repository and learn the sample, with vectors; a second run changes nothing."""
    note(f"indexing the sample's Java project into project {_SAMPLE}")
    with sample_repository() as folder:
        print_report(index_repository(service, folder, _SAMPLE), note)
    counts = store(service, _SAMPLE, load_sample().memories)
    note(f"learnt the sample: {', '.join(f'{count} {status}' for status, count in sorted(counts.items()))}")
    if counts["failed"]:
        raise CommandFailed("the sample could not be learnt; the reasons stand above")
    await_vectors(service, _SAMPLE)


def _ask(service: Service, project: str, text: str, preset: options.PresetName, form: FormName) -> None:
    recall = options.recall_request(project, text, preset)
    recalled = service.context.Recall(recall, timeout=CALL_TIMEOUT_S)
    wanted = context_service_pb2.RenderForm.Value(f"RENDER_FORM_{form.upper()}")
    request = context_service_pb2.RenderRequest(project=project, recall=recall, form=wanted)
    rendered = service.context.Render(request, timeout=CALL_TIMEOUT_S)
    sys.stderr.flush()
    # One stream, so that a file or a pipe gets the answer in its order.
    with redirect_stderr(sys.stdout):
        print_line(f"\n━━ {project} · {preset} ━━ {text}\n")
        print_recall(recalled, project)
        heading = f"── rendered, {form}, {rendered.budget_tokens} tokens at most ──"
        print_line(f"\n{heading}\n{rendered.text}\n")
        print_rendered(rendered, project)
    sys.stdout.flush()


def _symbol(service: Service) -> str:
    """A name of the indexed repository that is worth asking for: of several words; empty when there is none."""
    request = memory_service_pb2.ListMemoriesRequest(
        project=_REPOSITORY,
        filter=memory_pb2.MemoryFilter(kinds=[memory_pb2.MEMORY_KIND_CODE_FRAGMENT]),
        page_size=_PAGE_MEMORIES,
        view=memory_pb2.MEMORY_VIEW_FULL,
    )
    memories = service.memories.ListMemories(request, timeout=CALL_TIMEOUT_S).memories
    names = {memory.code_fragment.symbol.rpartition(".")[2] for memory in memories}
    worth_asking = sorted(name for name in names if re.fullmatch(r"[a-z]+([A-Z][a-z]+|_[a-z]+){1,3}", name))
    return max(worth_asking, key=len, default="")
