"""Losses, optimizers and the trainer, compared with NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pliant import IRModule, relax, tir
from pliant.relax.training import AppendLoss, SetupTrainer, Trainer, loss, optimizer, schedule


def _info(*shape: Any, dtype: str = "float32") -> Any:
    return relax.TensorStructInfo(shape, dtype)


def _run(func: Any, *args: Any) -> Any:
    return relax.VirtualMachine(relax.build(IRModule({"f": func.with_attr("global_symbol", "f")})))["f"](*args)


def _log_softmax(x: np.ndarray) -> np.ndarray:
    x = x - x.max(1, keepdims=True)
    return x - np.log(np.exp(x).sum(1, keepdims=True))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses_equal_numpy(reduction: str, rng: np.random.Generator) -> None:
    reduce = {"mean": np.mean, "sum": np.sum, "none": lambda x: x}[reduction]
    p, t = rng.standard_normal((5, 3)).astype("float32"), rng.standard_normal((5, 3)).astype("float32")
    n = tir.Var("n", "int64")
    like = _info(n, 3)
    np.testing.assert_allclose(_run(loss.L1Loss(reduction)(like, like), p, t).numpy(), reduce(np.abs(p - t)), rtol=1e-5)
    np.testing.assert_allclose(_run(loss.MSELoss(reduction)(like, like), p, t).numpy(), reduce((p - t) ** 2), rtol=1e-5)
    labels = np.array([0, 2, 1, 1, 0])
    losses = -_log_softmax(p)[np.arange(5), labels]
    actual = _run(loss.CrossEntropyLoss(reduction)(like, _info(n, dtype="int64")), p, labels).numpy()
    np.testing.assert_allclose(actual, reduce(losses), rtol=1e-5)
    if reduction != "none":
        onehot = np.eye(3, dtype="float32")[labels]
        np.testing.assert_allclose(_run(loss.CategoricalCrossEntropyLoss(reduction)(like, like), p, onehot).numpy(), reduce(losses), rtol=1e-5)


def test_an_unknown_reduction_is_an_error() -> None:
    with pytest.raises(ValueError, match="reduction must be one of"):
        loss.L1Loss("median")


def _numpy_step(name: str, p: np.ndarray, g: np.ndarray, state: dict[str, Any], step: int) -> np.ndarray:
    """One step of an optimizer for one parameter, with the arguments of ``_optimizers``."""
    if name == "SGD":
        return p - 0.1 * (g + 0.01 * p)
    if name == "MomentumSGD":
        g = g + 0.01 * p
        state["v"] = 0.9 * state.get("v", 0.0) + 0.8 * g
        return p - 0.1 * (g + 0.9 * state["v"])
    decay = 0.01
    if name == "Adam":
        g = g + decay * p
    else:
        p = p * (1 - 0.1 * decay)
    state["m"] = 0.8 * state.get("m", 0.0) + 0.2 * g
    state["s"] = 0.9 * state.get("s", 0.0) + 0.1 * g * g
    return p - 0.1 * (state["m"] / (1 - 0.8**step)) / (np.sqrt(state["s"] / (1 - 0.9**step)) + 1e-8)


def _optimizers() -> list[optimizer.Optimizer]:
    return [
        optimizer.SGD(0.1, weight_decay=0.01),
        optimizer.MomentumSGD(0.1, 0.9, dampening=0.2, weight_decay=0.01, nesterov=True),
        optimizer.Adam(0.1, betas=(0.8, 0.9), weight_decay=0.01),
        optimizer.AdamW(0.1, betas=(0.8, 0.9), weight_decay=0.01),
    ]


@pytest.mark.parametrize("k", range(4))
def test_optimizers_equal_numpy_over_several_steps(k: int, rng: np.random.Generator) -> None:
    opt = _optimizers()[k]
    variables = [relax.Var("w", _info(3, 2, dtype="float64")), relax.Var("b", _info(2, dtype="float64"))]
    opt.init(variables)
    step = relax.VirtualMachine(relax.build(IRModule({opt.name: opt.get_function()})))[opt.name]
    params = [rng.standard_normal((3, 2)), rng.standard_normal(2)]
    expected, states = [p.copy() for p in params], [{}, {}]  # type: ignore[var-annotated]
    actual, state = tuple(params), tuple(opt.state)
    for i in range(1, 6):
        gradients = tuple(rng.standard_normal(p.shape) for p in params)
        actual, state = step(tuple(actual), gradients, tuple(state))
        expected = [_numpy_step(opt.name, p, g, s, i) for p, g, s in zip(expected, gradients, states)]
    assert int(state[0].numpy()) == 5
    for a, e in zip(actual, expected):
        np.testing.assert_allclose(a.numpy(), e, rtol=1e-10)


def test_gradients_are_clipped_by_norm_and_by_value() -> None:
    variables = [relax.Var("w", _info(2, dtype="float64"))]
    p, g = (np.zeros(2),), (np.array([3.0, 4.0]),)
    for options, expected in (({"clip_norm": 1.0}, [-0.6, -0.8]), ({"clip_value": 3.5}, [-3.0, -3.5])):
        opt = optimizer.SGD(1.0, **options).init(variables)
        new, _ = _run(opt.get_function(), p, g, tuple(opt.state))
        np.testing.assert_allclose(new[0].numpy(), expected, rtol=1e-5)


def test_schedules() -> None:
    step = relax.Var("step", _info(dtype="float64"))

    def rates(rule: schedule.Schedule, steps: list[int]) -> list[float]:
        builder = relax.BlockBuilder()
        with builder.function("f", [step]):
            builder.emit_func_output(builder.emit(rule(step, "float64")))
        return [float(_run(builder.get()["f"], np.array(float(s))).numpy()) for s in steps]

    np.testing.assert_allclose(rates(schedule.exponential(2.0, 0.5, 10), [10, 20]), [1.0, 0.5])
    np.testing.assert_allclose(rates(schedule.cosine(1.0, 100, 0.2), [50, 100, 200]), [0.6, 0.2, 0.2])
    np.testing.assert_allclose(rates(schedule.linear_warmup(0.4, 4), [1, 4, 9]), [0.1, 0.4, 0.4])
    np.testing.assert_allclose(rates(schedule.piecewise([3.0, 2.0, 1.0], [5, 7]), [5, 6, 8]), [3.0, 2.0, 1.0])
    with pytest.raises(ValueError, match="need 2 values"):
        schedule.piecewise([1.0], [3])


def test_optimizers_reject_invalid_parameters() -> None:
    w, v = relax.Var("w", _info(2)), relax.Var("v", _info(2, dtype="float64"))
    n = tir.Var("n", "int64")
    for params, message in (
        ([], "no parameters"),
        ([w, w], "occurs twice"),
        ([w, v], "same float type"),
        ([relax.Var("i", _info(2, dtype="int32"))], "same float type"),
        ([relax.Var("s", _info(n))], "must be constant"),
    ):
        with pytest.raises(ValueError, match=message):
            optimizer.SGD(0.1).init(params)
    with pytest.raises(RuntimeError, match="call init"):
        optimizer.SGD(0.1).get_function()


def _backbone(hidden: int = 8) -> IRModule:
    """A perceptron of two layers, as a backbone with 4 parameters."""
    n = tir.Var("n", "int64")
    x, w1, b1 = relax.Var("x", _info(n, 4)), relax.Var("w1", _info(4, hidden)), relax.Var("b1", _info(hidden))
    w2, b2 = relax.Var("w2", _info(hidden, 3)), relax.Var("b2", _info(3))
    builder = relax.BlockBuilder()
    with builder.function("backbone", [x, w1, b1, w2, b2]):
        with builder.dataflow():
            h = builder.emit(relax.op.tanh(relax.op.add(relax.op.matmul(x, w1), b1)))
            out = builder.emit_output(relax.op.add(relax.op.matmul(h, w2), b2))
        builder.emit_func_output(out)
    return builder.get().with_attrs({"param_num": 4, "state_num": 0})


def _trainer(opt: optimizer.Optimizer, **options: Any) -> Trainer:
    m = tir.Var("m", "int64")
    mod = SetupTrainer(loss.CrossEntropyLoss(), opt, [_info(m, 3), _info(m, dtype="int64")], **options)(_backbone())
    return Trainer(mod, relax.VirtualMachine(relax.build(mod)))


@pytest.mark.parametrize("legalize", [False, True])
def test_100_steps_equal_numpy(legalize: bool, rng: np.random.Generator) -> None:
    trainer = _trainer(optimizer.Adam(0.02), legalize=legalize)
    trainer.xaiver_uniform_init_params(seed=3)
    p = {name: value.numpy().astype("float64") for name, value in trainer.export_params().items()}
    m, v = ({name: np.zeros_like(value) for name, value in p.items()} for _ in range(2))
    for step in range(1, 101):
        x = rng.standard_normal((int(rng.integers(1, 9)), 4)).astype("float32")
        t = (np.abs(x).sum(1) * 10).astype("int64") % 3
        actual = float(trainer.update([x], [t]).numpy())
        h = np.tanh(x @ p["w1"] + p["b1"])
        logp = _log_softmax(h @ p["w2"] + p["b2"])
        expected = -logp[np.arange(len(t)), t].mean()
        assert abs(actual - expected) < 1e-4, step
        dz = (np.exp(logp) - np.eye(3)[t]) / len(t)
        dh = (dz @ p["w2"].T) * (1 - h * h)
        gradients = {"w1": x.T @ dh, "b1": dh.sum(0), "w2": h.T @ dz, "b2": dz.sum(0)}
        for name, g in gradients.items():
            m[name] = 0.9 * m[name] + 0.1 * g
            v[name] = 0.999 * v[name] + 0.001 * g * g
            p[name] = p[name] - 0.02 * (m[name] / (1 - 0.9**step)) / (np.sqrt(v[name] / (1 - 0.999**step)) + 1e-8)
    for name, value in trainer.export_params().items():
        np.testing.assert_allclose(value.numpy(), p[name], atol=1e-4)


def test_parameters_are_saved_and_loaded(tmp_path: Path) -> None:
    trainer = _trainer(optimizer.SGD(0.1))
    trainer.xaiver_uniform_init_params(seed=1)
    x = np.ones((2, 4), "float32")
    before = trainer.predict(x).numpy()
    trainer.save_params(tmp_path / "weights.safetensors")
    trainer.zero_init_params()
    assert not np.allclose(trainer.predict(x).numpy(), before)
    trainer.load_params(tmp_path / "weights.safetensors")
    np.testing.assert_array_equal(trainer.predict(x).numpy(), before)
    with pytest.raises(ValueError, match="no value for the parameters b1"):
        trainer.load_params({"w1": np.zeros((4, 8), "float32"), "w2": np.zeros((8, 3), "float32"), "b2": np.zeros(3, "float32")})
    with pytest.raises(ValueError, match="must have shape"):
        trainer.load_params([np.zeros((4, 9), "float32"), np.zeros(8, "float32"), np.zeros((8, 3), "float32"), np.zeros(3, "float32")])


def test_a_wrong_number_of_inputs_is_an_error() -> None:
    trainer = _trainer(optimizer.SGD(0.1))
    with pytest.raises(ValueError, match="has 1 inputs, but 2 were given"):
        trainer.predict(np.ones((2, 4), "float32"), np.ones(1, "float32"))


def test_states_of_the_model_are_updated() -> None:
    n = tir.Var("n", "int64")
    x, w, count = relax.Var("x", _info(n, 2)), relax.Var("w", _info(2)), relax.Var("count", _info())
    builder = relax.BlockBuilder()
    with builder.function("backbone", [x, w, count]):
        with builder.dataflow():
            out = builder.emit_output(relax.op.multiply(x, w))
            new = builder.emit_output(relax.op.add(count, relax.const(1.0, "float32")))
        builder.emit_func_output((out, new))
    mod = builder.get().with_attrs({"param_num": 1, "state_num": 1})
    m = tir.Var("m", "int64")
    mod = SetupTrainer(loss.MSELoss(), optimizer.SGD(0.1), [_info(m, 2), _info(m, 2)])(mod)
    trainer = Trainer(mod, relax.VirtualMachine(relax.build(mod)))
    data = np.ones((3, 2), "float32")
    first = float(trainer.update([data], [data]).numpy())
    second = float(trainer.update([data], [data]).numpy())
    assert second < first == 1.0
    assert float(trainer.export_states()["count"].numpy()) == 2


def test_append_loss_uses_the_first_results() -> None:
    m = tir.Var("m", "int64")
    mod = AppendLoss("backbone", loss.MSELoss()(_info(m, 3), _info(m, 3)), 1, "f")(_backbone())
    assert [p.name_hint for p in mod["f"].params] == ["x", "w1", "b1", "w2", "b2", "targets"]
    with pytest.raises(ValueError, match="uses 2 results"):
        AppendLoss("backbone", loss.MSELoss()(_info(3), _info(3)), 2)(_backbone())


def test_setup_trainer_requires_a_backbone_and_its_attributes() -> None:
    setup = SetupTrainer(loss.MSELoss(), optimizer.SGD(0.1), [_info(3), _info(3)])
    with pytest.raises(ValueError, match="no function 'backbone'"):
        setup(IRModule())
    mod = IRModule({"backbone": _backbone()["backbone"]})
    with pytest.raises(ValueError, match="no attribute 'param_num'"):
        setup(mod)
