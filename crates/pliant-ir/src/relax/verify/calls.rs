//! Verifies calls: their side effects, the signatures of operators, arguments, and destination-passing calls.

use pliant_diag::error_codes;

use super::Verifier;
use crate::attr_names::INPLACE_INDICES;
use crate::attr_values::AttrValue;
use crate::ir_module::BaseFunc;
use crate::op::{CALL_TIR, CALL_TIR_INPLACE, CALL_TIR_WITH_GRAD, Op, WHILE_LOOP};
use crate::relax::expr::*;
use crate::relax::type_lattice::{derive_call_ty, derive_callable_ty, type_syms};
use crate::relax::types::{Type, TypeData};
use crate::relax::while_loop::{op_call_is_pure, while_loop_ty};
use crate::tir::{PrimFunc, VarTy};

impl Verifier<'_> {
    /// Checks a call expression against the rules for its callee.
    pub(super) fn check_call(&mut self, e: Expr) {
        let f = self.f;
        let ExprData::Call { callee, args, .. } = f.expr(e) else { return };
        let args = f.list(*args);
        self.check_effects(*callee, args);
        match callee {
            Callee::Op(op) => {
                self.check_op_call(*op, args.len());
                if matches!(*op, CALL_TIR | CALL_TIR_INPLACE | CALL_TIR_WITH_GRAD) {
                    self.check_call_tir(e, args);
                } else if *op == WHILE_LOOP {
                    self.check_while_loop(args);
                }
            }
            Callee::Expr(c) => self.check_func_call(*c, args),
        }
    }

    /// Whether a call may have side effects, according to the callee.
    fn is_impure(&self, callee: Callee, args: &[Expr]) -> bool {
        let f = self.f;
        let e = match callee {
            Callee::Op(op) => return !op_call_is_pure(f, self.ops, op, args),
            Callee::Expr(e) => e,
        };
        match f.expr(e) {
            ExprData::Global(s) => match self.module.and_then(|m| m.get(f.str(*s))) {
                Some(BaseFunc::Relax(callee)) => !callee.is_pure(),
                Some(BaseFunc::Prim(_)) => true,
                None => matches!(f.ty(e), TypeData::Callable { pure: false, .. }),
            },
            ExprData::Extern(_) => true,
            _ => !matches!(f.ty(e), TypeData::Callable { pure: true, .. }),
        }
    }

    fn check_effects(&mut self, callee: Callee, args: &[Expr]) {
        if self.force_pure || !self.is_impure(callee, args) {
            return;
        }
        let what = match callee {
            Callee::Op(op) => op.name().to_string(),
            Callee::Expr(e) => match self.f.expr(e) {
                ExprData::Global(s) | ExprData::Extern(s) => self.f.str(*s).to_string(),
                ExprData::Var(v) => self.name(*v).to_string(),
                _ => "a value".into(),
            },
        };
        if self.dataflow.is_some() {
            self.error_help(
                error_codes::PL0207,
                format!("the call of '{what}' in a dataflow block has side effects"),
                "move the call out of the block; if it is pure, use R.call_pure_packed",
            );
        } else if self.funcs.last().is_some_and(|&id| self.f.func(id).pure) {
            self.error_help(
                error_codes::PL0208,
                format!("the call of '{what}' has side effects, but the enclosing function is declared pure"),
                "declare the enclosing function with @R.function(pure=False)",
            );
        }
    }

    fn check_op_call(&mut self, op: Op, args: usize) {
        let Some(signature) = self.ops.signature(op) else {
            self.error(error_codes::PL0219, format!("operator '{op}' is not declared"));
            return;
        };
        let operands = &signature.operands;
        let min = operands.iter().filter(|o| !o.optional && !o.variadic).count();
        if args < min || signature.max_operands().is_some_and(|max| args > max) {
            let names: Vec<&str> = operands.iter().map(|o| o.name).collect();
            let names = names.join(", ");
            self.error(
                error_codes::PL0219,
                format!("operator '{op}' takes the operands ({names}), but the call passes {args} operands"),
            );
        }
    }

    fn check_while_loop(&mut self, args: &[Expr]) {
        let f = self.f;
        let [cond, body, states @ ..] = args else { return };
        let states: Vec<Type> = states.iter().map(|&e| f.expr_ty(e)).collect();
        for function in [*cond, *body] {
            self.check_self_recursive_loop(function, &states);
        }
        let (cond, body) = (f.expr_ty(*cond), f.expr_ty(*body));
        let func = self.proof_copy.get_or_insert_with(|| f.clone());
        if let Err(e) = while_loop_ty(func, cond, body, &states) {
            self.error(error_codes::PL0225, e.message);
        }
    }

    /// Rejects a `while_loop` whose condition or body is a local function that contains this loop, if the loop state contains
    /// symbols of that function. In the type of such a loop, a symbol could mean the value in the current call or the value in an
    /// iteration.
    fn check_self_recursive_loop(&mut self, function: Expr, states: &[Type]) {
        let ExprData::Var(v) = *self.f.expr(function) else { return };
        let Some((_, own)) = self.enclosing_funcs.iter().find(|(var, _)| *var == v) else { return };
        let shared = states
            .iter()
            .flat_map(|&ty| type_syms(self.f, ty))
            .find(|s| own.contains(s))
            .map(|s| self.f.syms.name(s));
        if let Some(symbol) = shared {
            let name = self.name(v);
            self.error_help(
                error_codes::PL0225,
                format!(
                    "while_loop: the function '{name}' contains a loop whose condition or body is '{name}' itself, and the state \
                     of the loop contains the symbol '{symbol}' of this function"
                ),
                &format!(
                    "pass to the loop another local function, which calls '{name}' and has its own symbol instead of '{symbol}'"
                ),
            );
        }
    }

    /// Checks a call of a global function, a packed function or a function value.
    fn check_func_call(&mut self, callee: Expr, args: &[Expr]) {
        let f = self.f;
        if let ExprData::Global(s) = f.expr(callee) {
            let Some(module) = self.module else { return };
            match module.get(f.str(*s)) {
                Some(BaseFunc::Prim(p)) => return self.check_direct_call(f.str(*s), p, args),
                Some(BaseFunc::Relax(callee)) => {
                    let tys: Vec<Type> = args.iter().map(|&a| f.expr_ty(a)).collect();
                    let func = self.proof_copy.get_or_insert_with(|| f.clone());
                    let derived = derive_call_ty(func, callee, &tys);
                    return self.report_mismatch(
                        f.str(*s),
                        derived,
                        args.len(),
                        callee.params().len(),
                    );
                }
                None => return,
            }
        }
        if matches!(f.expr(callee), ExprData::Extern(_)) {
            return;
        }
        let ty = f.expr_ty(callee);
        if !matches!(f.types.get(ty), TypeData::Callable { .. } | TypeData::Any) {
            let text = self.ty_text(ty);
            self.error(
                error_codes::PL0223,
                format!("a value of type {text} is called, but is not a function"),
            );
            return;
        }
        let tys: Vec<Type> = args.iter().map(|&a| f.expr_ty(a)).collect();
        let func = self.proof_copy.get_or_insert_with(|| f.clone());
        let derived = derive_callable_ty(func, ty, &tys);
        let count = match f.types.get(ty) {
            TypeData::Callable { params: Some(p), .. } => p.len(),
            _ => args.len(),
        };
        self.report_mismatch("a function value", derived, args.len(), count);
    }

    /// Reports a type error of a call: PL0211 if the number of arguments is wrong, else PL0212.
    fn report_mismatch(
        &mut self,
        callee: &str,
        result: Result<Type, crate::op::InferError>,
        args: usize,
        params: usize,
    ) {
        if let Err(e) = result {
            let code = if args == params { error_codes::PL0212 } else { error_codes::PL0211 };
            let problem = e.message;
            self.error(code, format!("the call of '{callee}' is invalid: {problem}"));
        }
    }

    /// Checks the number of arguments of a direct call of a loop function. Such a call passes inputs, outputs and sizes as separate
    /// arguments, or the sizes as one shape.
    fn check_direct_call(&mut self, name: &str, callee: &PrimFunc, args: &[Expr]) {
        let f = self.f;
        let mut count = 0;
        for &a in args {
            count += match f.ty(a) {
                TypeData::Shape { ndim: Some(n), .. } => *n as usize,
                TypeData::Shape { .. } | TypeData::Any => return,
                _ => 1,
            };
        }
        if count != callee.params.len() {
            let n = callee.params.len();
            self.error(
                error_codes::PL0211,
                format!("loop function '{name}' has {n} parameters, but the call passes {count} arguments"),
            );
        }
    }

    fn check_call_tir(&mut self, call: Expr, args: &[Expr]) {
        let f = self.f;
        let ExprData::Call { ty_args, attrs, .. } = f.expr(call) else { return };
        let Some(&callee) = args.first() else { return };
        let ExprData::Global(s) = f.expr(callee) else {
            self.error(
                error_codes::PL0218,
                "the first argument of call_tir must be a loop function of the module",
            );
            return;
        };
        let name = f.str(*s);
        let Some(module) = self.module else { return };
        let prim = match module.get(name) {
            Some(BaseFunc::Prim(p)) => p,
            Some(BaseFunc::Relax(_)) => {
                self.error(
                    error_codes::PL0218,
                    format!("call_tir calls '{name}', which is a graph function instead of a loop function"),
                );
                return;
            }
            None => return,
        };
        let outs: Vec<Type> = match f.type_list(*ty_args) {
            [one] => match f.types.get(*one) {
                TypeData::Tuple(fields) => fields.to_vec(),
                _ => vec![*one],
            },
            many => many.to_vec(),
        };
        if outs.is_empty() {
            self.error(error_codes::PL0218, format!("the call_tir of '{name}' has no out_sinfo, which states the types of its results"));
            return;
        }
        // An output that overwrites an input has no separate parameter.
        let inplace = f.call_attrs(*attrs).get(INPLACE_INDICES).and_then(AttrValue::as_ints);
        let overwrites = |k: usize| inplace.as_ref().is_some_and(|list| list.get(k) != Some(&-1));
        let outs: Vec<Type> = outs
            .into_iter()
            .enumerate()
            .filter(|(k, _)| !overwrites(*k))
            .map(|(_, ty)| ty)
            .collect();
        let Some(inputs) = args.get(1).and_then(|&a| match f.ty(a) {
            TypeData::Tuple(fields) => Some(fields.to_vec()),
            _ => None,
        }) else {
            return;
        };
        let vars = match args.get(2).map(|&a| f.ty(a)) {
            None => 0,
            Some(TypeData::Shape { ndim: Some(n), .. }) => *n as usize,
            Some(_) => return,
        };
        let (have, want) = (inputs.len() + outs.len() + vars, prim.params.len());
        if have != want {
            let (i, o) = (inputs.len(), outs.len());
            self.error(
                error_codes::PL0218,
                format!("loop function '{name}' has {want} parameters, but call_tir passes {i} inputs, {o} outputs and {vars} sizes"),
            );
            return;
        }
        for (i, ty) in inputs.into_iter().chain(outs).enumerate() {
            self.check_buffer_param(name, prim, i, ty);
        }
    }

    /// Checks the type of an input or output of a `call_tir` against parameter `i` of the loop function.
    fn check_buffer_param(&mut self, name: &str, prim: &PrimFunc, i: usize, ty: Type) {
        let f = self.f;
        let p = prim.params[i];
        let Some(&b) = prim.buffer_map.get(&p) else {
            if let (VarTy::Value(want), TypeData::Prim { dtype, .. }) =
                (prim.var(p).ty, f.types.get(ty))
                && want.dtype.is_float() != dtype.is_float()
            {
                let text = self.ty_text(ty);
                self.error(
                    error_codes::PL0218,
                    format!("parameter {i} of loop function '{name}' is {} scalar, but call_tir passes {text}", want.dtype.with_article()),
                );
            }
            if matches!(prim.var(p).ty, VarTy::Value(_)) && f.types.get(ty).is_tensor() {
                self.error(
                    error_codes::PL0218,
                    format!("parameter {i} of loop function '{name}' is a scalar, but call_tir passes a tensor"),
                );
            }
            return;
        };
        let buffer = prim.buffer(b);
        let text = || crate::print::type_text(f, ty);
        let dtype = match f.types.get(ty) {
            TypeData::Tensor { dtype, .. } => dtype,
            TypeData::Any => return,
            _ => {
                let text = text();
                self.error(
                    error_codes::PL0218,
                    format!("parameter {i} of loop function '{name}' is a buffer, but call_tir passes {text}"),
                );
                return;
            }
        };
        if dtype.is_some_and(|d| d != buffer.dtype) {
            let (text, want) = (text(), buffer.dtype);
            self.error(
                error_codes::PL0218,
                format!("parameter {i} of loop function '{name}' has dtype {want}, but call_tir passes {text}"),
            );
        }
        if f.rank_of(ty).is_some_and(|n| n as usize != buffer.shape.len()) {
            let (text, want) = (text(), buffer.shape.len());
            self.error(
                error_codes::PL0218,
                format!("parameter {i} of loop function '{name}' has {want} dims, but call_tir passes {text}"),
            );
            return;
        }
        let Some(dims) = f.types.get(ty).dims() else { return };
        for (axis, (&d, &s)) in dims.iter().zip(&buffer.shape).enumerate() {
            if let (Some(d), Some(s)) = (f.syms.as_int(d), prim.as_int(s))
                && d != s
            {
                self.error(
                    error_codes::PL0218,
                    format!(
                        "dim {axis} of parameter {i} of loop function '{name}' is {s}, but call_tir passes a tensor with {d}"
                    ),
                );
            }
        }
    }
}
