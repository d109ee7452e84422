"""Tests many random edits by ``DataflowBlockRewrite``, compared with the same edits of a plain list."""

from __future__ import annotations

import random

import numpy as np
import pytest

import pliant
from pliant import relax
from pliant.relax._ordered_int_list import Order
from pliant.script import relax as R


@pytest.mark.parametrize("seed", range(4))
def test_binding_order_equals_list_model(seed: int) -> None:
    rng = random.Random(seed)
    items = list(range(rng.choice([0, 3, 2000])))
    order, number = Order(items), len(items)
    for _ in range(3000):
        if items and rng.random() < 0.25:
            gone = rng.choice(items)
            items.remove(gone)
            order.remove(gone)
            continue
        before = rng.choice(items) if items and rng.random() < 0.9 else None
        items.insert(0 if before is None else items.index(before) + 1, number)
        order.insert_after(before, number)
        number += 1
    assert list(order) == items
    assert sorted(items, key=order.position) == items


@R.function
def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
    with R.dataflow():
        lv = R.add(x, y)
        gv = R.add(lv, y)
        R.output(gv)
    return gv


class Plain:
    """The expected state of a block: the names of the bindings as a list, with the names that each
    binding reads.
    """

    def __init__(self) -> None:
        self.items = [("lv", ("x", "y")), ("gv", ("lv", "y"))]

    def add(self, name: str, reads: tuple[str, str]) -> None:
        # A binding that uses no other one stands after the first binding.
        at = max([i + 1 for i, (n, _) in enumerate(self.items) if n in reads], default=min(1, len(self.items)))
        self.items.insert(at, (name, reads))

    def replace(self, old: str, new: str) -> None:
        self.items = [(n, tuple(new if r == old else r for r in reads)) for n, reads in self.items]

    def read(self, name: str) -> bool:
        return any(name in reads for _, reads in self.items)

    def remove(self, name: str) -> None:
        self.items = [item for item in self.items if item[0] != name]


@pytest.mark.parametrize("seed", range(4))
def test_edits_equal_list_model(seed: int) -> None:
    rng = random.Random(seed)
    rewrite = relax.DataflowBlockRewrite(main.body.blocks[0], main)
    plain = Plain()
    known = {b.var.name_hint: b.var for b in main.body.blocks[0].bindings} | {p.name_hint: p for p in main.params}
    for step in range(300):
        old = [name for name in known if name not in ("x", "y", "gv")]
        what = rng.random()
        if what < 0.6:
            name = f"v{step}"
            reads = (rng.choice([*known]), rng.choice([*known]))
            var = relax.DataflowVar(name, relax.TensorStructInfo((4,), "float32"))
            rewrite.add(relax.VarBinding(var, relax.op.add(known[reads[0]], known[reads[1]])))
            plain.add(name, reads)
            known[name] = var
        elif what < 0.8 and len(old) > 1:
            # A replaced binding must follow its replacement.
            order = [name for name, _ in plain.items]
            a, b = sorted(rng.sample(old, 2), key=order.index)
            rewrite.replace_all_uses(known[b], known[a])
            plain.replace(b, a)
            assert not plain.read(b)
            rewrite.remove_unused(known[b])
            plain.remove(b)
            del known[b]
        elif old:
            name = rng.choice(old)
            if plain.read(name):
                with pytest.raises(ValueError, match="because other bindings use it"):
                    rewrite.remove_unused(known[name])
            else:
                rewrite.remove_unused(known[name])
                plain.remove(name)
                del known[name]
    block = rewrite.mutated_dfb()
    assert [b.var.name_hint for b in block.bindings] == [name for name, _ in plain.items]
    assert [tuple(a.name_hint for a in b.value.args) for b in block.bindings] == [r for _, r in plain.items]
    rewrite.remove_all_unused()
    func = rewrite.mutated_root_fn()
    vm = relax.VirtualMachine(relax.build(pliant.IRModule({"main": func})), pliant.cpu())
    values = {"x": np.ones(4, "float32"), "y": np.full(4, 1e-3, "float32")}
    inputs = (values["x"], values["y"])
    for name, (a, b) in plain.items:
        values[name] = values[a] + values[b]
    np.testing.assert_allclose(vm["main"](*inputs).numpy(), values["gv"], rtol=1e-4)


def test_freed_names_are_reused() -> None:
    rewrite = relax.DataflowBlockRewrite(main.body.blocks[0], main)
    x = main.params[0]
    for _ in range(3):
        rewrite.add(relax.op.exp(x), is_dfvar=True)
    assert [b.var.name_hint for b in rewrite.mutated_dfb().bindings] == ["lv", "lv3", "lv2", "lv1", "gv"]
    rewrite.remove_all_unused()
    rewrite.add(relax.op.exp(x), is_dfvar=True)
    assert [b.var.name_hint for b in rewrite.mutated_dfb().bindings] == ["lv", "lv1", "gv"]
