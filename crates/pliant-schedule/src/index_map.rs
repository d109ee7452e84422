//! [`IndexMap`]: a map from the indices of a layout to those of another layout, and its analysis.
//!
//! The analysis splits the inputs of a map into *digits*. The digits of an input `i` are `i // 4` and `i % 4`, for example. An
//! output is a sum of digits with factors, such as `(i // 4) * 8 + j`, a number in a mixed radix. A map is one-to-one if each digit
//! of each input occurs once, and if each factor is the number of values of the smaller digits.

use pliant_ir::tir::visit::TirImporter;
use pliant_ir::tir::{BinOp, Expr, ExprData, PrimFunc, Ty, Var};
use pliant_tir::index_arithmetic::{ceil_div, exact_quotient, is_multiple, product, sum};
use pliant_tir::statement_traversal::{substitute_expr, uses_any};
use rustc_hash::FxHashMap;

use crate::error::Step;

/// A map from indices to indices, such as `(i, j) -> (i // 4, j, i % 4)`. Other variables than its inputs stand for variables of
/// the loop function that have the same names, usually sizes.
#[derive(Clone, Debug)]
pub struct IndexMap {
    /// The function whose arena contains the expressions.
    arena: PrimFunc,
    inputs: Vec<Var>,
    outputs: Vec<Expr>,
}

impl IndexMap {
    /// Creates a map from its input variables and its outputs, which belong to `arena`.
    pub fn new(arena: PrimFunc, inputs: Vec<Var>, outputs: Vec<Expr>) -> IndexMap {
        IndexMap { arena, inputs, outputs }
    }

    /// Creates a map with `rank` inputs. The callback computes the outputs from the inputs.
    pub fn from_fn(
        rank: usize,
        outputs: impl FnOnce(&mut PrimFunc, &[Expr]) -> Vec<Expr>,
    ) -> IndexMap {
        let mut arena = PrimFunc::new();
        let inputs: Vec<Var> = (0..rank).map(|i| arena.size_var(format!("i{i}"))).collect();
        let values: Vec<Expr> = inputs.iter().map(|&v| arena.var_expr(v)).collect();
        let outputs = outputs(&mut arena, &values);
        IndexMap { arena, inputs, outputs }
    }

    /// Copies the map into a function, where it applies to indices with these extents, and analyzes it there. `names` are the names
    /// of the inputs in error messages.
    ///
    /// # Errors
    /// If the number of inputs is wrong, or the map is not one-to-one, or is no map that the analysis supports.
    pub(crate) fn bind(
        &self,
        f: &mut PrimFunc,
        extents: &[Expr],
        names: &[String],
    ) -> Step<BoundMap> {
        if self.inputs.len() != extents.len() {
            return Err(format!(
                "the index map takes {} indices, but there are {}: {}",
                self.inputs.len(),
                extents.len(),
                names.join(", ")
            ));
        }
        let known: Vec<Var> = f.var_ids().collect();
        let mut importer = TirImporter::new(&self.arena, f);
        let inputs: Vec<Var> = self.inputs.iter().map(|&v| importer.define(v)).collect();
        for v in self.arena.var_ids().filter(|v| !self.inputs.contains(v)) {
            let name = &self.arena.var(v).name;
            let same = known.iter().copied().find(|&k| importer.dst.var(k).name == *name);
            let Some(same) = same else {
                return Err(format!(
                    "the index map uses the variable '{name}', but the function has no variable of this name"
                ));
            };
            let value = importer.dst.var_expr(same);
            importer.vars.insert(v, value);
        }
        let outputs: Vec<Expr> = self.outputs.iter().map(|&e| importer.expr(e)).collect();
        BoundMap::of(f, &inputs, extents, names, &outputs)
    }
}

/// A part of an input: `(input // divisor) % modulus`, without the modulus if it is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Digit {
    input: usize,
    divisor: Expr,
    modulus: Option<Expr>,
}

/// A digit, multiplied by a factor.
#[derive(Clone, Copy, Debug)]
struct Term {
    digit: Digit,
    factor: Expr,
}

/// A digit and its place in an output.
#[derive(Clone, Copy, Debug)]
struct PlacedDigit {
    digit: Digit,
    /// The position of the output that contains the digit.
    output: usize,
    /// The factor of the digit in the output.
    factor: Expr,
    /// The number of values of the digit; `None` if the digit is the outermost of its output.
    count: Option<Expr>,
}

/// A one-to-one map in the arena of a function, and its properties.
pub(crate) struct BoundMap {
    inputs: Vec<Var>,
    outputs: Vec<Expr>,
    /// The number of values of each output.
    pub extents: Vec<Expr>,
    /// For each output, the inputs on which it depends.
    pub sources: Vec<Vec<usize>>,
    /// For each input, its digits.
    digits: Vec<Vec<PlacedDigit>>,
    /// The inputs whose digits have more combinations than the input has values, so that the new layout has padding.
    pub padded: Vec<usize>,
    input_extents: Vec<Expr>,
}

impl BoundMap {
    /// Analyzes a map of the variables `inputs`, which have the values from 0 to `extents`, to `outputs`. `names` are the names of
    /// the inputs in error messages.
    ///
    /// # Errors
    /// If the map is not one-to-one, or is no map that the analysis supports.
    pub fn of(
        f: &mut PrimFunc,
        inputs: &[Var],
        extents: &[Expr],
        names: &[String],
        outputs: &[Expr],
    ) -> Step<BoundMap> {
        Parser { f, inputs, extents, names }.analyze(outputs)
    }

    /// Returns the new indices for the indices `values`.
    pub fn apply(&self, f: &mut PrimFunc, values: &[Expr]) -> Vec<Expr> {
        let values: Vec<Expr> = values.iter().map(|&e| f.cast(e, Ty::I64)).collect();
        let values: FxHashMap<Var, Expr> = self.inputs.iter().copied().zip(values).collect();
        self.outputs.iter().map(|&e| substitute_expr(f, e, &values)).collect()
    }

    /// Returns the old indices for the new indices `values`.
    pub fn inverse(&self, f: &mut PrimFunc, values: &[Expr]) -> Vec<Expr> {
        let mut all = Vec::new();
        for digits in &self.digits {
            let mut total = f.int(0);
            for &PlacedDigit { digit, output, factor, count } in digits {
                let mut value = values[output];
                if f.as_int(factor) != Some(1) {
                    value = f.binary(BinOp::FloorDiv, value, factor);
                }
                if let Some(count) = count {
                    value = f.binary(BinOp::FloorMod, value, count);
                }
                let part = product(f, value, digit.divisor);
                total = sum(f, total, part);
            }
            all.push(total);
        }
        all
    }

    /// Returns the condition that the new indices `values` are padding; `None` if there is no padding.
    pub fn is_padding(&self, f: &mut PrimFunc, values: &[Expr]) -> Option<Expr> {
        let old = self.inverse(f, values);
        let conditions: Vec<Expr> = self
            .padded
            .iter()
            .map(|&i| f.binary(BinOp::Ge, old[i], self.input_extents[i]))
            .collect();
        conditions.into_iter().reduce(|a, b| f.binary(BinOp::Or, a, b))
    }
}

/// Analyzes the outputs of a map.
struct Parser<'a> {
    f: &'a mut PrimFunc,
    inputs: &'a [Var],
    extents: &'a [Expr],
    names: &'a [String],
}

impl Parser<'_> {
    fn analyze(mut self, outputs: &[Expr]) -> Step<BoundMap> {
        let mut map = BoundMap {
            inputs: self.inputs.to_vec(),
            outputs: outputs.to_vec(),
            extents: Vec::new(),
            sources: Vec::new(),
            digits: vec![Vec::new(); self.inputs.len()],
            padded: Vec::new(),
            input_extents: self.extents.to_vec(),
        };
        for (k, &e) in outputs.iter().enumerate() {
            let terms = self.terms(e)?;
            let (terms, extent) = self.sorted_terms(terms, e)?;
            map.extents.push(extent);
            map.sources.push(terms.iter().map(|t| t.digit.input).collect());
            for (i, term) in terms.iter().enumerate() {
                let is_outermost = i + 1 == terms.len();
                let count = (!is_outermost).then(|| self.count(&term.digit));
                let Term { digit, factor } = *term;
                map.digits[digit.input].push(PlacedDigit { digit, output: k, factor, count });
            }
        }
        for input in 0..self.inputs.len() {
            if !self.sort_digits(input, &mut map.digits[input])? {
                map.padded.push(input);
            }
        }
        Ok(map)
    }

    /// The error for an output that is no sum of digits.
    fn unsupported(&self, e: Expr) -> String {
        format!(
            "the output {} of the index map is not affine: an output must be a sum of multiples of the inputs and of their \
             quotients and remainders by positive numbers or sizes",
            self.text(e)
        )
    }

    fn text(&self, e: Expr) -> String {
        format!("'{}'", pliant_ir::print::tir_expr_text(self.f, e))
    }

    /// Returns an expression as a sum of digits.
    fn terms(&mut self, e: Expr) -> Step<Vec<Term>> {
        if let Some(0) = self.f.as_int(e) {
            return Ok(Vec::new());
        }
        let inputs = self.inputs;
        let is_fixed = |f: &PrimFunc, e: Expr| !uses_any(f, e, &|v| inputs.contains(&v));
        match *self.f.expr(e) {
            ExprData::Var(v) if !is_fixed(self.f, e) => {
                let one = self.f.int(1);
                let input = inputs.iter().position(|&i| i == v).unwrap_or(0);
                let digit = Digit { input, divisor: one, modulus: None };
                Ok(vec![Term { digit, factor: one }])
            }
            ExprData::Binary(BinOp::Add, a, b) => {
                let mut terms = self.terms(a)?;
                terms.extend(self.terms(b)?);
                Ok(terms)
            }
            ExprData::Binary(BinOp::Mul, a, b) => {
                let (value, factor) = match (is_fixed(self.f, a), is_fixed(self.f, b)) {
                    (_, true) => (a, b),
                    (true, _) => (b, a),
                    _ => return Err(self.unsupported(e)),
                };
                let mut terms = self.terms(value)?;
                for term in &mut terms {
                    term.factor = product(self.f, term.factor, factor);
                }
                Ok(terms)
            }
            ExprData::Binary(op @ (BinOp::FloorDiv | BinOp::FloorMod), a, divisor)
                if is_fixed(self.f, divisor) && self.f.as_int(divisor).is_none_or(|d| d > 0) =>
            {
                let terms = self.terms(a)?;
                let split = self.divide(terms, divisor).ok_or_else(|| self.unsupported(e))?;
                Ok(if op == BinOp::FloorDiv { split.0 } else { split.1 })
            }
            _ => Err(self.unsupported(e)),
        }
    }

    /// Returns the quotient and the remainder of a sum of digits by a divisor. `None` if they are no sums of digits.
    fn divide(&mut self, terms: Vec<Term>, divisor: Expr) -> Option<(Vec<Term>, Vec<Term>)> {
        let (mut quotient, mut remainder) = (Vec::new(), Vec::new());
        for term in terms {
            match exact_quotient(self.f, term.factor, divisor) {
                Some(factor) => quotient.push(Term { factor, ..term }),
                None => remainder.push(term),
            }
        }
        // Only the largest of the other digits may exceed the divisor. It is split in two.
        let one = self.f.int(1);
        let (terms, extent) = self.mixed_radix(&remainder)?;
        let Some((last, lower)) = terms.split_last() else {
            return Some((quotient, Vec::new()));
        };
        let fits = self.f.as_int(extent).zip(self.f.as_int(divisor)).is_some_and(|(e, d)| e <= d);
        if fits || extent == divisor {
            return Some((quotient, terms));
        }
        let at = exact_quotient(self.f, divisor, last.factor)?;
        let Digit { input, divisor: start, modulus } = last.digit;
        let high = match modulus {
            Some(modulus) => Some(exact_quotient(self.f, modulus, at)?),
            None => None,
        };
        let high_start = product(self.f, start, at);
        let high = Digit { input, divisor: high_start, modulus: high };
        quotient.push(Term { digit: high, factor: one });
        let low = Digit { input, divisor: start, modulus: Some(at) };
        let mut remainder = lower.to_vec();
        remainder.push(Term { digit: low, factor: last.factor });
        Some((quotient, remainder))
    }

    /// The number of values of a digit.
    fn count(&mut self, digit: &Digit) -> Expr {
        if let Some(modulus) = digit.modulus {
            return modulus;
        }
        let extent = self.extents[digit.input];
        match self.f.as_int(digit.divisor) {
            Some(divisor) => ceil_div(self.f, extent, divisor),
            None => exact_quotient(self.f, extent, digit.divisor).unwrap_or(extent),
        }
    }

    /// Sorts the terms of a number in a mixed radix, smallest factor first. Returns them with the number of values. `None` if the
    /// factors are not the numbers of values of the smaller terms.
    fn mixed_radix(&mut self, terms: &[Term]) -> Option<(Vec<Term>, Expr)> {
        let (mut rest, mut sorted) = (terms.to_vec(), Vec::new());
        let mut extent = self.f.int(1);
        while !rest.is_empty() {
            // A digit with one value does not change the extent, so it precedes others with the same factor.
            let fits = |p: &mut Self, t: &Term| {
                t.factor == extent && {
                    let count = p.count(&t.digit);
                    p.f.as_int(count) == Some(1)
                }
            };
            let unit = rest.iter().position(|t| fits(self, t));
            let next = unit.or_else(|| rest.iter().position(|t| t.factor == extent))?;
            let term = rest.remove(next);
            let count = self.count(&term.digit);
            extent = product(self.f, extent, count);
            sorted.push(term);
        }
        Some((sorted, extent))
    }

    fn sorted_terms(&mut self, terms: Vec<Term>, output: Expr) -> Step<(Vec<Term>, Expr)> {
        self.mixed_radix(&terms).ok_or_else(|| {
            format!(
                "the index map is not bijective: its output {} skips or repeats values, because a factor is not the number of \
                 values of the terms with smaller factors",
                self.text(output)
            )
        })
    }

    /// Sorts the digits of an input, smallest divisor first. Returns whether they have exactly as many combinations as the input
    /// has values. Fails if a digit is missing or occurs twice.
    fn sort_digits(&mut self, input: usize, digits: &mut Vec<PlacedDigit>) -> Step<bool> {
        let (extent, name) = (self.extents[input], &self.names[input]);
        let lost = || {
            format!(
                "the index map is not bijective: the outputs do not determine the index '{name}', because a part of it is missing \
                 or occurs twice"
            )
        };
        let mut sorted = Vec::new();
        let mut covered = self.f.int(1);
        let mut is_open = true;
        while !digits.is_empty() {
            let next = digits.iter().position(|d| d.digit.divisor == covered);
            let digit = digits.remove(next.filter(|_| is_open).ok_or_else(lost)?);
            match digit.digit.modulus {
                Some(modulus) => covered = product(self.f, covered, modulus),
                None => is_open = false,
            }
            sorted.push(digit);
        }
        *digits = sorted;
        if is_open {
            // All digits have a modulus, so they only represent a limited range.
            let known = self.f.as_int(extent).zip(self.f.as_int(covered));
            return match known {
                Some((extent, covered)) if extent <= covered => Ok(extent == covered),
                _ if extent == covered => Ok(true),
                _ => Err(lost()),
            };
        }
        match self.f.as_int(covered) {
            Some(divisor) => Ok(is_multiple(self.f, extent, divisor)),
            None if exact_quotient(self.f, extent, covered).is_some() => Ok(true),
            None => Err(format!(
                "the index map divides the index '{name}' by the size {}, but the extent {} is not a product with this size",
                self.text(covered),
                self.text(extent)
            )),
        }
    }
}
