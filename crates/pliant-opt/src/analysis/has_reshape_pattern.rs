//! Recognizes loop functions that only reshape their input: every element keeps its linear index, and the input and the output
//! have the same number of elements.

use pliant_ir::tir::symbolic_integer_conversion::SymBridge;
use pliant_ir::tir::visit::{for_each_expr_in, for_each_stmt};
use pliant_ir::tir::{Buffer, Expr, ExprData, IterKind, PrimFunc, Stmt, StmtData, VarTy};
use pliant_ir::{Sym, SymArena};
use pliant_sym::{Analyzer, Facts};

/// Whether a loop function with one input tensor and one output tensor is provably a reshape.
pub fn has_reshape_pattern(f: &PrimFunc) -> bool {
    proves_reshape(f).unwrap_or(false)
}

fn proves_reshape(f: &PrimFunc) -> Option<bool> {
    let mut handles = f.params.iter().filter(|p| f.var(**p).ty == VarTy::Handle);
    let (input, output) = (handles.next()?, handles.next()?);
    let (input, output) = (*f.buffer_map.get(input)?, *f.buffer_map.get(output)?);
    let compact = |b: Buffer| f.buffer(b).strides.is_empty() && f.buffer(b).elem_offset.is_none();
    if handles.next().is_some() || !compact(input) || !compact(output) || f.is_flat() {
        return None;
    }
    let (to, value, block) = single_store(f)?;
    let StmtData::Store { buffer, indices, .. } = f.stmt(to) else { return None };
    let ExprData::Load(from, at) = f.expr(value) else { return None };
    if *buffer != output || *from != input {
        return None;
    }
    let StmtData::Block(b) = f.stmt(block) else { return None };
    // Every element of the output must be written: each dim has one element, or is indexed by an axis that covers it.
    let mut axes = b.iters.iter();
    for (&i, &dim) in indices.iter().zip(&f.buffer(output).shape) {
        match f.expr(i) {
            ExprData::Int(0, _) if f.as_int(dim) == Some(1) => {}
            ExprData::Var(v) => {
                let axis = axes.next()?;
                let covers_dim = axis.extent == dim && f.as_int(axis.min) == Some(0);
                (axis.var == *v && axis.kind == IterKind::Spatial && covers_dim).then_some(())?;
            }
            _ => return None,
        }
    }
    axes.next().is_none().then_some(())?;
    let mut prover =
        Prover { f, arena: SymArena::new(), bridge: SymBridge::new(), facts: Facts::new() };
    // The check of the element counts must come before the ranges of the axes are assumed. The axes of a tensor without elements
    // have empty ranges, from which everything could be proved.
    for buffer in [input, output] {
        for &dim in &f.buffer(buffer).shape {
            let dim = prover.sym(dim)?;
            prover.assume_sizes(dim);
        }
    }
    let (elements, output_elements) = (prover.element_count(input)?, prover.element_count(output)?);
    prover.provably_equal(elements, output_elements).then_some(())?;
    for axis in &b.iters {
        let v = prover.bridge.sym_var(f, &mut prover.arena, axis.var);
        let extent = prover.sym(axis.extent)?;
        prover.assume_sizes(extent);
        prover.facts.assume_size(v);
        let v = prover.arena.var(v);
        let below = prover.arena.lt(v, extent);
        prover.facts.assume(&prover.arena, below);
    }
    let (input_index, output_index) =
        (prover.linear_index(input, at)?, prover.linear_index(output, indices)?);
    Some(prover.provably_equal(input_index, output_index))
}

/// Returns (store, stored value, innermost block around it) for the only store of the function. `None` if the function contains
/// anything but this store, blocks and loops over whole axes.
fn single_store(f: &PrimFunc) -> Option<(Stmt, Expr, Stmt)> {
    let (mut stores, mut blocks, mut other) = (Vec::new(), Vec::new(), false);
    for_each_stmt(f, f.body, |s| match f.stmt(s) {
        StmtData::Store { .. } => stores.push(s),
        StmtData::Block(b) if b.predicate.is_none() && b.init.is_none() && b.allocs.is_empty() => {
            blocks.push(s);
        }
        StmtData::Seq(_) | StmtData::For { .. } => {}
        _ => other = true,
    });
    let &[store] = &stores[..] else { return None };
    let &block =
        blocks.iter().rfind(|&&b| matches!(f.stmt(b), StmtData::Block(b) if b.body == store))?;
    let roots = blocks.iter().filter(|&&b| b != block);
    let plain =
        roots.into_iter().all(|&b| matches!(f.stmt(b), StmtData::Block(b) if b.iters.is_empty()));
    if other || !plain || !loops_cover_axes(f, block) {
        return None;
    }
    match f.stmt(store) {
        StmtData::Store { value, .. } => Some((store, *value, block)),
        _ => None,
    }
}

/// Whether the loops around a block run each of its axes over its whole range.
fn loops_cover_axes(f: &PrimFunc, block: Stmt) -> bool {
    let StmtData::Block(b) = f.stmt(block) else { return false };
    let mut loops = Vec::new();
    for_each_stmt(f, f.body, |s| {
        if let StmtData::For { var, min, extent, .. } = f.stmt(s) {
            loops.push((*var, *min, *extent));
        }
    });
    let mut calls = false;
    for_each_expr_in(f, f.body, |e| calls |= matches!(f.expr(e), ExprData::Call(..)));
    !calls
        && loops.len() == b.iters.len()
        && b.iters.iter().all(|it| match f.expr(it.binding) {
            ExprData::Var(v) => loops
                .iter()
                .position(|l| l == &(*v, it.min, it.extent))
                .map(|at| loops.swap_remove(at))
                .is_some(),
            _ => false,
        })
}

/// Proves relations between the sizes and indices of one loop function.
struct Prover<'f> {
    f: &'f PrimFunc,
    arena: SymArena,
    bridge: SymBridge,
    facts: Facts,
}

impl Prover<'_> {
    fn sym(&mut self, e: Expr) -> Option<Sym> {
        self.bridge.to_sym(self.f, &mut self.arena, e)
    }

    /// Assumes that every variable in a dim is non-negative, because it is a size.
    fn assume_sizes(&mut self, dim: Sym) {
        for v in self.arena.free_vars(dim) {
            self.facts.assume_size(v);
        }
    }

    /// Returns the row-major linear index of an element of a compact buffer; `None` if an index cannot be analyzed.
    fn linear_index(&mut self, buffer: Buffer, indices: &[Expr]) -> Option<Sym> {
        let shape = self.f.buffer(buffer).shape.clone();
        let mut at = self.arena.int(0);
        for (&i, &dim) in indices.iter().zip(&shape) {
            let (i, dim) = (self.sym(i)?, self.sym(dim)?);
            self.assume_sizes(dim);
            at = self.arena.mul(at, dim);
            at = self.arena.add(at, i);
        }
        Some(at)
    }

    fn element_count(&mut self, buffer: Buffer) -> Option<Sym> {
        let shape = self.f.buffer(buffer).shape.clone();
        let dims: Option<Vec<Sym>> = shape.into_iter().map(|d| self.sym(d)).collect();
        Some(self.arena.product(dims?))
    }

    fn provably_equal(&mut self, a: Sym, b: Sym) -> bool {
        a == b || Analyzer::new(&mut self.arena, &self.facts).prove_eq(a, b).is_yes()
    }
}
