"""The sample of a JetBrains plugin: it is compiled outside the clone, and runs in a project of the platform's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.client.consumers import run, sources
from tests.client.test_kotlin_consumer import maven, maven_options, repository

pytestmark = pytest.mark.long

__all__ = ["maven", "repository"]

_SAMPLE = "clients/kotlin/samples/jetbrains"
_CLASS_PATH = "org.apache.maven.plugins:maven-dependency-plugin:3.9.0:build-classpath"
_IDE = """
import com.intellij.mock.MockProject
import com.intellij.openapi.util.Disposer
import com.intellij.testFramework.LightVirtualFile
import dev.hummock.sample.ProjectMemory
import dev.hummock.sample.PromptDispatcherWithMemory
import dev.hummock.sample.Session
import java.time.Duration
import kotlinx.coroutines.runBlocking

fun main(arguments: Array<String>) = runBlocking {
    val open = Disposer.newDisposable()
    val project = object : MockProject(null, open) {
        override fun getBasePath() = "/projects/loan/"
    }
    val memory = ProjectMemory(project)
    project.registerService(ProjectMemory::class.java, memory, open)
    val dispatcher = PromptDispatcherWithMemory({ "You are patient." }, Duration.ofSeconds(20))
    for (text in arguments) memory.remember("还款方式", text, LightVirtualFile("RepaymentService.java"))
    println(memory.key + "|" + dispatcher.buildEnhancedSystemPrompt(Session("s", project), "增加先本后息的还款方式"))
    Disposer.dispose(open)
}
"""


@pytest.fixture(scope="module")
def ide(maven: str, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A command that opens a project with the plugin, stores its arguments and prints a prompt."""
    folder = sources(_SAMPLE, tmp_path_factory.mktemp("sample"))
    run([maven, "-B", "-q", "package"], folder, maven_options(repository))
    assert (folder / "target/jetbrains-0.1.0.jar").is_file()
    (folder / "src/main/kotlin/Ide.kt").write_text(_IDE, encoding="utf-8")
    listed = folder / "target/classpath"
    run([maven, "-B", "-q", "compile", _CLASS_PATH, f"-Dmdep.outputFile={listed}"], folder, maven_options(repository))
    return ["java", "-cp", f"{folder / 'target/classes'}:{listed.read_text(encoding='utf-8')}", "IdeKt"]


def test_a_prompt_has_what_the_project_remembers_of_it(ide: list[str], target: str, tmp_path: Path) -> None:
    printed = run([*ide, "先本后息：先还本金，后还利息"], tmp_path, {"HUMMOCK_TARGET": target})
    key, prompt = printed.strip().split("|", 1)
    assert key == "loan"
    assert prompt.startswith("You are patient.\n\n---\n")
    assert "先还本金" in prompt
    assert "RepaymentService.java" in prompt


def test_without_a_service_the_prompt_is_as_it_was(ide: list[str], tmp_path: Path) -> None:
    assert run(ide, tmp_path, {"HUMMOCK_TARGET": "127.0.0.1:1"}) == "loan|You are patient.\n"


def test_the_descriptor_names_classes_that_there_are() -> None:
    root = Path(__file__).parents[2] / _SAMPLE / "src/main"
    named = re.findall(r'Implementation="([\w.]+)"', (root / "resources/META-INF/plugin.xml").read_text("utf-8"))
    assert named
    for name in named:
        assert (root / "kotlin" / f"{name.replace('.', '/')}.kt").is_file()
