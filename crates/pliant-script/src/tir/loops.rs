//! Parsing of loops: `for`, `T.grid` and similar.

use std::sync::Arc;

use pliant_ir::AttrValue;
use pliant_ir::tir::bind_calls::contains_calls;
use pliant_ir::tir::{BinOp, Expr as IrExpr, ForKind, Stmt as IrStmt, StmtData, Var};

use super::expressions::Val;
use super::{Local, PrimParser};
use crate::python::ast::{Call, Expr, ExprKind, Range, Stmt};
use crate::script_errors::{ErrorKind, Res};

/// The annotations of a loop or block.
pub(super) type Annotations = Vec<(Arc<str>, AttrValue)>;

/// The range of a loop. Loops of the IR have step 1. For other steps, the loop variable of the script is computed from the loop
/// variable of the IR.
struct LoopRange {
    min: IrExpr,
    extent: IrExpr,
    kind: ForKind,
    annotations: Annotations,
    /// The first value and the step of the loop variable in the script; `None` if the step is 1.
    strided: Option<(IrExpr, i64)>,
    /// The values that the loop function computes once, before the loop starts, each with the variable in which it is stored.
    once: Vec<(Var, IrExpr)>,
}

/// A loop of a loop nest, without its body.
pub(super) struct Loop {
    pub var: Var,
    pub min: IrExpr,
    pub extent: IrExpr,
    pub kind: ForKind,
    pub annotations: Annotations,
}

impl<'s> PrimParser<'_, 's> {
    /// Parses `for targets in iter: body`.
    pub(super) fn for_stmt(
        &mut self,
        target: &Expr<'s>,
        iter: &Expr<'s>,
        body: &[Stmt<'s>],
    ) -> Res<IrStmt> {
        let ranges = self.loop_ranges(iter)?;
        let targets = match target.as_sequence() {
            Some(items) => items,
            None => std::slice::from_ref(target),
        };
        if targets.len() != ranges.len() {
            let (n, m) = (targets.len(), ranges.len());
            let message =
                format!("the for loop has {n} loop variables, but iterates over {m} ranges");
            return Err(self.error(ErrorKind::Arguments, target.range, message));
        }
        let mark = self.open_scope();
        let mut nest = Vec::with_capacity(ranges.len());
        let mut before = Vec::new();
        for (target, range) in targets.iter().zip(ranges) {
            let LoopRange { min, extent, kind, annotations, strided, once } = range;
            before.extend(once);
            let Some(name) = target.as_name() else {
                return Err(self.error(
                    ErrorKind::Structure,
                    target.range,
                    "the loop variable of a for loop must be a name",
                ));
            };
            let var = self.f.size_var(name);
            match strided {
                None => self.define(name, Local::Var(var)),
                Some((start, step)) => {
                    let (iteration, step) = (self.f.var_expr(var), self.f.int(step));
                    let offset = self.f.binary(BinOp::Mul, iteration, step);
                    let value = self.f.binary(BinOp::Add, start, offset);
                    self.define(name, Local::Const(Val::Typed(value)));
                }
            }
            self.loops.insert(var, (min, extent));
            nest.push(Loop { var, min, extent, kind, annotations });
        }
        let body = self.stmts(body, None);
        self.close_scope(mark);
        let nest = self.nest(nest, body?);
        Ok(self.with_evaluated_once(before, nest))
    }

    /// Wraps a body in a loop nest. The first loop of the list is the outermost.
    pub(super) fn nest(&mut self, nest: Vec<Loop>, mut body: IrStmt) -> IrStmt {
        for Loop { var, min, extent, kind, annotations } in nest.into_iter().rev() {
            body = self.f.add_stmt(StmtData::For { var, min, extent, kind, body, annotations });
        }
        body
    }

    fn loop_ranges(&mut self, iter: &Expr<'s>) -> Res<Vec<LoopRange>> {
        let bad = |p: &Self| {
            p.error_help(
                ErrorKind::Unsupported,
                iter.range,
                "a loop can only iterate over a range",
                "write: for i in range(n), for i, j in T.grid(n, m), for i in T.parallel(n)",
            )
        };
        let Some(call) = iter.as_call() else { return Err(bad(self)) };
        let name = match self.tir_name(&call.func) {
            Some(name) => name,
            None if call.func.as_name() == Some("range") => "range".into(),
            None => return Err(bad(self)),
        };
        let kind = match name.as_str() {
            "grid" => {
                let mut out = Vec::with_capacity(call.args.len());
                for arg in &call.args {
                    let (min, extent) = self.domain(arg)?;
                    let (kind, annotations) = (ForKind::Serial, Annotations::new());
                    if contains_calls(&self.f, min) || contains_calls(&self.f, extent) {
                        return Err(self.error_help(
                            ErrorKind::Unsupported,
                            arg.range,
                            "T.grid would evaluate this call in every iteration of the outer loops",
                            "bind it to a variable first",
                        ));
                    }
                    let once = Vec::new();
                    out.push(LoopRange { min, extent, kind, annotations, strided: None, once });
                }
                if out.is_empty() {
                    return Err(self.error(
                        ErrorKind::Arguments,
                        iter.range,
                        "T.grid needs the extent of at least one loop as argument",
                    ));
                }
                return Ok(out);
            }
            "range" | "serial" => ForKind::Serial,
            "parallel" => ForKind::Parallel,
            "vectorized" | "vectorize" => ForKind::Vectorized,
            "unroll" | "unrolled" => ForKind::Unrolled,
            "thread_binding" => {
                return Err(self.error_help(
                    ErrorKind::Unsupported,
                    iter.range,
                    "a CPU has no thread axes",
                    "write: for i in T.parallel(n)",
                ));
            }
            _ => {
                let range = match call.func.kind {
                    ExprKind::Attribute(_, _, range) => range,
                    _ => call.func.range,
                };
                return Err(self.unknown_construct(&name, range));
            }
        };
        let mut range = self.range_args(&name, call, iter.range)?;
        range.kind = kind;
        for k in &call.keywords {
            if k.name == "annotations" {
                range.annotations = self.annotations(&k.value)?;
            }
        }
        Ok(vec![range])
    }

    fn range_args(&mut self, name: &str, call: &Call<'s>, range: Range) -> Res<LoopRange> {
        let (mut start, mut stop, mut step) = match call.args.as_slice() {
            [] => (None, None, None),
            [stop] => (None, Some(stop), None),
            [start, stop] => (Some(start), Some(stop), None),
            [start, stop, step] => (Some(start), Some(stop), Some(step)),
            _ => {
                let message = format!("{name} takes at most 3 arguments (start, stop and step)");
                return Err(self.error(ErrorKind::Arguments, range, message));
            }
        };
        for k in &call.keywords {
            match k.name {
                "start" => start = Some(&k.value),
                "stop" => stop = Some(&k.value),
                "step" => step = Some(&k.value),
                "annotations" => {}
                _ => {
                    let message = format!("{name} has no parameter '{}'", k.name);
                    return Err(self.error(ErrorKind::Arguments, k.range, message));
                }
            }
        }
        let step = match step {
            Some(e) if !matches!(e.kind, ExprKind::None) => self.step(e)?,
            _ => 1,
        };
        let Some(stop) = stop else {
            return Err(self.error(
                ErrorKind::Arguments,
                range,
                format!("{name} needs the number of iterations as its argument"),
            ));
        };
        let min = match start {
            Some(e) if !matches!(e.kind, ExprKind::None) => self.index(e)?,
            _ => self.f.int(0),
        };
        let end = self.index(stop)?;
        let (kind, annotations, mut once) = (ForKind::Serial, Annotations::new(), Vec::new());
        if step != 1 {
            // Every iteration computes the script's loop variable from the first value.
            let min = self.evaluate_once(min, &mut once);
            let (zero, extent) = (self.f.int(0), self.trip_count(min, end, step));
            let strided = Some((min, step));
            return Ok(LoopRange { min: zero, extent, kind, annotations, strided, once });
        }
        // The extent also depends on the first value.
        let calls = contains_calls(&self.f, min) || contains_calls(&self.f, end);
        let min = if calls { self.evaluate_once(min, &mut once) } else { min };
        let extent = if start.is_some() { self.extent(min, end) } else { end };
        Ok(LoopRange { min, extent, kind, annotations, strided: None, once })
    }

    /// Evaluates the step of a range, which must be a nonzero constant.
    fn step(&mut self, e: &Expr<'s>) -> Res<i64> {
        let step = self.index(e)?;
        match self.f.as_int(step) {
            Some(step) if step != 0 && step != i64::MIN => Ok(step),
            _ => Err(self.error_help(
                ErrorKind::Unsupported,
                e.range,
                "the step of a for loop must be an integer constant other than 0",
                "loop over the number of steps and multiply the loop variable by the step",
            )),
        }
    }

    /// The number of iterations of a range from `start` to `end`.
    fn trip_count(&mut self, start: IrExpr, end: IrExpr, step: i64) -> IrExpr {
        let (low, high) = if step > 0 { (start, end) } else { (end, start) };
        let size = step.abs();
        if let (Some(a), Some(b)) = (self.f.as_int(low), self.f.as_int(high)) {
            let span = (i128::from(b) - i128::from(a)).max(0);
            let count = (span + i128::from(size) - 1) / i128::from(size);
            // The difference of two 64-bit values is less than 2^64, so the trip count can overflow only for steps of 1 and 2.
            return self.f.int(i64::try_from(count).unwrap_or(i64::MAX));
        }
        let span =
            if self.f.as_int(low) == Some(0) { high } else { self.f.binary(BinOp::Sub, high, low) };
        let (less, size) = (self.f.int(size - 1), self.f.int(size));
        let raised = self.f.binary(BinOp::Add, span, less);
        self.f.binary(BinOp::FloorDiv, raised, size)
    }

    /// Evaluates the domain of a loop or axis, which is written as an extent or as `(first, end)`.
    /// Returns the first value and the extent.
    pub(super) fn domain(&mut self, e: &Expr<'s>) -> Res<(IrExpr, IrExpr)> {
        let pair = match (e.as_sequence(), self.tir_call(e)) {
            (Some([a, b]), _) => Some((a, b)),
            (None, Some((name, call))) if matches!(name.as_str(), "range" | "reduce_axis") => {
                match call.args.as_slice() {
                    [a, b] => Some((a, b)),
                    [n] => return self.domain(n),
                    _ => None,
                }
            }
            (Some(_), _) => {
                return Err(self.error(
                    ErrorKind::Arguments,
                    e.range,
                    "the domain of an axis must be an extent or a pair (first, end)",
                ));
            }
            _ => None,
        };
        match pair {
            Some((a, b)) => {
                let (min, end) = (self.index(a)?, self.index(b)?);
                Ok((min, self.extent(min, end)))
            }
            None => {
                let extent = self.index(e)?;
                Ok((self.f.int(0), extent))
            }
        }
    }

    /// Evaluates a dict of annotations. Values that are not literals are evaluated by the surrounding Python program.
    pub(super) fn annotations(&mut self, e: &Expr<'s>) -> Res<Annotations> {
        match (&e.kind, crate::literals::attr(e)) {
            (_, Some(AttrValue::Map(items))) => Ok(items),
            (_, Some(AttrValue::None)) => Ok(Annotations::new()),
            (ExprKind::Dict(items), None) => items
                .iter()
                .map(|(key, value)| match (key.as_str(), self.note(value)?) {
                    (Some(key), Some(value)) => Ok((key.into(), value)),
                    _ => Err(self.error(
                        ErrorKind::Value,
                        value.range,
                        "in a dict of annotations, each key must be a string and each value a constant",
                    )),
                })
                .collect(),
            _ => Err(self.error(
                ErrorKind::Value,
                e.range,
                "the annotations of a loop, block or function must be a dict from names to constants",
            )),
        }
    }

    fn note(&self, e: &Expr<'s>) -> Res<Option<AttrValue>> {
        match crate::literals::attr(e) {
            Some(value) => Ok(Some(value)),
            None => Ok(crate::literals::host_attr(&self.cx.eval(e.range)?)),
        }
    }
}
