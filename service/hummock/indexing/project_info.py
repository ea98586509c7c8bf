"""What a repository is made with, by the manifests of its build tools."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from xml.parsers import expat

from hummock.indexing.source import SourceFile
from hummock.indexing.technologies import Dependency, Ecosystem, technologies

MAX_MANIFEST_BYTES: Final = 256 * 1024
_ASIDE: Final = frozenset(
    {"test", "tests", "testdata", "fixtures", "__fixtures__", "example", "examples", "sample", "samples", "templates"}
)
"""Folders whose manifests speak of something else than the project."""


class Unreadable(Exception):
    """A manifest that says nothing, and why, in words for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A manifest that was left out, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What a repository is made with, as people call it; the manifests that say so, and those that say nothing."""

    tech_stack: tuple[str, ...] = ()
    manifests: tuple[str, ...] = ()
    unread: tuple[Unread, ...] = ()


class Manifests:
    """Collects the manifests of a repository while it is walked."""

    def __init__(self) -> None:
        self._dependencies: dict[Dependency, None] = {}
        self._languages: dict[str, None] = {}
        self._read: list[str] = []
        self._unread: list[Unread] = []

    def look_at(self, file: SourceFile) -> None:
        """Reads the file if it is a manifest of the project."""
        *folders, name = file.path.split("/")
        kind = _KINDS.get(name)
        if kind is None or not _ASIDE.isdisjoint(folders):
            return
        try:
            if len(file.data) > MAX_MANIFEST_BYTES:
                raise Unreadable(f"larger than {MAX_MANIFEST_BYTES // 1024} KB")
            names = sorted({name.lower() for name in kind.names(file.text())})
        except Unreadable as unreadable:
            self._unread.append(Unread(path=file.path, reason=str(unreadable)))
            return
        found = [Dependency(ecosystem=kind.ecosystem, name=_normal(kind.ecosystem, one)) for one in names]
        self._dependencies |= dict.fromkeys(found)
        # Of a JVM's build file what it is built with says more than that it is for a JVM.
        if kind.ecosystem is not Ecosystem.JVM or not technologies(found):
            self._languages[kind.language] = None
        self._read.append(file.path)

    def made(self) -> Made:
        """What all of them say together; languages first."""
        named = technologies(self._dependencies.keys())
        # Who writes TypeScript has said so.
        languages = [one for one in self._languages if not (one == "JavaScript" and "TypeScript" in named)]
        return Made(
            tech_stack=tuple(dict.fromkeys((*languages, *named))),
            manifests=tuple(self._read),
            unread=tuple(self._unread),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    ecosystem: Ecosystem
    language: str
    names: Callable[[str], Iterable[str]]


def _normal(ecosystem: Ecosystem, name: str) -> str:
    return name.replace("_", "-") if ecosystem in {Ecosystem.PYPI, Ecosystem.CARGO} else name


def _of_pom(text: str) -> Iterable[str]:
    """`group:artifact` of dependencies, plugins and the parent. No entity is expanded: what declares any is refused."""
    reader = _PomReader()
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    try:
        # As bytes in UTF-8, whatever encoding the text claims for itself.
        parser.Parse(_DECLARATION.sub("", text, count=1).encode(), True)
    except expat.ExpatError as error:
        raise Unreadable(f"not well-formed XML ({error})") from error
    return reader.found


_DECLARATION: Final = re.compile(r"^\s*<\?xml[^>]*\?>")


def _refuse_doctype(*_: object) -> None:
    raise Unreadable("it has a DOCTYPE")


class _PomReader:
    """Follows the path of elements; `found` has what is depended upon."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._path: list[str] = []
        self._group, self._artifact = "", ""

    def start(self, name: str, _: Mapping[str, str]) -> None:
        """An element begins."""
        self._path.append(name.rpartition(":")[2])
        if self._path[-1] in _POM_ENTRIES:
            self._group, self._artifact = "", ""

    def end(self, _: str) -> None:
        """An element ends."""
        if self._path.pop() in _POM_ENTRIES and self._artifact:
            self.found.append(f"{self._group.strip()}:{self._artifact.strip()}")
            self._group, self._artifact = "", ""

    def text(self, data: str) -> None:
        """Text, perhaps a part of it."""
        match self._path[-2:]:
            case [parent, "groupId"] if parent in _POM_ENTRIES:
                self._group += data
            case [parent, "artifactId"] if parent in _POM_ENTRIES:
                self._artifact += data


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
    r"""(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|//[^\n]*|/\*.*?\*/""", re.DOTALL
)
_GRADLE_PLUGIN: Final = re.compile(r"""\bid\s*\(?\s*["'](?P<id>[\w.-]+)["']""")
_GRADLE_KOTLIN: Final = re.compile(r"""\bkotlin\s*\(\s*["'][\w.-]+["']\s*\)""")
_GRADLE_COORDINATE: Final = re.compile(r"""["'](?P<group>[\w.-]+):(?P<artifact>[\w.-]+)(?::[^"'\n]*)?["']""")


def _of_package_json(text: str) -> Iterable[str]:
    try:
        manifest = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable("not JSON") from error
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
        raise Unreadable("not TOML") from error


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
    "pom.xml": _Kind(ecosystem=Ecosystem.JVM, language="Java", names=_of_pom),
    "build.gradle": _Kind(ecosystem=Ecosystem.JVM, language="Java", names=_of_gradle),
    "build.gradle.kts": _Kind(ecosystem=Ecosystem.JVM, language="Java", names=_of_gradle),
    "package.json": _Kind(ecosystem=Ecosystem.NPM, language="JavaScript", names=_of_package_json),
    "pyproject.toml": _Kind(ecosystem=Ecosystem.PYPI, language="Python", names=_of_pyproject),
    "go.mod": _Kind(ecosystem=Ecosystem.GO, language="Go", names=_of_go_mod),
    "Cargo.toml": _Kind(ecosystem=Ecosystem.CARGO, language="Rust", names=_of_cargo),
}
