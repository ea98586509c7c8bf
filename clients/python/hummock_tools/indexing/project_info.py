"""Reads a repository's technologies from the manifests of its build tools."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, NamedTuple
from xml.parsers import expat

from hummock_tools.indexing.chunker import SourceFile

MOST_NAMED: Final = 16
"""Largest number of technologies: more would fill a prompt with what nobody asks for."""

MAX_MANIFEST_BYTES: Final = 256 * 1024

_ASIDE: Final = frozenset(
    {"test", "tests", "testdata", "fixtures", "__fixtures__", "example", "examples", "sample", "samples", "templates"}
)
"""Folders whose manifests speak of something else than the project."""


class _Ecosystem(StrEnum):
    """Namespace of a dependency's name; of the JVM `group:artifact`, and `plugin:<id>` of Gradle."""

    JVM = "jvm"
    NPM = "npm"
    PYPI = "pypi"
    GO = "go"
    CARGO = "cargo"


class _Dependency(NamedTuple):
    """A name in its ecosystem, as it is compared: lower case, `_` of Python's and Rust's names as `-`."""

    ecosystem: _Ecosystem
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A manifest that was left out, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A repository's technologies by their common names; the manifests that name them, and the unreadable ones."""

    tech_stack: tuple[str, ...] = ()
    manifests: tuple[str, ...] = ()
    unread: tuple[Unread, ...] = ()


class Manifests:
    """Collects the manifests of a repository while it is walked."""

    def __init__(self) -> None:
        self._dependencies: dict[_Dependency, None] = {}
        self._languages: dict[str, None] = {}
        self._read: list[str] = []
        self._unread: list[Unread] = []

    def look_at(self, file: SourceFile) -> None:
        """Reads the file if it is a manifest of the project."""
        kind = _kind(file.path)
        if kind is None:
            return
        try:
            if len(file.data) > MAX_MANIFEST_BYTES:
                raise _Unreadable(f"larger than {MAX_MANIFEST_BYTES // 1024} KB")
            names = sorted({name.lower() for name in kind.names(file.text())})
        except _Unreadable as unreadable:
            self._unread.append(Unread(path=file.path, reason=str(unreadable)))
            return
        is_dashed = kind.ecosystem in {_Ecosystem.PYPI, _Ecosystem.CARGO}
        found = [_Dependency(kind.ecosystem, one.replace("_", "-") if is_dashed else one) for one in names]
        self._dependencies |= dict.fromkeys(found)
        # A JVM build file: the build tool says more than the platform.
        if kind.ecosystem is not _Ecosystem.JVM or not _technologies(found):
            self._languages[kind.language] = None
        self._read.append(file.path)

    def made(self) -> Made:
        """Summary of all manifests; languages come first."""
        named = _technologies(self._dependencies.keys())
        # Who writes TypeScript has said so.
        languages = [one for one in self._languages if not (one == "JavaScript" and "TypeScript" in named)]
        stack = tuple(dict.fromkeys((*languages, *named)))
        return Made(tech_stack=stack, manifests=tuple(self._read), unread=tuple(self._unread))


def is_manifest(path: str) -> bool:
    """True if a file of this path, relative to the root, may name the project's technologies."""
    return _kind(path) is not None


def _kind(path: str) -> _Kind | None:
    *folders, name = path.split("/")
    return _KINDS.get(name) if _ASIDE.isdisjoint(folders) else None


class _Kind(NamedTuple):
    ecosystem: _Ecosystem
    language: str
    names: Callable[[str], Iterable[str]]


class _Unreadable(Exception):
    """A manifest that says nothing, and why, in words for the user."""


def _of_pom(text: str) -> Iterable[str]:
    """`group:artifact` of dependencies, plugins and the parent. No entity is expanded: what declares any is refused."""
    found: list[str] = []
    path: list[str] = []
    names = {"groupId": "", "artifactId": ""}

    def begin(name: str, _: Mapping[str, str]) -> None:
        path.append(name.rpartition(":")[2])
        if path[-1] in _POM_ENTRIES:
            names.update(groupId="", artifactId="")

    def end(_: str) -> None:
        if path.pop() in _POM_ENTRIES and names["artifactId"]:
            found.append(f"{names['groupId'].strip()}:{names['artifactId'].strip()}")
            names.update(groupId="", artifactId="")

    def add(data: str) -> None:
        if len(path) > 1 and path[-2] in _POM_ENTRIES and path[-1] in names:
            names[path[-1]] += data

    def refuse(*_: object) -> None:
        raise _Unreadable("it has a DOCTYPE")

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = begin, end, add
    try:
        # As bytes in UTF-8, whatever encoding the text claims for itself.
        parser.Parse(_DECLARATION.sub("", text, count=1).encode(), True)
    except expat.ExpatError as error:
        raise _Unreadable(f"not well-formed XML ({error})") from error
    return found


_DECLARATION: Final = re.compile(r"^\s*<\?xml[^>]*\?>")
_POM_ENTRIES: Final = frozenset({"dependency", "plugin", "parent"})


def _of_gradle(text: str) -> Iterator[str]:
    code = _GRADLE_COMMENTS.sub(lambda found: found["text"] or " ", text)
    for found in _GRADLE_PLUGIN.finditer(code):
        yield f"plugin:{found['id']}"
    if _GRADLE_KOTLIN.search(code):
        yield "plugin:kotlin"
    for found in _GRADLE_COORDINATE.finditer(code):
        yield f"{found['group']}:{found['artifact']}"


# A string is taken whole, so that no "//" in a URL begins a comment.
_GRADLE_COMMENTS: Final = re.compile(
    r"""(?P<text>"(?:[^"\\\n]|\\.)*+"?|'(?:[^'\\\n]|\\.)*+'?)|//[^\n]*|/\*.*?\*/""", re.DOTALL
)
_GRADLE_PLUGIN: Final = re.compile(r"""\bid\s*\(?\s*["'](?P<id>[\w.-]+)["']""")
_GRADLE_KOTLIN: Final = re.compile(r"""\bkotlin\s*\(\s*["'][\w.-]+["']\s*\)""")
_GRADLE_COORDINATE: Final = re.compile(r"""["'](?P<group>[\w.-]+):(?P<artifact>[\w.-]+)(?::[^"'\n]*)?["']""")


def _of_package_json(text: str) -> Iterable[str]:
    try:
        manifest = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _Unreadable("not JSON") from error
    groups = ("dependencies", "devDependencies", "peerDependencies")
    return [name for group in groups for name in _keys(_at(manifest, group))]


def _of_pyproject(text: str) -> Iterable[str]:
    manifest = _toml(text)
    stated = [
        *_texts(_at(manifest, "project", "dependencies")),
        *(text for extra in _values(_at(manifest, "project", "optional-dependencies")) for text in _texts(extra)),
    ]
    names = [found[0] for requirement in stated if (found := _REQUIREMENT.match(requirement.strip()))]
    return [*names, *_keys(_at(manifest, "tool", "poetry", "dependencies"))]


_REQUIREMENT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def _of_go_mod(text: str) -> Iterator[str]:
    """Modules that are required directly."""
    is_inside = False
    for line in text.split("\n"):
        code, _, comment = line.partition("//")
        words = code.split()
        if words[:2] == ["require", "("]:
            is_inside = True
        elif words == [")"]:
            is_inside = False
        elif comment.strip() != "indirect" and words and (is_inside or words[0] == "require"):
            named = words if is_inside else words[1:]
            yield from named[:1]


def _of_cargo(text: str) -> Iterable[str]:
    manifest = _toml(text)
    return [*_keys(_at(manifest, "dependencies")), *_keys(_at(manifest, "workspace", "dependencies"))]


def _toml(text: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _Unreadable("not TOML") from error


def _at(manifest: object, *path: str) -> object:
    for name in path:
        manifest = manifest.get(name) if isinstance(manifest, Mapping) else None
    return manifest


def _keys(table: object) -> list[str]:
    return list(table) if isinstance(table, Mapping) else []


def _values(table: object) -> list[object]:
    return list(table.values()) if isinstance(table, Mapping) else []


def _texts(items: object) -> list[str]:
    return [item for item in items if isinstance(item, str)] if isinstance(items, list) else []


_KINDS: Final[Mapping[str, _Kind]] = {
    "pom.xml": _Kind(_Ecosystem.JVM, "Java", _of_pom),
    "build.gradle": _Kind(_Ecosystem.JVM, "Java", _of_gradle),
    "build.gradle.kts": _Kind(_Ecosystem.JVM, "Java", _of_gradle),
    "package.json": _Kind(_Ecosystem.NPM, "JavaScript", _of_package_json),
    "pyproject.toml": _Kind(_Ecosystem.PYPI, "Python", _of_pyproject),
    "go.mod": _Kind(_Ecosystem.GO, "Go", _of_go_mod),
    "Cargo.toml": _Kind(_Ecosystem.CARGO, "Rust", _of_cargo),
}


def _technologies(dependencies: Collection[_Dependency]) -> tuple[str, ...]:
    """Common names of these dependencies' technologies, each once, at most `MOST_NAMED`, in the order of the table."""
    named = [name for name, patterns in _TABLE.items() if _are_met(patterns, dependencies)]
    return tuple(named[:MOST_NAMED])


def _are_met(patterns: Iterable[tuple[_Ecosystem, str]], dependencies: Collection[_Dependency]) -> bool:
    return any(
        dependency.ecosystem is ecosystem and fnmatchcase(dependency.name, pattern)
        for ecosystem, pattern in patterns
        for dependency in dependencies
    )


_TABLE: Final[Mapping[str, tuple[tuple[_Ecosystem, str], ...]]] = {
    name: tuple(
        (_Ecosystem(ecosystem), named) for ecosystem, _, named in (each.partition("/") for each in said.split())
    )
    for name, said in tomllib.loads(Path(__file__).with_name("technologies.toml").read_text("utf-8")).items()
}
"""Common names of technologies, and ecosystems and shell patterns of the dependencies that indicate them."""
