//! [`ModuleBuilder`]: builds a module and creates loop functions from tensor expressions.

use std::sync::Arc;

use pliant_ir::op::CALL_TIR;
use pliant_ir::relax::{Callee, Expr, Function, FunctionBuilder, Type, TypeData, Var};
use pliant_ir::structural_equality::{equal_prim_funcs, hash_prim_func};
use pliant_ir::tir::PrimFunc;
use pliant_ir::{Attrs, BaseFunc, IRModule, Sym};
use rustc_hash::FxHashMap;

use crate::legalize::{LegalizeError, TirCall, tir_call};
use crate::te;
use crate::user_defined_ops::TeCall;

/// A module under construction. Loop functions that are equal up to names are stored once.
#[derive(Debug, Default)]
pub struct ModuleBuilder {
    module: IRModule,
    private_prim_funcs: FxHashMap<u64, Vec<Arc<str>>>,
}

impl ModuleBuilder {
    /// Creates a builder for an empty module.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a builder that adds to an existing module. Private loop functions of the module are reused for equal new ones.
    pub fn from_module(module: IRModule) -> Self {
        let mut builder = ModuleBuilder { module, private_prim_funcs: FxHashMap::default() };
        let private = |f: &PrimFunc| f.private;
        let known: Vec<(u64, Arc<str>)> = builder
            .module
            .prim_funcs()
            .filter(|(_, f)| private(f))
            .map(|(name, f)| (hash_prim_func(f), name.clone()))
            .collect();
        for (key, name) in known {
            builder.private_prim_funcs.entry(key).or_default().push(name);
        }
        builder
    }

    /// The module in its current state.
    pub fn module(&self) -> &IRModule {
        &self.module
    }

    /// Ends the construction and returns the module.
    pub fn finish(self) -> IRModule {
        self.module
    }

    /// Adds a function with the name `hint`, or a unique name derived from it. Returns the name. If an equal private loop function
    /// exists already, its name is returned instead.
    pub fn add_func(&mut self, func: impl Into<BaseFunc>, hint: &str) -> Arc<str> {
        let func = func.into();
        let BaseFunc::Prim(prim) = &func else { return self.insert(func, hint) };
        if !prim.private {
            return self.insert(func, hint);
        }
        let key = hash_prim_func(prim);
        for name in self.private_prim_funcs.get(&key).into_iter().flatten() {
            let old = self.module.get(name).and_then(BaseFunc::as_prim);
            if old.is_some_and(|old| equal_prim_funcs(old, prim).is_ok()) {
                return name.clone();
            }
        }
        let name = self.insert(func, hint);
        self.private_prim_funcs.entry(key).or_default().push(name.clone());
        name
    }

    /// Replaces the function with the given name, or adds it.
    pub fn update_func(&mut self, name: impl Into<Arc<str>>, func: impl Into<BaseFunc>) {
        self.module.insert(name, func);
    }

    fn insert(&mut self, func: BaseFunc, hint: &str) -> Arc<str> {
        let name = self.module.fresh_name(hint);
        self.module.insert(name.clone(), func);
        name
    }

    /// Adds the loop function of a lowered call to the module, and creates its `call_tir`. The
    /// caller must bind inputs that are calls or tuple fields to variables
    /// ([`FunctionBuilder::operand`]).
    pub fn call_tir(&mut self, func: &mut Function, call: TirCall) -> Expr {
        let TirCall { func: prim, name, inputs, tir_vars, out_tys, tuple } = call;
        let name = self.add_func(prim, &name);
        call_tir(func, &name, &inputs, &tir_vars, &out_tys, tuple)
    }

    /// Creates a `call_tir` of the loop function that computes the tensors returned by `f`, which receives one tensor per
    /// operand. Size variables that are not defined by the dim of an operand are passed as `tir_vars`.
    ///
    /// # Errors
    /// If an operand's shape or data type is unknown, `f` fails, or its outputs are not well-formed stages.
    pub fn call_te(
        &mut self,
        func: &mut Function,
        hint: &str,
        args: &[Expr],
        f: impl FnOnce(&[te::Tensor]) -> Result<Vec<te::Tensor>, te::TeError>,
    ) -> Result<Expr, LegalizeError> {
        let call = te_call(func, hint, args, f)?;
        Ok(self.call_tir(func, call))
    }

    /// Creates the loop function that computes `outputs`, adds it to the module, and creates its `call_tir`. `inputs` contains the
    /// placeholders with their operands, and `vars` maps size variables to symbols ([`TeCall::finish`] returns both).
    ///
    /// # Errors
    /// If the outputs are not well-formed stages over the inputs.
    pub fn finish_te(
        &mut self,
        func: &mut Function,
        hint: &str,
        inputs: &[(te::Tensor, Expr)],
        vars: te::VarMap,
        outputs: &[te::Tensor],
    ) -> Result<Expr, LegalizeError> {
        let call = finish_call(func, hint, inputs, vars, outputs)?;
        Ok(self.call_tir(func, call))
    }

    /// Binds the result of [`call_te`](Self::call_te) in the function under construction. Operands
    /// that are calls or tuple fields are bound to variables first.
    ///
    /// # Errors
    /// The same errors as [`call_te`](Self::call_te).
    pub fn emit_te(
        &mut self,
        builder: &mut FunctionBuilder<'_>,
        hint: &str,
        args: &[Expr],
        f: impl FnOnce(&[te::Tensor]) -> Result<Vec<te::Tensor>, te::TeError>,
    ) -> Result<Var, LegalizeError> {
        let args: Vec<Expr> = args.iter().map(|&a| builder.operand(a)).collect();
        let call = self.call_te(builder.func_mut(), hint, &args, f)?;
        Ok(builder.emit(call))
    }
}

/// Creates a loop function and its call. The loop function computes the tensors returned by `f`,
/// which receives one tensor per operand. Size variables that are not defined by the dim of an
/// operand are passed as `tir_vars`.
///
/// # Errors
/// If an operand's shape or data type is unknown, `f` fails, or its outputs are not well-formed
/// stages.
pub fn te_call(
    func: &mut Function,
    hint: &str,
    args: &[Expr],
    f: impl FnOnce(&[te::Tensor]) -> Result<Vec<te::Tensor>, te::TeError>,
) -> Result<TirCall, LegalizeError> {
    te_call_with_sizes(func, hint, args, &[], |tensors, _| f(tensors))
}

/// Creates a loop function and its call. The loop function computes the tensors returned by `f`, which receives one tensor per
/// operand, and `sizes` as expressions.
///
/// # Errors
/// The same errors as [`te_call`].
pub fn te_call_with_sizes(
    func: &mut Function,
    hint: &str,
    args: &[Expr],
    sizes: &[Sym],
    f: impl FnOnce(&[te::Tensor], &[te::Expr]) -> Result<Vec<te::Tensor>, te::TeError>,
) -> Result<TirCall, LegalizeError> {
    let mut call = TeCall::new(func);
    let tensors = args.iter().map(|&a| call.tensor(a)).collect::<Result<Vec<_>, _>>()?;
    let sizes: Vec<te::Expr> = sizes.iter().map(|&s| call.size(s)).collect();
    let outputs = f(&tensors, &sizes)?;
    let (inputs, vars) = call.finish();
    finish_call(func, hint, &inputs, vars, &outputs)
}

fn finish_call(
    func: &mut Function,
    hint: &str,
    inputs: &[(te::Tensor, Expr)],
    vars: te::VarMap,
    outputs: &[te::Tensor],
) -> Result<TirCall, LegalizeError> {
    let mut call = TeCall::with_vars(func, vars);
    let ty = call.out_ty(outputs)?;
    let (_, vars) = call.finish();
    tir_call(func, hint, inputs, outputs, &vars, ty)
}

/// Creates `call_tir(name, inputs, out_tys, tir_vars)`, a call of the loop function `name`.
pub fn call_tir(
    func: &mut Function,
    name: &str,
    inputs: &[Expr],
    tir_vars: &[Sym],
    out_tys: &[Type],
    tuple: bool,
) -> Expr {
    // Loop functions write to their arguments, so their type is that of an impure function.
    let ret = func.intern(TypeData::Any);
    let callee_ty = func.intern(TypeData::Callable { params: None, ret, pure: false });
    let callee = func.global(name, callee_ty);
    let mut args = vec![callee, func.tuple(inputs)];
    if !tir_vars.is_empty() {
        args.push(func.shape(tir_vars));
    }
    let ty = match *out_tys {
        [ty] if !tuple => ty,
        _ => func.intern(TypeData::Tuple(out_tys.into())),
    };
    let stated = if out_tys.len() == 1 { out_tys[0] } else { ty };
    func.call(Callee::Op(CALL_TIR), &args, Attrs::default(), &[stated], ty)
}
