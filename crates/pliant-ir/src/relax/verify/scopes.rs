//! Verifies the structure of graph functions and the scopes of variables and symbols.

use pliant_diag::error_codes;
use pliant_sym::{Sym, SymVar};
use rustc_hash::FxHashSet;

use super::{MAX_DEPTH, Verifier};
use crate::relax::expr::*;

impl Verifier<'_> {
    /// Checks that blocks, sequences and functions form a tree of limited depth. The other checks rely on this.
    pub(super) fn check_structure(&mut self) -> bool {
        let f = self.f;
        let before = self.out.len();
        let mut seqs = FxHashSet::default();
        let mut blocks = FxHashSet::default();
        let mut funcs = FxHashSet::default();
        funcs.insert(f.root());
        let mut stack = vec![(f.body(), 0)];
        while let Some((seq, depth)) = stack.pop() {
            if depth > MAX_DEPTH {
                self.error(
                    error_codes::PL0220,
                    format!("branches and local functions are nested deeper than the maximum of {MAX_DEPTH} levels"),
                );
                break;
            }
            if !seqs.insert(seq) {
                self.error(
                    error_codes::PL0221,
                    "the same sequence of blocks occurs twice in the function",
                );
                continue;
            }
            for &block in &f.seq(seq).blocks {
                if !blocks.insert(block) {
                    self.error(
                        error_codes::PL0221,
                        "the same binding block occurs twice in the function",
                    );
                    continue;
                }
                for b in &f.block(block).bindings {
                    match f.expr(b.value) {
                        ExprData::If { then_seq, else_seq, .. } => {
                            stack.extend([(*then_seq, depth + 1), (*else_seq, depth + 1)]);
                        }
                        ExprData::Func(id) if funcs.insert(*id) => {
                            stack.push((f.func(*id).body, depth + 1));
                        }
                        ExprData::Func(_) => {
                            self.span = f.var(b.var).span;
                            self.error(
                                error_codes::PL0221,
                                "the same local function is bound to two variables",
                            );
                        }
                        _ => {}
                    }
                }
            }
        }
        self.out.len() == before
    }

    pub(super) fn leave_scope(&mut self) {
        let scope = self.scopes.pop().unwrap_or_default();
        for v in scope.vars {
            self.visible.remove(&v);
        }
        for s in scope.syms {
            self.syms.remove(&s);
        }
    }

    /// Makes a variable visible until the end of the current scope. Reports an error if it is already defined.
    pub(super) fn define(&mut self, v: Var) {
        let name = self.name(v);
        if !self.defined.insert(v) {
            self.error(error_codes::PL0204, format!("variable '{name}' is defined twice"));
        }
        self.visible.insert(v);
        if self.f.var(v).dataflow {
            match &mut self.dataflow {
                Some(vars) => {
                    vars.push(v);
                    return;
                }
                None => self.error(
                    error_codes::PL0205,
                    format!("dataflow variable '{name}' is defined outside a dataflow block"),
                ),
            }
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.vars.push(v);
        }
    }

    /// Makes a symbol visible until the end of the scope.
    pub(super) fn define_sym(&mut self, s: SymVar) {
        if self.syms.insert(s)
            && let Some(scope) = self.scopes.last_mut()
        {
            scope.syms.push(s);
        }
    }

    pub(super) fn use_var(&mut self, v: Var) {
        if self.visible.contains(&v) {
            return;
        }
        let name = self.name(v);
        if self.f.var(v).dataflow && self.defined.contains(&v) {
            self.error_help(
                error_codes::PL0205,
                format!("dataflow variable '{name}' is used outside its dataflow block"),
                "add the variable to the R.output(...) of the block",
            );
        } else {
            self.error(
                error_codes::PL0203,
                format!("variable '{name}' is used outside of its scope"),
            );
        }
    }

    pub(super) fn use_sym(&mut self, s: Sym) {
        for v in self.f.syms.free_vars(s) {
            self.use_sym_var(v);
        }
    }

    pub(super) fn use_sym_var(&mut self, v: SymVar) {
        if self.syms.contains(&v) {
            return;
        }
        let name = self.f.syms.name(v).to_string();
        self.error_help(
            error_codes::PL0209,
            format!("symbolic dim '{name}' is used, but not defined at this point of the function"),
            "a parameter or R.match_cast defines a symbol that is by itself a dim, or the only new symbol of a linear dim such as n * 2 + 1",
        );
        // Report the symbol only once.
        self.define_sym(v);
    }
}
