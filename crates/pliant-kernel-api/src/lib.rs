//! Declarations of the library kernels, which compute whole operators, and of the vector math functions, which compute
//! elementwise math on adjacent elements.
//!
//! Each kernel has one declaration, in a file of [`kernels`]: its operands with data types and named dims, its
//! attributes with types, ranges and defaults, and the relations between its arguments. The following derives from the
//! declaration:
//!
//! | what | where |
//! |---|---|
//! | argument names in printed and parsed programs | `pliant-ir`, `pliant-script` |
//! | the order of the arguments of `T.call_kernel` | [`Kernel::slots`] |
//! | the checks of a call at run time | [`Call::check`] |
//! | which buffers a call reads and writes | [`Role`] |
//! | `docs/reference/kernels.md` | [`reference_page`] |
//! | sizes of derived dims, for the checks and for random valid calls in fuzzing | [`Kernel::derived`] |
//! | the results in the interpreter, and the expected results of tests | [`Kernel::reference`] |
//!
//! The vector math functions, which generated loops call on tiles, are declared in [`vector_math_functions`].
//!
//! The implementations are in `pliant-kernels`.

mod error;
pub mod host_function_names;
mod kernel_call;
mod kernel_declaration;
pub mod kernels;
mod named_dim_sizes;
pub mod reference;
mod reference_page_generator;
pub mod vector_math_functions;

pub use error::{KernelError, KernelErrorKind};
pub use kernel_call::{Call, View, leading_dims};
pub use kernel_declaration::{
    Attr, AttrDefault, AttrType, DeriveSize, Dims, Kernel, Operand, Order, Role, Slot,
};
pub use kernels::{KERNELS, find};
pub use named_dim_sizes::Sizes;
pub use reference_page_generator::reference_page;

/// Maximum number of operands of a kernel, which is the length of the operand array of a [`Call`].
pub const MAX_OPERANDS: usize = 12;
/// Maximum number of integers that together represent the attributes of a kernel call ([`Kernel::number_count`]).
pub const MAX_NUMBERS: usize = 32;
/// Maximum rank of an operand of a kernel, which is the length of the arrays of dims and strides in a [`View`].
pub const MAX_RANK: usize = 8;
