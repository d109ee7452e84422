//! Compares the result of every operator with plain formulas, at sizes 0, 1, 2, 3 and 7. Each call is made twice: with constant
//! dims, and with a symbol for every size other than 1.

mod data_dependent_shapes;
mod data_movement;
mod detection_and_recurrent;
mod elementwise;
mod expected_arrays;
mod gather_and_scatter;
mod matmul_and_reductions;
mod operator_call_harness;
mod scans_and_sorts;

use data_dependent_shapes::{BASE, SET};
use data_movement::{CREATE, INDEX, MANIPULATE};
use detection_and_recurrent::{RECURRENT, VISION};
use elementwise::{BINARY, UNARY};
use gather_and_scatter::{INDEXED, REARRANGE};
use matmul_and_reductions::{LINEAR_ALGEBRA, NN, STATISTICAL};
use operator_call_harness::Case;
use pliant_ops::registry;
use scans_and_sorts::ORDERED;

fn run_cases(cases: &[Case]) {
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
                run_cases($cases);
            }
        )*

        /// Checks that every operator name in the test cases is declared. The Python tests check
        /// the converse, that every declared operator has a test case.
        #[test]
        fn all_cases_test_existing_operators() {
            let known: Vec<&str> = registry().decls().map(|d| d.name).collect();
            for (op, _) in [$($cases),*].concat() {
                assert!(known.contains(&op), "{op} is not declared");
            }
        }
    };
}

groups! {
    base_operators = BASE;
    indexed_operators = INDEXED;
    rearranging_operators = REARRANGE;
    ordered_operators = ORDERED;
    vision_operators = VISION;
    recurrent_operators = RECURRENT;
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
