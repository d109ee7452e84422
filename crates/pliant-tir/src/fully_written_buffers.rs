//! Finds buffers that a statement writes completely before it reads them.
//!
//! Memory is recycled between tensors, so elements that a loop function does not write would expose stale data. The analysis
//! recognizes the usual forms of operators: a loop nest with one loop per dim that stores to each element, and a kernel call that
//! writes a dense result. All other buffers are cleared: scratch buffers by [`crate::clear_scratch_buffers`], outputs by the code
//! that allocates them.

use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{
    BlockData, Buffer, Expr, ExprData, ForKind, Intrin, IterKind, IterVar, KernelCall, PrimFunc,
    Stmt, StmtData, Var,
};
use rustc_hash::FxHashMap;

use crate::access_guards;
use crate::check_bounds::unbounded_params;
use crate::index_arithmetic::linear_index;
use crate::index_range_analysis::IndexFacts;
use crate::statement_traversal::{accesses, direct_exprs, for_each_stmt, loads, uses_any};

/// Maximum product of the extents of those loops around a store whose variables do not occur in the indices of the store. A
/// buffer has fewer than 2**48 elements, so the product of the extents of all loops around the store then fits in 64 bits.
const MAX_OTHER_ITERATIONS: i64 = 1 << 14;

/// Whether a function writes every element of a buffer before it reads any, in every run that succeeds.
pub fn fully_writes(f: &PrimFunc, buffer: Buffer) -> bool {
    stmt_fully_writes(f, f.body, buffer)
}

/// For each parameter of a function, whether the function fully writes the parameter's buffer ([`fully_writes`]).
pub fn fully_written_params(f: &PrimFunc) -> Vec<bool> {
    let is_written = |p| f.buffer_map.get(p).is_some_and(|&b| fully_writes(f, b));
    f.params.iter().map(is_written).collect()
}

/// Whether a statement writes every element of a buffer before it reads any of them.
pub fn stmt_fully_writes(f: &PrimFunc, s: Stmt, buffer: Buffer) -> bool {
    let mut analysis = Analysis {
        f,
        buffer,
        facts: None,
        loops: Vec::new(),
        first_direct_loop: 0,
        axes: FxHashMap::default(),
    };
    analysis.stmt(s) == FirstAccess::FullWrite
}

/// How a statement first accesses the analyzed buffer, over all iterations of the loops around the statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FirstAccess {
    /// The statement does not access the analyzed buffer.
    NoAccess,
    /// The statement writes every element of the analyzed buffer before it reads any.
    FullWrite,
    /// The analysis can prove neither of the other cases: the statement may read elements of the buffer that it has not written.
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
    /// Facts about the function's sizes; `None` until they are first needed.
    facts: Option<IndexFacts>,
    loops: Vec<Loop>,
    /// The index in `loops` of the outermost loop that has only loops between it and the current statement.
    first_direct_loop: usize,
    /// Maps each block axis that is bound to a loop over its whole range to the variable of this loop.
    axes: FxHashMap<Var, Var>,
}

impl Analysis<'_> {
    fn stmt(&mut self, s: Stmt) -> FirstAccess {
        let f = self.f;
        let data = f.stmt(s);
        let mut reads = false;
        direct_exprs(data, |e| reads |= self.loads_buffer(e));
        if reads {
            return self.kernel_call(data);
        }
        match data {
            StmtData::Seq(list) => self.sequence(list),
            StmtData::For { var, min, extent, kind, body, .. } => {
                self.loops.push(Loop { var: *var, min: *min, extent: *extent, kind: *kind });
                let access = self.stmt(*body);
                self.loops.pop();
                access
            }
            StmtData::Let(_, _, body) | StmtData::Assert(_, _, body) | StmtData::Alloc(_, body) => {
                self.nested_stmt(*body)
            }
            StmtData::If(_, then, other) => {
                let access = self.nested_stmt(*then);
                let same =
                    access == other.map_or(FirstAccess::NoAccess, |other| self.nested_stmt(other));
                // Inside loops, each branch may run in some iterations only, so both must write the same element.
                let written = |s: Stmt| only_store_indices(f, s, self.buffer);
                let covers = access != FirstAccess::FullWrite
                    || self.loops.is_empty()
                    || other.is_some_and(|other| {
                        written(*then).is_some_and(|at| written(other) == Some(at))
                    });
                if same && covers { access } else { FirstAccess::Unknown }
            }
            StmtData::While(_, body) => match self.nested_stmt(*body) {
                FirstAccess::NoAccess => FirstAccess::NoAccess,
                _ => FirstAccess::Unknown,
            },
            StmtData::Store { buffer, indices, .. } if *buffer == self.buffer => {
                self.store(indices, &|_| false)
            }
            StmtData::Store { .. } | StmtData::Evaluate(_) => FirstAccess::NoAccess,
            StmtData::Block(b) => self.block(b),
        }
    }

    /// Returns how a statement that is nested in a statement other than a loop first accesses the analyzed buffer.
    fn nested_stmt(&mut self, s: Stmt) -> FirstAccess {
        let outer = std::mem::replace(&mut self.first_direct_loop, self.loops.len());
        let access = self.stmt(s);
        self.first_direct_loop = outer;
        access
    }

    /// Analyzes a sequence of statements. The result is that of the first statement that accesses the buffer. Inside a loop, the
    /// later statements of an iteration run before the first statement of the next iteration. Therefore they may read only the
    /// element that the first statement has just written.
    fn sequence(&mut self, list: &[Stmt]) -> FirstAccess {
        let accesses = |s: &&Stmt| accesses(self.f, **s, self.buffer);
        let Some(at) = list.iter().position(|s| accesses(&s)) else { return FirstAccess::NoAccess };
        let access = self.stmt(list[at]);
        if self.loops.is_empty() || access != FirstAccess::FullWrite {
            return access;
        }
        let written = only_store_indices(self.f, list[at], self.buffer);
        let safe = list[at + 1..]
            .iter()
            .all(|&s| written.as_deref().is_some_and(|w| reads_only_at(self.f, s, self.buffer, w)));
        if safe { access } else { FirstAccess::Unknown }
    }

    /// Analyzes a block. Its init runs at the first point of its reduction axes. The init also runs if these axes are empty
    /// ([`crate::lower_block_init`]), under three conditions: each reduction axis has its own loop, only loops are between the
    /// outermost of these loops and the block, and ranges and bindings depend neither on loops nor on memory.
    fn block(&mut self, b: &BlockData) -> FirstAccess {
        let f = self.f;
        for iter in &b.iters {
            if let ExprData::Var(v) = *f.expr(iter.binding)
                && let Some(l) = self.loops.iter().find(|l| l.var == v)
                && (l.min, l.extent) == (iter.min, iter.extent)
            {
                self.axes.insert(iter.var, v);
            }
        }
        let reduce_axes: Vec<Var> =
            b.iters.iter().filter(|i| i.kind == IterKind::Reduce).map(|i| i.var).collect();
        let loop_of = |v: &Var| self.axes.get(v).copied();
        let loops: Vec<Var> = reduce_axes.iter().filter_map(loop_of).collect();
        let axes_using =
            |l: Var| b.iters.iter().filter(|i| uses_any(f, i.binding, &|v| v == l)).count();
        let has_own_loops =
            loops.len() == reduce_axes.len() && loops.iter().all(|&l| axes_using(l) == 1);
        let is_loop = |v: Var| self.loops.iter().any(|l| l.var == v);
        let fixed = |e: Expr| !uses_any(f, e, &is_loop) && !access_guards::reads_memory(f, e);
        let outermost = self.loops.iter().position(|l| loops.contains(&l.var));
        let fixed = outermost.is_none_or(|at| at >= self.first_direct_loop)
            && b.iters.iter().all(|i| fixed(i.min) && fixed(i.extent))
            && self.loops.iter().all(|l| fixed(l.min) && fixed(l.extent))
            && b.iters.iter().all(|i| self.is_in_range(i))
            // Other iterations of a parallel loop may run before the one with the init.
            && self.loops.iter().all(|l| l.kind == ForKind::Serial || !loops.contains(&l.var));
        let written = b.init.and_then(|init| match f.stmt(init) {
            StmtData::Store { buffer, indices, value } if *buffer == self.buffer => {
                let varies = |v: Var| reduce_axes.contains(&v) || loops.contains(&v);
                let fixed =
                    fixed && has_own_loops && !indices.iter().any(|&i| uses_any(f, i, &varies));
                let always_runs = b.predicate.is_none() && fixed && !self.loads_buffer(*value);
                (always_runs
                    && self.store(indices, &|v| loops.contains(&v)) == FirstAccess::FullWrite)
                    .then_some(indices)
            }
            _ => None,
        });
        if let Some(written) = written {
            let safe = reads_only_at(f, b.body, self.buffer, written);
            return if safe { FirstAccess::FullWrite } else { FirstAccess::Unknown };
        }
        let is_accessed = |s: Stmt| accesses(f, s, self.buffer);
        match b.predicate.is_some() || b.init.is_some_and(is_accessed) {
            true if is_accessed(b.body) || b.init.is_some_and(is_accessed) => FirstAccess::Unknown,
            true => FirstAccess::NoAccess,
            false => self.nested_stmt(b.body),
        }
    }

    /// Whether a block axis provably stays in its range in every iteration, because it is bound to a loop over this range or to a
    /// constant in it.
    fn is_in_range(&self, iter: &IterVar) -> bool {
        let int = |e: Expr| self.f.as_int(e);
        match (int(iter.binding), int(iter.min), int(iter.extent)) {
            (Some(at), Some(min), Some(extent)) => {
                at.checked_sub(min).is_some_and(|at| (0..extent).contains(&at))
            }
            _ => self.axes.contains_key(&iter.var),
        }
    }

    /// Analyzes a store in a loop nest. It writes the whole buffer if each dim is indexed by a loop over the whole dim, and if
    /// all other loops have at least one iteration. Loops for whose variables `runs_anyway` returns true may be empty, because
    /// the store runs even then.
    fn store(&mut self, indices: &[Expr], runs_anyway: &dyn Fn(Var) -> bool) -> FirstAccess {
        let f = self.f;
        let shape = &f.buffer(self.buffer).shape;
        if let ([index], Some(elements)) = (indices, constant_elements(f, self.buffer))
            && let ExprData::Ramp(first, step, lanes) = *f.expr(*index)
        {
            let is_whole = (f.as_int(first), f.as_int(step)) == (Some(0), Some(1))
                && i64::from(lanes) == elements;
            return if is_whole && self.loops.is_empty() {
                FirstAccess::FullWrite
            } else {
                FirstAccess::Unknown
            };
        }
        if indices.len() != shape.len() {
            return FirstAccess::Unknown;
        }
        let mut index_loops: Vec<Var> = Vec::new();
        for (&index, &dim) in indices.iter().zip(shape) {
            if f.as_int(index) == Some(0) && f.as_int(dim) == Some(1) {
                continue;
            }
            let ExprData::Var(v) = *f.expr(index) else {
                match self.mixed_radix_loops(index, dim) {
                    Some(vars) if vars.iter().all(|v| !index_loops.contains(v)) => {
                        index_loops.extend(vars);
                        continue;
                    }
                    _ => return FirstAccess::Unknown,
                }
            };
            let v = self.axes.get(&v).copied().unwrap_or(v);
            let Some(&l) = self.loops.iter().find(|l| l.var == v) else {
                return FirstAccess::Unknown;
            };
            let covers = f.as_int(l.min) == Some(0) && self.equal(l.extent, dim);
            if !covers || index_loops.contains(&v) {
                return FirstAccess::Unknown;
            }
            index_loops.push(v);
        }
        // Schedules fuse loops, and the total number of iterations must not overflow, so the other loops must have few
        // iterations.
        let mut other_iterations = 1i64;
        let mut has_iteration = |l: &Loop| {
            index_loops.contains(&l.var)
                || runs_anyway(l.var)
                || f.as_int(l.extent).is_some_and(|n| {
                    other_iterations = other_iterations.saturating_mul(n);
                    n > 0 && other_iterations <= MAX_OTHER_ITERATIONS
                })
        };
        // If the extent of a loop depends on another loop, an iteration of that loop covers only a part of the dim.
        let independent =
            |l: &Loop| !uses_any(f, l.extent, &|v| self.loops.iter().any(|outer| outer.var == v));
        if self.loops.iter().all(|l| has_iteration(l) && independent(l)) {
            FirstAccess::FullWrite
        } else {
            FirstAccess::Unknown
        }
    }

    /// If an index such as `i_0 * 16 + i_1` takes each value of a constant dim once, returns the variables of its loops.
    fn mixed_radix_loops(&self, index: Expr, dim: Expr) -> Option<Vec<Var>> {
        let f = self.f;
        let is_loop = |v: Var| self.loops.iter().any(|l| l.var == v);
        let linear = linear_index(f, index, &is_loop)?;
        if linear.rest.iter().any(|&(e, _)| f.as_int(e) != Some(0)) {
            return None;
        }
        let mut terms = linear.terms;
        terms.sort_by_key(|&(_, factor)| factor);
        let mut weight = 1i64;
        for &(var, factor) in &terms {
            let l = self.loops.iter().find(|l| l.var == var)?;
            if factor != weight || f.as_int(l.min) != Some(0) {
                return None;
            }
            weight = weight.checked_mul(f.as_int(l.extent)?)?;
        }
        (f.as_int(dim) == Some(weight)).then(|| terms.into_iter().map(|(var, _)| var).collect())
    }

    /// Returns how a kernel call first accesses the analyzed buffer. This is a full write if the call is not inside a loop and its
    /// result operand is the whole buffer, with the dims in any order.
    fn kernel_call(&mut self, data: &StmtData) -> FirstAccess {
        let StmtData::Evaluate(e) = data else { return FirstAccess::Unknown };
        let f = self.f;
        let Some(call) = KernelCall::of(f, *e) else { return FirstAccess::Unknown };
        let is_whole = call.overwrites(f, self.buffer);
        if self.loops.is_empty() && is_whole {
            FirstAccess::FullWrite
        } else {
            FirstAccess::Unknown
        }
    }

    fn equal(&mut self, a: Expr, b: Expr) -> bool {
        let f = self.f;
        a == b || self.facts().equal(f, a, b)
    }

    fn facts(&mut self) -> &mut IndexFacts {
        let f = self.f;
        self.facts.get_or_insert_with(|| IndexFacts::at_entry(f, &unbounded_params(f)))
    }

    fn loads_buffer(&self, e: Expr) -> bool {
        loads(self.f, e, self.buffer)
    }
}

/// Returns the number of elements of a buffer; `None` if a dim is not constant.
fn constant_elements(f: &PrimFunc, buffer: Buffer) -> Option<i64> {
    f.buffer(buffer).shape.iter().try_fold(1i64, |n, &dim| n.checked_mul(f.as_int(dim)?))
}

/// Returns the indices of the only store to a buffer in a statement; `None` if there are several stores or none.
fn only_store_indices(f: &PrimFunc, s: Stmt, buffer: Buffer) -> Option<Box<[Expr]>> {
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

/// Whether a statement reads a buffer only at the indices `at` and does not take the address of an element.
fn reads_only_at(f: &PrimFunc, s: Stmt, buffer: Buffer, at: &[Expr]) -> bool {
    let mut ok = true;
    for_each_stmt(f, s, &mut |_, data| {
        direct_exprs(data, |e| {
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
