"""Marks and parameters for tests, with the names of ``tvm.testing``."""

from __future__ import annotations

import inspect
import itertools
import platform
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any

from pliant import _core
from pliant.target import Target

__all__ = [
    "Feature",
    "assert_prim_expr_equal",
    "check_bool_expr_is_true",
    "device_enabled",
    "device_test",
    "enabled_targets",
    "fixture",
    "identity_after",
    "is_ampere_or_newer",
    "parameter",
    "parameters",
    "parametrize_targets",
    "exclude_targets",
    "known_failing_targets",
    "requires_package",
    "skip_if_32bit",
    "skip_if_wheel_test",
    "slow",
    "strtobool",
    "terminate_self",
    "uses_gpu",
]

_NO_DEVICE = "Pliant runs on the CPU only"


class Feature:
    """A requirement of tests, as a decorator: tests that need a missing feature are skipped.

    ``requires_llvm(test)`` and ``requires_llvm()(test)`` both mark a test.
    """

    def __init__(self, name: str, available: bool, reason: str = _NO_DEVICE) -> None:
        self.name = name
        self.available = available
        self.reason = reason

    def marks(self) -> list[Any]:
        """Returns the marks of pytest that skip a test if the feature is missing."""
        import pytest

        return [] if self.available else [pytest.mark.skip(reason=f"needs {self.name}: {self.reason}")]

    def __call__(self, func: Any = None, *args: Any, **kwargs: Any) -> Any:
        if func is None or not callable(func):
            return self
        for mark in self.marks():
            func = mark(func)
        return func

    def __bool__(self) -> bool:
        return self.available


_ABSENT_FEATURES = (
    "adreno_opencl aprofile_aem_fvp arm_compute_lib arm_dot cblas clml corstone300 cublas cuda cudagraph cudnn cutlass "
    "cuda_compute_version dnnl ethosn ethosu gpu hexagon hexagon_toolchain hipblas i386 libtorch matrixcore metal micro mps mrvl "
    "nnapi nvcc_version nvptx opencl openclml openblas rocm rpc tensorcore tensorrt vulkan webgpu"
).split()
_CPU_FEATURES = ("aarch64", "arm", "cpu", "llvm", "multi_gpu", "x86")


def _features() -> dict[str, Feature]:
    machine = platform.machine().lower()
    available = {
        "aarch64": machine in ("aarch64", "arm64"),
        "arm": machine.startswith(("arm", "aarch64")),
        "cpu": True,
        "llvm": True,
        "x86": machine in ("x86_64", "amd64"),
    }
    table = {name: Feature(name, False) for name in _ABSENT_FEATURES}
    table.update({name: Feature(name, available.get(name, False), f"this machine is {machine}") for name in _CPU_FEATURES})
    return table


_FEATURES = _features()


def feature(name: str) -> Feature | None:
    """Returns the requirement ``requires_NAME``, or ``None`` if there is none of this name. Names of instruction sets, such as
    ``x86_vnni``, are requirements of their architecture."""
    found = _FEATURES.get(name)
    if found is None and name.startswith(("x86_", "arm_", "aarch64_", "skylake_", "cascadelake_")):
        return Feature(name, False, "tests for instruction sets use TVM's tensor intrinsics")
    return found


def requires_package(*packages: str) -> Callable[[Any], Any]:
    """Marks a test that needs Python packages: it is skipped if one of them is not installed."""

    def mark(func: Any) -> Any:
        for package in packages:
            present = find_spec(package.partition(".")[0]) is not None
            func = Feature(package, present, "the package is not installed")(func)
        return func

    return mark


def uses_gpu(func: Any) -> Any:
    """Returns the test unchanged: it runs on the CPU."""
    return func


device_test = uses_gpu
slow = uses_gpu
skip_if_32bit = Feature("64 bits", True)
skip_if_wheel_test = Feature("a build tree", True)


def enabled_targets() -> list[tuple[str, Any]]:
    """Returns the targets on which tests run, with their devices."""
    return [("llvm", _core.cpu())]


def device_enabled(target: str | Target) -> bool:
    """Whether tests run on a target."""
    return str(target).split()[:1] in (["llvm"], ["c"], ["cpu"])


def is_ampere_or_newer() -> bool:
    """Returns ``False``, because there are no GPUs."""
    return False


def parametrize_targets(*args: Any) -> Any:
    """Runs a test once for each target of a list. Without a list, for the CPU. Targets other than the CPU are left out."""
    import pytest

    def decorate(func: Any, targets: Sequence[Any] = ("llvm",)) -> Any:
        used = [t for t in targets if device_enabled(t)]
        params = [pytest.param(t, _core.cpu(), id=str(t)) for t in used]
        return pytest.mark.parametrize("target,dev", params)(func)

    if len(args) == 1 and callable(args[0]) and not isinstance(args[0], str | Target):
        return decorate(args[0])
    return lambda func: decorate(func, args or ("llvm",))


def exclude_targets(*args: Any) -> Callable[[Any], Any]:
    """Leaves a test unchanged unless the CPU is excluded, which skips the test."""
    return Feature("another target", not any(device_enabled(t) for t in args), "the test excludes the CPU")


def known_failing_targets(*args: Any) -> Callable[[Any], Any]:
    """The same as :func:`exclude_targets`."""
    return exclude_targets(*args)


def parameter(*values: Any, ids: Sequence[str] | Callable[[Any], str] | None = None, by_dict: dict[str, Any] | None = None) -> Any:
    """Creates a fixture that runs the tests that use it once for each value. With ``by_dict``, the keys name the values."""
    import pytest

    if by_dict:
        values, ids = tuple(by_dict.values()), list(by_dict)

    @pytest.fixture(params=list(values), ids=ids)
    def value_of(request: Any) -> Any:
        return request.param

    return value_of


_groups = itertools.count()


def parameters(*value_sets: Any, ids: Sequence[str] | None = None) -> list[Any]:
    """Creates one fixture for each position of the tuples ``value_sets``. Tests that use several of them run once for each
    tuple.

    The fixtures share a hidden fixture, which is defined in the calling module.
    """
    import pytest

    caller = inspect.currentframe()
    caller = caller.f_back if caller else None
    if caller is None:
        raise RuntimeError("parameters: the calling module is unknown, because this Python implementation does not expose its frame")
    group = f"_values_of_parameters_{next(_groups)}"

    @pytest.fixture(params=list(value_sets), ids=ids, name=group)
    def values_of_group(request: Any) -> Any:
        return request.param

    caller.f_globals[group] = values_of_group

    def position(index: int) -> Any:
        def value_of(**values: Any) -> Any:
            return values[group][index]

        # The names of the parameters are those of the fixtures that pytest passes.
        parameter_ = inspect.Parameter(group, inspect.Parameter.KEYWORD_ONLY)
        value_of.__signature__ = inspect.Signature([parameter_])  # type: ignore[attr-defined]
        return pytest.fixture(value_of)

    return [position(index) for index in range(len(value_sets[0]))]


def fixture(func: Any = None, *, cache_return_value: bool = False) -> Any:
    """Creates a fixture of pytest from a function. With ``cache_return_value``, the value is computed once in a session."""
    import pytest

    scope: Any = "session" if cache_return_value else "function"
    return pytest.fixture(func, scope=scope) if func is not None else pytest.fixture(scope=scope)


def strtobool(value: str) -> int:
    """Converts a word such as ``yes`` or ``0`` to 1 or 0. Raises ``ValueError`` for other words."""
    word = value.lower()
    if word in ("y", "yes", "t", "true", "on", "1"):
        return 1
    if word in ("n", "no", "f", "false", "off", "0"):
        return 0
    raise ValueError(f"invalid truth value {value!r}")


def identity_after(value: Any, sleep: float) -> Any:
    """Waits for a number of seconds and returns the value."""
    import time

    time.sleep(sleep)
    return value


def terminate_self() -> None:
    """Ends the process with the exit status -1."""
    import sys

    sys.exit(-1)


def assert_prim_expr_equal(lhs: Any, rhs: Any) -> None:
    """Raises ``ValueError`` unless the analyzer proves that two scalar expressions are equal."""
    from pliant import arith

    if not arith.Analyzer().can_prove_equal(lhs, rhs):
        raise ValueError(f"{lhs} and {rhs} are not equal")


def _assignments(variables: Sequence[Any], ranges: dict[Any, Any]) -> Iterator[dict[Any, int]]:
    if not variables:
        yield {}
        return
    first, rest = variables[0], variables[1:]
    for more in _assignments(rest, ranges):
        domain = ranges[first]
        for value in range(int(domain.min), int(domain.min) + int(domain.extent)):
            yield {first: value, **more}


def check_bool_expr_is_true(bool_expr: Any, vranges: dict[Any, Any], cond: Any = None) -> None:
    """Raises ``AssertionError`` unless a condition holds for all values of its variables in the given ranges. Only values for
    which ``cond`` holds are tried."""
    from pliant import arith, tir

    analyzer = arith.Analyzer()
    for values in _assignments(list(vranges), vranges):
        bound = {var: tir.const(value, var.dtype) for var, value in values.items()}
        if cond is not None and not int(analyzer.simplify(tir.stmt_functor.substitute(cond, bound))):
            continue
        if not int(analyzer.simplify(tir.stmt_functor.substitute(bool_expr, bound))):
            raise AssertionError(f"{bool_expr} is false for {values}")
