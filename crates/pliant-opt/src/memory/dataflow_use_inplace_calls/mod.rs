//! # What it does
//! Lets a call in a dataflow block write its result to the memory of an operand whose last use is this call. The operand must be
//! a tensor that the block has computed and that shares memory with no other value. Its sizes and data type must provably equal
//! those of the result. Such calls become `R.call_tir_inplace` of a loop function that writes to its input. No pipeline contains
//! this pass: it runs only when called.
//!
//! # Before
//! ```python
//! @I.ir_module
//! class Module:
//!     @R.function
//!     def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
//!         n = T.int64()
//!         with R.dataflow():
//!             z = R.multiply(x, y)
//!             gv = R.add(z, y)
//!             R.output(gv)
//!         return gv
//! ```
//!
//! # After
//! ```python
//! @I.ir_module
//! class Module:
//!     @R.function
//!     def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
//!         n = T.int64()
//!         cls = Module
//!         with R.dataflow():
//!             z = R.multiply(x, y)
//!             gv = R.call_tir_inplace(cls.add_inplace, (z, y), inplace_indices=[0], out_sinfo=R.Tensor((n, 4), "float32"))
//!             R.output(gv)
//!         return gv
//!
//!     @T.prim_func(private=True)
//!     def add_inplace(var_A: T.handle, var_B: T.handle):
//!         T.func_attr({"tir.noalias": True})
//!         n = T.int64()
//!         A = T.match_buffer(var_A, (n, 4), "float32")
//!         B = T.match_buffer(var_B, (n, 4), "float32")
//!         for ax0, ax1 in T.grid(n, 4):
//!             with T.block("T_add"):
//!                 v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
//!                 T.reads(A[v_ax0, v_ax1], B[v_ax0, v_ax1])
//!                 T.writes(A[v_ax0, v_ax1])
//!                 A[v_ax0, v_ax1] = A[v_ax0, v_ax1] + B[v_ax0, v_ax1]
//! ```
//!
//! # Requires
//! Nothing. The pass handles calls of operators and of loop functions, so it can run before or after `LegalizeOps`. Rewritten
//! calls are no longer fused.
//!
//! # Keeps
//! Calls whose operand may be visible elsewhere: a parameter, a constant, a block output, a field of a tuple, a reshaped tensor (a
//! view), a renamed variable, or an operand of a packed function or of a graph function.
//!
//! # Never
//! Overwrites an operand if an iteration of the loop function reads another element of the operand than the one that it writes.

mod inplace_loop_functions;

use std::sync::Arc;

use pliant_ir::attr_names::{CODEGEN, COMPOSITE, GLOBAL_SYMBOL, INPLACE_INDICES, PRIMITIVE};
use pliant_ir::op::{CALL_TIR, CALL_TIR_INPLACE};
use pliant_ir::relax::type_lattice::prove_dims_equal;
use pliant_ir::relax::{Binding, Block, Callee, Expr, ExprData, Function, Type, TypeData, Var};
use pliant_ir::tir::PrimFunc;
use pliant_ir::{AttrValue, Attrs, BaseFunc, IRModule, Sym};
use pliant_ops::Legalized;
use pliant_pass::binding_rewrites::{for_each_operand_var, reachable_seqs};
use pliant_pass::{ModulePass, PassContext, PassError};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::loop_function_calls::TirCall;
use crate::common::call_deduplication_keys::CallKey;
use crate::common::operators_after_lowering::{null_vars, resolve_null};
use crate::common::shared_loop_functions::LoopFunctions;

/// The pass that writes results to operands that are not read afterwards. See the module documentation.
pub struct DataflowUseInplaceCalls;

impl ModulePass for DataflowUseInplaceCalls {
    fn name(&self) -> &str {
        "DataflowUseInplaceCalls"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let prims: FxHashMap<Arc<str>, Arc<PrimFunc>> =
            module.prim_funcs().map(|(name, f)| (name.clone(), f.clone())).collect();
        let mut loop_functions = LoopFunctions::new(&module);
        let names: Vec<Arc<str>> = module.relax_funcs().map(|(name, _)| name.clone()).collect();
        for name in names {
            ctx.check_cancelled()?;
            let Some(BaseFunc::Relax(func)) = module.functions.get_mut(&name) else { continue };
            let outlined_attrs = [PRIMITIVE, COMPOSITE, CODEGEN];
            if outlined_attrs.iter().any(|a| func.attrs.contains_key(*a)) {
                continue;
            }
            let mut copy = Function::clone(func);
            let mut rewriter = Rewriter {
                prims: &prims,
                loop_functions: &mut loop_functions,
                functions: FxHashMap::default(),
                nulls: null_vars(&copy),
            };
            if rewriter.function(&mut copy, ctx)? {
                *func = Arc::new(copy);
            }
        }
        loop_functions.insert_into(&mut module);
        Ok(module)
    }
}

/// The loop function of an operator call, or a loop function of the module.
struct LoopFunction {
    name: Arc<str>,
    func: Arc<PrimFunc>,
    tir_vars: Vec<Sym>,
    /// Whether the result is a single tensor instead of a tuple.
    single_result: bool,
    /// The position of each input among the flattened operands of the operator call; `None` if an input is not an operand.
    inputs: Option<Vec<usize>>,
    /// Maps the index of an input of the loop function to the name of the variant that overwrites this input; `None` if there can
    /// be no such variant.
    inplace_variants: FxHashMap<usize, Option<Arc<str>>>,
}

/// Identifies the loop function of a call: by the key of the operator call, or by the name of the loop function in the module.
#[derive(Clone, PartialEq, Eq, Hash)]
enum CalleeKey {
    Op(CallKey),
    Prim(Arc<str>),
}

/// A call of a loop function, or of an operator that can be lowered to one.
struct LoopFunctionCall {
    callee: CalleeKey,
    /// The inputs of the loop function; `None` if one of them is not an operand of the operator call.
    inputs: Option<Vec<Expr>>,
    tir_vars: Vec<Sym>,
    single_result: bool,
}

struct Rewriter<'a> {
    prims: &'a FxHashMap<Arc<str>, Arc<PrimFunc>>,
    loop_functions: &'a mut LoopFunctions,
    /// The loop functions of the calls so far; `None` for operators without a loop function.
    functions: FxHashMap<CalleeKey, Option<LoopFunction>>,
    nulls: FxHashMap<Var, Expr>,
}

impl Rewriter<'_> {
    fn function(&mut self, func: &mut Function, ctx: &PassContext) -> Result<bool, PassError> {
        let mut changed = false;
        for seq in reachable_seqs(func) {
            for block in func.seq(seq).blocks.clone() {
                if func.block(block).dataflow {
                    ctx.check_cancelled()?;
                    changed |= self.block(func, block);
                }
            }
        }
        Ok(changed)
    }

    fn block(&mut self, func: &mut Function, block: Block) -> bool {
        let bindings = func.block(block).bindings.clone();
        let calls: Vec<Option<LoopFunctionCall>> =
            bindings.iter().map(|b| self.loop_function_call(func, b)).collect();
        let unaliased = UnaliasedTensors::of(func, &bindings, &calls);
        let mut changed = false;
        for (at, (binding, call)) in bindings.iter().zip(&calls).enumerate() {
            let new = call
                .as_ref()
                .and_then(|call| self.reuse_operand(func, binding, call, &unaliased, at));
            if let Some(value) = new {
                func.block_mut(block).bindings[at].value = value;
                changed = true;
            }
        }
        changed
    }

    /// If the value of a binding is a call of a loop function, or of an operator that can be lowered to one, returns this call of
    /// the loop function.
    fn loop_function_call(
        &mut self,
        func: &mut Function,
        binding: &Binding,
    ) -> Option<LoopFunctionCall> {
        let ExprData::Call { callee: Callee::Op(op), args, attrs, .. } =
            func.expr(binding.value).clone()
        else {
            return None;
        };
        if binding.cast.is_some() {
            return None;
        }
        let ty = func.expr_ty(binding.value);
        let args = func.list(args).to_vec();
        if op == CALL_TIR {
            return self.module_function_call(func, binding.value);
        }
        let (flat, key) = CallKey::of(func, op, &args, attrs, ty);
        let callee = CalleeKey::Op(key);
        if !self.functions.contains_key(&callee) {
            let attrs = func.call_attrs(attrs).clone();
            let args: Vec<Expr> =
                args.iter().map(|&a| resolve_null(&self.nulls, func, a)).collect();
            let lowered = match pliant_ops::legalize_with(func, op, &args, &attrs, ty, false) {
                Ok(Some(Legalized::Tir(call))) => Some(LoopFunction {
                    name: call.name,
                    func: Arc::new(call.func),
                    tir_vars: call.tir_vars,
                    single_result: !call.tuple,
                    inputs: (call.inputs.iter())
                        .map(|e| flat.iter().position(|f| f == e))
                        .collect::<Option<_>>(),
                    inplace_variants: FxHashMap::default(),
                }),
                _ => None,
            };
            self.functions.insert(callee.clone(), lowered);
        }
        let function = self.functions.get(&callee)?.as_ref()?;
        let inputs = function.inputs.as_ref();
        let inputs = inputs.map(|list| list.iter().map(|&i| flat[i]).collect());
        Some(LoopFunctionCall {
            inputs,
            tir_vars: function.tir_vars.clone(),
            single_result: function.single_result,
            callee,
        })
    }

    /// If a value is an `R.call_tir` of a loop function of the module, returns this call.
    fn module_function_call(&mut self, func: &Function, value: Expr) -> Option<LoopFunctionCall> {
        let call = TirCall::of(func, value)?;
        let prim = self.prims.get(&call.callee)?;
        let new_function = || {
            Some(LoopFunction {
                name: call.callee.clone(),
                func: prim.clone(),
                tir_vars: Vec::new(),
                single_result: !call.tuple,
                inputs: None,
                inplace_variants: FxHashMap::default(),
            })
        };
        let callee = CalleeKey::Prim(call.callee.clone());
        self.functions.entry(callee.clone()).or_insert_with(new_function);
        Some(LoopFunctionCall {
            callee,
            inputs: Some(call.inputs),
            tir_vars: call.tir_vars,
            single_result: !call.tuple,
        })
    }

    /// Rewrites a call to store its result in the memory of one of its operands. Returns `None` if every operand is read later or
    /// has another layout.
    fn reuse_operand(
        &mut self,
        func: &mut Function,
        binding: &Binding,
        call: &LoopFunctionCall,
        unaliased: &UnaliasedTensors,
        at: usize,
    ) -> Option<Expr> {
        let inputs = call.inputs.as_ref().filter(|_| call.single_result)?;
        let ty = func.expr_ty(binding.value);
        let reusable = (0..inputs.len()).find_map(|i| {
            let ExprData::Var(v) = *func.expr(inputs[i]) else { return None };
            let occurs_once = inputs.iter().filter(|&&e| e == inputs[i]).count() == 1;
            if !occurs_once || !unaliased.can_reuse(v, at) || !same_layout(func, func.var(v).ty, ty)
            {
                return None;
            }
            self.inplace_variant_name(&call.callee, inputs.len(), i).map(|name| (i, name))
        });
        let (i, name) = reusable?;
        // Loop functions write to their arguments, so their type is that of an impure function.
        let ret = func.intern(TypeData::Any);
        let callee_ty = func.intern(TypeData::Callable { params: None, ret, pure: false });
        let (callee, tuple) = (func.global(&name, callee_ty), func.tuple(inputs));
        let mut args = vec![callee, tuple];
        if !call.tir_vars.is_empty() {
            args.push(func.shape(&call.tir_vars));
        }
        let attrs = Attrs::default().with(INPLACE_INDICES, AttrValue::ints([i as i64]));
        Some(func.call(Callee::Op(CALL_TIR_INPLACE), &args, attrs, &[ty], ty))
    }

    /// Returns the name of the variant of a loop function that overwrites an input. Creates the variant when it is first needed.
    fn inplace_variant_name(
        &mut self,
        callee: &CalleeKey,
        inputs: usize,
        input: usize,
    ) -> Option<Arc<str>> {
        let function = self.functions.get_mut(callee)?.as_mut()?;
        let loop_functions = &mut *self.loop_functions;
        let variant = function.inplace_variants.entry(input).or_insert_with(|| {
            let mut func = inplace_loop_functions::inplace_variant(&function.func, inputs, input)?;
            func.private = true;
            func.attrs.shift_remove(GLOBAL_SYMBOL);
            Some(loop_functions.add(&format!("{}_inplace", function.name), func))
        });
        variant.clone()
    }
}

/// The variables of a dataflow block that are tensors without aliases, each with its last use.
struct UnaliasedTensors {
    vars: FxHashSet<Var>,
    last_reads: FxHashMap<Var, usize>,
}

impl UnaliasedTensors {
    fn of(
        func: &Function,
        bindings: &[Binding],
        calls: &[Option<LoopFunctionCall>],
    ) -> UnaliasedTensors {
        let mut unaliased =
            UnaliasedTensors { vars: FxHashSet::default(), last_reads: FxHashMap::default() };
        for (at, (binding, call)) in bindings.iter().zip(calls).enumerate() {
            if call.as_ref().is_some_and(|c| c.single_result) && func.var(binding.var).dataflow {
                unaliased.vars.insert(binding.var);
            }
            for_each_operand_var(func, binding.value, &mut |v| {
                // A loop function keeps no reference to its inputs. Other callees may.
                if call.is_some() {
                    unaliased.last_reads.insert(v, at);
                } else {
                    unaliased.vars.remove(&v);
                }
            });
        }
        unaliased
    }

    /// Whether the binding at index `at` may store its result in the memory of the variable `v`, which it reads.
    fn can_reuse(&self, v: Var, at: usize) -> bool {
        self.vars.contains(&v) && self.last_reads.get(&v) == Some(&at)
    }
}

/// Whether both types are tensors of one data type with provably equal sizes.
fn same_layout(func: &mut Function, a: Type, b: Type) -> bool {
    let (TypeData::Tensor { dtype: Some(x), .. }, TypeData::Tensor { dtype: Some(y), .. }) =
        (func.types.get(a), func.types.get(b))
    else {
        return false;
    };
    let dims = |ty: Type| func.types.get(ty).dims().map(<[Sym]>::to_vec);
    let (Some(dims_a), Some(dims_b), true) = (dims(a), dims(b), x == y) else { return false };
    dims_a.len() == dims_b.len()
        && dims_a.iter().zip(&dims_b).all(|(&x, &y)| prove_dims_equal(func, x, y).is_yes())
}
