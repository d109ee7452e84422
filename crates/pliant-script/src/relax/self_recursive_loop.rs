//! Loops whose body is the enclosing function itself.
//!
//! The symbols of a function are the sizes of the current call. If a loop inside the function calls
//! the function, the symbols have other values in every iteration, which one type cannot express.
//! Therefore the loop calls a wrapper function with its own symbols:
//!
//! ```python
//! def iteration(y: R.Tensor(("k",), "int64")) -> R.Tensor(ndim=1, dtype="int64"):
//!     k = T.int64()
//!     z = R.while_loop(short, iteration, y)
//!     ...
//!     # means
//!     def body(state: R.Tensor(("k1",), "int64")) -> R.Tensor(ndim=1, dtype="int64"):
//!         k1 = T.int64()
//!         return iteration(state)
//!     z = R.while_loop(short, body, y)
//! ```

use pliant_ir::SymVar;
use pliant_ir::relax::type_lattice::type_syms;
use pliant_ir::relax::{Expr as IrExpr, ExprData, TypeData};
use rustc_hash::FxHashSet;

use super::FuncParser;
use super::unresolved_values::Val;
use crate::python::ast::Range;
use crate::script_errors::Res;

impl FuncParser<'_, '_> {
    /// The body function for a loop with the given state: the enclosing function itself, or a wrapper that calls it.
    pub(super) fn self_recursive_body(
        &mut self,
        f: IrExpr,
        inits: &[IrExpr],
        range: Range,
    ) -> Res<IrExpr> {
        let func = self.b.func();
        let ExprData::Var(v) = *func.expr(f) else { return Ok(f) };
        let Some(&outer) = self.outer_syms.get(&v) else { return Ok(f) };
        let TypeData::Callable { params: Some(params), pure, .. } = func.ty(f).clone() else {
            return Ok(f);
        };
        let own: FxHashSet<SymVar> = params
            .iter()
            .flat_map(|&ty| type_syms(func, ty))
            .filter(|s| s.as_u32() as usize >= outer)
            .collect();
        // Symbols defined by a function are only visible inside it.
        let mut seen = inits.iter().flat_map(|&e| type_syms(func, func.expr_ty(e)));
        if params.len() != inits.len() || !seen.any(|s| own.contains(&s)) {
            return Ok(f);
        }
        let name = func.var(v).name.clone();
        let (types, _) = self.renamed_types(&params, &own);
        let names = vec!["state"; types.len()];
        self.loop_function(&names, &types, &mut |p, params| {
            if !pure {
                p.effect(&format!("'{name}'"), range)?;
            }
            let ty = p.call_type(f, params, &[], range)?;
            p.b.set_span(p.cx.span(range));
            let call = p.b.call_func(f, params, &[], ty);
            p.operand(Val::Expr(call), None, range)
        })
    }
}
