"""Tests time limits of runs, set by ``timeout`` in seconds."""

from __future__ import annotations

import math
import multiprocessing
import os
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import BOOL, FLOAT, INT64, model_of, node
from test_interrupts import interrupted

import pliant
from pliant import relax
from pliant.script import from_source

MODES = ["bytecode", "compiled"]
# A run of minutes is stopped after this many seconds.
SHORT = 0.5


def constant_sum() -> onnx.ModelProto:
    """Returns a model that sums a constant tensor with the shape in its input. The tensor is never stored in memory."""
    value = helper.make_tensor("value", FLOAT, [1], [1.0])
    nodes = [node("ConstantOfShape", "shape", "ones", value=value), node("ReduceSum", "ones", "sum", keepdims=0)]
    return model_of(nodes, {"shape": (INT64, [1])}, ["sum"])


def endless_loop() -> onnx.ModelProto:
    """Returns a model with a loop that ends only if the input ``go`` is false."""
    values = [helper.make_tensor_value_info(*v) for v in [("i", INT64, []), ("on", BOOL, []), ("a", FLOAT, [])]]
    results = [helper.make_tensor_value_info(*v) for v in [("on_out", BOOL, []), ("b", FLOAT, [])]]
    nodes = [node("Add", "a a", "b"), node("Identity", "on", "on_out")]
    loop = helper.make_node("Loop", ["", "go", "x"], ["y"], body=helper.make_graph(nodes, "body", values, results))
    return model_of([loop], {"go": (BOOL, []), "x": (FLOAT, [])}, ["y"])


SCRIPT = """
@I.ir_module
class Module:
    @R.function
    def loop(x: R.Tensor((), "float32")) -> R.Tensor((), "float32"):
        while x < 2:
            x = x / 2
        return x

    @R.function
    def recursion(x: R.Tensor((), "float32")) -> R.Tensor((), "float32"):
        cls = Module
        if x < 2:
            r = cls.recursion(x / 2)
        else:
            r = x
        return r

    @R.function
    def closure(x: R.Tensor((), "float32")) -> R.Object:
        @R.function
        def inner(y: R.Tensor((), "float32")) -> R.Tensor((), "float32"):
            while y < x:
                y = y / 2
            return y

        return inner

    @R.function
    def applied(f: R.Callable((R.Tensor((), "float32"),), R.Tensor((), "float32"), True), x: R.Tensor((), "float32")) \
-> R.Tensor((), "float32"):
        return f(x)
"""


def scalar(value: float) -> Any:
    return np.array(value, "float32")


def stopped(run: Callable[[], Any], limit: float = SHORT, name: str = "main") -> str:
    """Runs a function until the time limit, and returns the error message."""
    start = time.monotonic()
    with pytest.raises(pliant.TimeLimitError) as info:
        run()
    assert time.monotonic() - start < 60
    assert isinstance(info.value, TimeoutError) and isinstance(info.value, pliant.VMError)
    text = str(info.value)
    assert f"'{name}' exceeded its time limit of {limit} seconds" in text, text
    return text


@pytest.mark.parametrize("mode", MODES)
def test_large_reductions_stop_and_the_model_stays_usable(mode: str, tmp_path: Path) -> None:
    model = pliant.compile(constant_sum(), exec_mode=mode)
    path = tmp_path / "sum.plx"
    model.save(path)
    for one in (model, pliant.load(path)):
        text = stopped(lambda one=one: one(np.array([1 << 38]), timeout=SHORT))
        assert "ReduceSum" in text, text
        assert one(np.array([5])).numpy() == 5
        stopped(lambda one=one: one.run(None, {"shape": np.array([1 << 38])}, timeout=SHORT))
        assert one.run(None, {"shape": np.array([7])}, timeout=600)[0] == 7


def test_large_constant_reductions_are_not_folded() -> None:
    constant = model_of(
        [node("ConstantOfShape", "shape", "zeros"), node("ReduceSum", "zeros", "sum", keepdims=0)],
        {},
        ["sum"],
        {"shape": np.array([1 << 38])},
    )
    stopped(lambda model=pliant.compile(constant, seconds=60): model(timeout=SHORT))


@pytest.mark.parametrize("mode", MODES)
def test_an_endless_onnx_loop_stops(mode: str) -> None:
    model = pliant.compile(endless_loop(), exec_mode=mode)
    stopped(lambda: model(np.array(True), scalar(1), timeout=SHORT))
    assert model(np.array(False), scalar(3), timeout=600).numpy() == 3


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["loop", "recursion"])
def test_endless_scripts_stop(name: str, mode: str, tmp_path: Path) -> None:
    executable = relax.build(from_source(SCRIPT), exec_mode=mode)
    path = tmp_path / "module.plx"
    executable.export_library(path)
    for one in (executable, pliant.runtime.load_module(str(path))):
        vm = relax.VirtualMachine(one)
        stopped(lambda vm=vm: vm[name](scalar(1), timeout=SHORT), name=name)
        assert vm[name](scalar(8)).numpy() == 8
        vm.set_input(name, scalar(1))
        stopped(lambda vm=vm: vm.invoke_stateful(name, timeout=SHORT), name=name)
        vm.set_input(name, scalar(9))
        vm.invoke_stateful(name, timeout=600)
        assert vm.get_outputs(name).numpy() == 9
        vm.save_function(name, "saved", scalar(1))
        stopped(lambda vm=vm: vm["saved"](timeout=SHORT), name=name)


@pytest.mark.parametrize("mode", MODES)
def test_endless_closures_stop(mode: str) -> None:
    vm = relax.VirtualMachine(relax.build(from_source(SCRIPT), exec_mode=mode))
    closure = vm["closure"](scalar(2))
    for run in (closure, lambda *args, **options: vm.invoke_closure(closure, *args, **options)):
        with pytest.raises(pliant.TimeLimitError):
            run(scalar(1), timeout=SHORT)
        assert run(scalar(4), timeout=600).numpy() == 4
    pliant.register_func("test.timeouts.host", lambda x: x, override=True)
    with pytest.raises(pliant.VMError, match="a function of the host"):
        pliant.get_global_func("test.timeouts.host")(1, timeout=1)


def test_operators_of_unknown_rank_stop() -> None:
    script = """
@R.function
def main(x: R.Tensor(dtype="float32"), w: R.Tensor(dtype="float32")):
    return R.nn.conv1d(x, w)
"""
    model = pliant.compile(from_source(script))
    small = np.ones((1, 1, 4), "float32"), np.ones((1, 1, 2), "float32")
    assert model(*small, timeout=600).numpy().shape == (1, 1, 3)
    large = np.ones((1, 1, 1 << 22), "float32"), np.ones((1, 1, 1 << 21), "float32")
    stopped(lambda: model(*large, timeout=SHORT))
    assert model(*small).numpy().shape == (1, 1, 3)


@pytest.mark.parametrize("mode", MODES)
def test_limits_apply_to_one_run(mode: str) -> None:
    """Tests runs with a time limit that is close to the time of the run, mixed with runs without a limit. A limit applies only to
    its own run."""
    model = pliant.compile(constant_sum(), exec_mode=mode)
    small, counts = np.array([1 << 14]), {True: 0, False: 0}
    expected = model(small).numpy()
    end = time.monotonic() + 3

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        while time.monotonic() < end:
            try:
                assert model(small, timeout=float(rng.random()) * 2e-4).numpy() == expected
                counts[True] += 1
            except pliant.TimeLimitError:
                counts[False] += 1
            assert model(small).numpy() == expected
            assert model(small, timeout=3600).numpy() == expected

    errors: list[BaseException] = []

    def guarded(seed: int) -> None:
        try:
            work(seed)
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    assert counts[True] + counts[False] > 0
    assert model(small).numpy() == expected


def test_threads_have_separate_limits() -> None:
    reduction, loop = pliant.compile(constant_sum()), pliant.compile(endless_loop())
    texts: dict[str, str] = {}

    def run(key: str, call: Callable[[], Any]) -> None:
        try:
            call()
        except pliant.TimeLimitError as error:
            texts[key] = str(error)

    calls = {
        "0.3": lambda: reduction(np.array([1 << 38]), timeout=0.3),
        "0.6": lambda: loop(np.array(True), scalar(1), timeout=0.6),
        "0.9": lambda: reduction(np.array([1 << 38]), timeout=0.9),
    }
    threads = [threading.Thread(target=run, args=item) for item in calls.items()]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert reduction(np.array([3])).numpy() == 3
        assert loop(np.array(False), scalar(5)).numpy() == 5
    assert set(texts) == set(calls)
    for limit, text in texts.items():
        assert f"time limit of {limit} seconds" in text


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("before", [False, True], ids=["first limit in the child", "first limit in the parent"])
def test_limits_in_forked_children(before: bool) -> None:
    model = pliant.compile(constant_sum())
    if before:
        stopped(lambda: model(np.array([1 << 38]), timeout=0.1), limit=0.1)
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=_stopped_in_child, args=(model,)) for _ in range(3)]
    for child in children:
        child.start()
    stopped(lambda: model(np.array([1 << 38]), timeout=SHORT))
    for child in children:
        child.join(60)
    assert [child.exitcode for child in children] == [7, 7, 7]


def _stopped_in_child(model: Any) -> None:
    try:
        model(np.array([1 << 38]), timeout=SHORT)
    except pliant.TimeLimitError:
        os._exit(7 if model(np.array([3])).numpy() == 3 else 2)
    os._exit(1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_limits_in_children_forked_at_any_time() -> None:
    model, end = pliant.compile(constant_sum()), threading.Event()

    def limited() -> None:
        while not end.is_set():
            assert model(np.array([3]), timeout=3600).numpy() == 3

    threads = [threading.Thread(target=limited) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                try:
                    model(np.array([1 << 38]), timeout=0.05)
                except pliant.TimeLimitError:
                    os._exit(0)
                finally:
                    os._exit(2)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        end.set()
        for thread in threads:
            thread.join()


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize(
    "call",
    [
        "reduction(np.array([1 << 38]), timeout=3600)",
        "vm['loop'](one, timeout=3600)",
        "vm['applied'](other['closure'](one + one), one, timeout=3600)",
        "vm['applied'](other['closure'](one + one), one)",
    ],
)
def test_ctrl_c_stops_a_run_with_a_limit(call: str, tmp_path: Path) -> None:
    onnx.save(constant_sum(), str(tmp_path / "sum.onnx"))
    code = f"""
        import numpy as np
        import pliant
        from pliant import relax
        from pliant.script import from_source

        reduction = pliant.compile({str(tmp_path / "sum.onnx")!r})
        vm, other = (relax.VirtualMachine(relax.build(from_source({SCRIPT!r}))) for _ in range(2))
        one = np.array(1, "float32")
        try:
            vm["loop"](one, timeout=0.1)
        except pliant.TimeLimitError:
            print("ready", flush=True)
        try:
            {call}
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            print("interrupted")
        """
    end = interrupted(textwrap.dedent(code), tmp_path)
    assert end.returncode == 0 and "interrupted" in end.stdout, end.stderr


def test_closures_of_another_vm_stop_with_their_caller() -> None:
    inner, outer = (relax.VirtualMachine(relax.build(from_source(SCRIPT))) for _ in range(2))
    closure = inner["closure"](scalar(2))
    stopped(lambda: outer["applied"](closure, scalar(1), timeout=SHORT), name="applied")
    assert outer["applied"](closure, scalar(4), timeout=600).numpy() == 4


@pytest.mark.parametrize("bad", [-1, -0.0001, math.nan, math.inf, -math.inf])
def test_invalid_limit_values(bad: float) -> None:
    model = pliant.compile(constant_sum())
    with pytest.raises(ValueError, match="'timeout' must be a finite, non-negative number of seconds, or None for no limit"):
        model(np.array([3]), timeout=bad)


@pytest.mark.parametrize("bad", ["1", True, [1], 1j, b"1"])
def test_invalid_limit_types(bad: Any) -> None:
    model = pliant.compile(constant_sum())
    vm = relax.VirtualMachine(model)
    vm.set_input("main", np.array([3]))
    for run in (
        lambda: model(np.array([3]), timeout=bad),
        lambda: model.run(None, {"shape": np.array([3])}, timeout=bad),
        lambda: vm["main"](np.array([3]), timeout=bad),
        lambda: vm.invoke_stateful("main", timeout=bad),
    ):
        with pytest.raises(TypeError, match=f"'timeout' must be a number of seconds.* not {type(bad).__name__}"):
            run()


@pytest.mark.parametrize("good", [None, 600, 1e300, np.float32(600), np.int64(600), 10**9])
def test_valid_limits(good: Any) -> None:
    assert pliant.compile(constant_sum())(np.array([3]), timeout=good).numpy() == 3


def test_a_limit_of_zero_runs_nothing() -> None:
    model = pliant.compile(constant_sum())
    stopped(lambda: model(np.array([3]), timeout=0), limit=0)
    with pytest.raises(pliant.CallError):
        model(timeout=0)
    assert model(np.array([3])).numpy() == 3


def test_input_named_timeout() -> None:
    model = pliant.compile(model_of([node("Neg", "timeout", "y")], {"timeout": (FLOAT, [])}, ["y"]))
    assert model(timeout=scalar(3)).numpy() == -3
    stopped(lambda: model.run(None, {"timeout": scalar(3)}, timeout=0), limit=0)


def test_onnx_backend_time_limit() -> None:
    from pliant import onnx_backend

    model = onnx_backend.prepare(constant_sum())
    stopped(lambda: model.run([np.array([1 << 38])], timeout=SHORT))
    assert model.run([np.array([4])], timeout=600)[0] == 4
    with pytest.raises(TypeError, match="no option other than timeout"):
        model.run([np.array([4])], limit=3)


def test_packed_function_failures_are_not_time_limits() -> None:
    ib = relax.ExecBuilder()
    with ib.function("main", num_inputs=0):
        ib.emit_call("slow", args=[], dst=ib.r(0))
        ib.emit_call("slow", args=[], dst=ib.r(0))
        ib.emit_ret(ib.r(0))
    calls: list[int] = []

    def slow() -> int:
        calls.append(1)
        time.sleep(0.3)
        if len(calls) > 1:
            raise LookupError("its own")
        return 3

    vm = relax.VirtualMachine(ib.get(), functions=[("slow", slow)])
    # A host function is not stopped: the limit is noticed when it returns.
    stopped(lambda: vm["main"](timeout=0.1), limit=0.1)
    assert len(calls) == 1
    with pytest.raises(LookupError, match="its own"):
        vm["main"](timeout=0.1)
