"""Tests the example programs of three documents of Apache TVM on Relax (2022): the RFC, its announcement, and the document on
`emit_te`.

Each program keeps the spelling of its document as far as it can be parsed. Docstrings state what had to be corrected. The names
of tests contain the numbers of the programs: R1, R2, ... in the RFC, A1, A2, ... and C1 in the announcement and its mail, and
E1, E2, ... in the document on `emit_te`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pliant as tvm
import pytest
from pliant import relax, te, tir
from pliant.script import from_source

pytestmark = pytest.mark.usefixtures("exec_mode")

Register = Callable[[str, Callable[..., Any]], None]
SHAPES = ((2, 3), (1, 1), (4, 2))


def run(mod: Any, func: str, *args: Any) -> Any:
    """Builds a module for the target `llvm`, and runs one of its functions in a virtual machine."""
    target = tvm.target.Target("llvm")
    ex = relax.vm.build(mod, target)
    assert ex.as_text()
    vm = relax.VirtualMachine(ex, tvm.cpu())
    return vm[func](*args)


def write(out: Any, value: np.ndarray) -> None:
    """Writes a value to the output of a function in destination-passing style."""
    out[:] = value


def floats(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.random(shape, "float32")


def test_r1_first_program(packed: Register, rng: np.random.Generator) -> None:
    """Tests the first program of the RFC: loop functions, packed functions and `match_cast` in one function. Corrections: `n` is
    declared, `with T.grid(n) as i` is a loop, and `w` has a known rank after its `match_cast`."""
    updated = []

    def custom_inplace_update(value: Any) -> None:
        updated.append(value.shape)
        value[:] = value.numpy() + 1

    packed("custom_inplace_update", custom_inplace_update)
    mod = from_source(
        """
@tvm.script.ir_module
class MyIRModule:
    @T.prim_func
    def tir_exp_func(x: T.handle, y: T.handle):
        n = T.int64()
        X = T.match_buffer(x, (n,), "float32")
        Y = T.match_buffer(y, (n,), "float32")
        for i in T.grid(n):
            Y[i] = T.exp(X[i])

    @R.function
    def relax_func(x: R.Tensor[(n, k), "float32"], w: R.Tensor[_, "float32"]):
        with R.dataflow():
            lv0 = R.match_shape(w, (k, m))
            lv1: R.Tensor[(n, m), "float32"] = R.dot(x, lv0)
            lv2: R.Tensor[(n * m,), "float32"] = R.flatten(lv1)
            lv3: R.Shape = (n * m,)
            gv0 = R.call_tir(tir_exp_func, [lv2], lv3, dtype="float32")
            R.outputs(gv0)

        R.call_packed("custom_inplace_update", gv0)
        return gv0
"""
    )
    for n, k in SHAPES:
        x, w = floats(rng, n, k), floats(rng, k, 3)
        result = run(mod, "relax_func", tvm.nd.array(x), tvm.nd.array(w))
        np.testing.assert_allclose(result.numpy(), np.exp((x @ w).ravel()) + 1, rtol=1e-5)
        assert updated.pop() == (n * 3,)


def test_r3_the_meaning_of_call_tir(rng: np.random.Generator) -> None:
    """Tests that `call_tir` allocates the output and then calls the function, which is a NumPy function or a loop function."""

    def low_level_func(a: np.ndarray, out: np.ndarray) -> None:
        out[:] = a * 2

    A = te.placeholder((te.var("n"),), name="A")
    tir_primfunc = te.create_prim_func([A, te.compute(A.shape, lambda i: A[i] * 2.0, name="B")])

    def call_tir(inputs: tuple[np.ndarray], output_shape: tuple[int, ...], output_dtype: str) -> np.ndarray:
        out_tensor = np.empty(output_shape, output_dtype)
        low_level_func(*inputs, out_tensor)
        return out_tensor

    n = tir.Var("n", "int64")
    x = relax.Var("x", relax.TensorStructInfo((n,), "float32"))
    bb = relax.BlockBuilder()
    gv = bb.add_func(tir_primfunc, "tir_primfunc")
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(relax.call_tir(gv, (x,), relax.TensorStructInfo((n,), "float32"))))
    data = floats(rng, 5)
    np.testing.assert_array_equal(run(bb.get(), "main", data).numpy(), call_tir((data,), (5,), "float32"))


def test_r7_call_dps_packed_with_named_output(packed: Register, rng: np.random.Generator) -> None:
    packed("custom_packed_func", lambda a, b, out: write(out, a.numpy() - b.numpy()))
    mod = from_source(
        """
@R.function
def main(input0: R.Tensor[(3, 4), "float32"], input1: R.Tensor[(3, 4), "float32"]):
    gv = R.call_dps_packed("custom_packed_func", (input0, input1), output_shape=(3, 4), output_dtype="float32")
    return gv
"""
    )
    a, b = floats(rng, 3, 4), floats(rng, 3, 4)
    np.testing.assert_array_equal(run(mod, "main", a, b).numpy(), a - b)


def test_r9_packed_functions_and_a_matmul(packed: Register, rng: np.random.Generator) -> None:
    """Tests a matmul as a loop function, between calls of packed functions. Corrections: the reduction is the last loop of the
    nest (m, k, n), the indices match the buffers, and `(gv1,)` is a tuple."""
    printed = []

    def add_packed(a: Any, b: Any) -> Any:
        return tvm.nd.array(a.numpy() + b.numpy())

    def tile_packed(a: Any, b: Any) -> None:
        b[:] = tvm.nd.array(np.tile(a.numpy(), (1, 2)))

    packed("custom_add", add_packed)
    packed("custom_print", lambda a: printed.append(a.numpy().copy()))
    packed("custom_tile", tile_packed)
    mod = from_source(
        """
@tvm.script.ir_module
class MyIRModule:
    @T.prim_func
    def tir_matmul(x: T.handle, y: T.handle, z: T.handle) -> None:
        m = T.var("int64")
        n = T.var("int64")
        k = T.var("int64")
        A = T.match_buffer(x, (m, n))
        B = T.match_buffer(y, (n, k))
        C = T.match_buffer(z, (m, k))

        for (i0, j0, k0) in T.grid(m, k, n):
            with T.block():
                i, j, r = T.axis.remap("SSR", [i0, j0, k0])
                with T.init():
                    C[i, j] = 0.0
                C[i, j] += A[i, r] * B[r, j]

    @R.function
    def relax_func(x: R.Tensor[(m, n), "float32"], y: R.Tensor[(n, k), "float32"]):
        with R.dataflow():
            gv0 = R.call_tir(tir_matmul, (x, y), (m, k), dtype="float32")
            R.outputs(gv0)

        R.call_packed("custom_print", gv0)
        gv1 = R.call_packed("custom_add", gv0, gv0)
        gv2 = R.call_dps_packed("custom_tile", (gv1,), (m, k * 2), dtype="float32")
        return gv2
"""
    )
    for m, n in SHAPES:
        x, y = floats(rng, m, n), floats(rng, n, 3)
        result = run(mod, "relax_func", x, y).numpy()
        np.testing.assert_allclose(printed.pop(), x @ y, rtol=1e-5)
        np.testing.assert_allclose(result, np.tile(2 * (x @ y), (1, 2)), rtol=1e-5)


SHAPE_EXAMPLE = """
@R.function
def shape_example(x: R.Tensor[(n, 2, 2), "float32"]):
    with R.dataflow():
        lv0: R.Tensor[(n, 4), "float32"] = R.reshape(x, (n, 4))
        lv1: R.Tensor[(n * 4,), "float32"] = R.flatten(lv0)
        lv2: R.Shape = (n * 4,)
        lv3: R.Shape = R.call_pure_packed("myshape_func", lv2, sinfo_args=R.Shape(ndim=1))
        lv3a = R.match_shape(lv3, (k,))
        lv4 = R.call_dps_packed("custom_func", (lv1,), (k,), dtype="float32")
        lv5: R.Tensor[_, "float32"] = R.call_pure_packed("my_unique", lv4, sinfo_args=R.Tensor(ndim=1, dtype="float32"))
        lv6: R.Tensor[(m,), "float32"] = R.match_shape(lv5, (m,))
        {last}
        gv0: R.Tensor[(m,), "float32"] = R.exp(lv6)
        R.outputs(gv0)

    return gv0
"""


def register_shape_functions(packed: Register) -> None:
    packed("myshape_func", lambda shape: tvm.runtime.ShapeTuple([d // 2 for d in shape]))
    packed("custom_func", lambda a, out: write(out, a.numpy()[: out.shape[0]]))
    packed("my_unique", lambda a: np.unique(a.numpy()))


def test_r11_shapes_of_all_three_kinds(packed: Register) -> None:
    """Tests tensors with symbolic sizes, of known rank only, and of unknown shape. Packed functions in the dataflow block are
    called as pure functions. `lv7` checks the size `m` again, so the input must have no equal elements for `unique` to drop."""
    register_shape_functions(packed)
    mod = from_source(SHAPE_EXAMPLE.format(last="lv7: R.Shape = R.match_shape(lv3, (m,))"))
    x = np.arange(12, dtype="float32").reshape(3, 2, 2)
    np.testing.assert_allclose(run(mod, "shape_example", x).numpy(), np.exp(np.arange(6)), rtol=1e-5)
    x[0, 0, 1] = 0
    with pytest.raises(tvm.ShapeError, match="m"):
        run(mod, "shape_example", x)


def test_a4_shapes_without_the_second_match(packed: Register) -> None:
    """Tests the shapes of `test_r11_shapes_of_all_three_kinds` without the second check of `m`. Correction: a packed function is
    called by name; the announcement calls it with `call_tir`, whose first argument was the shape."""
    register_shape_functions(packed)
    mod = from_source(SHAPE_EXAMPLE.format(last="pass"))
    x = np.zeros((2, 2, 2), "float32")
    np.testing.assert_array_equal(run(mod, "shape_example", x).numpy(), [1])


def test_r14_two_dataflow_blocks_with_effects_between(packed: Register, rng: np.random.Generator) -> None:
    """Tests two dataflow blocks with calls that have effects between them. Corrections: `linear`, `relu` and `linear1` are
    defined, and a packed function reads the tensor from a file."""
    updates = []
    stored = floats(rng, 128, 128)
    packed("custom_inplace_update", lambda v: updates.append(v.shape))
    packed("read_tensor_from_file", lambda name: {"tensor.txt": stored}[name])
    n, m, k = te.var("n"), te.var("m"), te.var("k")
    X, W, B = te.placeholder((n, k), name="X"), te.placeholder((m, k), name="W"), te.placeholder((m,), name="B")
    r = te.reduce_axis((0, k), "r")
    product = te.compute((n, m), lambda i, j: te.sum(X[i, r] * W[j, r], axis=r), name="product")
    linear = te.create_prim_func([X, W, B, te.compute((n, m), lambda i, j: product[i, j] + B[j], name="linear")])
    P = te.placeholder((n, m), name="P")
    relu = te.create_prim_func([P, te.compute((n, m), lambda i, j: te.max(P[i, j], tir.const(0.0)), name="relu")])
    mod = from_source(
        """
@tvm.script.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 784), "float32"),
             w: R.Tensor((128, 784), "float32"),
             b: R.Tensor((128,), "float32")):

        with R.dataflow():
            lv0 = R.call_tir(linear, (x, w, b), (1, 128), dtype="float32")
            gv0 = R.call_tir(relu, (lv0,), (1, 128), dtype="float32")
            R.output(gv0)

        R.call_packed("custom_inplace_update", gv0)
        gv1 = R.call_packed("read_tensor_from_file", "tensor.txt", type_args=R.Tensor((128, 128), "float32"))

        with R.dataflow():
            out = R.call_tir(linear1, (gv0, gv1, b), (1, 128), dtype="float32")
            R.output(out)
        return out
""",
        extra_vars={"linear": linear, "relu": relu, "linear1": linear},
    )
    x, w, b = floats(rng, 1, 784), floats(rng, 128, 784), floats(rng, 128)
    hidden = np.maximum(x @ w.T + b, 0)
    np.testing.assert_allclose(run(mod, "main", x, w, b).numpy(), hidden @ stored.T + b, rtol=1e-4)
    assert updates == [(1, 128)]


def test_r16_one_dataflow_block_and_one_plain_block(packed: Register, rng: np.random.Generator) -> None:
    packed("custom_inplace_update", lambda v: v.numpy() * 2)
    mod = from_source(
        """
@R.func
def relax_func(x: R.Tensor[(n, k), "float32"], w: R.Tensor[(k, m), "float32"]):
    with R.dataflow():
        lv0: R.Tensor[(n, m), "float32"] = R.dot(x, w)
        gv0: R.Tensor[(n * m,), "float32"] = R.flatten(lv0)
        R.outputs(gv0)

    gv1 = R.call_packed("custom_inplace_update", gv0)
    return gv1
"""
    )
    first, second = mod.body.blocks
    assert first.is_dataflow and not second.is_dataflow
    assert isinstance(first.bindings[0].var, relax.DataflowVar)
    assert not isinstance(first.bindings[1].var, relax.DataflowVar)
    x, w = floats(rng, 2, 3), floats(rng, 3, 4)
    np.testing.assert_allclose(run(mod, "relax_func", x, w).numpy(), 2 * (x @ w).ravel(), rtol=1e-5)


RUNNING = """
@tvm.script.ir_module
class MyIRModule:
    @T.prim_func
    def tirexp(x: T.handle, y: T.handle):
        n1, m1 = T.int64(), T.int64()
        X = T.match_buffer(x, (n1, m1))
        Y = T.match_buffer(y, (n1, m1))
        for i0, j0 in T.grid(n1, m1):
            with T.block("exp"):
                i, j = T.axis.remap("SS", [i0, j0])
                Y[i, j] = T.exp(X[i, j])

    @R.function
    def relax_function(x: R.Tensor[(n, m), "float32"]):
        with R.dataflow():
            lv0: R.Tensor[(n, m), "float32"] = R.call_tir(tirexp, (x,), (n, m), dtype="float32")
            gv0: R.Tensor[(m * n,), "float32"] = R.call_dps_packed("flatten", (lv0,), (m * n,), dtype="float32")
            R.outputs(gv0)

        return gv0
"""


def flatten(a: Any, out: Any) -> None:
    out[:] = a.numpy().ravel()


def test_r17_the_running_example(packed: Register, rng: np.random.Generator) -> None:
    """Tests the running example of the RFC: a loop function, followed by a packed function that flattens a tensor. Corrections:
    the parameters have the names that the body uses, the block has named axes, and the type has a dtype."""
    packed("flatten", flatten)
    mod = from_source(RUNNING)
    for shape in SHAPES:
        x = floats(rng, *shape)
        np.testing.assert_allclose(run(mod, "relax_function", x).numpy(), np.exp(x).ravel(), rtol=1e-5)


def test_r18_explicit_memory(packed: Register, rng: np.random.Generator) -> None:
    """Tests that passes lower the running example (`test_r17_the_running_example`) to explicit memory allocation. The result
    prints, parses back, and runs."""
    packed("flatten", flatten)
    lower = tvm.transform.Sequential(
        [
            relax.transform.ToNonDataflow(),
            relax.transform.RemovePurityChecking(),
            relax.transform.CallTIRRewrite(),
            relax.transform.LowerAllocTensor(),
            relax.transform.KillAfterLastUse(),
        ]
    )
    mod = lower(from_source(RUNNING))
    text = mod.script()
    assert "R.dataflow" not in text and "call_tir(" not in text
    for word in ("alloc_storage", "alloc_tensor", "kill_tensor", "kill_storage"):
        assert word in text, text
    assert len(from_source(text, check_well_formed=False)) == len(mod)
    x = floats(rng, 3, 2)
    np.testing.assert_allclose(run(mod, "relax_function", x).numpy(), np.exp(x).ravel(), rtol=1e-5)


def test_r19_shapes_in_the_heap(packed: Register, rng: np.random.Generator) -> None:
    """Tests shape lowering of the running example (`test_r17_the_running_example`): sizes are stored in a shape heap (a tensor of
    sizes), generated code computes with them, and the results are read back."""
    packed("flatten", flatten)
    lower = relax.transform.get_pipeline("minimum")
    mod = lower(from_source(RUNNING))
    text = mod.script()
    for word in ("vm.builtin.alloc_shape_heap", "vm.builtin.match_shape", "vm.builtin.make_shape"):
        assert word in text, text
    assert len(mod) > 2, "a loop function computes n * m"
    x = floats(rng, 3, 2)
    np.testing.assert_allclose(run(mod, "relax_function", x).numpy(), np.exp(x).ravel(), rtol=1e-5)


def test_r20_te_with_symbolic_sizes(rng: np.random.Generator) -> None:
    n = te.var(name="n")
    A = te.placeholder((n,), name="a")
    B = te.placeholder((n,), name="b")
    C = te.compute(A.shape, lambda i: A[i] + B[i], name="c")
    func = te.create_prim_func([A, B, C])
    k = tir.Var("k", "int64")
    x, y = (relax.Var(name, relax.TensorStructInfo((k,), "float32")) for name in "xy")
    bb = relax.BlockBuilder()
    gv = bb.add_func(func, "vector_add")
    with bb.function("main", [x, y]):
        bb.emit_func_output(bb.emit(relax.call_tir(gv, [x, y], relax.TensorStructInfo((k,), "float32"))))
    for size in (0, 1, 33):
        a, b = floats(rng, size), floats(rng, size)
        np.testing.assert_array_equal(run(bb.get(), "main", a, b).numpy(), a + b)


@pytest.mark.parametrize("name", ["C1", "A1"])
def test_c1_a1_flatten(name: str, rng: np.random.Generator) -> None:
    """Tests a function that flattens a tensor of symbolic shape, as the announcement and its mail write it."""
    mod = from_source(
        """
@R.function
def main(a: R.Tensor((m, 224, 3), "float32")) -> R.Tensor((m * 224 * 3,), "float32"):
    b: R.Tensor((m * 224 * 3,), "float32") = R.flatten(a)
    return b
"""
    )
    assert str(mod.ret_struct_info.shape[0]) == "m * 672"
    a = floats(rng, 2, 224, 3)
    np.testing.assert_array_equal(run(mod, "main", a).numpy(), a.ravel())


def test_a2_the_announcement_program(packed: Register, rng: np.random.Generator) -> None:
    """Tests the program of the announcement: a dataflow block, then `call_packed` and `return` outside of the block, as the text
    of the announcement requires."""
    seen = []
    packed("custom_inplace_update", lambda v: seen.append(v.shape))
    mod = from_source(
        """
@tvm.script.ir_module
class MyIRModule:
    @T.prim_func
    def tir_exp_func(x: T.handle, y: T.handle):
        n = T.int64()
        X = T.match_buffer(x, (n,), "float32")
        Y = T.match_buffer(y, (n,), "float32")
        for i in T.grid(n):
            Y[i] = T.exp(X[i])

    @R.function
    def relax_func(x: R.Tensor[(n, k), "float32"], w: R.Tensor[_, "float32"]):
        with R.dataflow():
            lv0 = R.match_shape(w, (k, m))
            lv1: R.Tensor[(n, m), "float32"] = R.dot(x, lv0)
            lv2: R.Tensor[(n * m,), "float32"] = R.flatten(lv1)
            lv3: R.Shape = (n * m,)
            gv0 = R.call_tir(tir_exp_func, [lv2], lv3, dtype="float32")
            R.outputs(gv0)
        R.call_packed("custom_inplace_update", gv0)
        return gv0
"""
    )
    x, w = floats(rng, 2, 3), floats(rng, 3, 5)
    np.testing.assert_allclose(run(mod, "relax_func", x, w).numpy(), np.exp((x @ w).ravel()), rtol=1e-5)
    assert seen == [(10,)]


def test_a3_loop_function_and_packed_function(packed: Register, rng: np.random.Generator) -> None:
    """Tests a loop function and a packed function in one program. Correction: the loop function has rank 2, like its argument."""
    seen = []
    packed("custom_inplace_update", lambda v: seen.append(v.shape))
    mod = from_source(
        """
@tvm.script.ir_module
class MyIRModule:
    @T.prim_func
    def tir_func(x: T.handle, y: T.handle):
        n = T.int64()
        k = T.int64()
        X = T.match_buffer(x, (n, k), "float32")
        Y = T.match_buffer(y, (n, k), "float32")
        for i, j in T.grid(n, k):
            Y[i, j] = T.exp(X[i, j])

    @R.func
    def relax_func(x: R.Tensor[(n, k), "float32"]):
        with R.dataflow():
            gv0 = R.call_tir(tir_func, [x], (n, k), dtype="float32")
            R.outputs(gv0)

        R.call_packed("custom_inplace_update", gv0)
        return gv0
"""
    )
    x = floats(rng, 2, 3)
    np.testing.assert_allclose(run(mod, "relax_func", x).numpy(), np.exp(x), rtol=1e-5)
    assert seen == [(2, 3)]


def test_a5_concatenate_knows_that_both_have_m(rng: np.random.Generator) -> None:
    mod = from_source(
        """
@R.function
def main(a: R.Tensor((m, 4, 3), "float32"), b: R.Tensor((m * 2, 4, 3), "float32")):
    c: R.Tensor((m * 3, 4, 3), "float32") = R.concat((a, b), axis=0)
    return c
"""
    )
    a, b = floats(rng, 2, 4, 3), floats(rng, 4, 4, 3)
    np.testing.assert_array_equal(run(mod, "main", a, b).numpy(), np.concatenate([a, b]))
    with pytest.raises(tvm.ShapeError):
        run(mod, "main", a, floats(rng, 5, 4, 3))


def test_e1_create_prim_func_is_the_script() -> None:
    """Tests that `create_prim_func` returns the same loop function as a script. Corrections in the script: `b` is a parameter,
    and the block names its axes."""
    tir_element_wise = from_source(
        """
@T.prim_func
def tir_element_wise(a: T.handle, b: T.handle) -> None:
    T.func_attr({"tir.noalias": True})
    A = T.match_buffer(a, (128, 128))
    B = T.match_buffer(b, (128, 128))
    for i0, j0 in T.grid(128, 128):
        with T.block("B"):
            i, j = T.axis.remap("SS", [i0, j0])
            T.reads(A[i, j])
            T.writes(B[i, j])
            B[i, j] = A[i, j] * T.float32(2)
"""
    )
    A = te.placeholder((128, 128), name="A")
    B = te.compute((128, 128), lambda x, y: A[x, y] * 2, name="B")
    func = te.create_prim_func([A, B])
    tvm.ir.assert_structural_equal(func, tir_element_wise)


def test_e2_the_staging_interface(rng: np.random.Generator) -> None:
    """Tests `emit_te` with Python functions on tensor expressions that use only their own arguments, of any size. Correction:
    everything is emitted inside a function."""
    bb = relax.BlockBuilder()
    n, m = tir.Var("n", "int64"), tir.Var("m", "int64")
    x = relax.Var("x", relax.TensorStructInfo([n, m], "float32"))

    def te_func(X: te.Tensor, Y: te.Tensor) -> te.Tensor:
        return te.compute(X.shape, lambda i, j: X[i, j] + Y[i, j], name="te_func")

    with bb.function("main", [x]):
        a = bb.emit(x + 1)
        A = relax.te_tensor(a)
        b = bb.emit(te.compute((n, m), lambda i, j: A[i, j] * 2, name="B"))
        c = bb.emit_te(te_func, x, a)
        bb.emit_func_output(relax.Tuple([b, c]))
    data = floats(rng, 3, 5)
    b_value, c_value = run(bb.get(), "main", data)
    np.testing.assert_allclose(b_value.numpy(), (data + 1) * 2, rtol=1e-6)
    np.testing.assert_allclose(c_value.numpy(), data + data + 1, rtol=1e-6)


def even_columns() -> Any:
    """Builds a program that has a tensor with a dim `2 * floordiv(m, 2)`. The size `m` comes from
    another parameter.
    """
    bb = relax.BlockBuilder()
    n, m = tir.Var("n", "int64"), tir.Var("m", "int64")
    x = relax.Var("x", relax.TensorStructInfo([n, 2 * te.floordiv(m, 2)], "float32"))
    s = relax.Var("s", relax.ShapeStructInfo([m]))
    with bb.function("main", [x, s]):
        A = relax.te_tensor(x)
        B = bb.emit(te.compute([n, 2 * te.floordiv(m, 2)], lambda i, j: A[i, j] + 1, name="ewise_fun"))
        bb.emit_func_output(B)
    return bb.get()


def test_e3_e5_sizes_that_no_buffer_defines(rng: np.random.Generator) -> None:
    """Tests that a loop function gets the size `m`, which no buffer defines, as an extra parameter, and that `call_tir` passes
    it."""
    mod = even_columns()
    assert mod["ewise_fun"].params[-1].name == "m"
    assert "tir_vars=R.shape([m])" in mod.script()
    for columns in (0, 1, 4, 7):
        data = floats(rng, 3, columns // 2 * 2)
        np.testing.assert_allclose(run(mod, "main", data, (columns,)).numpy(), data + 1)
    with pytest.raises(tvm.ShapeError):
        run(mod, "main", floats(rng, 3, 5), (7,))


def test_e6_call_tir_dyn_unpacks_a_shape(packed: Register) -> None:
    """Tests that `call_tir_dyn(shape, f, inputs, symbolic_vars)` allocates the output and passes the sizes as trailing
    integers."""
    seen = []

    def low_level(x: Any, out: Any, m: int) -> None:
        seen.append(m)
        out[:] = x.numpy() * m

    packed("low_level", low_level)
    mod = from_source(
        """
@R.function
def main(x: R.Tensor((n,), "float32"), s: R.Shape((m,))):
    gv = R.call_dps_packed("low_level", (x, R.prim_value(m)), out_sinfo=R.Tensor((n,), "float32"))
    return gv
"""
    )
    packed("low_level", lambda x, m, out: low_level(x, out, m))
    data = np.ones(3, "float32")
    np.testing.assert_array_equal(run(mod, "main", data, (5,)).numpy(), data * 5)
    assert seen == [5]
