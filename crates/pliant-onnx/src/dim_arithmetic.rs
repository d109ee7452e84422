//! Parses and evaluates arithmetic in `dim_param` texts: `+ - * / // % **`, `floor`, `ceil`, `max` and `min` over names and
//! integers.

use rustc_hash::FxHashSet;

/// Evaluates the text of a dim, such as `2*seq + 1`. `size` returns the value of a name and is
/// called for every name in the text. Returns `None` if a name has no value, the text is not
/// arithmetic, or the result is not an integer.
pub fn evaluate_dim(text: &str, size: &mut dyn FnMut(&str) -> Option<i64>) -> Option<i64> {
    evaluate(&DimParser::parse(text)?, size)
}

fn evaluate(tree: &DimExpr, size: &mut dyn FnMut(&str) -> Option<i64>) -> Option<i64> {
    let (op, a, b) = match tree {
        DimExpr::Int(v) => return Some(*v),
        DimExpr::Name(name) => return size(name),
        DimExpr::Op(op, operands) => {
            (*op, evaluate(&operands.0, size), evaluate(&operands.1, size))
        }
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

// Operator codes of functions with two arguments. Other operators are represented by their characters.

/// The code, in the syntax tree of a dim text, of the operator for a quotient rounded down: `floor(a / b)` or `a // b`.
pub(crate) const FLOOR: u8 = b'f';
/// The code, in the syntax tree of a dim text, of the operator for a quotient rounded up: `ceil(a / b)`.
pub(crate) const CEIL: u8 = b'c';
pub(crate) const MAX: u8 = b'M';
pub(crate) const MIN: u8 = b'm';

/// Maximum exponent of a power in a dim text. Such a power is expanded to a product.
const MAX_EXPONENT: u32 = 8;
/// Maximum number of nodes of the syntax tree of a dim text after a power is expanded, and of summands after a product is expanded.
/// Without this limit, nested powers and products of sums would grow exponentially with the length of the text.
const MAX_NODES: usize = 256;

/// The syntax tree of a dim text that is arithmetic.
#[derive(Clone)]
pub(crate) enum DimExpr {
    Int(i64),
    Name(String),
    Op(u8, Box<(DimExpr, DimExpr)>),
}

impl DimExpr {
    /// Appends to `undefined` every occurrence of a name that is not in `defined`. Returns whether these names occur only in sums
    /// and products.
    pub fn undefined_names(
        &self,
        defined: &FxHashSet<String>,
        undefined: &mut Vec<String>,
    ) -> bool {
        match self {
            DimExpr::Int(_) => true,
            DimExpr::Name(name) => {
                if !defined.contains(name) {
                    undefined.push(name.clone());
                }
                true
            }
            DimExpr::Op(op, operands) => {
                let before = undefined.len();
                let linear = operands.0.undefined_names(defined, undefined)
                    & operands.1.undefined_names(defined, undefined);
                linear && (undefined.len() == before || matches!(op, b'+' | b'-' | b'*'))
            }
        }
    }
}

impl DimExpr {
    /// The number of nodes of the syntax tree.
    fn node_count(&self) -> usize {
        match self {
            DimExpr::Int(_) | DimExpr::Name(_) => 1,
            DimExpr::Op(_, operands) => 1 + operands.0.node_count() + operands.1.node_count(),
        }
    }

    /// An upper bound of the number of summands of this dim expression after all its products are expanded.
    fn max_summands(&self) -> usize {
        let DimExpr::Op(op, operands) = self else { return 1 };
        let (a, b) = (operands.0.max_summands(), operands.1.max_summands());
        match op {
            b'*' => a.saturating_mul(b),
            _ => a.saturating_add(b),
        }
    }

    /// Whether the expression contains the operator `/`, whose result may be fractional.
    fn has_division(&self) -> bool {
        match self {
            DimExpr::Int(_) | DimExpr::Name(_) => false,
            DimExpr::Op(op, operands) => {
                *op == b'/' || operands.0.has_division() || operands.1.has_division()
            }
        }
    }

    /// Whether flooring the quotient in the expression gives the same result as flooring the whole expression. This holds if
    /// there is at most one quotient, and only integers are added to it or subtracted from it.
    fn floors_as_whole(&self) -> bool {
        match self {
            DimExpr::Op(b'/', operands) => !operands.0.has_division() && !operands.1.has_division(),
            DimExpr::Op(b'+', operands) => {
                match (operands.0.has_division(), operands.1.has_division()) {
                    (true, false) => operands.0.floors_as_whole(),
                    (false, true) => operands.1.floors_as_whole(),
                    (some, _) => !some,
                }
            }
            DimExpr::Op(b'-', operands) if !operands.1.has_division() => {
                operands.0.floors_as_whole()
            }
            tree => !tree.has_division(),
        }
    }
}

/// A recursive-descent parser of the arithmetic in dim texts that exporters write.
pub(crate) struct DimParser<'a> {
    rest: &'a str,
    depth: u32,
}

impl<'a> DimParser<'a> {
    /// Parses the complete text of a dim. `None` if it is not arithmetic.
    pub fn parse(text: &'a str) -> Option<DimExpr> {
        // Limits the depth of the tree. Real dims are shorter.
        if text.len() > 256 {
            return None;
        }
        let mut reader = DimParser { rest: text, depth: 0 };
        let tree = reader.sum()?;
        reader.skip_whitespace();
        let complete = reader.rest.is_empty() && tree.max_summands() <= MAX_NODES;
        complete.then_some(tree)
    }

    fn skip_whitespace(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take_char(&mut self, among: &[u8]) -> Option<u8> {
        self.skip_whitespace();
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

    fn sum(&mut self) -> Option<DimExpr> {
        let mut left = self.product()?;
        while let Some(op) = self.take_char(b"+-") {
            left = DimExpr::Op(op, Box::new((left, self.product()?)));
        }
        Some(left)
    }

    fn product(&mut self) -> Option<DimExpr> {
        let mut left = self.power()?;
        while let Some(op) = self.take_char(b"*/%") {
            let right = self.power()?;
            // Division by 0 has no result.
            if op != b'*' && matches!(right, DimExpr::Int(0)) {
                return None;
            }
            left = DimExpr::Op(op, Box::new((left, right)));
        }
        Some(left)
    }

    fn power(&mut self) -> Option<DimExpr> {
        let base = self.atom()?;
        self.skip_whitespace();
        let Some(rest) = self.rest.strip_prefix("**").or_else(|| self.rest.strip_prefix('^'))
        else {
            return Some(base);
        };
        self.rest = rest;
        let DimExpr::Int(times) = self.atom()? else { return None };
        let times = u32::try_from(times).ok().filter(|t| (1..=MAX_EXPONENT).contains(t))?;
        if base.node_count().saturating_mul(times as usize) > MAX_NODES {
            return None;
        }
        let product = |all, _| DimExpr::Op(b'*', Box::new((all, base.clone())));
        Some((1..times).fold(base.clone(), product))
    }

    /// Parses the arguments of the function `name`. `None` if the function is unknown.
    fn function(&mut self, name: &str) -> Option<DimExpr> {
        self.take_char(b"(")?;
        self.depth += 1;
        if self.depth > 32 {
            return None;
        }
        let first = self.sum()?;
        let tree = match (name, first) {
            // A quotient is rounded down by default. Inside `floor`, that is only correct if the expression rounds as a whole.
            ("floor", tree) if tree.floors_as_whole() => tree,
            ("ceil" | "ceiling", DimExpr::Op(b'/', operands))
                if !operands.0.has_division() && !operands.1.has_division() =>
            {
                DimExpr::Op(CEIL, operands)
            }
            ("ceil" | "ceiling", tree) if !tree.has_division() => tree,
            ("max" | "min", first) => {
                let op = if name == "max" { MAX } else { MIN };
                let mut tree = first;
                while self.take_char(b",").is_some() {
                    tree = DimExpr::Op(op, Box::new((tree, self.sum()?)));
                }
                tree
            }
            _ => return None,
        };
        self.take_char(b")")?;
        self.depth -= 1;
        Some(tree)
    }

    fn atom(&mut self) -> Option<DimExpr> {
        if self.take_char(b"(").is_some() {
            self.depth += 1;
            // Text that is nested more deeply is treated as a name.
            if self.depth > 32 {
                return None;
            }
            let inner = self.sum()?;
            self.take_char(b")")?;
            self.depth -= 1;
            return Some(inner);
        }
        self.skip_whitespace();
        let word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let end = self.rest.find(|c| !word(c)).unwrap_or(self.rest.len());
        let (token, rest) = self.rest.split_at(end);
        self.rest = rest;
        let first = token.chars().next()?;
        if first.is_ascii_digit() {
            token.parse().ok().map(DimExpr::Int)
        } else if self.rest.trim_start().starts_with('(') {
            self.function(&token.to_ascii_lowercase())
        } else {
            Some(DimExpr::Name(token.into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evaluates_dim_texts_for_given_sizes() {
        let mut sizes = |name: &str| if name == "n" { Some(7) } else { None };
        assert_eq!(evaluate_dim("n * 2 + 1", &mut sizes), Some(15));
        assert_eq!(evaluate_dim("(n - 1) // 4 + n % 4", &mut sizes), Some(4));
        for none in ["m", "n // 0", "n * 9223372036854775807", "T.min(n, 2)", ""] {
            assert_eq!(evaluate_dim(none, &mut sizes), None, "{none}");
        }
    }
}
