//! Which buffers a statement writes completely before it reads them.
//!
//! Memory is recycled between tensors, so elements that a loop function does not write would expose stale data. The analysis
//! recognizes the forms that operators have: a loop nest with one loop per dim that stores to each element, and a kernel for a
//! whole operator that writes a dense result. All other buffers are cleared: scratch buffers by [`crate::clear_scratch`], outputs
//! by the code that allocates them.

use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{
    BlockData, Buffer, Expr, ExprData, ForKind, Intrin, IterKind, IterVar, KernelCall, PrimFunc,
    Stmt, StmtData, Var,
};
use rustc_hash::FxHashMap;

use crate::check_bounds::unbounded_params;
use crate::guards;
use crate::index_facts::IndexFacts;
use crate::walk::{for_each_stmt, own_exprs, uses_any};

/// Maximum number of iterations of all loops around a store whose variables are not used in its indices. A buffer has fewer than
/// 2**48 elements.
const MAX_OTHER_ITERATIONS: i64 = 1 << 14;

/// Whether a function writes every element of a buffer before it reads any, in every run that succeeds.
pub fn writes_whole(f: &PrimFunc, buffer: Buffer) -> bool {
    body_writes_whole(f, f.body, buffer)
}

/// For each parameter of a function, whether the function writes the parameter's whole buffer ([`writes_whole`]).
pub fn fully_written_params(f: &PrimFunc) -> Vec<bool> {
    let whole = |p| f.buffer_map.get(p).is_some_and(|&b| writes_whole(f, b));
    f.params.iter().map(whole).collect()
}

/// As [`writes_whole`], for a statement.
pub fn body_writes_whole(f: &PrimFunc, s: Stmt, buffer: Buffer) -> bool {
    let mut analysis = Analysis {
        f,
        buffer,
        sizes: None,
        loops: Vec::new(),
        nested: 0,
        axes: FxHashMap::default(),
    };
    analysis.stmt(s) == Touch::WritesWhole
}

/// How a statement first accesses the buffer, over all iterations of the loops around it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Touch {
    /// It does not access the buffer.
    None,
    /// It writes each element before it reads any.
    WritesWhole,
    /// Neither is proved.
    Unknown,
}

/// A loop around the current statement.
#[derive(Clone, Copy)]
struct Loop {
    var: Var,
    min: Expr,
    extent: Expr,
    kind: ForKind,
}

struct Analysis<'a> {
    f: &'a PrimFunc,
    buffer: Buffer,
    /// Facts about sizes, collected when they are first needed.
    sizes: Option<IndexFacts>,
    loops: Vec<Loop>,
    /// The number of the first of the loops that enclose the current statement without another statement in between.
    nested: usize,
    /// The loop variable of each block axis that is bound to one.
    axes: FxHashMap<Var, Var>,
}

impl Analysis<'_> {
    fn stmt(&mut self, s: Stmt) -> Touch {
        let f = self.f;
        let data = f.stmt(s);
        let mut reads = false;
        own_exprs(data, |e| reads |= self.mentions(e));
        if reads {
            return self.kernel_call(data);
        }
        match data {
            StmtData::Seq(list) => self.first_of(list),
            StmtData::For { var, min, extent, kind, body, .. } => {
                self.loops.push(Loop { var: *var, min: *min, extent: *extent, kind: *kind });
                let touch = self.stmt(*body);
                self.loops.pop();
                touch
            }
            StmtData::Let(_, _, body) | StmtData::Assert(_, _, body) | StmtData::Alloc(_, body) => {
                self.inside(*body)
            }
            StmtData::If(_, then, other) => {
                let touch = self.inside(*then);
                let same = touch == other.map_or(Touch::None, |other| self.inside(other));
                // Inside loops, each branch runs for some iterations only, so both must write the same element.
                let written = |s: Stmt| stored_at(f, s, self.buffer);
                let covers = touch != Touch::WritesWhole
                    || self.loops.is_empty()
                    || other.is_some_and(|other| {
                        written(*then).is_some_and(|at| written(other) == Some(at))
                    });
                if same && covers { touch } else { Touch::Unknown }
            }
            StmtData::While(_, body) => match self.inside(*body) {
                Touch::None => Touch::None,
                _ => Touch::Unknown,
            },
            StmtData::Store { buffer, indices, .. } if *buffer == self.buffer => {
                self.store(indices, &|_| false)
            }
            StmtData::Store { .. } | StmtData::Evaluate(_) => Touch::None,
            StmtData::Block(b) => self.block(b),
        }
    }

    /// Analyzes a statement inside another one that is not a loop.
    fn inside(&mut self, s: Stmt) -> Touch {
        let nested = std::mem::replace(&mut self.nested, self.loops.len());
        let touch = self.stmt(s);
        self.nested = nested;
        touch
    }

    /// The first statement that accesses the buffer decides. Inside loops, the statements after it run before its next iteration,
    /// so they may read only the element that it has just written.
    fn first_of(&mut self, list: &[Stmt]) -> Touch {
        let touches = |s: &&Stmt| touches(self.f, **s, self.buffer);
        let Some(at) = list.iter().position(|s| touches(&s)) else { return Touch::None };
        let touch = self.stmt(list[at]);
        if self.loops.is_empty() || touch != Touch::WritesWhole {
            return touch;
        }
        let written = stored_at(self.f, list[at], self.buffer);
        let safe = list[at + 1..]
            .iter()
            .all(|&s| written.as_deref().is_some_and(|w| reads_only(self.f, s, self.buffer, w)));
        if safe { touch } else { Touch::Unknown }
    }

    /// The init of a block runs at the first point of its reduction axes. It also runs if these axes are empty, provided that each
    /// has its own loop, that only loops enclose the block from the outermost of these loops on, and that ranges and bindings
    /// depend neither on loops nor on memory ([`crate::lower_init`]).
    fn block(&mut self, b: &BlockData) -> Touch {
        let f = self.f;
        for iter in &b.iters {
            if let ExprData::Var(v) = *f.expr(iter.binding)
                && let Some(l) = self.loops.iter().find(|l| l.var == v)
                && (l.min, l.extent) == (iter.min, iter.extent)
            {
                self.axes.insert(iter.var, v);
            }
        }
        let reduced: Vec<Var> =
            b.iters.iter().filter(|i| i.kind == IterKind::Reduce).map(|i| i.var).collect();
        let loop_of = |v: &Var| self.axes.get(v).copied();
        let loops: Vec<Var> = reduced.iter().filter_map(loop_of).collect();
        let users = |l: Var| b.iters.iter().filter(|i| uses_any(f, i.binding, &|v| v == l)).count();
        let own = loops.len() == reduced.len() && loops.iter().all(|&l| users(l) == 1);
        let is_loop = |v: Var| self.loops.iter().any(|l| l.var == v);
        let fixed = |e: Expr| !uses_any(f, e, &is_loop) && !guards::reads(f, e);
        let outermost = self.loops.iter().position(|l| loops.contains(&l.var));
        let fixed = outermost.is_none_or(|at| at >= self.nested)
            && b.iters.iter().all(|i| fixed(i.min) && fixed(i.extent))
            && self.loops.iter().all(|l| fixed(l.min) && fixed(l.extent))
            && b.iters.iter().all(|i| self.is_in_range(i))
            // Other iterations of a parallel loop may run before the one with the init.
            && self.loops.iter().all(|l| l.kind == ForKind::Serial || !loops.contains(&l.var));
        let written = b.init.and_then(|init| match f.stmt(init) {
            StmtData::Store { buffer, indices, value } if *buffer == self.buffer => {
                let varies = |v: Var| reduced.contains(&v) || loops.contains(&v);
                let fixed = fixed && own && !indices.iter().any(|&i| uses_any(f, i, &varies));
                let plain = b.predicate.is_none() && fixed && !self.mentions(*value);
                (plain && self.store(indices, &|v| loops.contains(&v)) == Touch::WritesWhole)
                    .then_some(indices)
            }
            _ => None,
        });
        if let Some(written) = written {
            let safe = reads_only(f, b.body, self.buffer, written);
            return if safe { Touch::WritesWhole } else { Touch::Unknown };
        }
        let touched = |s: Stmt| touches(f, s, self.buffer);
        match b.predicate.is_some() || b.init.is_some_and(touched) {
            true if touched(b.body) || b.init.is_some_and(touched) => Touch::Unknown,
            true => Touch::None,
            false => self.inside(b.body),
        }
    }

    /// Whether an axis is in its range wherever its block runs: it is bound to a loop over this range, or to a constant in it.
    fn is_in_range(&self, iter: &IterVar) -> bool {
        let int = |e: Expr| self.f.as_int(e);
        match (int(iter.binding), int(iter.min), int(iter.extent)) {
            (Some(at), Some(min), Some(extent)) => {
                at.checked_sub(min).is_some_and(|at| (0..extent).contains(&at))
            }
            _ => self.axes.contains_key(&iter.var),
        }
    }

    /// A store covers the buffer if each dim has a loop over all of its elements. Other loops must have an iteration, except loops
    /// for which `runs` returns that the store runs regardless.
    fn store(&mut self, indices: &[Expr], runs: &dyn Fn(Var) -> bool) -> Touch {
        let f = self.f;
        let shape = &f.buffer(self.buffer).shape;
        if let ([index], Some(elements)) = (indices, constant_elements(f, self.buffer))
            && let ExprData::Ramp(first, step, lanes) = *f.expr(*index)
        {
            let whole = (f.as_int(first), f.as_int(step)) == (Some(0), Some(1))
                && i64::from(lanes) == elements;
            return if whole && self.loops.is_empty() {
                Touch::WritesWhole
            } else {
                Touch::Unknown
            };
        }
        if indices.len() != shape.len() {
            return Touch::Unknown;
        }
        let mut used: Vec<Var> = Vec::new();
        for (&index, &dim) in indices.iter().zip(shape) {
            if f.as_int(index) == Some(0) && f.as_int(dim) == Some(1) {
                continue;
            }
            let ExprData::Var(v) = *f.expr(index) else { return Touch::Unknown };
            let v = self.axes.get(&v).copied().unwrap_or(v);
            let Some(&l) = self.loops.iter().find(|l| l.var == v) else { return Touch::Unknown };
            let covers = f.as_int(l.min) == Some(0) && self.equal(l.extent, dim);
            if !covers || used.contains(&v) {
                return Touch::Unknown;
            }
            used.push(v);
        }
        // The other loops must have few iterations: schedules fuse loops, and the number of all iterations must not overflow.
        let mut others = 1i64;
        let mut runs = |l: &Loop| {
            used.contains(&l.var)
                || runs(l.var)
                || f.as_int(l.extent).is_some_and(|n| {
                    others = others.saturating_mul(n);
                    n > 0 && others <= MAX_OTHER_ITERATIONS
                })
        };
        // If the extent of a loop depends on another loop, an iteration of that loop covers only a part of the dim.
        let own =
            |l: &Loop| !uses_any(f, l.extent, &|v| self.loops.iter().any(|outer| outer.var == v));
        if self.loops.iter().all(|l| runs(l) && own(l)) {
            Touch::WritesWhole
        } else {
            Touch::Unknown
        }
    }

    /// A kernel call writes the whole buffer if it is outside of loops and its result is the whole buffer, with the dims in any
    /// order.
    fn kernel_call(&mut self, data: &StmtData) -> Touch {
        let StmtData::Evaluate(e) = data else { return Touch::Unknown };
        let f = self.f;
        let Some(call) = KernelCall::of(f, *e) else { return Touch::Unknown };
        let whole = call.overwrites(f, self.buffer);
        if self.loops.is_empty() && whole { Touch::WritesWhole } else { Touch::Unknown }
    }

    fn equal(&mut self, a: Expr, b: Expr) -> bool {
        let f = self.f;
        a == b || self.facts().equal(f, a, b)
    }

    fn facts(&mut self) -> &mut IndexFacts {
        let f = self.f;
        self.sizes.get_or_insert_with(|| IndexFacts::at_entry(f, &unbounded_params(f)))
    }

    fn mentions(&self, e: Expr) -> bool {
        loads(self.f, e, self.buffer)
    }
}

/// The number of elements of a buffer with constant dims.
fn constant_elements(f: &PrimFunc, buffer: Buffer) -> Option<i64> {
    f.buffer(buffer).shape.iter().try_fold(1i64, |n, &dim| n.checked_mul(f.as_int(dim)?))
}

fn loads(f: &PrimFunc, e: Expr, buffer: Buffer) -> bool {
    let mut found = false;
    for_each_expr(f, e, |e| found |= matches!(f.expr(e), ExprData::Load(b, _) if *b == buffer));
    found
}

/// Whether a statement reads or writes a buffer.
fn touches(f: &PrimFunc, s: Stmt, buffer: Buffer) -> bool {
    let mut found = false;
    for_each_stmt(f, s, &mut |_, data| {
        found |= matches!(data, StmtData::Store { buffer: b, .. } if *b == buffer);
        own_exprs(data, |e| found |= loads(f, e, buffer));
    });
    found
}

/// The indices of the only store to a buffer in a statement.
fn stored_at(f: &PrimFunc, s: Stmt, buffer: Buffer) -> Option<Box<[Expr]>> {
    let mut stores = Vec::new();
    for_each_stmt(f, s, &mut |_, data| {
        if let StmtData::Store { buffer: b, indices, .. } = data
            && *b == buffer
        {
            stores.push(indices.clone());
        }
    });
    if stores.len() == 1 { stores.pop() } else { None }
}

/// Whether a statement reads a buffer only at the indices `at`, and takes no address in it.
fn reads_only(f: &PrimFunc, s: Stmt, buffer: Buffer, at: &[Expr]) -> bool {
    let mut ok = true;
    for_each_stmt(f, s, &mut |_, data| {
        own_exprs(data, |e| {
            for_each_expr(f, e, |e| match f.expr(e) {
                ExprData::Load(b, indices) if *b == buffer => ok &= **indices == *at,
                ExprData::Call(Intrin::AddressOf, element, _) => {
                    ok &= !loads(f, element[0], buffer)
                }
                _ => {}
            });
        });
    });
    ok
}
