//! # What it does
//! Lowers operators to `R.call_tir` of loop functions that are generated from their tensor expressions. Operators whose result
//! shape depends on values become calls of packed functions, which are pure unless the operator has effects. Equal calls share one
//! loop function. Operators that only change the shape (`reshape`, `flatten`, `expand_dims`, `squeeze`) become `R.reshape`, which
//! does not copy.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n * 4",), "float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv = R.exp(x)
//!         gv = R.flatten(lv)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 4), dtype="float32")) -> R.Tensor(("n * 4",), dtype="float32"):
//!     n = T.int64()
//!     cls = Module
//!     with R.dataflow():
//!         lv: R.Tensor((n, 4), dtype="float32") = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((n, 4), dtype="float32"))
//!         gv: R.Tensor((n * 4,), dtype="float32") = R.reshape(lv, R.shape([n * 4]))
//!         R.output(gv)
//!     return gv
//!
//! @T.prim_func(private=True)
//! def exp(var_A: T.handle, var_compute: T.handle):
//!     ...
//! ```
//!
//! With the setting `relax.trust_indices`, the range of index operands is not checked.
//!
//! Operators in the map `custom` are legalized by functions that the user provides. Such a function replaces the lowering of an
//! operator in this pass only. User-defined operators are another feature: the user registers a new operator with its tensor
//! expression (`pliant-ops/src/user_defined_ops.rs`), and this pass lowers its calls like those of library operators. Operators in
//! the set `skip` stay unchanged.
//!
//! # Requires
//! Nothing. An operator whose operands have unknown rank or data type stays unchanged:
//! [`LowerRuntimeBuiltin`](crate::lower::lower_runtime_builtin) lowers it to a call that inspects the operands at run time. With an
//! `R.match_cast` before it, it becomes a loop function.
//!
//! # Keeps
//! Names, types and order of the bindings, and dataflow blocks.
//!
//! # Never
//! Changes a loop function that the module already contains.

use std::sync::Arc;

use pliant_ir::op::{CALL_PURE_PACKED, CALL_TIR, CALL_TIR_WITH_GRAD};
use pliant_ir::print::type_text;
use pliant_ir::relax::type_lattice::is_subtype;
use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, Type, Var};
use pliant_ir::{AttrValue, Attrs, BaseFunc, IRModule, Op, OpRegistry, Sym};
use pliant_ops::{LegalizeError, Legalized, TirCall, te};
use pliant_pass::binding_rewrites::{Namer, rewrite_bindings};
use pliant_pass::{ModulePass, PassContext, PassError, Problem};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::common::call_deduplication_keys::CallKey;
use crate::common::operators_after_lowering::{
    RESHAPE, null_vars, op_call, packed_call, resolve_null,
};
use crate::common::shared_loop_functions::LoopFunctions;

/// A function, provided by the user, that legalizes calls of an operator. It returns the expression that replaces the call.
pub type CustomLegalize =
    Arc<dyn Fn(&mut CustomCall<'_>) -> Result<Expr, LegalizeError> + Send + Sync>;

/// The pass that lowers operators to calls of loop functions and packed functions. See the module documentation.
#[derive(Clone, Default)]
pub struct LegalizeOps {
    /// Maps full names of operators (`relax.add`) to user functions that legalize them. Operators in the results of these
    /// functions are legalized in the default way.
    pub custom: FxHashMap<String, CustomLegalize>,
    /// Full names of operators that stay unchanged.
    pub skip: FxHashSet<String>,
}

/// A call that a user function legalizes.
pub struct CustomCall<'a> {
    /// The function that contains the call.
    pub func: &'a mut Function,
    /// The operator that is called.
    pub op: Op,
    /// The operands of the call.
    pub args: &'a [Expr],
    /// The attributes of the call.
    pub attrs: &'a Attrs,
    /// The type of the result of the call.
    pub ty: Type,
    var: Var,
    namer: &'a mut Option<Namer>,
    loop_functions: &'a mut LoopFunctions,
    out: Vec<Binding>,
}

impl CustomCall<'_> {
    /// Binds a value to a new variable before the call, and returns the variable as an operand.
    pub fn emit(&mut self, value: Expr) -> Expr {
        bind_near(self.func, self.namer, self.var, value, &mut self.out)
    }

    /// Creates a call of an operator. The result type is inferred.
    ///
    /// # Errors
    /// The error of the operator's type rule.
    pub fn call_op(&mut self, op: Op, args: &[Expr], attrs: Attrs) -> Result<Expr, LegalizeError> {
        let args: Vec<Expr> = args.iter().map(|&a| self.bind_operand(a)).collect();
        let attrs = pliant_ops::registry().complete(op, attrs);
        let ty = pliant_ops::registry()
            .infer(self.func, op, &args, &attrs, &[])
            .map_err(|e| LegalizeError::new(e.to_string()))?;
        Ok(self.func.call(Callee::Op(op), &args, attrs, &[], ty))
    }

    /// Creates a call of the loop function of a tensor expression. `compute` builds the tensor expression from one tensor per
    /// operand. The name of the loop function is derived from `hint`.
    ///
    /// # Errors
    /// If an operand's shape or data type is unknown, if `compute` fails, or if its outputs are not well-formed stages.
    pub fn call_te(
        &mut self,
        hint: &str,
        args: &[Expr],
        compute: impl FnOnce(&[te::Tensor]) -> Result<Vec<te::Tensor>, te::TeError>,
    ) -> Result<Expr, LegalizeError> {
        let args: Vec<Expr> = args.iter().map(|&a| self.bind_operand(a)).collect();
        let call = pliant_ops::te_call(self.func, hint, &args, compute)?;
        let TirCall { func: prim, name, inputs, tir_vars, out_tys, tuple } = call;
        let name = self.loop_functions.add(&name, prim);
        let inputs: Vec<Expr> = inputs.into_iter().map(|e| self.bind_operand(e)).collect();
        Ok(pliant_ops::call_tir(self.func, &name, &inputs, &tir_vars, &out_tys, tuple))
    }

    fn bind_operand(&mut self, e: Expr) -> Expr {
        match self.func.expr(e) {
            ExprData::Call { .. } | ExprData::TupleGetItem(..) => self.emit(e),
            _ => e,
        }
    }
}

impl ModulePass for LegalizeOps {
    fn name(&self) -> &str {
        "LegalizeOps"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let names: Vec<Arc<str>> = module.relax_funcs().map(|(name, _)| name.clone()).collect();
        let mut loop_functions = LoopFunctions::new(&module);
        let mut errors = Vec::new();
        for name in names {
            ctx.check_cancelled()?;
            let Some(BaseFunc::Relax(func)) = module.functions.get_mut(&name) else { continue };
            if !has_operators(func) {
                continue;
            }
            let mut legalizer = Legalizer {
                pass: self,
                loop_functions: &mut loop_functions,
                namer: None,
                cache: FxHashMap::default(),
                trusted: trusts_indices(ctx),
                nulls: null_vars(func),
                ctx,
            };
            let result = legalizer.legalize_function(Arc::make_mut(func));
            errors.extend(result.err().map(|e| e.in_function(&name)));
        }
        if let Some(error) = PassError::join(errors) {
            return Err(error);
        }
        loop_functions.insert_into(&mut module);
        Ok(module)
    }
}

/// The name of the setting that declares all index operands, such as those of `R.take`, to be in range.
pub const TRUST_INDICES: &str = "relax.trust_indices";

/// Whether [`TRUST_INDICES`] is set.
pub(crate) fn trusts_indices(ctx: &PassContext) -> bool {
    let value = ctx.config.get(TRUST_INDICES);
    matches!(value, Some(AttrValue::Bool(true) | AttrValue::Int(1)))
}

/// The `call_tir` of the loop function that a `call_tir_with_grad` calls.
fn without_gradient(func: &mut Function, call: Expr, args: &[Expr]) -> Expr {
    let ty_args = match func.expr(call) {
        ExprData::Call { ty_args, .. } => func.type_list(*ty_args).to_vec(),
        _ => Vec::new(),
    };
    let ty = func.expr_ty(call);
    func.call(Callee::Op(CALL_TIR), args, Attrs::default(), &ty_args, ty)
}

/// Whether a function contains a call that may be legalized. Functions without such calls need not be copied.
fn has_operators(func: &Function) -> bool {
    pliant_pass::binding_rewrites::reachable_seqs(func).into_iter().any(|seq| {
        func.seq(seq).blocks.iter().any(|&b| {
            func.block(b).bindings.iter().any(|binding| {
                matches!(
                    func.expr(binding.value),
                    ExprData::Call { callee: Callee::Op(op), .. } if *op != CALL_TIR
                )
            })
        })
    })
}

/// A loop function that was created for an earlier operator call, with the information needed to call it with other operands.
#[derive(Clone)]
struct CachedFunction {
    name: Arc<str>,
    /// For each input of the loop function, its position among the flattened operands of the operator call.
    inputs: Vec<usize>,
    tir_vars: Vec<Sym>,
    out_tys: Vec<Type>,
    tuple: bool,
}

struct Legalizer<'a> {
    pass: &'a LegalizeOps,
    loop_functions: &'a mut LoopFunctions,
    namer: Option<Namer>,
    cache: FxHashMap<CallKey, CachedFunction>,
    /// Whether index operands are assumed to be in range; see [`TRUST_INDICES`].
    trusted: bool,
    /// The variables bound to `R.null_value()`, which represent absent operands.
    nulls: FxHashMap<Var, Expr>,
    ctx: &'a PassContext,
}

impl Legalizer<'_> {
    fn legalize_function(&mut self, func: &mut Function) -> Result<(), PassError> {
        let mut problems = Vec::new();
        let mut count = 0u32;
        rewrite_bindings(func, |func, binding, out| {
            count += 1;
            if count.is_multiple_of(256) {
                self.ctx.check_cancelled()?;
            }
            if let Err(error) = self.legalize_binding(func, binding, true, out) {
                problems.push(Problem::new(error.to_string()).at(func.var(binding.var).span));
                out.push(binding);
            }
            Ok(())
        })?;
        if problems.is_empty() { Ok(()) } else { Err(PassError::User(problems)) }
    }

    /// Legalizes the operator call in a binding. Legalization functions of the user are only used if `use_custom` is set.
    fn legalize_binding(
        &mut self,
        func: &mut Function,
        mut binding: Binding,
        use_custom: bool,
        out: &mut Vec<Binding>,
    ) -> Result<(), LegalizeError> {
        let ExprData::Call { callee: Callee::Op(op), args, attrs, .. } =
            func.expr(binding.value).clone()
        else {
            out.push(binding);
            return Ok(());
        };
        if self.pass.skip.contains(op.name()) {
            out.push(binding);
            return Ok(());
        }
        let args = func.list(args).to_vec();
        let ty = func.expr_ty(binding.value);
        if op == CALL_TIR_WITH_GRAD {
            binding.value = without_gradient(func, binding.value, &args);
            out.push(binding);
            return Ok(());
        }
        if let Some(custom) = self.pass.custom.get(op.name()).filter(|_| use_custom) {
            let attrs = func.call_attrs(attrs).clone();
            let (custom, call) = (custom.clone(), (op, &args[..], &attrs, ty));
            return self.legalize_custom(func, binding, call, &custom, out);
        }
        let (flat, key) = CallKey::of(func, op, &args, attrs, ty);
        if let Some(cached) = self.cache.get(&key) {
            let cached = cached.clone();
            let inputs: Vec<Expr> = cached.inputs.iter().map(|&i| flat[i]).collect();
            binding.value = call_cached(func, &cached, &inputs);
            out.push(binding);
            return Ok(());
        }
        let attrs = func.call_attrs(attrs).clone();
        let resolved_args: Vec<Expr> = args.iter().map(|&a| self.resolve_absent(func, a)).collect();
        match pliant_ops::legalize_with(func, op, &resolved_args, &attrs, ty, self.trusted) {
            Err(e) if !e.unknown => return Err(e),
            Err(_) | Ok(None) => {}
            Ok(Some(Legalized::Reshape { input, shape })) => {
                let input = self.bind_operand(func, binding.var, input, out);
                binding.value = op_call(func, RESHAPE, &[input, shape], ty);
            }
            Ok(Some(Legalized::Packed { name, args })) => {
                let mut operands = Vec::with_capacity(args.len());
                for arg in args {
                    operands.push(self.bind_operand(func, binding.var, arg, out));
                }
                binding.value = if self.ctx.ops.is_pure(op) {
                    pure_packed_call(func, name, &operands, ty)
                } else {
                    packed_call(func, name, &operands, ty)
                };
            }
            Ok(Some(Legalized::Tir(call))) => {
                binding.value = self.add_loop_function(func, binding.var, call, key, &flat, out);
            }
        }
        out.push(binding);
        Ok(())
    }

    /// If an operand is a variable that is bound to `R.null_value()` (an absent operand), returns this call; otherwise returns
    /// the operand.
    fn resolve_absent(&self, func: &Function, arg: Expr) -> Expr {
        resolve_null(&self.nulls, func, arg)
    }

    /// Legalizes a call with the user's function, then legalizes the operators in the result in the default way.
    fn legalize_custom(
        &mut self,
        func: &mut Function,
        mut binding: Binding,
        (op, args, attrs, ty): (Op, &[Expr], &Attrs, Type),
        custom: &CustomLegalize,
        out: &mut Vec<Binding>,
    ) -> Result<(), LegalizeError> {
        let old = binding.value;
        let mut call = CustomCall {
            func,
            op,
            args,
            attrs,
            ty,
            var: binding.var,
            namer: &mut self.namer,
            loop_functions: self.loop_functions,
            out: Vec::new(),
        };
        let value = custom(&mut call)?;
        let new_bindings = std::mem::take(&mut call.out);
        let actual = func.expr_ty(value);
        if is_subtype(func, actual, ty).is_no() {
            let (actual, expected) = (type_text(func, actual), type_text(func, ty));
            return Err(LegalizeError::new(format!(
                "the custom legalization of {op} returns a value of type {actual}, but the call has the type {expected}"
            )));
        }
        for b in new_bindings {
            self.legalize_binding(func, b, false, out)?;
        }
        binding.value = value;
        if value == old {
            out.push(binding);
            return Ok(());
        }
        self.legalize_binding(func, binding, false, out)
    }

    /// Adds the loop function of a call to the module and to the cache, and returns the call.
    fn add_loop_function(
        &mut self,
        func: &mut Function,
        var: Var,
        call: TirCall,
        key: CallKey,
        flat: &[Expr],
        out: &mut Vec<Binding>,
    ) -> Expr {
        let name = self.loop_functions.add(&call.name, call.func);
        let positions: Option<Vec<usize>> =
            call.inputs.iter().map(|e| flat.iter().position(|f| f == e)).collect();
        let cached = CachedFunction {
            name,
            inputs: positions.clone().unwrap_or_default(),
            tir_vars: call.tir_vars,
            out_tys: call.out_tys,
            tuple: call.tuple,
        };
        let mut inputs = Vec::with_capacity(call.inputs.len());
        for input in call.inputs {
            inputs.push(self.bind_operand(func, var, input, out));
        }
        let value = call_cached(func, &cached, &inputs);
        if positions.is_some() {
            self.cache.insert(key, cached);
        }
        value
    }

    /// Converts an expression to an operand: binds a call or a field access to a new variable, which is defined next to the
    /// variable `near`. Other expressions are already operands.
    fn bind_operand(
        &mut self,
        func: &mut Function,
        near: Var,
        e: Expr,
        out: &mut Vec<Binding>,
    ) -> Expr {
        if !matches!(func.expr(e), ExprData::Call { .. } | ExprData::TupleGetItem(..)) {
            return e;
        }
        bind_near(func, &mut self.namer, near, e, out)
    }
}

/// Binds a value to a new variable that is visible wherever the variable `near` is visible.
fn bind_near(
    func: &mut Function,
    namer: &mut Option<Namer>,
    near: Var,
    value: Expr,
    out: &mut Vec<Binding>,
) -> Expr {
    let namer = namer.get_or_insert_with(|| Namer::new(func));
    let dataflow = func.var(near).dataflow;
    let operand = namer.bind(func, "lv", value, out);
    if let ExprData::Var(v) = *func.expr(operand) {
        func.var_mut(v).dataflow = dataflow;
    }
    operand
}

/// Creates a call `R.call_pure_packed(name, args...)` of a packed function without side effects. `ty` is the type of the result.
fn pure_packed_call(func: &mut Function, name: &str, args: &[Expr], ty: Type) -> Expr {
    let callee = func.extern_func(name);
    let all: Vec<Expr> = [callee].into_iter().chain(args.iter().copied()).collect();
    func.call(Callee::Op(CALL_PURE_PACKED), &all, Attrs::default(), &[ty], ty)
}

/// Creates a call of a cached loop function with other inputs.
fn call_cached(func: &mut Function, cached: &CachedFunction, inputs: &[Expr]) -> Expr {
    let CachedFunction { name, tir_vars, out_tys, tuple, .. } = cached;
    pliant_ops::call_tir(func, name, inputs, tir_vars, out_tys, *tuple)
}
