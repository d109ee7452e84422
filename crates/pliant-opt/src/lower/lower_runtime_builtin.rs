//! # What it does
//! Lowers memory operators, and operators that the VM implements itself, to VM operators and calls of `vm.builtin.*`. An operator
//! whose operands have unknown rank or data type becomes a call of `pliant.call_operator`, which inspects the operands at run
//! time. The first two arguments of `pliant.call_operator` are strings: the name of the operator, and the text of the call with
//! operands named `a0`, `a1`, ...
//!
//! # Before
//! ```python
//! @R.function(pure=False)
//! def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(dtype="float32")) -> R.Tensor(dtype="float32"):
//!     n = T.int64()
//!     storage: R.Object = R.memory.alloc_storage(R.shape([n * 16]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
//!     lv: R.Tensor((n, 4), "float32") = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([n, 4]), R.dtype("float32"))
//!     _: R.Tuple = R.memory.kill_tensor(lv)
//!     lv1: R.Tensor((n * 4,), "float32") = R.reshape(x, R.shape([n * 4]))
//!     lv2: R.Tensor(dtype="float32") = R.sum(y, axis=[0])
//!     return lv2
//! ```
//!
//! # After
//! ```python
//! @R.function(pure=False)
//! def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(dtype="float32")) -> R.Tensor(dtype="float32"):
//!     n = T.int64()
//!     storage: R.Object = R.vm.alloc_storage(R.shape([n * 16]), R.prim_value(0), R.dtype("uint8"), R.str("global"))
//!     lv: R.Tensor((n, 4), "float32") = R.vm.alloc_tensor(storage, R.prim_value(0), R.shape([n, 4]), R.dtype("float32"))
//!     _: R.Tuple = R.vm.kill_object(lv)
//!     lv1: R.Tensor((n * 4,), "float32") = R.call_packed("vm.builtin.reshape", x, R.shape([n * 4]), sinfo_args=(R.Tensor((n * 4,), "float32"),))
//!     lv2: R.Tensor(dtype="float32") = R.call_packed("pliant.call_operator", R.str("relax.sum"), R.str("R.sum(a0, axis=[0])"), y, sinfo_args=(R.Tensor(dtype="float32"),))
//!     return lv2
//! ```
//!
//! # Requires
//! No `R.builtin.alloc_tensor` is left ([`LowerAllocTensor`](crate::memory::lower_alloc_tensor)).
//!
//! # Keeps
//! The names and types of variables.
//!
//! # Never
//! Removes a binding. Adds bindings, except one for each field of a tuple variable that is an operand of a closure call.

use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, Type, TypeData};
use pliant_ir::{Attrs, Op};
use pliant_ops::dynamic_operator_calls;
use pliant_pass::binding_rewrites::{Namer, rewrite_bindings};
use pliant_pass::{FunctionPass, PassContext, PassError};

use crate::common::operators_after_lowering::{
    INVOKE_CLOSURE, INVOKE_PURE_CLOSURE, MAKE_CLOSURE, MEMORY_ALLOC_STORAGE, MEMORY_ALLOC_TENSOR,
    MEMORY_KILL_STORAGE, MEMORY_KILL_TENSOR, VM_ALLOC_STORAGE, VM_ALLOC_TENSOR, VM_KILL_OBJECT,
    op_call, packed_call,
};
use crate::common::operators_after_lowering::{null_vars, resolve_null};

/// Operators that become calls of a VM builtin with the same operands, each with the name of the builtin.
pub const BUILTIN_OPS: &[(Op, &str)] = &[
    (Op::new("relax.reshape"), "vm.builtin.reshape"),
    (Op::new("relax.shape_of"), "vm.builtin.shape_of"),
    (Op::new("relax.tensor_to_shape"), "vm.builtin.tensor_to_shape"),
    (MAKE_CLOSURE, "vm.builtin.make_closure"),
    (INVOKE_CLOSURE, "vm.builtin.invoke_closure"),
    (INVOKE_PURE_CLOSURE, "vm.builtin.invoke_pure_closure"),
];
use crate::common::purity_after_lowering::allow_hidden_effects;

/// Operators on closures, whose second operand is a tuple of captured values or arguments.
const CLOSURE_OPS: [Op; 3] = [MAKE_CLOSURE, INVOKE_CLOSURE, INVOKE_PURE_CLOSURE];

/// The pass that lowers memory operators to operators and builtins of the virtual machine. See the module documentation.
pub struct LowerRuntimeBuiltin;

impl FunctionPass for LowerRuntimeBuiltin {
    fn name(&self) -> &str {
        "LowerRuntimeBuiltin"
    }

    fn run_on(&self, _: &str, func: &mut Function, _: &PassContext) -> Result<(), PassError> {
        allow_hidden_effects(func);
        let nulls = null_vars(func);
        let mut namer = None;
        rewrite_bindings(func, |func, mut binding, out| {
            if let ExprData::Call { callee: Callee::Op(op), args, attrs, .. } =
                func.expr(binding.value)
            {
                let (op, attrs, mut args) = (*op, *attrs, func.list(*args).to_vec());
                if CLOSURE_OPS.contains(&op) {
                    let namer = namer.get_or_insert_with(|| Namer::new(func));
                    expand_closure_operands(func, op, &mut args, namer, out)?;
                }
                let ty = func.expr_ty(binding.value);
                let attrs = func.call_attrs(attrs).clone();
                let operands: Vec<Expr> =
                    args.iter().map(|&a| resolve_null(&nulls, func, a)).collect();
                let lowered = match dynamic_operator_call(func, op, &operands, &attrs, ty) {
                    Some(call) => Some(call),
                    None => lower_op(func, op, &args, ty)?,
                };
                binding.value = lowered.unwrap_or(binding.value);
            }
            out.push(binding);
            Ok(())
        })
    }
}

/// Returns the call to which a memory operator or an operator with a VM builtin is lowered; `None` for other operators.
fn lower_op(
    func: &mut Function,
    op: Op,
    args: &[Expr],
    ty: Type,
) -> Result<Option<Expr>, PassError> {
    Ok(Some(match (op, args) {
        (MEMORY_ALLOC_STORAGE, &[size, device, scope, dtype]) => {
            op_call(func, VM_ALLOC_STORAGE, &[size, device, dtype, scope], ty)
        }
        (MEMORY_ALLOC_TENSOR, &[storage, offset, shape, dtype]) => {
            op_call(func, VM_ALLOC_TENSOR, &[storage, offset, shape, dtype], ty)
        }
        (MEMORY_KILL_STORAGE | MEMORY_KILL_TENSOR, &[object]) => {
            op_call(func, VM_KILL_OBJECT, &[object], ty)
        }
        (
            MEMORY_ALLOC_STORAGE | MEMORY_ALLOC_TENSOR | MEMORY_KILL_STORAGE | MEMORY_KILL_TENSOR,
            _,
        ) => {
            let expected =
                if matches!(op, MEMORY_ALLOC_STORAGE | MEMORY_ALLOC_TENSOR) { 4 } else { 1 };
            return Err(PassError::internal(format!(
                "a call of {op} has {} operands, but must have {expected}",
                args.len()
            )));
        }
        _ => match BUILTIN_OPS.iter().find(|(builtin_op, _)| *builtin_op == op) {
            Some((_, builtin)) => {
                let args = flatten_operands(func, args);
                packed_call(func, builtin, &args, ty)
            }
            None => return Ok(None),
        },
    }))
}

/// If an operator has no loop function because the rank or data type of an operand is unknown, returns the call of
/// `pliant.call_operator` that executes it. `None` for other operators.
fn dynamic_operator_call(
    func: &mut Function,
    op: Op,
    args: &[Expr],
    attrs: &Attrs,
    ty: Type,
) -> Option<Expr> {
    if !pliant_ops::needs_shapes(op)
        || !pliant_ops::legalize(func, op, args, attrs, ty).is_err_and(|e| e.unknown)
    {
        return None;
    }
    let (text, operands) = dynamic_operator_calls::describe_call(func, op, args, attrs);
    let mut call_args = vec![func.str_value(op.name()), func.str_value(&text)];
    call_args.extend(operands);
    Some(packed_call(func, dynamic_operator_calls::CALL_OPERATOR, &call_args, ty))
}

/// Replaces a tuple variable in the operands of a closure operator by a tuple expression of its fields, because the fields become
/// separate operands of the builtin.
fn expand_closure_operands(
    func: &mut Function,
    op: Op,
    args: &mut [Expr],
    namer: &mut Namer,
    out: &mut Vec<Binding>,
) -> Result<(), PassError> {
    let [_, operands] = args else {
        return Err(PassError::internal(format!(
            "a call of {op} has {} operands, but must have 2",
            args.len()
        )));
    };
    if func.tuple_fields(*operands).is_some() {
        return Ok(());
    }
    let TypeData::Tuple(fields) = func.ty(*operands) else {
        return Err(PassError::unsupported(
            format!(
                "the second operand of a call of {op} is a tuple of unknown length, which is not supported"
            ),
            "cast the tuple to a tuple type with R.match_cast, so that its length is known",
        ));
    };
    let mut values = Vec::with_capacity(fields.len());
    for i in 0..fields.len() as u32 {
        let item = func.tuple_get_item(*operands, i);
        values.push(namer.bind(func, "operand", item, out));
    }
    *operands = func.tuple(&values);
    Ok(())
}

/// Returns the operands with tuple expressions replaced by their fields, as VM builtins expect them.
fn flatten_operands(func: &Function, args: &[Expr]) -> Vec<Expr> {
    let mut out = Vec::with_capacity(args.len());
    for &arg in args {
        match func.tuple_fields(arg) {
            Some(fields) => out.extend_from_slice(fields),
            None => out.push(arg),
        }
    }
    out
}
