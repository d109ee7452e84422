//! The extension module `pliant._core`: the Rust part of the Python package.
//!
//! This crate contains no compiler logic. Every class is a frozen handle to a value of another crate, and every
//! function converts its arguments, calls one function and converts the result. The Python files of the package add
//! names and documentation.

mod analyzer;
mod error;
mod gil_and_panics;
mod ir_module;
mod nesting_limit;
mod onnx_file;
mod onnx_import;
mod relax;
mod runtime;
mod script_parsing;
mod source_texts;
mod te;
mod tir;
mod transform;
mod tvm_compatibility;

use pyo3::prelude::*;

#[global_allocator]
static ALLOCATOR: pliant::Allocator = pliant::Allocator;

/// The extension module `pliant._core`, the Rust part of the Python package.
#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::analyzer::{Analyzer, ConstIntBound, ConstraintScope, ModularSet};
    #[pymodule_export]
    use crate::ir_module::{
        IRModule, highlight_script, module_input_problems, recursive_groups, structural_difference,
        structural_hash, verify_function, verify_module,
    };
    #[pymodule_export]
    use crate::onnx_file::{OnnxFile, OnnxValueInfo};
    #[pymodule_export]
    use crate::onnx_import::{check_onnx, import_onnx, onnx_operators};
    #[pymodule_export]
    use crate::runtime::ahead_of_time::export_library;
    #[pymodule_export]
    use crate::runtime::device::{Device, cpu, device};
    #[pymodule_export]
    use crate::runtime::exec_builder::{ExecBuilder, Operand};
    #[pymodule_export]
    use crate::runtime::executable_and_model::{Executable, Model, compile_module};
    #[pymodule_export]
    use crate::runtime::explorer::explore_module;
    #[pymodule_export]
    use crate::runtime::model_description::{InputInfo, ModelStats};
    #[pymodule_export]
    use crate::runtime::ndarray::{NDArray, array, empty, from_dlpack};
    #[pymodule_export]
    use crate::runtime::packed_functions::{
        PackedFunction, registry_get, registry_names, registry_register, registry_remove,
    };
    #[pymodule_export]
    use crate::runtime::profile::{Profile, machine_peak_gflops};
    #[pymodule_export]
    use crate::runtime::reference_interpreter::interpret;
    #[pymodule_export]
    use crate::runtime::run_options::CancelToken;
    #[pymodule_export]
    use crate::runtime::shape_tuple::ShapeTuple;
    #[pymodule_export]
    use crate::runtime::value_conversion::Object;
    #[pymodule_export]
    use crate::runtime::virtual_machine::{VMFunction, VirtualMachine};
    #[pymodule_export]
    use crate::script_parsing::{check_script, parse_script};
    #[pymodule_export]
    use crate::source_texts::source_texts;
    #[pymodule_export]
    use crate::tvm_compatibility::set_tvm_compatibility;

    #[pymodule_export]
    use crate::te::compute_and_reduce::{
        te_checked, te_compute, te_placeholder, te_reduce, te_reduce_axis, te_reduce_with,
    };
    #[pymodule_export]
    use crate::te::prim_func::{PrimFunc, te_create_prim_func, tir_renew_defs};
    #[pymodule_export]
    use crate::te::statement_stages::{
        TupleReduction, te_extern, te_extern_primfunc, te_reduce_several, te_scan,
    };
    #[pymodule_export]
    use crate::te::tensor::{ComputeOp, ExternOp, Operation, PlaceholderOp, ScanOp, Tensor};
    #[pymodule_export]
    use crate::te::topi::{has_te, te_operator};
    #[pymodule_export]
    use crate::tir::axes::{IterVar, Range};
    #[pymodule_export]
    use crate::tir::prim_expr::PrimExpr;
    #[pymodule_export]
    use crate::tir::prim_func_body::{PrimFuncBody, tir_operands, tir_with_operands};
    #[pymodule_export]
    use crate::tir::scalar_expr_classes::{
        Add, And, Call, Cast, Div, EQ, FloatImm, FloorDiv, FloorMod, GE, GT, IntImm, LE, LT, Max,
        Min, Mod, Mul, NE, Not, Or, ProducerLoad, Reduce, Select, SizeVar, StringImm, Sub, Var,
    };
    #[pymodule_export]
    use crate::tir::scalar_functions::{
        has_reshape_pattern, tir_binary, tir_call, tir_call_extern, tir_call_typed, tir_ceildiv,
        tir_const, tir_free_vars, tir_let, tir_limit, tir_not, tir_select, tir_substitute,
    };

    #[pymodule_export]
    use crate::tir::schedule::{BlockHandle, LoopHandle, ScheduleState, check_tensor_intrin};
    #[pymodule_export]
    use crate::tir::vector_exprs::{Broadcast, Ramp};

    /// The submodule `relax`: classes and functions of the graph level.
    #[pymodule]
    mod relax {
        #[pymodule_export]
        use crate::relax::analysis::{
            all_bindings, call_struct_info, erase_struct_info, find_vars, has_impure_call,
            post_order, static_struct_info, struct_info_check, struct_info_dims, struct_info_lca,
            struct_info_vars, symbolic_vars, use_chains, uses_around,
        };
        #[pymodule_export]
        use crate::relax::binding_blocks::{
            Binding, BindingBlock, DataflowBlock, If, MatchCast, SeqExpr, VarBinding,
        };
        #[pymodule_export]
        use crate::relax::block_builder::BlockBuilder;
        #[pymodule_export]
        use crate::relax::block_rewriter::BlockRewriter;
        #[pymodule_export]
        use crate::relax::classes::struct_info::{
            FuncStructInfo, ObjectStructInfo, PrimStructInfo, ShapeStructInfo, StructInfo,
            TensorStructInfo, TupleStructInfo,
        };
        #[pymodule_export]
        use crate::relax::classes::{
            Call, Constant, DataTypeImm, DataflowVar, Expr, ExternFunc, GlobalVar, PrimValue,
            ShapeExpr, StringImm, Tuple, TupleGetItem, Var, relax_const,
        };
        #[pymodule_export]
        use crate::relax::dpl::{
            PatternNode, TemplateRule, pattern_match_block, pattern_rewrite_bindings,
            pattern_rewrite_calls,
        };
        #[pymodule_export]
        use crate::relax::function::Function;
        #[pymodule_export]
        use crate::relax::operators::{
            OpFunction, call_dps, call_kernel, call_packed, get_op, op_gradient, op_names,
        };
        #[pymodule_export]
        use crate::relax::user_operators::{register_te_gradient, register_te_op};
    }

    /// The submodule `transform`: passes. A function with a capitalized name creates the pass of that name, and its
    /// arguments are the parameters of the pass.
    #[pymodule]
    mod transform {
        #[pymodule_export]
        use crate::transform::external_codegen::{
            backend_codegens, backend_patterns, fuse_ops_by_pattern, offload_rules,
            register_backend_codegen, register_backend_patterns, register_offload_rule,
            remove_offload_rule, run_codegen,
        };
        #[pymodule_export]
        use crate::transform::fuse_and_legalize::{fuse_ops_pass, legalize_ops_pass};
        #[pymodule_export]
        use crate::transform::graph_passes::{
            bind_params, bind_symbolic_vars, bundle_model_params, convert_to_dataflow,
            dead_code_elimination, eliminate_common_subexpr, fold_constant, gradient,
            lift_transform_params, topological_sort, update_param_struct_info,
        };
        #[pymodule_export]
        use crate::transform::instrument::CoreInstrument;
        #[pymodule_export]
        use crate::transform::rust_pass::CorePass;
        #[pymodule_export]
        use crate::transform::{
            apply_pass, check_config, config_table, pass_table, register_config, unknown_pass,
        };
    }

    use pyo3::prelude::*;
    use pyo3::types::{PyDict, PyModule};

    /// Initializes the module: registers the library's packed functions, which programs call by name, installs exit
    /// handlers, and allocates a memory reserve for failed allocations.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // The importing thread is usually the main thread.
        pliant::prepare_exit();
        pliant::prepare_for_shortage();
        pliant::register_library();
        crate::runtime::ctrl_c_interrupts::register_exit_handler(module.py())
    }

    /// Runs the command `pliant`. The first argument is the name of the program. Returns the exit status.
    #[pyfunction]
    fn cli_main(py: Python<'_>, argv: Vec<std::ffi::OsString>) -> crate::error::Result<i32> {
        crate::gil_and_panics::run_detached(py, || Ok(pliant_cli::main(argv)))
    }

    /// Sets the maximum number of bytes that Pliant may hold at a time. With `None`, the limit follows the memory that
    /// is available on the machine.
    #[pyfunction]
    #[pyo3(signature = (bytes))]
    fn set_memory_limit(bytes: Option<usize>) {
        pliant::set_memory_limit(bytes);
    }

    /// Returns the memory limit in bytes (`None` if no limit was set), and the number of bytes held now.
    #[pyfunction]
    fn memory_state() -> (Option<usize>, usize) {
        (pliant::memory_limit(), pliant::held_bytes())
    }

    /// The version and the build configuration of this extension.
    #[pyfunction]
    fn build_info(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let info = PyDict::new(py);
        let backends: Vec<&str> =
            pliant::Target::built_in().into_iter().map(pliant::Target::name).collect();
        info.set_item("version", env!("CARGO_PKG_VERSION"))?;
        info.set_item("profile", if cfg!(debug_assertions) { "debug" } else { "release" })?;
        info.set_item("target", format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS))?;
        info.set_item("backends", backends)?;
        info.set_item("rust", env!("CARGO_PKG_RUST_VERSION"))?;
        Ok(info)
    }
}
