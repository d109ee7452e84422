"""Tests messages for misspelt pass names, and Python code that the compiler and the VM call and that raises an exception,
calls them again, or waits for other threads."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import numpy as np
import pytest

import pliant
from pliant import relax, transform
from pliant.relax.dpl import PatternContext, is_op, rewrite_bindings, rewrite_call, wildcard
from pliant.script import ir as I
from pliant.script import relax as R
from pliant.transform import PassContext


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        with R.dataflow():
            lv = R.add(x, x)
            gv = R.exp(lv)
            R.output(gv)
        return gv


X = np.full((2, 4), 0.5, "float32")


def check(model: Any) -> None:
    np.testing.assert_allclose(model(X).numpy(), np.exp(X + X), rtol=1e-6)


# ---- names ----


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"disabled_pass": ["FuseOp"]}, r"disabled_pass: no pass is called 'FuseOp' \(did you mean FuseOps\?\)"),
        ({"required_pass": ["LegaliseOps"]}, r"required_pass: no pass is called 'LegaliseOps' \(did you mean LegalizeOps\?\)"),
        ({"disabled_pass": ["qwxyz"]}, r"disabled_pass: no pass is called 'qwxyz'$"),
    ],
)
def test_misspelt_pass_names_are_reported(arguments: dict[str, Any], text: str) -> None:
    with pytest.warns(UserWarning, match=text) as found:
        PassContext(**arguments)
    assert len(found) == 1 and found[0].filename == __file__


def test_misspelt_pass_names_are_reported_by_compile() -> None:
    with pytest.warns(UserWarning, match="disabled_passes: no pass is called 'FuseTir'.*FuseTIR") as found:
        check(pliant.compile(Module, disabled_passes=["FuseTir"]))
    assert len(found) == 1 and found[0].filename == __file__


def test_valid_pass_names_are_accepted() -> None:
    @transform.module_pass(opt_level=0, name="A pass of my own")
    def mine(mod: Any, ctx: Any) -> Any:
        raise AssertionError("it is disabled")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with PassContext(opt_level=0, required_pass=["FuseTIR"], disabled_pass=["A pass of my own", "zero", "PlanMemory"]):
            assert transform.Sequential([mine])(Module) is not None
            check(pliant.compile(Module, required_passes=["FuseOps"]))
    # A pass can be disabled by any of its names.
    with PassContext(disabled_pass=["PlanMemory"]):
        names = ("LegalizeOps", "ToNonDataflow", "RemovePurityChecking", "CallTIRRewrite", "StaticPlanBlockMemory")
        mod = transform.Sequential([transform.get_pass(name) for name in names])(Module)
    assert "alloc_storage" not in mod.script()


# ---- Python code inside ----


def test_a_pass_that_compiles_and_runs_another_model() -> None:
    @transform.module_pass(opt_level=0)
    def nested(mod: Any, ctx: Any) -> Any:
        with PassContext(opt_level=0):
            check(pliant.compile(Module))
        check(pliant.compile(mod, pipeline=[inner]))
        return mod

    @transform.module_pass(opt_level=0)
    def inner(mod: Any, ctx: Any) -> Any:
        return relax.transform.LegalizeOps()(mod)

    check(pliant.compile(Module, pipeline=[nested]))


def test_infinitely_recursive_pass() -> None:
    @transform.module_pass(opt_level=0, name="Again")
    def again(mod: Any, ctx: Any) -> Any:
        return again(mod)

    with pytest.raises(RecursionError):
        again(Module)
    check(pliant.compile(Module))


def test_packed_function_that_reenters_its_vm() -> None:
    depth: list[int] = []
    machines: list[Any] = []

    @pliant.register_func("test.mistakes.reenter", override=True)
    def reenter(x: Any) -> Any:
        depth.append(1)
        if len(depth) < 5:
            return machines[0]["main"](x)
        return x

    @R.function(pure=False)
    def main(x: R.Tensor(("n",), "float32")) -> R.Object:
        y = R.add(x, x)
        return R.call_packed("test.mistakes.reenter", y, sinfo_args=(R.Object,))

    machines.append(relax.VirtualMachine(pliant.compile(pliant.IRModule({"main": main})), pliant.cpu()))
    x = np.ones(3, "float32")
    np.testing.assert_array_equal(machines[0]["main"](x).numpy(), x * 2**5)

    @pliant.register_func("test.mistakes.forever", override=True)
    def forever(x: Any) -> Any:
        return machines[1]["main"](x)

    @R.function(pure=False)
    def endless(x: R.Tensor(("n",), "float32")) -> R.Object:
        return R.call_packed("test.mistakes.forever", x, sinfo_args=(R.Object,))

    machines.append(relax.VirtualMachine(pliant.compile(pliant.IRModule({"main": endless})), pliant.cpu()))
    with pytest.raises((pliant.VMError, RecursionError), match="nested|recursion|deep|stack"):
        machines[1]["main"](x)
    depth.clear()
    np.testing.assert_array_equal(machines[0]["main"](x).numpy(), x * 2**5)


def test_callbacks_of_patterns_that_raise() -> None:
    pattern = is_op("relax.exp")(wildcard())

    def raises(*_: Any) -> Any:
        raise KeyError("mine")

    def exits(*_: Any) -> Any:
        raise SystemExit(3)

    before = Module.script()
    with pytest.raises(KeyError, match="mine"):
        rewrite_call(pattern, raises, Module["main"])
    with pytest.raises(SystemExit):
        rewrite_call(pattern, exits, Module["main"])
    with PatternContext() as ctx:
        is_op("relax.exp")(wildcard())
        with pytest.raises(KeyError, match="mine"):
            rewrite_bindings(ctx, raises, Module["main"])
    with pytest.raises(TypeError):
        rewrite_call(pattern, lambda e, m: 3.5j, Module["main"])
    assert Module.script() == before
    check(pliant.compile(Module))


def test_pattern_callback_that_rewrites() -> None:
    exp, add = is_op("relax.exp")(wildcard()), is_op("relax.add")(wildcard(), wildcard())

    def inner(expr: Any, found: Any) -> Any:
        return relax.op.multiply(expr.args[0], relax.const(2, "float32"))

    def outer(expr: Any, found: Any) -> Any:
        # The same function again, while its rewrite is in progress.
        again = rewrite_call(add, inner, Module["main"])
        assert "R.multiply" in again.script()
        check(pliant.compile(pliant.IRModule({"main": again})))
        return expr

    after = rewrite_call(exp, outer, Module["main"])
    pliant.ir.assert_structural_equal(after, Module["main"])


def test_python_passes_in_two_threads_wait_for_each_other() -> None:
    barrier = threading.Barrier(2)
    failures: list[BaseException] = []

    def work(i: int) -> None:
        try:

            @transform.module_pass(opt_level=0, name=f"Meet{i}")
            def meet(mod: Any, ctx: Any) -> Any:
                # Each thread is inside its pass at the same time, and compiles there.
                barrier.wait(60)
                check(pliant.compile(mod))
                barrier.wait(60)
                return relax.transform.CanonicalizeBindings()(mod)

            check(pliant.compile(Module, pipeline=[meet]))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    assert not failures and not any(t.is_alive() for t in threads)


def test_packed_functions_that_wait_for_other_threads() -> None:
    barrier = threading.Barrier(2)

    @pliant.register_func("test.mistakes.wait", override=True)
    def wait(x: Any) -> Any:
        barrier.wait(60)
        return x

    @R.function(pure=False)
    def main(x: R.Tensor(("n",), "float32")) -> R.Object:
        y = R.call_packed("test.mistakes.wait", x, sinfo_args=(R.Tensor(("n",), "float32"),))
        return y

    vm = relax.VirtualMachine(pliant.compile(pliant.IRModule({"main": main})), pliant.cpu())
    results: list[Any] = []
    threads = [threading.Thread(target=lambda i=i: results.append(vm["main"](np.full(2, i, "float32")).numpy()[0])) for i in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    assert sorted(results) == [0.0, 1.0]


def test_instruments_and_visitors_that_raise_leave_everything_usable() -> None:
    class Fails:
        def __init__(self, when: str) -> None:
            setattr(self, when, self.fail)

        def fail(self, *_: Any) -> Any:
            raise LookupError("an instrument's own")

    for when in ("should_run", "run_before_pass", "run_after_pass"):
        with PassContext(instruments=[Fails(when)]), pytest.raises(LookupError, match="an instrument's own"):
            relax.transform.LegalizeOps()(Module)

    @relax.expr_functor.mutator
    class Breaks(relax.PyExprMutator):
        def visit_call_(self, call: Any) -> Any:
            self.builder_.emit(relax.op.exp(call.args[0]))
            raise LookupError("in the middle")

    with pytest.raises(LookupError, match="in the middle"):
        Breaks(Module).visit_expr(Module["main"])
    check(pliant.compile(Module))


def test_missing_parentheses_are_reported() -> None:
    for one in (relax.transform.LegalizeOps, relax.transform.DeadCodeElimination):
        with pytest.raises(TypeError, match=rf"Sequential: item 0 is not a pass.*write {one.__name__}\(\.\.\.\)"):
            transform.Sequential([one])
