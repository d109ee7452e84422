"""Tests passes and instruments of users: contexts, sequences, compilations, mistakes."""

from __future__ import annotations

import os
import re
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pliant
from pliant import relax, tir, transform
from pliant.ir import instrument
from pliant.script import from_source
from pliant.transform import PassContext, PassInfo, Sequential

SOURCE = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        with R.dataflow():
            lv = R.add(x, x)
            gv = R.exp(lv)
            R.output(gv)
        return gv

    @T.prim_func
    def scale(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("scale"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * T.float32(2)
"""


@pytest.fixture
def mod() -> pliant.IRModule:
    return from_source(SOURCE)


@transform.module_pass(opt_level=1, name="Mark")
def mark(m: pliant.IRModule, ctx: PassContext) -> pliant.IRModule:
    return m.with_attr("marked", True)


@transform.module_pass(opt_level=0)
def keep(m: pliant.IRModule, ctx: PassContext) -> pliant.IRModule:
    return m


@transform.module_pass(opt_level=0, name="Broken")
def broken(m: pliant.IRModule, ctx: PassContext) -> pliant.IRModule:
    m["main"]  # noqa: B018
    raise KeyError("the pass's own mistake")


def names(events: list[tuple[str, str]], kind: str) -> list[str]:
    return [name for event, name in events if event == kind]


@instrument.pass_instrument
class Record:
    """An instrument that records the passes that it observes."""

    def __init__(self, skip: tuple[str, ...] = ()) -> None:
        self.events: list[tuple[str, str]] = []
        self.skip = skip

    def enter_pass_ctx(self) -> None:
        self.events.append(("enter", ""))

    def exit_pass_ctx(self) -> None:
        self.events.append(("exit", ""))

    def should_run(self, m: pliant.IRModule, info: PassInfo) -> bool:
        return info.name not in self.skip

    def run_before_pass(self, m: pliant.IRModule, info: PassInfo) -> None:
        self.events.append(("before", info.name))

    def run_after_pass(self, m: pliant.IRModule, info: PassInfo) -> None:
        self.events.append(("after", info.name))


def test_pass_decorators(mod: pliant.IRModule) -> None:
    assert mark(mod).attrs["marked"] and "marked" not in mod.attrs
    assert (mark.info.name, mark.info.opt_level, mark.__name__) == ("Mark", 1, "mark")
    assert isinstance(mark, transform.ModulePass) and keep.info.name == "keep"

    @transform.module_pass(opt_level=0)
    class WithAttr:
        """A pass that sets an attribute of the module."""

        def __init__(self, key: str, value: Any = 1) -> None:
            self.key, self.value = key, value

        def transform_module(self, m: pliant.IRModule, ctx: PassContext) -> pliant.IRModule:
            return m.with_attr(self.key, self.value)

    one = WithAttr("a", value=2)
    assert isinstance(one, WithAttr) and one.key == "a" and WithAttr.__doc__ == "A pass that sets an attribute of the module."
    assert one(mod).attrs == {"a": 2}

    @relax.transform.function_pass(opt_level=0)
    def mark_graph(func: relax.Function, m: pliant.IRModule, ctx: PassContext) -> relax.Function:
        return func.with_attr("seen", len(m))

    @tir.transform.prim_func_pass(opt_level=0)
    def mark_loop(func: tir.PrimFunc, m: pliant.IRModule, ctx: PassContext) -> tir.PrimFunc:
        return func.with_attr("seen", len(m))

    graph, loop = mark_graph(mod), mark_loop(mod)
    assert graph["main"].attrs["seen"] == 2 and "seen" not in graph["scale"].attrs
    assert loop["scale"].attrs["seen"] == 2 and "seen" not in loop["main"].attrs


def test_tvm_module_names(mod: pliant.IRModule) -> None:
    gv = mod.get_global_var("main")
    assert mod[gv].__name__ == "main" and mod.get("nothing") is None and len(mod.values()) == 2
    assert [v.name_hint for v in mod.keys()] == ["main", "scale"] == [v.name_hint for v in mod.functions]  # noqa: SIM118
    copy = mod.clone()
    copy.update_func(gv, mod[gv].with_attrs({"a": 1, "b": 2}).without_attr("a"))
    assert copy["main"].attrs["b"] == 2 and "a" not in copy["main"].attrs and "b" not in mod["main"].attrs
    assert copy.with_attrs({"x": 1}).without_attr("x").attrs == {} and copy.with_attr("x", 3).get_attr("x") == 3
    copy.update(pliant.IRModule({"other": mod["main"]}))
    assert [v.name_hint for v in copy.get_global_vars()] == ["main", "scale", "other"]


def test_passes_of_both_languages_in_one_sequence(mod: pliant.IRModule) -> None:
    record = Record()
    def plain(m: pliant.IRModule) -> pliant.IRModule:
        return m.with_attr("plain", PassContext.current().config["keep_ir"])

    seq = Sequential([relax.transform.LegalizeOps(), mark, plain, Sequential([keep], name="inner")], name="all")
    with PassContext(opt_level=3, instruments=[record], config={"keep_ir": True}):
        out = seq(mod)
    assert out.attrs == {"marked": True, "plain": True} and "call_tir" in out.script()
    assert names(record.events, "before") == ["all", "LegalizeOps", "Mark", "plain", "inner", "keep"]
    assert names(record.events, "after") == ["LegalizeOps", "Mark", "plain", "keep", "inner", "all"]
    assert record.events[0] == ("enter", "") and record.events[-1] == ("exit", "")


def test_levels_required_and_disabled_passes(mod: pliant.IRModule) -> None:
    alone, among = mark, Sequential([mark])
    with PassContext(opt_level=0):
        assert among(mod).attrs == {}
    with PassContext(opt_level=0, required_pass=["Mark"]):
        assert among(mod).attrs == {"marked": True}
    with PassContext(disabled_pass=["Mark"]):
        assert among(mod).attrs == {}
        with PassContext():
            assert among(mod).attrs == {"marked": True}
    # A pass that is called directly always runs.
    with PassContext(opt_level=0, disabled_pass=["Mark"]):
        assert alone(mod).attrs == {"marked": True}
    assert transform.module_pass(lambda m, ctx: m.with_attr("seen", True), opt_level=9, name="High")(mod).attrs == {"seen": True}
    with PassContext(instruments=[Record(skip=("Mark",))]):
        assert mark(mod).attrs == {}
    with PassContext(instruments=[Record(skip=("Mark",))], required_pass=["Mark"]):
        assert mark(mod).attrs == {"marked": True}


def test_sequences_run_required_passes(mod: pliant.IRModule) -> None:
    record = Record()

    @transform.module_pass(opt_level=1, required=["LegalizeOps", mark])
    def after(m: pliant.IRModule, ctx: PassContext) -> pliant.IRModule:
        assert m.attrs["marked"] and "call_tir" in m.script()
        return m

    with PassContext(instruments=[record]):
        Sequential([after])(mod)
    assert names(record.events, "before") == ["sequential", "LegalizeOps", "Mark", "after"]
    with PassContext(opt_level=0, instruments=[record]):
        Sequential([after])(mod)
    assert names(record.events, "before")[4:] == ["sequential"]


def test_instruments_see_nested_passes(mod: pliant.IRModule) -> None:
    record, timing = Record(), instrument.PassTimingInstrument()

    @transform.module_pass(opt_level=0)
    def outer(m: pliant.IRModule, ctx: PassContext) -> pliant.IRModule:
        assert PassContext.current() is ctx
        return relax.transform.LegalizeOps()(m)

    with PassContext(instruments=[record, timing]):
        outer(mod)
    assert names(record.events, "before") == ["outer", "LegalizeOps"]
    assert [(name, depth) for name, depth, _ in timing.entries()] == [("outer", 0), ("LegalizeOps", 1)]
    assert re.search(r"ms  outer \(.* ms itself\)\n .* ms    LegalizeOps\n", timing.render())


def test_user_passes_in_a_compilation(mod: pliant.IRModule, tmp_path: Path) -> None:
    record, timing = Record(), instrument.PassTimingInstrument()
    x = np.ones((3, 4), "float32")
    mine = Sequential([mark, relax.get_pipeline("default")], name="mine")
    with PassContext(instruments=[record]):
        model = pliant.compile(mod, pipeline=mine, instruments=[timing], dump_dir=tmp_path)
    np.testing.assert_allclose(model(x).numpy(), np.exp(x + x), rtol=1e-6)
    assert names(record.events, "before")[:3] == ["mine", "Mark", "default"] and "LegalizeOps" in timing.render()
    assert (tmp_path / "01-Mark.py").exists()
    assert model.executable.module is not None and model.executable.module.attrs["marked"]

    for pipeline in (mine, [mark], lambda m: mark(m)):
        ex = relax.build(mod, relax_pipeline=pipeline)
        assert ex.module is not None and ex.module.attrs["marked"]
        np.testing.assert_allclose(relax.VirtualMachine(ex)["main"](x).numpy(), np.exp(x + x), rtol=1e-6)


def test_registered_pipelines(mod: pliant.IRModule) -> None:
    @relax.register_pipeline("test_marking")
    def marking(key: str = "marked") -> transform.Pass:
        return Sequential([mark])

    assert relax.get_pipeline("test_marking", key="a")(mod).attrs["marked"]
    assert pliant.compile(mod, pipeline="test_marking").executable.module.attrs["marked"]  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="a pipeline named 'test_marking' exists already"):
        relax.register_pipeline("test_marking")(marking)
    with pytest.raises(ValueError, match="did you mean 'test_marking'"):
        relax.get_pipeline("test_markin")
    with pytest.raises(ValueError, match="there is no pipeline 'defualt' .did you mean 'default'"):
        pliant.compile(mod, pipeline="defualt")


def test_instruments_that_print_dump_and_verify(
    mod: pliant.IRModule, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printing = instrument.PassPrintingInstrument(["Mark"], ["keep"])
    with PassContext(instruments=[printing, instrument.DumpIR(tmp_path / "ir")]):
        Sequential([mark, keep])(mod)
    out = capsys.readouterr().out
    assert "# Before Mark\n" in out and "# After keep\n" in out and "# After Mark" not in out
    files = sorted(p.name for p in (tmp_path / "ir").iterdir())
    assert files == ["00-input.py", "01-Mark.py", "02-keep.py", "03-sequential.py"]
    assert "marked" in (tmp_path / "ir" / "01-Mark.py").read_text()
    with PassContext(instruments=[instrument.PrintBeforeAll(), instrument.PrintAfterAll()]):
        keep(mod)
    assert capsys.readouterr().out.count("keep\n") == 2
    with PassContext(instruments=[instrument.WellFormedInstrument()]):
        Sequential([relax.transform.LegalizeOps(), mark])(mod)


def test_dump_variable_applies_to_single_passes(
    mod: pliant.IRModule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLIANT_DUMP_IR", str(tmp_path))
    mark(mod)
    relax.transform.LegalizeOps()(mod)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["00-input.py", "01-Mark.py", "02-LegalizeOps.py"]


def dumped(error: BaseException) -> str:
    note = "\n".join(getattr(error, "__notes__", ())) or str(error)
    path = re.search(r"(?:input module is in|the input of the pass, in the file) (\S+?\.py)", note)
    assert path, note
    return Path(path.group(1)).read_text()


@pytest.mark.parametrize("how", ["alone", "sequence", "compile", "build"])
def test_a_pass_that_raises(how: str, mod: pliant.IRModule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    seq = Sequential([relax.transform.LegalizeOps(), broken])
    run = {
        "alone": lambda: broken(mod),
        "sequence": lambda: seq(mod),
        "compile": lambda: pliant.compile(mod, pipeline=seq),
        "build": lambda: relax.build(mod, relax_pipeline=seq),
    }[how]
    with pytest.raises(KeyError, match="own mistake") as info:
        run()
    assert [e for e in info.traceback if e.name == "broken"], "its own traceback"
    assert any("pass 'Broken' failed" in note for note in info.value.__notes__)
    text = dumped(info.value)
    assert "def main" in text and ("call_tir" in text) == (how != "alone")
    from_source(text)


def test_nested_pass_failures_name_all_passes(mod: pliant.IRModule) -> None:
    @transform.module_pass(opt_level=0)
    def around(m: pliant.IRModule, ctx: PassContext) -> pliant.IRModule:
        return broken(m)

    timing = instrument.PassTimingInstrument()
    with PassContext(instruments=[timing]), pytest.raises(KeyError) as info:
        around(mod)
    notes = "\n".join(info.value.__notes__)
    assert notes.index("pass 'Broken'") < notes.index("pass 'around'")
    assert [(name, depth) for name, depth, _ in timing.entries()] == [("around", 0), ("Broken", 1)]


def test_a_pass_that_returns_something_else(mod: pliant.IRModule) -> None:
    with pytest.raises(TypeError, match=r"pass 'Nothing' returned NoneType.*return mod"):
        transform.module_pass(lambda m, ctx: None, name="Nothing")(mod)
    with pytest.raises(TypeError, match="pass 'Func' returned Function, not an IRModule"):
        transform.module_pass(lambda m, ctx: m["main"], name="Func")(mod)
    with pytest.raises(TypeError, match="pass 'F' returned int for the function 'main', not a relax.Function"):
        transform.function_pass(lambda f, m, ctx: 3, name="F")(mod)
    with pytest.raises(TypeError, match=r"a pass takes an IRModule, not Function .help: IRModule.from_expr"):
        keep(mod["main"])


def test_a_pass_that_returns_invalid_ir_is_named(mod: pliant.IRModule) -> None:
    @transform.module_pass(opt_level=0, name="Dangling")
    def dangling(m: pliant.IRModule, ctx: PassContext) -> pliant.IRModule:
        legal = relax.transform.LegalizeOps()(m)
        return pliant.IRModule({"main": legal["main"]})

    for run in (lambda: dangling(mod), lambda: pliant.compile(mod, pipeline=[dangling])):
        with pytest.raises(pliant.CompileError, match="the pass 'Dangling' returned a module that is not well-formed") as e:
            run()
        assert "def main" in dumped(e.value) and "PL0210" in str(e.value)
    with PassContext(config={"verify_passes": False}):
        assert len(dangling(mod)) == 1


def test_an_instrument_that_raises(mod: pliant.IRModule) -> None:
    class Bad:
        def run_after_pass(self, m: pliant.IRModule, info: PassInfo) -> None:
            raise ZeroDivisionError("mine")

    timing = instrument.PassTimingInstrument()
    with PassContext(instruments=[timing, Bad()]), pytest.raises(ZeroDivisionError, match="mine") as info:
        keep(mod)
    assert "run_after_pass of the instrument Bad at pass 'keep'" in info.value.__notes__[0]

    class BadEnter:
        def enter_pass_ctx(self) -> None:
            raise ZeroDivisionError("at the door")

    record = Record()
    with pytest.raises(ZeroDivisionError, match="at the door"), PassContext(instruments=[record, BadEnter()]):
        raise AssertionError("not reached")
    assert record.events == [("enter", ""), ("exit", "")] and PassContext.current().instruments == []


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"opt_level": "3"}, TypeError, "opt_level must be an int"),
        ({"opt_level": -1}, ValueError, "from 0 to 3"),
        ({"opt_level": 4}, ValueError, "PassContext: opt_level must be an int from 0 to 3, got 4"),
        ({"disabled_pass": "Mark"}, TypeError, r"write \['Mark'\]"),
        ({"required_pass": [mark]}, TypeError, "info.name"),
        ({"instruments": Record}, TypeError, "instruments must be a list"),
        ({"instruments": [Record]}, TypeError, r"write Record\(\)"),
        ({"config": [1]}, TypeError, "config must be a dict"),
        ({"config": {"keep_ri": True}}, ValueError, "did you mean 'keep_ir'"),
        ({"config": {"keep_ir": "yes"}}, ValueError, "must be a value of type bool"),
        ({"config": {"x.y": 1}}, ValueError, "there is no pass setting 'x.y'"),
    ],
)
def test_invalid_context_arguments_are_rejected(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        PassContext(**arguments)


def test_user_defined_settings(mod: pliant.IRModule) -> None:
    transform.register_config_option("test.depth", int, "How deep a test goes")
    seen = []

    @transform.module_pass(opt_level=0)
    def read(m: pliant.IRModule, ctx: PassContext) -> pliant.IRModule:
        seen.append(ctx.config.get("test.depth"))
        return m

    with PassContext(config={"test.depth": 3}):
        read(mod)
        pliant.compile(mod, pipeline=[read])
    assert seen == [3, 3] and PassContext.list_configs()["test.depth"]["type"] == "int"
    with pytest.raises(ValueError, match="already defined by Pliant"):
        transform.register_config_option("keep_ir", int)


def test_decorators_reject_invalid_passes(mod: pliant.IRModule) -> None:
    with pytest.raises(TypeError, match=r"module_pass: the function 'f' must take \(mod, ctx\), but it takes \(m\)"):

        @transform.module_pass(opt_level=0)
        def f(m: Any) -> Any:
            return m

    with pytest.raises(TypeError, match=r"class C has no method transform_function\(self, func, mod, ctx\)"):

        @transform.function_pass(opt_level=0)
        class C:
            pass

    with pytest.raises(TypeError, match=r"item 1 is not a pass: .* write C\(...\)"):
        Sequential([keep, type("C", (), {})])
    with pytest.raises(TypeError, match="a list of passes"):
        Sequential(keep)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="did you mean LegalizeOps"):
        transform.get_pass("LegaliseOps")
    with pytest.raises(AttributeError, match="no pass is called 'LegaliseOps' .did you mean LegalizeOps"):
        relax.transform.LegaliseOps  # noqa: B018
    with pytest.raises(TypeError, match="there is no compile option 'pipline' .did you mean 'pipeline'"):
        pliant.compile(mod, pipline="default")
    with pytest.raises(TypeError, match="the pipeline must be a name, a pass, or a list"):
        pliant.compile(mod, pipeline=3)
    with pytest.raises(pliant.CompileError, match="exec_mode 'compield'"):
        pliant.compile(mod, exec_mode="compield")


def test_ctrl_c_inside_a_pass(mod: pliant.IRModule) -> None:
    @transform.module_pass(opt_level=0)
    def slow(m: pliant.IRModule, ctx: PassContext) -> pliant.IRModule:
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(10**9):
            pass
        return m

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for run in (lambda: slow(mod), lambda: pliant.compile(mod, pipeline=[slow])):
            with pytest.raises(KeyboardInterrupt) as info:
                run()
            assert [e for e in info.traceback if e.name == "slow"]
    finally:
        signal.signal(signal.SIGINT, before)
    assert keep(mod).script() == mod.script()


def test_contexts_and_passes_in_many_threads(mod: pliant.IRModule) -> None:
    timing = instrument.PassTimingInstrument()
    barrier, failures = threading.Barrier(8), []

    def work(i: int) -> None:
        try:
            record = Record()

            @transform.module_pass(opt_level=0, name=f"P{i}")
            def own(m: pliant.IRModule, ctx: PassContext) -> pliant.IRModule:
                barrier.wait(20)
                assert PassContext.current().opt_level == i % 4
                return relax.transform.LegalizeOps()(m).with_attr("by", i)

            with PassContext(opt_level=i % 4, instruments=[record, timing]):
                barrier.wait(20)
                for _ in range(5):
                    assert own(mod).attrs["by"] == i
            assert names(record.events, "before") == [f"P{i}", "LegalizeOps"] * 5
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures
    assert all(depth == (name == "LegalizeOps") for name, depth, _ in timing.entries())


def test_contexts_must_be_exited_in_order() -> None:
    outer, inner = PassContext(), PassContext()
    outer.__enter__()
    inner.__enter__()
    with pytest.raises(RuntimeError, match="reverse order"):
        outer.__exit__()
    inner.__exit__()
    outer.__exit__()
    first, second = Record(), Record()
    with PassContext(instruments=[first]) as ctx:
        ctx.override_instruments([second])
    assert first.events == second.events == [("enter", ""), ("exit", "")]


def test_passes_over_dataflow_blocks(mod: pliant.IRModule) -> None:
    seen: list[int] = []

    @relax.transform.dataflowblock_pass(opt_level=0)
    class AddToMultiply:
        def transform_dataflowblock(self, block: Any, m: pliant.IRModule, ctx: PassContext) -> Any:
            seen.append(len(block.bindings))
            bindings = []
            for binding in block.bindings:
                call = binding.value
                if isinstance(call, relax.Call) and call.op == relax.op.add:
                    binding = relax.VarBinding(binding.var, relax.op.multiply(*call.args))
                bindings.append(binding)
            return relax.DataflowBlock(bindings)

    out = AddToMultiply()(mod)
    assert seen == [2] and "R.multiply(x, x)" in out.script() and "R.add" not in out.script()
    x = np.full((2, 4), 3.0, "float32")
    np.testing.assert_allclose(pliant.compile(out)(x).numpy(), np.exp(x * x), rtol=1e-5)
    same = relax.transform.dataflowblock_pass(lambda block, m, ctx: block, name="Same")(mod)
    pliant.ir.assert_structural_equal(same, mod)
    with pytest.raises(TypeError, match="pass 'Int' returned int for a block, not a relax.DataflowBlock"):
        relax.transform.dataflowblock_pass(lambda block, m, ctx: 1, name="Int")(mod)
