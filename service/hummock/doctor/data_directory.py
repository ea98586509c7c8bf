"""Checks of the data directory: access, completeness, free space, and age of the last backup."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
from pathlib import Path

from hummock.access.tokens import TokenFile, TokensUnreadable
from hummock.doctor.finding import Case, Finding, error, fine, warning
from hummock.store import recorded_model
from hummock.store.errors import AnalyzerTooNew, DirectoryUnusable, SchemaTooNew
from hummock.store.limits import DEFAULT_LIMITS
from hummock.store.lmdb.environment import require_data
from hummock.store.lmdb.files import DATA_FILE, LOCK_FILE, require_whole, was_used
from hummock.store.upkeep import check_quickly, known_backups
from hummock.store.upkeep.check_projects import UNREADABLE
from hummock.store.upkeep.moment import inspected

_NEAR_FULL = 0.8
_DAY_S = 86_400.0
_OLDEST_BACKUP_S = 7 * _DAY_S
_MIB = 1 << 20


def is_usable(case: Case) -> Finding:
    """Check whether the directory exists or can be created, and this user can read and write it."""
    data = case.data
    if data.is_dir():
        if os.access(data, os.R_OK | os.W_OK | os.X_OK):
            return fine(f"{data} can be read and written")
        return error(f"{data} cannot be read and written by this user", f"sudo chown -R $(id -u) {_quoted(data)}")
    if data.exists() or data.is_symlink():
        return error(f"{data} is no directory", "hummock serve --data DIR")
    above = next(each for each in data.parents if each.exists())
    if above.is_dir() and os.access(above, os.W_OK | os.X_OK):
        return fine(f"there is no {data} yet; the first `hummock serve` makes it")
    return error(f"{data} cannot be made: {above} cannot be written by this user", "hummock serve --data DIR")


def is_private(case: Case) -> Finding | None:
    """Check whether other users have no access."""
    if not case.data.is_dir():
        return None
    mode = stat.S_IMODE(case.data.stat().st_mode)
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        return warning(f"other users may look into {case.data} (mode {mode:o})", f"chmod 700 {_quoted(case.data)}")
    return fine(f"{case.data} is its owner's alone")


def has_tokens_that_can_be_read(case: Case) -> Finding | None:
    """Check whether the token file, if any, can be read, by its owner only."""
    file = TokenFile(case.data)
    if not file.path.exists():
        return None
    try:
        tokens = file.read()
    except TokensUnreadable as failure:
        return error(str(failure), f"chmod 600 {_quoted(file.path)} && hummock tokens ls {case.its_data}")
    return fine(f"{len(tokens)} tokens")


def is_locked_by_who_has_it(case: Case) -> Finding | None:
    """Check whether the lock's holder is a process of this machine; a leftover lock file blocks nobody."""
    lock = case.data / LOCK_FILE
    if not case.holder:
        return fine("nobody has the data directory") if lock.exists() else None
    if case.holder.isdecimal() and _is_running(int(case.holder)):
        return fine(f"process {case.holder} has the data directory")
    return warning(
        f"{lock} is held by process {case.holder}, which is not to be seen: one of a container, or the child of a "
        "service that was ended",
        f"fuser {_quoted(lock)}",
    )


def is_whole(case: Case) -> Finding | None:
    """Check whether the data file has all its pages, its version is known, and its projects are in order."""
    if not _has_data(case):
        return None
    try:
        if was_used(case.data):
            require_data(case.data)
        model = recorded_model(case.data, is_in_use=bool(case.holder))
        if model is None:
            return fine("nothing was ever stored in it")
        problems = check_quickly(case.data).problems
    except (AnalyzerTooNew, SchemaTooNew) as failure:
        return error(str(failure), "pip install --upgrade hummock")
    except DirectoryUnusable as failure:
        return error(str(failure), "hummock restore BACKUPS --data NEW_DIR")
    except UNREADABLE:
        return error(f"{case.data} is damaged: its records cannot be read", "hummock restore BACKUPS --data NEW_DIR")
    if problems:
        kinds = "; ".join(sorted({problem.what for problem in problems}))
        return error(f"{case.data} is damaged: {kinds}", f"hummock fsck {case.its_data}")
    return fine(f"the data file is whole, with vectors of {model}")


def has_room_in_its_quota(case: Case) -> Finding | None:
    """Check whether a fifth of the store's quota is free."""
    if case.service is not None:
        used, quota = case.service.storage.used_bytes, case.service.storage.quota_bytes
    else:
        found = _used_bytes(case)
        if found is None:
            return None
        storage = case.settings.storage
        most = int(storage.map_bytes * (1 - DEFAULT_LIMITS.map_reserve_share))
        used, quota = found, min(storage.quota_bytes, most)
    said = f"the store uses {used / _MIB:.0f} of {quota / _MIB:.0f} MiB"
    others = "or forget memories, or raise storage.quota_bytes and storage.map_bytes"
    mend = f"hummock remove slack {case.its_data}   # {others}"
    if used >= quota:
        return error(f"{said}: nothing more is stored", mend)
    if used >= _NEAR_FULL * quota:
        return warning(said, mend)
    return fine(said)


def has_room_on_its_disk(case: Case) -> Finding:
    """Check whether the disk has free space: below the store's reserve nothing is stored."""
    there = next(each for each in (case.data, *case.data.parents) if each.is_dir())
    disk = shutil.disk_usage(there)
    said = f"the disk of {there} has {disk.free / _MIB:.0f} of {disk.total / _MIB:.0f} MiB free"
    mend = f"df -h {_quoted(there)}"
    if disk.free < DEFAULT_LIMITS.disk_reserve_bytes:
        reserve = DEFAULT_LIMITS.disk_reserve_bytes / _MIB
        return error(f"{said}: the last {reserve:.0f} are kept so that deleting works, and nothing is stored", mend)
    if disk.used >= _NEAR_FULL * disk.total:
        return warning(said, mend)
    return fine(said)


def is_backed_up(case: Case) -> Finding | None:
    """Check whether there is a backup from the last week."""
    if not case.data.is_dir():
        return None
    mend = f"hummock save backup BACKUPS {case.its_data}"
    try:
        known = known_backups(case.data)
    except UNREADABLE:
        return warning(f"{case.data}/backups.json is damaged: `hummock remove bytes` would not name all backups", mend)
    if not known:
        return warning("there is no backup", mend) if (_used_bytes(case) or 0) > 0 else None
    age_s = case.now_s - max(each.time for each in known)
    newest = max(known, key=lambda each: each.time)
    if age_s > _OLDEST_BACKUP_S:
        mend = f"hummock save backup {shlex.quote(newest.directory)} {case.its_data}"
        return warning(f"the newest backup is {age_s / _DAY_S:.0f} days old", mend)
    return fine(f"the newest backup is {max(age_s, 0.0) / _DAY_S:.0f} days old, in {newest.directory}")


def _has_data(case: Case) -> bool:
    """True if there is a data file, or has been."""
    return case.data.is_dir() and ((case.data / DATA_FILE).exists() or was_used(case.data))


def _used_bytes(case: Case) -> int | None:
    """Size of the stored data; None if there are none, or they cannot be read, which `is_whole` reports."""
    try:
        # A missing page would kill this process (SIGBUS).
        require_whole(case.data)
        with inspected(case.data) as snapshot:
            return snapshot.size_bytes()
    except (*UNREADABLE, OSError):
        return None


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
