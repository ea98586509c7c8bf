"""Refuses docstrings that begin with a fragment, such as "Of a job: its name", where a noun or a verb belongs.

Checks the docstrings of modules, classes and functions, and the strings that document an assignment.
Arguments are the files or folders to check, relative to the repository; without any all tracked files are checked.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GENERATED = "clients/python/hummock_client/v1/"

REFUSED = re.compile(r"\s*(Of|That|As|The same|Likewise|Whose|Whom|By which|In which)\b")
"""First words of a relative clause or a back reference."""


def fragments(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line number and the first line of each refused text, in the order of `ast.walk`."""
    for node in ast.walk(ast.parse(source)):
        for text in _documentation(node):
            if isinstance(text.value, str) and REFUSED.match(text.value):
                yield text.lineno, text.value.strip().partition("\n")[0]


def _documentation(node: ast.AST) -> Iterator[ast.Constant]:
    """Yield the docstring of a node and the strings directly after the assignments in its body."""
    before: ast.stmt | None = None
    has_docstring = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    for statement in [each for body in ("body", "orelse") for each in _statements(node, body)]:
        documents = has_docstring if before is None else isinstance(before, ast.Assign | ast.AnnAssign)
        if documents and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            yield statement.value
        before = statement


def _statements(node: ast.AST, body: str) -> list[ast.stmt]:
    """Return a block of statements; empty for a lambda and for an expression with `if`, whose body is one node."""
    found = getattr(node, body, [])
    return found if isinstance(found, list) else []


def main(paths: list[str]) -> int:
    """Print `path:line: text` for every refused text and return 1 if there is any, otherwise 0."""
    command = ["git", "ls-files", "-z", "--", *paths]
    tracked = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    checked = [name for name in tracked if name.endswith(".py") and not name.startswith(GENERATED)]
    refused = [
        f"{name}:{line}: {text}"
        for name in checked
        if (ROOT / name).is_file()
        for line, text in sorted(fragments((ROOT / name).read_text(encoding="utf-8")))
    ]
    print(*refused, sep="\n", end="\n" if refused else "")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
