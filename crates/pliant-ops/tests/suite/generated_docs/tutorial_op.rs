//! The declaration that docs/extend/operator.md adds to `ops/binary.rs`.

use pliant_ops::op_declaration::{OpDecl, Pattern};
use pliant_ops::shared_operator_rules::{infer_broadcast_float, te_broadcast};
use pliant_ops::te;

/// A table that contains only the operator of the tutorial.
#[rustfmt::skip]
pub static DECLS: &[OpDecl] = &[
    OpDecl::new("relax.hypot", infer_broadcast_float, "sqrt(x1 * x1 + x2 * x2).")
        .operands(&["x1", "x2"])
        .te(Pattern::Broadcast, |ctx| te_broadcast(ctx, "T_hypot", |a, b| te::sqrt(&(a * a + b * b))))
        .numpy("hypot"),
];
