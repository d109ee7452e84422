//! What users and files declare of shapes, and what becomes of it: symbols with ranges and divisors, and the nodes that
//! constrain them.
//!
//! A symbol that is declared must stay one. Whatever a program will check of sizes when it runs is asked here once, when
//! its call is made: [`pliant_ops::size_checks`] tells it of every operator, and converters add what they require. At the
//! end all of it is looked at together. Where it leaves a declared symbol few sizes or one, the import fails with the
//! node, the way of the symbol and the way of the size, unless specialising is allowed.

use indexmap::IndexMap;
use pliant_ir::relax::derive::type_syms;
use pliant_ir::relax::{Expr, Function};
use pliant_sym::{Sym, SymVar};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::dims::{Symbols, part_name};
use crate::error::Problem;
use crate::origin::{Origin, Origins};
use crate::relation::{Relation, relations};

/// What a user says of one dim of an input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DynamicDim {
    /// The symbol, or arithmetic over symbols; none for a symbol of its own.
    pub name: Option<String>,
    /// The least size.
    pub min: Option<i64>,
    /// The largest size.
    pub max: Option<i64>,
}

/// Who says that a dim is a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Declared {
    /// Nobody: it has no name.
    No,
    /// The file gives it a name.
    File,
    /// The user names it, or says something of it.
    User,
}

/// A symbol of a model, as `explain_shapes` tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolInfo {
    /// Its name.
    pub name: String,
    /// The least and the largest size that the user gave.
    pub range: (Option<i64>, Option<i64>),
    /// What divides it.
    pub divisor: Option<i64>,
    /// The inputs and axes whose dims hold it.
    pub places: Vec<(String, usize)>,
    /// Who declared it.
    pub declared: Declared,
}

/// What a node asks of symbols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// What it needs, in words: `q to be 4`.
    pub needs: String,
    /// The symbols in that.
    pub symbols: Vec<String>,
    /// The declared symbols that it leaves few sizes.
    pub fixes: Vec<String>,
    /// The node that asks, as messages call it.
    pub node: String,
    /// The input and the nodes through which the first symbol comes to it.
    pub path: Vec<String>,
    /// The nodes that the size comes from, the nearest first.
    pub chain: Vec<String>,
    operator: String,
    relation: Relation,
    /// Whether a run may leave it out: in the body of a loop, or in a branch.
    perhaps: bool,
}

impl Constraint {
    /// The constraint as a sentence without its node.
    fn text(&self) -> String {
        let from = match self.chain.is_empty() || !matches!(self.relation, Relation::Is(..)) {
            true => String::new(),
            false => format!("; the size comes from {}", self.chain.join(" of ")),
        };
        let way = match (self.path.split_first(), self.symbols.first()) {
            (Some((input, [])), Some(symbol)) => format!("; {symbol} comes from {input}"),
            (Some((input, nodes)), Some(symbol)) => {
                format!("; {symbol} comes from {input} through {}", nodes.join(", "))
            }
            _ => String::new(),
        };
        format!("it needs {}{from}{way}", self.needs)
    }
}

/// Symbols, and who constrained them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShapeReport {
    /// The symbols of the inputs.
    pub symbols: Vec<SymbolInfo>,
    /// What operators ask of them.
    pub constraints: Vec<Constraint>,
}

impl std::fmt::Display for ShapeReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.symbols.is_empty() {
            return writeln!(f, "no symbols: every dim of the inputs is a number");
        }
        for symbol in &self.symbols {
            let (min, max) = symbol.range;
            write!(f, "{}: {} .. ", symbol.name, min.unwrap_or(0))?;
            match max {
                Some(max) => write!(f, "{max}")?,
                None => write!(f, "any size")?,
            }
            if let Some(divisor) = symbol.divisor {
                write!(f, ", divisible by {divisor}")?;
            }
            let places: Vec<String> =
                symbol.places.iter().map(|(input, axis)| format!("{input}[{axis}]")).collect();
            let whose = match symbol.declared {
                Declared::User => "declared",
                Declared::File | Declared::No => "of the file",
            };
            writeln!(f, "  ({whose}; {})", places.join(", "))?;
            for c in self.constraints.iter().filter(|c| c.symbols.contains(&symbol.name)) {
                writeln!(f, "  {}: {}", c.node, c.text())?;
            }
        }
        Ok(())
    }
}

/// The watch over the symbols of the inputs while nodes are converted.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    symbols: FxHashMap<SymVar, usize>,
    pub(crate) report: ShapeReport,
    /// What programs will check, and the nodes that ask it.
    asked: Vec<(Sym, Origin, bool)>,
    /// How many graphs are open around what is made now.
    pub(crate) inside: usize,
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
        divisible: &IndexMap<String, i64>,
    ) {
        if let Some(given) = given.filter(|g| g.min.is_some() || g.max.is_some()) {
            let name = Some(func.syms.display(dim).to_string());
            self.ranges.push((dim, DynamicDim { name, ..given.clone() }));
        }
        let vars = func.syms.free_vars(dim);
        let alone = vars.len() == 1;
        for var in vars {
            let name = func.syms.name(var).to_string();
            let whole = divisible.iter().find(|(whole, by)| part_name(whole, **by) == name);
            let divisor = whole.map(|(_, by)| *by);
            let at = *self.symbols.entry(var).or_insert_with(|| {
                self.report.symbols.push(SymbolInfo {
                    divisor,
                    name: whole.map_or(name, |(whole, _)| whole.clone()),
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
            self.asked.push((cond, node, self.inside > 0));
        }
    }

    fn name(&self, var: SymVar) -> String {
        self.symbols.get(&var).map_or_else(String::new, |&at| self.report.symbols[at].name.clone())
    }

    /// Looks at all that was asked, together.
    pub(crate) fn settle(&mut self, func: &mut Function, origins: &Origins, symbols: &Symbols) {
        let mut told: FxHashSet<(String, String)> = FxHashSet::default();
        for (cond, node, perhaps) in std::mem::take(&mut self.asked) {
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
                    node: made.label.clone(),
                    path,
                    chain,
                    operator: made.operator.clone(),
                    relation,
                    perhaps,
                });
            }
        }
        self.fix(func);
    }

    /// Finds the declared symbols that constraints leave few sizes, those that must equal such ones too.
    fn fix(&mut self, func: &Function) {
        let mut groups = Groups::default();
        for c in &self.report.constraints {
            if let Relation::Same(a, b) = c.relation
                && let (Some(a), Some(b)) = (func.syms.as_var(a), func.syms.as_var(b))
            {
                groups.join(a, b);
            }
        }
        let fixed = |c: &Constraint| {
            let mut at: Vec<usize> = Vec::new();
            if c.relation.fixes(&func.syms) {
                let own = c.relation.symbols(&func.syms);
                let own: Vec<SymVar> = own.into_iter().map(|v| groups.of(v)).collect();
                let ours = self.symbols.iter().filter(|(v, _)| own.contains(&groups.of(**v)));
                at.extend(ours.map(|(_, &at)| at).filter(|&at| self.report.symbols[at].is_open()));
            }
            at.sort_unstable();
            at.into_iter().map(|at| self.report.symbols[at].name.clone()).collect()
        };
        let all: Vec<Vec<String>> = self.report.constraints.iter().map(fixed).collect();
        for (c, names) in self.report.constraints.iter_mut().zip(all) {
            c.fixes = names;
        }
    }

    /// What is wrong whatever is allowed: symbols with a range in which no size fits.
    pub(crate) fn impossible(&self, func: &mut Function) -> Vec<Problem> {
        let mut vars: Vec<(usize, SymVar)> = self.symbols.iter().map(|(v, at)| (*at, *v)).collect();
        vars.sort_unstable();
        let mut problems = Vec::new();
        for (at, var) in vars {
            let info = &self.report.symbols[at];
            // A symbol that stands for a part is one of its own.
            if info.range == (None, None) || info.divisor.is_some_and(|by| by != 1) {
                continue;
            }
            let (mut low, mut high) = (info.range.0.unwrap_or(0).max(0), info.range.1);
            let mut last = None;
            for c in self.report.constraints.iter().filter(|c| !c.perhaps) {
                let (least, most) = match &c.relation {
                    Relation::Is(term, values) if func.syms.as_var(*term) == Some(var) => {
                        let fits = |v: &&i64| **v >= low && high.is_none_or(|h| **v <= h);
                        let fit: Vec<i64> = values.iter().filter(fits).copied().collect();
                        // Nothing fits: a range that is empty says so.
                        let none = (Some(i64::MAX), Some(0));
                        fit.iter().min().map_or(none, |&l| (Some(l), fit.iter().max().copied()))
                    }
                    other => match other.bound(&mut func.syms) {
                        Some((of, least, most)) if of == var => (least, most),
                        _ => continue,
                    },
                };
                low = least.map_or(low, |l| low.max(l));
                high = most.map_or(high, |m| Some(high.map_or(m, |h| h.min(m))));
                if high.is_some_and(|h| h < low) {
                    last = Some(c);
                    break;
                }
            }
            if high.is_none_or(|h| h >= low) {
                continue;
            }
            problems.push(info.nothing_fits(last));
        }
        problems
    }

    /// The constraints that fix declared symbols: problems, and warnings where that is allowed. Where nothing is said of
    /// it, the file may fix the symbols that only itself declares.
    pub(crate) fn broken(&self, allowed: Option<bool>) -> (Vec<Problem>, Vec<Problem>) {
        let (mut problems, mut warnings) = (Vec::new(), Vec::new());
        for c in self.report.constraints.iter().filter(|c| !c.fixes.is_empty()) {
            let own = |s: &&SymbolInfo| s.declared == Declared::User && c.fixes.contains(&s.name);
            let by_user = self.report.symbols.iter().any(|s| own(&s));
            let allowed = allowed.unwrap_or(!by_user);
            let list = if allowed { &mut warnings } else { &mut problems };
            list.push(self.told(c, by_user, allowed));
        }
        (problems, warnings)
    }

    fn told(&self, c: &Constraint, by_user: bool, allowed: bool) -> Problem {
        let noun = if c.fixes.len() == 1 { "symbol" } else { "symbols" };
        let whose = if by_user { "declared" } else { "file's" };
        let (names, text) = (c.fixes.join(", "), c.text());
        let mut message = format!("the {whose} {noun} {names} would be fixed: {text}");
        // What ties a symbol to one of those in the constraint.
        for name in c.fixes.iter().filter(|name| !c.symbols.contains(name)) {
            let ties = |o: &&Constraint| {
                matches!(o.relation, Relation::Same(..)) && o.symbols.contains(name)
            };
            if let Some(tie) = self.report.constraints.iter().find(ties) {
                message.push_str(&format!("; {} needs {}", tie.node, tie.needs));
            }
        }
        let help = match allowed {
            true => "it is allowed, and the model runs at no other size",
            false => {
                "export the model with that size dynamic, declare the number instead of a symbol, or allow it: \
                 allow_specialization=True, on the command line --allow-specialization"
            }
        };
        Problem::invalid(message).with_help(help).at(&c.node, &c.operator)
    }
}

impl SymbolInfo {
    /// Whether it is declared to have more than one size.
    fn is_open(&self) -> bool {
        let one = matches!(self.range, (Some(min), Some(max)) if min == max);
        self.declared > Declared::No && !one
    }

    /// That no size is left, where a constraint is what leaves none.
    fn nothing_fits(&self, c: Option<&Constraint>) -> Problem {
        let range = match self.range {
            (None, None) => String::new(),
            (min, None) => format!(" of at least {}", min.unwrap_or(0)),
            (min, Some(max)) => format!(" from {} to {max}", min.unwrap_or(0)),
        };
        let name = &self.name;
        match c {
            Some(c) => {
                let message = format!("no size{range} is left for the symbol {name}: {}", c.text());
                let help = "declare a range that holds what the nodes need";
                Problem::invalid(message).with_help(help).at(&c.node, &c.operator)
            }
            None => Problem::invalid(format!("the symbol {name} has no size{range}"))
                .with_help("the ranges of dims that share a symbol must overlap"),
        }
    }
}

/// Symbols that must be equal.
#[derive(Default)]
struct Groups {
    to: FxHashMap<SymVar, SymVar>,
}

impl Groups {
    fn of(&self, mut var: SymVar) -> SymVar {
        while let Some(&next) = self.to.get(&var) {
            var = next;
        }
        var
    }

    fn join(&mut self, a: SymVar, b: SymVar) {
        let (a, b) = (self.of(a), self.of(b));
        if a != b {
            self.to.insert(a, b);
        }
    }
}
