"""Tests `import tvm` as Pliant: modules, renamed names, and the errors for names that do not exist."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import pliant
import pliant.testing
import pliant.tvm
from pliant import relax
from pliant.tvm import AbsentNameError, missing
from pliant.tvm._absent_table import ABSENT


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    pliant.tvm.install()
    yield
    pliant.tvm.uninstall()


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("tvm.relax", "pliant.relax"),
        ("tvm.relax.transform", "pliant.relax.transform"),
        ("tvm.script.parser.relax", "pliant.script.relax"),
        ("tvm.tirx", "pliant.tir"),
        ("tvm.s_tir", "pliant.tir"),
        ("tvm.tir.function", "pliant.tir"),
        ("tvm.ir.op", "pliant.ir"),
        ("tvm._ffi.base", "pliant.error"),
        ("tvm.relax.op.manipulate", "pliant.relax.op"),
        ("tvm.runtime.vm", "pliant.relax.vm"),
        ("tvm.contrib.utils", "pliant.tvm.contrib.utils"),
    ],
)
def test_modules_are_those_of_pliant(name: str, target: str) -> None:
    assert import_module(name) is import_module(target)


def test_names_of_the_root_module() -> None:
    import tvm

    assert tvm.IRModule is pliant.IRModule
    assert tvm.TVMError is pliant.PliantError and issubclass(tvm.TVMError, RuntimeError)
    assert tvm.ir.op.Op.get("relax.add").name == "relax.add"
    assert not tvm.cuda(0).exist
    assert str(tvm.target.Target("cuda")) == "cuda"


def test_installing_twice_and_uninstalling() -> None:
    pliant.tvm.install()
    pliant.tvm.uninstall()
    assert "tvm" not in sys.modules
    pliant.tvm.uninstall()


def test_absent_names_say_why() -> None:
    import tvm
    from tvm import meta_schedule, te

    with pytest.raises(AbsentNameError, match=r"tvm\.te\.create_schedule .* Instead: tir\.Schedule"):
        te.create_schedule  # noqa: B018
    with pytest.raises(AbsentNameError, match="without tuning"):
        meta_schedule.tune_tir  # noqa: B018
    with pytest.raises(ImportError, match=r"tvm\.te\.thread_axis"):
        from tvm.te import thread_axis  # noqa: F401
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'") as found:
        tvm.nonsense  # noqa: B018
    assert not isinstance(found.value, AbsentNameError)


def test_the_table_of_absent_names_is_complete_and_true() -> None:
    names = [entry.name for entry in missing()]
    assert names == sorted(set(names)) and len(names) == sum(len(row[0].split()) for row in ABSENT)
    assert all(entry.was and entry.why and entry.instead for entry in missing())
    present = []
    for name in names:
        parent, _, last = name.rpartition(".")
        try:
            owner = import_module(parent)
        except ImportError:
            continue
        if last in vars(owner) and not type(vars(owner)[last]).__name__ == "AbsentModule":
            present.append(name)
    assert present == []


def test_the_command_runs_scripts_and_modules(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import sys, tvm\nfrom tvm import relax\nprint(relax.__name__, sys.argv[1])\n")
    command = [sys.executable, "-m", "pliant.tvm", str(script), "argument"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "pliant.relax argument\n"
    usage = subprocess.run([sys.executable, "-m", "pliant.tvm"], capture_output=True, text=True)
    assert usage.returncode == 2 and usage.stdout.startswith("usage")


def test_types_of_2022_are_views_of_struct_infos() -> None:
    from tvm.relax.ty import find_lca, is_base_of

    x = relax.Var("x", relax.TensorStructInfo((2, 3), "float32"))
    assert x.checked_type == relax.DynTensorType(2, "float32") == relax.TensorStructInfo(ndim=2, dtype="float32")
    assert isinstance(x.checked_type, relax.DynTensorType) and not isinstance(x.checked_type, relax.ShapeType)
    assert [int(size) for size in x.shape_.values] == [2, 3]
    func = relax.FuncType([relax.DynTensorType(2)], relax.ObjectType())
    assert func.arg_types == (relax.DynTensorType(2),) and func.ret_type == relax.ObjectType()
    assert is_base_of(relax.DynTensorType(-1, None), x.checked_type)
    assert find_lca(relax.DynTensorType(2), relax.DynTensorType(3)) == relax.DynTensorType(-1)


def test_parameters_of_tests_go_together() -> None:
    import tvm.testing

    first, second = tvm.testing.parameters((1, "a"), (2, "b"))
    assert first is not second
    assert not tvm.testing.requires_cuda and tvm.testing.requires_llvm
    with pytest.raises(AttributeError):
        tvm.testing.requires_nonsense  # noqa: B018
    assert tvm.testing.strtobool("on") == 1


def test_sessions_run_in_this_process(tmp_path: Path) -> None:
    from tvm import rpc

    with rpc.Server() as server:
        session = rpc.connect(server.host, server.port)
        session.upload(b"data", "file")
        assert session.download("file") == b"data"
    with pytest.raises(pliant.UnsupportedError, match="no remote execution"):
        rpc.connect(server.host, server.port)


letter, number = pliant.testing.parameters(("a", 1), ("b", 2), ids=["first", "second"])


def test_fixtures_of_one_group_are_not_a_product(letter: str, number: int) -> None:
    assert ord(letter) - ord("a") + 1 == number


def test_result_types_of_all_years() -> None:
    x = relax.Var("x", relax.TensorStructInfo((4,), "float32"))
    expected = (relax.TensorStructInfo((4,), "float32"),)
    calls = [
        relax.call_tir("f", [x], (4,), dtype="float32"),
        relax.call_tir("f", [x], relax.ShapeExpr([4])),
        relax.call_tir("f", [x], out_sinfo=expected[0]),
        relax.call_tir("f", [x], out_ty=expected[0]),
        relax.call_dps_packed("f", [x], (4,), dtype="float32"),
    ]
    assert [call.sinfo_args for call in calls] == [expected] * len(calls)
    assert len(relax.call_tir("f", [x], [(4,), (2, 2)], dtype=["int32", "int8"]).sinfo_args[0].fields) == 2
    with pytest.raises(TypeError, match="two names of one argument"):
        relax.call_tir("f", [x], expected[0], out_ty=expected[0])
    with pytest.raises(TypeError, match="missing the argument 'out_sinfo'"):
        relax.call_tir("f", [x])


def test_scalar_types_are_one_type() -> None:
    assert pliant.ir.PrimType("int64") == relax.PrimStructInfo("int64")
    assert isinstance(relax.PrimStructInfo("int64"), relax.PrimType)
    assert pliant.ir.PrimType("handle") == pliant.ir.PrimType("handle")
