"""External modules: functions of the user in native code or in Python, called by exported methods."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pliant.error import UnsupportedError

if TYPE_CHECKING:
    from pliant.relax.frontend.nn._native_functions import NativeLibrary


class ExternModule:
    """The base class of external modules. ``symbols`` maps the name of each function to a function that gets the arguments of a
    call and returns placeholders of its results (``nn.Tensor.placeholder``).

    ``module["name"](x, ...)`` calls a function in destination-passing style, with tensors, numbers and strings.
    """

    def __init__(self, symbols: Mapping[str, Callable[..., Any]]) -> None:
        self.symbols = dict(symbols)

    def __getitem__(self, func_name: str) -> Callable[..., Any]:
        """Returns a function that emits calls. Raises ``KeyError`` if the module has no function with this name."""
        if func_name not in self.symbols:
            raise KeyError(f"the external module has no function '{func_name}' (there are: {', '.join(self.symbols)})")

        def call(*args: Any) -> Any:
            from pliant.relax.frontend.nn.op import extern

            return extern(func_name, args, self.symbols[func_name](*args))

        return call

    def load(self) -> Any:
        """Loads the native code of the module. The base class has none, and raises ``NotImplementedError``."""
        raise NotImplementedError(f"{type(self).__name__} does not define load")

    def register(self) -> None:
        """Registers the functions as packed functions, so that programs can call them. The base class has no code: its
        functions must be registered with ``pliant.register_func``."""
        from pliant.registry import get_global_func

        if type(self).load is not ExternModule.load:
            self.load().register()
            return
        missing = [name for name in self.symbols if get_global_func(name, allow_missing=True) is None]
        if missing:
            raise ValueError(f"the functions {', '.join(missing)} of an external module are not registered (pliant.register_func)")


class ObjectModule(ExternModule):
    """An external module from an object file or a shared library.

    Each function has C linkage and takes pointers to the ``DLTensor`` of its tensors, ``int64_t`` for ints, ``double`` for
    floats and ``const char*`` for strings, then the ``DLTensor`` of its results. It returns 0, or another ``int`` if it fails.
    Raises ``ValueError`` if there is no such file.
    """

    def __init__(self, symbols: Mapping[str, Callable[..., Any]], filepath: str | os.PathLike[str]) -> None:
        self.filepath = Path(filepath)
        if not self.filepath.is_file():
            raise ValueError(f"there is no file '{filepath}'")
        super().__init__(symbols)

    def load(self) -> NativeLibrary:
        """Links the object file to a shared library and loads it. Raises ``UnsupportedError`` if there is no C++ compiler."""
        from pliant.relax.frontend.nn._native_functions import NativeLibrary

        if self.filepath.suffix in (".so", ".dylib"):
            return NativeLibrary(self.filepath.read_bytes(), list(self.symbols))
        return NativeLibrary(_link([str(self.filepath)], [], None), list(self.symbols))


class SourceModule(ExternModule):
    """An external module from C++ source code, which is compiled when the module is loaded. ``source_code`` is the code or the path
    of a file. A function has C linkage, as in :class:`ObjectModule`, or is exported by TVM's macro
    ``TVM_FFI_DLL_EXPORT_TYPED_FUNC`` or ``TVM_DLL_EXPORT_TYPED_FUNC``. The headers ``dlpack/dlpack.h``, ``tvm/ffi/function.h``,
    ``tvm/runtime/packed_func.h`` and ``tvm/runtime/data_type.h`` have the parts of TVM that such functions need.

    Raises ``UnsupportedError`` for CUDA code and WebAssembly, and ``ValueError`` for other formats.
    """

    def __init__(
        self,
        symbols: Mapping[str, Callable[..., Any]],
        source_code: str | os.PathLike[str],
        source_format: str,
        compile_options: Sequence[str] | None = None,
        compiler: str | None = None,
        output_format: str = "obj",
    ) -> None:
        for setting, value, supported, known in (
            ("source_format", source_format, "cpp", "cu"),
            ("output_format", output_format, "obj", "wasm"),
        ):
            if value == known:
                raise UnsupportedError(f"SourceModule: {setting}='{value}' is not supported: Pliant runs on CPUs only")
            if value != supported:
                raise ValueError(f"SourceModule: {setting} must be '{supported}', got {value!r}")
        self.source_code = _read_source(source_code)
        self.compile_options = list(compile_options) if compile_options is not None else self.get_compile_options(source_format)
        self.compiler = compiler
        super().__init__(symbols)

    @staticmethod
    def get_includes(tvm_pkg: Sequence[str] | None = None) -> list[Path]:
        """Returns the folder with the headers. Raises ``UnsupportedError`` for packages of TVM."""
        if tvm_pkg:
            raise UnsupportedError(
                f"SourceModule: the packages {', '.join(tvm_pkg)} of TVM are not part of Pliant; pass -I in compile_options"
            )
        return [Path(__file__).parent / "include"]

    @staticmethod
    def get_compile_options(source_format: str = "cpp", tvm_pkg: Sequence[str] | None = None) -> list[str]:
        """Returns the default options of the compiler."""
        return [*(f"-I{path}" for path in SourceModule.get_includes(tvm_pkg)), "-O3", "-std=c++17", "-fPIC"]

    def compile(self, output_path: str | os.PathLike[str]) -> None:
        """Compiles the source code to an object file. Raises ``ValueError`` with the messages of the compiler if this fails."""
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "main.cpp"
            source.write_text(self.source_code, encoding="utf-8")
            options = [option for option in self.compile_options if option != "-c"]
            _run([_compiler(self.compiler), *options, "-c", str(source), "-o", os.fspath(output_path)])

    def load(self) -> NativeLibrary:
        """Compiles and loads the source code."""
        from pliant.relax.frontend.nn._native_functions import NativeLibrary

        with tempfile.TemporaryDirectory() as folder:
            compiled = str(Path(folder) / "main.o")
            self.compile(compiled)
            return NativeLibrary(_link([compiled], [], self.compiler), list(self.symbols))


def _read_source(source: str | os.PathLike[str]) -> str:
    """Returns source code. A string that is the path of a file stands for the contents of the file."""
    if isinstance(source, os.PathLike):
        path = Path(source)
        if not path.is_file():
            raise ValueError(f"there is no file '{path}'")
        return path.read_text(encoding="utf-8")
    if "\n" not in source and len(source) < 4096 and Path(source).is_file():
        return Path(source).read_text(encoding="utf-8")
    return source


def _compiler(chosen: str | None) -> str:
    for name in [chosen] if chosen else [os.environ.get("CXX"), "c++", "g++", "clang++"]:
        if name and (path := shutil.which(name)):
            return path
    raise UnsupportedError("native code of external modules requires a C++ compiler: install one, or set the variable CXX")


def _link(objects: list[str], options: list[str], compiler: str | None) -> bytes:
    """Links object files to a shared library and returns its bytes."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "module.so"
        _run([_compiler(compiler), "-shared", *options, *objects, "-o", str(library)])
        return library.read_bytes()


def _run(command: list[str]) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise ValueError(f"the compiler of an external module failed:\n{result.stderr.strip()}")


__all__ = ["ExternModule", "ObjectModule", "SourceModule"]
