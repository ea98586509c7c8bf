"""`hummock setup`: one command that gives the agents on a machine the memory, and takes it out again."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from typer import BadParameter, Option

from hummock_client.channel import DEFAULT_TARGET, is_local
from hummock_tools.cli import options
from hummock_tools.cli.connection import CommandFailed, packages_of, require_packages, require_unix, resolved_target
from hummock_tools.cli.output import confirm, note, print_line, warn

if TYPE_CHECKING:
    from hummock_tools.setup.agents import Machine
    from hummock_tools.setup.config_files import Record
    from hummock_tools.setup.plan import Start, Step

_HTTP_PORT: Final = "7422"
_HOOK_TWIN: Final = "hummock-hook-py"
_VARIABLES: Final = (
    "on Windows hooks know a project or a target from the environment alone; set {}, for example with setx"
)
_OVER_HTTP: Final = (
    "hummock-hook is not on your PATH; its Python twin takes its place, some 20 ms slower, "
    "and calls the service over HTTP. "
    "A service that an agent starts answers that; start one of your own with `hummock serve --http {port}`. "
    "docs/hooks.md says how to build the binary; run `hummock setup` again then"
)
_CACHED: Final = (
    "this installation lies in a cache, {}, and agents will not find it once that is emptied; "
    "install Hummock, for example with `uv tool install`, and run `hummock setup` again"
)


def setup(
    agent: Annotated[
        list[options.AgentName] | None,
        Option("--agent", help="This one, found or not; repeatable. All found if unset."),
    ] = None,
    project: Annotated[
        str,
        Option("--project", "-p", help="One project for all; that of each repository if unset.", callback=options.utf8),
    ] = "",
    target: options.Target = DEFAULT_TARGET,
    dry_run: Annotated[bool, Option("--dry-run", help="Show what would be written; write nothing.")] = False,
    yes: Annotated[bool, Option("--yes", "-y", help="Write without asking.")] = False,
    undo: Annotated[bool, Option("--undo", help="Take out what was written, and nothing else.")] = False,
    as_json: Annotated[bool, Option("--json", help="Print what was done as JSON.")] = False,
) -> None:
    """Give the agents on this machine the memory: tools, hooks, rules and a skill; shows the changes and asks."""
    if undo and agent:
        raise BadParameter(
            "--undo is for all agents; `hummock mcp install --client NAME --remove` takes out one server"
        )
    # The server needs the one, files of Codex the other.
    with packages_of("mcp"):
        require_packages("mcp", "tomlkit")
    from hummock_tools.setup.agents import AGENTS, Machine
    from hummock_tools.setup.config_files import Unchangeable, read_record

    machine = Machine(home=Path.home(), environ=os.environ, platform=sys.platform)
    try:
        record = read_record(machine)
    except Unchangeable as error:
        raise CommandFailed(str(error)) from error
    names = list(agent or (name for name, each in AGENTS.items() if each.is_on(machine)))
    if not names and not undo:
        raise CommandFailed(f"no agent was found; --agent NAME writes for one all the same: {', '.join(AGENTS)}")
    start = _start(project, resolved_target(target))
    notes = [] if undo else _notes(names, start, resolved_target(target))
    steps = _undoing(machine, record, start) if undo else _setting_up(names, machine, record, start)
    needed = [step for step in steps if step.change.is_needed]
    _show(steps, notes)
    if needed and not yes and not dry_run:
        confirm(f"Write {_count(needed)}?", "nothing was written; --yes writes without asking, --dry-run only shows")
    failed = [step for step in steps if step.problem and not step.is_theirs]
    if not dry_run:
        failed += _write([step for step in steps if step not in failed] if undo else needed, record, undo=undo)
    is_written = not dry_run and any(step not in failed for step in needed)
    if as_json:
        print_line(json.dumps(_answer(names, steps, notes, is_written, undo), ensure_ascii=False, indent=2))
    else:
        _tell(names, [step for step in needed if step not in failed], record, is_written=is_written, undo=undo)
    if failed:
        raise CommandFailed(f"{_count(failed)} left alone; see above")


def _start(project: str, target: str) -> Start:
    from hummock_tools.setup.plan import HOOK_PROGRAM, Start

    # By whole paths: agents know no virtual environment. -P: a folder `hummock` of the open repository is not imported.
    hummock = [sys.executable, "-P", "-m", "hummock"]
    hook = shutil.which(HOOK_PROGRAM)
    twin = [sys.executable, "-P", "-m", "hummock_tools.hook"]
    if sys.platform == "win32":
        # Agents give the line to different shells there, which agree on a name of the PATH alone.
        hook = hook and HOOK_PROGRAM
        twin = [_HOOK_TWIN] if shutil.which(_HOOK_TWIN) else twin
    return Start(
        hummock=hummock,
        shell="hummock" if shutil.which("hummock") else shlex.join(hummock),
        project=project,
        target="" if target == DEFAULT_TARGET else target,
        hook=[hook] if hook else twin,
        http_port="" if hook else os.environ.get("HUMMOCK_HTTP_PORT") or _HTTP_PORT,
        platform=sys.platform,
    )


def _notes(names: Sequence[str], start: Start, target: str) -> list[str]:
    """What the user should know of agents that get less than others, and of a service that cannot be started."""
    from hummock_tools.setup.agents import AGENTS

    notes = [
        f"{AGENTS[name].title} does not tell its servers which folder is open, and was left out; "
        f"name a project for it: hummock setup --agent {name} --project NAME"
        for name in names
        if start.server(AGENTS[name]) is None
    ]
    if start.http_port and any(AGENTS[name].hooks for name in names):
        notes.append(_OVER_HTTP.format(port=start.http_port))
    given = {"HUMMOCK_PROJECT": start.project, "HUMMOCK_TARGET": start.target}
    if start.platform == "win32" and (wanted := [f"{name}={value}" for name, value in given.items() if value]):
        notes.append(_VARIABLES.format(" and ".join(wanted)))
    if (cache := _cache_around(Path(sys.prefix))) is not None:
        notes.append(_CACHED.format(cache))
    if is_local(target) and (lack := _lack_of_a_service()):
        notes.append(f"agents find a service that listens at {target}, but start none: {lack}")
    return notes


def _cache_around(environment: Path) -> Path | None:
    """The cache that holds an environment, as that of `uvx`; None if none does.

    A cache is known by its tag. The environment's own is passed over, for uv puts one into those that last, too.
    """
    return next((folder for folder in environment.parents if (folder / "CACHEDIR.TAG").is_file()), None)


def _lack_of_a_service() -> str:
    """Why this installation cannot start the service, and what to do; empty if it can."""
    try:
        require_unix()
        with packages_of("server"):
            require_packages("lmdb", "onnxruntime", "numba")
    except CommandFailed as failure:
        return str(failure)
    return ""


def _setting_up(names: Sequence[str], machine: Machine, record: Record, start: Start) -> list[Step]:
    from hummock_tools.setup.plan import planned_files, setting_up

    return [setting_up(each, record) for each in planned_files(names, machine, start)]


def _undoing(machine: Machine, record: Record, start: Start) -> list[Step]:
    from dataclasses import replace

    from hummock_tools.setup.agents import AGENTS
    from hummock_tools.setup.plan import planned_files, undoing

    every_part = replace(start, project="any")
    known = {each.path: each for each in planned_files(AGENTS, machine, every_part)}
    # The last one first: folders that were made for the first hold the others.
    return [undoing(path, known, record) for path in reversed(record.paths)]


def _show(steps: Sequence[Step], notes: Sequence[str]) -> None:
    """Shows changes as diffs; of a new text for models the name alone, since it is long."""
    for step in steps:
        if step.problem:
            warn(step.problem if str(step.planned.path) in step.problem else f"{step.planned.path} {step.problem}")
        elif step.change.is_needed:
            parts = ", ".join(each.part for each in step.planned.edits)
            is_new_text = step.change.before is None and parts not in {"MCP server", "hooks"}
            note(f"{step.planned.path} ({parts})\n{'(new)' if is_new_text else step.change.diff}\n")
    for each in notes:
        note(each)


def _write(steps: Sequence[Step], record: Record, *, undo: bool) -> list[Step]:
    """Writes, and returns the steps that failed, each with a warning."""
    from hummock_tools.setup.config_files import Unchangeable

    failed = []
    for step in steps:
        try:
            if undo:
                record.undo(step.change)
            else:
                record.write(step.change, step.base)
        except Unchangeable as error:
            warn(str(error))
            failed.append(step)
    return failed


def _answer(
    names: Sequence[str], steps: Sequence[Step], notes: Sequence[str], is_written: bool, undo: bool
) -> dict[str, Any]:
    from hummock_tools.setup.agents import AGENTS

    return {
        "agents": [{"name": name, "title": AGENTS[name].title} for name in names],
        "files": [
            {
                "path": str(step.planned.path),
                "agents": step.planned.agents,
                "parts": [each.part for each in step.planned.edits],
                "action": _action(step),
                "problem": step.problem,
                "diff": step.change.diff,
            }
            for step in steps
        ],
        "notes": list(notes),
        "is_written": is_written,
        "is_undone": is_written and undo,
    }


def _action(step: Step) -> str:
    """What becomes of a file: create, change, remove, keep (it is as it should be) or leave (see the problem)."""
    if step.problem:
        return "leave"
    if not step.change.is_needed:
        return "keep"
    if step.change.before is None:
        return "create"
    return "remove" if step.change.after is None else "change"


def _tell(names: Sequence[str], needed: Sequence[Step], record: Record, *, is_written: bool, undo: bool) -> None:
    from hummock_tools.setup.agents import AGENTS

    if not needed:
        return print_line("nothing of it is left" if undo else "everything is as it should be; nothing written")
    if not is_written:
        return print_line(f"{_count(needed)} would be written")
    if undo:
        return print_line(f"{_count(needed)} as before")
    print_line(f"{_count(needed)} written; what was there before lies in {record.folder}")
    for name in names:
        if any(name in step.planned.agents for step in needed):
            hooks = AGENTS[name].hooks
            steps = [AGENTS[name].next_step, hooks.next_step if hooks else ""]
            print_line(f"{AGENTS[name].title}: {'; '.join(filter(None, steps))}")


def _count(steps: Sequence[Step]) -> str:
    return f"{len(steps)} file{'' if len(steps) == 1 else 's'}"
