//! Run-time checks of computed sizes that may be negative or exceed 64 bits. The loop function
//! executes them first.
//!
//! Without the checks, a negative size would count as 0. Tensors that are fused away are never
//! allocated, so no allocation would detect an invalid size.

use pliant_ir::SymArena;
use pliant_ir::tir::BinOp;
use pliant_sym::{Analyzer, Facts, Sym, SymKind};
use pliant_tensor::{CheckFailure, DType};
use rustc_hash::FxHashSet;

use super::expr::{Expr, ExprKind, Var};
use super::expr_builders::{all, binary, cast, const_of, explain, ge, int, lt};
use super::expr_traversal::{free_vars, post_order};
use super::sym_conversion::{VarMap, to_sym};
use super::tensor::{Check, Tensor, TensorOp};

/// The number of bits that a dim is assumed to need at most, in the estimate whether a product of dims may overflow.
const SIZE_BITS: u32 = 40;
/// Maximum number of bits of the element count of a tensor in memory.
const MEMORY_BITS: u32 = 47;

/// Maximum number of bits of a size for which no run-time check of overflow is created.
const MAX_UNCHECKED_BITS: u32 = 61;

/// The bound in the run-time check that a size, computed in float64, fits in 64 bits: the magnitude of the size must be smaller.
const FITS_BELOW: f64 = (1u64 << 62) as f64;

/// Creates the checks that dims of results and extents of reductions are at least 0 and fit in 64
/// bits. Sizes for which this is proved, variables, and the dims of operands are not checked.
pub(crate) fn checks(args: &[Tensor], stages: &[Tensor]) -> Vec<Check> {
    let mut collector = CheckCollector {
        arena: SymArena::new(),
        vars: VarMap::new(),
        known: FxHashSet::default(),
        operands: Vec::new(),
    };
    args.iter().filter(|t| t.is_placeholder()).for_each(|t| collector.record_operand(t));
    let mut list = Vec::new();
    for t in args.iter().filter(|t| !t.is_placeholder()) {
        for (k, dim) in t.shape().iter().enumerate() {
            collector.add_checks(dim, &[], &format!("dim {k} of {}", t.name()), &mut list);
        }
    }
    for t in stages {
        let TensorOp::Compute(stage) = t.op() else { continue };
        let mut loop_vars: Vec<Var> = stage.axes.iter().map(|a| a.var.clone()).collect();
        post_order(&stage.body, |e| {
            let ExprKind::Reduce(reduce) = e.kind() else { return };
            loop_vars.extend(reduce.axes.iter().map(|a| a.var.clone()));
            for axis in &reduce.axes {
                let what = format!("axis {}", axis.var.name());
                collector.add_checks(&axis.extent, &loop_vars, &what, &mut list);
            }
        });
    }
    list
}

struct CheckCollector {
    arena: SymArena,
    vars: VarMap,
    /// The sizes that need no check: sizes of operands, and sizes for which a check exists already.
    known: FxHashSet<Sym>,
    /// For each operand, the factors whose product is its number of elements.
    operands: Vec<Vec<Sym>>,
}

impl CheckCollector {
    /// Records the dims of an operand, and the products of neighbouring dims, as valid sizes. They
    /// are valid because the operand is in memory.
    fn record_operand(&mut self, t: &Tensor) {
        let dims: Vec<Sym> = t
            .shape()
            .iter()
            .filter_map(|dim| to_sym(&mut self.arena, dim, &mut self.vars))
            .collect();
        for first in 0..dims.len() {
            let mut product = self.arena.int(1);
            for &dim in &dims[first..] {
                product = self.arena.mul(product, dim);
                self.known.insert(product);
            }
        }
        self.operands.push(dims.iter().flat_map(|&dim| self.factors(dim)).collect());
    }

    /// Adds the checks of a size, unless it needs none or depends on one of `loop_vars`.
    fn add_checks(&mut self, size: &Expr, loop_vars: &[Var], what: &str, list: &mut Vec<Check>) {
        if !is_computed(size) || free_vars(size).iter().any(|v| loop_vars.contains(v)) {
            return;
        }
        let Some(sym) = to_sym(&mut self.arena, size, &mut self.vars) else { return };
        if !self.known.insert(sym) {
            return;
        }
        if self.may_overflow(sym) {
            let cond = fits_64_bits(size);
            let message =
                CheckFailure::Shape.mark(&format!("{what}, {size}, does not fit 64 bits"));
            list.push(Check { axes: Vec::new(), cond, message: message.into() });
        }
        let mut facts = Facts::new();
        for var in self.arena.free_vars(sym) {
            facts.assume_size(var);
        }
        let zero = self.arena.int(0);
        if Analyzer::new(&mut self.arena, &facts).prove_le(zero, sym).is_yes() {
            return;
        }
        let cond = explain(&ge(size, &int(0)), std::slice::from_ref(size));
        let message = CheckFailure::Shape.mark(&format!("{what}, {size} = {{0}}, is negative"));
        list.push(Check { axes: Vec::new(), cond, message: message.into() });
    }

    /// Whether a size may need more than 64 bits. This is estimated from bounds on its symbols and
    /// on the element counts of operands. A quotient, or another term that cannot be analyzed,
    /// counts as a dim of [`SIZE_BITS`] bits.
    fn may_overflow(&self, size: Sym) -> bool {
        match self.arena.kind(size) {
            SymKind::Sum { terms, .. } => {
                terms.iter().any(|&(k, t)| self.bits(t, k) > MAX_UNCHECKED_BITS)
            }
            _ => self.bits(size, 1) > MAX_UNCHECKED_BITS,
        }
    }

    /// An upper bound of the number of bits of `coefficient * product`, where `product` is a product of sizes.
    fn bits(&self, product: Sym, coefficient: i64) -> u32 {
        let factors = self.factors(product);
        let in_memory = self.operands.iter().any(|dims| {
            let mut left = dims.clone();
            factors.iter().all(|f| {
                let at = left.iter().position(|d| d == f);
                at.map(|i| left.swap_remove(i)).is_some()
            })
        });
        let count = u32::try_from(factors.len()).unwrap_or(u32::MAX);
        let bits = SIZE_BITS.saturating_mul(count);
        let bits = if in_memory { bits.min(MEMORY_BITS) } else { bits };
        bits.saturating_add(coefficient.unsigned_abs().ilog2())
    }

    fn factors(&self, product: Sym) -> Vec<Sym> {
        match self.arena.kind(product) {
            SymKind::Product(list) => list.to_vec(),
            _ => vec![product],
        }
    }
}

/// The condition that a size fits in 64 bits. It is computed in float64, which does not wrap around.
fn fits_64_bits(size: &Expr) -> Expr {
    let value = in_float(size);
    all(&[lt(&value, &float_of(FITS_BELOW)), lt(&float_of(-FITS_BELOW), &value)])
}

fn float_of(value: f64) -> Expr {
    const_of(value, DType::Float64)
}

/// Whether a size must be checked because it is computed: it is neither a constant nor the size of an operand.
pub(crate) fn is_computed(size: &Expr) -> bool {
    !matches!(size.kind(), ExprKind::Int(_) | ExprKind::Var(_))
}

/// Converts the computation of a size to float64, which does not wrap around.
pub(crate) fn in_float(e: &Expr) -> Expr {
    match e.kind() {
        ExprKind::Int(v) => float_of(*v as f64),
        ExprKind::Binary(BinOp::FloorDiv, a, b) => binary(BinOp::Div, &in_float(a), &in_float(b)),
        ExprKind::Binary(
            op @ (BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Min | BinOp::Max),
            a,
            b,
        ) => binary(*op, &in_float(a), &in_float(b)),
        _ => cast(e, DType::Float64),
    }
}
