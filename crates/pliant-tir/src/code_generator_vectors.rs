//! The vectors of the code generator for which a function is lowered.
//!
//! The facade (`pliant/src/loop_codegen.rs`) sets the attribute [`VECTOR_BYTES`] before it lowers a function for a code generator
//! that uses the widest vectors of the CPU. Functions without it are lowered for vectors of 128 bits.

use pliant_ir::AttrValue;
use pliant_ir::tir::PrimFunc;

/// The attribute of a function with the size in bytes of the widest vectors of the CPU.
pub const VECTOR_BYTES: &str = "tir.vector_bytes";

/// The size in bytes of the vectors for which functions without the attribute are lowered.
const DEFAULT_VECTOR_BYTES: i64 = 16;

/// Returns the size in bytes of the vectors of the code generator: 16, 32 or 64.
pub fn vector_bytes(f: &PrimFunc) -> i64 {
    let bytes = f.attrs.get(VECTOR_BYTES).and_then(AttrValue::as_int);
    bytes.filter(|b| matches!(b, 16 | 32 | 64)).unwrap_or(DEFAULT_VECTOR_BYTES)
}

/// Whether the code generator uses the widest vectors of the CPU. Such a code generator expands elementary functions in the loops
/// that use them. Others call vector math functions (`pliant_vec_*`), which use the widest vectors.
pub fn has_widest_vectors(f: &PrimFunc) -> bool {
    f.attrs.contains_key(VECTOR_BYTES)
}
