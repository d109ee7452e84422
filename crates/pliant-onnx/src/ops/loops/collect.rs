//! What the turns of a loop collect: a chain of parts beside the state, so that a turn adds its part without copying those
//! before it.

use pliant_ir::DType;
use pliant_ir::relax::{Expr, TensorShape, TypeData};
use pliant_sym::{Sym, SymVar};
use rustc_hash::FxHashSet;

use super::state::{GoesOn, State, while_loop};
use crate::error::Problem;
use crate::host;
use crate::kind::Kind;
use crate::node::Node;
use crate::value::Value;

/// Makes the state after a turn, and the parts that the turn collects.
type Collecting<'t> =
    &'t mut dyn FnMut(&mut Node<'_, '_>, &[Value]) -> Result<(Vec<Value>, Vec<Value>), Problem>;

/// The last state of a loop, and what it collected.
pub(in crate::ops) struct Last {
    pub state: Vec<Value>,
    pub parts: Vec<Parts>,
}

/// What the turns have collected under one name.
pub(in crate::ops) struct Parts {
    chain: Expr,
    kind: Kind,
    /// The dims of a part, where they are known outside of the body.
    dims: Option<Vec<Option<Sym>>>,
}

impl Parts {
    /// All parts along a new first axis.
    ///
    /// # Errors
    /// When they are no tensors.
    pub fn stacked(&self, n: &mut Node<'_, '_>, turns: Sym) -> Result<Value, Problem> {
        let Kind::Tensor { dtype, small, .. } = &self.kind else {
            let message =
                format!("a turn collects {}, but must collect a tensor", self.kind.name());
            return Err(Problem::invalid(message));
        };
        let zero = n.func().syms.int(0);
        let known = self.dims.as_deref().unwrap_or_default();
        let empty: Vec<Sym> = known.iter().map(|d| d.unwrap_or(zero)).collect();
        let (empty, element) = (n.func().shape(&empty), n.func().dtype_value(*dtype));
        let all = n.host(host::CHAIN_STACK, &[self.chain, empty, element])?;
        let func = n.func();
        let dims = self.dims.as_ref().map(|dims| {
            let mut all = vec![turns];
            all.extend(dims.iter().map(|dim| {
                dim.unwrap_or_else(|| {
                    let var = func.fresh_sym("part");
                    func.syms.var(var)
                })
            }));
            all
        });
        let all = n.seen_as(all, dims.as_deref(), *dtype);
        Ok(match small {
            Some(small) => Value::Coded(*small, Box::new(all.into())),
            None => all.into(),
        })
    }

    /// All parts as a sequence.
    ///
    /// # Errors
    /// Never in practice.
    pub fn sequence(&self, n: &mut Node<'_, '_>) -> Result<Value, Problem> {
        let all = n.host(host::CHAIN_SEQUENCE, &[self.chain])?;
        Ok(Value::Object(all, Kind::Sequence(Box::new(self.kind.clone()))))
    }
}

/// What is known of a part from one reading of the body.
struct Part {
    kind: Kind,
    dims: Option<Vec<Option<Sym>>>,
}

impl Part {
    fn of(n: &mut Node<'_, '_>, e: Expr, kind: Kind, outside: &FxHashSet<SymVar>) -> Part {
        let func = n.func();
        let dims = match func.ty(e) {
            TypeData::Tensor { shape: TensorShape::Dims(dims), .. } => Some(dims.to_vec()),
            _ => None,
        };
        let known = |dim: Sym| {
            let inner = func.syms.free_vars(dim).into_iter().any(|v| !outside.contains(&v));
            (!inner).then_some(dim)
        };
        Part { kind, dims: dims.map(|dims| dims.into_iter().map(known).collect()) }
    }
}

/// Runs a loop whose turns give the next state and `count` parts, which are to be `alike` where they are stacked.
pub(in crate::ops) fn run(
    n: &mut Node<'_, '_>,
    first: Vec<(String, Value)>,
    (count, alike): (usize, bool),
    goes_on: GoesOn<'_>,
    turn: Collecting<'_>,
) -> Result<Last, Problem> {
    let outside: FxHashSet<SymVar> = n.func().syms.vars().collect();
    let (carried, mut first) = (first.len(), first);
    for k in 0..count {
        let none = n.nothing()?;
        first.push((format!("parts_{k}"), Value::Object(none, Kind::Own)));
    }
    let mut seen: Vec<Part> = Vec::new();
    let state = State::new(n, first)?;
    let mut all = while_loop(n, state, goes_on, &mut |n, values| {
        let (state, chains) = values.split_at(carried);
        let (mut next, parts) = turn(n, state)?;
        if next.len() != carried || parts.len() != count {
            return Err(Problem::invalid(
                "its body returns another number of values than it takes",
            ));
        }
        seen.clear();
        for (chain, part) in chains.iter().zip(&parts) {
            let ((chain, _), (part, kind)) = (n.object(chain)?, n.object(part)?);
            seen.push(Part::of(n, part, kind, &outside));
            let alike = n.host_int(i64::from(alike));
            let more = n.host(host::CHAIN_PUSH, &[chain, part, alike])?;
            next.push(Value::Object(more, Kind::Own));
        }
        Ok(next)
    })?;
    let chains = all.split_off(carried);
    let mut parts = Vec::with_capacity(count);
    for (chain, Part { kind, dims }) in chains.iter().zip(seen) {
        let (chain, _) = n.object(chain)?;
        parts.push(Parts { chain, kind, dims });
    }
    Ok(Last { state: all, parts })
}

/// `counter + 1`.
pub(in crate::ops) fn next(n: &mut Node<'_, '_>, counter: &Value) -> Result<Value, Problem> {
    let counter = n.materialize(counter)?;
    let one = n.scalar(1i64)?;
    Ok(n.op("relax.add", &[counter, one])?.into())
}

/// Whether a counter is below a size.
pub(in crate::ops) fn below(
    n: &mut Node<'_, '_>,
    counter: &Value,
    size: Expr,
) -> Result<Expr, Problem> {
    let counter = n.materialize(counter)?;
    let size = n.cast(size, DType::Int64)?;
    n.op("relax.less", &[counter, size])
}
