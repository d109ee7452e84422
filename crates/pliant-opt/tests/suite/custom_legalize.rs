//! Tests of LegalizeOps with functions that the user provides: their results, their errors, and operators that are skipped.

use std::sync::Arc;

use pliant_ir::print::{PrintOptions, print_module};
use pliant_ir::verify::verify_module;
use pliant_ir::{Attrs, IRModule, Op};
use pliant_ops::{LegalizeError, te};
use pliant_opt::lower::legalize_ops::{CustomLegalize, LegalizeOps};
use pliant_pass::{ModulePass, PassContext, PassError};

const PROGRAM: &str = "
from pliant.script import ir as I, relax as R, tir as T
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((\"n\", 4), \"float32\")) -> R.Tensor((\"n\", 4), \"float32\"):
        with R.dataflow():
            y = R.exp(x)
            z = R.add(y, x)
            R.output(z)
        return z
";

fn program() -> IRModule {
    pliant_script::parse_module(PROGRAM, pliant_ops::registry()).expect("the program parses")
}

fn run(pass: &LegalizeOps) -> Result<String, PassError> {
    let ctx = PassContext::new(pliant_ops::registry());
    let module = pass.apply(program(), &ctx)?;
    let found = verify_module(&module, pliant_ops::registry());
    assert!(found.is_empty(), "{found:?}");
    Ok(print_module(&module, pliant_ops::registry(), &PrintOptions::complete()))
}

fn with(op: &str, custom: CustomLegalize) -> LegalizeOps {
    let mut pass = LegalizeOps::default();
    pass.custom.insert(op.into(), custom);
    pass
}

#[test]
fn a_custom_legalization_can_return_a_tensor_expression() {
    let twice: CustomLegalize = Arc::new(|call| {
        let args = call.args.to_vec();
        call.call_te("twice", &args, |t| {
            let shape = t[0].shape().to_vec();
            let (x, two) = (t[0].clone(), te::float(2.0));
            Ok(vec![te::compute(shape, "twice", |i| {
                te::binary(te::BinOp::Mul, &x.at(i), &te::cast(&two, x.dtype()))
            })])
        })
    });
    let text = run(&with("relax.exp", twice)).expect("it is legalized");
    assert!(text.contains("R.call_tir(cls.twice, (x,)"), "{text}");
    assert!(text.contains("cls.add") && !text.contains("T.exp"), "{text}");
}

#[test]
fn operators_in_custom_results_are_legalized_by_default() {
    let by_parts: CustomLegalize = Arc::new(|call| {
        let half = call.call_op(Op::new("relax.negative"), &[call.args[0]], Attrs::default())?;
        let half = call.emit(half);
        call.call_op(Op::new("relax.add"), &[half, call.args[1]], Attrs::default())
    });
    let text = run(&with("relax.add", by_parts)).expect("it is legalized");
    assert!(text.contains("cls.negative") && text.contains("cls.add"), "{text}");
}

#[test]
fn skipped_operators_stay_unchanged() {
    let mut pass = LegalizeOps::default();
    pass.skip.insert("relax.add".into());
    let text = run(&pass).expect("it is legalized");
    assert!(text.contains("R.add(y, x)") && text.contains("cls.exp"), "{text}");
}

#[test]
fn errors_of_custom_legalizations_are_reported() {
    let refuse: CustomLegalize = Arc::new(|_| Err(LegalizeError::new("no exponentials today")));
    let error = run(&with("relax.exp", refuse)).expect_err("it is refused");
    assert!(error.to_string().contains("no exponentials today"), "{error}");
    let other: CustomLegalize = Arc::new(|call| {
        let args = call.args.to_vec();
        call.call_te("wrong", &args, |t| {
            let x = t[0].clone();
            Ok(vec![te::compute(vec![te::int(3)], "wrong", |_| x.at(&[te::int(0), te::int(0)]))])
        })
    });
    let error = run(&with("relax.exp", other)).expect_err("the type is wrong").to_string();
    assert!(error.contains("legalization of relax.exp returns"), "{error}");
}
