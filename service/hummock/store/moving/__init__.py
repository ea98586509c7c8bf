"""Online copies of a store into another one of any engine, project by project."""

from hummock.store.moving.copying import Copied, CopiedProject, CopyCallbacks, Outcome
from hummock.store.moving.ends import copy_between, is_database, places_of

__all__ = ["Copied", "CopiedProject", "CopyCallbacks", "Outcome", "copy_between", "is_database", "places_of"]
