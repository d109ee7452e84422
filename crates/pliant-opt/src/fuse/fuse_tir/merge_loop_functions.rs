//! Merges several loop functions into one that runs them in sequence.

use pliant_ir::attr_names::NOALIAS;
use pliant_ir::tir::symbolic_integer_conversion::SymBridge;
use pliant_ir::tir::visit::{Rewriter, TirImporter, rewrite_stmt};
use pliant_ir::tir::{BlockData, Buffer, Expr, PrimFunc, Stmt, StmtData, Var};
use pliant_ir::{AttrValue, DType, SymArena};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// The merged loop function under construction.
pub(super) struct FunctionMerger {
    pub f: PrimFunc,
    allocs: Vec<Buffer>,
    stmts: Vec<Stmt>,
    block_names: FxHashMap<Arc<str>, u32>,
}

impl FunctionMerger {
    pub fn new() -> Self {
        FunctionMerger {
            f: PrimFunc::new(),
            allocs: Vec::new(),
            stmts: Vec::new(),
            block_names: FxHashMap::default(),
        }
    }

    /// Adds a local buffer to the merged function.
    pub fn add_local_buffer(&mut self, name: &str, shape: Vec<Expr>, dtype: DType) -> Buffer {
        let buffer = self.f.compact_buffer(name, shape, dtype);
        self.allocs.push(buffer);
        buffer
    }

    /// Appends a copy of a loop function's body, with its variables and parameter buffers replaced by those of the merged
    /// function.
    pub fn append_function(
        &mut self,
        src: &PrimFunc,
        vars: FxHashMap<Var, Expr>,
        buffers: FxHashMap<Buffer, Buffer>,
    ) {
        let mut importer = TirImporter::new(src, &mut self.f);
        (importer.vars, importer.buffers) = (vars, buffers);
        let body = importer.stmt(src.body);
        self.append_flattened(body);
    }

    /// Appends the statements of a body. Local buffers of the body become local buffers of the merged function.
    fn append_flattened(&mut self, body: Stmt) {
        let mut stack = vec![body];
        while let Some(s) = stack.pop() {
            match self.f.stmt(s).clone() {
                StmtData::Seq(items) => stack.extend(items.into_iter().rev()),
                StmtData::Alloc(b, body) => {
                    self.allocs.push(b);
                    stack.push(body);
                }
                StmtData::Block(b) if is_plain_block(&self.f, &b) => {
                    self.allocs.extend(b.allocs);
                    stack.push(b.body);
                }
                _ => self.stmts.push(s),
            }
        }
    }

    /// Completes the merged function. Its parameters are `tensors`, followed by the scalar `sizes`.
    pub fn finish(mut self, tensors: &[Buffer], sizes: &[Var]) -> PrimFunc {
        for &b in tensors {
            let name = format!("var_{}", self.f.buffer(b).name);
            self.f.add_buffer_param(name, b);
        }
        self.f.params.extend(sizes);
        let stmts = std::mem::take(&mut self.stmts);
        let mut normalizer = SizeNormalizer {
            arena: SymArena::new(),
            bridge: SymBridge::new(),
            name_counts: self.block_names,
        };
        for b in self.f.buffer_ids() {
            let shape = self.f.buffer(b).shape.clone();
            let shape =
                shape.into_iter().map(|e| normalizer.normalize_size(&mut self.f, e)).collect();
            self.f.buffer_mut(b).shape = shape;
        }
        let stmts: Vec<Stmt> =
            stmts.into_iter().map(|s| rewrite_stmt(&mut self.f, s, &mut normalizer)).collect();
        let mut body = self.f.seq(stmts);
        if !self.allocs.is_empty() {
            body = self.f.add_stmt(StmtData::Block(Box::new(BlockData {
                name: "root".into(),
                iters: Vec::new(),
                predicate: None,
                reads: None,
                writes: None,
                allocs: self.allocs,
                init: None,
                body,
                annotations: Vec::new(),
            })));
        }
        self.f.body = body;
        self.f.private = true;
        self.f.attrs.insert(NOALIAS.into(), AttrValue::Bool(true));
        self.f
    }
}

/// Whether a block only groups other statements, so that its body can replace it: the block has no axes, predicate, initial
/// statement or annotations. A block around a single store or check is kept as a separate stage.
fn is_plain_block(f: &PrimFunc, b: &BlockData) -> bool {
    let is_bare = b.iters.is_empty() && b.predicate.is_none() && b.init.is_none();
    is_bare
        && b.annotations.is_empty()
        && !matches!(f.stmt(b.body), StmtData::Store { .. } | StmtData::Assert(..))
}

/// Converts sizes to a normal form, so that schedules recognize loops of equal extent, and gives blocks unique names.
struct SizeNormalizer {
    arena: SymArena,
    bridge: SymBridge,
    name_counts: FxHashMap<Arc<str>, u32>,
}

impl SizeNormalizer {
    fn normalize_size(&mut self, f: &mut PrimFunc, e: Expr) -> Expr {
        let ty = f.expr_ty(e);
        match self.bridge.to_sym(f, &mut self.arena, e) {
            Some(sym) => {
                let new = self.bridge.to_expr(&self.arena, f, sym);
                f.cast(new, ty)
            }
            None => e,
        }
    }

    fn unique_block_name(&mut self, name: &Arc<str>) -> Arc<str> {
        let mut new = name.clone();
        while self.name_counts.contains_key(&new) {
            let count = self.name_counts.entry(name.clone()).or_insert(0);
            *count += 1;
            new = format!("{name}_{count}").into();
        }
        self.name_counts.insert(new.clone(), 0);
        new
    }
}

impl Rewriter for SizeNormalizer {
    fn stmt(&mut self, f: &mut PrimFunc, s: Stmt) -> Stmt {
        match f.stmt(s).clone() {
            StmtData::For { var, min, extent, kind, body, annotations } => {
                let (min, extent) = (self.normalize_size(f, min), self.normalize_size(f, extent));
                f.add_stmt(StmtData::For { var, min, extent, kind, body, annotations })
            }
            StmtData::Block(mut b) => {
                for it in &mut b.iters {
                    (it.min, it.extent) =
                        (self.normalize_size(f, it.min), self.normalize_size(f, it.extent));
                }
                b.name = self.unique_block_name(&b.name);
                f.add_stmt(StmtData::Block(b))
            }
            _ => s,
        }
    }
}

/// Returns the variables that are a whole dim of one of these buffers, such as `n` for the dim `n`, but not for the dim `n * 2`.
pub(super) fn single_var_dims(f: &PrimFunc, buffers: &[Buffer]) -> FxHashSet<Var> {
    let dims = buffers.iter().flat_map(|&b| &f.buffer(b).shape);
    dims.filter_map(|&d| match f.expr(d) {
        pliant_ir::tir::ExprData::Var(v) => Some(*v),
        _ => None,
    })
    .collect()
}
