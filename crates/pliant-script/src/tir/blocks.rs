//! Parsing of blocks and their axes in loop functions.

use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{
    BlockData, Buffer, BufferRegion, Expr as IrExpr, ExprData, ForKind, IterKind, IterVar,
    Stmt as IrStmt, StmtData, Var,
};

use rustc_hash::FxHashSet;

use super::loops::Loop;
use super::{Local, PrimParser};
use crate::host_environment::HostValue;
use crate::python::ast::{Call, Expr, Range, Stmt};
use crate::script_errors::{ErrorKind, Reported, Res};

/// An axis of a block. In `with T.block([128]) as [i]`, the binding of the axis to a loop follows later in the block or is missing.
struct Axis {
    var: Var,
    min: IrExpr,
    extent: IrExpr,
    kind: IterKind,
    binding: Option<IrExpr>,
}

/// A block that is being parsed.
#[derive(Default)]
pub(super) struct OpenBlock {
    axes: Vec<Axis>,
    pub predicate: Option<IrExpr>,
    pub reads: Option<Vec<BufferRegion>>,
    pub writes: Option<Vec<BufferRegion>>,
    pub allocs: Vec<Buffer>,
    pub init: Option<IrStmt>,
    pub annotations: super::loops::Annotations,
}

impl<'s> PrimParser<'_, 's> {
    /// Parses `with T.block("C"):`, `with T.block([128, 128], "C") as [i, j]:`, `with T.block(n, m) as i, j:`.
    pub(super) fn block_stmt(
        &mut self,
        call: &Call<'s>,
        target: Option<&Expr<'s>>,
        body: &[Stmt<'s>],
        range: Range,
    ) -> Res<IrStmt> {
        let mark = self.open_scope();
        let result = self.block_inner(call, target, body, range);
        self.close_scope(mark);
        result
    }

    fn block_inner(
        &mut self,
        call: &Call<'s>,
        target: Option<&Expr<'s>>,
        body: &[Stmt<'s>],
        range: Range,
    ) -> Res<IrStmt> {
        let mut name = None;
        let mut domains: Vec<&Expr<'s>> = Vec::new();
        let named = call
            .keywords
            .iter()
            .filter(|k| matches!(k.name, "name" | "name_hint"))
            .map(|k| &k.value);
        for arg in call.args.iter().chain(named) {
            let captured = arg.as_name().and_then(|name| self.cx.lookup(name));
            match (arg.as_str(), captured, arg.as_sequence()) {
                (Some(text), ..) => name = Some(text.to_string()),
                (_, Some(HostValue::Str(text)), _) => name = Some(text.to_string()),
                (.., Some(items)) => domains.extend(items),
                _ => domains.push(arg),
            }
        }
        let targets: Vec<&Expr<'s>> = match target {
            None => Vec::new(),
            Some(t) => t.as_sequence().map_or_else(|| vec![t], |items| items.iter().collect()),
        };
        if targets.len() != domains.len() {
            let message = format!(
                "the target of T.block has {} axes, but its list of extents has {}",
                targets.len(),
                domains.len()
            );
            return Err(self.error(ErrorKind::Arguments, range, message));
        }
        let mut open = OpenBlock::default();
        for (target, domain) in targets.iter().zip(domains) {
            let kind = match self.tir_call(domain) {
                Some((name, _)) if name == "reduce_axis" => IterKind::Reduce,
                Some((name, _)) if matches!(name.as_str(), "opaque_axis" | "scan_axis") => {
                    IterKind::Opaque
                }
                _ => IterKind::Spatial,
            };
            let (min, extent) = self.domain(domain)?;
            self.add_axis(&mut open, target, min, extent, kind, None)?;
        }
        // These old forms omit the regions and are never printed. Derive the regions from the body.
        let old = name.is_none() || target.is_some();
        let body = self.stmts(body, Some(&mut open))?;
        if old && open.reads.is_none() && open.writes.is_none() {
            self.complete_regions(&mut open, body);
        }
        self.close_block(open, name, body)
    }

    fn add_axis(
        &mut self,
        open: &mut OpenBlock,
        target: &Expr<'s>,
        min: IrExpr,
        extent: IrExpr,
        kind: IterKind,
        binding: Option<IrExpr>,
    ) -> Res<()> {
        let Some(name) = target.as_name() else {
            return Err(self.error(
                ErrorKind::Structure,
                target.range,
                "the target of an axis declaration must be a single name",
            ));
        };
        let var = self.f.size_var(name);
        self.define(name, Local::Var(var));
        open.axes.push(Axis { var, min, extent, kind, binding });
        Ok(())
    }

    /// Creates the block after its body has been parsed. Axes without a binding get their own loops around the block.
    fn close_block(&mut self, open: OpenBlock, name: Option<String>, body: IrStmt) -> Res<IrStmt> {
        let mut nest = Vec::new();
        let mut iters = Vec::with_capacity(open.axes.len());
        for Axis { var, min, extent, kind, binding } in open.axes {
            let binding = match binding {
                Some(e) => e,
                None => {
                    let name = format!("{}_0", self.f.var(var).name);
                    let outer = self.f.size_var(name);
                    nest.push(Loop {
                        var: outer,
                        min,
                        extent,
                        kind: ForKind::Serial,
                        annotations: Vec::new(),
                    });
                    self.f.var_expr(outer)
                }
            };
            iters.push(IterVar { var, min, extent, kind, binding });
        }
        let name = match name {
            Some(name) => name,
            None => self.written_name(body),
        };
        let data = BlockData {
            name: name.into(),
            iters,
            predicate: open.predicate,
            reads: open.reads,
            writes: open.writes,
            allocs: open.allocs,
            init: open.init,
            body,
            annotations: open.annotations,
        };
        let data = data.with_init_for_reductions_only(&mut self.f);
        let block = self.f.add_stmt(StmtData::Block(Box::new(data)));
        Ok(self.nest(nest, block))
    }

    /// Derives the regions that a block reads and writes, in order of appearance, if its body consists only of stores. If the
    /// block has an init statement, reads of the buffers that the block writes are not listed.
    fn complete_regions(&mut self, open: &mut OpenBlock, body: IrStmt) {
        let stores = match self.f.stmt(body) {
            StmtData::Seq(items) => items.clone(),
            _ => vec![body],
        };
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for &s in &stores {
            let StmtData::Store { buffer, indices, value } = self.f.stmt(s) else { return };
            writes.push((*buffer, indices.clone()));
            for &root in indices.iter().chain([value]) {
                for_each_expr(&self.f, root, |e| {
                    if let ExprData::Load(buffer, indices) = self.f.expr(e) {
                        reads.push((*buffer, indices.clone()));
                    }
                });
            }
        }
        if open.init.is_some() {
            reads.retain(|r| writes.iter().all(|w| w.0 != r.0));
        }
        open.reads = Some(self.points(reads));
        open.writes = Some(self.points(writes));
    }

    fn points(&mut self, elements: Vec<(Buffer, Box<[IrExpr]>)>) -> Vec<BufferRegion> {
        let one = self.f.int(1);
        let mut seen = FxHashSet::default();
        let regions = elements.into_iter().map(|(buffer, indices)| BufferRegion {
            buffer,
            region: indices.iter().map(|&i| (i, one)).collect(),
        });
        regions.filter(|r| seen.insert(r.clone())).collect()
    }

    /// The name of the first buffer that a statement writes, which becomes the name of an unnamed block.
    fn written_name(&self, stmt: IrStmt) -> String {
        let mut stack = vec![stmt];
        while let Some(s) = stack.pop() {
            match self.f.stmt(s) {
                StmtData::Store { buffer, .. } => return self.f.buffer(*buffer).name.to_string(),
                StmtData::Seq(items) => stack.extend(items.iter().rev()),
                StmtData::For { body, .. }
                | StmtData::While(_, body)
                | StmtData::Let(_, _, body)
                | StmtData::Alloc(_, body)
                | StmtData::Assert(_, _, body) => stack.push(*body),
                StmtData::If(_, a, b) => {
                    stack.extend(b);
                    stack.push(*a);
                }
                StmtData::Block(b) => stack.push(b.body),
                StmtData::Evaluate(_) => {}
            }
        }
        "block".into()
    }

    // ---- statements that only blocks contain ----

    /// Whether an expression is a call of `T.axis.*`.
    pub(super) fn is_axis(&self, e: &Expr<'s>) -> bool {
        self.tir_call(e).is_some_and(|(name, _)| name.starts_with("axis."))
    }

    /// Parses `v_i, v_j = T.axis.remap("SR", [i, j])` and `v_i = T.axis.spatial(n, i)`.
    pub(super) fn axis(
        &mut self,
        open: &mut OpenBlock,
        target: &Expr<'s>,
        value: &Expr<'s>,
    ) -> Res<()> {
        let Some((name, call)) = self.tir_call(value) else { return Err(Reported) };
        let kind = match name.as_str() {
            "axis.remap" => return self.remap(open, target, call, value.range),
            "axis.spatial" | "axis.S" => IterKind::Spatial,
            "axis.reduce" | "axis.R" => IterKind::Reduce,
            "axis.opaque" | "axis.O" | "axis.scan" => IterKind::Opaque,
            _ => return Err(self.unknown_construct(&name, call.func.range)),
        };
        let [domain, binding] = call.args.as_slice() else {
            let message = format!(
                "T.{name} takes two arguments: the extent of the axis and the value bound to it"
            );
            return Err(self.error(ErrorKind::Arguments, value.range, message));
        };
        let (min, extent) = self.domain(domain)?;
        let binding = self.index(binding)?;
        self.add_axis(open, target, min, extent, kind, Some(binding))
    }

    fn remap(
        &mut self,
        open: &mut OpenBlock,
        target: &Expr<'s>,
        call: &Call<'s>,
        range: Range,
    ) -> Res<()> {
        let (Some(kinds), Some(values)) = (
            call.args.first().and_then(Expr::as_str),
            call.args.get(1).and_then(Expr::as_sequence),
        ) else {
            let message =
                "T.axis.remap takes the kinds and the loop variables: remap(\"SR\", [i, j])";
            return Err(self.error(ErrorKind::Arguments, range, message));
        };
        let targets = match target.as_sequence() {
            Some(items) => items,
            None => std::slice::from_ref(target),
        };
        if kinds.chars().count() != values.len() || targets.len() != values.len() {
            let message = format!(
                "T.axis.remap needs as many kinds and values as axes, but has {} axes, {} kinds and {} values",
                targets.len(),
                kinds.chars().count(),
                values.len()
            );
            return Err(self.error(ErrorKind::Arguments, range, message));
        }
        // The values refer to the outer loops even if the axes have the same names.
        let mut parts = Vec::with_capacity(values.len());
        for (letter, value) in kinds.chars().zip(values) {
            let kind = match letter {
                'S' => IterKind::Spatial,
                'R' => IterKind::Reduce,
                'O' => IterKind::Opaque,
                _ => {
                    let message =
                        format!("unknown kind '{letter}' of an axis; the kinds are S, R and O");
                    return Err(self.error(ErrorKind::Value, range, message));
                }
            };
            let binding = self.index(value)?;
            let domain = match self.f.expr(binding) {
                ExprData::Var(v) => self.loops.get(v).copied(),
                _ => None,
            };
            let Some((min, extent)) = domain else {
                return Err(self.error_help(
                    ErrorKind::Value,
                    value.range,
                    "T.axis.remap takes variables of the loops around the block",
                    "state the domain: v = T.axis.spatial(extent, value)",
                ));
            };
            parts.push((min, extent, kind, binding));
        }
        for (target, (min, extent, kind, binding)) in targets.iter().zip(parts) {
            self.add_axis(open, target, min, extent, kind, Some(binding))?;
        }
        Ok(())
    }

    /// Parses `T.bind(vi, i)`, TVM's syntax of 2021 that binds a block axis to a value. Returns false if the first argument is
    /// not an axis.
    pub(super) fn bind_axis(&mut self, open: &mut OpenBlock, call: &Call<'s>) -> Res<bool> {
        let [target, value] = call.args.as_slice() else { return Ok(false) };
        let var = match target.as_name().and_then(|n| self.scope.get(n)) {
            Some(Local::Var(v)) => *v,
            _ => return Ok(false),
        };
        if !open.axes.iter().any(|a| a.var == var) {
            return Ok(false);
        }
        let binding = self.index(value)?;
        for axis in open.axes.iter_mut().filter(|a| a.var == var) {
            axis.binding = Some(binding);
        }
        Ok(true)
    }

    /// Parses a statement that describes its block, such as `T.reads(...)`. Returns false for other statements.
    pub(super) fn block_description(
        &mut self,
        open: &mut OpenBlock,
        name: &str,
        call: &Call<'s>,
    ) -> Res<bool> {
        match name {
            "reads" | "writes" => {
                let items: Vec<&Expr<'s>> = call
                    .args
                    .iter()
                    .flat_map(|a| a.as_sequence().unwrap_or(std::slice::from_ref(a)))
                    .collect();
                let regions: Res<Vec<_>> = items.into_iter().map(|e| self.region(e)).collect();
                let slot = if name == "reads" { &mut open.reads } else { &mut open.writes };
                *slot = Some(regions?);
            }
            "where" => {
                let [cond] = call.args.as_slice() else {
                    return Err(self.error(
                        ErrorKind::Arguments,
                        call.func.range,
                        "T.where takes one argument: a condition",
                    ));
                };
                open.predicate = Some(self.cond(cond)?);
            }
            "block_attr" | "sblock_attr" => {
                let [annotations] = call.args.as_slice() else {
                    return Err(self.error(
                        ErrorKind::Arguments,
                        call.func.range,
                        "T.block_attr takes one argument: a dict from annotation names to constants",
                    ));
                };
                let annotations = self.annotations(annotations)?;
                open.annotations.extend(annotations);
            }
            "bind" => return self.bind_axis(open, call),
            _ => return Ok(false),
        }
        Ok(true)
    }
}
