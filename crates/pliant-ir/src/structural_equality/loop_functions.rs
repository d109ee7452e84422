//! Compares loop functions: structural equality up to renaming, and a compatible hash.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use super::{Comparison, Difference, hash_attrs, same, same_attrs};
use crate::print::tir_expr_text;
use crate::tir::visit::{for_each_child, for_each_expr, for_each_operand, for_each_stmt_expr};
use crate::tir::{
    BlockData, Buffer, BufferRegion, Expr, ExprData, PrimFunc, Stmt, StmtData, Var, VarTy,
};

/// Compares two loop functions in lockstep, and records which variables and buffers of the two correspond.
pub(super) struct Matcher<'a> {
    a: &'a PrimFunc,
    b: &'a PrimFunc,
    vars: FxHashMap<Var, Var>,
    vars_back: FxHashMap<Var, Var>,
    buffers: FxHashMap<Buffer, Buffer>,
    buffers_back: FxHashMap<Buffer, Buffer>,
    /// Cache: pairs of expressions that have been found equal. They stay equal, because a pairing of variables never changes.
    equal: FxHashSet<(Expr, Expr)>,
}

/// Two statements to compare, and their location in the statement that contains them.
type Pair = (Stmt, Stmt, String);

impl<'a> Matcher<'a> {
    pub(super) fn new(a: &'a PrimFunc, b: &'a PrimFunc) -> Self {
        Matcher {
            a,
            b,
            vars: FxHashMap::default(),
            vars_back: FxHashMap::default(),
            buffers: FxHashMap::default(),
            buffers_back: FxHashMap::default(),
            equal: FxHashSet::default(),
        }
    }

    pub(super) fn functions(&mut self) -> Comparison {
        same_attrs(&self.a.attrs, &self.b.attrs)?;
        same("visibility (private)", self.a.private, self.b.private)?;
        same("number of parameters", self.a.params.len(), self.b.params.len())?;
        for (i, (&p, &q)) in self.a.params.iter().zip(&self.b.params).enumerate() {
            self.define(p, q).map_err(|d| d.at(format!("parameter {i}")))?;
        }
        for (i, (p, q)) in self.a.params.iter().zip(&self.b.params).enumerate() {
            let path = || format!("parameter {i}");
            match (self.a.buffer_map.get(p), self.b.buffer_map.get(q)) {
                (Some(&x), Some(&y)) => self.buffer(x, y, true).map_err(|d| d.at(path()))?,
                (None, None) => {}
                _ => {
                    return Err(
                        Difference::new("the parameter has a buffer on one side only").at(path())
                    );
                }
            }
        }
        let mut stack: Vec<Pair> = vec![(self.a.body, self.b.body, "body".into())];
        while let Some((x, y, path)) = stack.pop() {
            let children = self.stmt(x, y).map_err(|d| d.at(&path))?;
            stack.extend(children.into_iter().rev().map(|(x, y, at)| {
                // Long paths are cut off: statements can be nested deeply.
                let at = if path.len() < 200 { format!("{path} / {at}") } else { at };
                (x, y, at)
            }));
        }
        Ok(())
    }

    fn define(&mut self, x: Var, y: Var) -> Comparison {
        let (s, t) = (self.a.var(x).ty, self.b.var(y).ty);
        if s != t {
            return Err(Difference::sides("type", var_ty(s), var_ty(t)));
        }
        self.vars.insert(x, y);
        self.vars_back.insert(y, x);
        Ok(())
    }

    fn use_var(&mut self, x: Var, y: Var) -> Comparison {
        match (self.vars.get(&x), self.vars_back.get(&y)) {
            (Some(&t), Some(&s)) if t == y && s == x => Ok(()),
            // Sizes defined by buffer parameters are paired at their first use.
            (None, None) => self.define(x, y),
            _ => Err(Difference::sides("variable", &self.a.var(x).name, &self.b.var(y).name)),
        }
    }

    fn buffer(&mut self, x: Buffer, y: Buffer, new: bool) -> Comparison {
        if !new {
            match (self.buffers.get(&x), self.buffers_back.get(&y)) {
                (Some(&t), Some(&s)) if t == y && s == x => return Ok(()),
                (None, None) => {}
                _ => {
                    let (x, y) = (&self.a.buffer(x).name, &self.b.buffer(y).name);
                    return Err(Difference::sides("buffer", x, y));
                }
            }
        }
        self.buffers.insert(x, y);
        self.buffers_back.insert(y, x);
        let (s, t) = (self.a.buffer(x), self.b.buffer(y));
        let at = |d: Difference| d.at(format!("buffer '{}'", s.name));
        same("dtype", s.dtype, t.dtype).map_err(at)?;
        same("scope", s.scope.name(), t.scope.name()).map_err(at)?;
        self.exprs(&s.shape, &t.shape, "dim").map_err(at)?;
        self.exprs(&s.strides, &t.strides, "stride").map_err(at)?;
        let (o, p): (Vec<Expr>, Vec<Expr>) =
            (s.elem_offset.into_iter().collect(), t.elem_offset.into_iter().collect());
        self.exprs(&o, &p, "offset").map_err(at)
    }

    fn exprs(&mut self, x: &[Expr], y: &[Expr], what: &str) -> Comparison {
        if x.len() != y.len() {
            return Err(Difference::sides(&format!("number of {what}s"), x.len(), y.len()));
        }
        for (i, (&x, &y)) in x.iter().zip(y).enumerate() {
            self.expr(x, y).map_err(|d| d.at(format!("{what} {i}")))?;
        }
        Ok(())
    }

    fn expr(&mut self, x: Expr, y: Expr) -> Comparison {
        let mut stack = vec![(x, y)];
        let (mut left, mut right) = (Vec::new(), Vec::new());
        while let Some((x, y)) = stack.pop() {
            if !self.equal.insert((x, y)) {
                continue;
            }
            let (s, t) = (self.a.expr(x), self.b.expr(y));
            let same_head = match (s, t) {
                (ExprData::Var(v), ExprData::Var(w)) => self.use_var(*v, *w).is_ok(),
                (ExprData::Load(v, _), ExprData::Load(w, _)) => self.buffer(*v, *w, false).is_ok(),
                _ => head(s) == head(t),
            };
            for_each_operand(s, |e| left.push(e));
            for_each_operand(t, |e| right.push(e));
            if !same_head || left.len() != right.len() {
                self.equal.remove(&(x, y));
                let (x, y) = (tir_expr_text(self.a, x), tir_expr_text(self.b, y));
                return Err(Difference::sides("expression", x, y));
            }
            stack.extend(left.drain(..).zip(right.drain(..)).rev());
        }
        Ok(())
    }

    /// Compares two expressions; `component` is their location, which becomes part of the path of a difference.
    fn expr_at(&mut self, x: Expr, y: Expr, component: &str) -> Comparison {
        self.expr(x, y).map_err(|d| d.at(component))
    }

    /// Compares two statements except for the statements nested in them, which are returned in pairs.
    fn stmt(&mut self, x: Stmt, y: Stmt) -> Result<Vec<Pair>, Difference> {
        let (a, b) = (self.a, self.b);
        let one = |x: &Stmt, y: &Stmt, at: &str| vec![(*x, *y, at.to_string())];
        match (a.stmt(x), b.stmt(y)) {
            (StmtData::Seq(_), _) | (_, StmtData::Seq(_)) => {
                let (xs, ys) = (flatten(a, x), flatten(b, y));
                same("number of statements", xs.len(), ys.len())?;
                let pairs = xs.into_iter().zip(ys).enumerate();
                Ok(pairs.map(|(i, (x, y))| (x, y, format!("statement {i}"))).collect())
            }
            (
                StmtData::For { var, min, extent, kind, body, annotations },
                StmtData::For { var: v, min: m, extent: e, kind: k, body: c, annotations: n },
            ) => {
                self.expr_at(*min, *m, "first value")?;
                self.expr_at(*extent, *e, "extent")?;
                same("kind of loop", kind.name(), k.name())?;
                if annotations != n {
                    return Err(Difference::new(
                        "the annotations of the loop differ between the left and the right",
                    ));
                }
                self.define(*var, *v)?;
                Ok(one(body, c, &format!("loop {}", a.var(*var).name)))
            }
            (StmtData::While(e, body), StmtData::While(g, c)) => {
                self.expr_at(*e, *g, "condition")?;
                Ok(one(body, c, "while"))
            }
            (StmtData::If(e, t, o), StmtData::If(g, u, p)) => {
                self.expr_at(*e, *g, "condition")?;
                let mut out = one(t, u, "then");
                match (o, p) {
                    (Some(o), Some(p)) => out.push((*o, *p, "else".into())),
                    (None, None) => {}
                    _ => {
                        return Err(Difference::new(
                            "the 'if' statement has an 'else' on one side only",
                        ));
                    }
                }
                Ok(out)
            }
            (StmtData::Let(v, e, body), StmtData::Let(w, g, c)) => {
                self.expr_at(*e, *g, "value")?;
                self.define(*v, *w)?;
                Ok(one(body, c, "let"))
            }
            (
                StmtData::Store { buffer, indices, value },
                StmtData::Store { buffer: p, indices: i, value: v },
            ) => {
                self.buffer(*buffer, *p, false)?;
                self.exprs(indices, i, "index")?;
                self.expr_at(*value, *v, "value")?;
                Ok(Vec::new())
            }
            (StmtData::Alloc(p, body), StmtData::Alloc(q, c)) => {
                self.buffer(*p, *q, true)?;
                Ok(one(body, c, "alloc"))
            }
            (StmtData::Evaluate(e), StmtData::Evaluate(g)) => {
                self.expr_at(*e, *g, "evaluate")?;
                Ok(Vec::new())
            }
            (StmtData::Assert(e, m, body), StmtData::Assert(g, n, c)) => {
                self.expr_at(*e, *g, "condition")?;
                same("message", m, n)?;
                Ok(one(body, c, "assert"))
            }
            (StmtData::Block(p), StmtData::Block(q)) => {
                self.block(p, q).map_err(|d| d.at(format!("block '{}'", p.name)))?;
                let mut out: Vec<Pair> =
                    p.init.zip(q.init).map(|(x, y)| (x, y, "init".into())).into_iter().collect();
                out.push((p.body, q.body, format!("block '{}'", p.name)));
                Ok(out)
            }
            (s, t) => Err(Difference::sides("statement", stmt_name(s), stmt_name(t))),
        }
    }

    fn block(&mut self, p: &BlockData, q: &BlockData) -> Comparison {
        same("number of axes", p.iters.len(), q.iters.len())?;
        for (i, (x, y)) in p.iters.iter().zip(&q.iters).enumerate() {
            let path = format!("axis {i}");
            self.expr_at(x.binding, y.binding, &path)?;
            self.expr_at(x.min, y.min, &path)?;
            self.expr_at(x.extent, y.extent, &path)?;
            if x.kind != y.kind {
                return Err(Difference::new(
                    "the axis has different kinds on the left and on the right",
                )
                .at(path));
            }
        }
        for (x, y) in p.iters.iter().zip(&q.iters) {
            self.define(x.var, y.var)?;
        }
        let preds = (p.predicate.as_slice(), q.predicate.as_slice());
        self.exprs(preds.0, preds.1, "predicate")?;
        same("number of buffers", p.allocs.len(), q.allocs.len())?;
        for (&x, &y) in p.allocs.iter().zip(&q.allocs) {
            self.buffer(x, y, true)?;
        }
        self.regions(&p.reads, &q.reads, "read")?;
        self.regions(&p.writes, &q.writes, "written region")?;
        if p.annotations != q.annotations {
            return Err(Difference::new(
                "the annotations of the block differ between the left and the right",
            ));
        }
        same("presence of an init statement", p.init.is_some(), q.init.is_some())
    }

    fn regions(
        &mut self,
        x: &Option<Vec<BufferRegion>>,
        y: &Option<Vec<BufferRegion>>,
        what: &str,
    ) -> Comparison {
        let (Some(x), Some(y)) = (x, y) else {
            return same(&format!("presence of {what}s"), x.is_some(), y.is_some());
        };
        same(&format!("number of {what}s"), x.len(), y.len())?;
        for (i, (x, y)) in x.iter().zip(y).enumerate() {
            let flat =
                |r: &BufferRegion| r.region.iter().flat_map(|&(s, e)| [s, e]).collect::<Vec<_>>();
            self.buffer(x.buffer, y.buffer, false)
                .and_then(|()| self.exprs(&flat(x), &flat(y), "bound"))
                .map_err(|d| d.at(format!("{what} {i}")))?;
        }
        Ok(())
    }
}

fn var_ty(ty: VarTy) -> String {
    match ty {
        VarTy::Handle => "handle".into(),
        VarTy::Value(ty) => ty.to_string(),
    }
}

fn flatten(f: &PrimFunc, s: Stmt) -> Vec<Stmt> {
    let mut out = Vec::new();
    let mut stack = vec![s];
    while let Some(s) = stack.pop() {
        match f.stmt(s) {
            StmtData::Seq(items) => stack.extend(items.iter().rev()),
            _ => out.push(s),
        }
    }
    out
}

/// The expression with operands, variables and buffers replaced by placeholders: the part that renaming preserves.
fn head(e: &ExprData) -> ExprData {
    let zero = Expr::from_u32(0);
    let mut e = crate::tir::visit::map_operands(e, |_| zero);
    match &mut e {
        ExprData::Var(v) => *v = Var::from_u32(0),
        ExprData::Load(b, _) => *b = Buffer::from_u32(0),
        _ => {}
    }
    e
}

fn stmt_name(s: &StmtData) -> &'static str {
    match s {
        StmtData::Seq(_) => "a sequence",
        StmtData::For { .. } => "a loop",
        StmtData::While(..) => "a while",
        StmtData::If(..) => "an if",
        StmtData::Let(..) => "a let",
        StmtData::Store { .. } => "a store",
        StmtData::Alloc(..) => "an allocation",
        StmtData::Evaluate(_) => "an evaluation",
        StmtData::Assert(..) => "an assertion",
        StmtData::Block(_) => "a block",
    }
}

/// Hashes the properties that renaming preserves: the kinds and constants of expressions and statements, in order.
pub(super) fn hash(f: &PrimFunc) -> u64 {
    let mut h = FxHasher::default();
    hash_attrs(&f.attrs, &mut h);
    f.private.hash(&mut h);
    for p in &f.params {
        f.var(*p).ty.hash(&mut h);
        if let Some(&b) = f.buffer_map.get(p) {
            let data = f.buffer(b);
            (data.dtype, data.scope, data.shape.len(), data.strides.len()).hash(&mut h);
            for &e in &data.shape {
                for_each_expr(f, e, |e| head(f.expr(e)).hash(&mut h));
            }
        }
    }
    let mut stack = vec![f.body];
    let mut children = Vec::new();
    while let Some(s) = stack.pop() {
        let data = f.stmt(s);
        if !matches!(data, StmtData::Seq(_)) {
            stmt_name(data).hash(&mut h);
            for_each_stmt_expr(data, |e| for_each_expr(f, e, |e| head(f.expr(e)).hash(&mut h)));
        }
        for_each_child(data, |c| children.push(c));
        stack.extend(children.drain(..).rev());
    }
    h.finish()
}
