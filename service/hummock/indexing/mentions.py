"""The files of a repository that a text speaks of."""

import posixpath
import re
from collections.abc import Set
from functools import lru_cache

MAX_KEY_FILES = 20
# Letters, digits and `_` of any script, and what else stands in paths.
_PATH_LIKE = re.compile(r"[\w./@+-]+")


def mentioned_files(text: str, document_path: str, known_paths: Set[str]) -> tuple[str, ...]:
    """Known paths that the text mentions, in order of first mention, at most 20.

    A mention is the path from the root, the path from the document's folder, or the file's bare name where one file
    alone has it.
    """
    folder = posixpath.dirname(document_path)
    names = _unique_names(frozenset(known_paths))
    found: dict[str, None] = {}
    for match in _PATH_LIKE.finditer(text):
        word = match.group().rstrip(".").removeprefix("./")
        path = _resolved(word, folder, known_paths, names)
        if path is not None and path != document_path:
            found[path] = None
        if len(found) == MAX_KEY_FILES:
            break
    return tuple(found)


def _resolved(word: str, folder: str, known_paths: Set[str], names: dict[str, str]) -> str | None:
    beside = posixpath.normpath(posixpath.join(folder, word))
    for candidate in (beside, word):
        if candidate in known_paths:
            return candidate
    # `README` without an extension is more often a word than a file.
    return names.get(word) if "." in word else None


@lru_cache(maxsize=4)
def _unique_names(known_paths: frozenset[str]) -> dict[str, str]:
    names: dict[str, str] = {}
    shared: set[str] = set()
    for path in known_paths:
        name = posixpath.basename(path)
        if name in names:
            shared.add(name)
        names[name] = path
    return {name: path for name, path in names.items() if name not in shared}
