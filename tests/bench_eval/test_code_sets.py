"""Questions about code: of trees that are cut here, and of a repository that is made here with its history."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from bench.eval.code_questions import FOLDERS, CodeQuestion, class_slices, code_questions, name_slices, question_slices
from bench.eval.history import changes, history
from bench.eval.indexed import Indexed, SetSkipped, at_commit, of_package
from hummock_tools.indexing.chunker import SourceFile

pytestmark = pytest.mark.long

PLACE = f"{FOLDERS[0]}/mill.py"
MILL = """\
def grind(grain):
    \"\"\"Makes flour.\"\"\"
    return [crush(each) for each in grain]


def crush(corn):
    \"\"\"Breaks one corn.\"\"\"
    return corn / 2
"""
SMALL_CLASS = '''\
class Lamp:
    """A lamp that is lit."""

    def light(self):
        self.is_on = True
'''


def cut(**files: str) -> Indexed:
    return Indexed.of(SourceFile(path=f"{name}.py", data=text.encode()) for name, text in files.items())


def question(id_: str, symbol: str, repository: str = "mill") -> CodeQuestion:
    return CodeQuestion(
        id=id_, repository=repository, file="mill.py", symbol=symbol, text={"zh": "磨面", "en": "flour"}
    )


def test_a_method_of_a_small_class_is_found_in_the_class() -> None:
    tree = cut(lamp=SMALL_CLASS, mill=MILL)
    assert tree.of_symbol("lamp.py", "Lamp.light") == {"lamp.py#Lamp"}
    assert tree.of_symbol("mill.py", "Lamp.light") == frozenset()
    assert tree.of_file("mill.py") == {"mill.py#grind", "mill.py#crush"}


def test_fragments_are_learnt_as_the_indexer_sends_them() -> None:
    grind = next(each for each in cut(mill=MILL).memories() if each.id == "mill.py#grind")
    assert (grind.code_fragment.path, grind.code_fragment.symbol) == ("mill.py", "grind")
    assert grind.source_hash


def test_each_question_is_asked_for_its_function_and_for_its_file() -> None:
    slices = {each.key: each for each in question_slices([question("q", "grind")], {"mill": cut(mill=MILL)}, print)}
    assert set(slices) == {f"code-{name}{way}" for name in ("zh", "zh-file", "en", "en-file") for way in ("", "@code")}
    assert slices["code-zh"].questions[0].relevant == {"mill.py#grind"}
    assert slices["code-en-file"].questions[0].relevant == {"mill.py#grind", "mill.py#crush"}
    assert (slices["code-zh"].questions[0].text, slices["code-en"].questions[0].text) == ("磨面", "flour")


def test_questions_whose_function_is_gone_are_left_out_aloud() -> None:
    said: list[str] = []
    asked = [question("here", "grind"), question("gone", "sift"), question("elsewhere", "x", repository="other")]
    slices = list(question_slices(asked, {"mill": cut(mill=MILL)}, said.append))
    assert {tuple(one.id for one in each.questions) for each in slices} == {("here",)}
    assert said == ["code: 1 questions are left out, for what they ask about is gone: gone"]


def test_a_name_that_is_defined_once_is_asked_for_in_every_case() -> None:
    grain = "def crush_corn(corn):\n    return corn\n\n\ndef sift_flour(flour):\n    return flour\n"
    other = "def sift_flour(flour):\n    return 1\n"
    slices = list(name_slices({"mill": cut(mill=grain), "shop": cut(shop=other)}))
    asked = [[(one.text, one.project, one.relevant) for one in each.questions] for each in slices]
    texts = ("crush_corn", "crushCorn", "CrushCorn", "CRUSH_CORN", "crush-corn")
    assert asked == [[(text, "code-mill", frozenset({"mill.py#crush_corn"}))] for text in texts]


def test_a_class_with_documentation_is_asked_for_by_what_it_does() -> None:
    slices = list(class_slices({"lamp": cut(lamp=SMALL_CLASS, bare="class Bare:\n    size = 1\n")}))
    assert [each.key for each in slices] == ["classes-en", "classes-zh", "classes-en@code", "classes-zh@code"]
    assert [one.text for each in slices[:2] for one in each.questions] == [
        "What does the class Lamp do?",
        "Lamp 这个类是做什么的",
    ]
    assert all(one.relevant == {"lamp.py#Lamp"} for each in slices for one in each.questions)


def test_a_library_of_another_version_is_left_out_aloud() -> None:
    said: list[str] = []
    assert of_package("click", "0.0.1", said.append) == []
    assert "its questions are left out" in said[0]
    assert of_package("no-such-library", "1", said.append) == []


def test_the_questions_are_two_hundred_in_both_languages_and_name_no_identifier() -> None:
    asked = code_questions()
    assert len(asked) == len({each.id for each in asked}) >= 200
    for each in asked:
        assert re.search("[\u4e00-\u9fff]", each.text["zh"])
        assert each.text["en"].isascii()
        name = each.symbol.rpartition(".")[2].strip("_")
        if "_" in name:
            assert name not in each.text["zh"]
            assert name not in each.text["en"]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    run(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path, "mill: begin", mill=MILL, lamp=SMALL_CLASS)
    run(tmp_path, "tag", "tree")
    return tmp_path


def run(root: Path, *arguments: str) -> None:
    who = ("-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *arguments], cwd=root, check=True, capture_output=True)


def commit(root: Path, subject: str, **files: str) -> None:
    for name, text in files.items():
        path = root / FOLDERS[0] / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    run(root, "add", "-A")
    run(root, "commit", "-q", "-m", subject)


def asked_of(root: Path) -> dict[str, dict[str, frozenset[str]]]:
    corpus = history(Path(), root, (("tree", "main"),))
    return {each.name: {one.text: one.relevant for one in each.questions} for each in corpus.slices}


def test_a_subject_asks_for_what_its_commit_changed_in_the_tree_before_it(repository: Path) -> None:
    commit(repository, "mill: break corn thrice", mill=MILL.replace("corn / 2", "corn / 3"))
    found = asked_of(repository)
    assert found["function"] == {"mill: break corn thrice": {f"{PLACE}#crush"}}
    assert found["file"] == {"mill: break corn thrice": {f"{PLACE}#grind", f"{PLACE}#crush"}}
    assert found["function@code"] == found["function"]
    (memories,) = history(Path(), repository, (("tree", "main"),)).projects.values()
    assert not any("corn / 3" in each.content for each in memories)
    (change,) = changes(repository, "tree", "main")
    assert change.lines == {PLACE: ((8, 8),)}


def test_a_new_function_between_two_others_changes_neither(repository: Path) -> None:
    added = MILL.replace("\n\ndef crush", "\n\ndef sift(flour):\n    return flour\n\n\ndef crush")
    commit(repository, "mill: sift", mill=added)
    found = asked_of(repository)
    assert list(found["file"]) == ["mill: sift"]
    assert found["function"] == {}


def test_files_that_were_made_removed_or_renamed_are_left_out(repository: Path) -> None:
    commit(repository, "oven: begin", oven=MILL.replace("grind", "bake"))
    run(repository, "mv", f"{FOLDERS[0]}/lamp.py", f"{FOLDERS[0]}/light.py")
    run(repository, "commit", "-q", "-m", "lamp: call it light")
    commit(repository, "light: burn", light=SMALL_CLASS.replace("True", "1"))
    assert asked_of(repository)["file"] == {}


def test_a_clone_without_the_history_skips_the_set(repository: Path) -> None:
    assert at_commit(repository, "nowhere", FOLDERS) == []
    with pytest.raises(SetSkipped, match="does not reach"):
        history(Path(), repository, (("nowhere", "main"),))
