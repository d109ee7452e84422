//! [`DimSymbols`]: the symbolic dims of a model, by the names and the arithmetic in the file.
//!
//! A `dim_param` is free text. `batch`, `2*seq` and `past + seq // 2` are parsed as arithmetic; any other text is a name. The same
//! text denotes the same dim everywhere.

use std::iter::repeat;

use indexmap::IndexMap;
use pliant_ir::relax::Function;
use pliant_ir::relax::size_origins::DivisibleSizes;
use pliant_sym::Sym;
use rustc_hash::FxHashSet;

use crate::dim_arithmetic::{CEIL, DimExpr, DimParser, FLOOR, MAX, MIN};
use crate::import_error::Problem;
use crate::proto::TensorShapeProto;
use crate::proto::tensor_shape_proto::dimension;
use crate::shape_constraint_report::DynamicDim;

/// The symbols of a model, by their names in the file.
#[derive(Debug, Default)]
pub(crate) struct DimSymbols {
    by_name: IndexMap<String, Sym>,
    /// The names that the symbols have in the imported program. They are unique.
    program_names: FxHashSet<String>,
    /// The names of input dims in the model file, and the program names derived from them. Generated names must differ from all of
    /// these.
    file_names: FxHashSet<String>,
    file_program_names: FxHashSet<String>,
    /// The divisors that the user declares for sizes, by the name of the size. They apply when the symbol for the size is
    /// created, at the first occurrence of the name.
    divisible: IndexMap<String, i64>,
    /// For each size with a declared divisor, the program name of the symbol for the quotient, such as `n_over_4` if 4 divides
    /// the size `n`.
    quotients: IndexMap<String, String>,
    /// The arithmetic texts of input dims that contain a symbol which no input dim defines.
    undefined: FxHashSet<String>,
}

impl DimSymbols {
    /// Converts the dims of a declared shape to terms. A dim without a name or value, or with a negative value, becomes a new
    /// symbol, named after `owner` and the axis.
    pub(crate) fn shape_dims(
        &mut self,
        func: &mut Function,
        shape: &TensorShapeProto,
        owner: &str,
    ) -> Vec<Sym> {
        let dims = shape.dim.iter().enumerate();
        dims.map(|(axis, dim)| match &dim.value {
            Some(dimension::Value::DimValue(size)) if *size >= 0 => func.syms.int(*size),
            Some(dimension::Value::DimParam(text)) if has_name(text) => {
                self.parse_dim(func, text.trim())
            }
            _ => self.unnamed_symbol(func, owner, axis),
        })
        .collect()
    }

    /// Declares the divisors of sizes. A size `n` with the divisor 4 is represented as `n_over_4 * 4`, where `n_over_4` is a
    /// symbol.
    ///
    /// # Errors
    /// If a divisor is below 1.
    pub(crate) fn declare_divisors(
        &mut self,
        divisible: &IndexMap<String, i64>,
    ) -> Result<(), Problem> {
        if let Some((name, divisor)) = divisible.iter().find(|(_, divisor)| **divisor < 1) {
            return Err(Problem::invalid(format!(
                "the import option divisible gives '{name}' the divisor {divisor}, but a divisor must be positive"
            )));
        }
        self.divisible = divisible.clone();
        Ok(())
    }

    /// A flat list with three strings for each size with a declared divisor, in the format of [`DivisibleSizes`]: the program
    /// name of the symbol for the quotient, such as `n_over_4`, the name of the size, and the divisor.
    pub(crate) fn divisible_triples(&self) -> Vec<String> {
        let triple = |(name, part): (&String, &String)| {
            [part.clone(), name.clone(), self.divisor(name).to_string()]
        };
        self.quotients.iter().flat_map(triple).collect()
    }

    /// The text of a term in the names that the user knows: if the user declares that 4 divides the size `n`, `n_over_4 * 4`
    /// becomes `n`.
    pub(crate) fn display_text(&self, term: &str) -> String {
        DivisibleSizes::new(&self.divisible_triples()).in_user_symbols(term)
    }

    /// If `program_name` is the symbol for a size divided by its declared divisor, such as `n_over_4`, returns the name of the
    /// size and the divisor, here `n` and 4.
    pub(crate) fn divisible_size(&self, program_name: &str) -> Option<(&str, i64)> {
        let (name, _) = self.quotients.iter().find(|(_, part)| *part == program_name)?;
        Some((name, self.divisor(name)))
    }

    /// The declared divisor of a size; 1 if none is declared.
    fn divisor(&self, name: &str) -> i64 {
        self.divisible.get(name).copied().unwrap_or(1)
    }

    /// Checks that the range that the user declares for a dim contains at least one size.
    ///
    /// # Errors
    /// Describes the empty range.
    pub(crate) fn check_range(&self, dim: &DynamicDim) -> Result<(), String> {
        let Some(max) = dim.max else { return Ok(()) };
        let min = dim.min.unwrap_or(0).max(0);
        let by = dim.name.as_ref().map_or(1, |name| self.divisor(name));
        if max.div_euclid(by).saturating_mul(by) >= min {
            return Ok(());
        }
        Err(match by {
            1 => format!("the range declared for the dim, {min} to {max}, is empty"),
            _ => format!(
                "the range declared for the dim, {min} to {max}, contains no multiple of {by}"
            ),
        })
    }

    /// Reports a divisor that is declared for a name that no dim has.
    pub(crate) fn undeclared_divisible(&self) -> Option<Problem> {
        let name = self.divisible.keys().find(|name| !self.by_name.contains_key(*name))?;
        let known: Vec<&str> = self.by_name.keys().map(String::as_str).collect();
        let problem = Problem::invalid(format!(
            "the import option divisible names the dim '{name}', but no dim of the model has this name"
        ));
        Some(problem.with_help(format!("the named dims of the model are {}", known.join(", "))))
    }

    /// The symbolic term for the size with the given name. A symbol is created if the name is new.
    pub(crate) fn symbol(&mut self, func: &mut Function, name: &str) -> Sym {
        if let Some(&sym) = self.by_name.get(name) {
            return sym;
        }
        let by = self.divisor(name);
        let program_name = self.new_program_name(name, by);
        let var = func.fresh_sym(&program_name);
        if by != 1 {
            self.quotients.insert(name.into(), program_name);
        }
        let part = func.syms.var(var);
        let by = func.syms.int(by);
        let sym = func.syms.mul(part, by);
        self.by_name.insert(name.into(), sym);
        sym
    }

    /// Creates a symbol for a dim without a name. The generated name differs from the names of all other dims.
    pub(crate) fn unnamed_symbol(&mut self, func: &mut Function, owner: &str, axis: usize) -> Sym {
        let mut name = format!("{owner}_{axis}");
        while self.file_names.contains(&name) {
            name.push('_');
        }
        self.symbol(func, &name)
    }

    /// Creates a unique program name for a new symbol.
    fn new_program_name(&mut self, name: &str, divisor: i64) -> String {
        let is_generated = divisor != 1 || !self.file_names.contains(name);
        let mut program_name = quotient_name(name, divisor);
        while self.program_names.contains(&program_name)
            || is_generated && self.file_program_names.contains(&program_name)
        {
            program_name.push('_');
        }
        self.program_names.insert(program_name.clone());
        program_name
    }

    /// Finds out which symbols the texts of the input dims define. `file` contains the texts in the
    /// file, and `user` the texts that the user declares. A plain name defines its symbol. An
    /// arithmetic text defines a symbol if all other symbols in it are defined.
    pub(crate) fn analyze_dims(&mut self, file: &[&str], user: &[&str]) {
        let (mut defined, mut equations) = (FxHashSet::default(), Vec::new());
        for (&text, from_file) in
            file.iter().zip(repeat(true)).chain(user.iter().zip(repeat(false)))
        {
            let mut names = Vec::new();
            match DimParser::parse(text) {
                Some(DimExpr::Name(name)) => {
                    names.push(name.clone());
                    defined.insert(name);
                }
                Some(tree) => {
                    tree.undefined_names(&FxHashSet::default(), &mut names);
                    equations.push((text, tree));
                }
                None => names.push(text.to_owned()),
            }
            // A user may refer to a generated name that a report has shown, so user names may equal generated names.
            if from_file {
                self.file_program_names.extend(names.iter().map(|name| identifier(name)));
                self.file_names.extend(names);
            }
        }
        loop {
            let before = equations.len();
            equations.retain(|(_, tree)| {
                let mut names = Vec::new();
                let linear = tree.undefined_names(&defined, &mut names);
                match names.as_slice() {
                    [] => false,
                    [one] if linear => !defined.insert(one.clone()),
                    _ => true,
                }
            });
            if equations.len() == before {
                break;
            }
        }
        self.undefined = equations.into_iter().map(|(text, _)| text.to_owned()).collect();
    }

    /// Whether a dim text contains symbols that no input dim defines.
    pub(crate) fn is_undefined(&self, text: &str) -> bool {
        self.undefined.contains(text)
    }

    /// Parses a dim text as arithmetic over symbols. A text that is not arithmetic, or contains undefined symbols, is treated as a
    /// name.
    pub(crate) fn parse_dim(&mut self, func: &mut Function, text: &str) -> Sym {
        match DimParser::parse(text).filter(|_| !self.undefined.contains(text)) {
            Some(tree) => self.build_term(func, &tree),
            None => self.symbol(func, text),
        }
    }

    /// Converts the syntax tree of a dim text to a symbolic term.
    fn build_term(&mut self, func: &mut Function, tree: &DimExpr) -> Sym {
        let (op, a, b) = match tree {
            DimExpr::Int(v) => return func.syms.int(*v),
            DimExpr::Name(name) => return self.symbol(func, name),
            DimExpr::Op(op, operands) => {
                let a = self.build_term(func, &operands.0);
                (*op, a, self.build_term(func, &operands.1))
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

/// Whether the text of a dim names a specific dim. The text `?`, which exporters write for any
/// unknown size, does not.
pub(crate) fn has_name(text: &str) -> bool {
    text.chars().any(|c| c.is_alphanumeric() || c == '_')
}

/// The program name of the symbol for the size `name` divided by `divisor`.
fn quotient_name(name: &str, divisor: i64) -> String {
    match divisor {
        1 => identifier(name),
        _ => format!("{}_over_{divisor}", identifier(name)),
    }
}

/// Converts a text to an identifier that is valid in a script.
fn identifier(text: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
    let mut name: String = text.chars().take(60).map(keep).collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        name.insert(0, 'd');
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_arithmetic_and_treats_other_text_as_a_name() {
        let mut func = Function::empty();
        let mut symbols = DimSymbols::default();
        let mut text = |t: &str| {
            let sym = symbols.parse_dim(&mut func, t);
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
        assert_eq!(text("(n**2)**2"), "n * n * n * n");
        assert_eq!(text("((n**8)**8)**8"), "__n__8___8___8");
        assert_eq!(text("(a+b+c+d)**8"), "_a_b_c_d___8");
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
    fn treats_arithmetic_over_undefined_symbols_as_a_name() {
        let mut func = Function::empty();
        let mut symbols = DimSymbols::default();
        symbols.analyze_dims(&["c+d", "a+1", "a+b"], &["e*e", "f//2", "a*b"]);
        let mut text = |t: &str| {
            let sym = symbols.parse_dim(&mut func, t);
            func.syms.display(sym).to_string()
        };
        assert_eq!(text("a+b"), "a + b");
        assert_eq!(text("a*b"), "a * b");
        assert_eq!(text("c+d"), "c_d");
        assert_eq!(text("e*e"), "e_e");
        assert_eq!(text("f//2"), "f__2");
    }
}
