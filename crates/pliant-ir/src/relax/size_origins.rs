//! Describes where the values of symbols come from, for error messages about mismatching sizes.

use pliant_sym::{Sym, SymArena, SymVar};

use crate::AttrValue;
use crate::relax::Function;

/// The name of the function attribute that lists the sizes with a declared divisor. The list is
/// flat and has three strings for each such size: the symbol for the quotient, the symbol for the
/// size, and the divisor.
pub const DIVISIBLE: &str = "divisible";

/// The sizes with a declared divisor. If the user declares that 4 divides `n`, the program represents `n` as `n_over_4 * 4`. This
/// table converts such terms back for messages. Its entries are (quotient symbol, size symbol, divisor).
#[derive(Clone, Debug, Default)]
pub struct DivisibleSizes(Vec<(String, String, String)>);

/// Replaces `quotient * divisor` by `size`, and `quotient * (divisor * k)` by `size * k`, in the text of a term. The quotient must
/// be a whole name and must not directly follow `/` or `%`.
fn replace_quotient(term: &str, (quotient, size, divisor): &(String, String, String)) -> String {
    let Some(divisor) = divisor.parse::<i64>().ok().filter(|&d| d > 0) else {
        return term.to_owned();
    };
    let in_name = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let (mut out, mut rest) = (String::with_capacity(term.len()), term);
    while let Some(start) = rest.find(quotient.as_str()) {
        let (before, from_quotient) = rest.split_at(start);
        let (name, after_name) = from_quotient.split_at(quotient.len());
        out.push_str(before);
        let left = out.trim_end();
        let separate = !out.ends_with(in_name) && !left.ends_with('/') && !left.ends_with('%');
        let number = after_name.strip_prefix(" * ").unwrap_or("");
        let (digits, after) =
            number.split_at(number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len()));
        let factor = digits.parse::<i64>().ok().filter(|f| f % divisor == 0 && *f > 0);
        rest = match factor.filter(|_| separate && !after.starts_with(in_name)) {
            Some(factor) => {
                out.push_str(size);
                if factor != divisor {
                    out.push_str(&format!(" * {}", factor / divisor));
                }
                after
            }
            None => {
                out.push_str(name);
                after_name
            }
        };
    }
    out.push_str(rest);
    out
}

impl DivisibleSizes {
    /// Reads the attribute [`DIVISIBLE`] of a function.
    pub fn of(func: &Function) -> DivisibleSizes {
        let Some(AttrValue::List(all)) = func.attrs.get(DIVISIBLE) else {
            return DivisibleSizes::default();
        };
        let texts: Vec<String> = all.iter().filter_map(|a| a.as_str().map(str::to_owned)).collect();
        DivisibleSizes::new(&texts)
    }

    /// Creates the table from a flat list with three strings for each size: the quotient symbol, such as `n_over_4`, the size
    /// symbol, such as `n`, and the divisor, such as `4`.
    pub fn new(texts: &[String]) -> DivisibleSizes {
        let triple = |t: &[String]| (t[0].clone(), t[1].clone(), t[2].clone());
        DivisibleSizes(texts.chunks_exact(3).map(triple).collect())
    }

    /// Replaces quotient symbols in the text of a term by the size symbols that the user declared: `n_over_4 * 4` becomes `n`.
    pub fn in_user_symbols(&self, term: &str) -> String {
        self.0.iter().fold(term.to_owned(), |text, entry| replace_quotient(&text, entry))
    }

    /// Explains, for an error message, how the value of a quotient symbol (such as `n_over_4` for a size `n` that 4 divides) is
    /// computed. `None` for other symbols.
    fn explain(&self, quotient: &str) -> Option<String> {
        let (_, size, divisor) = self.0.iter().find(|entry| entry.0 == quotient)?;
        Some(format!(
            "the next smaller multiple of {divisor}, because {size} is declared divisible by {divisor}"
        ))
    }
}

/// Describes from which dims the symbols of `term` got their values, as in `'x' dim 0 and 'y' dim 1`. `term` is the size that the
/// dim at `location` must have but does not have. `origin` returns the description of the dim that defines a symbol. The result is
/// `None` if no symbol has a known origin.
///
/// If the dim at `location` itself defines a symbol of the term, this is stated last: no value of the symbol fits, or, for a
/// quotient symbol of `divisible`, how its value is computed.
pub fn describe_origins<'o>(
    syms: &SymArena,
    term: Sym,
    location: &str,
    divisible: &DivisibleSizes,
    origin: impl Fn(SymVar) -> Option<&'o str>,
) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut itself = None;
    for var in syms.free_vars(term) {
        let name = syms.name(var);
        match origin(var) {
            Some(from) if from == location => {
                itself = divisible
                    .explain(name)
                    .or_else(|| Some(format!("this dim itself: no value of {name} matches")));
            }
            Some(from) if !parts.iter().any(|t| t == from) => parts.push(from.to_string()),
            _ => {}
        }
    }
    parts.extend(itself);
    (!parts.is_empty()).then(|| parts.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiples_of_quotients_are_printed_as_user_symbols() {
        let divisible = DivisibleSizes::new(&["n_over_4", "n", "4"].map(str::to_owned));
        for (term, expected) in [
            ("n_over_4 * 4", "n"),
            ("n_over_4 * 40", "n * 10"),
            ("n_over_4 * 4 + m", "n + m"),
            ("m - n_over_4 * 8 // 3", "m - n * 2 // 3"),
            ("xn_over_4 * 4", "xn_over_4 * 4"),
            ("n_over_4_ * 4", "n_over_4_ * 4"),
            ("n_over_4 * 6", "n_over_4 * 6"),
            ("n_over_4 * 4x", "n_over_4 * 4x"),
            ("m // n_over_4 * 4", "m // n_over_4 * 4"),
            ("m // (n_over_4 * 4)", "m // (n)"),
            ("n_over_4 * n_over_4 * 16", "n_over_4 * n * 4"),
        ] {
            assert_eq!(divisible.in_user_symbols(term), expected);
        }
    }
}
