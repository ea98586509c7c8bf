"""What `make release` builds: versions, missing tools, the same bytes twice, and packages that work without a clone."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

from bench import toy_models
from hummock_tools.cli.background import SERVING_ON
from tests.client.consumers import require, sources

_ROOT = Path(__file__).resolve().parents[2]
_SOURCES = (
    *("service", "kernels", "proto", "clients/python", "clients/go", "pyproject.toml", ".gitignore"),
    *("README.md", "LICENSE", "NOTICE", "CHANGELOG.md"),
)
_COMMITTED = {"GIT_AUTHOR_DATE": "2026-11-28T14:42:12Z", "GIT_COMMITTER_DATE": "2026-11-28T14:42:12Z"}
_LIMIT_S = 600


def load() -> ModuleType:
    """The script, as a module."""
    spec = importlib.util.spec_from_file_location("release", _ROOT / "service" / "setup" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


release = load()


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=tests", "-c", "user.email=tests@localhost", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *arguments], cwd=folder, env={**os.environ, **_COMMITTED}, check=True)


def repository_in(folder: Path) -> Path:
    """A repository whose one commit is what is in the folder."""
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "all")
    return folder


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A repository with a version, a licence and a module of Go, all empty."""
    folder = tmp_path / "small"
    (folder / "clients" / "go").mkdir(parents=True)
    (folder / "clients" / "go" / "go.mod").write_text("module hummock.dev/go\n", encoding="utf-8")
    (folder / "LICENSE").write_text("Apache-2.0\n", encoding="utf-8")
    (folder / "pyproject.toml").write_text('[project]\nversion = "0.3.0"\n', encoding="utf-8")
    return repository_in(folder)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the files that packages are built of, as they are now."""
    folder = tmp_path_factory.mktemp("clone")
    for name in _SOURCES:
        sources(name, folder)
    return repository_in(folder)


def build(clone: Path, dist: Path, monkeypatch: pytest.MonkeyPatch, *parts: str) -> int:
    """The exit status of a build into a folder."""
    monkeypatch.setattr(release, "ROOT", clone)
    monkeypatch.setattr(release, "DIST", dist)
    status = release.main(parts)
    assert isinstance(status, int)
    return status


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_tag_is_the_version_of_all_and_a_commit_before_it_comes_before_it(small: Path) -> None:
    version = release.version_of(small)
    assert (version.python, version.npm) == ("0.3.0.dev20261128144212", "0.3.0-dev.20261128144212")
    assert version.maven == "0.3.0-alpha.20261128144212"
    assert re.fullmatch(r"v0\.0\.0-20261128144212-[0-9a-f]{12}", version.go)
    git(small, "tag", "v1.2.3")
    git(small, "tag", "clients/go/v1.2.3")
    version = release.version_of(small)
    assert (version.python, version.npm, version.maven, version.go) == ("1.2.3", "1.2.3", "1.2.3", "v1.2.3")


@pytest.mark.parametrize("tags", [("v1.2",), ("v1.2.3rc1",), ("v1.2.3", "v1.2.4")], ids=", ".join)
def test_odd_tags_are_refused_by_name(small: Path, tags: tuple[str, ...]) -> None:
    for tag in tags:
        git(small, "tag", tag)
    with pytest.raises(release.PartFailed, match=f"{re.escape(', '.join(tags))}.*such as v0.1.0"):
        release.version_of(small)


def test_outside_a_repository_the_need_of_one_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build(tmp_path, tmp_path / "dist", monkeypatch, "go") == 1
    assert "built in a clone" in capsys.readouterr().err


def test_an_unknown_part_is_refused_with_those_that_there_are(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build(small, small / "dist", monkeypatch, "go,rust") == 2
    assert "rust; there are python, kernels, npm, vscode, maven, go, sbom" in capsys.readouterr().err
    assert not (small / "dist").exists()


def test_a_missing_tool_is_named_and_the_rest_is_built(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").symlink_to(shutil.which("git") or "git")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert build(small, tmp_path / "dist", monkeypatch, "npm", "maven", "go") == 1
    said = capsys.readouterr().err
    assert "npm: npm is missing" in said
    assert "maven: mvn is missing" in said
    assert "make release PARTS=go" in said
    assert {path.name for path in (tmp_path / "dist").iterdir()} == {"go", "SHA256SUMS"}


def test_a_build_replaces_its_part_and_leaves_the_others(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dist = tmp_path / "dist"
    for name in ("go/old", "hummock-0.0.1.tgz"):
        (dist / name).parent.mkdir(exist_ok=True, parents=True)
        (dist / name).write_bytes(b"")
    assert build(small, dist, monkeypatch, "go") == 0
    assert build(small, dist, monkeypatch, "go") == 0
    assert (dist / "hummock-0.0.1.tgz").exists()
    assert not (dist / "go" / "old").exists()
    sums = (dist / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    assert [line.split("  ")[1] for line in sums] == sorted(bytes_of(dist).keys() - {"SHA256SUMS"})


@pytest.mark.long
def test_the_same_commit_gives_the_same_bytes(clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert build(clone, tmp_path / "one", monkeypatch, "python", "go") == 0
    git(tmp_path, "clone", "--quiet", str(clone), "elsewhere")
    assert build(tmp_path / "elsewhere", tmp_path / "two", monkeypatch, "python", "go") == 0
    one, two = bytes_of(tmp_path / "one"), bytes_of(tmp_path / "two")
    assert len(one) >= 7
    assert sorted(one) == sorted(two)
    assert [name for name in one if one[name] != two[name]] == []


@pytest.mark.long
def test_go_fetches_the_module_from_the_folder(clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go = require("go", "no module can be fetched")
    assert build(clone, tmp_path / "dist", monkeypatch, "go") == 0
    environ = {"GOPROXY": (tmp_path / "dist/go").as_uri(), "GONOSUMDB": "*", "GOFLAGS": "-modcacherw"}
    environ |= {"HOME": str(tmp_path), "GOPATH": str(tmp_path / "gopath"), "PATH": os.environ["PATH"]}
    command = [go, "mod", "download", "hummock.dev/go@latest"]
    subprocess.run(command, cwd=tmp_path, env=environ, timeout=_LIMIT_S, check=True)
    (fetched,) = (tmp_path / "gopath/pkg/mod/hummock.dev").glob("go@*")
    assert (fetched / "LICENSE").read_bytes() == (_ROOT / "LICENSE").read_bytes()
    assert (fetched / "hummock").is_dir()


@pytest.fixture(scope="module")
def installed(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel for this machine; what the wheel needs comes from this environment."""
    folder = tmp_path_factory.mktemp("installed")
    with pytest.MonkeyPatch.context() as monkeypatch:
        part = "kernels" if sys.platform == "linux" and os.uname().machine == "x86_64" else "python"
        assert build(clone, folder / "dist", monkeypatch, part) == 0
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    (wheel,) = (folder / "dist").glob("*.whl")
    python = folder / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, str(wheel)], timeout=_LIMIT_S, check=True)
    (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    # A line of a .pth file adds a folder, but not what that folder's own .pth files name, as this project's sources.
    others = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "others.pth").write_text("\n".join(others), encoding="utf-8")
    return folder / "venv" / "bin"


def run(installed: Path, home: Path, *command: str, **environ: str) -> str:
    """What a command of the environment prints, with an empty home and no clone in sight."""
    done = subprocess.run(
        [installed / command[0], *command[1:]],
        cwd=home,
        env={"HOME": str(home), "PATH": os.defpath, **environ},
        timeout=_LIMIT_S,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def serving(installed: Path, home: Path, models: Path) -> Iterator[str]:
    """The target of a service of the environment, stopped at exit."""
    command = [str(installed / "hummock"), "serve", "--port", "0", "--models", str(models), "--model", toy_models.TINY]
    environ = {"HOME": str(home), "PATH": os.defpath}
    with subprocess.Popen(command, cwd=home, env=environ, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().removeprefix(SERVING_ON).strip()
        finally:
            process.terminate()
    assert process.returncode == 0


@pytest.mark.long
def test_an_installed_wheel_serves_and_answers_without_a_clone(installed: Path, tmp_path: Path) -> None:
    toy_models.build_tiny(tmp_path / "models")
    home = tmp_path / "home"
    home.mkdir()
    where = run(installed, home, "python", "-c", "import hummock; print(hummock.__file__)")
    assert where.startswith(str(installed.parent))
    with serving(installed, home, tmp_path / "models") as target:
        text = "parse_date takes ISO 8601 and nothing else"
        run(installed, home, "hummock", "learn", "--project", "shop", text, HUMMOCK_TARGET=target)
        asked = ("recall", "--json", "--project", "shop", "what does parse_date take?")
        recalled = run(installed, home, "hummock", *asked, HUMMOCK_TARGET=target)
    assert text in recalled


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="the wheel is for x86-64")
def test_a_wheel_with_kernels_compiles_nothing(installed: Path, tmp_path: Path) -> None:
    program = """
import hummock_kernels
from hummock_kernels._jit import KERNELS
hummock_kernels.warm()
print(len(KERNELS), sum(sum(kernel.stats.cache_misses.values()) for kernel in KERNELS.values()))
"""
    environ = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    kernels, compiled = run(installed, tmp_path, "python", "-c", program, **environ).split()
    assert int(kernels) > 30
    assert compiled == "0"
