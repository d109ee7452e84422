"""Tests external modules: functions in Python and C++."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pliant
from pliant.error import UnsupportedError
from pliant.relax.frontend import nn
from pliant.relax.frontend.nn import spec

SOURCE = r"""
#include <cstring>
#include <dlpack/dlpack.h>

extern "C" int test_nn_axpy(DLTensor* x, DLTensor* y, double factor, int64_t shift, const char* name, DLTensor* out) {
  if (strcmp(name, "axpy") != 0) return 7;
  int64_t size = 1;
  for (int i = 0; i < out->ndim; ++i) size *= out->shape[i];
  const float* a = static_cast<float*>(x->data);
  const float* b = static_cast<float*>(y->data);
  for (int64_t i = 0; i < size; ++i) static_cast<float*>(out->data)[i] = a[i] * factor + b[i] + shift;
  return 0;
}
"""
compiler = pytest.mark.skipif(not any(map(shutil.which, ("c++", "g++", "clang++"))), reason="no C++ compiler")


def _like_first(x: nn.Tensor, *rest: Any) -> nn.Tensor:
    return nn.Tensor.placeholder(x.shape, x.dtype)


class Axpy(nn.Module):
    def __init__(self, module: nn.ExternModule, name: str = "axpy") -> None:
        self.module = module
        self.name = name

    def forward(self, x: nn.Tensor, y: nn.Tensor) -> Any:
        nn.add_extern(self.module)
        return self.module["test_nn_axpy"](x, y, 2.0, 3, self.name)


RAW = {"forward": {"x": spec.Tensor(["n"], "float32"), "y": spec.Tensor(["n"], "float32")}}


def _check(module: nn.ExternModule) -> None:
    compiled = Axpy(module).jit(RAW, out_format="numpy")
    for n in (0, 1, 5):
        x, y = np.random.default_rng(0).standard_normal((2, n)).astype("float32")
        np.testing.assert_allclose(compiled["forward"](x, y), x * 2 + y + 3, rtol=1e-6)


@compiler
def test_source_modules(tmp_path: Path) -> None:
    symbols = {"test_nn_axpy": _like_first}
    _check(nn.SourceModule(symbols, SOURCE, "cpp"))
    (tmp_path / "axpy.cpp").write_text(SOURCE)
    module = nn.SourceModule(symbols, tmp_path / "axpy.cpp", "cpp")
    _check(module)
    module.compile(tmp_path / "axpy.o")
    _check(nn.ObjectModule(symbols, tmp_path / "axpy.o"))
    with pytest.raises(Exception, match="status 7"):
        Axpy(module, "other").jit(RAW, out_format="numpy")["forward"](np.ones(1, "float32"), np.ones(1, "float32"))
    with pytest.raises(ValueError, match="does not define 'missing'"):
        nn.SourceModule({"missing": _like_first}, SOURCE, "cpp").load()
    with pytest.raises(ValueError, match="compiler of an external module failed"):
        nn.SourceModule(symbols, "int x = ;", "cpp").load()


TVM_SOURCE = r"""
#include <dlpack/dlpack.h>
#include <tvm/runtime/data_type.h>
#include <tvm/runtime/packed_func.h>

namespace {
int axpy(DLTensor* x, DLTensor* y, float factor, int shift, std::string name, DLTensor* out) {
  using namespace tvm::runtime;
  ICHECK(name == "axpy") << "for the function " << name;
  ICHECK_EQ(x->ndim, 1);
  ICHECK(DataType(x->dtype) == DataType::Float(32));
  for (int64_t i = 0; i < out->shape[0]; ++i) {
    static_cast<float*>(out->data)[i] =
        static_cast<float*>(x->data)[i] * factor + static_cast<float*>(y->data)[i] + shift;
  }
  return 0;
}
}  // namespace
TVM_DLL_EXPORT_TYPED_FUNC(test_nn_axpy, axpy);
"""


@compiler
def test_functions_exported_by_macros() -> None:
    module = nn.SourceModule({"test_nn_axpy": _like_first}, TVM_SOURCE, "cpp")
    _check(module)
    with pytest.raises(Exception, match='check failed: name == "axpy" for the function other'):
        Axpy(module, "other").jit(RAW, out_format="numpy")["forward"](np.ones(1, "float32"), np.ones(1, "float32"))


def test_functions_in_python() -> None:
    module = nn.ExternModule({"test_nn_axpy": _like_first})

    def axpy(x: Any, y: Any, factor: float, shift: int, name: str, out: Any) -> None:
        out.copyfrom(x.numpy() * factor + y.numpy() + shift)

    if pliant.get_global_func("test_nn_axpy", allow_missing=True) is not None:
        pliant.registry.remove_global_func("test_nn_axpy")
    with pytest.raises(ValueError, match="test_nn_axpy of an external module are not registered"):
        _check(module)
    pliant.register_func("test_nn_axpy", axpy, override=True)
    _check(module)


def test_export_of_external_modules() -> None:
    module = nn.ExternModule({"test_nn_axpy": _like_first})
    mod, params, extern_mods = Axpy(module).export_tvm(RAW, allow_extern=True)  # type: ignore[misc]
    assert extern_mods == [module]
    assert 'R.call_dps_packed("test_nn_axpy", (x, y, ' in str(mod)
    with pytest.raises(ValueError, match="allow_extern=True"):
        Axpy(module).export_tvm(RAW)


def test_errors_of_external_modules(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="source_format='cu'"):
        nn.SourceModule({}, "", "cu")
    with pytest.raises(UnsupportedError, match="output_format='wasm'"):
        nn.SourceModule({}, "", "cpp", output_format="wasm")
    with pytest.raises(ValueError, match="source_format must be 'cpp'"):
        nn.SourceModule({}, "", "rust")
    with pytest.raises(ValueError, match="there is no file"):
        nn.ObjectModule({}, tmp_path / "missing.o")
    with pytest.raises(ValueError, match="there is no file"):
        nn.SourceModule({}, tmp_path / "missing.cpp", "cpp")
    with pytest.raises(KeyError, match="no function 'g'"):
        nn.ExternModule({"f": _like_first})["g"]
    with pytest.raises(UnsupportedError, match="packages cutlass of TVM"):
        nn.SourceModule.get_includes(["cutlass"])

    class Twice(nn.Module):
        def forward(self, x: nn.Tensor) -> Any:
            nn.add_extern(nn.ExternModule({"f": _like_first}))
            nn.add_extern(nn.ExternModule({"f": _like_first}))
            return x

    with pytest.raises(ValueError, match="several external modules define the symbols f"):
        Twice().export_tvm({"forward": {"x": spec.Tensor([1], "float32")}}, allow_extern=True)
