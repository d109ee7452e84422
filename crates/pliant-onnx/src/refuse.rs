//! [`Refusal`]: what a node asks for and its converter does not do, told all at once. What is dropped in silence gives wrong
//! results.

use crate::error::Problem;
use crate::node::Node;

/// What a node asks for that is not done, so far.
#[derive(Debug, Default)]
pub(crate) struct Refusal(Vec<String>);

impl Refusal {
    /// Something that the node asks for.
    #[must_use]
    pub fn of(mut self, what: impl Into<String>) -> Self {
        self.0.push(what.into());
        self
    }

    /// An input, where it is given.
    #[must_use]
    pub fn input(self, n: &Node<'_, '_>, i: usize, name: &str) -> Self {
        if n.has(i) { self.of(format!("{name} (input {i})")) } else { self }
    }

    /// An output, where it has a name.
    #[must_use]
    pub fn output(self, n: &Node<'_, '_>, i: usize, name: &str) -> Self {
        let named = n.proto.output.get(i).is_some_and(|o| !o.is_empty());
        if named { self.of(format!("{name} (output {i})")) } else { self }
    }

    /// An integer attribute that is none of the values that are done.
    ///
    /// # Errors
    /// When it is no integer.
    pub fn int(self, n: &Node<'_, '_>, name: &str, done: &[i64]) -> Result<Self, Problem> {
        let given = n.attrs().int(name)?.filter(|given| !done.contains(given));
        Ok(match given {
            Some(given) => self.of(format!("{name}={given}")),
            None => self,
        })
    }

    /// A string attribute that is not the one that is done.
    ///
    /// # Errors
    /// When it is no string.
    pub fn str(self, n: &Node<'_, '_>, name: &str, done: &str) -> Result<Self, Problem> {
        let given = n.attrs().str(name)?.filter(|given| *given != done);
        Ok(match given {
            Some(given) => self.of(format!("{name}='{given}'")),
            None => self,
        })
    }

    /// What is done instead is `done`, a sentence without an end.
    ///
    /// # Errors
    /// When the node asks for anything that is not done.
    pub fn told(self, done: &str) -> Result<(), Problem> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(Problem::unsupported(format!("{}: {done}", self.0.join(", ")))),
        }
    }
}
