//! What users declare of shapes, and what becomes of it: symbols with ranges and divisors, and the nodes that fix them.
//!
//! A symbol that a user declares must stay one. Where an operator takes a dim that holds it beside one of a known size,
//! the model runs at that size only: the import fails with the node and the way the size came there, unless specialising
//! is allowed.

use indexmap::IndexMap;
use pliant_ir::relax::{Expr, Function, TensorShape, TypeData};
use pliant_sym::{Sym, SymVar};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::dims::part_name;
use crate::error::Problem;
use crate::node::label;
use crate::proto::{GraphProto, NodeProto};

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
    /// Whether the user declared it.
    pub declared: bool,
}

/// A size that an operator asks of symbols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// The dim, as a term over symbols.
    pub dim: String,
    /// What it must be.
    pub size: String,
    /// The symbols in the dim.
    pub symbols: Vec<String>,
    /// The node that asks, as messages call it.
    pub node: String,
    /// The nodes that the size comes from, the nearest first.
    pub chain: Vec<String>,
}

impl Constraint {
    /// The constraint as a sentence without its node.
    fn text(&self) -> String {
        let from = match self.chain.is_empty() {
            true => String::new(),
            false => format!("; the size comes from {}", self.chain.join(" of ")),
        };
        format!("it needs {} to be {}{from}", self.dim, self.size)
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
            let whose = if symbol.declared { "declared" } else { "of the file" };
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
pub(crate) struct Watch<'m> {
    symbols: FxHashMap<SymVar, usize>,
    pub(crate) report: ShapeReport,
    /// Who makes each name of the main graph.
    makers: FxHashMap<&'m str, &'m NodeProto>,
    seen: FxHashSet<(String, String, String)>,
    /// Dims with what the user said of their least and largest size, to be checked when the program runs.
    pub(crate) ranges: Vec<(Sym, DynamicDim)>,
}

impl<'m> Watch<'m> {
    pub(crate) fn new(graph: Option<&'m GraphProto>) -> Self {
        let nodes = graph.map_or(&[][..], |g| g.node.as_slice());
        let makers =
            nodes.iter().flat_map(|n| n.output.iter().map(move |o| (o.as_str(), n))).collect();
        Watch { makers, ..Watch::default() }
    }

    /// A dim of an input: its symbols are watched from now on.
    pub(crate) fn input(
        &mut self,
        func: &Function,
        (input, axis): (&str, usize),
        dim: Sym,
        given: Option<&DynamicDim>,
        divisible: &IndexMap<String, i64>,
    ) {
        if let Some(given) = given.filter(|g| g.min.is_some() || g.max.is_some()) {
            let name = Some(func.syms.display(dim).to_string());
            self.ranges.push((dim, DynamicDim { name, ..given.clone() }));
        }
        let alone = func.syms.as_var(dim).is_some() || func.syms.free_vars(dim).len() == 1;
        for var in func.syms.free_vars(dim) {
            let at = *self.symbols.entry(var).or_insert_with(|| {
                let name = func.syms.name(var).to_string();
                let whole = divisible.iter().find(|(whole, by)| part_name(whole, **by) == name);
                self.report.symbols.push(SymbolInfo {
                    divisor: whole.map(|(_, by)| *by),
                    name: whole.map_or(name, |(whole, _)| whole.clone()),
                    range: (None, None),
                    places: Vec::new(),
                    declared: false,
                });
                self.report.symbols.len() - 1
            });
            let info = &mut self.report.symbols[at];
            info.places.push((input.into(), axis));
            if let Some(given) = given.filter(|_| alone) {
                info.declared = true;
                info.range.0 = info.range.0.max(given.min);
                info.range.1 = match (info.range.1, given.max) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                };
            }
        }
    }

    /// Looks at a call that a node makes: sizes that its operands must share.
    pub(crate) fn call(&mut self, func: &mut Function, op: &str, args: &[Expr], node: &NodeProto) {
        if self.symbols.is_empty() {
            return;
        }
        for (a, b) in shared(func, op, args) {
            self.equal(func, a, b, node);
        }
    }

    /// Two sizes that must be equal: a constraint where one holds watched symbols and the other is a number but 1.
    pub(crate) fn equal(&mut self, func: &mut Function, a: Sym, b: Sym, node: &NodeProto) {
        let (dim, size) = match (func.syms.as_int(a), func.syms.as_int(b)) {
            (None, Some(size)) => (a, size),
            (Some(size), None) => (b, size),
            _ => return,
        };
        let vars = func.syms.free_vars(dim);
        let names: Vec<String> = vars
            .iter()
            .filter_map(|v| self.symbols.get(v).map(|&at| self.report.symbols[at].name.clone()))
            .collect();
        if names.is_empty() || names.len() != vars.len() {
            return;
        }
        let (dim, node_label) = (func.syms.display(dim).to_string(), label(node));
        if !self.seen.insert((dim.clone(), size.to_string(), node_label.clone())) {
            return;
        }
        self.report.constraints.push(Constraint {
            dim,
            size: size.to_string(),
            symbols: names,
            node: node_label,
            chain: self.chain(node),
        });
    }

    /// From which nodes the fixed size of a node came: back from the input that no graph input feeds.
    fn chain(&self, node: &NodeProto) -> Vec<String> {
        let shape_last = matches!(node.op_type(), "Reshape" | "Expand" | "Tile");
        let mut names = node.input.iter().filter(|n| !n.is_empty());
        let fixed = |name: &&String| !self.reaches_input(name, 64);
        let start = match shape_last {
            true => node.input.get(1),
            false => names.find(fixed),
        };
        let mut chain = Vec::new();
        let mut next = start.map(String::as_str);
        while let (Some(name), true) = (next, chain.len() < 8) {
            let Some(maker) = self.makers.get(name) else {
                chain.push(format!("'{name}'"));
                break;
            };
            chain.push(label(maker));
            next = maker.input.iter().map(String::as_str).find(|n| !n.is_empty());
        }
        chain
    }

    /// Whether a value depends on something that no node makes and that is no initializer, within some steps.
    fn reaches_input(&self, name: &str, steps: usize) -> bool {
        let mut open = vec![name];
        for _ in 0..steps {
            let Some(name) = open.pop() else { return false };
            if self.report.symbols.iter().any(|s| s.places.iter().any(|(input, _)| input == name)) {
                return true;
            }
            if let Some(maker) = self.makers.get(name) {
                open.extend(maker.input.iter().map(String::as_str));
            }
        }
        !open.is_empty()
    }

    /// The constraints on declared symbols: problems, or warnings where specialising is allowed.
    pub(crate) fn broken(&self) -> Vec<Problem> {
        let declared = |c: &&Constraint| {
            let is =
                |name: &String| self.report.symbols.iter().any(|s| s.declared && s.name == *name);
            c.symbols.iter().any(is)
        };
        let told = |c: &Constraint| {
            let symbols = c.symbols.join(", ");
            let message = format!("the declared symbol {symbols} would be fixed: {}", c.text());
            let help = "export the model with that size dynamic, declare the number instead of a symbol, or pass \
                        allow_specialization";
            let operator = c.node.split(' ').next().unwrap_or("");
            Problem::invalid(message).with_help(help).at(&c.node, operator)
        };
        self.report.constraints.iter().filter(declared).map(told).collect()
    }
}

/// Pairs of dims that an operator takes to be the same.
fn shared(func: &mut Function, op: &str, args: &[Expr]) -> Vec<(Sym, Sym)> {
    let dims = |func: &Function, e: Expr| match func.ty(e) {
        TypeData::Tensor { shape: TensorShape::Dims(dims), .. } => Some(dims.to_vec()),
        _ => None,
    };
    match op {
        "relax.add" | "relax.subtract" | "relax.multiply" | "relax.divide" | "relax.power"
        | "relax.maximum" | "relax.minimum" | "relax.where" | "relax.equal" => {
            let all: Vec<Vec<Sym>> = args.iter().filter_map(|&e| dims(func, e)).collect();
            let one = func.syms.int(1);
            let mut out = Vec::new();
            for (i, a) in all.iter().enumerate() {
                for b in &all[i + 1..] {
                    let pairs = a.iter().rev().zip(b.iter().rev());
                    out.extend(pairs.map(|(&x, &y)| (x, y)).filter(|p| p.0 != one && p.1 != one));
                }
            }
            out
        }
        "relax.matmul" => match (dims(func, args[0]), dims(func, args[1])) {
            (Some(a), Some(b)) if a.len() > 1 && b.len() > 1 => {
                vec![(a[a.len() - 1], b[b.len() - 2])]
            }
            _ => Vec::new(),
        },
        "relax.reshape" => {
            let target = match func.ty(args[1]) {
                TypeData::Shape { dims: Some(dims), .. } => dims.to_vec(),
                _ => return Vec::new(),
            };
            let Some(own) = dims(func, args[0]) else { return Vec::new() };
            vec![(func.syms.product(own), func.syms.product(target))]
        }
        _ => Vec::new(),
    }
}
