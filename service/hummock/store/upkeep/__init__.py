"""Upkeep of a data directory: backups, checks, and copies without what was deleted."""

from hummock.store.upkeep.backup import Backups, Made, Manifest
from hummock.store.upkeep.check import Report, check, check_quickly
from hummock.store.upkeep.known_backups import KnownBackup, known_backups
from hummock.store.upkeep.problems import Problem
from hummock.store.upkeep.purge import Purged, purge
from hummock.store.upkeep.rebuild import Rebuilt, compact
from hummock.store.upkeep.restore import restore

__all__ = [
    "Backups",
    "KnownBackup",
    "Made",
    "Manifest",
    "Problem",
    "Purged",
    "Rebuilt",
    "Report",
    "check",
    "check_quickly",
    "compact",
    "known_backups",
    "purge",
    "restore",
]
