"""Tests that Python's garbage collector finds cycles between Pliant's objects and Python objects."""

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pliant
import pytest
from pliant import relax
from pliant.script import ir as I
from pliant.script import relax as R


@I.ir_module
class Module:
    @R.function(pure=False)
    def keep(o: R.Object) -> R.Object:
        @R.function(pure=False)
        def inner(x: R.Object) -> R.Object:
            return R.call_packed("cycles.pair", o, x, sinfo_args=R.Object)

        return inner

    @R.function(pure=False)
    def keep_tuple(o: R.Object, p: R.Object) -> R.Object:
        t = (o, p)

        @R.function(pure=False)
        def inner(x: R.Object) -> R.Object:
            return R.call_packed("cycles.pair", t, x, sinfo_args=R.Object)

        return inner

    @R.function(pure=False)
    def ask(x: R.Object) -> R.Object:
        return R.call_packed("cycles.mine", x, sinfo_args=R.Object)


class Thing:
    """A Python object that can refer to the object that owns it."""

    held: Any = None

    def mine(self, x: Any) -> Any:
        return (self.held is None, x)


@pytest.fixture(scope="module", params=["bytecode", "compiled"])
def program(request: Any) -> Any:
    pliant.register_func("cycles.pair", lambda o, x: (o, x), override=True)
    return relax.build(Module, exec_mode=request.param)


def machine(program: Any, mine: Callable[..., Any] = lambda x: x) -> relax.VirtualMachine:
    return relax.VirtualMachine(program, pliant.cpu(), functions=[("cycles.mine", mine)])


def is_collected(make: Callable[[], Any]) -> bool:
    """Checks whether the garbage collector frees the result of `make` although it is part of a
    cycle.
    """
    ref = weakref.ref(make())
    gc.collect()
    return ref() is None


def test_closure_held_by_its_captured_object(program: Any) -> None:
    vm = machine(program)

    def make() -> Thing:
        thing = Thing()
        thing.held = vm["keep"](thing)
        return thing

    assert is_collected(make)


def test_closure_over_tuple(program: Any) -> None:
    vm = machine(program)

    def make() -> Thing:
        thing, other = Thing(), Thing()
        thing.held = other.held = vm["keep_tuple"](thing, other)
        return thing

    assert is_collected(make)


def test_closure_over_method(program: Any) -> None:
    vm = machine(program)

    def make() -> Thing:
        thing = Thing()
        thing.held = vm["keep"](thing.mine)
        return thing

    assert is_collected(make)


def test_closure_over_closure(program: Any) -> None:
    vm = machine(program)

    def make() -> Thing:
        thing = Thing()
        thing.held = vm["keep"](vm["keep"](thing))
        return thing

    assert is_collected(make)


@pytest.mark.parametrize("hold", ["machine", "function", "closure"])
def test_vm_with_method_of_its_owner(program: Any, hold: str) -> None:
    def make() -> Thing:
        thing = Thing()
        vm = machine(program, thing.mine)
        assert vm["ask"](1) == (True, 1)
        thing.held = {"machine": lambda: vm, "function": lambda: vm["ask"], "closure": lambda: vm["keep"](1)}[hold]()
        return thing

    assert is_collected(make)


def test_instrument_that_holds_its_vm(program: Any) -> None:
    def make() -> Thing:
        thing = Thing()
        thing.held = machine(program)
        thing.held.set_instrument(lambda *_: thing.mine)
        thing.held["ask"](1)
        return thing

    assert is_collected(make)


def test_externally_referenced_cycles_survive(program: Any) -> None:
    """Checks that the collector counts no reference twice: an object that is still reachable is not
    collected.
    """
    vm = machine(program)
    thing = Thing()
    closure = vm["keep"](thing)
    thing.held = closure
    ref = weakref.ref(thing)
    del thing
    for _ in range(3):
        gc.collect()
        assert closure(1)[0] is ref()
        assert ref().held is closure
    # Passing the function on adds a second reference.
    again = vm["keep"](closure)
    del closure
    gc.collect()
    assert ref() is not None
    inner, x = again(2)
    assert (inner(3)[0], x) == (ref(), 2)


def test_live_vm_keeps_its_functions(program: Any) -> None:
    thing = Thing()
    vm = machine(program, thing.mine)
    thing.held = vm
    ask = vm["ask"]
    del vm, thing
    for _ in range(3):
        gc.collect()
        assert ask(5) == (False, 5)


def test_collecting_while_closures_run_in_threads(program: Any) -> None:
    vm = machine(program)
    thing = Thing()
    closure = vm["keep"](thing)
    thing.held = closure
    wrong = []

    def run() -> None:
        for i in range(2000):
            one, x = closure(i)
            if one is not thing or x != i or one.held is not closure:
                wrong.append(i)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for t in threads:
        t.start()
    while any(t.is_alive() for t in threads):
        gc.collect()
    for t in threads:
        t.join()
    assert not wrong


def test_array_values_are_freed(program: Any) -> None:
    vm = machine(program)
    array = np.ones(3, "float32")
    ref = weakref.ref(array)
    closure = vm["keep"](array)
    del array
    assert closure(1)[0].numpy().sum() == 3
    del closure
    gc.collect()
    assert ref() is None


@pytest.mark.parametrize("tuples", [False, True])
def test_inputs_and_result_kept_by_a_vm(program: Any, tuples: bool) -> None:
    def make() -> Thing:
        thing = Thing()
        thing.held = machine(program, lambda x: x)
        # The result is the input itself: the VM holds two references.
        thing.held.set_input("ask", (thing, (thing, 1.5)) if tuples else thing)
        thing.held.invoke_stateful("ask")
        assert thing.held.get_outputs("ask") is not None
        return thing

    assert is_collected(make)


def test_inputs_live_as_long_as_their_vm(program: Any) -> None:
    vm = machine(program, lambda x: x)
    ref = weakref.ref(thing := Thing())
    vm.set_input("ask", thing)
    func = vm["ask"]
    del thing
    gc.collect()
    assert ref() is not None
    vm.invoke_stateful("ask")
    assert vm.get_outputs("ask") is ref()
    del vm
    gc.collect()
    assert ref() is not None
    del func
    gc.collect()
    assert ref() is None
