//! [`CheckFailure`]: the kind of a failed check of a running program, encoded as a prefix of its message.
//!
//! Messages of checks are stored as text in scripts, executables and generated code. If a check is not a plain assertion, its
//! message starts with the name of an exception, as in `IndexError: dim 0 of 'A' has 8 elements`. The code that reports the failure
//! removes the prefix.

/// The kind of a failed check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CheckFailure {
    /// An assertion of the program (without a more specific kind) does not hold.
    Assertion,
    /// Sizes or shapes are incompatible.
    Shape,
    /// An index is out of range.
    Index,
    /// An integer is divided by zero.
    Division,
    /// Generated code violates a condition that the compiler guarantees: a bug in Pliant.
    Internal,
}

const PREFIXES: [(CheckFailure, &str); 4] = [
    (CheckFailure::Shape, "ShapeError: "),
    (CheckFailure::Index, "IndexError: "),
    (CheckFailure::Division, "ZeroDivisionError: "),
    (CheckFailure::Internal, "InternalError: "),
];

impl CheckFailure {
    /// Splits a message into the kind that its prefix encodes and the text without the prefix.
    pub fn split(message: &str) -> (CheckFailure, &str) {
        let marked =
            PREFIXES.iter().find_map(|(kind, mark)| Some((*kind, message.strip_prefix(mark)?)));
        marked.unwrap_or((CheckFailure::Assertion, message))
    }

    /// Maximum number of integers that an error message can contain.
    pub const MAX_ASSERT_ARGS: usize = 6;

    /// Replaces `{0}`, `{1}`, ... in an error message by the values. `{0u}` formats a value as unsigned.
    pub fn fill_args(message: &str, values: &[i64]) -> String {
        values.iter().enumerate().fold(message.to_string(), |text, (k, value)| {
            text.replace(&format!("{{{k}}}"), &value.to_string())
                .replace(&format!("{{{k}u}}"), &value.cast_unsigned().to_string())
        })
    }

    /// Adds the prefix of this kind to a message, unless it already has a prefix.
    pub fn mark(self, message: &str) -> String {
        match (CheckFailure::split(message).0, PREFIXES.iter().find(|(kind, _)| *kind == self)) {
            (CheckFailure::Assertion, Some((_, mark))) => format!("{mark}{message}"),
            _ => message.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_added_once_and_removed() {
        let marked = CheckFailure::Index.mark("dim 0");
        assert_eq!(marked, "IndexError: dim 0");
        assert_eq!(CheckFailure::Shape.mark(&marked), marked);
        assert_eq!(CheckFailure::split(&marked), (CheckFailure::Index, "dim 0"));
        assert_eq!(
            CheckFailure::split("ValueError: n"),
            (CheckFailure::Assertion, "ValueError: n")
        );
        assert_eq!(CheckFailure::Assertion.mark("n"), "n");
    }

    #[test]
    fn messages_contain_signed_and_unsigned_integers() {
        assert_eq!(
            CheckFailure::fill_args("{0} of {1}, {0u}", &[-1, 7]),
            "-1 of 7, 18446744073709551615"
        );
    }
}
