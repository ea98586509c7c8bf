"""Everything of one store in another one, of whichever engine: copied online, project by project."""

from hummock.store.moving.copying import Copied, CopiedProject, Outcome, copy
from hummock.store.moving.ends import copy_between

__all__ = ["Copied", "CopiedProject", "Outcome", "copy", "copy_between"]
