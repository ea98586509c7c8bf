"""Fragments of source files: nothing is lost, and each is what a reader would name."""

import importlib.util
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hummock_tools.indexing.chunker import (
    MAX_FRAGMENT_CHARACTERS,
    MAX_ID_BYTES,
    Fragment,
    SourceFile,
    distinct,
    fragments,
    located_id,
)
from hummock_tools.indexing.languages import LANGUAGES, without_grammar


def cut(path: str, text: str | bytes) -> list[Fragment]:
    return fragments(SourceFile(path=path, data=text.encode() if isinstance(text, str) else text))


def symbols(path: str, text: str) -> list[str]:
    return [fragment.symbol for fragment in cut(path, text)]


def assert_sound(file: SourceFile, found: list[Fragment]) -> None:
    """Ids are distinct, lines lie in the file, and every line that is not blank is in a fragment that spans it."""
    lines = file.lines()
    ids = [fragment.id for fragment in found]
    assert len(set(ids)) == len(ids)
    covered: dict[int, bool] = {}
    for fragment in found:
        assert 1 <= fragment.start_line <= fragment.end_line <= len(lines)
        assert fragment.content.strip()
        assert len(fragment.id.encode()) <= MAX_ID_BYTES
        held = set(fragment.content.split("\n"))
        for row in range(fragment.start_line - 1, fragment.end_line):
            covered[row] = covered.get(row, False) or lines[row] in held
    missing = [row + 1 for row, line in enumerate(lines) if line.strip() and not covered.get(row)]
    assert missing == [], file.path


def package_sources(package: str) -> list[Path]:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return sorted(Path(spec.origin).parent.rglob("*.py"))


@pytest.mark.long
@pytest.mark.parametrize("package", ["typer", "pathspec"])
def test_every_line_of_a_real_package_is_in_a_fragment(package: str) -> None:
    sources = package_sources(package)
    assert sources
    for source in sources:
        file = SourceFile(path=source.name, data=source.read_bytes())
        found = fragments(file)
        assert_sound(file, found)
        long = [each for each in found if len(each.content) > MAX_FRAGMENT_CHARACTERS and "\n" in each.content]
        assert long == []


FRAGMENTS_OF_CODE = st.sampled_from(
    [
        "def f(a):", "class A(B):", "    def m(self):", "        return 1", "    pass", "fun g() = 2",
        "class C(val x: Int) : B by x {", "    companion object { const val Z = 1 }", "}", "{", "", "  ",
        "// comment 注释", "# comment", "@Decorated", "/* open", "*/", "function f() { return `x",
        "export const g = () => {", "impl<T> A for B<T> {", "fn h() -> i32 {", "namespace n {",
        "int *z(int a) { return 0; }", "还款 = 1", "x" * 700, "public void 计算(int a) {", "\ufeff", "\x0c", "\u2028",
    ]
)  # fmt: skip


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(
    lines=st.lists(FRAGMENTS_OF_CODE, max_size=60),
    language=st.sampled_from(LANGUAGES),
    line_end=st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_no_line_is_lost_in_any_language_however_broken(lines: list[str], language: object, line_end: str) -> None:
    extension = next(each.extensions[0] for each in LANGUAGES if each is language)
    file = SourceFile(path=f"a{extension}", data=line_end.join(lines).encode())
    assert_sound(file, fragments(file))


@settings(max_examples=60, deadline=None)
@given(lines=st.lists(st.text(max_size=200), max_size=200))
def test_no_line_is_lost_in_text(lines: list[str]) -> None:
    file = SourceFile(path="notes.txt", data="\n".join(lines).encode())
    assert_sound(file, fragments(file))


def test_the_same_file_gives_the_same_fragments() -> None:
    source = package_sources("typer")[0]
    file = SourceFile(path="a.py", data=source.read_bytes())
    assert fragments(file) == fragments(file)


@pytest.mark.parametrize("text", ["", "\n", " \n\t\n", "\ufeff", "\r\n\r\n"])
@pytest.mark.parametrize("path", ["a.py", "a.txt", "a.kt"])
def test_a_blank_file_has_no_fragments(path: str, text: str) -> None:
    assert cut(path, text) == []


def test_a_byte_order_mark_and_windows_line_ends_leave_no_trace() -> None:
    assert cut("a.py", b"\xef\xbb\xbfdef f():\r\n    return 1\r\n") == cut("a.py", b"def f():\n    return 1\n")


def test_functions_and_small_classes_are_one_fragment_each() -> None:
    text = (
        "import os\n" * 20
        + "\n\n@decorated\ndef f(a: int) -> int:\n    return a\n\n\nclass A:\n    def m(self):\n        pass\n"
    )
    found = cut("pkg/a.py", text)
    assert [(each.id, each.start_line, each.end_line) for each in found] == [
        ("pkg/a.py#(top)", 1, 20),
        ("pkg/a.py#f", 23, 25),
        ("pkg/a.py#A", 28, 30),
    ]
    assert [each.title for each in found] == ["", "f(a: int)", "A"]
    assert found[1].language == "python"


@pytest.mark.parametrize("above", ["\n# About f.\n# 关于 f。\n", "y = 2  # about y\n"])
def test_comments_right_above_a_function_belong_to_it_and_one_behind_code_does_not(above: str) -> None:
    function = cut("a.py", "x = 1\n" * 40 + f"{above}def f():\n    return 1\n")[-1]
    assert (function.symbol, function.start_line) == ("f", 42)


def long_method(name: str, indent: str = "    ") -> str:
    body = "".join(f"{indent}    total_{turn} = compute_{turn}(total)\n" for turn in range(20))
    return f"{indent}def {name}(self, total: int) -> int:\n{body}"


def test_a_large_class_is_a_skeleton_and_its_methods() -> None:
    text = 'class Store:\n    """Keeps things."""\n\n    limit = 3\n\n' + "\n".join(
        long_method(n) for n in ("get", "put")
    )
    skeleton, get, put = cut("a.py", text)
    assert [get.symbol, put.symbol] == ["Store.get", "Store.put"]
    assert skeleton.symbol == "Store"
    assert (skeleton.start_line, skeleton.end_line) == (1, len(text.split("\n")) - 1)
    assert skeleton.content.split("\n") == [
        "class Store:", '    """Keeps things."""', "", "    limit = 3", "", "    def get(self, total: int) -> int …",
        "", "    def put(self, total: int) -> int …",
    ]  # fmt: skip


LONG = "x" * 1_600


@pytest.mark.parametrize(
    ("path", "text", "title"),
    [
        (
            "a.py",
            "class Plan:\n  @cached\n  def parse(self, text: str,  # as typed\n   *, default=None,\n  ) -> date:\n"
            "    '{}'\n",
            "Plan.parse(text: str, *, default=None)",
        ),
        (
            "A.java",
            "class Area {{\n  @Override\n  double of(@NotNull final Circle c, /* all */ List<Shape> s) "
            '{{ return "{}"; }}\n}}\n',
            "Area.of(Circle c, List<Shape> s)",
        ),
        (
            "a.kt",
            'class Plan {{\n  @JvmStatic\n  fun parse(@Raw text: String, n: Int = 3): Date {{ return "{}" }}\n}}\n',
            "Plan.parse(text: String, n: Int = 3)",
        ),
        ("a.ts", 'export const f = (a: number, /* b */ b?: B) => {{ return "{}" }}\n', "f(a: number, b?: B)"),
        (
            "a.go",
            'package a\nfunc (p *Plan) Parse(text string) error {{\n return "{}"\n}}\n',
            "Plan.Parse(text string)",
        ),
        ("a.cpp", 'int geo::Area::of(const Circle& c) {{ return "{}"; }}\n', "geo.Area.of(const Circle& c)"),
        ("a.rs", 'impl Plan {{\n fn parse(&self, text: &str) -> u8 {{ "{}" }}\n}}\n', "Plan.parse(text: &str)"),
    ],
)
def test_a_function_is_titled_by_its_path_and_parameters_alone(path: str, text: str, title: str) -> None:
    """No comment, annotation or type of what it returns stands in the name."""
    assert title in {each.title for each in cut(path, text.format(LONG))}


def test_a_long_function_is_windows_with_the_same_title() -> None:
    text = "def f(total):\n" + "".join(f"    total = step_{turn}(total)  # {'x' * 40}\n" for turn in range(60))
    found = cut("a.py", text)
    assert [each.id for each in found] == [f"a.py#f{suffix}" for suffix in ("", "@2", "@3")]
    assert {each.title for each in found} == {"f(total)"}
    assert all(len(each.content) <= MAX_FRAGMENT_CHARACTERS for each in found)


def test_ids_are_distinct_hold_no_control_character_and_do_not_move() -> None:
    text = "".join(f"def {name}():\n    return {number}\n\n" for number, name in enumerate("fffg"))
    ids = [each.id for each in cut("a.py", text)]
    assert ids == ["a.py#f", "a.py#f~2", "a.py#f~3", "a.py#g"]
    assert [each.id for each in cut("a.py", "# new\n\n" + text)] == ids
    taken: set[str] = set()
    assert [distinct("a\x07b\x85", taken), distinct("a\x08b\x85", taken)] == ["a?b?", "a?b?~2"]


@pytest.mark.parametrize(
    ("path", "language"), [("a.#", "text"), ("a.yaml", "yaml"), ("a.x y", "text"), ("Makefile", "text")]
)
def test_a_format_that_is_no_language_of_ours_is_named_by_its_extension(path: str, language: str) -> None:
    assert [each.language for each in cut(path, "x\n")] == [language]


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("a.py", "async def f():\n  pass\nif X:\n  def g():\n    pass\n", ["f", "g"]),
        ("a.java", "@Service\nclass A<T> { A() { } }\nrecord R(int a) { }\nenum E { X }\n", ["A", "R", "E"]),
        ("a.kt", "fun String.ext() = 1\nobject O {\n fun g() {}\n}\ninterface I {\n fun h()\n}\n", ["ext", "O", "I"]),
        ("a.ts", "export class A { m() {} }\nexport const f = (a: number) => a\ntype T = 1\n", ["A", "f"]),
        ("a.tsx", "export const V = () => <p>x</p>\nexport default function () {}\n", ["V", "default"]),
        (
            "a.js",
            "exports.f = function () {}\nfunction* g() {}\nA.prototype.z = () => 1\n",
            ["exports.f", "g", "A.prototype.z"],
        ),
        ("a.go", "type S struct{}\nfunc (s *S[T]) M() {}\nfunc F() {}\n", ["S", "S.M", "F"]),
        ("a.rs", "impl<T> Tr for S<T> { fn m() {} }\nmod m {\n pub fn f() {}\n}\n", ["S", "m.f"]),
        ("a.c", "static int *f(int a) { return 0; }\ntypedef struct { int a; } t;\n", ["f", "t"]),
        ("a.cpp", "namespace n {\nclass A { int m(); };\n}\nint n::A::m() { return 1; }\n", ["n.A", "n.A.m"]),
        ("a.h", "template <class T>\nstruct P { T a; };\n", ["P"]),
        ("还款.java", "class 还款服务 { }\ninterface 计算 { }\n", ["还款服务", "计算"]),
    ],
)
def test_symbols_are_named_as_the_language_names_them(path: str, text: str, expected: list[str]) -> None:
    assert symbols(path, text) == expected


KOTLIN_MEMBERS = "\n".join(
    f"    fun step{turn}(a: Int): Int {{\n        // {'x' * 150}\n        return a + {turn}\n    }}"
    for turn in range(12)
)


@pytest.mark.long
def test_a_kotlin_class_that_delegates_still_shows_its_functions() -> None:
    """The grammar takes the body of such a class for the trailing lambda of a call."""
    text = f"class A(val x: B) : B by x {{\n    companion object {{ const val Z = 1 }}\n{KOTLIN_MEMBERS}\n}}\n"
    found = symbols("a.kt", text)
    assert "A.step0" in found
    assert "A.step11" in found


BROKEN_KOTLIN = "val X = 1\n@Foo\nclass A : B by x {\n companion object { const val Z = 1 }\n constructor() : this(1)\n"
DEEP = "".join(" " * depth + "if x:\n" for depth in range(800)) + " " * 800 + "pass\n"


@pytest.mark.parametrize(("path", "text"), [("a.kt", f"{BROKEN_KOTLIN}{KOTLIN_MEMBERS}\n"), ("a.py", DEEP)])
def test_a_file_that_does_not_parse_or_nests_deeply_loses_nothing(path: str, text: str) -> None:
    file = SourceFile(path=path, data=text.encode())
    assert_sound(file, fragments(file))


def test_a_source_that_the_parser_is_too_slow_for_falls_back_to_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "def f():\n    return [1, 2, 3]\n" * 100
    monkeypatch.setattr("hummock_tools.indexing.languages._PARSE_CPU_S", -1.0)
    assert {each.symbol for each in cut("a.py", text)} == {""}
    monkeypatch.undo()
    assert {each.symbol for each in cut("a.py", text)} == {"f"}


def test_text_is_cut_into_overlapping_windows_of_sixty_lines() -> None:
    found = cut("a.yaml", "\n".join(f"key_{turn}: {turn}" for turn in range(130)))
    assert [(each.start_line, each.end_line) for each in found] == [(1, 60), (55, 114), (109, 130)]
    assert found[1].id == "a.yaml#L55"
    assert {each.language for each in found} == {"yaml"}


def test_a_language_without_its_grammar_falls_back_to_windows_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hummock_tools.indexing.languages.parser_for", lambda language: None)
    monkeypatch.setattr("hummock_tools.indexing.languages.parser_for", lambda language: None)
    found = cut("a.py", "def f():\n    return 1\n")
    assert [(each.id, each.language) for each in found] == [("a.py#L1", "python")]
    assert without_grammar(["python", "yaml", "python"]) == ["python"]


def test_every_grammar_is_installed_with_the_extra() -> None:
    assert without_grammar(language.name for language in LANGUAGES) == []


@given(path=st.text(min_size=1, max_size=300), other=st.text(min_size=1, max_size=300), place=st.text(max_size=300))
def test_an_id_fits_its_limit_and_tells_paths_apart(path: str, other: str, place: str) -> None:
    encodable = all(not "\ud800" <= character <= "\udfff" for character in path + other + place)
    if not encodable:
        return
    assert len(located_id(path, place).encode()) <= MAX_ID_BYTES
    assert (located_id(path, place) == located_id(other, place)) == (path == other)
