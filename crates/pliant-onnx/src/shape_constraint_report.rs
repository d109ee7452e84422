//! The shape constraints of a model: its symbols with their declared ranges and divisors, the
//! constraints that nodes impose on them, and a report of both.

use crate::import_error::Problem;
use crate::symbolic_size_condition::SizeRelation;
use crate::value_origins::Origin;

/// The user's declaration of one dim of an input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DynamicDim {
    /// The name of a symbol, or arithmetic over symbols. `None` stands for a new symbol.
    pub name: Option<String>,
    /// The minimum size that the user declares for the dim.
    pub min: Option<i64>,
    /// The maximum size that the user declares for the dim.
    pub max: Option<i64>,
}

/// The party that declares a dim to be a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeclaredBy {
    /// No one: the dim has no name.
    Nobody,
    /// The model file, which names the dim.
    File,
    /// The user, who names the dim or declares a property of it.
    User,
}

/// A symbol of a model, as listed by `explain_shapes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolInfo {
    /// The name of the symbol in the model file or in the user's declaration.
    pub name: String,
    /// The minimum and the maximum size that the user declares.
    pub range: (Option<i64>, Option<i64>),
    /// The divisor that the user declares for the size.
    pub divisor: Option<i64>,
    /// The inputs and axes whose dims contain the symbol.
    pub occurrences: Vec<(String, usize)>,
    /// The party that declares the symbol.
    pub declared: DeclaredBy,
}

/// A constraint that a node imposes on symbols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// What the node requires, such as `q to be 4`.
    pub needs: String,
    /// The symbols that occur in `needs`.
    pub symbols: Vec<String>,
    /// The declared symbols that have few possible sizes in every run because of the constraint.
    pub fixes: Vec<String>,
    /// The declared symbols that have few possible sizes because of the constraint, but only in
    /// runs that take a certain branch. The condition of the branch depends on more than sizes.
    pub may_fix: Vec<String>,
    /// The label of the node that imposes the constraint.
    pub node: String,
    /// The path by which the first symbol reaches the node: the label of the input, then the labels of the nodes on the path.
    pub path: Vec<String>,
    /// The labels of the nodes that computed the required size, nearest first.
    pub chain: Vec<String>,
    pub(crate) operator: String,
    pub(crate) relation: SizeRelation,
    pub(crate) control: ControlContext,
}

impl Constraint {
    /// Whether both constraints concern the same symbolic term at the same node, and this
    /// constraint allows fewer values.
    pub(crate) fn is_stricter_than(&self, other: &Constraint) -> bool {
        let (SizeRelation::OneOf(term, values), SizeRelation::OneOf(same, more)) =
            (&self.relation, &other.relation)
        else {
            return false;
        };
        let fewer = values.len() < more.len() && values.iter().all(|v| more.contains(v));
        term == same && fewer && (&self.node, &self.control) == (&other.node, &other.control)
    }
}

/// The loops and `If` branches around the node that imposes a constraint. They determine in which runs the constraint applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ControlContext {
    /// Whether the node may not run, because it is in a loop body or a branch.
    pub conditional: bool,
    /// The enclosing `If` branches, outermost first.
    pub branches: Vec<Branch>,
}

/// The branch of an `If` node in which another node lies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Branch {
    pub node: Origin,
    /// The label of the `If` node.
    pub label: String,
    pub then: bool,
    /// Whether the condition of the branch depends on sizes alone. If so, runs with other sizes
    /// never take the branch.
    pub by_sizes: bool,
}

impl Branch {
    pub fn text(&self) -> String {
        format!("the {}-branch of {}", if self.then { "then" } else { "else" }, self.label)
    }
}

impl Constraint {
    /// The constraint as a sentence that does not name the node.
    pub(crate) fn text(&self) -> String {
        let chain_text =
            match self.chain.is_empty() || !matches!(self.relation, SizeRelation::OneOf(..)) {
                true => String::new(),
                false => format!("; the size comes from {}", self.chain.join(" of ")),
            };
        let path_text = match (self.path.split_first(), self.symbols.first()) {
            (Some((input, [])), Some(symbol)) => format!("; {symbol} comes from {input}"),
            (Some((input, nodes)), Some(symbol)) => {
                format!("; {symbol} comes from {input} through {}", nodes.join(", "))
            }
            _ => String::new(),
        };
        let branches = &self.control.branches;
        let branch_text = branches.last().map_or_else(String::new, |b| format!("in {} ", b.text()));
        format!("{branch_text}the node needs {}{chain_text}{path_text}", self.needs)
    }
}

/// The symbols of a model and the constraints on them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShapeReport {
    /// The symbols that occur in the dims of the inputs.
    pub symbols: Vec<SymbolInfo>,
    /// The constraints that the nodes impose.
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
            let occurrences: Vec<String> =
                symbol.occurrences.iter().map(|(input, axis)| format!("{input}[{axis}]")).collect();
            let source = match symbol.declared {
                DeclaredBy::User => "declared",
                DeclaredBy::File | DeclaredBy::Nobody => "of the file",
            };
            writeln!(f, "  ({source}; {})", occurrences.join(", "))?;
            for c in self.constraints.iter().filter(|c| c.symbols.contains(&symbol.name)) {
                writeln!(f, "  {}: {}", c.node, c.text())?;
            }
        }
        Ok(())
    }
}

impl SymbolInfo {
    /// Whether the symbol is declared and its range contains more than one size.
    pub(crate) fn may_vary(&self) -> bool {
        let one = matches!(self.range, (Some(min), Some(max)) if min == max);
        self.declared > DeclaredBy::Nobody && !one
    }

    /// The range of the symbol in the program. It is unknown if the program's symbol represents a
    /// declared size divided by its divisor.
    pub(crate) fn own_range(&self) -> (Option<i64>, Option<i64>) {
        if self.divisor.is_some_and(|by| by != 1) { (None, None) } else { self.range }
    }

    /// Creates the problem that no size in the declared range is possible. `c` is the constraint that rules out the last size;
    /// `None` if the range itself is empty, because the ranges declared for several dims do not overlap.
    pub(crate) fn unsatisfiable_problem(&self, c: Option<&Constraint>) -> Problem {
        let range = match self.range {
            (None, None) => String::new(),
            (min, None) => format!(" of at least {}", min.unwrap_or(0)),
            (min, Some(max)) => format!(" from {} to {max}", min.unwrap_or(0)),
        };
        let name = &self.name;
        match c {
            Some(c) => {
                let message = format!(
                    "no size{range} of the symbol {name} satisfies all constraints of the model: {}",
                    c.text()
                );
                let help = "declare a range that contains the sizes that the nodes need";
                Problem::invalid(message).with_help(help).at_node(&c.node, &c.operator)
            }
            None => {
                let bounds = match self.range {
                    (min, Some(max)) => {
                        let min = min.unwrap_or(0);
                        format!(": the largest minimum is {min}, and the smallest maximum is {max}")
                    }
                    _ => String::new(),
                };
                let message =
                    format!("the ranges declared for the symbol {name} do not overlap{bounds}");
                let help = "declare overlapping ranges for all dims that share the symbol";
                Problem::invalid(message).with_help(help)
            }
        }
    }
}
