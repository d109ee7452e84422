"""Exported programs: symbols, ranges, structure of arguments and results, mutation, checks and values that define sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from comparing import Function, check_function, check_module, same_results
from torch import nn
from torch.export import Dim, export

import pliant
from pliant.frontend import detach_params
from pliant.frontend.torch import from_exported_program


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(nn.functional.gelu(self.first(x)))


def exported(module: nn.Module, args: tuple[Any, ...], shapes: Any = None) -> Any:
    return export(module.eval(), args, dynamic_shapes=shapes)


def test_symbols_have_the_names_and_bounds_of_dims() -> None:
    batch = Dim("batch", min=3, max=64)
    program = exported(Mlp(), (torch.randn(4, 4),), ({0: batch},))
    module = from_exported_program(program)
    assert str(module["main"].params[0].struct_info) == 'R.Tensor((batch, 4), dtype="float32")'
    model = pliant.compile(program)
    assert model(torch.ones(64, 4)).shape == (64, 2)
    with pytest.raises(pliant.PliantError, match="batch is 65"):
        model(torch.ones(65, 4))
    with pytest.raises(pliant.PliantError, match="batch must be at least 3"):
        model(torch.ones(2, 4))


def test_derived_dims() -> None:
    half = Dim("half", max=100)
    model = check_function(lambda x, y: x.reshape(-1, 2) + y[:, None], (torch.ones(6), torch.ones(3)), ({0: 2 * half}, {0: half}),
                           [(torch.ones(2 * n), torch.ones(n)) for n in (3, 1, 0)])  # fmt: skip
    with pytest.raises(pliant.PliantError):
        model(torch.ones(5), torch.ones(3))


def test_parameters_as_inputs() -> None:
    module = Mlp()
    program = exported(module, (torch.randn(4, 4),), ({0: Dim("n")},))
    imported, params = detach_params(from_exported_program(program, keep_params_as_input=True))
    assert [p.shape for p in params["main"]] == [(8, 4), (8,), (2, 8), (2,)]
    x = torch.randn(3, 4)
    (result,) = pliant.compile(imported)(x, *params["main"])
    same_results(torch.from_dlpack(result), module(x).detach())


def test_result_tuple() -> None:
    program = exported(Mlp(), (torch.randn(4, 4),))
    assert "R.Tuple" in str(from_exported_program(program)["main"].ret_struct_info)
    assert "R.Tuple" not in str(from_exported_program(program, unwrap_unit_return_tuple=True)["main"].ret_struct_info)
    assert "= (" not in from_exported_program(program, no_bind_return_tuple=True)["main"].script()


def test_structure_of_arguments_and_results() -> None:
    def function(data: dict[str, Any], pair: list[torch.Tensor]) -> Any:
        return {"sum": data["x"] + pair[0], "rest": [pair[1], (None, data["x"] * 2)]}

    x, y, z = (torch.randn(3) for _ in range(3))
    module = Function(function)
    model = pliant.compile(module, ({"x": x}, [y, z]))
    same_results(model({"x": x}, [y, z]), module({"x": x}, [y, z]))
    with pytest.raises(TypeError, match="structure"):
        model({"y": x}, [y, z])


def test_numpy_arguments_give_arrays() -> None:
    model = pliant.compile(Mlp().eval(), (torch.ones(2, 4),))
    assert not isinstance(model(np.ones((2, 4), np.float32)), torch.Tensor)
    assert isinstance(model(torch.ones(2, 4, requires_grad=True)), torch.Tensor)


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count.add_(1)
        x.mul_(2)
        return x + self.count


def test_mutation() -> None:
    model = pliant.compile(Counter(), (torch.ones(2),), dynamic_shapes=({0: Dim("n")},))
    x = torch.ones(3)
    same_results(model(x), torch.tensor([3.0, 3.0, 3.0]))
    same_results(model(x), torch.tensor([6.0, 6.0, 6.0]))
    same_results(x, torch.full((3,), 4.0))
    same_results(model.buffers["count"], torch.tensor(2.0))
    program = exported(Counter(), (torch.ones(2),))
    assert len(from_exported_program(program)["main"].ret_struct_info.fields) == 3


def test_sizes_that_values_define() -> None:
    def function(x: torch.Tensor) -> Any:
        found = torch.nonzero(x > 0)
        return found.shape[0], found * 2, x[x > 1].sum(), x[x > 1] + 1

    check_function(function, (torch.randn(5, 2),), ({0: Dim("n")},), [(torch.randn(n, 2),) for n in (4, 0, 1)])


def test_item() -> None:
    def function(x: torch.Tensor, n: torch.Tensor) -> Any:
        size = n.item()
        torch._check(size >= 0)
        torch._check(size <= 10)
        return torch.zeros(size, 2) + x[0]

    module = Function(function)
    model = pliant.compile(module, (torch.ones(2), torch.tensor(3)))
    assert model(torch.ones(2), torch.tensor(7)).shape == (7, 2)
    with pytest.raises(pliant.PliantError, match="10"):
        model(torch.ones(2), torch.tensor(11))


def test_assertions_about_values() -> None:
    model = pliant.compile(Function(lambda x: (torch._assert_async(x.sum() > 0, "the sum {x}"), x + 1)[1]), (torch.ones(2),))
    same_results(model(torch.ones(2)), torch.full((2,), 2.0))
    with pytest.raises(pliant.error.AssertionFailed, match="the sum {x}"):
        model(-torch.ones(2))


def test_branch_on_a_size_becomes_a_check() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] % 3 == 2:
            return x + 1
        return x - 1

    model = pliant.compile(Function(function), (torch.ones(4),), dynamic_shapes=(({0: Dim.AUTO},),))
    assert model(torch.ones(6)).shape == (6,)
    with pytest.raises(pliant.PliantError, match="test_export.py"):
        model(torch.ones(5))


def test_recurrent_layers_keep_their_steps_symbolic() -> None:
    class Layers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(4, 8, 2, bidirectional=True, batch_first=True)
            self.gru, self.rnn = nn.GRU(16, 5), nn.RNN(5, 3, nonlinearity="relu")

        def forward(self, x: torch.Tensor) -> Any:
            y, state = self.lstm(x)
            z, last = self.gru(y)
            return self.rnn(z), state, last

    check_module(Layers(), (torch.randn(2, 3, 4),), ({0: Dim("batch"), 1: Dim("steps")},), [(torch.randn(b, s, 4),) for b, s in ((1, 1), (3, 7), (2, 2))])


def test_example_inputs_of_size_1() -> None:
    model = pliant.compile(Mlp().eval(), (torch.ones(1, 4),), dynamic_shapes=({0: Dim("n")},))
    assert model(torch.ones(5, 4)).shape == (5, 2) and model(torch.ones(0, 4)).shape == (0, 2)


class Scaled(nn.Module):
    def forward(self, x: torch.Tensor, factor: int, *, bias: torch.Tensor, **others: torch.Tensor) -> torch.Tensor:
        return x * factor + bias + others["offset"]


def test_dynamic_shapes_of_all_kinds_of_arguments() -> None:
    row, n = torch.ones(1), {0: Dim("n")}
    named = {"bias": row, "offset": torch.ones(())}
    shapes = {"x": n, "others": {"offset": {}}, "factor": Dim.DYNAMIC, "bias": n}
    model = pliant.compile(Scaled(), (row, 3), kwargs=named, dynamic_shapes=shapes)
    for size, factor in ((4, 5), (1, 1), (0, -2)):
        x, bias = torch.randn(size), torch.randn(size)
        same_results(model(x, factor, bias=bias, offset=torch.ones(())), x * factor + bias + 1)


def test_shapes_of_additional_inputs() -> None:
    inputs, collection, x = torch.export.AdditionalInputs(), torch.export.ShapesCollection(), torch.ones(3, 4)
    inputs.add((torch.ones(5, 4),))
    collection[x] = (Dim.AUTO, Dim.STATIC)
    for shapes in (inputs, collection):
        assert pliant.compile(Mlp().eval(), x, dynamic_shapes=shapes)(torch.ones(7, 4)).shape == (7, 2)


def test_complex_inputs_and_results() -> None:
    def function(x: torch.Tensor, c: torch.Tensor) -> Any:
        return torch.fft.rfft(x) * c, torch.view_as_real(c), (c * 2j).abs()

    inputs = [(torch.randn(n, 8), torch.randn(n, 5, dtype=torch.complex64)) for n in (3, 1)]
    check_function(function, inputs[0], ({0: Dim("n")}, {0: Dim("n")}), inputs)


def test_random_numbers_are_those_of_torch() -> None:
    module = Function(lambda x: (torch.rand_like(x), torch.randn(3), nn.functional.dropout(x, 0.5, training=True)))
    model = pliant.compile(module, (torch.ones(20),))
    torch.manual_seed(3)
    expected = module(torch.ones(20))
    torch.manual_seed(3)
    same_results(model(torch.ones(20)), expected)


def test_relax_frontend_has_the_importer() -> None:
    from pliant import relax

    assert relax.frontend.torch.from_exported_program is from_exported_program


def test_onnx_program() -> None:
    pytest.importorskip("onnxscript")
    module = Mlp().eval()
    program = torch.onnx.export(module, (torch.ones(2, 4),), dynamo=True, verbose=False)
    same_results(torch.from_dlpack(pliant.compile(program)(torch.ones(2, 4))), module(torch.ones(2, 4)).detach())


def test_fx_graph() -> None:
    from pliant.relax.frontend.torch import from_fx

    module = Mlp().eval()
    imported = from_fx(torch.fx.symbolic_trace(module), [(("n", 4), "float32")], unwrap_unit_return_tuple=True)
    assert str(imported["main"].params[0].struct_info) == 'R.Tensor((n, 4), dtype="float32")'
    x = torch.randn(5, 4)
    same_results(torch.from_dlpack(pliant.compile(imported)(x)), module(x).detach())


class Branch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda a: a + 1, lambda a: a.exp() * 2, (x,)) * 2


class Loop(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        step, bias = torch.zeros((), dtype=torch.int64), torch.ones(()) * 3
        loop = torch._higher_order_ops.while_loop
        return loop(lambda i, v: i < 5, lambda i, v: (i + 1, v * 2 + bias), (step, x))[1]


@pytest.mark.parametrize("kind", [Branch, Loop])
def test_control_flow(kind: type[nn.Module]) -> None:
    inputs = [(sign * torch.rand(n, 2),) for n in (3, 1, 0) for sign in (1, -1)]
    check_module(kind(), (torch.ones(3, 2),), ({0: Dim("n")},), inputs)


class Scan(nn.Module):
    def forward(self, x: torch.Tensor, state: torch.Tensor) -> Any:
        from torch._higher_order_ops.scan import scan

        return scan(lambda c, v: (c * 0.5 + v, (c * v).sum(1)), state, x)


class Map(nn.Module):
    def forward(self, x: torch.Tensor, other: torch.Tensor) -> Any:
        from torch._higher_order_ops.map import map as map_slices

        return map_slices(lambda a, b: (a @ b.t()).relu(), x, other)


@pytest.mark.parametrize("kind", [Scan, Map])
def test_loops_over_slices(kind: type[nn.Module]) -> None:
    steps, batch = Dim("steps"), Dim("batch")
    inputs = [(torch.randn(t, b, 5), torch.randn(b, 5)) for t, b in ((2, 3), (1, 1), (6, 2))]
    check_module(kind(), inputs[0], ({0: steps, 1: batch}, {0: batch}), inputs)
