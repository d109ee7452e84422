//! Where each variable of a function is read for the last time, counted in the sequence that defines it.
//!
//! A read inside a nested sequence counts as a read at the binding that holds the sequence. Variables that are only
//! other names of a value (`y = x`, `y = R.reshape(x, ..)` seen as a view) lengthen the life of the value they name.

use pliant_ir::relax::{Binding, ExprData, FuncId, Function, Seq, Var};
use pliant_pass::rewrite::for_each_operand_var;
use rustc_hash::FxHashMap;

/// The index that stands for the result of a sequence: later than all bindings.
pub const AT_RESULT: usize = usize::MAX;

/// The place where a sequence is nested: the sequence around it and the index of the binding there.
type Parent = Option<(Seq, usize)>;

/// The lives of all variables of a function whose sequences each hold one block.
pub struct Liveness {
    /// The sequence that defines each variable, and the index there; parameters have none.
    defs: FxHashMap<Var, (Seq, usize)>,
    /// The index of the last read, in the sequence that defines the variable.
    last: FxHashMap<Var, usize>,
    /// What each alias names.
    roots: FxHashMap<Var, Var>,
    parents: FxHashMap<Seq, Parent>,
}

impl Liveness {
    /// Computes the lives. `alias` tells which variable a binding's value is another name of.
    pub fn new(func: &Function, alias: impl Fn(&Function, &Binding) -> Option<Var>) -> Self {
        let mut live = Liveness {
            defs: FxHashMap::default(),
            last: FxHashMap::default(),
            roots: FxHashMap::default(),
            parents: FxHashMap::default(),
        };
        let order = live.define(func);
        for &(seq, owner) in &order {
            let mut index = 0;
            for &block in &func.seq(seq).blocks {
                for binding in &func.block(block).bindings {
                    if let Some(source) = alias(func, binding) {
                        let root = live.root(source);
                        live.roots.insert(binding.var, root);
                    }
                    for_each_operand_var(func, binding.value, &mut |v| live.read(v, seq, index));
                    index += 1;
                }
            }
            let _ = owner;
            let result = func.seq(seq).result;
            for_each_operand_var(func, result, &mut |v| live.read(v, seq, AT_RESULT));
        }
        live
    }

    /// Records definitions and nesting; returns the sequences in the order of the text, outer ones first.
    fn define(&mut self, func: &Function) -> Vec<(Seq, FuncId)> {
        let mut order = Vec::new();
        let mut stack = vec![(func.body(), None, func.root())];
        while let Some((seq, parent, owner)) = stack.pop() {
            order.push((seq, owner));
            self.parents.insert(seq, parent);
            let from = stack.len();
            let mut index = 0;
            for &block in &func.seq(seq).blocks {
                for binding in &func.block(block).bindings {
                    self.defs.insert(binding.var, (seq, index));
                    let here = Some((seq, index));
                    match func.expr(binding.value) {
                        ExprData::If { then_seq, else_seq, .. } => {
                            stack.extend([(*then_seq, here, owner), (*else_seq, here, owner)]);
                        }
                        ExprData::Func(id) => stack.push((func.func(*id).body, here, *id)),
                        _ => {}
                    }
                    index += 1;
                }
            }
            stack[from..].reverse();
        }
        order
    }

    fn read(&mut self, var: Var, seq: Seq, index: usize) {
        let root = self.root(var);
        self.read_one(root, seq, index);
        if root != var {
            self.read_one(var, seq, index);
        }
    }

    fn read_one(&mut self, var: Var, mut seq: Seq, mut index: usize) {
        let home = self.defs.get(&var).map(|d| d.0);
        while home != Some(seq) {
            match self.parents.get(&seq).copied().flatten() {
                Some((outer, at)) => (seq, index) = (outer, at),
                None => break,
            }
        }
        let last = self.last.entry(var).or_insert(index);
        *last = (*last).max(index);
    }

    /// What a variable names: itself unless it is an alias.
    pub fn root(&self, var: Var) -> Var {
        self.roots.get(&var).copied().unwrap_or(var)
    }

    /// The index of the last read in the defining sequence, aliases included; [`AT_RESULT`] where
    /// the sequence's result
    /// reads it, and `None` where nothing does.
    pub fn last_read(&self, var: Var) -> Option<usize> {
        self.last.get(&var).copied()
    }

    /// Where a variable is defined; `None` for parameters.
    pub fn definition(&self, var: Var) -> Option<(Seq, usize)> {
        self.defs.get(&var).copied()
    }
}

/// The variable that a binding gives a second name to: `y = x` and `y = match_cast(x, ..)`.
pub fn plain_alias(func: &Function, binding: &Binding) -> Option<Var> {
    match func.expr(binding.value) {
        ExprData::Var(v) => Some(*v),
        _ => None,
    }
}
