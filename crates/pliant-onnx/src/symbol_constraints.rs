//! [`SymbolConstraints`]: the constraints that a model imposes on the symbols of its inputs.
//!
//! A declared symbol must remain dynamic. The size checks of the program are collected during the
//! import: [`pliant_ops::size_checks`] returns the checks of operator calls, and converters add
//! their own. At the end, all checks are analyzed together ([`overconstrained_symbols`]). If they
//! restrict a declared symbol to few sizes, the import fails, unless specialization is allowed. The
//! error names the node, how the symbol reaches it, and where the required size comes from.

mod overconstrained_symbols;

use pliant_ir::relax::type_lattice::type_syms;
use pliant_ir::relax::{Expr, Function};
use pliant_sym::{Sym, SymVar};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::dim_symbols::DimSymbols;
use crate::shape_constraint_report::{
    Branch, Constraint, ControlContext, DeclaredBy, DynamicDim, ShapeReport, SymbolInfo,
};
use crate::symbolic_size_condition::{SizeRelation, split_condition};
use crate::value_origins::{Origin, Origins};

/// The tracked symbols, which are those of the dims of the model's inputs, and the conditions that nodes have imposed on them so
/// far.
#[derive(Clone, Debug, Default)]
pub(crate) struct SymbolConstraints {
    symbols: FxHashMap<SymVar, usize>,
    pub(crate) report: ShapeReport,
    /// The conditions that the program checks, each with the node that imposes it and the control flow around the node.
    conditions: Vec<(Sym, Origin, ControlContext)>,
    /// The number of subgraphs that enclose the current node.
    pub(crate) graph_depth: usize,
    /// The `If` branches that enclose the current node, outermost first.
    pub(crate) branches: Vec<Branch>,
    recorded: FxHashSet<(Sym, Origin)>,
    /// The dims for which the user declares a range. The range is checked at run time.
    pub(crate) ranges: Vec<(Sym, DynamicDim)>,
}

impl SymbolConstraints {
    /// Starts to track the symbols in a dim of an input: conditions that nodes impose on these symbols are recorded.
    /// `dynamic_dim` is the user's declaration of the dim, and `declared_by` says who names the dim.
    pub(crate) fn track_input(
        &mut self,
        func: &Function,
        (input, axis): (&str, usize),
        dim: Sym,
        (dynamic_dim, declared_by): (Option<&DynamicDim>, DeclaredBy),
        known: &DimSymbols,
    ) {
        if let Some(dynamic_dim) = dynamic_dim.filter(|g| g.min.is_some() || g.max.is_some()) {
            let name = Some(func.syms.display(dim).to_string());
            self.ranges.push((dim, DynamicDim { name, ..dynamic_dim.clone() }));
        }
        let vars = func.syms.free_vars(dim);
        let is_single = vars.len() == 1;
        for var in vars {
            let name = func.syms.name(var).to_string();
            let divisible = known.divisible_size(&name);
            let divisor = divisible.map(|(_, by)| by);
            let index = *self.symbols.entry(var).or_insert_with(|| {
                self.report.symbols.push(SymbolInfo {
                    divisor,
                    name: divisible.map_or(name, |(divisible, _)| divisible.to_owned()),
                    range: (None, None),
                    occurrences: Vec::new(),
                    declared: DeclaredBy::Nobody,
                });
                self.report.symbols.len() - 1
            });
            let info = &mut self.report.symbols[index];
            info.occurrences.push((input.into(), axis));
            let source = if dynamic_dim.is_some() { DeclaredBy::User } else { declared_by };
            if !is_single {
                continue;
            }
            info.declared = info.declared.max(source);
            let itself = func.syms.as_var(dim).is_some() || divisor.is_some_and(|by| by != 1);
            if let Some(dynamic_dim) = dynamic_dim.filter(|_| itself) {
                info.range.0 = info.range.0.max(dynamic_dim.min);
                info.range.1 = match (info.range.1, dynamic_dim.max) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                };
            }
        }
    }

    /// Whether the types of the operands contain tracked symbols (symbols of the model's inputs).
    pub(crate) fn tracks_operands(&self, func: &Function, args: &[Expr]) -> bool {
        let has_tracked_symbol = |&arg: &Expr| {
            let symbols = type_syms(func, func.expr_ty(arg));
            symbols.iter().any(|v| self.symbols.contains_key(v))
        };
        !self.symbols.is_empty() && args.iter().any(has_tracked_symbol)
    }

    /// Records the conditions on sizes that an operator call imposes.
    pub(crate) fn record_call(
        &mut self,
        func: &mut Function,
        (call, args): (Expr, &[Expr]),
        node: Origin,
    ) {
        for cond in pliant_ops::size_checks(func, call, args) {
            self.record(func, cond, node);
        }
    }

    /// Records a condition on sizes that a node imposes, if all symbols in the condition are tracked (are symbols of the model's
    /// inputs).
    pub(crate) fn record(&mut self, func: &Function, cond: Sym, node: Origin) {
        let vars = func.syms.free_vars(cond);
        // Other symbols are computed at run time and may have any value.
        let known = !vars.is_empty() && vars.iter().all(|v| self.symbols.contains_key(v));
        if known && self.recorded.insert((cond, node)) {
            let control = ControlContext {
                conditional: self.graph_depth > 0,
                branches: self.branches.clone(),
            };
            self.conditions.push((cond, node, control));
        }
    }

    fn symbol_name(&self, var: SymVar) -> String {
        self.symbols
            .get(&var)
            .map_or_else(String::new, |&index| self.report.symbols[index].name.clone())
    }

    /// Converts the recorded conditions into constraints, and finds the symbols that these restrict to few sizes.
    pub(crate) fn analyze(&mut self, func: &mut Function, origins: &Origins, symbols: &DimSymbols) {
        let mut reported: FxHashSet<(String, String)> = FxHashSet::default();
        for (cond, node, control) in std::mem::take(&mut self.conditions) {
            for relation in split_condition(&mut func.syms, cond) {
                let source = origins.get(node);
                let needs = symbols.display_text(&relation.text(&func.syms));
                if !reported.insert((needs.clone(), source.label.clone())) {
                    continue;
                }
                let vars = relation.symbols(&func.syms);
                let tracked = |v: SymVar| self.symbols.contains_key(&v);
                let (path, chain) = match &relation {
                    SizeRelation::OneOf(_, values) => (
                        vars.first().map_or_else(Vec::new, |&v| origins.symbol_path(node, v)),
                        origins.size_sources(node, values, &tracked),
                    ),
                    _ => (Vec::new(), Vec::new()),
                };
                self.report.constraints.push(Constraint {
                    needs,
                    symbols: vars.iter().map(|&v| self.symbol_name(v)).collect(),
                    fixes: Vec::new(),
                    may_fix: Vec::new(),
                    node: source.label.clone(),
                    path,
                    chain,
                    operator: source.operator.clone(),
                    relation,
                    control: control.clone(),
                });
            }
        }
        self.find_fixed_symbols(func);
    }
}
