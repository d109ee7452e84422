//! Where the value of a size comes from, in the words of the messages about sizes that do not fit.

use pliant_sym::{Sym, SymArena, SymVar};

/// Where the symbols of `term`, which the size at `place` must equal, got their values: `'x' dim 0 and 'y' dim 1`.
///
/// A symbol that this very size defines has the nearest value, and the message is told because that does not fit.
pub fn told<'o>(
    syms: &SymArena,
    term: Sym,
    place: &str,
    origin: impl Fn(SymVar) -> Option<&'o str>,
) -> Option<String> {
    let mut told: Vec<String> = Vec::new();
    let mut own = None;
    for var in syms.free_vars(term) {
        match origin(var) {
            Some(from) if from == place => {
                own = Some(format!("itself: no {} fits", syms.name(var)))
            }
            Some(from) if !told.iter().any(|t| t == from) => told.push(from.to_string()),
            _ => {}
        }
    }
    told.extend(own);
    (!told.is_empty()).then(|| told.join(" and "))
}
