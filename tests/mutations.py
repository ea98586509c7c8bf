"""Takes the project out of the service's keys, caches and filters, one after the other: `python -m tests.mutations`.

Each mutation is made in a copy of the tree, and the tests of isolation must fail there. One that they pass is a leak
that nobody would notice. `make mutants` runs it; no file of this tree is touched.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

_ROOT = Path(__file__).parents[1]
_COPIED = ("service", "kernels", "clients/python", "bench", "tests", "pyproject.toml")
_TESTS = ("tests/service/test_isolation.py", "tests/isolation/test_mixed.py")
_LONGEST_S = 1800
_PASSED, _FAILED = 0, 1
_HUNG = -1


@dataclass(frozen=True, slots=True)
class Mutation:
    """A change of the service by which projects would meet.

    Attributes:
        name: What it takes away.
        file: Below service/hummock.
        changes: What is replaced by what; each stands in the file once.
    """

    name: str
    file: str
    changes: Sequence[tuple[str, str]]


MUTATIONS = (
    Mutation(
        "the project in the key of cached recalls",
        "recall/cache.py",
        [
            (
                "_encoder.encode(astuple(asked)[:-1]), project",
                '_encoder.encode(astuple(replace(asked, project=""))[:-1]), project',
            )
        ],
    ),
    Mutation(
        "the project in the key of cached views",
        "store/views/view_cache.py",
        [
            (
                "entry = self._entries.get(project)\n        if entry is None:\n            return None\n",
                "entry = next(iter(self._entries.values()), None)\n        if not entry:\n            return None\n",
            )
        ],
    ),
    Mutation(
        "the project in the key of memories",
        "store/tables/keys.py",
        [
            (
                "doc_key: Final[Callable[[int, int], bytes]] = _DOC.pack",
                "doc_key: Final[Callable[[int, int], bytes]] = lambda project, doc: _DOC.pack(0, doc)",
            )
        ],
    ),
    Mutation(
        "the project in the key of names",
        "store/tables/keys.py",
        [
            ("return _PROJECT.pack(project) + (raw if", "return _PROJECT.pack(0) + (raw if"),
            ("prefix = _PROJECT.pack(project)\n    return [prefix", "prefix = _PROJECT.pack(0)\n    return [prefix"),
        ],
    ),
    Mutation(
        "the project in the key of texts, which finds duplicates",
        "store/tables/keys.py",
        [("return _PROJECT.pack(project) + text", "return _PROJECT.pack(0) + text")],
    ),
    Mutation(
        "the project in the key of vectors",
        "store/tables/keys.py",
        [
            (
                "space_prefix: Final[Callable[[int, int], bytes]] = _SPACE.pack",
                "space_prefix: Final[Callable[[int, int], bytes]] = lambda project, space: _SPACE.pack(0, space)",
            ),
            ("return _SPACE.pack(project, space) + _NUMBER", "return _SPACE.pack(0, space) + _NUMBER"),
            (
                "chunk_key: Final[Callable[[int, int, int, int], bytes]] = _CHUNK.pack",
                "chunk_key: Final[Callable[[int, int, int, int], bytes]] = lambda project, *of: _CHUNK.pack(0, *of)",
            ),
        ],
    ),
    Mutation(
        "the project in the key of use",
        "store/tables/keys.py",
        [("return _PROJECT.pack(project) + scope + memory_id", "return _PROJECT.pack(0) + scope + memory_id")],
    ),
    Mutation(
        "the project in the key of learning events",
        "store/tables/keys.py",
        [
            (
                "event_key: Final[Callable[[int, int], bytes]] = _DOC.pack",
                "event_key: Final[Callable[[int, int], bytes]] = lambda project, number: _DOC.pack(0, number)",
            )
        ],
    ),
    Mutation(
        "the project that a walk over keys is limited to",
        "store/tables/keys.py",
        [
            (
                "project_prefix: Final[Callable[[int], bytes]] = _PROJECT.pack",
                'project_prefix: Final[Callable[[int], bytes]] = lambda project: b""',
            )
        ],
    ),
    Mutation(
        "the project in the key of sessions",
        "store/tables/sessions.py",
        [
            ("else keys.name_key(number, session_id)", "else keys.name_key(0, session_id)"),
            ("delete(keys.name_key(self._project, session_id)", "delete(keys.name_key(0, session_id)"),
            ("key = keys.name_key(self._project, session_id)", "key = keys.name_key(0, session_id)"),
            ("key = keys.name_key(self._project, record.session.id)", "key = keys.name_key(0, record.session.id)"),
        ],
    ),
    Mutation(
        "the project in the key of messages",
        "store/tables/sessions.py",
        [
            (
                "return keys.project_prefix(project) + _NUMBER.pack(number)",
                "return keys.project_prefix(0) + _NUMBER.pack(number)",
            )
        ],
    ),
    Mutation(
        "the project in the key of request_ids",
        "store/write/idempotency.py",
        [
            ("txn.get(keys.name_key(number, request_id)", "txn.get(keys.name_key(0, request_id)"),
            ("key = keys.name_key(number, request_id)", "key = keys.name_key(0, request_id)"),
        ],
    ),
    Mutation(
        "the project of the words that the writer knows",
        "store/tables/term_dictionary.py",
        [
            (
                "dictionary = self._by_project.get(project)\n",
                'project = ""\n        dictionary = self._by_project.get(project)\n',
            )
        ],
    ),
    Mutation(
        "the project of the words that readers know",
        "store/tables/term_dictionary.py",
        [
            (
                "known = self._known.get(project, {})\n        unknown",
                "known = self._known.get(0, {})\n        unknown",
            ),
            ("self._known.setdefault(project, {}).update(read)", "self._known.setdefault(0, {}).update(read)"),
        ],
    ),
    Mutation(
        "the project in the key of cached entries",
        "learning/references.py",
        [
            ("cached = self._cache.get(project)", "cached = next(iter(self._cache.values()), None)"),
            ("self._cache.move_to_end(project)\n                return", "return"),
        ],
    ),
    Mutation(
        "the project of a session's earlier searches",
        "render/search.py",
        [
            ("self._live((project, session_id), now)", 'self._live(("", session_id), now)'),
            ("self._trails[project, session_id] =", 'self._trails["", session_id] ='),
            ("self._trails.move_to_end((project, session_id))", 'self._trails.move_to_end(("", session_id))'),
            ("self._live((project, session_id), self._monotonic())", 'self._live(("", session_id), self._monotonic())'),
        ],
    ),
    Mutation(
        "the project that a page token is bound to",
        "rpc/tokens.py",
        [('bound.ClearField("page_size")', 'bound.ClearField("page_size")\n    bound.ClearField("project")')],
    ),
    Mutation(
        "the project that a prefix is bound to",
        "rpc/tokens.py",
        [("key = blake2b(project.encode()).digest()", 'key = blake2b(b"").digest()')],
    ),
    Mutation(
        "the words of whoever asked, kept out of the log",
        "rpc/dispatch.py",
        [
            (
                "        projects, request = peek(",
                '        print(data.decode(errors="replace"), file=__import__("sys").stderr, flush=True)\n'
                "        projects, request = peek(",
            )
        ],
    ),
)


def mutated(source: str, mutation: Mutation) -> str:
    """The file with the change. Raises: ValueError, where a part of it is not there once."""
    for old, new in mutation.changes:
        if source.count(old) != 1:
            raise ValueError(f"{mutation.file} holds {old!r} {source.count(old)} times: mend the table of mutations")
        source = source.replace(old, new)
    return source


def status_of_tests(tree: Path) -> int:
    """Exit status of the isolation tests in a tree: _PASSED, _FAILED, _HUNG where they were ended after _LONGEST_S,
    or anything else where they could not run."""
    places = (tree / "service", tree / "kernels", tree / "clients" / "python")
    env = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, places)), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *_TESTS]
    try:
        ended = subprocess.run(
            command,
            cwd=tree,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_LONGEST_S,
            check=False,
        )
    except subprocess.TimeoutExpired as hung:
        (tree / "last.log").write_bytes(hung.stdout or b"")
        return _HUNG
    (tree / "last.log").write_bytes(ended.stdout)
    return ended.returncode


def main() -> None:
    """Runs, and says as JSON which mutations were found; status 1 where one was not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="those whose name holds this")
    wanted = parser.parse_args().only
    survived: list[str] = []
    hung: list[str] = []
    chosen = [one for one in MUTATIONS if wanted in one.name]
    with TemporaryDirectory() as directory:
        tree = Path(directory)
        for name in _COPIED:
            copied, source = tree / name, _ROOT / name
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, copied, ignore=ignored) if source.is_dir() else shutil.copy(source, copied)
        if status_of_tests(tree) != _PASSED:
            raise SystemExit("the tests of isolation fail without any mutation:\n" + (tree / "last.log").read_text())
        for mutation in chosen:
            file = tree / "service" / "hummock" / mutation.file
            source_text = file.read_text(encoding="utf-8")
            file.write_text(mutated(source_text, mutation), encoding="utf-8")
            status = status_of_tests(tree)
            file.write_text(source_text, encoding="utf-8")
            if status not in (_PASSED, _FAILED, _HUNG):
                raise SystemExit(f"{mutation.name}: the tests could not run:\n" + (tree / "last.log").read_text())
            if status == _PASSED:
                survived.append(mutation.name)
            if status == _HUNG:
                hung.append(mutation.name)
            told = {_PASSED: "SURVIVED", _FAILED: "found", _HUNG: f"NOT KNOWN, still running after {_LONGEST_S} s"}
            print(f"{told[status]}: without {mutation.name}", file=sys.stderr, flush=True)
    found = len(chosen) - len(survived) - len(hung)
    print(json.dumps({"mutations": len(chosen), "found": found, "survived": survived, "not known": hung}))
    raise SystemExit(bool(survived or hung))


if __name__ == "__main__":
    main()
