//! # What it does
//! Marks every function, local ones included, as one whose calls may have effects, says the same in the types of
//! function values, and turns `R.call_pure_packed(f, args...)` and `R.call_inplace_packed(f, args...)` into the plain
//! call of the packed function. From here on purity is no longer tracked.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor((4,), dtype="float32")) -> R.Object:
//!     gv: R.Object = R.call_pure_packed("f", x, sinfo_args=(R.Object,))
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function(pure=False)
//! def main(x: R.Tensor((4,), dtype="float32")) -> R.Object:
//!     gv: R.Object = R.call_packed("f", x, sinfo_args=(R.Object,))
//!     return gv
//! ```
//!
//! # Requires
//! [`ToNonDataflow`](crate::to_non_dataflow): dataflow blocks hold no calls with effects.
//!
//! # Keeps
//! The order of the bindings.
//!
//! # Never
//! Moves a call.

use pliant_ir::op::CALL_PURE_PACKED;
use pliant_ir::relax::{Callee, Expr, ExprData, Function, Type, TypeData};
use pliant_ir::{Attrs, Op};
use pliant_pass::rewrite::{reachable_funcs, rewrite_bindings};
use pliant_pass::{FunctionPass, PassContext, PassError};
use rustc_hash::FxHashMap;

const CALL_INPLACE_PACKED: Op = Op("relax.call_inplace_packed");

/// See the module's documentation.
pub struct RemovePurityChecking;

impl FunctionPass for RemovePurityChecking {
    fn name(&self) -> &str {
        "RemovePurityChecking"
    }

    fn run_on(&self, _: &str, func: &mut Function, _: &PassContext) -> Result<(), PassError> {
        for id in reachable_funcs(func) {
            func.func_mut(id).pure = false;
        }
        let mut types = Types::default();
        types.function(func);
        rewrite_bindings(func, |func, mut binding, out| {
            let ExprData::Call {
                callee: Callee::Op(CALL_PURE_PACKED | CALL_INPLACE_PACKED),
                args,
                ty_args,
                ..
            } = func.expr(binding.value).clone()
            else {
                out.push(binding);
                return Ok(());
            };
            let (args, mut ty_args) = (func.list(args).to_vec(), func.type_list(ty_args).to_vec());
            for ty in &mut ty_args {
                *ty = types.admit(func, *ty);
            }
            let Some((&callee, rest)) = args.split_first() else {
                return Err(PassError::internal(
                    "a call of a packed function without the function",
                ));
            };
            let ty = func.expr_ty(binding.value);
            binding.value = func.call(Callee::Expr(callee), rest, Attrs::default(), &ty_args, ty);
            out.push(binding);
            Ok(())
        })
    }
}

/// What each type becomes when every function in it may have effects.
#[derive(Default)]
struct Types(FxHashMap<Type, Type>);

impl Types {
    /// Changes the types of all variables, expressions and results.
    fn function(&mut self, func: &mut Function) {
        for v in func.var_ids() {
            let ty = self.admit(func, func.var(v).ty);
            func.var_mut(v).ty = ty;
        }
        for id in 0..func.num_exprs() {
            let e = Expr::from_u32(id as u32);
            let ty = self.admit(func, func.expr_ty(e));
            func.set_expr_ty(e, ty);
        }
        for id in reachable_funcs(func) {
            let ty = self.admit(func, func.func(id).ret_ty);
            func.func_mut(id).ret_ty = ty;
        }
    }

    /// Recursion follows nested types only, whose depth the verifier bounds.
    fn admit(&mut self, func: &mut Function, ty: Type) -> Type {
        if let Some(&known) = self.0.get(&ty) {
            return known;
        }
        let data = match func.types.get(ty).clone() {
            TypeData::Tuple(fields) => {
                TypeData::Tuple(fields.iter().map(|&t| self.admit(func, t)).collect())
            }
            TypeData::Callable { params, ret, .. } => TypeData::Callable {
                params: params.map(|p| p.iter().map(|&t| self.admit(func, t)).collect()),
                ret: self.admit(func, ret),
                pure: false,
            },
            other => other,
        };
        let admitted = func.intern(data);
        self.0.insert(ty, admitted);
        admitted
    }
}
