"""Upkeep of a data directory: backups, checks, and copies without what was deleted."""

from hummock.store.upkeep.backup import Backups, KnownBackup, Made, Manifest, known_backups, restore
from hummock.store.upkeep.check import Problem, Report, check, check_quickly
from hummock.store.upkeep.purge import Purged, Rebuilt, compact, purge

__all__ = [
    "Backups", "KnownBackup", "Made", "Manifest", "Problem", "Purged", "Rebuilt", "Report", "check", "check_quickly",
    "compact", "known_backups", "purge", "restore",
]  # fmt: skip # a list of names
