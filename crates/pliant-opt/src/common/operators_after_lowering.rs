//! The operators that occur only after lowering, functions that create calls of them, and access to the functions of a module by
//! name.

use std::sync::Arc;

use pliant_ir::attr_names::NUM_INPUT;
use pliant_ir::op::CALL_BUILTIN_WITH_CTX;
pub use pliant_ir::op::NULL_VALUE;
use pliant_ir::relax::{Callee, Expr, ExprData, Function, Type, TypeData, Var};
use pliant_ir::{Attrs, BaseFunc, DType, IRModule, Op};
use pliant_pass::binding_rewrites::reachable_seqs;
use pliant_pass::{PassError, Problem};
use rustc_hash::FxHashMap;

/// `R.builtin.alloc_tensor(shape, dtype, device)`: allocates a tensor.
pub const ALLOC_TENSOR: Op = Op::new("relax.builtin.alloc_tensor");
/// `R.make_closure(func, captured)`: combines a function with the values that it captures.
pub const MAKE_CLOSURE: Op = Op::new("relax.make_closure");
/// `R.invoke_closure(closure, args)`: calls a closure that may have side effects.
pub const INVOKE_CLOSURE: Op = Op::new("relax.invoke_closure");
/// `R.invoke_pure_closure(closure, args)`: calls a closure without side effects.
pub const INVOKE_PURE_CLOSURE: Op = Op::new("relax.invoke_pure_closure");
/// `R.memory.alloc_storage(size, device, scope, dtype)`: allocates a storage. `size` is a shape of one dim, in bytes.
pub const MEMORY_ALLOC_STORAGE: Op = Op::new("relax.memory.alloc_storage");
/// `R.memory.alloc_tensor(storage, offset, shape, dtype)`: creates a tensor in a storage, at an offset in bytes.
pub const MEMORY_ALLOC_TENSOR: Op = Op::new("relax.memory.alloc_tensor");
/// `R.memory.kill_storage(storage)`: ends the life of a storage, so that its memory can be reused.
pub const MEMORY_KILL_STORAGE: Op = Op::new("relax.memory.kill_storage");
/// `R.memory.kill_tensor(tensor)`: ends the life of a tensor, so that its memory can be reused.
pub const MEMORY_KILL_TENSOR: Op = Op::new("relax.memory.kill_tensor");
/// `R.vm.alloc_storage(size, device, dtype, scope)`: the instruction of the VM that allocates a storage.
pub const VM_ALLOC_STORAGE: Op = Op::new("relax.vm.alloc_storage");
/// `R.vm.alloc_tensor(storage, offset, shape, dtype)`: the instruction of the VM that creates a tensor in a storage.
pub const VM_ALLOC_TENSOR: Op = Op::new("relax.vm.alloc_tensor");
/// `R.vm.kill_object(object)`: the instruction of the VM that ends the life of a tensor or storage.
pub const VM_KILL_OBJECT: Op = Op::new("relax.vm.kill_object");
/// `R.memory.ensure_zero_offset(x)`: returns its operand unchanged.
pub const ENSURE_ZERO_OFFSET: Op = Op::new("relax.memory.ensure_zero_offset");
/// `R.reshape(x, shape)`: a tensor with the elements of `x` and another shape.
pub const RESHAPE: Op = Op::new("relax.reshape");

/// Whether an operand is `R.null_value()`, which stands for an absent optional operand.
pub fn is_absent(func: &Function, e: Expr) -> bool {
    matches!(func.expr(e), ExprData::Call { callee: Callee::Op(op), .. } if *op == NULL_VALUE)
}

/// Creates a call of an operator without attributes. `ty` is the type of the result.
pub fn op_call(func: &mut Function, op: Op, args: &[Expr], ty: Type) -> Expr {
    func.call(Callee::Op(op), args, Attrs::default(), &[], ty)
}

/// Creates a call `R.call_packed(name, args...)` of a packed function. `ty` is the type of the result.
pub fn packed_call(func: &mut Function, name: &str, args: &[Expr], ty: Type) -> Expr {
    let callee = func.extern_func(name);
    func.call(Callee::Expr(callee), args, Attrs::default(), &[ty], ty)
}

/// Creates a call `R.call_builtin_with_ctx(name, (args...))` of a builtin of the VM. `ty` is the type of the result.
pub fn builtin_call(func: &mut Function, name: &str, args: &[Expr], ty: Type) -> Expr {
    let callee = func.extern_func(name);
    let args = func.tuple(args);
    func.call(Callee::Op(CALL_BUILTIN_WITH_CTX), &[callee, args], Attrs::default(), &[ty], ty)
}

/// The expression `R.prim_value(value)` of type int64.
pub fn prim_int(func: &mut Function, value: i64) -> Expr {
    let value = func.syms.int(value);
    func.int_value(value, DType::Int64)
}

/// The type `R.Object`.
pub fn any_ty(func: &mut Function) -> Type {
    func.intern(TypeData::Any)
}

/// The type `R.Tuple`, the result of calls that return nothing.
pub fn unit_ty(func: &mut Function) -> Type {
    func.intern(TypeData::unit())
}

/// Looks up a graph function by a name that the user gave as an argument of a pass.
///
/// # Errors
/// If the module has no graph function with this name. The message lists the graph functions.
pub fn relax_func<'a>(
    module: &'a IRModule,
    name: &str,
    pass: &str,
) -> Result<&'a Arc<Function>, PassError> {
    if let Some(BaseFunc::Relax(func)) = module.get(name) {
        return Ok(func);
    }
    let names = module.relax_funcs().map(|(n, _)| &**n);
    let what = match module.get(name) {
        Some(_) => format!("'{name}' is a loop function, but {pass} needs a graph function"),
        None => format!("{pass}: the module has no function '{name}'"),
    };
    let help = format_names("the graph functions of the module are:", names);
    Err(PassError::User(vec![Problem::new(what).with_help(help)]))
}

/// Formats a list of names for an error message after the text `intro`. Long lists are shortened.
pub fn format_names<'a>(intro: &str, names: impl Iterator<Item = &'a str>) -> String {
    const MAX_NAMES: usize = 20;
    let names: Vec<&str> = names.collect();
    let more = if names.len() > MAX_NAMES { ", ..." } else { "" };
    match names.len() {
        0 => format!("{intro} none"),
        n => format!("{intro} {}{more}", names[..n.min(MAX_NAMES)].join(", ")),
    }
}

/// Returns the attribute `num_input` of a function: the number of leading parameters that are inputs of the model. The other
/// parameters are weights. `None` if the function does not have the attribute.
///
/// # Errors
/// If the attribute is not an integer from 0 to the number of parameters.
pub fn num_input(func: &Function) -> Result<Option<usize>, PassError> {
    let Some(value) = func.attrs.get(NUM_INPUT) else { return Ok(None) };
    let params = func.params().len();
    match value.as_int().and_then(|n| usize::try_from(n).ok()).filter(|&n| n <= params) {
        Some(count) => Ok(Some(count)),
        None => Err(PassError::user(format!(
            "the attribute '{NUM_INPUT}' is {value:?}, but must be an integer from 0 to {params}, the number of parameters"
        ))),
    }
}

/// Returns the variables that are bound to `R.null_value()` (an absent optional operand), each with the expression of this call.
pub(crate) fn null_vars(func: &Function) -> FxHashMap<Var, Expr> {
    let mut nulls = FxHashMap::default();
    for seq in reachable_seqs(func) {
        for &b in &func.seq(seq).blocks {
            for binding in &func.block(b).bindings {
                if is_absent(func, binding.value) {
                    nulls.insert(binding.var, binding.value);
                }
            }
        }
    }
    nulls
}

/// If an operand is a variable that is bound to `R.null_value()`, returns this call; otherwise returns the operand.
pub(crate) fn resolve_null(nulls: &FxHashMap<Var, Expr>, func: &Function, arg: Expr) -> Expr {
    match func.expr(arg) {
        ExprData::Var(v) => nulls.get(v).copied().unwrap_or(arg),
        _ => arg,
    }
}
