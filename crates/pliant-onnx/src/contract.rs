//! What users and files declare of shapes, and what nodes ask of it: symbols with ranges and divisors, constraints, and the
//! report of both.

use crate::error::Problem;
use crate::origin::Origin;
use crate::relation::Relation;

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
    /// The declared symbols that it leaves few sizes, whatever branches a run takes.
    pub fixes: Vec<String>,
    /// The declared symbols that it leaves few sizes where a run takes a branch that sizes alone do not choose.
    pub may_fix: Vec<String>,
    /// The node that asks, as messages call it.
    pub node: String,
    /// The input and the nodes through which the first symbol comes to it.
    pub path: Vec<String>,
    /// The nodes that the size comes from, the nearest first.
    pub chain: Vec<String>,
    pub(crate) operator: String,
    pub(crate) relation: Relation,
    pub(crate) within: Within,
}

impl Constraint {
    /// Whether it leaves a term of the same node fewer numbers than another constraint does.
    pub(crate) fn says_more(&self, other: &Constraint) -> bool {
        let (Relation::Is(term, values), Relation::Is(same, more)) =
            (&self.relation, &other.relation)
        else {
            return false;
        };
        let fewer = values.len() < more.len() && values.iter().all(|v| more.contains(v));
        term == same && fewer && (&self.node, &self.within) == (&other.node, &other.within)
    }
}

/// Where a constraint is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Within {
    /// Whether a run may leave it out: in the body of a loop, or in a branch.
    pub perhaps: bool,
    /// The branches around it, the outermost first.
    pub branches: Vec<Branch>,
}

/// One of the two ways of a node that branches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Branch {
    pub node: Origin,
    /// How messages call the node.
    pub label: String,
    pub then: bool,
    /// Whether sizes alone choose it, so that no run takes it at other sizes.
    pub by_sizes: bool,
}

impl Branch {
    pub fn text(&self) -> String {
        format!("the {}-branch of {}", if self.then { "then" } else { "else" }, self.label)
    }
}

impl Constraint {
    /// The constraint as a sentence without its node.
    pub(crate) fn text(&self) -> String {
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
        let branches = &self.within.branches;
        let inside = branches.last().map_or_else(String::new, |b| format!("in {} ", b.text()));
        format!("{inside}it needs {}{from}{way}", self.needs)
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

impl SymbolInfo {
    /// Whether it is declared to have more than one size.
    pub(crate) fn is_open(&self) -> bool {
        let one = matches!(self.range, (Some(min), Some(max)) if min == max);
        self.declared > Declared::No && !one
    }

    /// The range of the symbol itself; none is known of one that stands for a part of it.
    pub(crate) fn own_range(&self) -> (Option<i64>, Option<i64>) {
        if self.divisor.is_some_and(|by| by != 1) { (None, None) } else { self.range }
    }

    /// That no size is left, where a constraint is what leaves none.
    pub(crate) fn nothing_fits(&self, c: Option<&Constraint>) -> Problem {
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
