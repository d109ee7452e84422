//! Where the value of a size comes from, in the words of the messages about sizes that do not fit.

use pliant_sym::{Sym, SymArena, SymVar};

use crate::AttrValue;
use crate::relax::Function;

/// The function attribute that says which symbols are parts of others: part, whole and divisor, one after the other.
pub const DIVISIBLE: &str = "divisible";

/// Symbols of users that are so many times a symbol of the program, because users said what divides them.
#[derive(Clone, Debug, Default)]
pub struct Wholes(Vec<(String, String, String)>);

impl Wholes {
    /// Those of a function.
    pub fn of(func: &Function) -> Wholes {
        let Some(AttrValue::List(all)) = func.attrs.get(DIVISIBLE) else {
            return Wholes::default();
        };
        let texts: Vec<String> = all.iter().filter_map(|a| a.as_str().map(str::to_owned)).collect();
        let triple = |t: &[String]| (t[0].clone(), t[1].clone(), t[2].clone());
        Wholes(texts.chunks_exact(3).map(triple).collect())
    }

    /// The text of a term with the users' symbols.
    pub fn shown(&self, term: &str) -> String {
        let whole = |text: String, (part, whole, by): &(String, String, String)| {
            text.replace(&format!("{part} * {by}"), whole)
        };
        self.0.iter().fold(term.to_owned(), whole)
    }

    fn why(&self, part: &str) -> Option<String> {
        let (_, whole, by) = self.0.iter().find(|w| w.0 == part)?;
        Some(format!("divisible: {by} divides {whole}, and this is the multiple below"))
    }
}

/// Where the symbols of `term`, which the size at `place` must equal, got their values: `'x' dim 0 and 'y' dim 1`.
///
/// A symbol that this very size defines has the nearest value, and the message is told because that does not fit.
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
