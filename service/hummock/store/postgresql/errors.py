"""Errors of opening a database."""

from __future__ import annotations

from hummock.core.errors import StartError


class DatabaseUnusable(StartError):
    """The database cannot be opened."""

    reason = "STORE_UNUSABLE"

    def __init__(self, place: str, why: str) -> None:
        super().__init__(f"{place} cannot be used: {why}")
        self.place = place


class DatabaseIsCopiedInto(StartError):
    """Another process is copying projects into the database."""

    reason = "STORE_IS_COPIED_INTO"

    def __init__(self, place: str) -> None:
        super().__init__(f"{place}: another `hummock copy` writes into it; wait for its end, or stop it")
        self.place = place
