//! [`NewNest`]: builds loops around a new block that has one spatial axis for each loop.

use std::sync::Arc;

use pliant_ir::tir::{BlockData, Expr, IterKind, IterVar, PrimFunc, Stmt, Var};

use crate::loop_tree::{add_block, wrap_in_loops};

/// New loops from 0, and a new block that has one spatial axis for each loop.
pub(crate) struct NewNest {
    loops: Vec<(Var, Expr)>,
    iters: Vec<IterVar>,
    /// The axes of the block, as expressions for its body.
    pub axes: Vec<Expr>,
    /// The loop variables, as expressions for the predicate of the block.
    pub loop_vars: Vec<Expr>,
}

impl NewNest {
    /// Creates loops with these extents, outermost first.
    pub fn new(f: &mut PrimFunc, extents: &[Expr]) -> NewNest {
        let mut nest = NewNest {
            loops: Vec::new(),
            iters: Vec::new(),
            axes: Vec::new(),
            loop_vars: Vec::new(),
        };
        for (dim, &extent) in extents.iter().enumerate() {
            let (outer, var) = (f.size_var(format!("ax{dim}")), f.size_var(format!("v{dim}")));
            let (min, binding) = (f.int(0), f.var_expr(outer));
            nest.loops.push((outer, extent));
            nest.iters.push(IterVar { var, min, extent, kind: IterKind::Spatial, binding });
            nest.axes.push(f.var_expr(var));
            nest.loop_vars.push(binding);
        }
        nest
    }

    /// Makes the axis at position `dim` an axis of another kind.
    pub fn set_kind(&mut self, dim: usize, kind: IterKind) {
        self.iters[dim].kind = kind;
    }

    /// Returns the loops with a block that has this name, predicate and body. No other block may have the name.
    pub fn finish(
        self,
        f: &mut PrimFunc,
        name: Arc<str>,
        predicate: Option<Expr>,
        body: Stmt,
    ) -> Stmt {
        let block = BlockData {
            name,
            iters: Vec::new(),
            predicate,
            reads: None,
            writes: None,
            allocs: Vec::new(),
            init: None,
            body,
            annotations: Vec::new(),
        };
        self.wrap(f, block)
    }

    /// Returns the loops with a copy of a block whose axes are those of the nest.
    pub fn wrap(self, f: &mut PrimFunc, block: BlockData) -> Stmt {
        let block = BlockData { iters: self.iters, ..block }.with_init_for_reductions_only(f);
        let block = add_block(f, block);
        wrap_in_loops(f, block, &self.loops)
    }
}
