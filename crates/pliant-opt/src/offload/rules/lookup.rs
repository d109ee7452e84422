//! # What it does
//! Replaces elementwise functions from one 8-bit tensor to 8-bit integers by the kernel `lookup` and a table of their 256 results.
//! Quantized models contain such functions: an activation between a dequantization and a quantization, or a change of scale. The
//! table is the same function of the constants -128 to 127 or 0 to 255, which
//! [`FoldConstant`](crate::canonicalize::fold_constant) evaluates.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n",), "uint8")) -> R.Tensor(("n",), "uint8"):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv = R.astype(x, dtype="float32")
//!         lv1 = R.tanh(lv)
//!         lv2 = R.multiply(lv1, R.const(100.0, "float32"))
//!         gv = R.astype(lv2, dtype="uint8")
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n",), dtype="uint8")) -> R.Tensor(("n",), dtype="uint8"):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv3: R.Tensor((256,), dtype="float32") = R.astype(..., dtype="float32")
//!         lv4: R.Tensor((256,), dtype="float32") = R.tanh(lv3)
//!         lv5: R.Tensor((256,), dtype="float32") = R.multiply(lv4, R.const(100.0, "float32"))
//!         lv6: R.Tensor((256,), dtype="uint8") = R.astype(lv5, dtype="uint8")
//!         lv7: R.Tensor((256,), dtype="uint8") = R.reshape(lv6, R.shape([256]))
//!         gv: R.Tensor((n,), dtype="uint8") = R.call_kernel("lookup", x=x, table=lv7, out_sinfo=R.Tensor((n,), dtype="uint8"))
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # Requires
//! At least four elementwise operators. Their other operands have one element and are computed from constants.
//!
//! # Keeps
//! - Functions of several tensors, and functions with different scales for channels.
//! - Functions whose intermediate values have other readers.
//! - Functions that divide integers or raise them to a power, because these operators fail for some of the 256 arguments.
//! - All functions if kernels are disabled.
//!
//! # Never
//! Guarantees bit-identical results: the table is computed at compile time, whose elementary functions may differ by 2 ulp from
//! those at run time.

use pliant_ir::op::DimTrait;
use pliant_ir::relax::kernel_call::NewKernelCall;
use pliant_ir::relax::{Expr, ExprData, Function, Var};
use pliant_ir::{Attrs, DType, Op};
use pliant_kernel_api::kernels::lookup::{ENTRIES, KERNEL};
use pliant_pass::PassError;
use pliant_tensor::Tensor;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::common::matmul_and_conv_operands::{ADD, constant_vars, is_input_independent};
use crate::common::operators_after_lowering::RESHAPE;
use crate::offload::dequantized::has_one_element;
use crate::offload::epilogue_activations::op_call;
use crate::offload::int8_epilogue::CAST;
use crate::offload::offload_rule::{Decision, KeepReason, Rule, RuleInfo, Site, Stage};

/// The minimum number of operators that an elementwise function must have to be replaced by a lookup table. Loops with fewer
/// operators are memory-bound, so a table would not be faster.
const MIN_OPERATORS: usize = 4;
/// The operators that may have integer operands, because they are defined for all integers. The table contains the results for all
/// 256 operands. Other operators, such as divisions, would fail for some of these, even if the model never passes them.
const TOTAL_ON_INTEGERS: [Op; 8] = [
    CAST,
    ADD,
    Op::new("relax.subtract"),
    Op::new("relax.multiply"),
    Op::new("relax.maximum"),
    Op::new("relax.minimum"),
    Op::new("relax.clip"),
    Op::new("relax.where"),
];
/// Maximum number of operators of an elementwise function that is replaced by a lookup table.
const MAX_OPERATORS: usize = 64;

/// The entry of the rule `lookup` in the table of offload rules.
pub(super) fn info() -> RuleInfo {
    RuleInfo::builtin(
        "lookup",
        "lookup",
        "elementwise functions from one 8-bit tensor to 8-bit integers",
        Stage::Dequantized,
        &[CAST],
        |_| Ok(Box::new(Lookup::default())),
    )
}

#[derive(Default)]
struct Lookup {
    /// The variables of the function that are computed from constants alone.
    constants: FxHashSet<Var>,
}

impl Rule for Lookup {
    fn begin(&mut self, func: &Function) {
        self.constants = constant_vars(func);
    }

    fn apply(&mut self, site: &mut Site<'_>) -> Result<Decision, PassError> {
        let Some(function) = self.match_function(site) else {
            return Ok(Err(KeepReason::NotApplicable));
        };
        let Some(arguments) = all_values(site, function.x) else {
            return Ok(Err(KeepReason::NotApplicable));
        };
        let mut values = FxHashMap::from_iter([(function.x, arguments)]);
        for &v in &function.operators {
            let value = definition(site, v);
            let Some((op, args, attrs)) = op_call(site.func, value) else {
                return Ok(Err(KeepReason::NotApplicable));
            };
            let (args, attrs) = (args.to_vec(), attrs.clone());
            let of = |e: Expr| match site.func.expr(e) {
                ExprData::Var(v) => values.get(v).copied().unwrap_or(e),
                _ => e,
            };
            let args: Vec<Expr> = args.into_iter().map(of).collect();
            let value = site.call(op, &args, attrs)?;
            values.insert(v, site.emit(value));
        }
        let entries = site.func.syms.int(ENTRIES);
        let shape = site.func.shape(&[entries]);
        let table = site.call(RESHAPE, &[values[&site.root.var], shape], Attrs::default())?;
        let table = site.emit(table);
        let x = site.func.var_expr(function.x);
        let call = NewKernelCall::new(&KERNEL).operand("x", x).operand("table", table);
        let (result, mut removed) = (site.root.var, function.operators);
        removed.retain(|&v| v != result);
        Ok(site.call_kernel(call, result, removed))
    }
}

/// An elementwise function of one 8-bit tensor.
struct ElementFunction {
    /// The variable of the 8-bit tensor to which the function is applied.
    x: Var,
    /// The variables of the operators' results, in the order of computation. The last is the result of the function.
    operators: Vec<Var>,
}

/// Returns the value to which a variable is bound.
fn definition(site: &mut Site<'_>, v: Var) -> Expr {
    let e = site.func.var_expr(v);
    site.uses().1.value(site.func, e)
}

/// Returns a constant with all 256 values of the data type of `x`. The element at index `i` is the value with the bit pattern `i`.
fn all_values(site: &mut Site<'_>, x: Var) -> Option<Expr> {
    let dtype = site.func.var_ty(x).dtype()?;
    let bytes: Vec<u8> = (0..=u8::MAX).collect();
    let values = Tensor::from_bytes(&[ENTRIES], dtype, &bytes).ok()?;
    Some(site.func.constant(values))
}

/// Whether a data type has 8 bits and is an integer type.
fn is_byte(dtype: Option<DType>) -> bool {
    matches!(dtype, Some(DType::Int8 | DType::UInt8))
}

impl Lookup {
    /// If the binding on which the rule is tried is the result of an elementwise function of one 8-bit tensor, and a table can
    /// replace this function, returns the function.
    fn match_function(&self, site: &mut Site<'_>) -> Option<ElementFunction> {
        let root = site.root.var;
        if !site.dataflow || !is_byte(site.func.ty(site.root.value).dtype()) {
            return None;
        }
        let mut search = Search { x: None, operators: Vec::new(), seen: FxHashSet::default() };
        self.visit(site, root, &mut search)?;
        let (x, operators) = (search.x?, search.operators);
        let readers = &site.uses().0;
        let is_internal = |v: Var| {
            let all = readers.all_readers(site.func, v);
            v == root || all.is_some_and(|all| all.iter().all(|b| search.seen.contains(&b.var)))
        };
        let defs = &site.uses().1;
        let (dims, of_x) = (site.func.ty(site.root.value).dims(), site.func.var_ty(x).dims());
        let is_valid = operators.len() >= MIN_OPERATORS
            && dims.is_some()
            && dims == of_x
            && operators.iter().all(|&v| {
                is_internal(v)
                    && !site.replaced_vars.contains(&v)
                    && defs.epoch(v) == defs.epoch(root)
            });
        is_valid.then_some(ElementFunction { x, operators })
    }

    /// Adds the operators on which a variable depends to the search, operands first. `None` if one of them is not elementwise, if
    /// they read several tensors, or if there are more than [`MAX_OPERATORS`].
    fn visit(&self, site: &mut Site<'_>, v: Var, search: &mut Search) -> Option<()> {
        if !search.seen.insert(v) {
            return Some(());
        }
        if search.seen.len() > MAX_OPERATORS {
            return None;
        }
        let value = definition(site, v);
        let (op, args, _) = op_call(site.func, value)?;
        let args = args.to_vec();
        let is_float = |e: &Expr| site.func.ty(*e).dtype().is_some_and(DType::is_float);
        let is_total = args.iter().any(is_float) || TOTAL_ON_INTEGERS.contains(&op);
        if site.ctx.ops.dim_trait(op) != DimTrait::Elementwise || !is_total {
            return None;
        }
        for e in args {
            if is_input_independent(site.func, &self.constants, e) {
                if !has_one_element(site.func, e) {
                    return None;
                }
                continue;
            }
            let ExprData::Var(operand) = *site.func.expr(e) else { return None };
            if !is_byte(site.func.ty(e).dtype()) {
                self.visit(site, operand, search)?;
            } else if *search.x.get_or_insert(operand) != operand {
                return None;
            }
        }
        search.operators.push(v);
        Some(())
    }
}

/// The state of the search for the operators of a function.
struct Search {
    /// The non-constant 8-bit tensor that the matched operators read; `None` if no such tensor was found yet.
    x: Option<Var>,
    operators: Vec<Var>,
    seen: FxHashSet<Var>,
}
