//! The value of every operator compared with plain formulas, at sizes 0, 1, 2, 3 and 7. Each call
//! is made twice: with constant dims, and with a symbol for every size other than 1.

mod boxes;
mod dynamic;
mod elementwise;
mod harness;
mod indexed;
mod nd;
mod ordered;
mod placement;
mod sums;

use boxes::{RECURRENT, VISION};
use dynamic::{BASE, SET};
use elementwise::{BINARY, UNARY};
use harness::Case;
use indexed::{INDEXED, REARRANGE};
use ordered::ORDERED;
use placement::{CREATE, INDEX, MANIPULATE};
use pliant_ops::registry;
use sums::{LINEAR_ALGEBRA, NN, STATISTICAL};

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

        /// The Python tests check that every operator has a case; theirs run in the
        /// interpreter, too.
        #[test]
        fn cases_name_operators() {
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
