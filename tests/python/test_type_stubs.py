"""Tests that the stubs match the extension module: classes, bases, members, functions and their parameters."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import pliant
import pliant.ir  # Adds members to classes of the extension module.
from pliant import _core, relax

STUBS = Path(pliant.__file__).parent / "_core"
MODULES = [("__init__.pyi", _core), ("relax.pyi", _core.relax), ("transform.pyi", _core.transform)]
# Members that every class has, or that only concern how Python creates objects.
IGNORED = {
    *dir(object),
    *("__module__", "__weakref__", "__dict__", "__getstate__", "__buffer__", "__release_buffer__"),
    *("__signature__", "__qualname__", "__name__"),
}


def parameters(node: ast.FunctionDef) -> list[str]:
    a = node.args
    names = [*a.posonlyargs, *a.args]
    starred = [a.vararg] if a.vararg else []
    return [x.arg for x in [*names, *starred, *a.kwonlyargs, *([a.kwarg] if a.kwarg else [])]]


def runtime_parameters(obj: Any) -> list[str] | None:
    try:
        return list(inspect.signature(obj).parameters)
    except (TypeError, ValueError):
        return None


def undocumented(node: ast.Module | ast.ClassDef, prefix: str) -> list[str]:
    """Returns the names of the public classes, functions and methods without docstring in a module or class."""
    names = []
    for item in node.body:
        if not isinstance(item, ast.ClassDef | ast.FunctionDef) or item.name.startswith("_"):
            continue
        repeats = any(ast.unparse(d) == "overload" or ast.unparse(d).endswith(".setter") for d in item.decorator_list)
        if not repeats and ast.get_docstring(item) is None:
            names.append(f"{prefix}.{item.name}")
        if isinstance(item, ast.ClassDef):
            names += undocumented(item, f"{prefix}.{item.name}")
    return names


def test_public_names_have_docstrings() -> None:
    package = Path(pliant.__file__).parent
    files = [*package.rglob("*.py"), *package.rglob("*.pyi")]
    assert [name for file in files for name in undocumented(ast.parse(file.read_text()), file.stem)] == []


@pytest.mark.parametrize(("file", "module"), MODULES)
def test_stubs_match_the_module(file: str, module: ModuleType) -> None:
    tree = ast.parse((STUBS / file).read_text())
    classes = {n.name: n for n in tree.body if isinstance(n, ast.ClassDef)}
    functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
    public = {n: v for n, v in vars(module).items() if not n.startswith("__") and not inspect.ismodule(v)}
    assert set(classes) == {n for n, v in public.items() if inspect.isclass(v)}
    assert set(functions) == {n for n, v in public.items() if not inspect.isclass(v)}
    for name, node in functions.items():
        assert parameters(node) == runtime_parameters(public[name]), name
        assert ast.get_docstring(node), f"{name} has no documentation"
    for name, stub in classes.items():
        check_class(name, stub, public[name])


def check_class(name: str, stub: ast.ClassDef, cls: type) -> None:
    bases = [b.id for b in stub.bases if isinstance(b, ast.Name)]
    assert bases == [b.__name__ for b in cls.__bases__ if b is not object], name
    methods = {n.name: n for n in stub.body if isinstance(n, ast.FunctionDef)}
    attributes = {n.target.id for n in stub.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}
    declared = ({*methods, *attributes}) - IGNORED
    actual = {n for n in vars(cls) if n not in IGNORED}
    assert declared == actual, name
    for method, node in methods.items():
        property_ = any(isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list)
        value = vars(cls).get(method)
        if value is None or method == "__new__":
            continue
        # The package adds members that only combine others to classes of the extension module.
        assert property_ == (inspect.isgetsetdescriptor(value) or isinstance(value, property)), f"{name}.{method}"
        if not property_ and not method.startswith("__"):
            assert parameters(node) == runtime_parameters(getattr(cls, method)), f"{name}.{method}"


@pytest.mark.parametrize("file", sorted((STUBS.parent / "relax" / "op").glob("*.pyi")), ids=lambda p: p.stem)
def test_operators_have_the_signatures_of_their_stubs(file: Path) -> None:
    group = relax.op if file.stem == "__init__" else getattr(relax.op, file.stem)
    functions = {n.name: n for n in ast.parse(file.read_text()).body if isinstance(n, ast.FunctionDef)}
    start = "relax." if file.stem == "__init__" else f"relax.{file.stem}."
    library = [n for n in _core.relax.op_names() if n.startswith(start) and "." not in n.removeprefix(start)]
    library = [n for n in library if not _core.relax.get_op(n).__doc__.startswith("A user-defined operator")]
    written = {"call_tir", "call_dps_packed", "call_kernel", "call_packed", "call_pure_packed", "register_op"}
    assert {n.removeprefix(start) for n in library} - written == set(functions)
    for name, node in functions.items():
        op = getattr(group, name)
        parameters_ = inspect.signature(op).parameters
        assert parameters(node) == list(parameters_), name
        given = {a.arg: d for a, d in zip(reversed(node.args.args), reversed(node.args.defaults), strict=False)}
        given |= {a.arg: d for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if d is not None}
        defaults = {k: ast.literal_eval(d) for k, d in given.items()}
        assert defaults == {k: p.default for k, p in parameters_.items() if p.default is not p.empty}, name
        assert op.__doc__.split()[:4] == (ast.get_docstring(node) or "").split()[:4], name


def test_the_package_is_typed() -> None:
    assert (STUBS.parent / "py.typed").exists()
