//! The table of the VM's builtins. Each submodule implements one group of builtins.

mod nonzero;
mod print_and_assert;
mod scalar_builtins;
mod shape_heap;
mod strided_slice;
mod tensor_properties;
mod tensors_and_tuples;
mod type_checks;
mod unique;

pub(crate) use scalar_builtins::element;
pub(crate) use tensors_and_tuples::{
    alloc_own_tensor_unwritten, alloc_tensor_unwritten, bytes, clear,
};

use crate::builtin_operands::Args;
use crate::{Value, VmError};

/// A Rust function that implements a builtin.
pub(crate) type BuiltinFn = fn(Args<'_>) -> Result<Value, VmError>;

/// A builtin: its name and how the VM executes it.
pub(crate) struct Builtin {
    pub(crate) name: &'static str,
    pub(crate) kind: BuiltinKind,
}

/// The kinds of builtins, by how the VM executes them.
#[derive(Clone, Copy)]
pub(crate) enum BuiltinKind {
    /// The builtin is a plain Rust function of its operands.
    Plain(BuiltinFn),
    /// The builtin calls the closure in its first operand.
    Closure,
    /// The builtin calls a closure in tail position. If the closure is a bytecode function, its
    /// result becomes the result of the running function. Otherwise the result is stored in the
    /// destination register, as for a normal call.
    TailClosure,
    /// The builtin calls the loop function in its first operand.
    LoopFuncDyn,
}

const fn plain(name: &'static str, function: BuiltinFn) -> Builtin {
    Builtin { name, kind: BuiltinKind::Plain(function) }
}

const fn special(name: &'static str, kind: BuiltinKind) -> Builtin {
    Builtin { name, kind }
}

/// All builtins, sorted by name. `pliant_exec::BUILTINS` lists their arities.
static TABLE: &[Builtin] = &[
    plain("vm.builtin.alloc_shape_heap", shape_heap::alloc_shape_heap),
    plain("vm.builtin.alloc_storage", tensors_and_tuples::alloc_storage),
    plain("vm.builtin.alloc_tensor", tensors_and_tuples::alloc_tensor),
    plain("vm.builtin.alloc_tensor_with_storage", tensors_and_tuples::alloc_tensor_with_storage),
    plain("vm.builtin.assert_op", print_and_assert::assert_op),
    special("vm.builtin.call_tir_dyn", BuiltinKind::LoopFuncDyn),
    plain("vm.builtin.check_apart", type_checks::no_overlap),
    plain("vm.builtin.check_func_info", type_checks::func_info),
    plain("vm.builtin.check_prim_value_info", type_checks::prim_value_info),
    plain("vm.builtin.check_shape_info", type_checks::shape_info),
    plain("vm.builtin.check_tensor_info", type_checks::tensor_info),
    plain("vm.builtin.check_tuple_info", type_checks::tuple_info),
    plain("vm.builtin.compute_prim_value", shape_heap::compute_prim_value),
    plain("vm.builtin.copy", tensors_and_tuples::identity),
    plain("vm.builtin.copy_tensor", tensors_and_tuples::copy_tensor),
    plain("vm.builtin.debug_print", tensors_and_tuples::debug_print),
    plain("vm.builtin.dynamic_strided_slice", strided_slice::dynamic_strided_slice),
    plain("vm.builtin.free_storage", tensors_and_tuples::none),
    plain("vm.builtin.free_tensor", tensors_and_tuples::none),
    plain("vm.builtin.inspect.byte_offset", tensor_properties::byte_offset),
    plain("vm.builtin.inspect.dtype_bits", tensor_properties::dtype_bits),
    plain("vm.builtin.inspect.dtype_code", tensor_properties::dtype_code),
    plain("vm.builtin.inspect.dtype_lanes", tensor_properties::dtype_lanes),
    plain("vm.builtin.inspect.elem_offset", tensor_properties::elem_offset),
    plain("vm.builtin.inspect.ndim", tensor_properties::ndim),
    plain("vm.builtin.inspect.shape_i", tensor_properties::shape_i),
    plain("vm.builtin.inspect.stride_i", tensor_properties::stride_i),
    special("vm.builtin.invoke_closure", BuiltinKind::Closure),
    special("vm.builtin.invoke_closure_tail", BuiltinKind::TailClosure),
    special("vm.builtin.invoke_pure_closure", BuiltinKind::Closure),
    plain("vm.builtin.item", scalar_builtins::item),
    plain("vm.builtin.kill_object", tensors_and_tuples::none),
    plain("vm.builtin.load_shape", shape_heap::load_shape),
    plain("vm.builtin.make_closure", tensors_and_tuples::make_closure),
    plain("vm.builtin.make_prim_value", shape_heap::make_prim_value),
    plain("vm.builtin.make_shape", shape_heap::make_shape),
    plain("vm.builtin.make_tuple", tensors_and_tuples::make_tuple),
    plain("vm.builtin.match_prim_value", shape_heap::match_prim_value),
    plain("vm.builtin.match_shape", shape_heap::match_shape),
    plain("vm.builtin.nonzero", nonzero::nonzero),
    plain("vm.builtin.null_value", tensors_and_tuples::none),
    plain("vm.builtin.print", print_and_assert::print),
    plain("vm.builtin.read_if_cond", tensors_and_tuples::read_if_cond),
    plain("vm.builtin.reshape", tensors_and_tuples::reshape),
    plain("vm.builtin.shape_of", shape_heap::shape_of),
    plain("vm.builtin.store_shape", shape_heap::store_shape),
    plain("vm.builtin.tensor_to_shape", shape_heap::tensor_to_shape),
    plain("vm.builtin.tensor_view", tensor_properties::tensor_view),
    plain("vm.builtin.to_device", tensors_and_tuples::identity),
    plain("vm.builtin.trip_count", scalar_builtins::trip_count),
    plain("vm.builtin.tuple_getitem", tensors_and_tuples::tuple_getitem),
    plain("vm.builtin.unique", unique::unique),
];

/// Finds the builtin `name`; `None` if there is no such builtin.
pub(crate) fn find_builtin(name: &str) -> Option<&'static Builtin> {
    TABLE.binary_search_by(|row| row.name.cmp(name)).ok().map(|i| &TABLE[i])
}

/// Returns the names of all builtins, sorted.
pub fn builtin_names() -> impl ExactSizeIterator<Item = &'static str> {
    TABLE.iter().map(|row| row.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_builtins_that_the_executable_format_declares() {
        assert!(builtin_names().is_sorted());
        assert!(builtin_names().eq(pliant_exec::BUILTINS.iter().map(|b| b.name)));
    }
}
