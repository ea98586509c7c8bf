"""Takes from a model's vectors what all texts of one kind share, so that cosines compare what they say.

Vectors of e5 have a large part in common that says in which language a text is, and whether it is asked or told: a
Chinese question is nearer to any text with a few Chinese characters than to its answer in English. A centre is a data
file of the package (`bases/<name>.npz`: `query` and `document`, each (2, dim)), made by `bench/centre.py`.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from hummock.models.errors import ModelGraphUnsupported
from hummock.text.languages import MOSTLY, han_share, is_of_another


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Centre:
    """Mean unit vectors of queries and of documents, (2, dim) float32 each: texts of other languages, then Chinese.

    `version` names the content, for the embedding space.
    """

    version: str
    query: NDArray[np.float32]
    document: NDArray[np.float32]

    def taken_from(self, vector: NDArray[np.float32], text: str, *, is_query: bool) -> NDArray[np.float32]:
        """The text's unit vector without the mean of its kind, not yet of length 1 again, (dim,) float32."""
        means = self.query if is_query else self.document
        taken: NDArray[np.float32] = vector - means[int(is_chinese(text))]
        return taken


def is_chinese(text: str) -> bool:
    """Whether at least half of a text's words are Chinese; Japanese is not."""
    return han_share(text) >= MOSTLY and not is_of_another(text)


def load_centre(name: str, dim: int) -> Centre | None:
    """Load the centre of that name; None without a name. Raises: ModelGraphUnsupported: It is of another size."""
    if not name:
        return None
    content = resources.files("hummock.models").joinpath("bases", f"{name}.npz").read_bytes()
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        query, document = (np.asarray(arrays[kind], np.float32) for kind in ("query", "document"))
    if query.shape != (2, dim) or document.shape != (2, dim):
        raise ModelGraphUnsupported(f"the centre {name} is for {query.shape[1]} dims; the model has {dim}")
    return Centre(version=f"{name}:{hashlib.sha256(content).hexdigest()}", query=query, document=document)
