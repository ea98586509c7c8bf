"""Registration, warm-up and the choice of target and cache."""

import ast
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import hummock_kernels
from hummock_kernels import _cache_dir, _jit, reference
from hummock_kernels.warm import KERNEL_MODULES

pytestmark = pytest.mark.long

PACKAGE = Path(hummock_kernels.__file__).parent
V3 = dict.fromkeys(["avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"], True)


def test_every_kernel_has_a_twin_of_the_same_name() -> None:
    hummock_kernels.warm()
    assert _jit.KERNELS
    assert [name for name in _jit.KERNELS if not callable(getattr(reference, name, None))] == []


def test_warming_covers_every_module_that_holds_a_kernel() -> None:
    holders = {path.stem for path in PACKAGE.glob("*.py") if "@kernel(" in path.read_text("utf-8")}
    assert holders == set(KERNEL_MODULES)


def test_warming_reports_its_progress() -> None:
    reports = []
    hummock_kernels.warm(lambda *report: reports.append(report))
    total = len(KERNEL_MODULES)
    assert reports == [(name, done, total) for done, name in enumerate(KERNEL_MODULES, 1)]


def test_set_up_compiles_what_a_start_would() -> None:
    command = [sys.executable, "-W", "error", "-m", "hummock_kernels"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_an_empty_cache_is_filled_by_two_processes(tmp_path: Path) -> None:
    script = """
import importlib
two = importlib.import_module("hummock_kernels.warm")  # the package has a function of that name
two._OWN, two._BESIDE, two.KERNEL_MODULES = ("mmr",), ("turns",), ("mmr", "turns")
two.warm()
"""
    environ = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], env=environ, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    (state,) = tmp_path.iterdir()
    assert {path.name.partition(".")[0] for path in state.rglob("*.nbi")} >= {"mmr", "turns"}


def test_compile_flags_stand_in_one_file() -> None:
    """STYLE: `@kernel` alone sets flags."""
    for path in PACKAGE.glob("*.py"):
        names = {
            node.module for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.ImportFrom)
        }
        assert "numba" not in names or path.stem == "_jit"


def test_importing_the_package_does_not_import_numba() -> None:
    run_python("import sys, hummock_kernels; assert 'numba' not in sys.modules")


def run_python(program: str, **environ: str) -> None:
    environ = {"PATH": os.defpath, "PYTHONPATH": str(PACKAGE.parent), **environ}
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, env=environ)


@pytest.mark.parametrize(
    ("environ", "machine", "features", "expected"),
    [
        ({}, "x86_64", V3, {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": ""}),
        ({}, "aarch64", V3, {}),
        ({}, "arm64", V3, {}),
        ({}, "x86_64", V3 | {"avx2": False}, {}),
        ({"NUMBA_CPU_NAME": "generic"}, "x86_64", V3, {"NUMBA_CPU_NAME": "generic"}),
    ],
    ids=["modern", "aarch64", "arm64", "old", "set by the user"],
)
def test_a_modern_x86_processor_alone_is_compiled_for_by_its_level(
    environ: dict[str, str], machine: str, features: dict[str, bool], expected: dict[str, str]
) -> None:
    """DESIGN 8."""
    given = dict(environ)
    _jit.set_target(given, machine, features)
    assert given == expected


@pytest.mark.parametrize(
    ("machine", "host", "name", "features", "expected"),
    [
        ("x86_64", V3, "x86-64-v3", "", True), ("x86_64", V3, None, None, True), ("x86_64", V3, "generic", "", False),
        ("x86_64", V3, "x86-64-v2", "+f16c,+sse3", True), ("x86_64", V3, "x86-64-v3", "-f16c", False),
        ("x86_64", {}, "x86-64-v3", "", False), ("aarch64", {}, None, None, True), ("riscv64", {}, None, None, False),
    ],
)  # fmt: skip
def test_the_float16_instruction_is_assumed_only_where_it_is_certain(
    machine: str, host: dict[str, bool], name: str | None, features: str | None, expected: bool
) -> None:
    assert _jit.can_convert_half(machine, host, name, features) is expected


def test_kernels_run_on_a_target_without_the_instruction(tmp_path: Path) -> None:
    """DESIGN 8: there the process would abort."""
    run_python(
        "import numpy as np; from hummock_kernels import _jit, cosine;"
        "assert not _jit.HAS_F16C;"
        "assert cosine.score_rows(np.full((1, 1), 0x3C00, np.uint16), np.ones(1, 'f4'), np.zeros(1, np.int64))[0] == 1",
        NUMBA_CPU_NAME="generic",
        NUMBA_CPU_FEATURES="",
        NUMBA_CACHE_DIR=str(tmp_path),
    )


def test_a_writable_install_keeps_its_cache_beside_the_code(tmp_path: Path) -> None:
    assert _cache_dir.choose_cache_dir(tmp_path, {"HOME": str(tmp_path)}) == tmp_path / "__pycache__"


@pytest.fixture
def read_only_package(tmp_path: Path) -> Path:
    """A place that nobody can write to, root included: its parent is a file."""
    (tmp_path / "file").write_text("")
    return tmp_path / "file" / "package"


@pytest.mark.parametrize(
    ("variable", "tail"),
    [("XDG_CACHE_HOME", "hummock/numba"), ("HOME", ".cache/hummock/numba"), ("HUMMOCK_DATA", "cache/numba")],
)
def test_a_read_only_install_caches_for_the_user(
    read_only_package: Path, tmp_path: Path, variable: str, tail: str
) -> None:
    """DESIGN 8."""
    chosen = _cache_dir.choose_cache_dir(read_only_package, {variable: str(tmp_path / "place")})
    assert chosen == tmp_path / "place" / tail
    assert chosen.is_dir()


def test_a_read_only_install_without_a_home_has_a_private_temporary_cache(
    read_only_package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DESIGN 8."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    chosen = _cache_dir.choose_cache_dir(read_only_package, {"XDG_CACHE_HOME": "relative"})
    assert chosen == tmp_path / f"hummock-numba-{os.getuid()}"
    assert stat.S_IMODE(chosen.stat().st_mode) == 0o700


def test_a_cache_that_the_user_has_chosen_is_used_where_it_can_be(tmp_path: Path, read_only_package: Path) -> None:
    chosen = tmp_path / "chosen"
    home = str(tmp_path / "home")
    assert _cache_dir.choose_cache_dir(tmp_path, {"NUMBA_CACHE_DIR": str(chosen)}) == chosen
    elsewhere = _cache_dir.choose_cache_dir(
        read_only_package, {"NUMBA_CACHE_DIR": str(read_only_package), "HOME": home}
    )
    assert elsewhere == tmp_path / "home/.cache/hummock/numba"


def test_each_state_of_the_sources_has_a_directory_of_its_own(tmp_path: Path) -> None:
    environ = {"NUMBA_CACHE_DIR": str(tmp_path / "place")}
    (tmp_path / "one.py").write_text("1")
    first = _cache_dir.cache_dir_of(tmp_path, environ)
    (tmp_path / "one.py").write_text("2")
    second = _cache_dir.cache_dir_of(tmp_path, environ)
    (tmp_path / "one.py").write_text("1")
    assert first != second
    assert _cache_dir.cache_dir_of(tmp_path, environ) == first
    assert first.parent == second.parent == tmp_path / "place"


def test_a_place_whose_directory_belongs_to_somebody_else_is_passed_over(tmp_path: Path) -> None:
    environ = {"NUMBA_CACHE_DIR": str(tmp_path / "place"), "HOME": str(tmp_path)}
    name = _cache_dir.cache_dir_of(tmp_path / "package", environ).name
    (tmp_path / "place" / name).rmdir()
    (tmp_path / "place" / name).write_text("nothing can be written beneath it")
    assert _cache_dir.cache_dir_of(tmp_path / "package", environ) == tmp_path / "package" / "__pycache__" / name


def test_a_process_uses_the_directory_of_the_one_that_started_it(tmp_path: Path) -> None:
    chosen = _cache_dir.cache_dir_of(tmp_path, {"NUMBA_CACHE_DIR": str(tmp_path / "place")})
    assert _cache_dir.cache_dir_of(tmp_path, {"NUMBA_CACHE_DIR": str(chosen)}) == chosen


def test_the_directories_that_were_used_last_stay_and_so_does_what_else_is_there(tmp_path: Path) -> None:
    place = tmp_path / "place"
    environ = {"NUMBA_CACHE_DIR": str(place)}
    (place / "others").mkdir(parents=True)
    made = []
    for state in range(4):
        (tmp_path / "one.py").write_text(str(state))
        made.append(_cache_dir.cache_dir_of(tmp_path, environ))
        for age, directory in enumerate(reversed(made)):
            os.utime(directory, (1000 - age, 1000 - age)) if directory.exists() else None
    assert sorted(place.iterdir()) == sorted([place / "others", *made[1:]])


def test_the_directory_is_used_where_numba_was_imported_before(tmp_path: Path) -> None:
    run_python("import numba; from hummock_kernels import topk", NUMBA_CACHE_DIR=str(tmp_path))
    assert [path.parts[0] for path in (path.relative_to(tmp_path) for path in tmp_path.rglob("topk.*.nbi"))] == [
        _cache_dir.cache_dir_of(PACKAGE, {"NUMBA_CACHE_DIR": str(tmp_path)}).name
    ]


def test_kernels_run_where_nothing_can_be_written(tmp_path: Path) -> None:
    """DESIGN 8: they are compiled at every start then."""
    run_python(
        "from unittest import mock\n"
        "refuse = mock.Mock(side_effect=OSError)\n"
        "with mock.patch.multiple('tempfile', TemporaryFile=refuse, mkdtemp=refuse):\n"
        "    from hummock_kernels import topk, _jit\n"
        "assert 'top_k' in _jit.KERNELS",
        TMPDIR=str(tmp_path),
    )


def test_a_temporary_cache_that_others_can_write_to_is_not_used(
    read_only_package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    planted = tmp_path / f"hummock-numba-{os.getuid()}"
    planted.mkdir()
    planted.chmod(0o777)
    chosen = _cache_dir.choose_cache_dir(read_only_package, {})
    assert chosen not in {None, planted}
    assert stat.S_IMODE(chosen.stat().st_mode) == 0o700


def test_kernels_compiled_ahead_are_taken_for_their_sources_and_their_target_alone(tmp_path: Path) -> None:
    folder = tmp_path / "compiled" / "hummock-0123456789abcdef" / "numba-1.0-x86-64-v3"
    folder.mkdir(parents=True)
    cache = tmp_path / "cache" / "hummock-0123456789abcdef"
    assert _cache_dir.compiled_ahead(tmp_path, cache, "numba-1.0-x86-64-v3") == folder
    assert _cache_dir.compiled_ahead(tmp_path, cache, "numba-1.1-x86-64-v3") is None
    assert _cache_dir.compiled_ahead(tmp_path, cache, "numba-1.0-None") is None
    assert _cache_dir.compiled_ahead(tmp_path, cache.with_name("hummock-fedcba9876543210"), folder.name) is None


def test_what_the_cache_has_is_not_replaced_by_what_was_compiled_ahead(tmp_path: Path) -> None:
    source, folder = tmp_path / "source", tmp_path / "folder"
    for place, names in ((source, ("a.nbi", "a.1.nbc", "b.nbi", "b.1.nbc")), (folder, ("a.nbi", "a.1.nbc"))):
        place.mkdir()
        for name in names:
            (place / name).write_text(place.name, encoding="utf-8")
    _cache_dir.copy_missing(source, folder)
    found = {path.name: path.read_text("utf-8") for path in folder.iterdir()}
    assert found == {"a.nbi": "folder", "a.1.nbc": "folder", "b.nbi": "source", "b.1.nbc": "source"}
