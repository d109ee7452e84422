"""Tests the export of methods: types of arguments, modes of parameters, results, subroutines, errors, and compiled modules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pliant
from pliant import relax, tir
from pliant.error import UnsupportedError
from pliant.relax.frontend import nn
from pliant.relax.frontend.nn import spec
from pliant.script import ir as I
from pliant.script import relax as R


class Pair(nn.Module):
    def __init__(self) -> None:
        self.lin = nn.Linear(4, 2)

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        return self.lin(x)

    def scaled(self, x: nn.Tensor, total: Any, factor: float = 2.0) -> Any:
        return x * factor, nn.zeros([total, x.shape[0]])


def _loaded(module: nn.Module) -> Any:
    for i, param in enumerate(module.parameters()):
        param.data = np.random.default_rng(i).standard_normal(param.shape).astype(param.dtype)
    return module


def test_exported_module() -> None:
    mod, params = Pair().export_tvm({"forward": {"x": spec.Tensor(["n", 4], "float32")}})

    @I.ir_module
    class Expected:
        @R.function
        def forward(
            x: R.Tensor(("n", 4), "float32"), weight: R.Tensor((2, 4), "float32"), bias: R.Tensor((2,), "float32")
        ):
            R.func_attr({"num_input": 1})
            with R.dataflow():
                transposed = R.permute_dims(weight)
                product = R.matmul(x, transposed)
                result = R.add(product, bias)
                gv = result
                R.output(gv)
            return gv

    pliant.ir.assert_structural_equal(mod, Expected)
    assert [name for name, _ in params] == ["lin.weight", "lin.bias"]


def test_symbolic_sizes_are_shared_within_a_method_only() -> None:
    class Two(nn.Module):
        def first(self, x: nn.Tensor, y: nn.Tensor) -> Any:
            return x + y

        def second(self, x: nn.Tensor) -> Any:
            return x

    tensor = spec.Tensor(["n", "n"], "float32")
    mod, _ = Two().export_tvm({"first": {"x": tensor, "y": tensor}, "second": {"x": tensor}})
    x, y = mod["first"].params
    assert all(a.same_as(b) for a, b in zip(x.struct_info.shape.values, y.struct_info.shape.values, strict=True))
    other = mod["second"].params[0].struct_info.shape.values[0]
    assert not other.same_as(x.struct_info.shape.values[0])


def test_size_variables_of_parameters() -> None:
    """A module may use the size variable of its parameters; the spec refers to it by name or as a variable."""
    hidden = tir.Var("hidden", "int64")

    class Sized(nn.Module):
        def __init__(self) -> None:
            self.lin = nn.Linear(hidden, 4)

        def forward(self, x: nn.Tensor) -> Any:
            return self.lin(x), nn.zeros([hidden])

        def other(self, x: nn.Tensor) -> Any:
            return nn.reshape(x, [-1, hidden])

    for dim in ("hidden", hidden):
        argument = {"x": spec.Tensor(["n", dim], "float32")}
        mod, _ = Sized().export_tvm({"forward": argument, "other": argument})
        assert str(mod["forward"].ret_struct_info).endswith('R.Tensor((hidden,), dtype="float32"))')
        vm = relax.VirtualMachine(relax.build(mod), pliant.cpu())
        x, weight, bias = np.ones((2, 3), "float32"), np.ones((4, 3), "float32"), np.zeros(4, "float32")
        product, zeros = vm["forward"](x, weight, bias)
        np.testing.assert_array_equal(product.numpy(), np.full((2, 4), 3))
        assert zeros.shape == (3,)
        assert vm["other"](x, weight, bias).shape == (2, 3)
        with pytest.raises(pliant.ShapeError):
            vm["forward"](x, np.ones((4, 5), "float32"), bias)


def test_kinds_of_arguments() -> None:
    class Kinds(nn.Module):
        def forward(self, pair: Any, total: Any, state: nn.Object) -> Any:
            (x, [y]), size = pair, total
            return [x + y, nn.full([size], 1.5)], state, size

    raw = {"pair": (spec.Tensor(["n"], "float32"), [spec.Tensor(["n"], "float32")]), "total": int, "state": spec.Object(nn.Object)}
    mod, _ = Kinds().export_tvm({"forward": raw})
    func = mod["forward"]
    assert func.attrs["num_input"] == 3
    assert str(func.params[1].struct_info) == "R.Shape([total])"
    vm = relax.VirtualMachine(relax.build(mod), pliant.cpu())
    one, marker = np.ones(2, "float32"), object()
    (added, filled), state, size = vm["forward"]((one, (one,)), [3], marker)
    np.testing.assert_array_equal(added.numpy(), one * 2)
    np.testing.assert_array_equal(filled.numpy(), np.full(3, 1.5, "float32"))
    assert state is marker
    assert list(size) == [3]
    assert repr(spec.ModuleSpec.from_raw({"forward": raw}, Kinds())) == (
        "ModuleSpec:\n  forward(pair: (Tensor([n], 'float32'), [Tensor([n], 'float32')]), total: int, state: object)"
    )


def test_default_arguments_may_be_left_out() -> None:
    compiled = _loaded(Pair()).jit({"scaled": {"x": spec.Tensor(["n"], "float32"), "total": "int"}}, out_format="numpy")
    x, zeros = compiled["scaled"](np.ones(3, "float32"), 2)
    np.testing.assert_array_equal(x, np.full(3, 2, "float32"))
    assert zeros.shape == (2, 3)


@pytest.mark.parametrize("param_mode", ["plain", "packed", "none"])
@pytest.mark.parametrize("effect_mode", ["plain", "packed", "none"])
def test_modes_of_parameters_and_effects(param_mode: str, effect_mode: str) -> None:
    class Stateful(nn.Module):
        def __init__(self) -> None:
            self.lin = nn.Linear(3, 3)
            self.cache = nn.KVCache(2, [3])

        def forward(self, x: nn.Tensor) -> Any:
            if effect_mode != "none":
                self.cache.append(x)
                x = self.cache.view(x.shape[0])
            return self.lin(x) if param_mode != "none" else x

    raw = {"x": spec.Tensor(["n", 3], "float32"), "$": {"param_mode": param_mode, "effect_mode": effect_mode}}
    module = _loaded(Stateful())
    mod, _ = module.export_tvm({"forward": raw})
    params = {"plain": 2, "packed": 1, "none": 0}[param_mode]
    effects = {"plain": 1, "packed": 1, "none": 0}[effect_mode]
    assert len(mod["forward"].params) == 1 + params + effects
    assert mod["forward"].attrs["num_input"] == 1 + effects
    x = np.ones((4, 3), "float32")
    got = module.jit({"forward": raw}, out_format="numpy")["forward"](x)
    weight, bias = (param.data.numpy() for param in module.parameters())
    np.testing.assert_allclose(got, x @ weight.T + bias if params else x, rtol=1e-5)


def test_shared_parameters_are_exported_once() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            self.embed = nn.Embedding(5, 3)
            self.head = nn.Linear(3, 5, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, x: nn.Tensor) -> Any:
            return self.head(self.embed(x))

    mod, params = Tied().export_tvm({"forward": {"x": spec.Tensor(["n"], "int32")}})
    assert [name for name, _ in params] == ["embed.weight"]
    assert len(mod["forward"].params) == 2


def test_export_can_be_repeated() -> None:
    module = Pair()
    raw = {"forward": {"x": spec.Tensor(["n", 4], "float32"), "$": {"param_mode": "packed"}}}
    first, _ = module.export_tvm(raw)
    second, _ = module.export_tvm(raw)
    pliant.ir.assert_structural_equal(first, second)
    assert "$" in raw["forward"]
    assert module.lin.weight.shape == [2, 4]


@pytest.mark.parametrize(
    ("raw", "kind", "message"),
    [
        ({"forwrd": {"x": spec.Tensor([1], "float32")}}, AttributeError, "has no method 'forwrd' .did you mean 'forward'"),
        ({"forward": {"y": spec.Tensor([1], "float32")}}, TypeError, "'forward' has no argument 'y' .there are: x"),
        ({"forward": {}}, TypeError, "lacks the arguments x"),
        ({"forward": {"x": 3}}, TypeError, "argument 'x' must be spec.Tensor"),
        ({"forward": {"x": [spec.Tensor([1], "float32"), "flaot"]}}, TypeError, "argument 'x_1' must be"),
        ({"forward": {"x": spec.Tensor([4], "float32"), "$": {"param_mode": "all"}}}, ValueError, "param_mode must be"),
        ({"forward": {"x": spec.Tensor([4], "float32"), "$": {"mode": "plain"}}}, TypeError, "unknown settings .*mode"),
        ({"forward": [1]}, TypeError, "must be a dict from argument names"),
        ([1], TypeError, "must be a dict from method names"),
    ],
)
def test_errors_of_specs(raw: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        Pair().export_tvm(raw)


def test_errors_of_spec_classes() -> None:
    with pytest.raises(TypeError, match="must be an int or a string"):
        spec.Tensor([1.5], "float32")  # type: ignore[list-item]
    with pytest.raises(TypeError, match="must be a list of dims"):
        spec.Tensor("n", "float32")
    with pytest.raises(TypeError, match="must be a tuple or list"):
        spec.Tuple("x", 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="1 names of arguments, but 0 types"):
        spec.MethodSpec(print, ["x"], [])
    with pytest.raises(TypeError, match="'param': a dim must be"):
        nn.Parameter((None,))  # type: ignore[arg-type]
    with pytest.raises(pliant.ShapeError):
        nn.Parameter((-1,))


def test_plain_lists_of_modules_are_reported() -> None:
    class Plain(nn.Module):
        def __init__(self) -> None:
            self.layers = [nn.ReLU()]

        def forward(self, x: nn.Tensor) -> Any:
            return self.layers[0](x)

    class Outer(nn.Module):
        def __init__(self) -> None:
            self.inner = Plain()

        def forward(self, x: nn.Tensor) -> Any:
            return self.inner(x)

    with pytest.warns(UserWarning, match=r"Python list 'Outer\.inner\.layers' are not exported: use nn\.ModuleList"):
        Outer().export_tvm({"forward": {"x": spec.Tensor([1], "float32")}})


def test_errors_of_exports() -> None:
    class Bad(nn.Module):
        def forward(self, x: nn.Tensor) -> Any:
            return {"x": x}

    with pytest.raises(TypeError, match="'forward' must return tensors"):
        Bad().export_tvm({"forward": {"x": spec.Tensor([1], "float32")}})
    # An export that failed does not disturb the next one.
    Pair().export_tvm({"forward": {"x": spec.Tensor([1, 4], "float32")}})
    with pytest.raises(NotImplementedError, match="does not define the method forward"):
        nn.Module()(1)
    with pytest.raises(RuntimeError, match="while a module is exported"):
        nn.add_extern(nn.ExternModule({}))


def test_errors_of_compiled_modules() -> None:
    raw = {"forward": {"x": spec.Tensor(["n", 4], "float32")}}
    with pytest.raises(ValueError, match="parameters without elements: lin.weight, lin.bias"):
        Pair().jit(raw, out_format="numpy")
    with pytest.raises(ValueError, match="unknown out_format 'jax'"):
        Pair().jit(raw, out_format="jax")
    compiled = _loaded(Pair()).jit(raw, out_format="numpy")
    with pytest.raises(KeyError, match="no method 'backward'"):
        compiled["backward"]
    with pytest.raises(TypeError, match="takes 1 arguments, but 2 are given"):
        compiled["forward"](1, 2)
    with pytest.raises(TypeError, match="'x' must be a NumPy array"):
        compiled["forward"]([1.0])
    with pytest.raises(pliant.ShapeError, match="'x'"):
        compiled["forward"](np.ones((2, 3), "float32"))


@pytest.mark.parametrize("pipeline", ["default_build", "zero", None, "default"])
def test_pipelines(pipeline: str | None) -> None:
    module = _loaded(Pair())
    x = np.ones((3, 4), "float32")
    compiled = module.jit({"forward": {"x": spec.Tensor(["n", 4], "float32")}}, pipeline=pipeline, out_format="numpy")
    weight, bias = (param.data.numpy() for param in module.parameters())
    np.testing.assert_allclose(compiled["forward"](x), x @ weight.T + bias, rtol=1e-5)


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    module = Pair()
    reference = torch.nn.Linear(4, 2)
    module.lin.load_state_dict(dict(reference.state_dict()))
    compiled = module.jit({"forward": {"x": spec.Tensor(["n", 4], "float32")}})
    for n in (0, 1, 5):
        x = torch.randn(n, 4)
        torch.testing.assert_close(compiled["forward"](x), reference(x))
    with pytest.raises(TypeError, match=r"must be a torch\.Tensor"):
        compiled["forward"](np.ones((1, 4), "float32"))
    method = spec.MethodSpec.from_torch([torch.ones(2, 4)], module.forward)
    assert repr(method) == "MethodSpec(x: Tensor([2, 4], 'float32'))"


# --- subroutines ---------------------------------------------------------------------------------


class Activation(nn.Module):
    define_subroutine = True

    def __init__(self) -> None:
        self.scale = nn.Parameter((3,))

    def forward(self, x: nn.Tensor, power: int = 1) -> Any:
        for _ in range(power):
            x = nn.tanh(x * self.scale)
        return x


class TwoActivations(nn.Module):
    def __init__(self) -> None:
        self.first, self.second = Activation(), Activation()

    def forward(self, x: nn.Tensor) -> Any:
        return self.second(self.first(x)), self.first(nn.concat([x, x], 0), power=2)


def test_subroutines_are_shared() -> None:
    module = _loaded(TwoActivations())
    raw = {"forward": {"x": spec.Tensor(["n", 3], "float32")}}
    mod, _ = module.export_tvm(raw)
    names = sorted(gvar.name_hint for gvar in mod.get_global_vars())
    assert names == ["activation", "activation1", "forward"]
    assert mod["activation"].private
    assert str(mod["forward"]).count("cls.activation(") == 2
    for n in (0, 1, 4):
        x = np.random.default_rng(n).standard_normal((n, 3)).astype("float32")
        first, second = (param.data.numpy() for param in module.parameters())
        got = module.jit(raw, out_format="numpy")["forward"](x)
        np.testing.assert_allclose(got[0], np.tanh(np.tanh(x * first) * second), rtol=1e-5, atol=1e-6)
        twice = np.concatenate([x, x])
        np.testing.assert_allclose(got[1], np.tanh(np.tanh(twice * first) * first), rtol=1e-5, atol=1e-6)


def test_nested_subroutines_with_tuples() -> None:
    class Inner(nn.Module):
        define_subroutine = True

        def forward(self, pair: Any) -> Any:
            a, b = pair
            return a + b, a * b

    class Outer(nn.Module):
        define_subroutine = True

        def __init__(self) -> None:
            self.inner = Inner()
            self.act = Activation()

        def forward(self, x: nn.Tensor) -> Any:
            total, product = self.inner((x, self.act(x)))
            return total - product

    module = _loaded(Outer())
    raw = {"forward": {"x": spec.Tensor(["n", 3], "float32")}}
    mod, _ = module.export_tvm(raw)
    assert {"outer", "inner", "activation"} <= {gvar.name_hint for gvar in mod.get_global_vars()}
    x = np.random.default_rng(0).standard_normal((2, 3)).astype("float32")
    (scale,) = (param.data.numpy() for param in module.parameters())
    y = np.tanh(x * scale)
    np.testing.assert_allclose(module.jit(raw, out_format="numpy")["forward"](x), x + y - x * y, rtol=1e-5, atol=1e-6)


def test_subroutines_of_different_configurations() -> None:
    class Convolution(nn.Conv1D):
        define_subroutine = True

    class Two(nn.Module):
        def __init__(self) -> None:
            self.a, self.b = Convolution(1, 1, 2), Convolution(1, 1, 2, dilation=2)

        def forward(self, x: nn.Tensor) -> Any:
            return self.a(x), self.b(x)

    got = _loaded(Two()).jit({"forward": {"x": spec.Tensor([1, 1, 5], "float32")}}, out_format="numpy")["forward"](
        np.ones((1, 1, 5), "float32")
    )
    assert [part.shape for part in got] == [(1, 1, 4), (1, 1, 3)]


def test_effects_in_subroutines() -> None:
    class Cached(nn.Module):
        define_subroutine = True

        def __init__(self) -> None:
            self.cache = nn.KVCache(4, [3])

        def forward(self, x: nn.Tensor) -> Any:
            self.cache.append(x)
            return x

    with pytest.raises(UnsupportedError, match="Cached cannot be a subroutine, because it contains the effect 'cache'"):
        Cached().export_tvm({"forward": {"x": spec.Tensor(["n", 3], "float32")}})


def test_subroutines_outside_of_an_export() -> None:
    with pytest.raises(RuntimeError, match="while a method is exported"):
        Activation()(nn.Tensor.placeholder([1, 3], "float32"))
