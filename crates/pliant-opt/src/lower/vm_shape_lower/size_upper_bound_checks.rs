//! Generates run-time checks of the upper bounds of sizes that a function declares (`tir_var_upper_bound`). A call with a greater
//! size fails with an error that names the size.

use pliant_ir::relax::type_lattice::type_syms;
use pliant_ir::relax::{Binding, Function};
use pliant_ir::{DType, SymVar};
use pliant_pass::binding_rewrites::Namer;

use crate::common::operators_after_lowering::{packed_call, unit_ty};
use crate::common::shapes_and_size_bounds::upper_bounds;

/// Creates the checks that a function's sizes are within the bounds that its attribute declares. The caller inserts them before
/// the function's body.
pub(super) fn bound_checks(func: &mut Function, name: &str, namer: &mut Namer) -> Vec<Binding> {
    let bounds = upper_bounds(func);
    let mut out = Vec::new();
    if bounds.is_empty() {
        return out;
    }
    let params = func.params().to_vec();
    let mut symbols: Vec<SymVar> =
        params.iter().flat_map(|&p| type_syms(func, func.var(p).ty)).collect();
    symbols.sort_unstable_by_key(|v| v.as_u32());
    symbols.dedup();
    for (symbol, bound) in bounds {
        let Some(&var) = symbols.iter().find(|&&v| func.syms.name(v) == &*symbol) else { continue };
        let (size, max_size) = (func.syms.var(var), func.syms.int(bound));
        let holds = func.syms.le(size, max_size);
        let text = format!(
            "{name}: the size {symbol} is {{}}, but its bound (tir_var_upper_bound) is {bound}"
        );
        let args = [
            func.int_value(holds, DType::Bool),
            func.str_value(&text),
            func.int_value(size, DType::Int64),
        ];
        let unit = unit_ty(func);
        let call = packed_call(func, "vm.builtin.assert_op", &args, unit);
        namer.bind(func, "_", call, &mut out);
    }
    out
}
