"""Reads a repository's technologies from the manifests of its build tools."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, Final
from xml.parsers import expat

from hummock_tools.indexing.fragment import SourceFile

MOST_NAMED: Final = 16
"""Largest number of technologies: more would fill a prompt with what nobody asks for."""

MAX_MANIFEST_BYTES: Final = 256 * 1024

_ASIDE: Final = frozenset(
    {"test", "tests", "testdata", "fixtures", "__fixtures__", "example", "examples", "sample", "samples", "templates"}
)
"""Folders whose manifests speak of something else than the project."""


class _Ecosystem(StrEnum):
    """Namespace of a dependency's name."""

    JVM = "jvm"
    """`group:artifact`, and `plugin:<id>` of Gradle."""
    NPM = "npm"
    PYPI = "pypi"
    GO = "go"
    CARGO = "cargo"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dependency:
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
        found = [_Dependency(ecosystem=kind.ecosystem, name=_normal(kind.ecosystem, one)) for one in names]
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
        return Made(
            tech_stack=tuple(dict.fromkeys((*languages, *named))),
            manifests=tuple(self._read),
            unread=tuple(self._unread),
        )


def is_manifest(path: str) -> bool:
    """True if a file of this path, relative to the root, may name the project's technologies."""
    return _kind(path) is not None


def _kind(path: str) -> _Kind | None:
    *folders, name = path.split("/")
    return _KINDS.get(name) if _ASIDE.isdisjoint(folders) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    ecosystem: _Ecosystem
    language: str
    names: Callable[[str], Iterable[str]]


class _Unreadable(Exception):
    """A manifest that says nothing, and why, in words for the user."""


def _normal(ecosystem: _Ecosystem, name: str) -> str:
    return name.replace("_", "-") if ecosystem in {_Ecosystem.PYPI, _Ecosystem.CARGO} else name


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
        raise _Unreadable(f"not well-formed XML ({error})") from error
    return reader.found


_DECLARATION: Final = re.compile(r"^\s*<\?xml[^>]*\?>")


def _refuse_doctype(*_: object) -> None:
    raise _Unreadable("it has a DOCTYPE")


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
    "pom.xml": _Kind(ecosystem=_Ecosystem.JVM, language="Java", names=_of_pom),
    "build.gradle": _Kind(ecosystem=_Ecosystem.JVM, language="Java", names=_of_gradle),
    "build.gradle.kts": _Kind(ecosystem=_Ecosystem.JVM, language="Java", names=_of_gradle),
    "package.json": _Kind(ecosystem=_Ecosystem.NPM, language="JavaScript", names=_of_package_json),
    "pyproject.toml": _Kind(ecosystem=_Ecosystem.PYPI, language="Python", names=_of_pyproject),
    "go.mod": _Kind(ecosystem=_Ecosystem.GO, language="Go", names=_of_go_mod),
    "Cargo.toml": _Kind(ecosystem=_Ecosystem.CARGO, language="Rust", names=_of_cargo),
}


def _technologies(dependencies: Collection[_Dependency]) -> tuple[str, ...]:
    """Common names of these dependencies' technologies, each once, at most `MOST_NAMED`, in the order of the table."""
    named = [technology.name for technology in _TABLE if _is_meant(technology, dependencies)]
    return tuple(named[:MOST_NAMED])


def _is_meant(technology: _Technology, dependencies: Collection[_Dependency]) -> bool:
    return any(
        dependency.ecosystem is ecosystem and fnmatchcase(dependency.name, pattern)
        for ecosystem, pattern in technology.patterns
        for dependency in dependencies
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Technology:
    """A technology's common name, and shell patterns of the dependencies that indicate it."""

    name: str
    patterns: tuple[tuple[_Ecosystem, str], ...]


def _technology(line: str) -> _Technology:
    name, _, patterns = line.partition(" = ")
    pairs = [pattern.split("/", 1) for pattern in patterns.split()]
    return _Technology(
        name=name.strip(), patterns=tuple((_Ecosystem(ecosystem), pattern) for ecosystem, pattern in pairs)
    )


_TABLE: Final = tuple(
    _technology(line)
    for line in (
        # Languages that a build file does not say by itself.
        "Kotlin = jvm/org.jetbrains.kotlin:* jvm/plugin:org.jetbrains.kotlin.* jvm/plugin:kotlin*",
        "Scala = jvm/org.scala-lang:* jvm/plugin:scala",
        "TypeScript = npm/typescript",
        # What an application stands on.
        "Spring Boot = jvm/org.springframework.boot:* jvm/plugin:org.springframework.boot",
        "Spring Cloud = jvm/org.springframework.cloud:*",
        "Quarkus = jvm/io.quarkus*:* jvm/plugin:io.quarkus",
        "Micronaut = jvm/io.micronaut*:* jvm/plugin:io.micronaut*",
        "Ktor = jvm/io.ktor:*",
        "Dubbo = jvm/org.apache.dubbo:* jvm/com.alibaba:dubbo*",
        "Android = jvm/plugin:com.android.* jvm/com.android.tools.build:* jvm/androidx.*:*",
        "Jetpack Compose = jvm/androidx.compose*:* jvm/plugin:org.jetbrains.compose",
        "IntelliJ Platform = jvm/plugin:org.jetbrains.intellij*",
        "Next.js = npm/next",
        "React = npm/react",
        "React Native = npm/react-native",
        "Vue = npm/vue",
        "Nuxt = npm/nuxt",
        "Angular = npm/@angular/core",
        "Svelte = npm/svelte",
        "Electron = npm/electron",
        "Express = npm/express",
        "NestJS = npm/@nestjs/core",
        "Django = pypi/django",
        "Flask = pypi/flask",
        "FastAPI = pypi/fastapi",
        "PyTorch = pypi/torch",
        "TensorFlow = pypi/tensorflow",
        "NumPy = pypi/numpy",
        "pandas = pypi/pandas",
        "Gin = go/github.com/gin-gonic/gin",
        "Echo = go/github.com/labstack/echo*",
        "Fiber = go/github.com/gofiber/fiber*",
        "Kubernetes client = go/k8s.io/client-go",
        "Tokio = cargo/tokio",
        "Axum = cargo/axum",
        "Actix Web = cargo/actix-web",
        "Tauri = cargo/tauri npm/@tauri-apps/api",
        # How it keeps data.
        "MyBatis = jvm/org.mybatis*:* jvm/com.baomidou:mybatis-plus*",
        "Hibernate = jvm/org.hibernate*:* jvm/org.springframework.boot:spring-boot-starter-data-jpa",
        "jOOQ = jvm/org.jooq:*",
        "Room = jvm/androidx.room:*",
        "ObjectBox = jvm/io.objectbox:* jvm/plugin:io.objectbox",
        "SQLAlchemy = pypi/sqlalchemy",
        "Prisma = npm/prisma npm/@prisma/client",
        "TypeORM = npm/typeorm",
        "GORM = go/gorm.io/gorm",
        "Diesel = cargo/diesel",
        "SQLx = cargo/sqlx",
        "MySQL = jvm/com.mysql:* jvm/mysql:* npm/mysql npm/mysql2 pypi/pymysql pypi/mysqlclient"
        " pypi/mysql-connector-python go/github.com/go-sql-driver/mysql go/gorm.io/driver/mysql",
        "PostgreSQL = jvm/org.postgresql:* npm/pg pypi/psycopg* pypi/asyncpg go/github.com/lib/pq"
        " go/github.com/jackc/pgx* go/gorm.io/driver/postgres cargo/tokio-postgres",
        "SQLite = jvm/org.xerial:sqlite-jdbc npm/better-sqlite3 npm/sqlite3 pypi/aiosqlite"
        " go/github.com/mattn/go-sqlite3 cargo/rusqlite",
        "H2 = jvm/com.h2database:h2",
        "Oracle Database = jvm/com.oracle.database.*:* pypi/oracledb",
        "MongoDB = jvm/org.mongodb:* jvm/org.springframework.boot:spring-boot-starter-data-mongodb* npm/mongodb"
        " npm/mongoose pypi/pymongo pypi/motor go/go.mongodb.org/mongo-driver* cargo/mongodb",
        "Redis = jvm/redis.clients:jedis jvm/io.lettuce:* jvm/org.redisson:*"
        " jvm/org.springframework.boot:spring-boot-starter-data-redis* npm/redis npm/ioredis pypi/redis"
        " go/github.com/redis/go-redis* go/github.com/go-redis/redis* cargo/redis",
        "Elasticsearch = jvm/org.elasticsearch*:* jvm/co.elastic.clients:* npm/@elastic/elasticsearch"
        " pypi/elasticsearch go/github.com/elastic/go-elasticsearch*",
        "LMDB = pypi/lmdb cargo/heed npm/lmdb",
        # How its parts talk.
        "Kafka = jvm/org.apache.kafka:* jvm/org.springframework.kafka:* npm/kafkajs pypi/kafka-python"
        " pypi/confluent-kafka go/github.com/segmentio/kafka-go go/github.com/ibm/sarama cargo/rdkafka",
        "RabbitMQ = jvm/com.rabbitmq:* jvm/org.springframework.boot:spring-boot-starter-amqp npm/amqplib pypi/pika"
        " go/github.com/rabbitmq/amqp091-go cargo/lapin",
        "RocketMQ = jvm/org.apache.rocketmq:*",
        "gRPC = jvm/io.grpc:* npm/@grpc/grpc-js pypi/grpcio go/google.golang.org/grpc cargo/tonic",
        "GraphQL = jvm/com.graphql-java:* npm/graphql pypi/graphene pypi/strawberry-graphql cargo/async-graphql",
        "Celery = pypi/celery",
        "LangChain = pypi/langchain npm/langchain jvm/dev.langchain4j:*",
    )
)
