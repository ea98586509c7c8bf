"""`hummock doctor`: what is wrong, and the command that mends it."""

from __future__ import annotations

import json as json_lib
import time
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING

import typer

from hummock.cli.save import JsonOption
from hummock.core.errors import HummockError
from hummock_client.v1 import admin_service_pb2
from hummock_tools.cli.background import listens
from hummock_tools.cli.connection import CommandFailed, connect, packages_of
from hummock_tools.cli.options import DataOption
from hummock_tools.cli.output import print_line, printable

if TYPE_CHECKING:
    from hummock.config import Settings
    from hummock.doctor import Case, Finding

_ANSWER_TIMEOUT_S = 3.0
_EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 # what is asked for these is loopback


def doctor(data: DataOption = None, json: JsonOption = False) -> None:
    """Say what is wrong with the directory, the machine and the service, and what mends it; ends with 1 on errors.

    Warnings alone end with 0.
    """
    with packages_of("server"):
        from hummock.config import load_settings
        from hummock.doctor import Finding, Level, examine
    try:
        settings = load_settings({"data_dir": data})
    except HummockError as failure:
        findings = [Finding(level=Level.ERROR, what=str(failure), command="env | grep HUMMOCK_; cat hummock.toml")]
    else:
        findings = examine(_case(settings))
    if json:
        print_line(json_lib.dumps({"findings": [asdict(each) for each in findings]}, ensure_ascii=False))
    else:
        _print_page(findings)
    if any(each.level is Level.ERROR for each in findings):
        raise typer.Exit(1)


def _print_page(findings: Sequence[Finding]) -> None:
    """Errors, warnings, and how much is fine."""
    for level in ("error", "warning"):
        for finding in findings:
            if finding.level == level:
                print_line(printable(f"{level:<8} {finding.what}"))
                if finding.command:
                    print_line(printable(f"{'':<8} $ {finding.command}"))
    print_line(f"{sum(finding.level == 'ok' for finding in findings)} checks fine")


def _case(settings: Settings) -> Case:
    """Collect the owner of the directory and the status of the service at its address."""
    with packages_of("server"):
        from hummock.doctor import Case
        from hummock.store import holder
    target = _target(settings)
    is_listened_at, status, refusal = _is_listened_at(target), None, ""
    if is_listened_at:
        try:
            status = _asked(target)
        except CommandFailed as failure:
            refusal = str(failure)
    return Case(
        settings=settings,
        version=version("hummock"),
        now_s=time.time(),
        holder=holder(settings.data_dir),
        address=target,
        is_listened_at=is_listened_at,
        status=status,
        refusal=refusal,
    )


def _target(settings: Settings) -> str:
    if settings.unix_socket is not None:
        return f"unix:{settings.unix_socket}"
    host = _EVERY_ADDRESS.get(settings.host, settings.host)
    return f"[{host}]:{settings.port}" if ":" in host else f"{host}:{settings.port}"


def _is_listened_at(target: str) -> bool:
    try:
        return listens(target)
    except OSError:
        # A name that is none, or a path that is too long: a start says so.
        return False


def _asked(target: str) -> admin_service_pb2.GetStatusResponse:
    """Raises: CommandFailed."""
    with connect(target) as service:
        return service.admin.GetStatus(admin_service_pb2.GetStatusRequest(), timeout=_ANSWER_TIMEOUT_S)
