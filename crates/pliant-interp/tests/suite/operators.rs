//! The value of every operator, against plain formulas, at sizes 0, 1, 2, 3 and 7. Each call is made twice: with
//! constant dims, and with a symbol for every size other than 1.

mod dynamic;
mod elementwise;
mod harness;
mod nd;
mod placement;
mod sums;

use dynamic::{BASE, SET};
use elementwise::{BINARY, UNARY};
use harness::Case;
use placement::{CREATE, INDEX, MANIPULATE};
use pliant_ops::registry;
use sums::{LINEAR_ALGEBRA, NN, STATISTICAL};

/// Operators that are calls or effects: the tests of graph functions run them.
const NO_VALUE: &[&str] = &[
    "relax.call_tir",
    "relax.call_tir_inplace",
    "relax.call_dps_packed",
    "relax.call_pure_packed",
    "relax.call_inplace_packed",
    "relax.call_builtin_with_ctx",
    "relax.make_closure",
    "relax.invoke_closure",
    "relax.invoke_pure_closure",
    "relax.while_loop",
    "relax.null_value",
    "relax.print",
    "relax.assert_op",
    "relax.builtin.alloc_tensor",
    "relax.memory.alloc_storage",
    "relax.memory.alloc_tensor",
    "relax.memory.kill_storage",
    "relax.memory.kill_tensor",
    "relax.vm.alloc_storage",
    "relax.vm.alloc_tensor",
    "relax.vm.alloc_shape_heap",
    "relax.vm.store_shape",
    "relax.vm.load_shape",
    "relax.vm.kill_object",
    "relax.vm.call_tir_dyn",
];

/// The text of the cases that the Python tests run, in the interpreter too: the operators in it need none here.
fn python_cases() -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/python/operators/cases");
    let files = std::fs::read_dir(folder).expect("the folder of cases");
    files.map(|f| std::fs::read_to_string(f.unwrap().path()).unwrap_or_default()).collect()
}

fn all(cases: &[Case]) {
    let mut failed = Vec::new();
    for (op, case) in cases {
        if std::panic::catch_unwind(case).is_err() {
            failed.push(*op);
        }
    }
    assert!(failed.is_empty(), "wrong: {}", failed.join(", "));
}

macro_rules! groups {
    ($($test:ident = $cases:ident;)*) => {
        $(
            #[test]
            fn $test() {
                all($cases);
            }
        )*

        #[test]
        fn every_operator_has_a_case() {
            let known: Vec<&str> = [$($cases),*].concat().iter().map(|c| c.0).collect();
            let elsewhere = python_cases();
            let missing: Vec<&str> = registry()
                .decls()
                .map(|d| d.name)
                .filter(|n| !known.contains(n) && !NO_VALUE.contains(n))
                .filter(|n| {
                    let short = n.trim_start_matches("relax.");
                    !elsewhere.contains(&format!("R.{short}("))
                        && !elsewhere.contains(&format!("\"{short}\""))
                })
                .collect();
            assert!(missing.is_empty(), "without a case: {}", missing.join(", "));
        }
    };
}

groups! {
    base_operators = BASE;
    unary_operators = UNARY;
    binary_operators = BINARY;
    create_operators = CREATE;
    index_operators = INDEX;
    linear_algebra_operators = LINEAR_ALGEBRA;
    manipulate_operators = MANIPULATE;
    nn_operators = NN;
    set_operators = SET;
    statistical_operators = STATISTICAL;
}
