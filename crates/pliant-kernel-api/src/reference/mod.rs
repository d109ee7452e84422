//! The reference implementations of the kernels, which define the results by loops over elements in
//! float64. The interpreter runs them.

mod element_comparison;
mod sliding_window;

use std::borrow::Cow;
use std::error::Error;

use crate::{Call, Sizes, View};
pub(crate) use sliding_window::Windows;

/// The result of a reference implementation. The error is a text or an error of the [`Memory`].
pub type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// The value of one element of a tensor.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    /// An integer or bool. A uint64 is reinterpreted as an int64.
    Int(i64),
    /// A floating-point number.
    Float(f64),
}

impl Number {
    /// Returns the value if it is an integer, otherwise an error.
    pub(crate) fn int(self) -> Result<i64> {
        match self {
            Number::Int(v) => Ok(v),
            Number::Float(v) => {
                Err(format!("internal error: a kernel reads the float element {v} as an integer")
                    .into())
            }
        }
    }

    /// Returns the value if it is a float, otherwise an error.
    pub(crate) fn float(self) -> Result<f64> {
        match self {
            Number::Float(v) => Ok(v),
            Number::Int(v) => {
                Err(format!("internal error: the integer element {v} is read as a float").into())
            }
        }
    }
}

impl From<f64> for Number {
    fn from(v: f64) -> Number {
        Number::Float(v)
    }
}

/// The interface through which a reference implementation accesses operands and consumes the step budget of the run, the maximum
/// number of interpreter steps. `operand` is the index of the operand in the declaration. `indices` has one index per dim of the
/// operand's tensor.
pub trait Memory {
    /// Reads one element of an operand.
    ///
    /// # Errors
    /// The index is out of bounds.
    fn read(&self, operand: usize, indices: &[i64]) -> Result<Number>;

    /// Writes an element, rounded to the data type of the operand.
    ///
    /// # Errors
    /// The index is out of bounds, or the memory is read-only.
    fn write(&mut self, operand: usize, indices: &[i64], value: Number) -> Result<()>;

    /// Consumes `count` steps of the run's step budget, the maximum number of interpreter steps.
    ///
    /// # Errors
    /// The budget is exhausted, or the run is cancelled.
    fn step(&mut self, count: u64) -> Result<()>;
}

/// Computes the results of a call with the kernel's reference implementation. [`Call::check`] has
/// accepted the call and returned `sizes`.
///
/// # Errors
/// An error of the memory, or a value of an operand that the kernel rejects.
pub fn run(call: &Call, sizes: &Sizes, memory: &mut dyn Memory) -> Result<()> {
    (call.kernel.reference)(&mut Args { call, sizes, memory })
}

/// The arguments of a reference implementation. The methods access elements by pairs of dim name
/// and index, or by one index per declared dim.
pub struct Args<'a> {
    /// The call whose results are computed.
    pub(crate) call: &'a Call,
    /// The sizes of the named dims of the call's operands.
    pub(crate) sizes: &'a Sizes,
    memory: &'a mut dyn Memory,
}

impl<'a> Args<'a> {
    /// Consumes `count` steps of the run's step budget (the maximum number of interpreter steps); an error if the budget is
    /// exhausted or the run is cancelled. A reference implementation consumes about one step per multiplication.
    pub(crate) fn step(&mut self, count: u64) -> Result<()> {
        self.memory.step(count)
    }

    /// Whether the call passes the operand with this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.call.operand(name).is_some()
    }

    /// Returns the required operand `name`; an error if the call omits it.
    pub(crate) fn view(&self, name: &str) -> Result<&'a View> {
        self.call.operand(name).ok_or_else(|| format!("the operand '{name}' is missing").into())
    }

    /// Reads an element of the operand `name`. `indices` are pairs of dim name and index. An index out of bounds is an
    /// error.
    pub(crate) fn read(&self, name: &str, indices: &[(&str, i64)]) -> Result<Number> {
        self.read_at(name, &self.ordered(name, indices)?)
    }

    /// Reads an element of the float operand `name`. `indices` are pairs of dim name and index.
    pub(crate) fn get(&self, name: &str, indices: &[(&str, i64)]) -> Result<f64> {
        self.read(name, indices)?.float()
    }

    /// Writes an element of the result `name`. `indices` are pairs of dim name and index.
    pub(crate) fn set(
        &mut self,
        name: &str,
        indices: &[(&str, i64)],
        value: impl Into<Number>,
    ) -> Result<()> {
        self.set_at(name, &self.ordered(name, indices)?, value)
    }

    /// Reads an element of the operand `name`. `indices` are in the order of the declared dims.
    pub(crate) fn read_at(&self, name: &str, indices: &[i64]) -> Result<Number> {
        let (operand, indices) = self.tensor_indices(name, indices)?;
        self.memory.read(operand, &indices)
    }

    /// Reads an element of the float operand `name`. `indices` are in the order of the declared dims.
    pub(crate) fn get_at(&self, name: &str, indices: &[i64]) -> Result<f64> {
        self.read_at(name, indices)?.float()
    }

    /// Reads an element of the float operand `name`. `indices` are in the order of the declared dims. Returns `default`
    /// if the call omits the operand.
    pub(crate) fn get_or(&self, name: &str, indices: &[i64], default: f64) -> Result<f64> {
        if self.has(name) { self.get_at(name, indices) } else { Ok(default) }
    }

    /// Reads an element of the integer operand `name`. `indices` are in the order of the declared dims. Returns
    /// `default` if the call omits the operand.
    pub(crate) fn int_or(&self, name: &str, indices: &[i64], default: i64) -> Result<i64> {
        if self.has(name) { self.read_at(name, indices)?.int() } else { Ok(default) }
    }

    /// Writes an element of the result `name`. `indices` are in the order of the declared dims.
    pub(crate) fn set_at(
        &mut self,
        name: &str,
        indices: &[i64],
        value: impl Into<Number>,
    ) -> Result<()> {
        let (operand, indices) = self.tensor_indices(name, indices)?;
        self.memory.write(operand, &indices, value.into())
    }

    /// Converts pairs of dim name and index to indices in the order of the declared dims. A missing dim is an error.
    fn ordered(&self, name: &str, indices: &[(&str, i64)]) -> Result<Vec<i64>> {
        let dims = self.call.dims(&self.call.kernel.operands[self.call.index_of(name)]);
        let index = |dim: &&str| indices.iter().find(|(name, _)| name == dim).map(|(_, i)| *i);
        let index = |dim| {
            index(dim).ok_or_else(|| format!("the reference has no index for the dim {dim}").into())
        };
        dims.iter().map(index).collect()
    }

    /// Returns the index of an operand, and one index per dim of its tensor. If the operand's first dim name covers
    /// several dims, the first element of `indices` is a row-major index over these dims, and is split.
    fn tensor_indices<'i>(
        &self,
        name: &str,
        indices: &'i [i64],
    ) -> Result<(usize, Cow<'i, [i64]>)> {
        let (operand, shape) = (self.call.index_of(name), self.view(name)?.shape());
        let dims = self.call.dims(&self.call.kernel.operands[operand]);
        let ([first, rest @ ..], false) = (indices, dims.len() == shape.len()) else {
            return Ok((operand, Cow::Borrowed(indices)));
        };
        let mut split = vec![*first; shape.len().saturating_sub(rest.len())];
        for k in (1..split.len()).rev() {
            let size = shape[k].max(1);
            (split[0], split[k]) = (split[0] / size, split[0] % size);
        }
        split.extend(rest);
        Ok((operand, Cow::Owned(split)))
    }
}

/// Rounds a number to the nearest float32, and returns it as float64.
pub(crate) fn round_f32(v: f64) -> f64 {
    f64::from(v as f32)
}

/// Returns the indices of all elements of a tensor with these sizes, in row-major order.
pub(crate) fn indices<const N: usize>(sizes: [i64; N]) -> impl Iterator<Item = [i64; N]> {
    // An empty tensor has no indices, even if its other sizes are large.
    let first = (!sizes.contains(&0)).then_some([0; N]);
    std::iter::successors(first, move |last| {
        let mut next = *last;
        let k = (0..N).rev().find(|&k| next[k] + 1 < sizes[k])?;
        next[k] += 1;
        next[k + 1..].fill(0);
        Some(next)
    })
}
