//! The declaration of a library kernel: its operands, attributes, checks and reference
//! implementation.

use pliant_tensor::DType;

use crate::kernel_call::Call;
use crate::named_dim_sizes::{Sizes, name_id};
use crate::reference;

/// The declaration of a library kernel that computes a whole operator.
#[derive(Debug)]
pub struct Kernel {
    /// The name of the kernel, as in `T.call_kernel("name", ...)`.
    pub name: &'static str,
    /// The description of the kernel in `docs/reference/kernels.md`: what it computes, and the source of the
    /// definition.
    pub doc: &'static str,
    /// The operands: the inputs, then the results.
    pub operands: &'static [Operand],
    /// The declarations of the attributes of a call.
    pub attrs: &'static [Attr],
    /// The derived dims, whose sizes follow from the sizes of other dims and the attributes. Each
    /// entry is the name of a dim and the function that computes its size.
    pub derived: &'static [(&'static str, DeriveSize)],
    /// Checks relations between operands, sizes and attributes that the declared dim names cannot
    /// express. Runs before the check of the derived dims. The error names the operand or
    /// attribute, and what was expected.
    pub relations: fn(&Call, &Sizes) -> Result<(), String>,
    /// Returns the number of arithmetic operations of a call. An addition and a multiplication count as two.
    pub flops: fn(&Call, &Sizes) -> f64,
    /// Computes the results of a checked call by loops over elements, in float64. The result is an error if an access fails, or if
    /// the run exceeds its step budget (the maximum number of interpreter steps).
    pub reference: fn(&mut reference::Args<'_>) -> reference::Result<()>,
}

/// The function that computes the size of a derived dim. It returns `None` if the size is undefined or overflows 64
/// bits.
pub type DeriveSize = fn(&Call, &Sizes) -> Option<i64>;

/// How a kernel accesses an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The kernel only reads the operand.
    Input,
    /// The kernel writes all elements of the operand and reads none.
    Output,
    /// The kernel writes all elements of the operand. If the attribute `accumulate` is not 0, the
    /// kernel adds to the previous values; otherwise it reads none of them.
    Accumulator,
}

impl Role {
    /// Whether the kernel writes the operand.
    pub fn is_written(self) -> bool {
        self != Role::Input
    }
}

/// The declaration of an operand of a kernel.
#[derive(Debug)]
pub struct Operand {
    /// The name of the operand, as in printed calls.
    pub name: &'static str,
    /// The hash of the operand's name ([`name_id`]), for fast comparison.
    pub(crate) id: u64,
    /// How the kernel accesses the operand.
    pub role: Role,
    /// The data type of the operand's elements.
    pub dtype: DType,
    /// The data types, in addition to `dtype`, that the operand's elements may have.
    pub other_dtypes: &'static [DType],
    /// The names of the operand's dims.
    pub dims: Dims,
    /// The permitted orders of the operand's elements in memory.
    pub order: Order,
    /// Whether a call may omit the operand.
    pub optional: bool,
    /// The description of the operand in `docs/reference/kernels.md`.
    pub doc: &'static str,
}

impl Operand {
    /// Declares an operand in row-major order that the kernel only reads.
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

    /// Declares a result: an operand in row-major order that the kernel writes completely and does not read.
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

    /// Declares an operand in row-major order that the kernel writes completely, and also reads if the call
    /// accumulates.
    pub const fn accumulator(
        name: &'static str,
        dtype: DType,
        dims: Dims,
        doc: &'static str,
    ) -> Self {
        Operand { role: Role::Accumulator, ..Operand::output(name, dtype, dims, doc) }
    }

    /// Adds other data types that the operand may have.
    pub const fn or(self, other_dtypes: &'static [DType]) -> Self {
        Operand { other_dtypes, ..self }
    }

    /// Returns the data types that the operand may have.
    pub fn dtypes(&self) -> impl Iterator<Item = DType> {
        std::iter::once(self.dtype).chain(self.other_dtypes.iter().copied())
    }

    /// Permits any strides of the operand, except for the last dim, whose elements must be adjacent.
    pub const fn strided_rows(self) -> Self {
        Operand { order: Order::StridedRows, ..self }
    }

    /// Permits any strides of the operand.
    pub const fn strided(self) -> Self {
        Operand { order: Order::Strided, ..self }
    }

    /// Makes the operand optional: a call may omit it.
    pub const fn optional(self) -> Self {
        Operand { optional: true, ..self }
    }
}

/// The order in which an operand's elements may lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The elements are in row-major order without gaps.
    RowMajor,
    /// Elements along the last dim are adjacent in memory. The other strides are arbitrary.
    StridedRows,
    /// All strides are arbitrary. A stride of 0 broadcasts elements of an input along the dim.
    Strided,
}

/// The names of an operand's dims. Dims of the same name have the same size in all operands of a call. If the first
/// name begins with `*`, it covers any number of leading dims, and its size is the product of their sizes. `*rows` and
/// `rows` are the same name when sizes are compared between operands.
#[derive(Clone, Copy, Debug)]
pub enum Dims {
    /// The operand has the same dim names in every call.
    Fixed(&'static [&'static str]),
    /// The dim names depend on the attribute `layout`: one list of names per choice.
    ByLayout(&'static [&'static [&'static str]]),
}

/// The declaration of an attribute of a kernel.
#[derive(Debug)]
pub struct Attr {
    /// The name of the attribute, as in printed calls.
    pub name: &'static str,
    /// The hash of the attribute's name ([`name_id`]), for fast comparison.
    pub(crate) id: u64,
    /// The type and range of the attribute's values.
    pub ty: AttrType,
    /// The value of the attribute in calls that omit it.
    pub default: AttrDefault,
    /// The description of the attribute in `docs/reference/kernels.md`.
    pub doc: &'static str,
}

impl Attr {
    /// Declares an attribute with a name, a type, a default and a description.
    pub const fn new(
        name: &'static str,
        ty: AttrType,
        default: AttrDefault,
        doc: &'static str,
    ) -> Self {
        Attr { name, id: name_id(name), ty, default, doc }
    }
}

/// The type of a kernel attribute, with the range of its values.
#[derive(Clone, Copy, Debug)]
pub enum AttrType {
    /// An integer in the given range; both limits are included.
    Int(i64, i64),
    /// A list of integers of fixed length.
    Ints {
        /// The number of integers in the list.
        len: usize,
        /// The minimum and maximum of each integer.
        range: (i64, i64),
    },
    /// A float64 other than NaN.
    Float,
    /// A boolean, represented as 0 or 1.
    Bool,
    /// One of these strings, represented by its index.
    Choice(&'static [&'static str]),
}

impl AttrType {
    /// Returns how many numbers represent an attribute of this type in a call: the length of a
    /// list, otherwise 1.
    pub fn number_count(self) -> usize {
        match self {
            AttrType::Ints { len, .. } => len,
            _ => 1,
        }
    }
}

/// The default value of an attribute.
#[derive(Clone, Copy, Debug)]
pub enum AttrDefault {
    /// No default: every call must pass the attribute.
    Required,
    /// The default of an attribute other than a float: an integer, a bool as 0 or 1, or the index of a choice. For a
    /// list, it is the default of each element.
    Number(i64),
    /// The default of a float attribute.
    Float(f64),
}

/// The meaning of one argument of a kernel call: an operand, or one of the numbers that encode an attribute.
#[derive(Clone, Copy, Debug)]
pub enum Slot {
    /// The argument is this operand (a tensor, or absent).
    Operand(&'static Operand),
    /// The argument is one of the numbers that encode this attribute. The `usize` is the index in a list attribute,
    /// otherwise 0.
    Number(&'static Attr, usize),
}

impl Kernel {
    /// Returns the index of the operand with this name; `None` if there is none.
    pub fn operand(&self, name: &str) -> Option<usize> {
        self.operands.iter().position(|o| o.name == name)
    }

    /// Returns the attribute with this name, and the index of its first number among the numbers of a call. Returns
    /// `None` if there is no such attribute.
    #[inline]
    pub fn attr(&self, name: &str) -> Option<(&'static Attr, usize)> {
        let (_, first, attr) = self.attrs_by_id().find(|(id, ..)| *id == name_id(name))?;
        Some((attr, first))
    }

    /// Returns the attributes, each with the hash of its name and the index of its first number among the numbers of a
    /// call.
    fn attrs_by_id(&self) -> impl Iterator<Item = (u64, usize, &'static Attr)> {
        self.attrs.iter().scan(0, |next, attr| {
            let first = *next;
            *next += attr.ty.number_count();
            Some((attr.id, first, attr))
        })
    }

    /// Returns the argument positions of a call: one for each operand, then one for each numeric value of an attribute.
    pub fn slots(&self) -> impl Iterator<Item = Slot> {
        let attrs = self.attrs.iter().flat_map(|a| (0..a.ty.number_count()).map(move |i| (a, i)));
        let numbers = attrs.map(|(a, i)| Slot::Number(a, i));
        self.operands.iter().map(Slot::Operand).chain(numbers)
    }

    /// Returns the number of arguments of a call of the kernel: one for each operand, and one for each number that encodes an
    /// attribute.
    pub fn arity(&self) -> usize {
        self.operands.len() + self.number_count()
    }

    /// Returns how many numbers encode all attributes of the kernel in a call.
    pub fn number_count(&self) -> usize {
        self.attrs.iter().map(|a| a.ty.number_count()).sum()
    }
}
