"""`hummock projects`, `status` and `health`: projects, their settings, and how the service is."""

from __future__ import annotations

import json as json_lib
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer
from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.json_format import ParseDict, ParseError
from typer import Argument, Option

from hummock_client.channel import DEFAULT_TARGET
from hummock_client.requests import enum_word, new_request_id
from hummock_client.v1 import admin_service_pb2 as pb
from hummock_client.v1 import memory_pb2, recall_pb2, settings_pb2
from hummock_client.v1 import project_service_pb2 as projects_pb
from hummock_tools.cli import options
from hummock_tools.cli.connection import CommandFailed, connect, packages_of
from hummock_tools.cli.output import age, ask, cell, new_table, print_json, print_line, print_page, print_table, warn

_MIB = 1 << 20
_MOST = 5
"""Largest number of methods, and of failure reasons, that are listed."""
_HEALTH_TIMEOUT_S = 3.0


def print_activity(activity: pb.Activity) -> None:
    """Print rates, times by stage, failures, and sizes of caches and indexes."""
    processes = f"{activity.process_count} processes" if activity.process_count > 1 else "one process"
    recall = next((each for each in activity.methods if each.method.endswith("ContextService/Recall")), None)
    rate = recall.rate if recall else 0.0
    print_line(f"  recalls  {rate:.2f}/s in the last minute, {activity.recall_count} since the start, by {processes}")
    if recall and recall.latency.count:
        minutes = activity.window.seconds / 60
        print_line(f"  latency  p50 {_quantiles(recall.latency)} ms of Recall in the last {minutes:.0f} min")
    for stage in activity.stages:
        name = enum_word(recall_pb2.RecallStage, stage.stage).replace(" ", "_")
        print_line(f"    {name:<18} p50 {_quantiles(stage.latency)} ms, {stage.latency.count} times")
    calls = sorted(activity.methods, key=lambda each: -(each.ok_count + each.failed_count))
    shown = [f"{each.ok_count + each.failed_count} {each.method.rpartition('/')[2]}" for each in calls[:_MOST]]
    if shown:
        print_line(f"  since    {', '.join(shown)}")
    if activity.failures:
        failed = ", ".join(f"{each.count} {each.reason}" for each in activity.failures[:_MOST])
        print_line(f"  failed   {failed}")
    print_line(
        f"  cache    {activity.cached_answer_count} answers, {activity.cached_bytes / _MIB:.1f} MiB; "
        f"{activity.cache_hit_count} of {activity.recall_count} recalls came from it"
    )
    print_line(
        f"  indexes  {activity.loaded_index_count} in memory, {activity.loaded_index_bytes / _MIB:.1f} MiB, "
        f"{activity.evicted_index_count} given up; {activity.lag_operation_count} operations behind at most"
    )
    print_line(
        f"  slots    {activity.busy_slot_count} texts being embedded, {activity.model_slot_count} at a time; "
        f"{activity.waiting_text_count} wait"
    )


def _quantiles(latency: pb.Latency) -> str:
    p50, p95, p99 = (f"{span.ToNanoseconds() / 1e6:.2f}" for span in (latency.p50, latency.p95, latency.p99))
    return f"{p50}, p95 {p95}, p99 {p99}"


app = typer.Typer(no_args_is_help=True, help="List projects, and say what prompts tell of them and what recalls mean.")
settings = typer.Typer(no_args_is_help=True, help="Show and change what a project's requests mean by default.")
app.add_typer(settings, name="settings")


NameArgument = Annotated[str, Argument(metavar="PROJECT", envvar="HUMMOCK_PROJECT", callback=options.utf8)]
# Where more arguments follow, the environment cannot stand in for the first.
FirstNameArgument = Annotated[str, Argument(metavar="PROJECT", callback=options.utf8)]


@app.command("ls")
def ls(
    limit: Annotated[int, Option("--limit", min=1, max=1000, help="Projects of one page.")] = 100,
    page: options.Page = "",
    json: options.Json = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """List projects by name."""
    request = projects_pb.ListProjectsRequest(page_size=limit, page_token=page)
    response = ask(target, lambda service: service.projects.ListProjects, request, json=json)
    table = new_table({"project": 2, "memories": "right", "pending": "right", "writes": "right", "tech stack": 3})
    for project in response.projects:
        counts = map(str, (project.memory_count, project.pending_count, project.seq))
        table.add_row(cell(project.name), *counts, cell(", ".join(project.info.tech_stack)))
    print_page(table, "no projects; the first `hummock learn` makes one", response.next_page_token)


@app.command("show")
def show(name: NameArgument, json: options.Json = False, target: options.Target = DEFAULT_TARGET) -> None:
    """Print one project."""
    request = projects_pb.GetProjectRequest(project=name)
    response = ask(target, lambda service: service.projects.GetProject, request, json=json)
    _print_project(response.project)


@app.command("set")
def set_info(
    name: NameArgument,
    tech: Annotated[list[str] | None, Option("--tech", help="Part of the tech stack; repeatable.")] = None,
    path: Annotated[str | None, Option("--path", help="Where the project lies for its users.")] = None,
    json: options.Json = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """Change what prompts tell of a project; creates it when it does not exist."""
    paths = (["tech_stack"] if tech else []) + (["path"] if path is not None else [])
    if not paths:
        raise typer.BadParameter("nothing to change: give --tech or --path")
    request = projects_pb.UpdateProjectRequest(
        project=name,
        request_id=new_request_id(),
        info=projects_pb.ProjectInfo(tech_stack=tech or (), path=path or ""),
        update_mask=FieldMask(paths=paths),
    )
    response = ask(target, lambda service: service.projects.UpdateProject, request, json=json)
    _print_project(response.project)


@settings.command("get")
def get(
    name: FirstNameArgument,
    path: Annotated[str, Argument(metavar="[PATH]", help="One setting, or a group such as chat.")] = "",
    json: options.Json = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """Show every value that applies, and who says it."""
    request = projects_pb.GetProjectSettingsRequest(project=name)
    response = ask(target, lambda service: service.projects.GetProjectSettings, request)
    if path:
        if not any(_is_named(known, [path]) for known, _ in _fields(response.effective)):
            raise typer.BadParameter(f"there is no setting {path!r}; `hummock projects settings get {name}` lists them")
        for shown in (response.settings, response.effective, response.defaults):
            kept = settings_pb2.ProjectSettings()
            FieldMask(paths=[path]).MergeMessage(shown, kept)
            shown.CopyFrom(kept)
    if json:
        return print_json(response)
    _print_settings(response, [path] if path else ())


@settings.command("set")
def set_values(
    name: FirstNameArgument,
    values: Annotated[
        list[str], Argument(metavar="PATH=VALUE...", help='For example chat.top_k=8, "chat.origins=manual,ai_output".')
    ],
    json: options.Json = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """Give settings values; the next request follows them. Creates the project when it does not exist."""
    chosen = settings_pb2.ProjectSettings()
    paths = [_read(chosen, given) for given in values]
    _change(name, chosen, paths, target, json=json)


@settings.command("unset")
def unset(
    name: FirstNameArgument,
    paths: Annotated[list[str], Argument(metavar="PATH...", help="For example chat.top_k, or chat for all of it.")],
    json: options.Json = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """Let settings return to their defaults."""
    _change(name, settings_pb2.ProjectSettings(), paths, target, json=json)


def status(json: options.Json = False, target: options.Target = DEFAULT_TARGET) -> None:
    """Say what runs, on what, and how full it is."""
    response = ask(target, lambda service: service.admin.GetStatus, pb.GetStatusRequest(), json=json)
    model, storage = response.model, response.storage
    scripts = " and ".join(enum_word(pb.Script, each) for each in model.scripts)
    up = age(response.uptime.ToNanoseconds() / 86_400e9)
    print_line(f"hummock {response.version} at {target}, up {up}")
    print_line(f"  model    {model.name}, {model.dim} dimensions, {model.max_tokens} tokens, {scripts}")
    print_line(f"  space    {model.emb_space}")
    print_line(f"  data     {storage.directory}")
    print_line(
        f"  store    {storage.used_bytes / _MIB:.1f} of {storage.quota_bytes / _MIB:.0f} MiB, "
        f"{storage.project_count} projects"
    )
    print_line(f"  memory   {storage.loaded_bytes / _MIB:.1f} MiB for {storage.loaded_project_count} loaded projects")
    if response.embedding.pending_count:
        print_line(f"  vectors  {_embedding(response.embedding)}")
    print_line(f"  calls    {response.running_calls} running, {response.waiting_calls} waiting")
    print_line(f"  learner  {_learner(response.learner)}")
    if storage.HasField("clock_ahead"):
        ahead = f"the clock jumped ahead by {storage.clock_ahead.ToNanoseconds() / 1e9:.0f} s"
        warn(f"{ahead}; nothing is forgotten for good until it has gone evenly for 10 minutes")
    if response.HasField("activity"):
        print_activity(response.activity)
    if model.advice:
        warn(model.advice)


def health(json: options.Json = False, target: options.Target = DEFAULT_TARGET) -> None:
    """Ask by gRPC's health protocol whether the service takes calls; ends with 1 if not. It needs no token."""
    with packages_of("server"):
        from grpc_health.v1 import health_pb2, health_pb2_grpc
    with connect(target) as service:
        check = health_pb2_grpc.HealthStub(service.channel).Check
        reply = check(health_pb2.HealthCheckRequest(), timeout=_HEALTH_TIMEOUT_S)
    is_serving = reply.status == health_pb2.HealthCheckResponse.SERVING
    if json:
        print_json(reply)
    elif is_serving:
        print_line("SERVING")
    if not is_serving:
        said = health_pb2.HealthCheckResponse.ServingStatus.Name(reply.status)
        raise CommandFailed(f"{target} says {said}: it is starting, stopping, or cannot write; its log says why")


def _embedding(embedding: pb.EmbeddingStatus) -> str:
    said = f"{embedding.pending_count} memories wait for theirs, {embedding.rate:.0f}/s"
    if embedding.HasField("time_left"):
        said += f", {embedding.time_left.ToNanoseconds() / 1e9:.0f} s left"
    if embedding.failed_count:
        said += f"; the model failed on {embedding.failed_count}, which the next start tries again"
    return said


def _print_project(project: projects_pb.ProjectDetails) -> None:
    print_line(project.name)
    if project.info.tech_stack:
        print_line(f"  tech stack  {', '.join(project.info.tech_stack)}")
    if project.info.path:
        print_line(f"  path        {project.info.path}")
    kinds = ", ".join(f"{each.count} {enum_word(memory_pb2.MemoryKind, each.kind).upper()}" for each in project.kinds)
    print_line(f"  memories    {project.memory_count}{f' ({kinds})' if kinds else ''}")
    if project.pending_count:
        print_line(f"  vectors     {project.pending_count} memories wait for theirs")
    if project.HasField("graph"):
        print_line(f"  graph       {graph_line(project.graph)}")
    if project.HasField("feedback"):
        said = project.feedback
        print_line(f"  feedback    {said.helpful} helpful, {said.not_helpful} not helpful, {said.wrong} wrong")
    print_line(f"  seq         {project.seq} (content {project.content_seq})")
    print_line(f"  space       {project.emb_space}")
    print_line(f"  created     {project.create_time.ToJsonString()}")


def graph_line(graph: projects_pb.GraphStatus) -> str:
    """What became of a project's graph, for people."""
    state = enum_word(projects_pb.GraphState, graph.state)
    if graph.state not in (projects_pb.GRAPH_STATE_KEPT, projects_pb.GRAPH_STATE_DROPPED):
        return state
    finds = f"{graph.recall:.3f} of the nearest 50 in {graph.time_share:.2f} of the time of sign bits"
    return f"{state}, {graph.row_count} vectors, {finds}{f'; {graph.reason}' if graph.reason else ''}"


def _print_settings(
    reply: projects_pb.GetProjectSettingsResponse | projects_pb.UpdateProjectSettingsResponse, paths: Sequence[str] = ()
) -> None:
    """Every value that applies; where paths are given, theirs."""
    table = new_table({"setting": "left", "value": 0, "said by": "left", "default": 0})
    own, defaults = dict(_fields(reply.settings)), dict(_fields(reply.defaults))
    for path, value in _fields(reply.effective):
        if paths and not _is_named(path, paths):
            continue
        is_own = bool(own[path])
        table.add_row(path, cell(value), "project" if is_own else "default", cell(defaults[path] if is_own else ""))
    print_table(table)


def _fields(settings: settings_pb2.ProjectSettings) -> Iterator[tuple[str, str]]:
    """Yield the path of every setting with its displayed value; empty if unset."""
    for group in settings.DESCRIPTOR.fields:
        message = getattr(settings, group.name)
        said = dict(message.ListFields())
        for each in message.DESCRIPTOR.fields:
            yield f"{group.name}.{each.name}", _shown(each, said[each]) if each in said else ""


def _shown(field: FieldDescriptor, value: Any) -> str:
    if field.enum_type is None:
        return f"{value:g}" if isinstance(value, float) else str(value)
    names = [field.enum_type.values_by_number[number].name for number in (value if field.is_repeated else [value])]
    return ", ".join(name.removeprefix(_prefix(field.enum_type)).lower() for name in names)


def _change(name: str, chosen: settings_pb2.ProjectSettings, paths: Sequence[str], target: str, *, json: bool) -> None:
    request = projects_pb.UpdateProjectSettingsRequest(
        project=name, request_id=new_request_id(), settings=chosen, update_mask=FieldMask(paths=paths)
    )
    response = ask(target, lambda service: service.projects.UpdateProjectSettings, request, json=json)
    _print_settings(response, paths)


def _is_named(path: str, paths: Sequence[str]) -> bool:
    return any(path == named or path.startswith(f"{named}.") for named in paths)


def _read(chosen: settings_pb2.ProjectSettings, given: str) -> str:
    """Puts one PATH=VALUE into the message; returns the path."""
    path, equals, text = given.partition("=")
    group, _, field_name = path.partition(".")
    is_group = bool(equals) and group in chosen.DESCRIPTOR.fields_by_name
    field = getattr(chosen, group).DESCRIPTOR.fields_by_name.get(field_name) if is_group else None
    if field is None:
        raise typer.BadParameter(f"{given!r} is not PATH=VALUE with a path such as chat.top_k")
    try:
        ParseDict({field_name: _value(field, text)}, getattr(chosen, group))
    except (ParseError, ValueError) as error:
        raise typer.BadParameter(f"{path}: {text!r} is not one of its values; it takes {_wanted(field)}") from error
    return path


def _value(field: FieldDescriptor, text: str) -> Any:
    if field.enum_type is None:
        return text if field.type == field.TYPE_STRING else json_lib.loads(text)
    prefix = _prefix(field.enum_type)
    names = [prefix + name.strip().upper() for name in text.split(",")]
    return names if field.is_repeated else ",".join(names)


def _wanted(field: FieldDescriptor) -> str:
    if field.enum_type is None:
        return "a name" if field.type == field.TYPE_STRING else "a number"
    names = [name.removeprefix(_prefix(field.enum_type)).lower() for name in field.enum_type.values_by_name]
    return ", ".join(names[1:]) + (", or several with commas between" if field.is_repeated else "")


def _prefix(enum: EnumDescriptor) -> str:
    """Common prefix of the names of an enum's values; the first value is ..._UNSPECIFIED."""
    return str(enum.values[0].name).removesuffix("UNSPECIFIED")


def _learner(learner: pb.LearnerStatus) -> str:
    turns = f"{learner.waiting_turns} turns waiting, {learner.dropped_turns} dropped"
    if not learner.model:
        return f"no language model, keywords come from observed turns; {turns}"
    tokens = f"{learner.prompt_tokens} + {learner.completion_tokens} tokens"
    return f"{learner.model}, {learner.replies} of {learner.requests} requests answered, {tokens}; {turns}"
