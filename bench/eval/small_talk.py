"""Months of chats with a companion: how much of a prompt is small talk, and whether old facts are found.

Each day has some turns, most of which are small talk, and now and then one tells a fact or an event. All are learnt by
LearnTurn into two projects: one keeps small talk, one does not, as by default. Then old facts are asked for, and things
are said on which nothing is known. Counted is what the MEMORIES form shows under CHAT.

    python -m bench.eval.small_talk --model minilm-multilingual

The chats are ours and made with a seed. The tables of `hummock.text.small_talk` got some of their words afterwards, so
the share is a lower bound. What the tables know of lines that they were not made for is said below.
"""

from __future__ import annotations

import random
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from google.protobuf.field_mask_pb2 import FieldMask

from bench.eval.answers import arguments_parser, installed
from bench.eval.small_talk_lines import LINES, Lines
from bench.service import Bench, BenchFailed, Serving, say
from hummock.core.errors import HummockError
from hummock.text.small_talk import tells_nothing
from hummock_client.v1 import context_service_pb2 as pb
from hummock_client.v1 import project_service_pb2, recall_pb2, session_service_pb2, settings_pb2
from hummock_client.v1.context_service_pb2_grpc import ContextServiceStub
from hummock_client.v1.project_service_pb2_grpc import ProjectServiceStub
from hummock_client.v1.session_service_pb2_grpc import SessionServiceStub

DAYS = 180
TURNS_A_DAY = 3
SEED = 20261128
_SMALL_TALK_SHARE = 0.8
"""Share of small talk among the turns that tell no fact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What the prompts of one project showed."""

    name: str
    small_talk: int
    shown: int
    found: int
    asked: int

    def line(self) -> str:
        """A row of the table."""
        share = self.small_talk / self.shown if self.shown else 0.0
        return f"| {self.name} | {self.shown} | {share:.0%} | {self.found} of {self.asked} |"


def turns_of(lines: Lines, seed: int = SEED) -> Iterator[tuple[str, str]]:
    """Yield the turns of all days, user and answer; facts come in the first half, each once."""
    draw = random.Random(seed)  # noqa: S311 - a seed, not a secret
    count = DAYS * TURNS_A_DAY
    places = dict(zip(draw.sample(range(count // 2), len(lines.facts)), lines.facts, strict=True))
    for place in range(count):
        if place in places:
            yield places[place].told, draw.choice(lines.answers)
        elif draw.random() < _SMALL_TALK_SHARE:
            yield draw.choice(lines.small_talk), draw.choice(lines.greetings)
        else:
            yield draw.choice(lines.events).format(draw.choice(lines.things)), draw.choice(lines.answers)


def measure(service: Serving, language: str, policy: settings_pb2.SmallTalkPolicy.ValueType) -> Figures:
    """Learn the chats under a policy, and count what prompts show."""
    lines, name = LINES[language], settings_pb2.SmallTalkPolicy.Name(policy).removeprefix("SMALL_TALK_POLICY_").lower()
    project = f"chats-{language}-{name}"
    _learn(service, project, lines, policy)
    context = ContextServiceStub(service.channel)
    talk = {*lines.small_talk, *lines.greetings}
    found = small = shown = 0
    for fact in lines.facts:
        texts = _shown(context, project, fact.asked)
        found += any(fact.told in text for text in texts)
        small, shown = small + sum(_says(text) in talk for text in texts), shown + len(texts)
    for said in (*lines.small_talk[:20], *lines.said[:20]):
        texts = _shown(context, project, said)
        small, shown = small + sum(_says(text) in talk for text in texts), shown + len(texts)
    return Figures(name=f"{language}, {name}", small_talk=small, shown=shown, found=found, asked=len(lines.facts))


def _learn(service: Serving, project: str, lines: Lines, policy: settings_pb2.SmallTalkPolicy.ValueType) -> None:
    ProjectServiceStub(service.channel).UpdateProjectSettings(
        project_service_pb2.UpdateProjectSettingsRequest(
            project=project,
            settings=settings_pb2.ProjectSettings(turns=settings_pb2.TurnSettings(small_talk=policy)),
            update_mask=FieldMask(paths=["turns.small_talk"]),
        )
    )
    SessionServiceStub(service.channel).CreateSession(
        session_service_pb2.CreateSessionRequest(project=project, id="chat")
    )
    batches = (
        pb.LearnStreamRequest(
            learn_turn=pb.LearnTurnRequest(
                project=project, session_id="chat", user=pb.TurnSide(text=user), assistant=pb.TurnSide(text=answer)
            )
        )
        for user, answer in turns_of(lines)
    )
    for reply in ContextServiceStub(service.channel).LearnStream(batches):
        if reply.HasField("failed"):
            raise BenchFailed(f"a turn was not learnt: {reply.failed.message}")


def _shown(context: ContextServiceStub, project: str, text: str) -> Sequence[str]:
    """The lines of a prompt's memories."""
    reply = context.Render(
        pb.RenderRequest(
            project=project,
            recall=recall_pb2.RecallRequest(query_text=text, preset=recall_pb2.PRESET_CHAT),
            form=pb.RENDER_FORM_MEMORIES,
        )
    )
    return [line for line in reply.text.split("\n") if line.startswith("- [")]


def _says(line: str) -> str:
    """The text of a line, behind its time and origin."""
    return line.partition("] ")[2]


def main() -> None:
    """The command line: a table to stdout."""
    given = arguments_parser(__doc__).parse_args()
    try:
        for model in given.model or installed(given.models_dir):
            directory = given.dir / "small_talk" / model
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(parents=True)
            say(f"{model}: {DAYS} days of {TURNS_A_DAY} turns")
            print("| chats | memories shown | of them small talk | facts found |\n|---|---:|---:|---:|")
            with Bench.prepare(directory, model, given.models_dir).serving() as service:
                for language in LINES:
                    for policy in (settings_pb2.SMALL_TALK_POLICY_KEEP, settings_pb2.SMALL_TALK_POLICY_SKIP):
                        print(measure(service, language, policy).line())
            for language, lines in LINES.items():
                known = sum(map(tells_nothing, lines.held_out))
                print(f"\n{language}: {known} of {len(lines.held_out)} lines in no chat are known as small talk")
    except (BenchFailed, HummockError, OSError) as failed:
        sys.exit(f"error: {failed}")


if __name__ == "__main__":
    main()
