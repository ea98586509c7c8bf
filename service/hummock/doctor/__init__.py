"""Checks of a service's directory, machine and settings, each with a command that repairs what it finds."""

from hummock.doctor.checks import examine
from hummock.doctor.finding import Case, Finding, Level

__all__ = ["Case", "Finding", "Level", "examine"]
