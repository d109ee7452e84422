//! Chooses names for printed scripts: valid Python identifiers that are unique among all visible names.

use rustc_hash::FxHashMap;

/// Names that variables must not have: Python keywords, and names with a special meaning in scripts.
const RESERVED: &[&str] = &[
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield", "R", "T", "I", "cls", "metadata", "range", "float",
];

/// The set of names that are in use.
#[derive(Default)]
pub(crate) struct Names {
    /// The names in use. If a name was made from a hint and a number, the value contains both;
    /// otherwise it is `None`.
    used: FxHashMap<String, Option<(String, u32)>>,
    /// For each hint, the next number to append to it.
    next: FxHashMap<String, u32>,
}

impl Names {
    /// Creates a set that only contains the reserved names.
    pub fn new() -> Self {
        let mut names = Names::default();
        for word in RESERVED {
            names.used.insert((*word).to_string(), None);
        }
        names
    }

    /// Reserves and returns a name: `hint` itself if it is valid and available, otherwise a variant of it with a number.
    pub fn take(&mut self, hint: &str) -> String {
        let base = sanitize(hint);
        if !self.used.contains_key(&base) {
            self.used.insert(base.clone(), None);
            return base;
        }
        let digit = base.as_bytes().last().is_some_and(u8::is_ascii_digit);
        let sep = if digit { "_" } else { "" };
        let mut n = self.next.get(&base).copied().unwrap_or(1);
        loop {
            let name = format!("{base}{sep}{n}");
            n += 1;
            if !self.used.contains_key(&name) {
                self.used.insert(name.clone(), Some((base.clone(), n - 1)));
                self.next.insert(base, n);
                return name;
            }
        }
    }

    /// Makes a name available again after it is no longer visible.
    pub fn release(&mut self, name: &str) {
        if let Some(Some((base, n))) = self.used.remove(name)
            && let Some(next) = self.next.get_mut(&base)
        {
            *next = (*next).min(n);
        }
    }
}

/// Converts a text to a valid identifier. Letters of all scripts are kept.
pub(crate) fn sanitize(hint: &str) -> String {
    let keep = |c: char| c == '_' || c.is_ascii_digit() || c.is_alphabetic();
    let mut out: String = hint.chars().map(|c| if keep(c) { c } else { '_' }).collect();
    if out.is_empty() {
        out.push('v');
    }
    if out.as_bytes()[0].is_ascii_digit() {
        out.insert(0, '_');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_and_unique() {
        let mut names = Names::new();
        assert_eq!(names.take("x"), "x");
        assert_eq!(names.take("x"), "x1");
        assert_eq!(names.take("x"), "x2");
        assert_eq!(names.take("x1"), "x1_1");
        assert_eq!(names.take("for"), "for1");
        assert_eq!(names.take("cls"), "cls1");
        assert_eq!(names.take("2 b"), "_2_b");
        assert_eq!(names.take(""), "v");
        assert_eq!(names.take("größe-数"), "größe_数");
        assert_eq!(names.take("x²"), "x_");
    }

    #[test]
    fn released_names_are_used_again() {
        let mut names = Names::new();
        for _ in 0..3 {
            let (a, b) = (names.take("i"), names.take("i"));
            assert_eq!((a.as_str(), b.as_str()), ("i", "i1"));
            names.release(&b);
            names.release(&a);
        }
    }
}
