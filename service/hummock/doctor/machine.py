"""What the machine allows: open files, and a place for compiled kernels."""

from __future__ import annotations

import os
import resource
import tempfile
from pathlib import Path

import hummock_kernels
from hummock.doctor.finding import Case, Check, Finding, fine, warning
from hummock_kernels._cache_dir import choose_cache_dir

_ENOUGH_FILES = 4096
_TEMPORARY = "hummock-numba-"


def allows_open_files(case: Case) -> Finding:
    """Whether a service may open a few thousand files: each connection is one."""
    del case
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY or most >= _ENOUGH_FILES:
        return fine("as many files may be open as a service needs")
    return warning(
        f"a process may open {most} files, and each connection takes one: callers behind that are locked out",
        "ulimit -Hn 65536   # as root; LimitNOFILE=65536 for systemd",
    )


def keeps_compiled_kernels(case: Case) -> Finding:
    """Whether compiled kernels are kept for the next start."""
    del case
    mend = "export NUMBA_CACHE_DIR=DIR && hummock warm"
    try:
        place = choose_cache_dir(Path(hummock_kernels.__file__).parent, os.environ)
    except OSError as failure:
        return warning(f"kernels are compiled at each start: {failure.strerror or failure}", mend)
    if place.name.startswith(_TEMPORARY) and place.parent == Path(tempfile.gettempdir()):
        return warning(f"compiled kernels can be kept in {place} alone, until it is cleaned", mend)
    named = os.environ.get("NUMBA_CACHE_DIR", "")
    if named and place not in (Path(named), Path(named).parent):
        return warning(f"NUMBA_CACHE_DIR {named} cannot be written; kernels are kept in {place}", mend)
    return fine(f"compiled kernels are kept in {place}")


CHECKS: tuple[Check, ...] = (allows_open_files, keeps_compiled_kernels)
