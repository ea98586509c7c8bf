"""Builds what a release consists of into `dist/`, from the commit that is checked out: `make release`.

    release.py [PART[,PART]...]    without a name all of them

A part is built in a copy of the commit and replaces what `dist/` holds of it only when it is whole, so that a run can
be repeated or interrupted. Built twice from one commit, everything has the same bytes, except `kernels` and the
metadata of `maven`, which hold times and addresses.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import tomlkit

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"
SBOM_ENVIRONMENT = ROOT / ".toolchain" / "sbom"
_TAG = re.compile(r"v(\d+\.\d+\.\d+)")
_CPU = "x86-64-v3"
_VERSIONS_PLUGIN = "org.codehaus.mojo:versions-maven-plugin:2.18.0"
_GO_MODULE = "hummock.dev/go"
_LAST_LINES = 25


class PartFailed(Exception):
    """A part cannot be built here; the message says what is missing or what the tool said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A version as the registries write it: the tag's, or one that sorts before the release to come."""

    number: str
    """Three numbers, such as 0.1.0."""
    commit: str
    time: datetime
    """Time of the commit, in UTC."""
    is_release: bool

    @property
    def python(self) -> str:
        """PEP 440's form."""
        return self._form(".dev{}")

    @property
    def npm(self) -> str:
        """Semantic Versioning's form."""
        return self._form("-dev.{}")

    @property
    def maven(self) -> str:
        """Maven's form; `alpha` because an unknown qualifier sorts after the release."""
        return self._form("-alpha.{}")

    @property
    def go(self) -> str:
        """The version of Go's module; without a tag the pseudo-version that Go gives a commit."""
        return f"v{self.number}" if self.is_release else f"v0.0.0-{self.stamp}-{self.commit[:12]}"

    @property
    def stamp(self) -> str:
        """The time of the commit, as fourteen digits."""
        return f"{self.time:%Y%m%d%H%M%S}"

    def _form(self, suffix: str) -> str:
        return self.number + ("" if self.is_release else suffix.format(self.stamp))


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A copy of the commit, and the version that is built of it."""

    folder: Path
    version: Version

    def run(self, *command: str | Path, folder: str = ".", **environ: str) -> None:
        """Run a tool in a folder of the copy. Raises: PartFailed, with the last lines of its output."""
        epoch = str(int(self.version.time.timestamp()))
        _run(command, self.folder / folder, {"SOURCE_DATE_EPOCH": epoch, **environ})


def build_python(source: Source, out: Path) -> None:
    """Build the wheel and the source distribution."""
    source.run(sys.executable, "-m", "hatchling", "build", "-d", out)


def build_kernels(source: Source, out: Path) -> None:
    """Build the wheel for this Python on Linux and x86-64-v3, with kernels that are compiled already."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise PartFailed("compiled ahead for Linux on x86-64 alone; elsewhere the first start compiles them")
    cache = out.parent / "cache"
    target = {"NUMBA_CPU_NAME": _CPU, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(cache)}
    source.run(sys.executable, "-m", "hummock_kernels", PYTHONPATH=str(source.folder / "kernels"), **target)
    # Numba's folder is named after the place of the sources; in the wheel it is named after its target.
    (state,) = cache.iterdir()
    (compiled,) = state.iterdir()
    compiled.rename(state / f"numba-{metadata.version('numba')}-{_CPU}")
    source.run(sys.executable, "-m", "hatchling", "build", "-d", out, "-t", "wheel", HUMMOCK_COMPILED=str(cache))


def build_npm(source: Source, out: Path) -> None:
    """Build the package of the client for TypeScript."""
    npm = _tool("npm")
    client = "clients/typescript"
    version = source.version.npm
    source.run(npm, "version", version, "--no-git-tag-version", "--allow-same-version", "--silent", folder=client)
    source.run(npm, "pack", "--silent", "--pack-destination", out, folder=client)


def build_vscode(source: Source, out: Path) -> None:
    """Build the extension for VS Code, with the client for TypeScript in it."""
    npm = _tool("npm")
    extension = "clients/vscode"
    version = source.version.npm
    source.run(npm, "version", version, "--no-git-tag-version", "--allow-same-version", "--silent", folder=extension)
    packed = out / f"hummock-{version}.vsix"
    source.run(npm, "run", "--silent", "package", "--", "--out", packed, folder=extension)


def build_maven(source: Source, out: Path) -> None:
    """Build a repository that holds the client for Kotlin and Java, and its jar for plugins."""
    maven = (_tool("mvn"), "-B", "-q")
    client = "clients/kotlin"
    new = ("-DprocessAllModules=true", "-DgenerateBackupPoms=false", "-DupdateBuildOutputTimestampPolicy=never")
    source.run("sh", "../protos.sh", folder=client, PYTHON=sys.executable)
    source.run(*maven, f"{_VERSIONS_PLUGIN}:set", f"-DnewVersion={source.version.maven}", *new, folder=client)
    repository = f"-DaltDeploymentRepository=dist::{(out / 'maven').as_uri()}"
    built = f"-Dproject.build.outputTimestamp={source.version.time:%Y-%m-%dT%H:%M:%SZ}"
    # Deployed alone: an installation would stay in the user's own repository.
    chosen = ("-pl", "client,plugin", "-am", "-Dmaven.test.skip=true", "-Dmaven.install.skip=true")
    source.run(*maven, "deploy", *chosen, built, repository, folder=client)


def build_go(source: Source, out: Path) -> None:
    """Build a module proxy that holds the client for Go: `GOPROXY=file://…/dist/go`."""
    version = source.version.go
    client = source.folder / "clients/go"
    versions = out / "go" / _GO_MODULE / "@v"
    versions.mkdir(parents=True)
    info = json.dumps({"Version": version, "Time": f"{source.version.time:%Y-%m-%dT%H:%M:%SZ}"})
    (versions / f"{version}.info").write_text(info, encoding="utf-8")
    # A list names tags alone; a commit without one is found as the latest.
    (versions / "list").write_text(f"{version}\n" if source.version.is_release else "", encoding="utf-8")
    (versions.parent / "@latest").write_text(info, encoding="utf-8")
    shutil.copyfile(client / "go.mod", versions / f"{version}.mod")
    # All that is committed, and the repository's licence: as Go's own command packs a module in a folder.
    files = {str(path.relative_to(client)): path for path in client.rglob("*") if path.is_file()}
    files["LICENSE"] = source.folder / "LICENSE"
    with zipfile.ZipFile(versions / f"{version}.zip", "w") as packed:
        for name, path in sorted(files.items()):
            # Without a time of its own an entry is of 1980.
            entry = zipfile.ZipInfo(f"{_GO_MODULE}@{version}/{name}")
            packed.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)


def build_sbom(source: Source, out: Path) -> None:
    """List the wheel and the locked packages of the service, with their hashes, as CycloneDX."""
    lock = ROOT / "service" / "locks" / "sbom.txt"
    installed = SBOM_ENVIRONMENT / lock.name
    if not installed.is_file() or installed.read_bytes() != lock.read_bytes():
        venv.create(SBOM_ENVIRONMENT, clear=True, with_pip=True, symlinks=True)
        pip = ("-m", "pip", "--no-input", "install", "--quiet", "--require-hashes", "--only-binary", ":all:")
        source.run(SBOM_ENVIRONMENT / "bin" / "python", *pip, "--requirement", lock)
        shutil.copyfile(lock, installed)
    tool = (SBOM_ENVIRONMENT / "bin" / "cyclonedx-py", "requirements", "--pyproject", "pyproject.toml")
    listed = out / f"hummock-{source.version.python}.cdx.json"
    source.run(*tool, "--output-reproducible", "--output-file", listed, "service/locks/server.txt")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a release, and the names that it has in `dist/`, whatever its version."""

    build: Callable[[Source, Path], None]
    names: tuple[str, ...]


PARTS = {
    "python": Part(build=build_python, names=("hummock-*-none-any.whl", "hummock-*.tar.gz")),
    "kernels": Part(build=build_kernels, names=("hummock-*-cp*.whl",)),
    "npm": Part(build=build_npm, names=("hummock-*.tgz",)),
    "vscode": Part(build=build_vscode, names=("hummock-*.vsix",)),
    "maven": Part(build=build_maven, names=("maven",)),
    "go": Part(build=build_go, names=("go",)),
    "sbom": Part(build=build_sbom, names=("hummock-*.cdx.json",)),
}


def main(arguments: Sequence[str]) -> int:
    """Build the named parts, or all; 1 if any could not be built, 2 if a name is unknown."""
    names = [name for argument in arguments for name in argument.split(",")] or list(PARTS)
    unknown = sorted(set(names) - set(PARTS))
    if unknown:
        print(f"error: no part is called {', '.join(unknown)}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    try:
        with tempfile.TemporaryDirectory(prefix="hummock-release-") as folder:
            version = version_of(ROOT)
            print(f"{version.python} from {version.commit[:12]}", flush=True)
            failed = [name for name in names if not _built(name, version, Path(folder) / name)]
    except PartFailed as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("error: interrupted; dist/ holds whole parts alone", file=sys.stderr)
        return 130
    finally:
        write_sums(DIST)
    if failed:
        rest = ",".join(name for name in names if name not in failed)
        print(f"error: not built: {', '.join(failed)}; to leave them out: make release PARTS={rest}", file=sys.stderr)
    return 1 if failed else 0


def version_of(root: Path) -> Version:
    """The version of the commit that is checked out. Raises: PartFailed, without a repository or with an odd tag."""
    _tool("git")
    if _git(root, "status", "--porcelain", "--untracked-files=no"):
        print("note: what is not committed is not in the release", file=sys.stderr)
    commit, seconds = _git(root, "show", "--no-patch", "--format=%H %ct", "HEAD").split()
    tags = _git(root, "tag", "--points-at", "HEAD", "--list", "v*").split()
    matches = [_TAG.fullmatch(tag) for tag in tags]
    if len(tags) > 1 or None in matches:
        raise PartFailed(f"HEAD is tagged {', '.join(tags)}; a release has one tag such as v0.1.0")
    declared = str(tomlkit.parse((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])
    number = matches[0][1] if matches and matches[0] else declared
    return Version(number=number, commit=commit, time=datetime.fromtimestamp(int(seconds), UTC), is_release=bool(tags))


def write_sums(dist: Path) -> None:
    """Write SHA256SUMS over all files of a folder, as `sha256sum --check` reads it; nothing without a file."""
    sums = dist / "SHA256SUMS"
    files = sorted(path for path in dist.rglob("*") if path.is_file() and path != sums)
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(dist)}\n" for path in files]
    if lines:
        sums.write_text("".join(lines), encoding="utf-8")


def _built(name: str, version: Version, folder: Path) -> bool:
    """Build a part and put it into `dist/`; False, said on stderr, if it cannot be built."""
    started_s = time.monotonic()
    out = folder / "out"
    out.mkdir(parents=True)
    try:
        PARTS[name].build(_copy_of(version, folder / "source"), out)
    except PartFailed as failure:
        print(f"error: {name}: {failure}", file=sys.stderr)
        return False
    DIST.mkdir(exist_ok=True)
    for old in [path for pattern in PARTS[name].names for path in DIST.glob(pattern)]:
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    made = sorted(out.iterdir())
    for path in made:
        shutil.move(path, DIST / path.name)
    print(f"{name}: {', '.join(path.name for path in made)}, {time.monotonic() - started_s:.0f} s", flush=True)
    return True


def _copy_of(version: Version, folder: Path) -> Source:
    """Unpack the commit into a folder and write the version of Python's package."""
    packed = subprocess.run(["git", "archive", version.commit], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    project = folder / "pyproject.toml"
    document = tomlkit.parse(project.read_text(encoding="utf-8"))
    document["project"]["version"] = version.python
    project.write_text(tomlkit.dumps(document), encoding="utf-8")
    return Source(folder=folder, version=version)


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise PartFailed(f"{name} is missing")
    return found


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise PartFailed(f"a release is built in a clone: {done.stderr.strip()}")
    return done.stdout.strip()


def _run(command: Sequence[str | Path], folder: Path, environ: dict[str, str]) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environ},
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    if done.returncode != 0:
        tail = "\n".join(done.stdout.splitlines()[-_LAST_LINES:])
        raise PartFailed(f"{Path(command[0]).name} ended with {done.returncode}:\n{tail}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
