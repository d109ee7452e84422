//! Reductions of several values at once, such as the largest element together with its index.
//!
//! A compute stage has only one formula, so a reduction of several values is a stage made of
//! statements: loops that update mutable scalars.

use std::sync::Arc;

use pliant_tensor::DType;
use rustc_hash::FxHashMap;

use super::TeError;
use super::expr::{Expr, IterVar, Var};
use super::expr_builders::cast;
use super::expr_traversal::substitute;
use super::extern_stage::{Cell, extern_};
use super::tensor::Tensor;

/// A commutative and associative function that combines two tuples of values, and its neutral tuple
/// of values.
#[derive(Clone, Debug)]
pub struct TupleReducer {
    lhs: Vec<Var>,
    rhs: Vec<Var>,
    result: Vec<Expr>,
    identity: Vec<Expr>,
}

impl TupleReducer {
    /// Creates a reducer from a function and its neutral values, whose types are the types of the values.
    ///
    /// # Errors
    /// If the function returns another number of values.
    pub fn new(
        identity: Vec<Expr>,
        combine: impl FnOnce(&[Expr], &[Expr]) -> Vec<Expr>,
    ) -> Result<Self, TeError> {
        let vars = |name: &str| -> Vec<Var> {
            identity
                .iter()
                .enumerate()
                .map(|(k, e)| Var::new(format!("{name}{k}"), e.ty()))
                .collect()
        };
        let exprs = |vars: &[Var]| -> Vec<Expr> { vars.iter().map(Var::expr).collect() };
        let (lhs, rhs) = (vars("x"), vars("y"));
        let result = combine(&exprs(&lhs), &exprs(&rhs));
        if result.len() != identity.len() {
            let (actual, expected) = (result.len(), identity.len());
            return Err(TeError::new(format!(
                "the combining function of the reduction returns {actual} values, but must return \
                 {expected}, one for each neutral value"
            )));
        }
        let result = result.iter().zip(&identity).map(|(e, neutral)| cast(e, neutral.ty()));
        Ok(TupleReducer { lhs, rhs, result: result.collect(), identity })
    }

    /// Combines two tuples of values into one tuple.
    fn combine(&self, a: &[Expr], b: &[Expr]) -> Vec<Expr> {
        let pairs = self.lhs.iter().zip(a).chain(self.rhs.iter().zip(b));
        let map: FxHashMap<Var, Expr> = pairs.map(|(v, e)| (v.clone(), e.clone())).collect();
        self.result.iter().map(|e| substitute(e, &map)).collect()
    }
}

/// A reduction of several values over axes.
#[derive(Clone, Debug)]
pub struct TupleReduction {
    /// The function that combines tuples of values.
    pub reducer: Arc<TupleReducer>,
    /// The expressions whose values are combined, one per tuple field.
    pub source: Vec<Expr>,
    /// The axes over which the tuples are combined.
    pub axes: Vec<IterVar>,
    /// The condition that selects the elements to be reduced. `None` selects all.
    pub cond: Option<Expr>,
    /// The initial values, if they differ from the neutral values.
    pub init: Option<Vec<Expr>>,
}

/// Creates one tensor of the given shape per reduced value. The element at the indices `axes` is
/// the value of the reduction. The element types are the types of the neutral values.
///
/// # Errors
/// If the number of values does not match the reducer.
pub fn compute_tuple_reduction(
    shape: &[Expr],
    name: &str,
    axes: &[Var],
    reduction: &TupleReduction,
) -> Result<Vec<Tensor>, TeError> {
    let TupleReduction { reducer, source, axes: reduce, cond, init } = reduction;
    let count = reducer.identity.len();
    let init_count = init.as_ref().map_or(count, Vec::len);
    if source.len() != count || init_count != count || axes.len() != shape.len() {
        return Err(TeError::new(format!(
            "'{name}' reduces {} values with {init_count} initial values and a combining \
             function of {count} values, but these numbers must be equal",
            source.len()
        )));
    }
    let outputs: Vec<(Vec<Expr>, DType)> =
        reducer.identity.iter().map(|e| (shape.to_vec(), e.ty().dtype)).collect();
    Ok(extern_(name, &outputs, |b, out| {
        b.for_each(shape, |b, indices| {
            let axis_values: FxHashMap<Var, Expr> =
                axes.iter().cloned().zip(indices.iter().cloned()).collect();
            let first = init.as_ref().unwrap_or(&reducer.identity).iter().zip(&reducer.identity);
            let cells: Vec<Cell> = first
                .map(|(e, neutral)| {
                    b.cell("total", &cast(&substitute(e, &axis_values), neutral.ty()))
                })
                .collect();
            let ranges: Vec<IterVar> = reduce
                .iter()
                .map(|axis| IterVar {
                    min: substitute(&axis.min, &axis_values),
                    extent: substitute(&axis.extent, &axis_values),
                    ..axis.clone()
                })
                .collect();
            b.for_axes(&ranges, |b, at| {
                let at: FxHashMap<Var, Expr> =
                    axis_values.iter().chain(at).map(|(v, e)| (v.clone(), e.clone())).collect();
                let step = |b: &mut super::Body| {
                    let next: Vec<Expr> = source
                        .iter()
                        .zip(&reducer.identity)
                        .map(|(e, neutral)| {
                            b.let_("next", &cast(&substitute(e, &at), neutral.ty()))
                        })
                        .collect();
                    let totals: Vec<Expr> = cells.iter().map(Cell::get).collect();
                    let combined: Vec<Expr> = reducer
                        .combine(&totals, &next)
                        .iter()
                        .map(|value| b.let_("combined", value))
                        .collect();
                    for (cell, value) in cells.iter().zip(&combined) {
                        b.set(cell, value);
                    }
                };
                match cond {
                    Some(cond) => b.if_(&substitute(cond, &at), step),
                    None => step(b),
                }
            });
            for (to, cell) in out.iter().zip(&cells) {
                b.store(to, indices, &cell.get());
            }
        });
    }))
}
