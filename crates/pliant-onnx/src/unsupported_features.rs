//! [`UnsupportedFeatures`]: collects the unsupported features that a node uses, and reports them together.
//! Ignoring them would produce wrong results.

use crate::error::Problem;
use crate::node::Node;

/// The unsupported features found so far.
#[derive(Debug, Default)]
pub(crate) struct UnsupportedFeatures(Vec<String>);

impl UnsupportedFeatures {
    /// Adds a feature.
    #[must_use]
    pub fn of(mut self, what: impl Into<String>) -> Self {
        self.0.push(what.into());
        self
    }

    /// Adds an input, if it is present.
    #[must_use]
    pub fn input(self, n: &Node<'_, '_>, i: usize, name: &str) -> Self {
        if n.has_input(i) { self.of(format!("{name} (input {i})")) } else { self }
    }

    /// Adds an output, if it has a name.
    #[must_use]
    pub fn output(self, n: &Node<'_, '_>, i: usize, name: &str) -> Self {
        let named = n.proto.output.get(i).is_some_and(|o| !o.is_empty());
        if named { self.of(format!("{name} (output {i})")) } else { self }
    }

    /// Adds an integer attribute, unless its value is one of the supported ones.
    ///
    /// # Errors
    /// If the attribute is not an integer.
    pub fn int(self, n: &Node<'_, '_>, name: &str, done: &[i64]) -> Result<Self, Problem> {
        let given = n.attrs().int(name)?.filter(|given| !done.contains(given));
        Ok(match given {
            Some(given) => self.of(format!("{name}={given}")),
            None => self,
        })
    }

    /// Adds a string attribute, unless it has the supported value.
    ///
    /// # Errors
    /// If the attribute is not a string.
    pub fn str(self, n: &Node<'_, '_>, name: &str, done: &str) -> Result<Self, Problem> {
        let given = n.attrs().str(name)?.filter(|given| *given != done);
        Ok(match given {
            Some(given) => self.of(format!("{name}='{given}'")),
            None => self,
        })
    }

    /// Reports the features. `done` is a sentence, without a period, about what is supported.
    ///
    /// # Errors
    /// If there are any features.
    pub fn told(self, done: &str) -> Result<(), Problem> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(Problem::unsupported(format!("{}: {done}", self.0.join(", ")))),
        }
    }
}
