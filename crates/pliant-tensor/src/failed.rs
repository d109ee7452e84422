//! [`Failed`]: the kind of a failed check of a running program, encoded as a prefix of its message.
//!
//! Assertion messages are stored as text in printed scripts, executables and generated code. A
//! message of a more specific kind than a failed assertion starts with the name of an exception, as
//! in `IndexError: dim 0 of 'A' has 8 elements`. The code that reports the failure removes the
//! prefix.

/// The kind of a failed check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failed {
    /// An assertion of the program does not hold.
    Assertion,
    /// Sizes are incompatible.
    Shape,
    /// An index is out of range.
    Index,
    /// An integer is divided by zero.
    Division,
    /// Generated code is wrong: a bug in Pliant.
    Internal,
}

const MARKS: [(Failed, &str); 4] = [
    (Failed::Shape, "ShapeError: "),
    (Failed::Index, "IndexError: "),
    (Failed::Division, "ZeroDivisionError: "),
    (Failed::Internal, "InternalError: "),
];

impl Failed {
    /// The kind encoded in a message, and the message without the prefix.
    pub fn split(message: &str) -> (Failed, &str) {
        let marked =
            MARKS.iter().find_map(|(kind, mark)| Some((*kind, message.strip_prefix(mark)?)));
        marked.unwrap_or((Failed::Assertion, message))
    }

    /// Maximum number of integers in a message.
    pub const MAX_ASSERT_ARGS: usize = 6;

    /// The message with `{0}`, `{1}`, ... replaced by the values. `{0u}` formats a value as
    /// unsigned.
    pub fn fill_args(message: &str, values: &[i64]) -> String {
        values.iter().enumerate().fold(message.to_string(), |text, (k, value)| {
            text.replace(&format!("{{{k}}}"), &value.to_string())
                .replace(&format!("{{{k}u}}"), &value.cast_unsigned().to_string())
        })
    }

    /// The message with the prefix of this kind, unless it already has a prefix.
    pub fn mark(self, message: &str) -> String {
        match (Failed::split(message).0, MARKS.iter().find(|(kind, _)| *kind == self)) {
            (Failed::Assertion, Some((_, mark))) => format!("{mark}{message}"),
            _ => message.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_put_on_once_and_taken_off() {
        let marked = Failed::Index.mark("dim 0");
        assert_eq!(marked, "IndexError: dim 0");
        assert_eq!(Failed::Shape.mark(&marked), marked);
        assert_eq!(Failed::split(&marked), (Failed::Index, "dim 0"));
        assert_eq!(Failed::split("ValueError: n"), (Failed::Assertion, "ValueError: n"));
        assert_eq!(Failed::Assertion.mark("n"), "n");
    }

    #[test]
    fn a_message_tells_signed_and_unsigned_integers() {
        assert_eq!(Failed::fill_args("{0} of {1}, {0u}", &[-1, 7]), "-1 of 7, 18446744073709551615");
    }
}
