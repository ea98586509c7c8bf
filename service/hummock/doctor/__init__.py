"""What may be wrong with a service's directory, machine and settings, and the command that mends it."""

from hummock.doctor.checks import examine
from hummock.doctor.finding import Case, Finding, Level

__all__ = ["Case", "Finding", "Level", "examine"]
