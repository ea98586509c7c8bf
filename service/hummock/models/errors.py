"""Errors of model files and of the models themselves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hummock.core.errors import HummockError, StartError
from hummock.installation import command_for


class ModelUnknown(StartError):
    """No model has that name, neither in the registry nor in the models directory."""

    reason = "MODEL_UNKNOWN"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f"model {name!r} is not known; known models: {', '.join(known)}")
        self.name = name
        self.known = tuple(known)


class ModelFileMissing(StartError):
    """A file of the model is not there."""

    reason = "MODEL_FILE_MISSING"

    def __init__(self, model: str, path: Path) -> None:
        super().__init__(f"model {model}: {path} is missing; fetch it with `hummock models pull {model}`")
        self.model = model
        self.path = path


class ModelFileAltered(StartError):
    """A file of the model is not the one that was pinned; it is not loaded."""

    reason = "MODEL_FILE_ALTERED"

    def __init__(self, model: str, path: Path, expected_sha256: str, actual_sha256: str) -> None:
        super().__init__(
            f"model {model}: {path} has SHA-256 {actual_sha256}, expected {expected_sha256}; "
            f"replace it with `hummock models pull {model}`"
        )
        self.model = model
        self.path = path
        self.expected_sha256 = expected_sha256
        self.actual_sha256 = actual_sha256


class ModelsDirectoryUnusable(StartError):
    """Models cannot be put into the directory."""

    reason = "MODELS_DIRECTORY_UNUSABLE"

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(f"models cannot be put into {path} ({error.strerror}); name a directory that can be written")
        self.path = path


class ModelPullFailed(StartError):
    """No source gave the model; each one's reason is in the message and in `attempts`."""

    reason = "MODEL_PULL_FAILED"

    def __init__(self, model: str, attempts: Sequence[str]) -> None:
        super().__init__(f"model {model} could not be had: {'; '.join(attempts)}")
        self.model = model
        self.attempts = tuple(attempts)


class ModelGraphUnsupported(StartError):
    """The ONNX file does not have the inputs or outputs that its description promises."""

    reason = "MODEL_GRAPH_UNSUPPORTED"


class CheckpointUnsupported(StartError):
    """The converter does not support the checkpoint."""

    reason = "CHECKPOINT_UNSUPPORTED"


class ConverterMissing(StartError):
    """A package that only the conversion of a checkpoint needs is not installed."""

    reason = "CONVERTER_MISSING"

    def __init__(self, package: str) -> None:
        super().__init__(f"converting a model needs the package {package}; install it with `{command_for('convert')}`")
        self.package = package


class EmbeddingNotFinite(HummockError):
    """The model answered with NaN, infinity or a zero vector."""

    reason = "EMBEDDING_NOT_FINITE"

    def __init__(self, model: str, text: str) -> None:
        super().__init__(
            f"model {model} gave no finite, non-zero vector for a text of {len(text)} characters; "
            f"check its files with `hummock models verify {model}`"
        )
        self.model = model


class ScoreNotFinite(HummockError):
    """The cross-encoder answered with NaN or infinity."""

    reason = "SCORE_NOT_FINITE"

    def __init__(self, model: str) -> None:
        super().__init__(f"model {model} gave no finite score; check its files with `hummock models verify {model}`")
        self.model = model


class DescriptionInvalid(StartError):
    """The description in a model's directory cannot be used."""

    reason = "MODEL_DESCRIPTION_INVALID"

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{path} does not describe a model: {problem}")
        self.path = path
        self.problem = problem


class CalibrationInvalid(StartError):
    """A calibration that was kept on this machine cannot be used."""

    reason = "CALIBRATION_INVALID"

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{path} is no calibration ({problem}); remove it, or measure with `hummock models calibrate`")
        self.path = path
        self.problem = problem


class PairsInvalid(StartError):
    """The calibration data are no pairs of a question and its answer."""

    reason = "PAIRS_INVALID"
