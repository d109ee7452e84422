//! Names of the operators that only the lowered stages use, and constructors of their calls.

use std::sync::Arc;

use pliant_ir::attr_names::NUM_INPUT;
use pliant_ir::op::CALL_BUILTIN_WITH_CTX;
pub use pliant_ir::op::NULL_VALUE;
use pliant_ir::relax::{Callee, Expr, ExprData, Function, Type, TypeData, Var};
use pliant_ir::{Attrs, BaseFunc, DType, IRModule, Op};
use pliant_pass::rewrite::reachable_seqs;
use pliant_pass::{PassError, Problem};
use rustc_hash::FxHashMap;

/// `R.builtin.alloc_tensor(shape, dtype, device)`: a new tensor.
pub const ALLOC_TENSOR: Op = Op::new("relax.builtin.alloc_tensor");
/// `R.make_closure(func, captured)`: a function with its captured values.
pub const MAKE_CLOSURE: Op = Op::new("relax.make_closure");
/// `R.invoke_closure(closure, args)`: a call with effects.
pub const INVOKE_CLOSURE: Op = Op::new("relax.invoke_closure");
/// `R.invoke_pure_closure(closure, args)`: a call without effects.
pub const INVOKE_PURE_CLOSURE: Op = Op::new("relax.invoke_pure_closure");
/// `R.memory.alloc_storage(size, device, scope, dtype)`: a block of memory; `size` is a shape of
/// one dim, in bytes.
pub const MEMORY_ALLOC_STORAGE: Op = Op::new("relax.memory.alloc_storage");
/// `R.memory.alloc_tensor(storage, offset, shape, dtype)`: a tensor inside a block of memory.
pub const MEMORY_ALLOC_TENSOR: Op = Op::new("relax.memory.alloc_tensor");
/// `R.memory.kill_storage(storage)`: the storage is no longer used.
pub const MEMORY_KILL_STORAGE: Op = Op::new("relax.memory.kill_storage");
/// `R.memory.kill_tensor(tensor)`: the tensor is no longer used.
pub const MEMORY_KILL_TENSOR: Op = Op::new("relax.memory.kill_tensor");
/// `R.vm.alloc_storage(size, device, dtype, scope)`.
pub const VM_ALLOC_STORAGE: Op = Op::new("relax.vm.alloc_storage");
/// `R.vm.alloc_tensor(storage, offset, shape, dtype)`.
pub const VM_ALLOC_TENSOR: Op = Op::new("relax.vm.alloc_tensor");
/// `R.vm.kill_object(object)`.
pub const VM_KILL_OBJECT: Op = Op::new("relax.vm.kill_object");
/// `R.memory.ensure_zero_offset(x)`: the tensor itself.
pub const ENSURE_ZERO_OFFSET: Op = Op::new("relax.memory.ensure_zero_offset");
/// `R.reshape(x, shape)`.
pub const RESHAPE: Op = Op::new("relax.reshape");

/// Whether an operand is an absent optional operand.
pub fn is_absent(func: &Function, e: Expr) -> bool {
    matches!(func.expr(e), ExprData::Call { callee: Callee::Op(op), .. } if *op == NULL_VALUE)
}

/// A call of an operator without attributes, with that result type.
pub fn op_call(func: &mut Function, op: Op, args: &[Expr], ty: Type) -> Expr {
    func.call(Callee::Op(op), args, Attrs::default(), &[], ty)
}

/// `R.call_packed(name, args...)` with that result type.
pub fn packed_call(func: &mut Function, name: &str, args: &[Expr], ty: Type) -> Expr {
    let callee = func.extern_func(name);
    func.call(Callee::Expr(callee), args, Attrs::default(), &[ty], ty)
}

/// `R.call_builtin_with_ctx(name, (args...))` with that result type.
pub fn builtin_call(func: &mut Function, name: &str, args: &[Expr], ty: Type) -> Expr {
    let callee = func.extern_func(name);
    let args = func.tuple(args);
    func.call(Callee::Op(CALL_BUILTIN_WITH_CTX), &[callee, args], Attrs::default(), &[ty], ty)
}

/// `R.prim_value(value)` of type int64.
pub fn prim_int(func: &mut Function, value: i64) -> Expr {
    let value = func.syms.int(value);
    func.int_value(value, DType::Int64)
}

/// `R.Object`.
pub fn any_ty(func: &mut Function) -> Type {
    func.intern(TypeData::Any)
}

/// `R.Tuple`, the type of calls that return nothing.
pub fn unit_ty(func: &mut Function) -> Type {
    func.intern(TypeData::unit())
}

/// The graph function with a name that the user passed to a pass.
///
/// # Errors
/// If it does not exist; the error lists the existing names.
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
        Some(_) => format!("{pass} works on graph functions, and '{name}' is a loop function"),
        None => format!("there is no function '{name}' for {pass} to work on"),
    };
    let help = format_names("the graph functions are", names);
    Err(PassError::User(vec![Problem::new(what).with_help(help)]))
}

/// A list of names for a message.
pub fn format_names<'a>(intro: &str, names: impl Iterator<Item = &'a str>) -> String {
    const MAX_NAMES: usize = 20;
    let names: Vec<&str> = names.collect();
    let more = if names.len() > MAX_NAMES { ", ..." } else { "" };
    match names.len() {
        0 => format!("{intro} none"),
        n => format!("{intro} {}{more}", names[..n.min(MAX_NAMES)].join(", ")),
    }
}

/// The number of parameters that are inputs, for a function of a model.
///
/// # Errors
/// If the attribute is not a valid number of parameters.
pub fn num_input(func: &Function) -> Result<Option<usize>, PassError> {
    let Some(value) = func.attrs.get(NUM_INPUT) else { return Ok(None) };
    let params = func.params().len();
    match value.as_int().and_then(|n| usize::try_from(n).ok()).filter(|&n| n <= params) {
        Some(count) => Ok(Some(count)),
        None => Err(PassError::user(format!(
            "the attribute '{NUM_INPUT}' counts the inputs among the {params} parameters and cannot be {value:?}"
        ))),
    }
}

/// The variables bound to `R.null_value()`, with that value.
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

/// An operand, or the `R.null_value()` that its variable is bound to.
pub(crate) fn resolve_null(nulls: &FxHashMap<Var, Expr>, func: &Function, arg: Expr) -> Expr {
    match func.expr(arg) {
        ExprData::Var(v) => nulls.get(v).copied().unwrap_or(arg),
        _ => arg,
    }
}
