//! CheckBounds: an index that cannot be proved to lie inside its buffer is asserted at run time,
//! so that no function reads or
//! writes outside its buffers. A `T.Select` whose sides are only in bounds where they are chosen
//! becomes `T.if_then_else`.

use std::sync::Arc;

use pliant_ir::tir::sym::SymBridge;
use pliant_ir::tir::{
    BinOp, BlockData, Buffer, Expr, ExprData, Intrin, PrimFunc, Stmt, StmtData, Ty, Var,
};
use pliant_sym::{Analyzer, Facts, SymArena};
use rustc_hash::FxHashMap;

use crate::error::LowerError;
use crate::walk::{map_operands, substitute_expr};

/// Inserts the checks.
///
/// # Errors
/// None.
pub fn run(f: &mut PrimFunc) -> Result<(), LowerError> {
    let mut c = Checker {
        arena: SymArena::new(),
        bridge: SymBridge::new(),
        facts: Facts::new(),
        known: FxHashMap::default(),
    };
    c.sizes(f);
    let body = f.body;
    f.body = c.stmt(f, body);
    Ok(())
}

struct Checker {
    arena: SymArena,
    bridge: SymBridge,
    facts: Facts,
    /// Expressions that were found to be in bounds everywhere.
    known: FxHashMap<Expr, ()>,
}

/// Conditions to assert before a statement, inner ones first.
type Checks = Vec<(Expr, Arc<str>)>;

impl Checker {
    /// Dims of parameters are sizes.
    fn sizes(&mut self, f: &mut PrimFunc) {
        let zero = self.arena.int(0);
        for &b in &f.buffer_map.values().copied().collect::<Vec<_>>() {
            for dim in f.buffer(b).shape.clone() {
                if let Some(s) = self.bridge.to_sym(f, &mut self.arena, dim) {
                    let p = self.arena.le(zero, s);
                    self.facts.assume(&self.arena, p);
                }
            }
        }
    }

    fn range(&mut self, f: &PrimFunc, var: Var, min: Expr, extent: Expr) {
        let v = self.bridge.sym_var(f, &mut self.arena, var);
        let v = self.arena.var(v);
        let bounds = (
            self.bridge.to_sym(f, &mut self.arena, min),
            self.bridge.to_sym(f, &mut self.arena, extent),
        );
        if let (Some(min), Some(extent)) = bounds {
            let low = self.arena.le(min, v);
            let end = self.arena.add(min, extent);
            let high = self.arena.lt(v, end);
            self.facts.assume(&self.arena, low);
            self.facts.assume(&self.arena, high);
        }
    }

    fn assume(&mut self, f: &mut PrimFunc, condition: Expr, holds: bool) {
        // Memory may change while the condition is relied on, so conditions over loads say nothing.
        if let Some(mut p) = self.bridge.to_sym(f, &mut self.arena, condition) {
            if !holds {
                p = self.arena.not(p);
            }
            self.facts.assume(&self.arena, p);
        }
    }

    fn scope<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let (facts, known) = (self.facts.clone(), self.known.clone());
        let out = run(self);
        (self.facts, self.known) = (facts, known);
        out
    }

    fn proves(&mut self, p: pliant_sym::Sym) -> bool {
        Analyzer::new(&mut self.arena, &self.facts).prove(p).is_yes()
    }

    fn stmt(&mut self, f: &mut PrimFunc, s: Stmt) -> Stmt {
        let mut checks = Vec::new();
        let new = match f.stmt(s).clone() {
            StmtData::Seq(list) => {
                let list = list.into_iter().map(|s| self.stmt(f, s)).collect();
                StmtData::Seq(list)
            }
            StmtData::For { var, min, extent, kind, body, annotations } => {
                let (min, extent) =
                    (self.expr(f, min, &mut checks), self.expr(f, extent, &mut checks));
                let body = self.scope(|c| {
                    c.range(f, var, min, extent);
                    c.stmt(f, body)
                });
                StmtData::For { var, min, extent, kind, body, annotations }
            }
            StmtData::While(condition, body) => {
                let condition = self.expr(f, condition, &mut checks);
                let mut body = self.scope(|c| c.stmt(f, body));
                if !checks.is_empty() {
                    // The condition is evaluated again after each turn.
                    let empty = f.add_stmt(StmtData::Seq(Vec::new()));
                    let again = wrap(f, empty, checks.clone());
                    body = f.add_stmt(StmtData::Seq(vec![body, again]));
                }
                StmtData::While(condition, body)
            }
            StmtData::If(condition, then, other) => {
                let condition = self.expr(f, condition, &mut checks);
                let then = self.scope(|c| {
                    c.assume(f, condition, true);
                    c.stmt(f, then)
                });
                let other = other.map(|other| {
                    self.scope(|c| {
                        c.assume(f, condition, false);
                        c.stmt(f, other)
                    })
                });
                StmtData::If(condition, then, other)
            }
            StmtData::Let(var, value, body) => {
                let value = self.expr(f, value, &mut checks);
                let body = self.scope(|c| {
                    if f.expr_ty(value) == Ty::I64
                        && let Some(s) = c.bridge.to_sym(f, &mut c.arena, value)
                    {
                        let v = c.bridge.sym_var(f, &mut c.arena, var);
                        let v = c.arena.var(v);
                        let p = c.arena.eq(v, s);
                        c.facts.assume(&c.arena, p);
                    }
                    c.stmt(f, body)
                });
                StmtData::Let(var, value, body)
            }
            StmtData::Store { buffer, indices, value } => {
                let indices: Box<[Expr]> =
                    indices.iter().map(|&i| self.expr(f, i, &mut checks)).collect();
                let value = self.expr(f, value, &mut checks);
                self.access(f, buffer, &indices, &mut checks);
                StmtData::Store { buffer, indices, value }
            }
            StmtData::Alloc(b, body) => StmtData::Alloc(b, self.stmt(f, body)),
            StmtData::Evaluate(e) => StmtData::Evaluate(self.expr(f, e, &mut checks)),
            StmtData::Assert(condition, message, body) => {
                let condition = self.expr(f, condition, &mut checks);
                let body = self.scope(|c| {
                    c.assume(f, condition, true);
                    c.stmt(f, body)
                });
                StmtData::Assert(condition, message, body)
            }
            StmtData::Block(b) => StmtData::Block(Box::new(self.block(f, *b, &mut checks))),
        };
        let s = f.add_stmt(new);
        wrap(f, s, checks)
    }

    fn block(&mut self, f: &mut PrimFunc, mut b: BlockData, checks: &mut Checks) -> BlockData {
        let map: FxHashMap<Var, Expr> = b.iters.iter().map(|i| (i.var, i.binding)).collect();
        self.scope(|c| {
            let predicate = b.predicate.map(|p| {
                let outer = substitute_expr(f, p, &map);
                c.assume(f, outer, true);
                c.assume(f, p, true);
                outer
            });
            for iter in &b.iters {
                let binding = c.expr(f, iter.binding, checks);
                let inside = c.inside(f, binding, iter.min, iter.extent);
                if let Some(inside) = inside {
                    let inside = under(f, predicate, inside);
                    let name = &f.var(iter.var).name;
                    let message = format!("axis {name} of block {} leaves its range", b.name);
                    checks.push((inside, message.into()));
                }
                c.range(f, iter.var, iter.min, iter.extent);
            }
            b.init = b.init.map(|s| c.stmt(f, s));
            b.body = c.stmt(f, b.body);
        });
        b
    }

    /// The condition that `min <= e < min + extent`, or `None` where it is proved.
    fn inside(&mut self, f: &mut PrimFunc, e: Expr, min: Expr, extent: Expr) -> Option<Expr> {
        let [x, lo, n] = [e, min, extent].map(|e| self.bridge.to_sym_opaque(f, &mut self.arena, e));
        let end = self.arena.add(lo, n);
        let (low, high) = (self.arena.le(lo, x), self.arena.lt(x, end));
        let (low, high) = (self.proves(low), self.proves(high));
        let as64 = |f: &mut PrimFunc, e: Expr| f.cast(e, Ty::I64);
        let (e, min, extent) = (as64(f, e), as64(f, min), as64(f, extent));
        let low = (!low).then(|| f.binary(BinOp::Le, min, e));
        let high = (!high).then(|| {
            let end = if f.as_int(min) == Some(0) { extent } else { f.add(min, extent) };
            f.binary(BinOp::Lt, e, end)
        });
        match (low, high) {
            (Some(a), Some(b)) => Some(f.binary(BinOp::And, a, b)),
            (a, b) => a.or(b),
        }
    }

    /// Checks of the accesses inside an expression. Returns the expression, with selects made lazy
    /// where they must be.
    fn expr(&mut self, f: &mut PrimFunc, e: Expr, checks: &mut Checks) -> Expr {
        if self.known.contains_key(&e) {
            return e;
        }
        let before = checks.len();
        let new = match f.expr(e).clone() {
            ExprData::Load(buffer, _) => {
                let new = map_operands(f, e, |f, a| self.expr(f, a, checks));
                let ExprData::Load(_, indices) = f.expr(new).clone() else {
                    unreachable!("mapping operands keeps the kind");
                };
                self.access(f, buffer, &indices, checks);
                new
            }
            ExprData::Call(Intrin::IfThenElse, args, ty) if args.len() == 3 => {
                let c = self.expr(f, args[0], checks);
                let [a, b] = [(args[1], true), (args[2], false)].map(|(side, holds)| {
                    let (side, inner) = self.side(f, c, holds, side);
                    checks.extend(inner);
                    side
                });
                f.add_expr(ExprData::Call(Intrin::IfThenElse, [c, a, b].into(), ty))
            }
            ExprData::Select(c, a, b) => {
                let c = self.expr(f, c, checks);
                let mut plain = Vec::new();
                let sides = [a, b].map(|side| self.expr(f, side, &mut plain));
                if plain.is_empty() || f.expr_ty(c).lanes != 1 {
                    checks.extend(plain);
                    f.add_expr(ExprData::Select(c, sides[0], sides[1]))
                } else {
                    let [a, b] = [(a, true), (b, false)].map(|(side, holds)| {
                        let (side, inner) = self.side(f, c, holds, side);
                        checks.extend(inner);
                        side
                    });
                    f.add_expr(ExprData::Call(Intrin::IfThenElse, [c, a, b].into(), Ty::I64))
                }
            }
            ExprData::Call(Intrin::CallExtern, args, _) => {
                self.call_extern(f, &args, checks);
                e
            }
            _ => map_operands(f, e, |f, a| self.expr(f, a, checks)),
        };
        if checks.len() == before {
            self.known.insert(new, ());
        }
        new
    }

    /// A call of a linked function: addresses may go to matrix products only, whose reach is checked.
    fn call_extern(&mut self, f: &mut PrimFunc, args: &[Expr], checks: &mut Checks) {
        let address =
            |f: &PrimFunc, e: Expr| matches!(f.expr(e), ExprData::Call(Intrin::AddressOf, ..));
        for &a in args {
            if !address(f, a) && !matches!(f.expr(a), ExprData::Str(_)) {
                self.expr(f, a, checks);
            }
        }
        let product = crate::schedule::gemm::is_product(f, args);
        if !product && !args.iter().any(|&a| address(f, a)) {
            return;
        }
        match crate::schedule::gemm::reach(f, args) {
            Some(inside) => {
                let message = "a matrix product reaches outside its buffers";
                checks.extend(inside.into_iter().map(|p| (p, Arc::from(message))));
            }
            None => {
                let no = f.add_expr(ExprData::Int(0, Ty::BOOL));
                checks.push((no, "a linked function is not given the addresses it takes".into()));
            }
        }
    }

    /// One side of a choice: its checks hold only where it is chosen.
    fn side(&mut self, f: &mut PrimFunc, c: Expr, holds: bool, side: Expr) -> (Expr, Checks) {
        let mut inner = Vec::new();
        let side = self.scope(|this| {
            this.assume(f, c, holds);
            this.expr(f, side, &mut inner)
        });
        let chosen = if holds { c } else { f.add_expr(ExprData::Not(c)) };
        let inner = inner.into_iter().map(|(p, m)| (under(f, Some(chosen), p), m)).collect();
        (side, inner)
    }

    fn access(&mut self, f: &mut PrimFunc, buffer: Buffer, indices: &[Expr], checks: &mut Checks) {
        let data = f.buffer(buffer).clone();
        let zero = f.int(0);
        if indices.len() == data.shape.len() {
            for (dim, (&i, &n)) in indices.iter().zip(&data.shape).enumerate() {
                let message = || index_message(f, &data.name, dim, n);
                let message: Arc<str> = message().into();
                self.check_index(f, i, zero, n, message, checks);
            }
        } else if let [i] = indices {
            // A flat access: inside the whole buffer.
            let total = data.shape.iter().fold(f.int(1), |acc, &d| f.mul(acc, d));
            let message = format!("index out of bounds: flat access of '{}'", data.name);
            self.check_index(f, *i, zero, total, message.into(), checks);
        }
    }

    fn check_index(
        &mut self,
        f: &mut PrimFunc,
        i: Expr,
        zero: Expr,
        n: Expr,
        message: Arc<str>,
        checks: &mut Checks,
    ) {
        let ends = match f.expr(i).clone() {
            // A vector is inside when its first and last lanes are.
            ExprData::Ramp(base, stride, lanes) => {
                let last = f.int(i64::from(lanes) - 1);
                let reach = f.mul(stride, last);
                vec![base, f.add(base, reach)]
            }
            _ => vec![i],
        };
        for e in ends {
            if let Some(inside) = self.inside(f, e, zero, n) {
                checks.push((inside, message.clone()));
            }
        }
    }
}

fn index_message(f: &PrimFunc, name: &str, dim: usize, n: Expr) -> String {
    format!("index out of bounds: dim {dim} of '{name}' has {} elements", crate::text::expr(f, n))
}

/// `p` where `c` holds, else true; `p` is not evaluated where `c` does not hold.
fn under(f: &mut PrimFunc, c: Option<Expr>, p: Expr) -> Expr {
    let Some(c) = c else { return p };
    let yes = f.add_expr(ExprData::Int(1, Ty::BOOL));
    f.call(Intrin::IfThenElse, &[c, p, yes])
}

fn wrap(f: &mut PrimFunc, s: Stmt, checks: Checks) -> Stmt {
    let mut seen = rustc_hash::FxHashSet::default();
    let checks: Vec<_> = checks.into_iter().filter(|(p, _)| seen.insert(*p)).collect();
    checks.into_iter().rev().fold(s, |s, (p, m)| f.add_stmt(StmtData::Assert(p, m, s)))
}
