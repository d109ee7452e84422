//! The last use of each variable, as an index into the sequence that defines it.
//!
//! A read inside a nested sequence counts as a read at the binding that contains the sequence. An alias (`y = x`, or `y =
//! R.reshape(x, ..)` if it is a view) extends the live range of `x`. Each use of a local function counts as a use of the
//! variables that it captures.

use pliant_ir::relax::{Binding, ExprData, Function, Seq, Var};
use pliant_pass::binding_rewrites::for_each_operand_var;
use rustc_hash::{FxHashMap, FxHashSet};

/// The index with which [`Liveness`] represents a read by the result of a sequence, instead of the index of a binding. The result
/// is read after all bindings.
pub const AT_RESULT: usize = usize::MAX;

/// The position of a nested sequence: (enclosing sequence, index of the binding in it). `None` for the body of the function.
type ParentPosition = Option<(Seq, usize)>;

/// The live ranges of all variables of a function in which every sequence has one block.
pub struct Liveness {
    /// Maps each variable to (sequence, index) of its definition. Parameters are not in the map.
    defs: FxHashMap<Var, (Seq, usize)>,
    /// Maps each variable to the index of its last read, in the sequence that defines the variable.
    last: FxHashMap<Var, usize>,
    /// Maps each alias to the original variable.
    roots: FxHashMap<Var, Var>,
    parents: FxHashMap<Seq, ParentPosition>,
    /// Maps the body of each local function to the variable to which the function is bound.
    bodies: FxHashMap<Seq, Var>,
    /// Maps each local function to the variables of enclosing scopes that it reads. Aliases are replaced by the original
    /// variables.
    captures: FxHashMap<Var, FxHashSet<Var>>,
}

impl Liveness {
    /// Computes the live ranges of all variables of a function. If the value of a binding is an alias of a variable, `alias`
    /// returns this variable.
    pub fn new(func: &Function, alias: impl Fn(&Function, &Binding) -> Option<Var>) -> Self {
        let mut live = Liveness {
            defs: FxHashMap::default(),
            last: FxHashMap::default(),
            roots: FxHashMap::default(),
            parents: FxHashMap::default(),
            bodies: FxHashMap::default(),
            captures: FxHashMap::default(),
        };
        let order = live.record_definitions(func);
        for &seq in &order {
            for binding in bindings_of(func, seq) {
                if let Some(source) = alias(func, binding) {
                    let root = live.root(source);
                    live.roots.insert(binding.var, root);
                }
            }
        }
        if !live.bodies.is_empty() {
            order.iter().for_each(|&seq| live.for_each_read(func, seq, Self::record_capture));
        }
        order.iter().for_each(|&seq| live.for_each_read(func, seq, Self::record_read));
        live
    }

    /// Calls `f` for each read of a variable in a sequence, with the variable, the sequence, and the index of the binding that
    /// reads it, or [`AT_RESULT`] if the result of the sequence reads it. Reads in nested sequences are skipped.
    fn for_each_read(&mut self, func: &Function, seq: Seq, f: fn(&mut Self, Var, Seq, usize)) {
        for (index, binding) in bindings_of(func, seq).enumerate() {
            for_each_operand_var(func, binding.value, &mut |v| f(self, v, seq, index));
        }
        let result = func.seq(seq).result;
        for_each_operand_var(func, result, &mut |v| f(self, v, seq, AT_RESULT));
    }

    /// Records the definitions of variables and the nesting of sequences. Returns all sequences in source order, with enclosing
    /// sequences before nested ones.
    fn record_definitions(&mut self, func: &Function) -> Vec<Seq> {
        let mut order = Vec::new();
        let mut stack = vec![(func.body(), None)];
        while let Some((seq, parent)) = stack.pop() {
            order.push(seq);
            self.parents.insert(seq, parent);
            let first_new = stack.len();
            for (index, binding) in bindings_of(func, seq).enumerate() {
                self.defs.insert(binding.var, (seq, index));
                let here = Some((seq, index));
                match func.expr(binding.value) {
                    ExprData::If { then_seq, else_seq, .. } => {
                        stack.extend([(*then_seq, here), (*else_seq, here)]);
                    }
                    ExprData::Func(id) => {
                        let body = func.func(*id).body;
                        self.bodies.insert(body, binding.var);
                        stack.push((body, here));
                    }
                    _ => {}
                }
            }
            stack[first_new..].reverse();
        }
        order
    }

    /// Records the captures of the variable `var`, which the sequence `seq` reads. Each local function that contains `seq`, but
    /// not the definition of `var`, captures `var`.
    fn record_capture(&mut self, var: Var, mut seq: Seq, _: usize) {
        let root = self.root(var);
        // Parameters belong to the frame of their function, which outlives all captures.
        let Some(&(defining_seq, _)) = self.defs.get(&root) else { return };
        while seq != defining_seq {
            if let Some(&function) = self.bodies.get(&seq)
                && function != root
            {
                self.captures.entry(function).or_default().insert(root);
            }
            match self.parents.get(&seq).copied().flatten() {
                Some((outer, _)) => seq = outer,
                None => break,
            }
        }
    }

    /// Records a read of a variable. If the variable is an alias, also records a read of the original variable. If it is a local
    /// function, also records reads of all variables that the function captures.
    fn record_read(&mut self, var: Var, seq: Seq, index: usize) {
        let mut seen = FxHashSet::default();
        let mut pending = vec![var];
        while let Some(var) = pending.pop() {
            let root = self.root(var);
            self.record_direct_read(root, seq, index);
            if root != var {
                self.record_direct_read(var, seq, index);
            }
            if let Some(captured) = self.captures.get(&root) {
                // Functions that call each other capture each other; each is visited once.
                pending.extend(captured.iter().filter(|&&v| seen.insert(v)));
            }
        }
    }

    /// Records a read of the variable `var`. If a sequence nested in the defining sequence of `var` reads it, the binding of the
    /// defining sequence that contains the nested sequence counts as the reader.
    fn record_direct_read(&mut self, var: Var, mut seq: Seq, mut index: usize) {
        let defining_seq = self.defs.get(&var).map(|d| d.0);
        while defining_seq != Some(seq) {
            match self.parents.get(&seq).copied().flatten() {
                Some((outer, at)) => (seq, index) = (outer, at),
                None => break,
            }
        }
        let last = self.last.entry(var).or_insert(index);
        *last = (*last).max(index);
    }

    /// Returns the original variable of an alias; other variables are returned unchanged.
    pub fn root(&self, var: Var) -> Var {
        self.roots.get(&var).copied().unwrap_or(var)
    }

    /// Returns the index of the last read of a variable in its defining sequence, including reads through aliases. [`AT_RESULT`]
    /// if the result of the sequence reads it, `None` if it is never read.
    pub fn last_read(&self, var: Var) -> Option<usize> {
        self.last.get(&var).copied()
    }

    /// Returns (sequence, index) of a variable's definition; `None` for parameters.
    pub fn definition(&self, var: Var) -> Option<(Seq, usize)> {
        self.defs.get(&var).copied()
    }
}

/// The bindings of a sequence, in order.
fn bindings_of(func: &Function, seq: Seq) -> impl Iterator<Item = &Binding> {
    func.seq(seq).blocks.iter().flat_map(|&block| &func.block(block).bindings)
}

/// Returns `x` if the binding is `y = x` or `y = match_cast(x, ..)`; `None` otherwise.
pub fn plain_alias(func: &Function, binding: &Binding) -> Option<Var> {
    match func.expr(binding.value) {
        ExprData::Var(v) => Some(*v),
        _ => None,
    }
}
