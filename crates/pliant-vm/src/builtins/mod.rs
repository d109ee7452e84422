//! The builtins: one table of all; one file per group.

mod check;
mod data;
mod shape;

use crate::args::Args;
use crate::{Value, VmError};

/// A builtin's code.
pub(crate) type BuiltinFn = fn(Args<'_>) -> Result<Value, VmError>;

/// A builtin that is called directly.
#[derive(Clone, Copy)]
pub(crate) struct Builtin {
    pub(crate) name: &'static str,
    pub(crate) function: BuiltinFn,
}

/// How a builtin is executed.
#[derive(Clone, Copy)]
pub(crate) enum BuiltinKind {
    /// It needs nothing but its operands.
    Plain(BuiltinFn),
    /// The machine calls a closure.
    Closure,
    /// The machine calls a kernel given as operand.
    KernelDyn,
}

use BuiltinKind::Plain;

/// Every builtin, sorted by name; `pliant_exec::BUILTINS` has their arities.
const TABLE: &[(&str, BuiltinKind)] = &[
    ("vm.builtin.alloc_shape_heap", Plain(shape::alloc_shape_heap)),
    ("vm.builtin.alloc_storage", Plain(data::alloc_storage)),
    ("vm.builtin.alloc_tensor", Plain(data::alloc_tensor)),
    ("vm.builtin.call_tir_dyn", BuiltinKind::KernelDyn),
    ("vm.builtin.check_func_info", Plain(check::func_info)),
    ("vm.builtin.check_prim_value_info", Plain(check::prim_value_info)),
    ("vm.builtin.check_shape_info", Plain(check::shape_info)),
    ("vm.builtin.check_tensor_info", Plain(check::tensor_info)),
    ("vm.builtin.check_tuple_info", Plain(check::tuple_info)),
    ("vm.builtin.copy", Plain(data::identity)),
    ("vm.builtin.debug_print", Plain(data::debug_print)),
    ("vm.builtin.invoke_closure", BuiltinKind::Closure),
    ("vm.builtin.invoke_pure_closure", BuiltinKind::Closure),
    ("vm.builtin.kill_object", Plain(data::nothing)),
    ("vm.builtin.make_closure", Plain(data::make_closure)),
    ("vm.builtin.make_prim_value", Plain(shape::make_prim_value)),
    ("vm.builtin.make_shape", Plain(shape::make_shape)),
    ("vm.builtin.make_tuple", Plain(data::make_tuple)),
    ("vm.builtin.match_prim_value", Plain(shape::match_prim_value)),
    ("vm.builtin.match_shape", Plain(shape::match_shape)),
    ("vm.builtin.null_value", Plain(data::nothing)),
    ("vm.builtin.read_if_cond", Plain(data::read_if_cond)),
    ("vm.builtin.reshape", Plain(data::reshape)),
    ("vm.builtin.shape_of", Plain(shape::shape_of)),
    ("vm.builtin.tensor_to_shape", Plain(shape::tensor_to_shape)),
    ("vm.builtin.to_device", Plain(data::identity)),
    ("vm.builtin.tuple_getitem", Plain(data::tuple_getitem)),
];

/// The builtin `name`, with its name as it stands in the table.
pub(crate) fn find_builtin(name: &str) -> Option<(&'static str, BuiltinKind)> {
    TABLE.binary_search_by(|row| row.0.cmp(name)).ok().map(|i| TABLE[i])
}

/// The names of all builtins, sorted.
pub fn builtin_names() -> impl ExactSizeIterator<Item = &'static str> {
    TABLE.iter().map(|row| row.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_agrees_with_the_arities() {
        assert!(builtin_names().is_sorted());
        assert!(builtin_names().eq(pliant_exec::BUILTINS.iter().map(|b| b.name)));
    }
}
