"""All checks, one after the other."""

from __future__ import annotations

from hummock.core.errors import HummockError
from hummock.doctor import certificates, data_directory, machine, model_files, running_service
from hummock.doctor.finding import Case, Check, Finding, error

CHECKS: tuple[Check, ...] = (
    *data_directory.CHECKS,
    *model_files.CHECKS,
    *machine.CHECKS,
    *certificates.CHECKS,
    *running_service.CHECKS,
)


def examine(case: Case) -> list[Finding]:
    """What each check has found, in their order; those that had nothing to look at are left out."""
    found = (_done(check, case) for check in CHECKS)
    return [finding for finding in found if finding is not None]


def _done(check: Check, case: Case) -> Finding | None:
    try:
        return check(case)
    except HummockError as failure:
        return error(str(failure), "")
    except OSError as failure:
        where = failure.filename or "a file"
        return error(f"{where} cannot be looked at: {failure.strerror}", f"ls -ld {where}" if failure.filename else "")
