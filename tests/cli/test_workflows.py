"""The workflows of GitHub: pinned actions, the fewest rights, and nothing that cannot be run outside it."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

_ROOT = Path(__file__).resolve().parents[2]
_WORKFLOWS = sorted((_ROOT / ".github" / "workflows").glob("*.yml"))
_PINNED = re.compile(r"uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


def load(name: str) -> dict[str, Any]:
    found = yaml.safe_load((_ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def commands_of(workflow: dict[str, Any]) -> Iterator[str]:
    for job in workflow["jobs"].values():
        yield from (step["run"] for step in job["steps"] if "run" in step)


@pytest.mark.parametrize("path", _WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_to_a_commit_and_name_its_version(path: Path) -> None:
    used = [line for line in path.read_text(encoding="utf-8").splitlines() if "uses:" in line]
    assert used
    assert [line for line in used if not _PINNED.search(line)] == []


@pytest.mark.parametrize("path", _WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_read_and_has_no_secret_of_its_own(path: Path) -> None:
    assert load(path.name)["permissions"] == {"contents": "read"}
    assert "${{ secrets." not in path.read_text(encoding="utf-8")


def test_the_check_runs_what_everybody_runs() -> None:
    jobs = load("ci.yml")["jobs"]
    assert [step["run"] for step in jobs["check"]["steps"] if "run" in step] == [".ci/run"]


def test_other_pythons_run_what_a_newcomer_runs() -> None:
    """The runner's own, 3.12, runs the whole check."""
    job = load("ci.yml")["jobs"]["python"]
    assert [step["run"] for step in job["steps"] if "run" in step] == ["make test"]
    (chosen,) = (step["with"] for step in job["steps"] if "setup-python" in step.get("uses", ""))
    assert chosen == {"python-version": "${{ matrix.python }}"}
    assert job["strategy"]["matrix"] == {"python": ["3.11", "3.13"]}


def test_a_release_builds_every_part() -> None:
    built = [re.search(r"make release PARTS=(\S+)", command) for command in commands_of(load("release.yml"))]
    parts = {part for found in built if found for part in found[1].split(",")}
    assert parts == {"python", "kernels", "npm", "vscode", "maven", "go", "sbom"}


def test_only_jobs_that_attest_or_publish_have_an_identity() -> None:
    jobs = load("release.yml")["jobs"]
    identified = {name for name, job in jobs.items() if "id-token" in job.get("permissions", {})}
    assert identified == {"attest", "pypi", "npm", "image-index"}
    pushing = {name for name, job in jobs.items() if "packages" in job.get("permissions", {})}
    assert pushing == {"image", "image-index"}
    assert {name for name, job in jobs.items() if job.get("permissions", {}).get("contents") == "write"} == {"github"}


def test_the_site_is_built_by_anybody_and_published_by_the_only_job_that_may() -> None:
    workflow = load("docs.yml")
    assert list(commands_of(workflow)) == ["make docs"]
    rights = {name: job.get("permissions") for name, job in workflow["jobs"].items()}
    assert rights == {"build": None, "publish": {"pages": "write", "id-token": "write"}}


def test_an_image_is_built_on_its_own_architecture_with_attestations() -> None:
    job = load("release.yml")["jobs"]["image"]
    kinds = {each["architecture"]: each["runner"] for each in job["strategy"]["matrix"]["include"]}
    assert kinds == {"amd64": "ubuntu-24.04", "arm64": "ubuntu-24.04-arm"}
    (build,) = (step["run"] for step in job["steps"] if "buildx build" in step.get("run", ""))
    assert "--sbom=true --provenance=mode=max" in build
    assert "--file service/deploy/Dockerfile ." in build


@pytest.mark.long
def test_the_linter_of_workflows_finds_nothing() -> None:
    linter = shutil.which("actionlint")
    if linter is None:
        pytest.skip("actionlint is missing, which knows the syntax of workflows")
    done = subprocess.run([linter, *_WORKFLOWS], cwd=_ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
