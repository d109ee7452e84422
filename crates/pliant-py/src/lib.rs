//! The extension module `pliant._core`: the Rust side of the Python package.
//!
//! Surfaces without logic: every class here is a frozen handle to a value of another crate, and every function
//! translates its arguments, calls one, and translates the result. Python files above add names and docs.

mod arith;
mod enter;
mod error;
mod module;
mod nesting;
mod relax;
mod runtime;
mod script;
mod te;
mod tir;
mod transform;

use pyo3::prelude::*;

/// The Rust side of the package.
#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::arith::{Analyzer, ConstIntBound, ConstraintScope, ModularSet};
    #[pymodule_export]
    use crate::module::{
        IRModule, highlight_script, structural_difference, structural_hash, verify_module,
    };
    #[pymodule_export]
    use crate::runtime::compiled::{Executable, InputInfo, Model, ModelStats, compile_module};
    #[pymodule_export]
    use crate::runtime::device::{Device, cpu, device};
    #[pymodule_export]
    use crate::runtime::exec_builder::{ExecBuilder, Operand};
    #[pymodule_export]
    use crate::runtime::machine::{VMFunction, VirtualMachine};
    #[pymodule_export]
    use crate::runtime::ndarray::{NDArray, array, empty, from_dlpack};
    #[pymodule_export]
    use crate::runtime::packed::{
        PackedFunction, registry_get, registry_names, registry_register, registry_remove,
    };
    #[pymodule_export]
    use crate::runtime::shape::ShapeTuple;
    #[pymodule_export]
    use crate::runtime::value::Object;
    #[pymodule_export]
    use crate::script::parse_script;
    #[pymodule_export]
    use crate::transform::{CorePass, pass_table, run_pipeline};

    #[pymodule_export]
    use crate::te::functions::{
        te_compute, te_placeholder, te_reduce, te_reduce_axis, te_reduce_with,
    };
    #[pymodule_export]
    use crate::te::prim_func::{PrimFunc, te_create_prim_func};
    #[pymodule_export]
    use crate::te::tensor::{IterVar, Operation, Range, Tensor};
    #[pymodule_export]
    use crate::tir::expr::{
        Add, And, Call, Cast, Div, EQ, FloatImm, FloorDiv, FloorMod, GE, GT, IntImm, LE, LT, Max,
        Min, Mod, Mul, NE, Not, Or, PrimExpr, ProducerLoad, Reduce, Select, SizeVar, StringImm,
        Sub, Var,
    };
    #[pymodule_export]
    use crate::tir::functions::{
        tir_binary, tir_call, tir_call_extern, tir_call_typed, tir_ceildiv, tir_const,
        tir_free_vars, tir_limit, tir_not, tir_select, tir_substitute,
    };

    /// The graph level.
    #[pymodule]
    mod relax {
        #[pymodule_export]
        use crate::relax::builder::BlockBuilder;
        #[pymodule_export]
        use crate::relax::classes::{
            Call, Constant, DataTypeImm, DataflowVar, Expr, ExternFunc, GlobalVar, If,
            LocalFunction, PrimValue, ShapeExpr, StringImm, Tuple, TupleGetItem, Var, relax_const,
        };
        #[pymodule_export]
        use crate::relax::infos::{
            FuncStructInfo, ObjectStructInfo, PrimStructInfo, ShapeStructInfo, StructInfo,
            TensorStructInfo, TupleStructInfo,
        };
        #[pymodule_export]
        use crate::relax::op::{OpFunction, call_dps, call_packed, get_op, op_names};
        #[pymodule_export]
        use crate::relax::views::{Binding, BindingBlock, Function, SeqExpr};
    }

    use pyo3::prelude::*;
    use pyo3::types::PyDict;

    /// The command line `pliant` with these arguments, the program's name first; returns the exit status.
    #[pyfunction]
    fn cli_main(py: Python<'_>, argv: Vec<std::ffi::OsString>) -> crate::error::Result<i32> {
        crate::enter::enter(py, || Ok(pliant_cli::main(argv)))
    }

    /// The version and how this extension was built.
    #[pyfunction]
    fn build_info(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let info = PyDict::new(py);
        info.set_item("version", env!("CARGO_PKG_VERSION"))?;
        info.set_item("profile", if cfg!(debug_assertions) { "debug" } else { "release" })?;
        info.set_item("target", format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS))?;
        info.set_item("backends", vec!["cranelift"])?;
        info.set_item("rust", env!("CARGO_PKG_RUST_VERSION"))?;
        Ok(info)
    }
}
