"""What the store leaves undocumented is documented at the interface that it implements."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import hummock

SERVICE = Path(str(hummock.__file__)).parent
STORE = SERVICE / "store"


def classes(*files: Path) -> Iterator[ast.ClassDef]:
    for file in files:
        yield from (node for node in ast.parse(file.read_text("utf-8")).body if isinstance(node, ast.ClassDef))


def methods(of: ast.ClassDef) -> Iterator[ast.FunctionDef]:
    yield from (each for each in of.body if isinstance(each, ast.FunctionDef) and not each.name.startswith("_"))


def test_a_method_of_the_store_has_a_docstring_or_implements_one_that_has() -> None:
    files = sorted([*(SERVICE / "ports").glob("*.py"), *STORE.rglob("*.py")])
    interfaces = [each for each in classes(*files) if any("Protocol" in ast.unparse(base) for base in each.bases)]
    documented = {each.name for interface in interfaces for each in methods(interface) if ast.get_docstring(each)}
    assert {"search", "write", "get", "set_range"} <= documented
    bare = {
        f"{one.name}.{each.name}"
        for one in classes(*STORE.rglob("*.py"))
        if one not in interfaces and not one.name.startswith("_")
        for each in methods(one)
        if not ast.get_docstring(each) and each.name not in documented
    }
    assert bare == set()
