"""Compilation of kernels: the single place for target, cache and flags.

Numba reads its environment when it is imported, so everything else in this package gets Numba from here.
"""

import os
import platform
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import llvmlite.binding as llvm

from hummock_kernels._cache_dir import cache_dir_of, compiled_ahead, copy_missing

F = TypeVar("F", bound=Callable[..., Any])

_X86_MACHINES = frozenset({"x86_64", "amd64"})
_X86_64_V3 = frozenset({"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"})
_CPUS_WITH_F16C = frozenset({"x86-64-v3", "x86-64-v4"})


def set_target(environ: MutableMapping[str, str], machine: str, host_features: Mapping[str, bool]) -> None:
    """Compile for x86-64-v3 where the processor has it, so that a cache is good on every machine of that level.

    User settings take precedence. Other processors (older x86, every ARM) use their native features.
    """
    is_users_choice = "NUMBA_CPU_NAME" in environ or "NUMBA_CPU_FEATURES" in environ
    has_v3 = all(host_features.get(name, False) for name in _X86_64_V3)
    if machine.lower() in _X86_MACHINES and has_v3 and not is_users_choice:
        environ["NUMBA_CPU_NAME"] = "x86-64-v3"
        # Unset, it would mean all features of this very processor.
        environ["NUMBA_CPU_FEATURES"] = ""


def can_convert_half(
    machine: str, host_features: Mapping[str, bool], cpu_name: str | None, cpu_features: str | None
) -> bool:
    """True if the compile target has an instruction that turns float16 into float32.

    Without one LLVM calls a missing library function, and the process aborts: if in doubt, returns False.

    Args:
        machine: The value of `platform.machine()`.
        host_features: This processor's features, by LLVM's names.
        cpu_name: Numba's target; None is this processor.
        cpu_features: Numba's feature list; None is all features of this processor.
    """
    if machine.lower() not in _X86_MACHINES:
        return machine.lower() in {"aarch64", "arm64"}
    if not host_features.get("f16c", False):
        return False
    if cpu_features is None:
        return True
    listed = cpu_features.split(",")
    return "-f16c" not in listed and ("+f16c" in listed or cpu_name in _CPUS_WITH_F16C)


def _prepare_environment() -> bool:
    """Set the target and the cache; returns whether a cache is possible."""
    set_target(os.environ, platform.machine(), llvm.get_host_cpu_features())
    try:
        os.environ["NUMBA_CACHE_DIR"] = str(cache_dir_of(Path(__file__).parent, os.environ))
    except OSError:
        return False
    return True


_HAS_CACHE = _prepare_environment()

import numba  # noqa: E402 - reads the environment prepared above
from numba import types  # noqa: E402
from numba.core import cgutils  # noqa: E402
from numba.core import config as _config  # noqa: E402
from numba.core.datamodel import models  # noqa: E402
from numba.core.datamodel.registry import register_default  # noqa: E402
from numba.core.typeconv.castgraph import Conversion  # noqa: E402

__all__ = [
    "HAS_F16C",
    "IS_COMPILED",
    "KERNELS",
    "REASSOCIATE",
    "cache_directory",
    "cgutils",
    "helper",
    "intrinsic",
    "kernel",
    "named",
    "named_result",
    "record",
    "types",
]

_settings: Any = _config  # filled in at run time, so that its names are unknown to a type checker
if _HAS_CACHE:
    # It may have been imported before us, and would use one directory for all states of the sources.
    _settings.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"]

HAS_F16C: Final[bool] = can_convert_half(
    # Numba's own record, because it may have been imported before us.
    platform.machine(),
    llvm.get_host_cpu_features(),
    _settings.CPU_NAME,
    _settings.CPU_FEATURES,
)
"""The compile target decodes float16 by an instruction (F16C on x86; every aarch64)."""

IS_COMPILED: Final[bool] = not _settings.DISABLE_JIT
"""False under NUMBA_DISABLE_JIT=1, when kernels are plain Python: for coverage and bounds checks."""

KERNELS: Final[dict[str, Callable[..., Any]]] = {}
"""Each kernel by its name, once its module is imported."""

REASSOCIATE: Final = frozenset({"reassoc", "contract", "nsz", "arcp"})
"""Lets a sum be vectorised; NaN and infinity keep their meaning, unlike under `fastmath=True`."""


def cache_directory() -> Path | None:
    """The directory that keeps compiled kernels between runs, or None if they are not kept."""
    return Path(_settings.CACHE_DIR) if _HAS_CACHE and IS_COMPILED else None


def _use_compiled_ahead() -> None:
    """Fill the cache with the kernels that the package brings for this version of Numba and this target, if any."""
    cache = cache_directory()
    if cache is None or _settings.CPU_FEATURES:
        return
    source = compiled_ahead(Path(__file__).parent, cache, f"numba-{numba.__version__}-{_settings.CPU_NAME}")
    if source is not None:
        # The folder depends on the place of the sources. A function that is never compiled tells it.
        folder = numba.njit(cache=True)(_use_compiled_ahead).stats.cache_path
        with suppress(OSError):  # what is not there is compiled
            copy_missing(source, Path(cast(str, folder)))


_use_compiled_ahead()


def kernel(signature: Any, fastmath: frozenset[str] = frozenset(), *, is_brief: bool = False) -> Callable[[F], F]:
    """Compile a function for one explicit signature, now or from the cache, and register it under its name.

    Args:
        signature: A Numba signature of `_types`; other argument types raise TypeError at the call.
        fastmath: LLVM's flags; stated at each kernel that needs any.
        is_brief: Keeps the GIL: of some microseconds of work the hand-over to a waiting thread takes more.
    """

    def compile_now(function: F) -> F:
        compiled = numba.njit(
            signature, nogil=not is_brief, cache=_HAS_CACHE, error_model="numpy", fastmath=set(fastmath)
        )(function)
        KERNELS[function.__name__] = compiled
        return cast(F, compiled)

    return compile_now


def helper(fastmath: frozenset[str] = frozenset(), *, borrows: bool = False) -> Callable[[F], F]:
    """Compile a function as a part of the kernels that call it, in any file.

    Args:
        fastmath: See `kernel`.
        borrows: Whether it neither creates nor returns arrays, so that references are not counted. Otherwise those of
            a named tuple's arrays are counted at each call, which made per-document helpers up to thirty times slower.
    """

    def compile_late(function: F) -> F:
        counts: dict[str, Any] = {"_nrt": False} if borrows else {}
        return cast(F, numba.njit(nogil=True, error_model="numpy", fastmath=set(fastmath), **counts)(function))

    return compile_late


class _Named(types.NamedTuple):
    """A named tuple type that accepts writeable arrays for read-only fields, as a plain argument does.

    Numba's own type requires identical field types.
    """

    def can_convert_from(self, typing_context: Any, other: Any) -> Any:
        """Conversion from another named tuple of the same class, as Numba ranks it; None if there is none."""
        if not isinstance(other, types.BaseNamedTuple) or other.instance_class is not self.instance_class:  # type: ignore[attr-defined] # Numba's own
            return None
        kinds = [typing_context.can_convert(*pair) for pair in zip(other.types, self.types, strict=True)]  # type: ignore[attr-defined] # Numba's own
        # Numba asserts that what is not the same type is never an exact match.
        return None if None in kinds else max(Conversion.promote, *kinds)


register_default(_Named)(models.TupleModel)


def named(named_tuple: type, *fields: Any) -> Any:
    """Signature type of an argument of this named tuple, given its fields' types."""
    make: Any = _Named
    return make(fields, named_tuple)


def named_result(named_tuple: type, *fields: Any) -> Any:
    """Signature type of a result of this named tuple."""
    make: Any = types.NamedTuple
    return make(fields, named_tuple)


def record(dtype: Any) -> Any:
    """Signature type of one row of a structured array."""
    return numba.from_dtype(dtype)


def intrinsic(generator: Callable[..., Any]) -> Callable[..., Any]:
    """Make a kernel helper out of a function that writes LLVM IR (Numba's `intrinsic`, typed)."""
    return cast(Callable[..., Any], numba.extending.intrinsic(generator))
