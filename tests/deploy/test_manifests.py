"""What service/deploy holds for Docker, Compose and Kubernetes, read by the programs that it is for."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hummock.config import Settings
from hummock.rpc.listening import DRAIN_S
from tests.client.consumers import require
from tests.deploy.engine import DEPLOY, read_dockerfile

pytestmark = pytest.mark.long

_LIMIT_S = 900
_PASSWORDS = dict.fromkeys(("POSTGRES_PASSWORD", "HUMMOCK_OWNER_PASSWORD", "HUMMOCK_APP_PASSWORD"), "secret")
_COMPOSE = [DEPLOY / "compose.yaml"]
_OVER_POSTGRESQL = [*_COMPOSE, DEPLOY / "compose.postgresql.yaml"]
_PORT: int = Settings.model_fields["port"].default

Check = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def check(tmp_path_factory: pytest.TempPathFactory) -> Check:
    """Run the checker, which is built of Kubernetes' types, Compose's loader and BuildKit's parser."""
    go = require("go", "manifests are not read as Kubernetes, Compose and BuildKit read them")
    built = tmp_path_factory.mktemp("checker") / "deploycheck"
    command: list[str | Path] = [go, "build", "-o", built, "."]
    subprocess.run(command, cwd=Path(__file__).parent / "checker", check=True, timeout=_LIMIT_S)

    def run(*arguments: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("HUMMOCK_")}
        return subprocess.run(
            [built, *arguments], env={**kept, **environ}, capture_output=True, text=True, check=False, timeout=_LIMIT_S
        )

    return run


def values_of(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module", params=["lmdb", "postgresql"])
def objects(check: Check, request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    """The objects of a kustomization, by their kinds."""
    built = values_of(check("kubernetes", DEPLOY / "kubernetes" / request.param))
    return {each["kind"]: each for each in built}


def pod_of(objects: dict[str, dict[str, Any]]) -> dict[str, Any]:
    (workload,) = (objects[kind] for kind in ("StatefulSet", "Deployment") if kind in objects)
    pod: dict[str, Any] = workload["spec"]["template"]["spec"]
    return pod


def containers_of(pod: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from pod["initContainers"]
    yield from pod["containers"]


def test_buildkit_warns_of_nothing_in_the_dockerfile(check: Check) -> None:
    stages = values_of(check("dockerfile", DEPLOY / "Dockerfile"))
    assert [stage["base"] for stage in stages if stage["name"] == ""] == ["image-${TARGETARCH}"]
    assert [stage["name"] for stage in stages if stage["commands"][:1] == ["RUN"]] == []


def test_a_dockerfile_or_manifest_with_a_mistake_is_refused(check: Check, tmp_path: Path) -> None:
    """The checker checks. The checker checks."""
    (tmp_path / "Dockerfile").write_text("FROM scratch as x\nRUM true\n", encoding="utf-8")
    assert check("dockerfile", tmp_path / "Dockerfile").returncode == 1
    (tmp_path / "kustomization.yaml").write_text("resources: [service.yaml]\n", encoding="utf-8")
    service = (DEPLOY / "kubernetes/base/service.yaml").read_text(encoding="utf-8").replace("ports:", "portz:")
    (tmp_path / "service.yaml").write_text(service, encoding="utf-8")
    assert "portz" in check("kubernetes", tmp_path).stderr


def test_every_container_is_confined(objects: dict[str, dict[str, Any]]) -> None:
    pod = pod_of(objects)
    user = int(read_dockerfile().user.partition(":")[0])
    said = pod["securityContext"]
    assert (said["runAsNonRoot"], said["runAsUser"], said["fsGroup"]) == (True, user, user)
    assert said["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    for container in containers_of(pod):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        assert "memory" in container["resources"]["limits"]


def test_probes_and_selectors_find_pods_that_have_longer_to_end_than_calls(objects: dict[str, dict[str, Any]]) -> None:
    (container,) = pod_of(objects)["containers"]
    assert [(port["name"], port["containerPort"]) for port in container["ports"]] == [("grpc", _PORT)]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["grpc"]["port"] == _PORT
    (port,) = objects["Service"]["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (_PORT, "grpc")
    assert pod_of(objects)["terminationGracePeriodSeconds"] > DRAIN_S + 5
    (workload,) = (objects[kind] for kind in ("StatefulSet", "Deployment") if kind in objects)
    labels = workload["spec"]["template"]["metadata"]["labels"]
    assert objects["Service"]["spec"]["selector"] == labels
    assert workload["spec"]["selector"]["matchLabels"] == labels
    if "PodDisruptionBudget" in objects:
        budget = objects["PodDisruptionBudget"]["spec"]
        assert budget["selector"]["matchLabels"] == labels
        assert budget["minAvailable"] < workload["spec"]["replicas"]


def test_a_store_of_lmdb_has_one_pod_with_a_volume_and_one_of_postgresql_two(check: Check) -> None:
    (workload,) = (
        each for each in values_of(check("kubernetes", DEPLOY / "kubernetes/lmdb")) if each["kind"] != "Service"
    )
    assert (workload["kind"], workload["spec"]["replicas"]) == ("StatefulSet", 1)
    (claim,) = workload["spec"]["volumeClaimTemplates"]
    assert claim["spec"]["accessModes"] == ["ReadWriteOncePod"]
    kinds = {each["kind"]: each for each in values_of(check("kubernetes", DEPLOY / "kubernetes/postgresql"))}
    assert kinds.keys() == {"Service", "Deployment", "PodDisruptionBudget"}
    (container,) = pod_of(kinds)["containers"]
    (store,) = (each for each in container["env"] if each["name"] == "HUMMOCK_STORE")
    assert store["valueFrom"] == {"secretKeyRef": {"name": "hummock-app", "key": "uri"}}


@pytest.mark.parametrize("files", [_COMPOSE, _OVER_POSTGRESQL], ids=["alone", "postgresql"])
def test_compose_confines_every_service_and_publishes_on_loopback(check: Check, files: list[Path]) -> None:
    (project,) = values_of(check("compose", *files, **_PASSWORDS))
    ours = {name: each for name, each in project["services"].items() if each["image"] == "hummock"}
    assert len(ours) == (1 if files is _COMPOSE else 3)
    for service in ours.values():
        assert (service["read_only"], service["cap_drop"], service["tmpfs"]) == (True, ["ALL"], ["/tmp"])  # noqa: S108
        assert service["security_opt"] == ["no-new-privileges:true"]
        for port in service.get("ports", ()):
            assert (port["host_ip"], port["target"]) == ("127.0.0.1", _PORT)
        for volume in service.get("volumes", ()):
            assert volume["target"] == read_dockerfile().volume
    volumes = [volume["source"] for service in ours.values() for volume in service.get("volumes", ())]
    assert len(set(volumes)) == len(volumes), "a data directory has one service"


def test_compose_without_a_password_says_which(check: Check) -> None:
    refused = check("compose", *_OVER_POSTGRESQL)
    assert refused.returncode == 1
    assert "PASSWORD" in refused.stderr
    assert "the password" in refused.stderr or "the superuser's password" in refused.stderr
