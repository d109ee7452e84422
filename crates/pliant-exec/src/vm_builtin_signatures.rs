//! The names and operand counts of the VM's builtins, and the integer codes in the operands of
//! shape builtins.

/// The number of operands that a builtin accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BuiltinArity {
    /// The name of the builtin, such as `vm.builtin.reshape`.
    pub name: &'static str,
    /// The minimum number of operands of the builtin.
    pub min: u32,
    /// The maximum number of operands of the builtin; `u32::MAX` if unlimited.
    pub max: u32,
}

const fn exactly(name: &'static str, n: u32) -> BuiltinArity {
    BuiltinArity { name, min: n, max: n }
}

const fn between(name: &'static str, min: u32, max: u32) -> BuiltinArity {
    BuiltinArity { name, min, max }
}

const fn at_least(name: &'static str, min: u32) -> BuiltinArity {
    BuiltinArity { name, min, max: u32::MAX }
}

/// All builtins of the VM, sorted by name. `pliant-vm` documents their operands.
pub const BUILTINS: &[BuiltinArity] = &[
    exactly("vm.builtin.alloc_shape_heap", 1),
    between("vm.builtin.alloc_storage", 1, 4),
    exactly("vm.builtin.alloc_tensor", 4),
    exactly("vm.builtin.alloc_tensor_with_storage", 3),
    at_least("vm.builtin.assert_op", 1),
    at_least("vm.builtin.call_tir_dyn", 2),
    exactly("vm.builtin.check_apart", 5),
    between("vm.builtin.check_func_info", 1, 2),
    between("vm.builtin.check_prim_value_info", 2, 3),
    between("vm.builtin.check_shape_info", 2, 3),
    between("vm.builtin.check_tensor_info", 3, 4),
    between("vm.builtin.check_tuple_info", 2, 3),
    at_least("vm.builtin.compute_prim_value", 2),
    exactly("vm.builtin.copy", 1),
    exactly("vm.builtin.copy_tensor", 1),
    at_least("vm.builtin.debug_print", 0),
    exactly("vm.builtin.dynamic_strided_slice", 4),
    exactly("vm.builtin.free_storage", 1),
    exactly("vm.builtin.free_tensor", 1),
    exactly("vm.builtin.inspect.byte_offset", 1),
    exactly("vm.builtin.inspect.dtype_bits", 1),
    exactly("vm.builtin.inspect.dtype_code", 1),
    exactly("vm.builtin.inspect.dtype_lanes", 1),
    exactly("vm.builtin.inspect.elem_offset", 1),
    exactly("vm.builtin.inspect.ndim", 1),
    exactly("vm.builtin.inspect.shape_i", 2),
    exactly("vm.builtin.inspect.stride_i", 2),
    at_least("vm.builtin.invoke_closure", 1),
    at_least("vm.builtin.invoke_closure_tail", 1),
    at_least("vm.builtin.invoke_pure_closure", 1),
    exactly("vm.builtin.item", 1),
    exactly("vm.builtin.kill_object", 1),
    at_least("vm.builtin.load_shape", 1),
    at_least("vm.builtin.make_closure", 1),
    exactly("vm.builtin.make_prim_value", 3),
    at_least("vm.builtin.make_shape", 2),
    at_least("vm.builtin.make_tuple", 0),
    between("vm.builtin.match_prim_value", 4, 5),
    at_least("vm.builtin.match_shape", 3),
    exactly("vm.builtin.nonzero", 1),
    exactly("vm.builtin.null_value", 0),
    at_least("vm.builtin.print", 1),
    exactly("vm.builtin.read_if_cond", 1),
    between("vm.builtin.reshape", 2, 3),
    exactly("vm.builtin.shape_of", 1),
    at_least("vm.builtin.store_shape", 2),
    exactly("vm.builtin.tensor_to_shape", 1),
    between("vm.builtin.tensor_view", 1, 4),
    at_least("vm.builtin.to_device", 1),
    exactly("vm.builtin.trip_count", 3),
    exactly("vm.builtin.tuple_getitem", 2),
    between("vm.builtin.unique", 1, 6),
];

/// The accepted number of operands of the builtin `name`; `None` if there is no such builtin.
pub fn builtin_arity(name: &str) -> Option<BuiltinArity> {
    BUILTINS.binary_search_by(|b| b.name.cmp(name)).ok().map(|i| BUILTINS[i])
}

/// The action of `vm.builtin.match_shape` for a dim of the matched shape. Each code is followed by one operand. The shape heap is
/// the tensor that contains symbolic sizes at run time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i64)]
pub enum MatchShapeCode {
    /// `match_shape` checks that the dim equals a constant. The operand of the code is this constant.
    AssertEqualToImm = 0,
    /// `match_shape` stores the dim in the slot of the shape heap whose index is the operand.
    StoreToHeap = 1,
    /// `match_shape` ignores the dim and the operand.
    NoOp = 2,
    /// `match_shape` checks that the dim equals the value in the slot of the shape heap whose index is the operand.
    AssertEqualToLoad = 3,
}

/// The source of a dim of the shape that `vm.builtin.make_shape` creates. Each code is followed by
/// one operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i64)]
pub enum MakeShapeCode {
    /// The new dim is a constant. The operand of the code is this constant.
    UseImm = 0,
    /// The new dim is the value in the slot of the shape heap whose index is the operand of the code.
    LoadShape = 1,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builtins_are_sorted_by_name() {
        assert!(BUILTINS.is_sorted_by(|a, b| a.name < b.name));
        assert_eq!(builtin_arity("vm.builtin.alloc_tensor").map(|b| b.min), Some(4));
        assert_eq!(builtin_arity("my.function"), None);
    }
}
