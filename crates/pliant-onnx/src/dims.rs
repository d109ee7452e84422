//! Symbols of the model: names of dimensions, and arithmetic over them, as terms.
//!
//! A `dim_param` is free text. `batch`, `2*seq` and `past + seq // 2` are read as arithmetic; anything else is a name as
//! it stands. The same text is the same symbol wherever it occurs.

use indexmap::IndexMap;
use pliant_ir::relax::Function;
use pliant_sym::Sym;
use rustc_hash::FxHashSet;

use crate::contract::DynamicDim;
use crate::error::Problem;
use crate::proto::TensorShapeProto;
use crate::proto::tensor_shape_proto::dimension;

/// The symbols of a model by what the file calls them.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    by_name: IndexMap<String, Sym>,
    /// What divides symbols that are still to come.
    divisible: IndexMap<String, i64>,
    /// Arithmetic whose symbols no dim defines.
    open: FxHashSet<String>,
}

impl Symbols {
    /// The dims of a declared shape. A dim without a name or value is a symbol of its own, named after the value and axis.
    ///
    /// # Errors
    /// For negative dims.
    pub(crate) fn dims(
        &mut self,
        func: &mut Function,
        shape: &TensorShapeProto,
        owner: &str,
    ) -> Result<Vec<Sym>, Problem> {
        let mut dims = Vec::with_capacity(shape.dim.len());
        for (axis, dim) in shape.dim.iter().enumerate() {
            dims.push(match &dim.value {
                Some(dimension::Value::DimValue(d)) if *d < 0 => {
                    let text = format!("'{owner}' declares the negative dim {d} at axis {axis}");
                    return Err(Problem::invalid(text));
                }
                Some(dimension::Value::DimValue(d)) => func.syms.int(*d),
                Some(dimension::Value::DimParam(text)) if is_name(text) => {
                    self.term(func, text.trim())
                }
                _ => self.name(func, &format!("{owner}_{axis}")),
            });
        }
        Ok(dims)
    }

    /// Numbers that divide symbols: each is so many times a symbol that is a part of it.
    ///
    /// # Errors
    /// For numbers below 1.
    pub(crate) fn divide(&mut self, divisible: &IndexMap<String, i64>) -> Result<(), Problem> {
        if let Some((name, by)) = divisible.iter().find(|(_, by)| **by < 1) {
            return Err(Problem::invalid(format!("'{name}' cannot be divisible by {by}")));
        }
        self.divisible = divisible.clone();
        Ok(())
    }

    /// Part, whole and divisor of each symbol that a number divides, as [`pliant_ir::relax::origins::Wholes`] reads them.
    pub(crate) fn wholes(&self) -> Vec<String> {
        let triple =
            |(name, &by): (&String, &i64)| [part_name(name, by), name.clone(), by.to_string()];
        self.divisible.iter().filter(|(_, by)| **by != 1).flat_map(triple).collect()
    }

    /// The text of a term with the user's symbols in place of parts of them.
    pub(crate) fn whole_text(&self, term: &str) -> String {
        let whole = |text: String, (name, &by): (&String, &i64)| {
            text.replace(&format!("{} * {by}", part_name(name, by)), name)
        };
        self.divisible.iter().fold(term.to_owned(), whole)
    }

    /// Whether there is a size in a range that the user gives.
    ///
    /// # Errors
    /// Says why there is none.
    pub(crate) fn check_range(&self, dim: &DynamicDim) -> Result<(), String> {
        let Some(max) = dim.max else { return Ok(()) };
        let min = dim.min.unwrap_or(0).max(0);
        let by = dim.name.as_ref().and_then(|name| self.divisible.get(name)).map_or(1, |&by| by);
        if max.div_euclid(by).saturating_mul(by) >= min {
            return Ok(());
        }
        let divisor = if by == 1 { String::new() } else { format!(" that {by} divides") };
        Err(format!("has no size from {min} to {max}{divisor}"))
    }

    /// A name that is said to be divisible and that no dim has.
    pub(crate) fn unknown_divisible(&self) -> Option<Problem> {
        let name = self.divisible.keys().find(|name| !self.by_name.contains_key(*name))?;
        let known: Vec<&str> = self.by_name.keys().map(String::as_str).collect();
        let problem =
            Problem::invalid(format!("divisible: no dim of the model is called '{name}'"));
        Some(problem.with_help(format!("its symbols are {}", known.join(", "))))
    }

    /// The symbol of that name.
    pub(crate) fn name(&mut self, func: &mut Function, name: &str) -> Sym {
        if let Some(&sym) = self.by_name.get(name) {
            return sym;
        }
        let by = self.divisible.get(name).copied().unwrap_or(1);
        let var = func.fresh_sym(&part_name(name, by));
        let part = func.syms.var(var);
        let by = func.syms.int(by);
        let sym = func.syms.mul(part, by);
        self.by_name.insert(name.into(), sym);
        sym
    }

    /// Looks at the texts of all dims of the inputs: arithmetic says what a symbol is where it is the only one in it that
    /// nothing else defines.
    pub(crate) fn settle(&mut self, texts: &[&str]) {
        let (mut defined, mut rest) = (FxHashSet::default(), Vec::new());
        for &text in texts {
            match Arithmetic::read(text) {
                Some(Tree::Name(name)) => drop(defined.insert(name)),
                Some(tree) => rest.push((text, tree)),
                None => {}
            }
        }
        loop {
            let before = rest.len();
            rest.retain(|(_, tree)| {
                let mut names = Vec::new();
                let linear = tree.names(&defined, &mut names);
                match names.as_slice() {
                    [] => false,
                    [one] if linear => !defined.insert(one.clone()),
                    _ => true,
                }
            });
            if rest.len() == before {
                break;
            }
        }
        self.open = rest.into_iter().map(|(text, _)| text.to_owned()).collect();
    }

    /// Whether nothing says what the symbols of a term are.
    pub(crate) fn is_open(&self, text: &str) -> bool {
        self.open.contains(text)
    }

    /// Arithmetic over symbols, or a name. Arithmetic whose symbols nothing defines is a name too.
    pub(crate) fn term(&mut self, func: &mut Function, text: &str) -> Sym {
        match Arithmetic::read(text).filter(|_| !self.open.contains(text)) {
            Some(tree) => self.build(func, &tree),
            None => self.name(func, text),
        }
    }

    fn build(&mut self, func: &mut Function, tree: &Tree) -> Sym {
        let (op, a, b) = match tree {
            Tree::Int(v) => return func.syms.int(*v),
            Tree::Name(name) => return self.name(func, name),
            Tree::Op(op, sides) => {
                let a = self.build(func, &sides.0);
                (*op, a, self.build(func, &sides.1))
            }
        };
        match op {
            b'+' => func.syms.add(a, b),
            b'-' => func.syms.sub(a, b),
            b'*' => func.syms.mul(a, b),
            b'/' | FLOOR => func.syms.floordiv(a, b),
            CEIL => func.syms.ceildiv(a, b),
            MAX => func.syms.max(a, b),
            MIN => func.syms.min(a, b),
            _ => func.syms.floormod(a, b),
        }
    }
}

/// Whether the text of a dim names it. Exporters write `?` for a size that nobody knows, wherever they know none.
pub(crate) fn is_name(text: &str) -> bool {
    text.chars().any(|c| c.is_alphanumeric() || c == '_')
}

/// What the symbol is called that is the `by`-th part of a size.
pub(crate) fn part_name(name: &str, by: i64) -> String {
    match by {
        1 => identifier(name),
        _ => format!("{}_over_{by}", identifier(name)),
    }
}

/// The text as a name that the script can print.
fn identifier(text: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
    let mut name: String = text.chars().take(60).map(keep).collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        name.insert(0, 'd');
    }
    name
}

/// The size that a dim's text stands for, where its names stand for those sizes; `None` where one has none, or the text is
/// no arithmetic that comes out. All names are looked up.
pub fn evaluate_dim(text: &str, size: &mut dyn FnMut(&str) -> Option<i64>) -> Option<i64> {
    evaluate(&Arithmetic::read(text)?, size)
}

fn evaluate(tree: &Tree, size: &mut dyn FnMut(&str) -> Option<i64>) -> Option<i64> {
    let (op, a, b) = match tree {
        Tree::Int(v) => return Some(*v),
        Tree::Name(name) => return size(name),
        Tree::Op(op, sides) => (*op, evaluate(&sides.0, size), evaluate(&sides.1, size)),
    };
    let (a, b) = (a?, b?);
    match op {
        b'+' => a.checked_add(b),
        b'-' => a.checked_sub(b),
        b'*' => a.checked_mul(b),
        MAX => Some(a.max(b)),
        MIN => Some(a.min(b)),
        _ if b <= 0 => None,
        CEIL => a.checked_add(b - 1).map(|a| a.div_euclid(b)),
        b'/' | FLOOR => Some(a.div_euclid(b)),
        _ => Some(a.rem_euclid(b)),
    }
}

/// Functions of two, beside the signs that stand for themselves.
/// A quotient that is written as one that is rounded down, and up.
const FLOOR: u8 = b'f';
const CEIL: u8 = b'c';
const MAX: u8 = b'M';
const MIN: u8 = b'm';

/// The largest power that is written out.
const MOST_POWER: u32 = 8;

/// Arithmetic as it was written.
#[derive(Clone)]
enum Tree {
    Int(i64),
    Name(String),
    Op(u8, Box<(Tree, Tree)>),
}

impl Tree {
    /// The names in it that are not defined, as often as they occur; whether sums and products alone lead to them.
    fn names(&self, defined: &FxHashSet<String>, open: &mut Vec<String>) -> bool {
        match self {
            Tree::Int(_) => true,
            Tree::Name(name) => {
                if !defined.contains(name) {
                    open.push(name.clone());
                }
                true
            }
            Tree::Op(op, sides) => {
                let before = open.len();
                let linear = sides.0.names(defined, open) & sides.1.names(defined, open);
                linear && (open.len() == before || matches!(op, b'+' | b'-' | b'*'))
            }
        }
    }
}

impl Tree {
    /// Whether a quotient stands in it that may be no whole number.
    fn parts(&self) -> bool {
        match self {
            Tree::Int(_) | Tree::Name(_) => false,
            Tree::Op(op, sides) => *op == b'/' || sides.0.parts() || sides.1.parts(),
        }
    }

    /// Whether rounding its one quotient down rounds the whole down: whole numbers are added to it or taken from it.
    fn rounds_as_a_whole(&self) -> bool {
        match self {
            Tree::Op(b'/', sides) => !sides.0.parts() && !sides.1.parts(),
            Tree::Op(b'+', sides) => match (sides.0.parts(), sides.1.parts()) {
                (true, false) => sides.0.rounds_as_a_whole(),
                (false, true) => sides.1.rounds_as_a_whole(),
                (some, _) => !some,
            },
            Tree::Op(b'-', sides) if !sides.1.parts() => sides.0.rounds_as_a_whole(),
            tree => !tree.parts(),
        }
    }
}

/// A reader of `+ - * / // % **`, `floor`, `ceil`, `max` and `min` as exporters write them, parentheses, integers and names.
struct Arithmetic<'a> {
    rest: &'a str,
    depth: u32,
}

impl<'a> Arithmetic<'a> {
    /// The whole text, or nothing where it is no arithmetic.
    fn read(text: &'a str) -> Option<Tree> {
        // A tree is as deep as its text is long, and nobody writes a size that long.
        if text.len() > 256 {
            return None;
        }
        let mut reader = Arithmetic { rest: text, depth: 0 };
        let tree = reader.sum()?;
        reader.skip();
        reader.rest.is_empty().then_some(tree)
    }

    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, among: &[u8]) -> Option<u8> {
        self.skip();
        let c = *self.rest.as_bytes().first()?;
        if !among.contains(&c) {
            return None;
        }
        self.rest = &self.rest[1..];
        if c == b'/' && self.rest.starts_with('/') {
            self.rest = &self.rest[1..];
            return Some(FLOOR);
        }
        Some(c)
    }

    fn sum(&mut self) -> Option<Tree> {
        let mut left = self.product()?;
        while let Some(op) = self.take(b"+-") {
            left = Tree::Op(op, Box::new((left, self.product()?)));
        }
        Some(left)
    }

    fn product(&mut self) -> Option<Tree> {
        let mut left = self.power()?;
        while let Some(op) = self.take(b"*/%") {
            let right = self.power()?;
            // What divides by 0 is no size.
            if op != b'*' && matches!(right, Tree::Int(0)) {
                return None;
            }
            left = Tree::Op(op, Box::new((left, right)));
        }
        Some(left)
    }

    fn power(&mut self) -> Option<Tree> {
        let base = self.atom()?;
        self.skip();
        let Some(rest) = self.rest.strip_prefix("**").or_else(|| self.rest.strip_prefix('^'))
        else {
            return Some(base);
        };
        self.rest = rest;
        let Tree::Int(times) = self.atom()? else { return None };
        let times = u32::try_from(times).ok().filter(|t| (1..=MOST_POWER).contains(t))?;
        let product = |all, _| Tree::Op(b'*', Box::new((all, base.clone())));
        Some((1..times).fold(base.clone(), product))
    }

    /// A function by that name, whose arguments come next; nothing where it is another.
    fn function(&mut self, name: &str) -> Option<Tree> {
        self.take(b"(")?;
        self.depth += 1;
        if self.depth > 32 {
            return None;
        }
        let first = self.sum()?;
        let tree = match (name, first) {
            // Quotients are rounded down as they are; a sum of quotients is not that of rounded ones.
            ("floor", tree) if tree.rounds_as_a_whole() => tree,
            ("ceil" | "ceiling", Tree::Op(b'/', sides)) if !sides.0.parts() && !sides.1.parts() => {
                Tree::Op(CEIL, sides)
            }
            ("ceil" | "ceiling", tree) if !tree.parts() => tree,
            ("max" | "min", first) => {
                let op = if name == "max" { MAX } else { MIN };
                let mut tree = first;
                while self.take(b",").is_some() {
                    tree = Tree::Op(op, Box::new((tree, self.sum()?)));
                }
                tree
            }
            _ => return None,
        };
        self.take(b")")?;
        self.depth -= 1;
        Some(tree)
    }

    fn atom(&mut self) -> Option<Tree> {
        if self.take(b"(").is_some() {
            self.depth += 1;
            // Nobody writes a size that deep; it is a name then.
            if self.depth > 32 {
                return None;
            }
            let inner = self.sum()?;
            self.take(b")")?;
            self.depth -= 1;
            return Some(inner);
        }
        self.skip();
        let word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let end = self.rest.find(|c| !word(c)).unwrap_or(self.rest.len());
        let (token, rest) = self.rest.split_at(end);
        self.rest = rest;
        let first = token.chars().next()?;
        if first.is_ascii_digit() {
            token.parse().ok().map(Tree::Int)
        } else if self.rest.trim_start().starts_with('(') {
            self.function(&token.to_ascii_lowercase())
        } else {
            Some(Tree::Name(token.into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_is_read_and_other_text_is_a_name() {
        let mut func = Function::empty();
        let mut symbols = Symbols::default();
        let mut text = |t: &str| {
            let sym = symbols.term(&mut func, t);
            func.syms.display(sym).to_string()
        };
        assert_eq!(text("2*seq"), "seq * 2");
        assert_eq!(text("past + seq // 2"), "past + seq // 2");
        assert_eq!(text("(a+b)*2 - b"), "a * 2 + b");
        assert_eq!(text("floor(n/2)"), "n // 2");
        assert_eq!(text("ceil((n + 1)/2)"), text("(n + 2) // 2"));
        assert_eq!(text("floor(a/2 + b/2)"), "floor_a_2___b_2_");
        assert_eq!(text("floor(1 + n/2 - a)"), text("n // 2 + 1 - a"));
        assert_eq!(text("floor(5 - n/2)"), "floor_5___n_2_");
        assert_eq!(text("floor(n/2*3)"), "floor_n_2_3_");
        assert_eq!(text("floor(n//2*3)"), text("n // 2 * 3"));
        assert_eq!(text("ceil(n//2)"), "n // 2");
        assert_eq!(text("ceil(n/(m/2))"), "ceil_n__m_2__");
        assert_eq!(text("Max(n, 4)"), "T.max(n, 4)");
        assert_eq!(text("min(n, m, 4)"), "T.min(T.min(m, n), 4)");
        assert_eq!(text("n**2 + n^1"), "n * n + n");
        assert_eq!(text("n**k"), "n__k");
        assert_eq!(text("sqrt(n)"), "sqrt_n_");
        assert_eq!(text("batch size"), "batch_size");
        assert_eq!(text("2*"), "d2_");
        assert_eq!(text("unk__12"), "unk__12");
        assert_eq!(text("n // 0"), "n____0");
        assert_eq!(text(&"(".repeat(100)), "_".repeat(60));
        assert_eq!(text(&"a+".repeat(100_000)).len(), 60);
    }

    #[test]
    fn arithmetic_that_defines_nothing_is_a_name() {
        let mut func = Function::empty();
        let mut symbols = Symbols::default();
        symbols.settle(&["c+d", "a+1", "a+b", "e*e", "f//2", "a*b"]);
        let mut text = |t: &str| {
            let sym = symbols.term(&mut func, t);
            func.syms.display(sym).to_string()
        };
        assert_eq!(text("a+b"), "a + b");
        assert_eq!(text("a*b"), "a * b");
        assert_eq!(text("c+d"), "c_d");
        assert_eq!(text("e*e"), "e_e");
        assert_eq!(text("f//2"), "f__2");
    }

    #[test]
    fn dims_come_out_for_sizes() {
        let mut sizes = |name: &str| if name == "n" { Some(7) } else { None };
        assert_eq!(evaluate_dim("n * 2 + 1", &mut sizes), Some(15));
        assert_eq!(evaluate_dim("(n - 1) // 4 + n % 4", &mut sizes), Some(4));
        for none in ["m", "n // 0", "n * 9223372036854775807", "T.min(n, 2)", ""] {
            assert_eq!(evaluate_dim(none, &mut sizes), None, "{none}");
        }
    }
}
