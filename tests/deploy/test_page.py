"""docs/deploy.md: each block is read by what it is for, and two services are asked through its balancer."""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
import typer
import yaml

from bench import toy_models
from hummock.cli.main import app
from hummock_client import Client, HummockCallError
from hummock_tools.cli.background import SERVING_ON, listens
from tests.client.consumers import ROOT, blocks
from tests.deploy.engine import read_dockerfile
from tests.service.running import free_port

_PAGE = "docs/deploy.md"
_COMMANDS = [line for block in blocks(_PAGE, "console") for line in block.splitlines()]
_OF_HUMMOCK = [line for line in _COMMANDS if re.search(r"\bhummock\b", line) and "docker build" not in line]


def arguments_of(line: str) -> list[str] | None:
    """Arguments of `hummock` in a line, also in a container's; None where the line runs something else."""
    words = shlex.split(line)
    if words[0] == "hummock":
        return words[1:]
    if words[:2] == ["docker", "run"] and words[-1] != "hummock":
        return words[words.index("hummock", words.index("--volume") + 2) + 1 :]
    if "run" in words and "--entrypoint" not in words and words[:2] == ["docker", "compose"]:
        return words[words.index("hummock") + 1 :]
    return None


@pytest.mark.parametrize("line", [line for line in _COMMANDS if arguments_of(line) is not None])
def test_a_command_of_hummock_is_one_that_there_is(line: str) -> None:
    command = typer.main.get_command(app)
    words = arguments_of(line) or []
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    command.make_context("hummock", words)


def test_files_and_folders_that_commands_name_are_there() -> None:
    named = {name for line in _COMMANDS for name in re.findall(r"service/deploy/[\w./-]+\w", line)}
    assert len(named) == 5
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_a_container_is_run_as_the_image_is_meant() -> None:
    (line,) = (line for line in _COMMANDS if line.startswith("docker run --detach"))
    words = shlex.split(line)
    assert {"--read-only", "HUMMOCK_ALLOW_REMOTE_PLAINTEXT=true", "no-new-privileges"} <= set(words)
    assert words[words.index("--volume") + 1] == f"hummock:{read_dockerfile().volume}"
    assert words[words.index("--publish") + 1] == "127.0.0.1:7420:7420"


def test_the_kustomization_of_a_reader_has_the_names_of_ours() -> None:
    (block,) = blocks(_PAGE, "yaml")
    said = yaml.safe_load(block)
    (resource,) = said["resources"]
    assert (ROOT / resource.removeprefix("../hummock/") / "kustomization.yaml").is_file()
    workload = yaml.safe_load(
        (ROOT / "service/deploy/kubernetes/postgresql/deployment.yaml").read_text(encoding="utf-8")
    )
    assert [each["name"] for each in said["replicas"]] == [workload["metadata"]["name"]]
    images = {each["image"] for each in workload["spec"]["template"]["spec"]["containers"]}
    assert {each["name"] for each in said["images"]} == images


@pytest.mark.long
def test_systemd_finds_no_fault_in_the_unit_of_several_services(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is missing, which reads a unit as systemd does")
    (unit,) = blocks(_PAGE, "ini")
    program = tmp_path / "hummock"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    (tmp_path / "hummock@.service").write_text(
        unit.replace("/usr/lib/hummock/bin/hummock", str(program)), encoding="utf-8"
    )
    (tmp_path / "hummock@7420.service").symlink_to("hummock@.service")
    done = subprocess.run(
        [analyze, "verify", tmp_path / "hummock@7420.service"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@contextmanager
def service(folder: Path, port: int, models: Path, store: str | None = None) -> Iterator[subprocess.Popen[str]]:
    """A service that serves on a port, over LMDB or the database of a DSN."""
    command = [sys.executable, "-m", "hummock", "serve", "--data", str(folder), "--port", str(port)]
    command += ["--models", str(models), "--model", toy_models.TINY, *(("--store", store) if store else ())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith(SERVING_ON)
            yield process
        finally:
            process.kill()


@contextmanager
def balancer(folder: Path, ports: dict[str, int]) -> Iterator[str]:
    """The target of nginx with the page's configuration, at other ports."""
    (block,) = blocks(_PAGE, "nginx")
    for old, new in ports.items():
        block = re.sub(rf"\b{old}\b", str(new), block)
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    main = f"daemon off;\npid {folder}/pid;\nerror_log {folder}/log;\nevents {{}}\n"
    config = folder / "nginx.conf"
    config.write_text(f"{main}http {{\naccess_log off;\n{temporary}{block}}}\n", encoding="utf-8")
    with subprocess.Popen(["nginx", "-c", str(config), "-p", str(folder)]) as process:
        target = f"127.0.0.1:{ports['7400']}"
        try:
            while not listens(target):
                assert process.poll() is None, (folder / "log").read_text(encoding="utf-8")
                time.sleep(0.05)
            yield target
        finally:
            process.send_signal(signal.SIGQUIT)


@pytest.mark.long
@pytest.mark.timed
def test_two_services_behind_the_balancer_answer_as_one_and_one_may_die(tmp_path: Path) -> None:
    if shutil.which("nginx") is None:
        pytest.skip("nginx is missing, which balances calls between two services")
    toy_models.build_tiny(tmp_path / "models")
    (tmp_path / "nginx").mkdir()
    ports = {name: free_port() for name in ("7400", "7420", "7422")}
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(service(tmp_path / name, ports[name], tmp_path / "models")) for name in ("7420", "7422")
        )
        # Each with a store of its own, to see which one answers.
        for name in ("7420", "7422"):
            with Client(f"127.0.0.1:{ports[name]}") as direct:
                direct.note("shop", f"served on {name}")
        target = stack.enter_context(balancer(tmp_path / "nginx", ports))
        with Client(target) as client:
            asked = [client.recall("shop", "served on which port").hits[0].memory.text for _ in range(8)]
            assert set(asked) == {"served on 7420", "served on 7422"}
            first.kill()
            first.wait()
            after = {client.recall("shop", f"served on which port {uuid4()}").hits[0].memory.text for _ in range(8)}
            assert after == {"served on 7422"}
            second.kill()
            second.wait()
            with pytest.raises(HummockCallError):
                client.recall("shop", "served on which port")
