"""Technologies of a project, read from manifests (S0-19)."""

from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock_tools.demo import sample_repository
from hummock_tools.indexing.chunker import SourceFile
from hummock_tools.indexing.project_info import MAX_MANIFEST_BYTES, MOST_NAMED, Made, Manifests
from hummock_tools.indexing.walk import walk

POM = """<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://example.org/POM/4.0.0">
  <groupId>com.example</groupId><artifactId>mysql-lookalike</artifactId>
  <!-- <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-clients</artifactId></dependency> -->
  <dependencyManagement><dependencies><dependency>
    <groupId> com.mysql </groupId><artifactId>mysql-connector-j</artifactId>
    <exclusions><exclusion><groupId>io.grpc</groupId><artifactId>grpc-core</artifactId></exclusion></exclusions>
  </dependency></dependencies></dependencyManagement>
</project>
"""
GRADLE = """
plugins {
    id("org.springframework.boot") version "3.3.0"
    kotlin("jvm") version "2.0.0"
}
repositories { maven { url = uri("https://example.org/a//b") } }
dependencies {
    implementation("org.mybatis.spring.boot:mybatis-spring-boot-starter:3.0.3")
    runtimeOnly 'com.mysql:mysql-connector-j'
    // implementation("org.apache.kafka:kafka-clients:3.7.0")
    /* implementation("io.grpc:grpc-core:1.0") */
}
"""
PYPROJECT = """
[project]
name = "service"
dependencies = ["FastAPI>=0.110", "SQLAlchemy[asyncio]; python_version > '3.10'", "psycopg2_binary"]
[project.optional-dependencies]
jobs = ["celery"]
[tool.poetry.dependencies]
python = "^3.11"
redis = "^5"
"""
GO_MOD = """
module example.org/loan
go 1.22
require github.com/gin-gonic/gin v1.9.1
require (
\tgithub.com/jackc/pgx/v5 v5.5.0
\tgoogle.golang.org/grpc v1.60.0 // indirect
)
"""
CARGO = """
[package]
name = "loan"
[dependencies]
tokio = { version = "1", features = ["full"] }
actix_web = "4"
[workspace.dependencies]
sqlx = "0.7"
"""
PACKAGE = {"dependencies": {"react": "18"}, "devDependencies": {"typescript": "5"}, "peerDependencies": {"pg": "8"}}


def made(**files: str | bytes) -> Made:
    """Project information made from files by path, with `__` for "/" and `_` for the last ".": `web__package_json`."""
    manifests = Manifests()
    for name, text in files.items():
        path = _path(name)
        manifests.look_at(SourceFile(path=path, data=text if isinstance(text, bytes) else text.encode()))
    return manifests.made()


def _path(name: str) -> str:
    folder, _, last = name.replace("__", "/").rpartition("/")
    last = {
        "pom_xml": "pom.xml", "build_gradle": "build.gradle", "build_gradle_kts": "build.gradle.kts",
        "package_json": "package.json", "pyproject_toml": "pyproject.toml", "go_mod": "go.mod",
        "Cargo_toml": "Cargo.toml", "notes_txt": "notes.txt",
    }[last]  # fmt: skip
    return f"{folder}/{last}" if folder else last


def test_the_sample_is_what_the_worked_example_says() -> None:
    """S0-19, S0-21."""
    manifests = Manifests()
    with sample_repository() as root:
        for file in walk(root, lambda path, reason: None):
            manifests.look_at(file)
    assert manifests.made() == Made(tech_stack=("Spring Boot", "MyBatis", "MySQL"), manifests=("pom.xml",))


def test_a_pom_names_what_it_depends_on_and_not_what_it_is_or_leaves_out() -> None:
    assert made(pom_xml=POM).tech_stack == ("MySQL",)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"build_gradle_kts": GRADLE}, ("Kotlin", "Spring Boot", "MyBatis", "MySQL")),
        ({"build_gradle": GRADLE}, ("Kotlin", "Spring Boot", "MyBatis", "MySQL")),
        ({"package_json": json.dumps(PACKAGE)}, ("TypeScript", "React", "PostgreSQL")),
        ({"pyproject_toml": PYPROJECT}, ("Python", "FastAPI", "SQLAlchemy", "PostgreSQL", "Redis", "Celery")),
        ({"go_mod": GO_MOD}, ("Go", "Gin", "PostgreSQL")),
        ({"Cargo_toml": CARGO}, ("Rust", "Tokio", "Actix Web", "SQLx")),
        ({"package_json": "{}"}, ("JavaScript",)),
        ({"pom_xml": "<project/>"}, ("Java",)),
        ({"notes_txt": GRADLE}, ()),
        ({}, ()),
    ],
)
def test_each_build_tools_manifest_is_read(files: dict[str, str], expected: tuple[str, ...]) -> None:
    assert made(**files).tech_stack == expected


def test_the_parts_of_a_monorepo_add_up_once_each() -> None:
    found = made(
        pom_xml=POM, web__package_json=json.dumps(PACKAGE), jobs__pyproject_toml=PYPROJECT, api__build_gradle=GRADLE
    )
    assert found.tech_stack[:4] == ("Python", "Kotlin", "TypeScript", "Spring Boot")
    assert found.tech_stack.count("MySQL") == 1
    assert found.manifests == ("pom.xml", "web/package.json", "jobs/pyproject.toml", "api/build.gradle")


def test_manifests_of_tests_and_examples_say_nothing_of_the_project() -> None:
    assert made(tests__fixtures__package_json=json.dumps(PACKAGE), examples__pom_xml=POM) == Made()


def test_a_pom_with_entities_is_refused_before_any_is_expanded() -> None:
    """S0-19, X6: a bomb, or a file of the machine."""
    layers = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "lol"}">' for n in range(10))
    bomb = f'<?xml version="1.0"?><!DOCTYPE project [{layers}]><project>&e9;</project>'
    for pom in (bomb, '<!DOCTYPE p [<!ENTITY x SYSTEM "file:///etc/passwd">]><p>&x;</p>'):
        found = made(pom_xml=pom, package_json="{}")
        assert [(one.path, one.reason) for one in found.unread] == [("pom.xml", "it has a DOCTYPE")]
        assert found.tech_stack == ("JavaScript",)


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"pom_xml": "<project>"}, "not well-formed XML"),
        ({"pom_xml": "<p>&undefined;</p>"}, "not well-formed XML"),
        ({"package_json": "{"}, "not JSON"),
        ({"package_json": "[" * (2 * sys.getrecursionlimit())}, "not JSON"),
        ({"pyproject_toml": "["}, "not TOML"),
        ({"Cargo_toml": "dependencies = {"}, "not TOML"),
        ({"go_mod": " " * (MAX_MANIFEST_BYTES + 1)}, "larger than 256 KB"),
    ],
)
def test_a_manifest_that_cannot_be_read_is_left_out_with_a_word(files: dict[str, str], reason: str) -> None:
    found = made(**files)
    assert found.unread[0].reason.startswith(reason)
    assert (found.tech_stack, found.manifests) == ((), ())


@pytest.mark.parametrize(
    "files",
    [
        {"package_json": "[]"},
        {"package_json": '{"dependencies": ["react"]}'},
        {"pyproject_toml": "project = 3"},
        {"pyproject_toml": "[project]\ndependencies = [3, [], '', '!']"},
        {"Cargo_toml": "dependencies = 'tokio'"},
    ],
)
def test_a_manifest_of_another_shape_says_its_language_alone(files: dict[str, str]) -> None:
    assert len(made(**files).tech_stack) == 1


@given(st.text(max_size=200), st.sampled_from(["pom_xml", "build_gradle", "package_json", "pyproject_toml", "go_mod"]))
def test_no_text_makes_it_fail(text: str, name: str) -> None:
    """X6."""
    found = made(**{name: text.encode("utf-8", "replace")})
    assert len(found.manifests) + len(found.unread) == 1
    assert len(found.tech_stack) <= MOST_NAMED + 7
