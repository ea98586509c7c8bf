"""Why nothing is copied, or not this."""

from __future__ import annotations

from collections.abc import Sequence

from hummock.core.errors import StartError

_NAMED = 5


class NothingToCopy(StartError):
    """There is no store where one should be copied from."""

    reason = "STORE_EMPTY"

    def __init__(self, place: str) -> None:
        super().__init__(
            f"{place} holds nothing to copy; name the directory that the service has as HUMMOCK_DATA, or the database "
            "that it has as HUMMOCK_STORE"
        )
        self.place = place


class CopiedOntoItself(StartError):
    """Both ends are the same store."""

    reason = "STORE_COPIED_ONTO_ITSELF"

    def __init__(self, place: str) -> None:
        super().__init__(f"{place} would be copied onto itself; name another directory or database to copy to")
        self.place = place


class NotADatabase(StartError):
    """A connection string cannot be read. It is not repeated: it may hold a password."""

    reason = "STORE_DSN_UNREADABLE"

    def __init__(self, which: str) -> None:
        """`which` of the two ends: "FROM" or "TO"."""
        super().__init__(
            f"{which} is no connection string that PostgreSQL can read; write it as "
            "postgresql://USER@HOST:PORT/DATABASE, with % before the code of what is special in a name"
        )
        self.which = which


class WordsOutdated(StartError):
    """The terms of memories were made by an earlier version, or are being made anew."""

    reason = "STORE_OUTDATED"

    def __init__(self, place: str) -> None:
        super().__init__(
            f"{place} was last served by an earlier version of Hummock; start the service of this version on it once, "
            "wait for its `serving on`, and copy again"
        )
        self.place = place


class SpacesDiffer(StartError):
    """The target has vectors of another embedding space."""

    reason = "EMB_SPACE_MISMATCH"

    def __init__(self, source: tuple[str, str, str], target: tuple[str, str, str]) -> None:
        """Each a place, a model's name and its emb_space."""
        super().__init__(
            f"{source[0]} has vectors of model {source[1]} (emb_space {source[2]}), and {target[0]} of model "
            f"{target[1]} (emb_space {target[2]}); vectors are copied as they are: copy to an empty store, or have "
            "them made anew with `hummock export` and `hummock import`"
        )
        self.source_model, self.source_emb_space = source[1:]
        self.target_model, self.target_emb_space = target[1:]


class OtherHistory(StartError):
    """The target has projects of these names that are no copies, or were written to since."""

    reason = "PROJECT_HAS_OTHER_HISTORY"

    def __init__(self, place: str, projects: Sequence[str]) -> None:
        super().__init__(
            f"{place} has {_listed(projects)} already, with a history of its own: it is no copy, or was written to "
            "since it was copied; nothing of it was changed: --replace puts what is copied in its place, or name "
            "another store"
        )
        self.place = place
        self.projects = tuple(projects)


class ProjectDamaged(StartError):
    """A project is not what was written, in the store that is copied."""

    reason = "PROJECT_DAMAGED"

    def __init__(self, project: str, what: str) -> None:
        super().__init__(
            f"project {project} is damaged: {what}; it was not copied. `hummock fsck` says what else is: remove what "
            "is damaged, or restore a backup, and copy again"
        )
        self.project = project
        self.what = what


class CopyDisturbed(StartError):
    """The copied entries are not as they were written: something else removed or changed them."""

    reason = "COPY_DISTURBED"

    def __init__(self, place: str, project: str) -> None:
        super().__init__(
            f"{place}: somebody else has changed project {project} while it was copied; nothing has its name that is "
            "not whole: copy again"
        )
        self.place = place
        self.project = project


def _listed(projects: Sequence[str]) -> str:
    named = ", ".join(projects[:_NAMED])
    more = len(projects) - _NAMED
    noun = "project" if len(projects) == 1 else "projects"
    return f"{noun} {named}" + (f" and {more} more" if more > 0 else "")
