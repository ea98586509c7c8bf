"""Hypothesis settings: deterministic, and no deadline, as the first example of a test may compile a helper."""

from hypothesis import settings

settings.register_profile("deterministic", derandomize=True, deadline=None)
settings.load_profile("deterministic")
