"""The client for Kotlin in somebody else's project: outside the reactor, from a local repository alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.client.consumers import blocks, install_as_told, require, run, sources

pytestmark = pytest.mark.long

_PAGE = "docs/clients/kotlin.md"
_OURS = ("dev", "hummock")
_POM = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>example</groupId>
  <artifactId>example</artifactId>
  <version>1</version>
  <properties><project.build.sourceEncoding>UTF-8</project.build.sourceEncoding></properties>
  <dependencies>{dependencies}</dependencies>
  <build>
    <sourceDirectory>src/main/kotlin</sourceDirectory>
    <plugins>
      <plugin>
        <groupId>org.jetbrains.kotlin</groupId>
        <artifactId>kotlin-maven-plugin</artifactId>
        <version>{compiler}</version>
        <configuration><jvmTarget>17</jvmTarget></configuration>
        <executions><execution><goals><goal>compile</goal></goals></execution></executions>
      </plugin>
      <plugin>
        <groupId>org.apache.maven.plugins</groupId>
        <artifactId>maven-dependency-plugin</artifactId>
        <version>3.9.0</version>
        <configuration><outputFile>${{project.build.directory}}/classpath</outputFile></configuration>
      </plugin>
    </plugins>
  </build>
</project>
"""
_DEPENDENCY = """
<dependency>
  <groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>
</dependency>"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """A project: which of the client's artefacts, Kotlin's compiler, and libraries that it names before the client."""

    artefact: str
    compiler: str
    libraries: tuple[str, ...] = ()


_OLDEST, _NEWEST = "2.1.0", "2.4.21"
_CONSUMERS = {
    "application, oldest compiler": Consumer(artefact="hummock-client", compiler=_OLDEST),
    "application, newest compiler": Consumer(
        artefact="hummock-client",
        compiler=_NEWEST,
        libraries=(
            f"org.jetbrains.kotlin:kotlin-stdlib:{_NEWEST}",
            "org.jetbrains.kotlinx:kotlinx-coroutines-core-jvm:1.11.0",
        ),
    ),
    # What an IDE has on its class path, or had not long ago.
    "plugin": Consumer(
        artefact="hummock-client-plugin",
        compiler=_OLDEST,
        libraries=(
            f"org.jetbrains.kotlin:kotlin-stdlib:{_OLDEST}",
            "org.jetbrains.kotlinx:kotlinx-coroutines-core-jvm:1.8.0",
            "com.google.protobuf:protobuf-java:3.24.2",
            "io.grpc:grpc-protobuf:1.51.0",
            "io.grpc:grpc-stub:1.51.0",
        ),
    ),
}


@pytest.fixture(scope="module")
def maven() -> str:
    return require("mvn", "the client in Kotlin cannot be built")


@pytest.fixture(scope="module")
def repository(maven: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A local repository into which the client was installed as the page says, from what a fresh clone has."""
    directory = tmp_path_factory.mktemp("kotlin")
    local = _repository_in(directory)
    sources("proto", directory)
    clone = sources("clients", directory).parent
    install_as_told(_PAGE, clone=clone, folder=directory, environ=maven_options(local))
    return local


def _repository_in(directory: Path) -> Path:
    """A local repository that shares with the user's what is of others, and has nothing of ours."""
    local, shared = directory / "repository", Path.home() / ".m2/repository"
    (local / _OURS[0]).mkdir(parents=True)
    shared.mkdir(parents=True, exist_ok=True)
    for each in (*shared.glob("*"), *(shared / _OURS[0]).glob("*")):
        path = each.relative_to(shared)
        if path.parts not in (_OURS[:1], _OURS):
            (local / path).symlink_to(each)
    return local


@pytest.mark.parametrize("name", _CONSUMERS)
def test_the_program_of_the_page_runs_in_a_project_of_its_own(
    name: str, maven: str, repository: Path, target: str, tmp_path: Path
) -> None:
    consumer = _CONSUMERS[name]
    (program,) = (block for block in blocks(_PAGE, "kotlin") if "fun main()" in block)
    main = tmp_path / "src/main/kotlin/Main.kt"
    main.parent.mkdir(parents=True)
    main.write_text(program, encoding="utf-8")
    (tmp_path / "pom.xml").write_text(_pom_of(consumer), encoding="utf-8")
    run([maven, "-B", "-q", "compile", "dependency:build-classpath"], tmp_path, maven_options(repository))
    class_path = (tmp_path / "target/classpath").read_text(encoding="utf-8")
    for library in consumer.libraries:
        _, artefact, version = library.split(":")
        assert f"{artefact}-{version}.jar" in class_path
    java = ["java", "-cp", f"target/classes:{class_path}", "MainKt"]
    printed = run(java, tmp_path, {"HUMMOCK_TARGET": target})
    assert printed.count("先本后息") >= 2
    printed = run(java, tmp_path, {"HUMMOCK_TARGET": "127.0.0.1:1"})
    assert "is `hummock serve` running? target 127.0.0.1:1" in printed


def maven_options(local: Path) -> dict[str, str]:
    """Options of Maven, in its environment: the local repository, and no compiler that stays behind as a daemon."""
    return {"MAVEN_OPTS": f"-Dmaven.repo.local={local} -Dkotlin.compiler.daemon=false"}


def _pom_of(consumer: Consumer) -> str:
    """The page's dependency behind the libraries of the project, as one that names them first."""
    (ours,) = blocks(_PAGE, "xml")
    others = (library.split(":") for library in consumer.libraries)
    named = (_DEPENDENCY.format(group=group, name=name, version=version) for group, name, version in others)
    ours = ours.replace("hummock-client<", f"{consumer.artefact}<")
    return _POM.format(dependencies="".join(named) + ours, compiler=consumer.compiler)
