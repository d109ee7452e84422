//! [`UnsupportedFeatures`]: collects the unsupported features that a node uses, and reports them
//! together. If the features were ignored, the results would be wrong.

use crate::import_error::Problem;
use crate::node::Node;

/// The list of unsupported features that a node uses.
#[derive(Debug, Default)]
pub(crate) struct UnsupportedFeatures(Vec<String>);

impl UnsupportedFeatures {
    /// Adds an unsupported feature that the node uses, described by `what`.
    #[must_use]
    pub fn add(mut self, what: impl Into<String>) -> Self {
        self.0.push(what.into());
        self
    }

    /// Adds input `i`, which is not supported, if the node has it. `name` is its name in the message.
    #[must_use]
    pub fn input(self, n: &Node<'_, '_>, i: usize, name: &str) -> Self {
        if n.has_input(i) { self.add(format!("{name} (input {i})")) } else { self }
    }

    /// Adds output `i`, which is not supported, if it is used. `name` is its name in the message.
    #[must_use]
    pub fn output(self, n: &Node<'_, '_>, i: usize, name: &str) -> Self {
        let named = n.proto.output.get(i).is_some_and(|o| !o.is_empty());
        if named { self.add(format!("{name} (output {i})")) } else { self }
    }

    /// Adds the integer attribute `name`, unless it is absent or its value is in `supported`.
    ///
    /// # Errors
    /// If the attribute is not an integer.
    pub fn int(self, n: &Node<'_, '_>, name: &str, supported: &[i64]) -> Result<Self, Problem> {
        let value = n.attrs().int(name)?.filter(|value| !supported.contains(value));
        Ok(match value {
            Some(value) => self.add(format!("{name}={value}")),
            None => self,
        })
    }

    /// Adds the string attribute `name`, unless it is absent or its value is `supported`.
    ///
    /// # Errors
    /// If the attribute is not a string.
    pub fn str(self, n: &Node<'_, '_>, name: &str, supported: &str) -> Result<Self, Problem> {
        let value = n.attrs().str(name)?.filter(|value| *value != supported);
        Ok(match value {
            Some(value) => self.add(format!("{name}='{value}'")),
            None => self,
        })
    }

    /// Creates a problem that lists the unsupported features that the node uses. `supported` states in one sentence, without a
    /// period, what is supported.
    ///
    /// # Errors
    /// If there is at least one feature.
    pub fn into_result(self, supported: &str) -> Result<(), Problem> {
        let verb = match self.0.len() {
            0 => return Ok(()),
            1 => "is",
            _ => "are",
        };
        let features = self.0.join(", ");
        let message = format!("{features} {verb} not supported: {supported}");
        Err(Problem::unsupported(message))
    }
}
