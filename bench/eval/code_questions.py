"""Questions about English code as Chinese developers ask them, each with its English twin (set `code`).

Asked of this repository as one commit has it, and of two libraries whose sources the environment holds. The questions
are ours (`data/code_questions.tsv`); the libraries' code is read where it is installed and never kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.eval.answers import REPOSITORY
from bench.eval.indexed import Indexed, SetSkipped, at_commit, of_package, on_disk
from bench.eval.made import drawn
from bench.eval.noise import noise_slices, rows
from bench.eval.sets import Corpus, Question, Slice
from bench.eval.ways import AGENT, CODE, Way
from bench.service import say
from hummock_tools.indexing.chunker import SourceFile

COMMIT = "173bbb4"
"""Commit of the tree that the questions are about."""
FOLDERS = ("service/hummock", "kernels/hummock_kernels", "clients/python/hummock_client", "service/setup")
"""Indexed folders of this repository: without tests, whose names say in words what the code does."""
PACKAGES = {"click": "8.5.1", "starlette": "1.10.0"}
"""Versions that the questions were written for, those of our lock files."""

_WAYS = (AGENT, CODE)
_LANGUAGES = ("zh", "en")

MOST_NAMES = 120
"""Names that are asked for in every case; drawn from those that one definition of all three repositories has."""
_SNAKE = re.compile(r"[a-z][a-z0-9]*(?:_[a-z][a-z0-9]*)+")


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeQuestion:
    """A question in both languages, and the function or class that answers it."""

    id: str
    repository: str
    file: str
    symbol: str
    text: Mapping[str, str]


def code_questions() -> list[CodeQuestion]:
    """The questions of the file, in its order."""
    return [
        CodeQuestion(id=id_, repository=repository, file=file, symbol=symbol, text={"zh": zh, "en": en})
        for id_, repository, file, symbol, zh, en in rows("code_questions.tsv")
    ]


def code(_: Path) -> Corpus:
    """The three repositories, a project each. Raises: SetSkipped, where none can be had."""
    trees = {name: Indexed.of(files) for name, files in _sources().items() if files}
    if not trees:
        raise SetSkipped("neither this repository nor a library is there")
    return Corpus(
        name="code",
        projects={project_of(name): tree.memories() for name, tree in trees.items()},
        slices=(
            *question_slices(code_questions(), trees, say),
            *_noise(trees),
            *name_slices(trees),
            *class_slices(trees),
        ),
    )


def name_slices(trees: Mapping[str, Indexed]) -> Iterator[Slice]:
    """Look-ups of functions and methods by their names, as written and in four other cases."""
    defined: dict[str, list[tuple[str, str]]] = {}
    for repository, tree in trees.items():
        for fragment in tree.fragments:
            name = fragment.symbol.rpartition(".")[2]
            if _SNAKE.fullmatch(name) and (repository, fragment.id) not in defined.get(name, ()):
                defined.setdefault(name, []).append((repository, fragment.id))
    once = {name: places[0] for name, places in defined.items() if len(places) == 1}
    names = sorted(drawn(once, MOST_NAMES))
    for case, write in _CASES.items():
        questions = tuple(
            Question(
                id=f"name:{name}",
                project=project_of(once[name][0]),
                text=write(name.split("_")),
                relevant=frozenset({once[name][1]}),
            )
            for name in names
        )
        yield Slice(set="names", name=case, questions=questions, way=AGENT)


def class_slices(trees: Mapping[str, Indexed]) -> Iterator[Slice]:
    """Questions what a class does, for the fragment that has its documentation; of classes that are defined once."""
    defined: dict[str, list[tuple[str, str]]] = {}
    for repository, tree in trees.items():
        for fragment in tree.fragments:
            if _DOCUMENTED.match(fragment.content):
                name = fragment.symbol.rpartition(".")[2]
                defined.setdefault(name, []).append((repository, fragment.id))
    once = {name: places[0] for name, places in defined.items() if len(places) == 1}
    names = sorted(drawn(once, MOST_NAMES))
    for way in _WAYS:
        for language, text in _WHAT_IT_DOES.items():
            questions = tuple(
                Question(
                    id=f"class:{name}",
                    project=project_of(once[name][0]),
                    text=text.format(name),
                    relevant=frozenset({once[name][1]}),
                )
                for name in names
            )
            yield Slice(set="classes", name=way.named(language), questions=questions, way=way)


_DOCUMENTED = re.compile(r"(?:@.*\n)*class \w+[^\n]*:\n\s+\"\"\"")
_WHAT_IT_DOES = {"en": "What does the class {} do?", "zh": "{} 这个类是做什么的"}
_CASES: Mapping[str, Callable[[Sequence[str]], str]] = {
    "snake": "_".join,
    "camel": lambda parts: parts[0] + "".join(map(str.capitalize, parts[1:])),
    "pascal": lambda parts: "".join(map(str.capitalize, parts)),
    "upper": lambda parts: "_".join(parts).upper(),
    "kebab": "-".join,
}


def _noise(trees: Mapping[str, Indexed]) -> Iterator[Slice]:
    """Questions that this repository's code does not answer."""
    if "hummock" in trees:
        yield from noise_slices("code", project_of("hummock"))


def project_of(repository: str) -> str:
    """The project that a repository is indexed into."""
    return f"code-{repository}"


def _sources() -> dict[str, list[SourceFile]]:
    packages = {name: of_package(name, wanted, say) for name, wanted in PACKAGES.items()}
    return {"hummock": this_repository(COMMIT, say), **packages}


def this_repository(commit: str, say: Callable[[str], None]) -> list[SourceFile]:
    """This repository as a commit has it; the working tree, aloud, where the clone does not reach so far back."""
    found = at_commit(REPOSITORY, commit, FOLDERS)
    if not found:
        say(f"code: there is no commit {commit} in this clone; the working tree is asked about instead")
        found = on_disk(REPOSITORY, FOLDERS)
    return found


def question_slices(
    questions: Sequence[CodeQuestion], trees: Mapping[str, Indexed], say: Callable[[str], None]
) -> Iterator[Slice]:
    """Every question in both languages and under both presets: its function, and anything of its file.

    Questions of trees that are not there are left out, and aloud those whose function is gone.
    """
    here = [each for each in questions if each.repository in trees]
    answers = {each.id: trees[each.repository].of_symbol(each.file, each.symbol) for each in here}
    gone = [each.id for each in here if not answers[each.id]]
    if gone:
        say(f"code: {len(gone)} questions are left out, for what they ask about is gone: {', '.join(gone)}")
    asked = [each for each in here if answers[each.id]]
    files = {each.id: trees[each.repository].of_file(each.file) for each in asked}
    for way in _WAYS:
        for language in _LANGUAGES:
            yield _slice(way, language, asked, answers, language)
            yield _slice(way, f"{language}-file", asked, files, language)


def _slice(
    way: Way, name: str, asked: Sequence[CodeQuestion], relevant: Mapping[str, frozenset[str]], language: str
) -> Slice:
    questions = tuple(
        Question(id=each.id, project=project_of(each.repository), text=each.text[language], relevant=relevant[each.id])
        for each in asked
    )
    return Slice(set="code", name=way.named(name), questions=questions, way=way)
