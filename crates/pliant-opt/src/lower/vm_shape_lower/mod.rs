//! # What it does
//! Computes, checks and reads symbolic sizes explicitly. A function with symbolic sizes gets a shape heap: an int64 tensor with a
//! slot for each symbol and each computed size. On entry, the rank, dtype, constant dims and repeated symbols of the parameters are
//! checked. Dims that are a symbol are stored first. Then composite dims (`n * 2`, `n + 1`, `n * 4 + m`) are solved for their one
//! unknown symbol. `R.match_cast` and results of packed functions are checked in the same way, and so is the function's result
//! unless its type is proved. Generated loop functions (`shape_func*`) compute the other sizes as soon as their symbols are known,
//! and check for 64-bit overflow. Every shape and integer that depends on symbols is then read from the heap.
//!
//! If the function returns the result of a call, the sizes of the result are checked before the call as far as the arguments
//! determine them, so that the call stays a tail call.
//!
//! A private function whose call sites are all known omits the checks whose conditions follow from the types of all arguments.
//!
//! Error messages use the names in the source. The last operand of a check describes it: the first line names the function and the
//! parameter. Each further line belongs to one dim and states the expected value and, after a tab, the origin of that value.
//!
//! # Before
//! ```python
//! @R.function(pure=False)
//! def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n * 2",), "float32"):
//!     n = T.int64()
//!     storage: R.Object = R.vm.alloc_storage(R.shape([n * 8]), R.prim_value(0), R.dtype("uint8"), R.str("global"))
//!     gv: R.Tensor((n * 2,), "float32") = R.vm.alloc_tensor(storage, R.prim_value(0), R.shape([n * 2]), R.dtype("float32"))
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function(pure=False)
//! def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(dtype="float32", ndim=1):
//!     n = T.int64()
//!     R.func_attr({"vm_shape_lowered": True})
//!     cls = Module
//!     shape_heap: R.Tensor((3,), dtype="int64") = R.call_builtin_with_ctx("vm.builtin.alloc_shape_heap", (R.prim_value(3),), sinfo_args=(R.Tensor((3,), dtype="int64"),))
//!     _: R.Tuple = R.call_packed("vm.builtin.check_tensor_info", x, R.prim_value(1), R.dtype("float32"), R.str("main: 'x'"), ...)
//!     _1: R.Tuple = R.call_packed("vm.builtin.match_shape", x, shape_heap, R.prim_value(1), R.prim_value(1), R.prim_value(0), R.str("main: 'x'"), ...)
//!     _2: R.Tuple = cls.shape_func_main_0(shape_heap)
//!     shape: R.Shape(ndim=1) = R.call_packed("vm.builtin.make_shape", shape_heap, R.prim_value(1), R.prim_value(1), R.prim_value(1), ...)
//!     storage: R.Object = R.vm.alloc_storage(shape, R.prim_value(0), R.dtype("uint8"), R.str("global"))
//!     shape1: R.Shape(ndim=1) = R.call_packed("vm.builtin.make_shape", shape_heap, R.prim_value(1), R.prim_value(1), R.prim_value(2), ...)
//!     gv: R.Tensor(dtype="float32", ndim=1) = R.vm.alloc_tensor(storage, R.prim_value(0), shape1, R.dtype("float32"))
//!     return gv
//!
//! @T.prim_func(private=True)
//! def shape_func_main_0(H: T.Buffer((3,), "int64")):
//!     ...
//! ```
//!
//! # Requires
//! Operators lowered to calls ([`CallTIRRewrite`](crate::lower::call_tir_rewrite),
//! [`LowerRuntimeBuiltin`](crate::lower::lower_runtime_builtin)), and no local functions. A function that still contains other
//! operators is left unchanged, because lowering them introduces sizes. The functions that it calls are also left unchanged,
//! because its types define some of their sizes.
//!
//! # Keeps
//! The order of existing calls. Types lose dims that mention symbols, except those of the
//! parameters.
//!
//! # Never
//! Rejects a program because of a property that it cannot prove; such a property is checked at run time. Omits a check of a
//! property that is not proved.
//!
//! # Files
//! | file | content |
//! |---|---|
//! | `lower_function` | lowers one function: inserts the calls that fill the shape heap, and replaces symbolic operands by reads |
//! | `shape_heap` | the slots of the shape heap at compile time: which are filled, and which terms must wait for symbols |
//! | `shape_functions` | generates the loop functions that compute sizes from other sizes |
//! | `linear_scalar_expressions` | computes scalars such as `i + 1` from scalar parameters, without the shape heap |
//! | `type_checks` | emits the run-time checks of types, which also define symbols |
//! | `known_argument_types` | finds argument checks of private functions that the types at all call sites prove |
//! | `tail_call_result_checks` | moves checks of a function's result in front of the call that computes it |
//! | `size_upper_bound_checks` | generates the checks of `tir_var_upper_bound` |
//! | `allocated_tensor_dims` | the dims and first writers of allocated tensors, for error messages |
//!
//! At run time, `pliant-vm/src/builtins/shape_heap.rs` implements the builtins that allocate, fill and read the shape heap.

mod allocated_tensor_dims;
mod known_argument_types;
mod linear_scalar_expressions;
mod lower_function;
mod shape_functions;
mod shape_heap;
mod size_upper_bound_checks;
mod tail_call_result_checks;
mod type_checks;

use std::sync::{Arc, Mutex};

use pliant_ir::op::{CALL_DPS_PACKED, CALL_TIR};
use pliant_ir::relax::visit::{bindings, called_globals};
use pliant_ir::relax::{Callee, ExprData, Function};
use pliant_ir::tir::PrimFunc;
use pliant_ir::{AttrValue, BaseFunc, IRModule, Op};
use pliant_ops::op_declaration::Legalize;
use pliant_pass::pass::for_each_relax;
use pliant_pass::{ModulePass, PassContext, PassError};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::common::operators_after_lowering::{
    ALLOC_TENSOR, MEMORY_ALLOC_STORAGE, MEMORY_ALLOC_TENSOR, MEMORY_KILL_STORAGE,
    MEMORY_KILL_TENSOR, RESHAPE,
};
use crate::common::purity_after_lowering::allow_hidden_effects;

/// A generated loop function with its name.
type NamedShapeFunc = (Arc<str>, PrimFunc);

/// The attribute of functions that this pass has already lowered.
pub const VM_SHAPE_LOWERED: &str = "vm_shape_lowered";

/// The pass that computes, checks and reads symbolic sizes explicitly. See the module documentation.
pub struct VmShapeLower;

impl ModulePass for VmShapeLower {
    fn name(&self) -> &str {
        "VMShapeLower"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let taken: FxHashSet<Arc<str>> = module.functions.keys().cloned().collect();
        let generated: Mutex<FxHashMap<Arc<str>, Vec<NamedShapeFunc>>> = Mutex::default();
        let facts = known_argument_types::caller_facts(&module);
        let not_lowerable = functions_not_lowerable_yet(&module);
        for_each_relax(&mut module, ctx, |name, func| {
            if func.attrs.contains_key(VM_SHAPE_LOWERED) || not_lowerable.contains(name) {
                return Ok(());
            }
            allow_hidden_effects(func);
            let shape_funcs =
                lower_function::lower_function(name, func, facts.get(name), &taken, ctx)?;
            func.attrs.insert(VM_SHAPE_LOWERED.into(), AttrValue::Bool(true));
            let mut generated = generated.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            generated.insert(name.into(), shape_funcs);
            Ok(())
        })?;
        let mut generated = generated.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        let names: Vec<Arc<str>> = module.functions.keys().cloned().collect();
        for name in names {
            for (shape_func_name, shape_func) in generated.remove(&name).unwrap_or_default() {
                module.insert(shape_func_name, shape_func);
            }
        }
        Ok(module)
    }
}

/// Returns the functions that contain operators which earlier passes must lower first, and the functions that they call.
fn functions_not_lowerable_yet(module: &IRModule) -> FxHashSet<Arc<str>> {
    let funcs = module.relax_funcs();
    let mut pending: Vec<Arc<str>> =
        funcs.filter(|(_, f)| has_unlowered_operators(f)).map(|(name, _)| name.clone()).collect();
    let mut not_lowerable = FxHashSet::default();
    while let Some(name) = pending.pop() {
        if let Some(BaseFunc::Relax(func)) = module.get(&name)
            && not_lowerable.insert(name)
        {
            pending.extend(called_globals(func));
        }
    }
    not_lowerable
}

/// Operators that every pipeline, even the shortest, lowers before this pass runs.
const EARLIER_STAGE_OPS: [Op; 8] = [
    CALL_TIR,
    CALL_DPS_PACKED,
    RESHAPE,
    ALLOC_TENSOR,
    MEMORY_ALLOC_STORAGE,
    MEMORY_ALLOC_TENSOR,
    MEMORY_KILL_STORAGE,
    MEMORY_KILL_TENSOR,
];

/// Whether a function contains operators that an earlier pass must lower first ([`EARLIER_STAGE_OPS`]).
fn has_unlowered_operators(func: &Function) -> bool {
    let lowered_earlier = |op: Op| {
        let decl = pliant_ops::registry().decl(op);
        EARLIER_STAGE_OPS.contains(&op)
            || decl.is_some_and(|d| !matches!(d.legalize, Legalize::Keep))
    };
    bindings(func).iter().any(|(_, binding)| match func.expr(binding.value) {
        ExprData::Call { callee: Callee::Op(op), .. } => lowered_earlier(*op),
        _ => false,
    })
}
