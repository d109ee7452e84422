//! [`Failed`]: what a failed check of a running program complains of, told at the start of its message.
//!
//! Messages of assertions travel as text: through printed scripts, executables and generated code. Those that complain
//! of something more definite than that a statement of the program does not hold begin with the name of an exception,
//! as in `IndexError: dim 0 of 'A' has 8 elements`; who reports the failure takes it off.

/// What a failed check complains of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failed {
    /// What the program asserts does not hold.
    Assertion,
    /// Sizes do not fit.
    Shape,
    /// An index lies outside.
    Index,
    /// An integer is divided by zero.
    Division,
    /// Generated code is wrong: a defect of Pliant.
    Internal,
}

const MARKS: [(Failed, &str); 4] = [
    (Failed::Shape, "ShapeError: "),
    (Failed::Index, "IndexError: "),
    (Failed::Division, "ZeroDivisionError: "),
    (Failed::Internal, "InternalError: "),
];

impl Failed {
    /// The kind that a message is marked with, and the message without the mark.
    pub fn split(message: &str) -> (Failed, &str) {
        let marked =
            MARKS.iter().find_map(|(kind, mark)| Some((*kind, message.strip_prefix(mark)?)));
        marked.unwrap_or((Failed::Assertion, message))
    }

    /// A message tells at most so many integers.
    pub const MAX_TOLD: usize = 6;

    /// The message with `{0}`, `{1}`, ... replaced by what it tells; `{0u}` reads the bits of an unsigned integer.
    pub fn told(message: &str, values: &[i64]) -> String {
        values.iter().enumerate().fold(message.to_string(), |text, (k, value)| {
            text.replace(&format!("{{{k}}}"), &value.to_string())
                .replace(&format!("{{{k}u}}"), &value.cast_unsigned().to_string())
        })
    }

    /// The message with this kind's mark, unless it has one already.
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
        assert_eq!(Failed::told("{0} of {1}, {0u}", &[-1, 7]), "-1 of 7, 18446744073709551615");
    }
}
