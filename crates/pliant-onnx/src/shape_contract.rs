//! The shape contract of a model: symbols with ranges and divisors as declared by the user and the
//! file, the constraints that nodes impose on them, and the report of both.

use crate::error::Problem;
use crate::size_relation::SizeRelation;
use crate::value_origins::Origin;

/// The user's declaration of one dim of an input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DynamicDim {
    /// The name of a symbol, or arithmetic over symbols. `None` for a new symbol.
    pub name: Option<String>,
    /// The minimum size.
    pub min: Option<i64>,
    /// The maximum size.
    pub max: Option<i64>,
}

/// Where a dim is declared to be a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeclaredBy {
    /// Nowhere: the dim has no name.
    Nobody,
    /// The file names the dim.
    File,
    /// The user names the dim or declares a property of it.
    User,
}

/// A symbol of a model, as listed by `explain_shapes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolInfo {
    /// Its name.
    pub name: String,
    /// The minimum and maximum size declared by the user.
    pub range: (Option<i64>, Option<i64>),
    /// The declared divisor.
    pub divisor: Option<i64>,
    /// The inputs and axes whose dims contain the symbol.
    pub places: Vec<(String, usize)>,
    /// Where the symbol is declared.
    pub declared: DeclaredBy,
}

/// A constraint that a node imposes on symbols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// The requirement in words: `q to be 4`.
    pub needs: String,
    /// The symbols in the requirement.
    pub symbols: Vec<String>,
    /// The declared symbols for which few sizes satisfy the constraint, on every path of execution.
    pub fixes: Vec<String>,
    /// The declared symbols for which few sizes satisfy the constraint if a branch is taken that
    /// does not depend on sizes alone.
    pub may_fix: Vec<String>,
    /// The label of the node.
    pub node: String,
    /// The input and the nodes through which the first symbol reaches the node.
    pub path: Vec<String>,
    /// The nodes that computed the size, nearest first.
    pub chain: Vec<String>,
    pub(crate) operator: String,
    pub(crate) relation: SizeRelation,
    pub(crate) within: ControlContext,
}

impl Constraint {
    /// Whether it allows fewer values of a term of the same node than another constraint.
    pub(crate) fn is_stricter_than(&self, other: &Constraint) -> bool {
        let (SizeRelation::OneOf(term, values), SizeRelation::OneOf(same, more)) =
            (&self.relation, &other.relation)
        else {
            return false;
        };
        let fewer = values.len() < more.len() && values.iter().all(|v| more.contains(v));
        term == same && fewer && (&self.node, &self.within) == (&other.node, &other.within)
    }
}

/// The control flow around a constraint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ControlContext {
    /// Whether the constraint may not be evaluated: in a loop body or in a branch.
    pub conditional: bool,
    /// The enclosing branches, outermost first.
    pub branches: Vec<Branch>,
}

/// A branch of an `If` node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Branch {
    pub node: Origin,
    /// The label of the node.
    pub label: String,
    pub then: bool,
    /// Whether the branch depends on sizes alone, so that it is never taken for other sizes.
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
        let from = match self.chain.is_empty() || !matches!(self.relation, SizeRelation::OneOf(..))
        {
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

/// The symbols of a model and the constraints on them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShapeReport {
    /// The symbols of the inputs.
    pub symbols: Vec<SymbolInfo>,
    /// The constraints imposed by operators.
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
                DeclaredBy::User => "declared",
                DeclaredBy::File | DeclaredBy::Nobody => "of the file",
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
    /// Whether it is declared and can have more than one size.
    pub(crate) fn may_vary(&self) -> bool {
        let one = matches!(self.range, (Some(min), Some(max)) if min == max);
        self.declared > DeclaredBy::Nobody && !one
    }

    /// The range of the symbol itself; unknown if the symbol represents a quotient of the declared
    /// one.
    pub(crate) fn own_range(&self) -> (Option<i64>, Option<i64>) {
        if self.divisor.is_some_and(|by| by != 1) { (None, None) } else { self.range }
    }

    /// The problem that no size is possible, because of the given constraint if any.
    pub(crate) fn unsatisfiable_problem(&self, c: Option<&Constraint>) -> Problem {
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
