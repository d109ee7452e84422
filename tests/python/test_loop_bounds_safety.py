"""Tests that loop functions whose schedules reorder loops, move statements or omit inits stay inside their buffers.

Each case has the loops of a function with the buffers `A`, `J` and `C` and runs in a separate process, since an access out of
bounds may crash it. The program first fills the memory with 77 from which its output is later allocated.
"""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from loop_bounds_cases import CASES, PROGRAM, SECRETS, Case


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_loop_functions_stay_inside_their_buffers(case: Case, tmp_path: Path) -> None:
    """Checks that a loop function accesses only its own memory, and that elements that it does not
    write are zero.
    """
    loops = textwrap.indent(textwrap.dedent(case.loops).strip(), " " * 8)
    symbolic = case.a.replace("n", '"n"')
    program = PROGRAM.format(
        secrets=SECRETS,
        loops=loops,
        n=case.n,
        j=case.j,
        a=case.a,
        c=case.c,
        sa=symbolic,
        dtype=case.dtype,
        size=case.size,
        expected=case.expected,
    )
    path = tmp_path / "program.py"
    path.write_text(program)
    run = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=120)
    if case.error:
        assert run.returncode == 1 and case.error in run.stderr, f"{run.returncode}\n{run.stderr[-2000:]}"
        return
    assert run.returncode == 0, f"{run.returncode}\n{run.stderr[-2000:]}"


def test_nested_unrolled_loops_compile_quickly() -> None:
    """Tests nested unrolled loops: six loops of 64 iterations would expand to 2**36 copies."""
    nest = "".join(f"{' ' * (8 + 4 * k)}for j{k} in T.unroll(64):\n" for k in range(6))
    text = f"""
from pliant.script import ir as I, tir as T

@I.ir_module
class Module:
    @T.prim_func
    def f(var_c: T.handle):
        C = T.match_buffer(var_c, (1,), "float32")
{nest}{" " * 32}C[0] = C[0] + T.float32(1)
"""
    program = f"import pliant\npliant.compile(pliant.script.from_source({text!r}))\n"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr[-2000:]


def test_shared_tuples_are_converted_once(tmp_path: Path) -> None:
    """Tests the conversion of shared tuples: a loop doubles a tuple 40 times, and its 2**40 leaves
    are one object.
    """
    program = """
import numpy as np
import pliant
from pliant.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((), "int64")) -> R.Object:
        t: R.Object = (x,)
        i = R.const(0, "int64")
        while i < x:
            t: R.Object = (t, t)
            i = i + R.const(1, "int64")
        return t

t = pliant.compile(Module)(np.array(40, "int64"))
for _ in range(40):
    assert len(t) == 2 and t[0] is t[1]
    t = t[0]
assert int(t[0].numpy()) == 40
"""
    path = tmp_path / "program.py"
    path.write_text(program)
    run = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr[-2000:]


def test_kernel_calls_in_values_do_not_write_read_only_tensors(tmp_path: Path) -> None:
    """Tests kernel calls inside stored expressions. Such a call would write to the tensor in its first argument, although that
    tensor is an input of the loop function. Read-only inputs and the constants of a loaded file must stay unchanged.
    """
    program = """
import numpy as np
import pliant
from pliant.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @T.prim_func(private=True)
    def f(a: T.Buffer((64,), "float32"), c: T.Buffer((1,), "float32")):
        c[0] = T.Cast(
            "float32", T.call_extern("int64", "pliant_vec_exp_f32", T.address_of(a[0]), T.address_of(a[0]), 64)
        )

    @R.function
    def main(x: R.Tensor((64,), "float32")):
        cls = Module
        return R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((1,), "float32"))

    @R.function
    def constant():
        cls = Module
        return R.call_tir(cls.f, (R.const(np.zeros(64, "float32")),), out_sinfo=R.Tensor((1,), "float32"))

model = pliant.compile(Module)
x = np.zeros(64, "float32")
x.flags.writeable = False
model.save("model.plx")
for program in (model, pliant.load("model.plx")):
    try:
        program(x)
    except pliant.PliantError as error:
        print(error)
    assert (x == 0).all(), x
    for _ in range(2):
        try:
            program["constant"]()
        except pliant.PliantError as error:
            print(error)
"""
    path = tmp_path / "program.py"
    path.write_text(program)
    run = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert run.returncode == 0, f"{run.returncode}\n{run.stderr[-2000:]}"


def test_kernel_calls_with_overflowing_rows_write_nothing(tmp_path: Path) -> None:
    """Tests a kernel call with an overflowing number of rows. `n * 2**62 // 2**62` is 0 for n = 16,
    although the prover simplifies it to n. The output must be zero, not stale memory.
    """
    program = f"""
import numpy as np
import pliant
from pliant.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
{SECRETS}
    @T.prim_func(private=True)
    def f(a: T.Buffer((256,), "int8"), b: T.Buffer((256,), "int8"), q: T.Buffer((256,), "int32"), var_c: T.handle):
        n = T.int64()
        c = T.match_buffer(var_c, (n, 16), "int32")
        rows = (n * T.int64(4611686018427387904)) // T.int64(4611686018427387904)
        T.evaluate(
            T.call_kernel(
                "matmul_int8",
                x=T.view(a, [rows, 4], strides=[4, 1]),
                weight=T.view(b, [1, 1, 16, 4], strides=[64, 64, 4, 1]),
                column_sums=T.view(q, [16], strides=[1]),
                out=T.view(c, [rows, 16], strides=[16, 1]),
            )
        )

    @R.function
    def main(
        x: R.Tensor((256,), "float32"),
        a: R.Tensor((256,), "int8"),
        q: R.Tensor((256,), "int32"),
        s: R.Tensor(("n",), "float32"),
    ):
        n = T.int64()
        cls = Module
        s1 = R.call_tir(cls.secret, (x,), out_sinfo=R.Tensor((256,), "float32"))
        s2 = R.call_tir(cls.secret, (s1,), out_sinfo=R.Tensor((256,), "float32"))
        s3 = R.call_tir(cls.secret, (s2,), out_sinfo=R.Tensor((256,), "float32"))
        y = R.call_tir(cls.f, (a, a, q), out_sinfo=R.Tensor((n, 16), "int32"))
        return (R.sum(s3), y)

model = pliant.compile(Module)
ones = np.ones(256, "float32"), np.ones(256, "int8"), np.ones(256, "int32")
for _ in range(3):
    y = model(*ones, np.zeros(16, "float32"))[1]
    assert (np.asarray(y) == 0).all(), y
"""
    path = tmp_path / "program.py"
    path.write_text(program)
    run = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, f"{run.returncode}\n{run.stderr[-2000:]}"
