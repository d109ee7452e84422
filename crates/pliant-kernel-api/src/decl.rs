//! The declaration of a kernel.

use pliant_tensor::DType;

use crate::call::Call;
use crate::dims::{Sizes, name_id};
use crate::reference;

/// The declaration of a kernel that computes a whole operator.
#[derive(Debug)]
pub struct Kernel {
    /// Its name, as in `T.call_kernel("name", ...)`.
    pub name: &'static str,
    /// What it computes, and the source of the definition.
    pub doc: &'static str,
    /// Its operands: the inputs, then the results.
    pub operands: &'static [Operand],
    /// Its attributes.
    pub attrs: &'static [Attr],
    /// The dims whose sizes follow from other sizes and the attributes: name and size. `None` if the size does not fit 64
    /// bits.
    pub derived: &'static [(&'static str, Derive)],
    /// The other relations between operands, sizes and attributes, checked before the derived dims. The text of an error
    /// names the operand and what was expected.
    pub relations: fn(&Call, &Sizes) -> Result<(), String>,
    /// Floating-point operations of a call, additions and multiplications counted separately.
    pub flops: fn(&Call, &Sizes) -> f64,
    /// Computes the results of a checked call in loops over elements, in float64.
    pub reference: fn(&mut reference::Args<'_>) -> reference::Result<()>,
}

/// Computes the size of a derived dim.
pub type Derive = fn(&Call, &Sizes) -> Option<i64>;

/// How a kernel accesses an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It reads the operand.
    Input,
    /// It writes every element of the operand and reads none.
    Output,
    /// It writes every element of the operand. If the attribute `accumulate` is not 0, it adds to the elements, otherwise it
    /// reads none.
    Accumulator,
}

impl Role {
    /// Whether the kernel writes the operand.
    pub fn is_written(self) -> bool {
        self != Role::Input
    }
}

/// An operand of a kernel.
#[derive(Debug)]
pub struct Operand {
    /// Its name.
    pub name: &'static str,
    /// Identifies the name while a call is checked.
    pub(crate) id: u64,
    /// Whether it is read or written.
    pub role: Role,
    /// The data type of its elements.
    pub dtype: DType,
    /// Further data types that it may have instead.
    pub other_dtypes: &'static [DType],
    /// Its dims.
    pub dims: Dims,
    /// The order of its elements in memory.
    pub order: Order,
    /// Whether a call may omit it.
    pub optional: bool,
    /// Its meaning.
    pub doc: &'static str,
}

impl Operand {
    /// An operand that is read.
    pub const fn input(name: &'static str, dtype: DType, dims: Dims, doc: &'static str) -> Self {
        Operand {
            name,
            id: name_id(name),
            role: Role::Input,
            dtype,
            other_dtypes: &[],
            dims,
            order: Order::RowMajor,
            optional: false,
            doc,
        }
    }

    /// An operand that is written completely.
    pub const fn output(name: &'static str, dtype: DType, dims: Dims, doc: &'static str) -> Self {
        Operand {
            name,
            id: name_id(name),
            role: Role::Output,
            dtype,
            other_dtypes: &[],
            dims,
            order: Order::RowMajor,
            optional: false,
            doc,
        }
    }

    /// An operand that is written completely, and read if the call accumulates.
    pub const fn accumulator(
        name: &'static str,
        dtype: DType,
        dims: Dims,
        doc: &'static str,
    ) -> Self {
        Operand { role: Role::Accumulator, ..Operand::output(name, dtype, dims, doc) }
    }

    /// The same operand, which may also have one of these data types.
    pub const fn or(self, other_dtypes: &'static [DType]) -> Self {
        Operand { other_dtypes, ..self }
    }

    /// The data types that it may have.
    pub fn dtypes(&self) -> impl Iterator<Item = DType> {
        std::iter::once(self.dtype).chain(self.other_dtypes.iter().copied())
    }

    /// The same operand with any strides between rows.
    pub const fn strided_rows(self) -> Self {
        Operand { order: Order::StridedRows, ..self }
    }

    /// The same operand with any strides.
    pub const fn strided(self) -> Self {
        Operand { order: Order::Strided, ..self }
    }

    /// The same operand, which a call may omit.
    pub const fn optional(self) -> Self {
        Operand { optional: true, ..self }
    }
}

/// The order of an operand's elements in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Row-major without gaps.
    RowMajor,
    /// Neighbours along the last dim are adjacent; the other strides are free.
    StridedRows,
    /// All strides are free. A stride of 0 broadcasts the element along the dim.
    Strided,
}

/// The names of an operand's dims. Dims of the same name have the same size in all operands of a
/// call. If the first name begins with `*`, it represents any number of dims, and its size is their
/// product; it is the same name without the `*`.
#[derive(Clone, Copy, Debug)]
pub enum Dims {
    /// The same in every call.
    Fixed(&'static [&'static str]),
    /// For each choice of the attribute `layout`.
    ByLayout(&'static [&'static [&'static str]]),
}

/// An attribute of a kernel.
#[derive(Debug)]
pub struct Attr {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub ty: AttrType,
    /// Its value in calls that omit it.
    pub default: AttrDefault,
    /// What it means.
    pub doc: &'static str,
}

/// The type of an attribute.
#[derive(Clone, Copy, Debug)]
pub enum AttrType {
    /// An integer from the first number to the second.
    Int(i64, i64),
    /// A list of the given length of integers from the first number to the second.
    Ints {
        /// The length.
        len: usize,
        /// The least and the greatest integer.
        range: (i64, i64),
    },
    /// A finite or infinite float64.
    Float,
    /// A bool.
    Bool,
    /// One of these texts.
    Choice(&'static [&'static str]),
}

impl AttrType {
    /// The number of words that a value takes in a call.
    pub fn numbers(self) -> usize {
        match self {
            AttrType::Ints { len, .. } => len,
            _ => 1,
        }
    }
}

/// The default of an attribute.
#[derive(Clone, Copy, Debug)]
pub enum AttrDefault {
    /// None: every call must give the attribute.
    Required,
    /// The same number, or the choice with that index, for each element.
    Number(i64),
    /// A float.
    Float(f64),
}

/// An argument position of a call.
#[derive(Clone, Copy, Debug)]
pub enum Slot {
    /// An operand.
    Operand(&'static Operand),
    /// A number of an attribute, and its index in a list.
    Number(&'static Attr, usize),
}

impl Kernel {
    /// The index of an operand.
    pub fn operand(&self, name: &str) -> Option<usize> {
        self.operands.iter().position(|o| o.name == name)
    }

    /// An attribute, and the position of its first number among the numbers of a call.
    pub fn attr(&self, name: &str) -> Option<(&'static Attr, usize)> {
        let at = self.attrs.iter().position(|a| a.name == name)?;
        let first = self.attrs[..at].iter().map(|a| a.ty.numbers()).sum();
        Some((&self.attrs[at], first))
    }

    /// The argument positions of a call: the operands, then the numbers of the attributes.
    pub fn slots(&self) -> impl Iterator<Item = Slot> {
        let attrs = self.attrs.iter().flat_map(|a| (0..a.ty.numbers()).map(move |i| (a, i)));
        let numbers = attrs.map(|(a, i)| Slot::Number(a, i));
        self.operands.iter().map(Slot::Operand).chain(numbers)
    }

    /// The number of arguments of a call.
    pub fn arity(&self) -> usize {
        self.operands.len() + self.numbers()
    }

    /// The number of words of all attributes.
    pub fn numbers(&self) -> usize {
        self.attrs.iter().map(|a| a.ty.numbers()).sum()
    }
}
