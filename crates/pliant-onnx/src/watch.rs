//! [`Watch`]: what a program will ask of the symbols of its inputs.
//!
//! A symbol that is declared must stay one. Whatever a program will check of sizes when it runs is asked here once, when
//! its call is made: [`pliant_ops::size_checks`] tells it of every operator, and converters add what they require. At the
//! end all of it is looked at together ([`fixed`]). Where it leaves a declared symbol few sizes or one, the import fails
//! with the node, the way of the symbol and the way of the size, unless specialising is allowed.

mod fixed;

use pliant_ir::relax::derive::type_syms;
use pliant_ir::relax::{Expr, Function};
use pliant_sym::{Sym, SymVar};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::contract::{Branch, Constraint, Declared, DynamicDim, ShapeReport, SymbolInfo, Within};
use crate::dims::Symbols;
use crate::origin::{Origin, Origins};
use crate::relation::{Relation, relations};

/// The watch over the symbols of the inputs while nodes are converted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    symbols: FxHashMap<SymVar, usize>,
    pub(crate) report: ShapeReport,
    /// What programs will check, the nodes that ask it, and where.
    asked: Vec<(Sym, Origin, Within)>,
    /// How many graphs are open around what is made now.
    pub(crate) inside: usize,
    /// The branches around what is made now, the outermost first.
    pub(crate) branches: Vec<Branch>,
    seen: FxHashSet<(Sym, Origin)>,
    /// Dims with what the user said of their least and largest size, to be checked when the program runs.
    pub(crate) ranges: Vec<(Sym, DynamicDim)>,
}

impl Watch {
    /// A dim of an input: its symbols are watched from now on. `given` is what the user says of it, `named` whether the
    /// file or the user gives it a name.
    pub(crate) fn input(
        &mut self,
        func: &Function,
        (input, axis): (&str, usize),
        dim: Sym,
        (given, named): (Option<&DynamicDim>, Declared),
        known: &Symbols,
    ) {
        if let Some(given) = given.filter(|g| g.min.is_some() || g.max.is_some()) {
            let name = Some(func.syms.display(dim).to_string());
            self.ranges.push((dim, DynamicDim { name, ..given.clone() }));
        }
        let vars = func.syms.free_vars(dim);
        let alone = vars.len() == 1;
        for var in vars {
            let name = func.syms.name(var).to_string();
            let whole = known.whole(&name);
            let divisor = whole.map(|(_, by)| by);
            let at = *self.symbols.entry(var).or_insert_with(|| {
                self.report.symbols.push(SymbolInfo {
                    divisor,
                    name: whole.map_or(name, |(whole, _)| whole.to_owned()),
                    range: (None, None),
                    places: Vec::new(),
                    declared: Declared::No,
                });
                self.report.symbols.len() - 1
            });
            let info = &mut self.report.symbols[at];
            info.places.push((input.into(), axis));
            let said = if given.is_some() { Declared::User } else { named };
            if !alone {
                continue;
            }
            info.declared = info.declared.max(said);
            let itself = func.syms.as_var(dim).is_some() || divisor.is_some_and(|by| by != 1);
            if let Some(given) = given.filter(|_| itself) {
                info.range.0 = info.range.0.max(given.min);
                info.range.1 = match (info.range.1, given.max) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                };
            }
        }
    }

    /// Whether symbols that are watched are in the types of operands.
    pub(crate) fn concerns(&self, func: &Function, args: &[Expr]) -> bool {
        let holds = |&arg: &Expr| {
            let symbols = type_syms(func, func.expr_ty(arg));
            symbols.iter().any(|v| self.symbols.contains_key(v))
        };
        !self.symbols.is_empty() && args.iter().any(holds)
    }

    /// Looks at a call that a node makes, with its operands: what it asks of sizes.
    pub(crate) fn call(
        &mut self,
        func: &mut Function,
        (call, args): (Expr, &[Expr]),
        node: Origin,
    ) {
        for cond in pliant_ops::size_checks(func, call, args) {
            self.ask(func, cond, node);
        }
    }

    /// A condition on sizes that a node needs.
    pub(crate) fn ask(&mut self, func: &Function, cond: Sym, node: Origin) {
        let vars = func.syms.free_vars(cond);
        // What a run computes may be any size.
        let known = !vars.is_empty() && vars.iter().all(|v| self.symbols.contains_key(v));
        if known && self.seen.insert((cond, node)) {
            let within = Within { perhaps: self.inside > 0, branches: self.branches.clone() };
            self.asked.push((cond, node, within));
        }
    }

    fn name(&self, var: SymVar) -> String {
        self.symbols.get(&var).map_or_else(String::new, |&at| self.report.symbols[at].name.clone())
    }

    /// Looks at all that was asked, together.
    pub(crate) fn settle(&mut self, func: &mut Function, origins: &Origins, symbols: &Symbols) {
        let mut told: FxHashSet<(String, String)> = FxHashSet::default();
        for (cond, node, within) in std::mem::take(&mut self.asked) {
            for relation in relations(&mut func.syms, cond) {
                let made = origins.get(node);
                let needs = symbols.whole_text(&relation.text(&func.syms));
                if !told.insert((needs.clone(), made.label.clone())) {
                    continue;
                }
                let vars = relation.symbols(&func.syms);
                let watched = |v: SymVar| self.symbols.contains_key(&v);
                let (path, chain) = match &relation {
                    Relation::Is(_, values) => (
                        vars.first().map_or_else(Vec::new, |&v| origins.path_of(node, v)),
                        origins.source_of(node, values, &watched),
                    ),
                    _ => (Vec::new(), Vec::new()),
                };
                self.report.constraints.push(Constraint {
                    needs,
                    symbols: vars.iter().map(|&v| self.name(v)).collect(),
                    fixes: Vec::new(),
                    may_fix: Vec::new(),
                    node: made.label.clone(),
                    path,
                    chain,
                    operator: made.operator.clone(),
                    relation,
                    within: within.clone(),
                });
            }
        }
        self.fix(func);
    }
}
