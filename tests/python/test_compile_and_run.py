"""Tests compiling and running: `pliant.compile`, the virtual machine, files, threads, invalid input."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from symbol_sizes import SIZES

import pliant
from pliant import relax, te
from pliant.script import from_source

PAIR = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("batch", "seq"), "float32"), y: R.Tensor(("batch", "seq"), "float32")) -> R.Tensor(("batch", "seq"), "float32"):
        with R.dataflow():
            gv = R.add(x, y)
            R.output(gv)
        return gv

    @R.function
    def double(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        with R.dataflow():
            gv = R.add(x, x)
            R.output(gv)
        return gv
"""


@pytest.fixture(scope="module")
def model() -> pliant.Model:
    return pliant.compile(from_source(PAIR))


def test_all_shapes_with_one_compilation(model: pliant.Model, rng: np.random.Generator) -> None:
    before = model.stats().runs
    for batch in SIZES:
        for seq in SIZES:
            x, y = rng.random((batch, seq), "float32"), rng.random((batch, seq), "float32")
            np.testing.assert_array_equal(model(x, y).numpy(), x + y)
    stats = model.stats()
    assert stats.compilations == 1 and stats.runs == before + len(SIZES) ** 2
    assert stats.compile_seconds > 0 and stats.phases


def test_model_description(model: pliant.Model) -> None:
    first, second = model.inputs
    assert first.name == "x" and first.dtype == "float32" and first.shape == ("batch", "seq")
    assert second.name == "y" and model.output.shape == ("batch", "seq")
    assert model.function_names == ["main", "double"]
    assert "main(x: " in repr(model)


def test_functions_by_name(model: pliant.Model) -> None:
    x = np.ones((2, 3), "float32")
    np.testing.assert_array_equal(model.main(x, x).numpy(), x * 2)
    np.testing.assert_array_equal(model["double"](x[0]).numpy(), [2, 2, 2])
    with pytest.raises(AttributeError, match="no function 'triple'"):
        model.triple  # noqa: B018
    with pytest.raises(KeyError, match="triple"):
        model["triple"]


def test_inputs_of_all_kinds(model: pliant.Model, rng: np.random.Generator) -> None:
    base = rng.random((6, 8), "float32")
    locked = base.copy()
    locked.flags.writeable = False
    for x in (base, base[::2], base[:, ::-1], base.T, locked, pliant.nd.array(base), memoryview(base), np.broadcast_to(base[0], (3, 8))):
        want = np.asarray(x)
        np.testing.assert_array_equal(model(x, x).numpy(), want + want)


def test_results_are_shared_without_a_copy(model: pliant.Model) -> None:
    out = model.double(np.ones(3, "float32"))
    view = out.numpy()
    view[0] = 9
    assert np.from_dlpack(out)[0] == 9 and np.asarray(out)[0] == 9


@pytest.mark.parametrize(
    ("args", "error", "message"),
    [
        (lambda f: (f(2, 3),), pliant.CallError, "takes 2 arguments, but 1 was given .missing: 'y'"),
        (lambda f: (f(2, 3), f(2, 3), f(2, 3)), pliant.CallError, "takes 2 arguments, but 3 were given"),
        (lambda f: (f(2, 3), f(2, 4)), pliant.ShapeError, "seq"),
        (lambda f: (f(2, 3), f(6)), pliant.ShapeError, "'y' must be a float32 tensor of 2 dims"),
        (lambda f: (f(2, 3), f(2, 3).astype("float64")), pliant.DTypeError, r'float64 .* with .astype\("float32"\)\)'),
        (lambda f: (f(2, 3), f(2, 3).astype("int64")), pliant.DTypeError, r"but is an int64 tensor of shape \(2, 3\)"),
        (lambda f: (f(2, 3), f(6)), pliant.ShapeError, r"but is a float32 tensor of shape \(6,\)"),
        (lambda f: (f(2, 3), [f(3)]), pliant.CallError, r"is a tuple of 1 value \(help: .*np.array\(..., dtype=\"float32\"\)\)"),
        (lambda f: (f(2, 3), [1, 2]), pliant.CallError, r"is a shape of 2 dims \(help: .*np.array"),
        (lambda f: (f(2, 3), "text"), pliant.CallError, "'y' must be a float32 tensor"),
        (lambda f: (f(2, 3), None), pliant.CallError, "'y' must be a float32 tensor"),
        (lambda f: (f(2, 3), f(2, 3).astype("complex64")), pliant.DTypeError, "complex64 are not supported"),
    ],
)
def test_invalid_calls(model: pliant.Model, args: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        model(*args(lambda *dims: np.ones(dims, "float32")))


@pytest.mark.parametrize(
    ("args", "error", "message"),
    [
        (([1, 2, 3], [1, 2, 3, 4]), pliant.ShapeError, "'mask' dim 1 must equal seq = 3 \\(from 'ids' dim 1\\), but is 4"),
        (([1, 2], [0.5, 1.0]), pliant.DTypeError, "'mask' must be an int64 tensor of 2 dims, but is a float64 tensor"),
        (([1, 2], "a tensor"), pliant.CallError, "'mask' must be an int64 tensor of 2 dims"),
    ],
)
def test_error_classes_do_not_depend_on_names(args: Any, error: type[Exception], message: str) -> None:
    model = pliant.compile(
        from_source(
            """
@R.function
def main(ids: R.Tensor((1, "seq"), dtype="int64"), mask: R.Tensor((1, "seq"), dtype="int64")):
    return R.add(ids, mask)
"""
        )
    )
    values = [a if isinstance(a, str) else np.array([a]) for a in args]
    with pytest.raises(error, match=message):
        model(*values)


def test_failed_assertions_are_run_errors() -> None:
    model = pliant.compile(
        from_source(
            """
@R.function(pure=False)
def main(ok: R.Tensor((), dtype="bool"), x: R.Tensor(("n",), dtype="float32")):
    _ = R.assert_op(ok, format="must be a float32 tensor, but is a float64 tensor")
    return x
"""
        )
    )
    x = np.ones(3, "float32")
    np.testing.assert_array_equal(model(np.array(True), x).numpy(), x)
    with pytest.raises(pliant.VMError, match="must be a float32") as caught:
        model(np.array(False), x)
    assert type(caught.value) is pliant.AssertionFailed


def test_invalid_reshape() -> None:
    model = pliant.compile(
        from_source(
            """
@R.function
def main(x: R.Tensor(("n",), dtype="float32"), s: R.Shape(ndim=2)):
    return R.reshape(x, s)
"""
        )
    )
    assert model(np.ones(8, "float32"), (4, 2)).shape == (4, 2)
    with pytest.raises(pliant.ShapeError):
        model(np.ones(9, "float32"), (4, 2))


def test_invalid_calls_leave_the_model_usable(model: pliant.Model) -> None:
    with pytest.raises(pliant.ShapeError):
        model(np.ones((2, 3), "float32"), np.ones((2, 4), "float32"))
    x = np.ones((2, 3), "float32")
    np.testing.assert_array_equal(model(x, x).numpy(), x * 2)


def test_dim_expression_that_does_not_divide() -> None:
    model = pliant.compile(
        from_source(
            """
@R.function
def main(x: R.Tensor(ndim=1, dtype="float32")):
    n = T.int64()
    y = R.match_cast(x, R.Tensor((n * 4,), "float32"))
    return R.add(y, y)
"""
        )
    )
    np.testing.assert_array_equal(model(np.ones(8, "float32")).numpy(), np.full(8, 2))
    with pytest.raises(pliant.ShapeError, match="4"):
        model(np.ones(6, "float32"))


def test_size_overflow() -> None:
    model = pliant.compile(
        from_source(
            """
@R.function
def main(s: R.Shape(["n", "m"])) -> R.Tensor(("n * m",), "float32"):
    n = T.int64()
    m = T.int64()
    return R.zeros(R.shape([n * m]), dtype="float32")
"""
        )
    )
    assert model((2, 3)).shape == (6,)
    for dims in ((1 << 40, 1 << 40), (1 << 31, 1 << 31)):
        with pytest.raises((pliant.PliantError, MemoryError)):
            model(dims)


def test_virtual_machine() -> None:
    ex = relax.build(from_source(PAIR), target="llvm", exec_mode="compiled")
    assert "@main" in ex.as_text() and "main" in ex.stats()
    assert "# exec_mode: compiled" in ex.as_text() and "Execution mode: compiled" in ex.stats()
    vm = relax.VirtualMachine(ex, pliant.cpu())
    x = np.ones((2, 3), "float32")
    np.testing.assert_array_equal(vm["main"](x, x).numpy(), x * 2)
    assert vm.get_function_arity("main") == 2 and vm.get_function_param_name("main", 1) == "y"
    with pytest.raises(KeyError, match="no function 'other'"):
        vm["other"]
    vm.set_input("main", x, y=x)
    vm.invoke_stateful("main")
    np.testing.assert_array_equal(vm.get_outputs("main").numpy(), x * 2)
    with pytest.raises(TypeError, match="no parameter 'z'"):
        vm.set_input("main", x, z=x)
    with pytest.raises(TypeError, match="parameter 'y' is missing"):
        vm.set_input("main", x=x)
    vm.save_function("main", "saved", x, x)
    np.testing.assert_array_equal(vm["saved"]().numpy(), x * 2)
    result = vm.time_evaluator("main", pliant.cpu(), number=3, repeat=4)(x, x)
    assert len(result.results) == 4 and 0 < result.min <= result.mean <= result.max


def test_instruments() -> None:
    vm = relax.VirtualMachine(relax.build(from_source(PAIR)), pliant.cpu())
    calls = []
    vm.set_instrument(lambda func, callee, before, result, *args: calls.append((func, callee, before)))
    vm["double"](np.ones(2, "float32"))
    vm.set_instrument(None)
    count = len(calls)
    vm["double"](np.ones(2, "float32"))
    assert count == len(calls) and any(before for _, _, before in calls)
    assert {func for func, _, _ in calls} == {"double"}


def test_hand_built_executables() -> None:
    ib = relax.ExecBuilder()
    with ib.function("main", num_inputs=1):
        ib.emit_call("vm.builtin.copy", args=[ib.r(0)], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    ex = ib.get()
    assert "vm.builtin.copy" in ex.as_text()
    vm = relax.VirtualMachine(ex, pliant.cpu())
    np.testing.assert_array_equal(vm["main"](np.arange(3)).numpy(), [0, 1, 2])
    with pytest.raises(ValueError, match="finished"):
        ib.get()
    bad = relax.ExecBuilder()
    with bad.function("main", num_inputs=1):
        bad.emit_ret(bad.r(7))
    with pytest.raises(pliant.ExecutableError, match="main"):
        bad.get()


def test_save_and_load(tmp_path: Path, model: pliant.Model) -> None:
    path = tmp_path / "model.plx"
    model.save(path)
    loaded = pliant.load(path)
    x = np.ones((2, 3), "float32")
    np.testing.assert_array_equal(loaded(x, x).numpy(), x * 2)
    assert loaded.inputs[0].shape == ("batch", "seq")
    ex = relax.build(from_source(PAIR))
    ex.export_library(tmp_path / "lib.so")
    again = pliant.runtime.load_module(tmp_path / "lib.so")
    np.testing.assert_array_equal(relax.VirtualMachine(again, pliant.cpu())["main"](x, x).numpy(), x * 2)
    assert relax.Executable.from_bytes(ex.to_bytes()).function_names == ex.function_names


def test_load_and_compile_suggest_each_other(tmp_path: Path, model: pliant.Model) -> None:
    (tmp_path / "model.onnx").write_bytes(b"\x08\x08")
    with pytest.raises(pliant.ExecutableError, match=r'model.onnx: .* pliant.compile\(".*model.onnx"\)'):
        pliant.load(tmp_path / "model.onnx")
    for name in ("model.plx", "program"):
        model.save(tmp_path / name)
        with pytest.raises(pliant.UnsupportedError, match=rf"is a compiled program: load it with pliant.load\('.*{name}'\)"):
            pliant.compile(tmp_path / name)
    with pytest.raises(pliant.UnsupportedError, match="script files"):
        pliant.compile("model.plxx")


def test_damaged_files(tmp_path: Path, model: pliant.Model, rng: np.random.Generator) -> None:
    path = tmp_path / "model.plx"
    with pytest.raises(FileNotFoundError):
        pliant.load(tmp_path / "missing")
    path.write_bytes(b"not an executable at all")
    with pytest.raises(pliant.ExecutableError, match=r"model.plx: the file is not a Pliant executable: .* \(help: "):
        pliant.load(path)
    model.save(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(pliant.ExecutableError, match=r"model.plx: the executable is truncated: .* \(help: copy the file again"):
        pliant.load(path)
    model.save(path)
    data = path.read_bytes()
    for length in (0, 1, 8, len(data) // 2, len(data) - 1):
        with pytest.raises(pliant.ExecutableError):
            relax.Executable.from_bytes(data[:length])
    for at in rng.integers(0, len(data), 40):
        flipped = bytearray(data)
        flipped[at] ^= 1 << int(rng.integers(0, 8))
        with pytest.raises(pliant.PliantError):
            relax.Executable.from_bytes(bytes(flipped))


def test_missing_packed_functions_are_named() -> None:
    mod = from_source(
        """
@R.function(pure=False)
def main(x: R.Tensor(("n",), "float32")):
    y = R.call_packed("test.not_there", x, sinfo_args=R.Object())
    return y
"""
    )
    with pytest.raises(pliant.VMError, match="test.not_there"):
        pliant.compile(mod)
    ex = relax.build(mod)
    vm = relax.VirtualMachine(ex, functions=[("test.not_there", lambda x: 7)])
    assert vm["main"](np.ones(1, "float32")) == 7


def test_packed_functions_with_wrong_results(packed: Any) -> None:
    mod = from_source(
        """
@R.function(pure=False)
def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
    n = T.int64()
    y = R.call_packed("test.wrong", x, sinfo_args=R.Tensor((n,), "float32"))
    z = R.match_cast(y, R.Tensor((n,), "float32"))
    return R.add(z, x)
"""
    )
    x = np.ones(3, "float32")
    for wrong in (None, "text", np.ones(3), np.ones((1, 3), "float32"), np.ones(4, "float32")):
        packed("test.wrong", lambda _, wrong=wrong: wrong)
        with pytest.raises(pliant.PliantError):
            pliant.compile(mod)(x)
    packed("test.wrong", lambda v: v)
    np.testing.assert_array_equal(pliant.compile(mod)(x).numpy(), x * 2)


def test_packed_functions_that_raise(packed: Any) -> None:
    mod = from_source(
        """
@R.function(pure=False)
def main(x: R.Tensor(("n",), "float32")):
    y = R.call_packed("test.raises", x, sinfo_args=R.Object())
    return y
"""
    )

    class Mine(Exception):
        pass

    def raises(_: Any) -> None:
        raise Mine("the user's own")

    packed("test.raises", raises)
    with pytest.raises(Mine, match="the user's own") as info:
        pliant.compile(mod)(np.ones(1, "float32"))
    assert any(entry.name == "raises" for entry in info.traceback)


def test_many_threads_share_a_model(model: pliant.Model, rng: np.random.Generator) -> None:
    def work(seed: int) -> None:
        own = np.random.default_rng(seed)
        for _ in range(200):
            shape = tuple(own.integers(0, 9, 2))
            x, y = own.random(shape, "float32"), own.random(shape, "float32")
            np.testing.assert_array_equal(model(x, y).numpy(), x + y)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


def test_the_gil_is_released(packed: Any) -> None:
    mod = from_source(
        """
@R.function(pure=False)
def main(x: R.Tensor(("n",), "float32")):
    y = R.call_packed("test.meet", x, sinfo_args=R.Object())
    return y
"""
    )
    barrier = threading.Barrier(2)

    def meet(_: Any) -> int:
        barrier.wait(timeout=10)
        return 1

    packed("test.meet", meet)
    model = pliant.compile(mod)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(model, [np.ones(1, "float32")] * 2)) == [1, 1]


def test_options() -> None:
    mod = from_source(PAIR)
    assert pliant.compile(mod, target="llvm", threads=1, opt_level=0, verify=True).function_names
    with pytest.raises(TypeError, match="no compile option 'nonsense'"):
        pliant.compile(mod, nonsense=1)
    with pytest.raises(pliant.UnsupportedError, match="target 'cuda'"):
        pliant.compile(mod, target="cuda")
    with pytest.raises(ValueError, match="no pipeline 'nonsense'"):
        pliant.compile(mod, pipeline="nonsense")
    with pytest.raises(TypeError, match="the program must be an IRModule, a function, a path or an ONNX model, got int"):
        pliant.compile(3)  # type: ignore[arg-type]
    with pytest.raises(pliant.UnsupportedError, match="model.bin"):
        pliant.compile("model.bin")


def test_stages_are_dumped(tmp_path: Path) -> None:
    pliant.compile(from_source(PAIR), dump_dir=tmp_path)
    assert len(list(tmp_path.iterdir())) > 5


def test_programs_with_any_names_load(tmp_path: Path) -> None:
    """Checks that programs with any function names load. Loop functions are saved as script, which
    renames what is not a valid name.
    """
    source = """
@R.function
def main(x: R.Tensor(("T", "I"), "float32"), é: R.Tensor(("T", 12), "float32")):
    with R.dataflow():
        y = R.exp(x)
        s = R.split(R.exp(é), 2, axis=1)
        R.output(y, s)
    return (y, s)
"""
    model = pliant.compile(pliant.script.from_source(source))
    model.save(tmp_path / "names.plx")
    again = pliant.load(tmp_path / "names.plx")
    args = np.ones((2, 3), np.float32), np.ones((2, 12), np.float32)
    for one, other in zip(model(*args)[1], again(*args)[1], strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["a-b", "R", "class", "fused add", "é"])
def test_kernels_with_any_names_load(tmp_path: Path, name: str) -> None:
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((4,), "float32"))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit_te(lambda a: te.compute(a.shape, lambda i: a[i] + 1, name=name), x, primfunc_name_hint=name))
    model = pliant.compile(bb.get())
    model.save(tmp_path / "kernel.plx")
    again = pliant.load(tmp_path / "kernel.plx")
    np.testing.assert_array_equal(again(np.zeros(4, np.float32)), np.ones(4, np.float32))


FORCED_ISA = """
import numpy as np
import pliant
from pliant.script import ir as I, relax as R

W = np.arange(20 * 70, dtype="float32").reshape(20, 70) % 7 - 3

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 20), "float32")) -> R.Tensor(("n", 70), "float32"):
        with R.dataflow():
            y = R.matmul(x, R.const(W))
            R.output(y)
        return y

try:
    model = pliant.compile(Module)
except pliant.CompileError as error:
    print(error)
else:
    for n in (0, 1, 5, 33):
        x = np.arange(n * 20, dtype="float32").reshape(n, 20) % 5 - 2
        np.testing.assert_array_equal(np.array(model(x)), x @ W)
    print("right")
"""


def printed_under(folder: Path, **variables: str) -> str:
    """Returns what the program prints in a process with these environment variables."""
    program = folder / "program.py"
    program.write_text(FORCED_ISA)
    command = [sys.executable, str(program)]
    environment = {**os.environ, **variables}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("isa", ["amx", "avx512", "avx2", "neon", "portable", "", "mmx"])
def test_instruction_set_override(isa: str, tmp_path: Path) -> None:
    printed = printed_under(tmp_path, PLIANT_ISA=isa)
    if isa in ("portable", ""):
        assert printed == "right\n"
    elif isa == "mmx":
        assert "PLIANT_ISA is 'mmx', which is not an instruction set" in printed
        assert "to use all instructions of this machine, unset the environment variable PLIANT_ISA" in printed
    else:
        missing = f"PLIANT_ISA is '{isa}', which this CPU does not support"
        assert printed == "right\n" or missing in printed


@pytest.mark.parametrize("caches", ["48K,2M,32M", "1,1,1", "9999M,9999M,9999M", "", "48K", "48K,2M,many"])
def test_cache_size_override(caches: str, tmp_path: Path) -> None:
    printed = printed_under(tmp_path, PLIANT_CACHES=caches)
    if caches in ("48K", "48K,2M,many"):
        assert f"PLIANT_CACHES is '{caches}'; expected the sizes of the three levels" in printed
        assert "to use the cache sizes that the CPU reports, unset the environment variable PLIANT_CACHES" in printed
    else:
        assert printed == "right\n"
