//! Describes the origin of a size in error messages about mismatching sizes.

use pliant_sym::{Sym, SymArena, SymVar};

use crate::AttrValue;
use crate::relax::Function;

/// The function attribute that lists symbols for quotients of other symbols: quotient, size and
/// divisor of each, in sequence.
pub const DIVISIBLE: &str = "divisible";

/// User symbols that are multiples of program symbols, because the user has declared divisors.
#[derive(Clone, Debug, Default)]
pub struct Wholes(Vec<(String, String, String)>);

/// Replaces `part * by` by `whole`, and `part * (by * k)` by `whole * k`, in a term. They must be
/// separate operands: not the suffix of a longer name, and not part of a divisor.
fn with_whole(term: &str, (part, whole, by): &(String, String, String)) -> String {
    let Some(by) = by.parse::<i64>().ok().filter(|&by| by > 0) else { return term.to_owned() };
    let of_name = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let (mut shown, mut rest) = (String::with_capacity(term.len()), term);
    while let Some(at) = rest.find(part.as_str()) {
        let (before, found) = rest.split_at(at);
        let (itself, behind) = found.split_at(part.len());
        shown.push_str(before);
        let left = shown.trim_end();
        let apart = !shown.ends_with(of_name) && !left.ends_with('/') && !left.ends_with('%');
        let number = behind.strip_prefix(" * ").unwrap_or("");
        let (digits, after) =
            number.split_at(number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len()));
        let times = digits.parse::<i64>().ok().filter(|times| times % by == 0 && *times > 0);
        rest = match times.filter(|_| apart && !after.starts_with(of_name)) {
            Some(times) => {
                shown.push_str(whole);
                if times != by {
                    shown.push_str(&format!(" * {}", times / by));
                }
                after
            }
            None => {
                shown.push_str(itself);
                behind
            }
        };
    }
    shown.push_str(rest);
    shown
}

impl Wholes {
    /// Those of a function.
    pub fn of(func: &Function) -> Wholes {
        let Some(AttrValue::List(all)) = func.attrs.get(DIVISIBLE) else {
            return Wholes::default();
        };
        let texts: Vec<String> = all.iter().filter_map(|a| a.as_str().map(str::to_owned)).collect();
        Wholes::new(&texts)
    }

    /// Creates them from quotient, size and divisor of each, in sequence.
    pub fn new(texts: &[String]) -> Wholes {
        let triple = |t: &[String]| (t[0].clone(), t[1].clone(), t[2].clone());
        Wholes(texts.chunks_exact(3).map(triple).collect())
    }

    /// The text of a term, expressed by user symbols.
    pub fn shown(&self, term: &str) -> String {
        self.0.iter().fold(term.to_owned(), |text, whole| with_whole(&text, whole))
    }

    fn why(&self, part: &str) -> Option<String> {
        let (_, whole, by) = self.0.iter().find(|w| w.0 == part)?;
        Some(format!("divisible: {by} divides {whole}, and this is the multiple below"))
    }
}

/// Where the symbols of `term`, which the size at `place` must equal, got their values:
/// `'x' dim 0 and 'y' dim 1`.
///
/// If this size itself defines a symbol, it is listed last, because the message reports that it
/// does not fit.
pub fn told<'o>(
    syms: &SymArena,
    term: Sym,
    place: &str,
    wholes: &Wholes,
    origin: impl Fn(SymVar) -> Option<&'o str>,
) -> Option<String> {
    let mut told: Vec<String> = Vec::new();
    let mut own = None;
    for var in syms.free_vars(term) {
        let name = syms.name(var);
        match origin(var) {
            Some(from) if from == place => {
                own = wholes.why(name).or_else(|| Some(format!("itself: no {name} fits")));
            }
            Some(from) if !told.iter().any(|t| t == from) => told.push(from.to_string()),
            _ => {}
        }
    }
    told.extend(own);
    (!told.is_empty()).then(|| told.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wholes_stand_for_their_parts_alone() {
        let wholes = Wholes::new(&["n_over_4", "n", "4"].map(str::to_owned));
        for (term, shown) in [
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
            assert_eq!(wholes.shown(term), shown);
        }
    }
}
