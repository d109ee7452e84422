//! Tests of the module after each stage of a compilation: it can be printed and parsed back, it passes the verifier, and it can
//! be built. A build applies all passes again, which leave already lowered code unchanged.

use crate::test_helpers::{HEADER, iota, parse, run};
use pliant::{CompileOptions, Model};

const PROGRAM: &str = r#"
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "m"), dtype="float32"), y: R.Tensor(("n * m",), dtype="float32")) -> R.Tensor(("n * m",), dtype="float32"):
        n = T.int64()
        m = T.int64()
        with R.dataflow():
            lv = R.reshape(x, R.shape([n * m]))
            lv1 = R.add(lv, y)
            lv2 = R.exp(lv1)
            lv3 = R.multiply(lv2, y)
            lv4 = R.add(lv3, lv3)
            gv = R.negative(lv4)
            R.output(gv)
        return gv
"#;

#[test]
fn every_stage_parses_back_and_builds() {
    let args = [iota(&[2, 3]), iota(&[6])];
    let expected = run(&Model::compile(parse(PROGRAM), &CompileOptions::default()).unwrap(), &args);
    let pipeline = pliant_opt::pipeline("default").expect("the default pipeline exists");
    let ctx = pliant::pass_context(&CompileOptions::default());
    let mut module = parse(PROGRAM);
    for pass in pipeline.passes() {
        module = pass.apply(module, &ctx).unwrap_or_else(|e| panic!("{}: {e}", pass.name()));
        let text = pliant::print(&module);
        let name = pass.name();
        let reparsed = match pliant::parse(name, &text) {
            Ok(script) => script.module,
            Err((error, sources)) => panic!("after {name}: {}\n{text}", error.render(&sources)),
        };
        assert_eq!(pliant::print(&reparsed), text, "after {name}");
        pliant::verify(&reparsed).unwrap_or_else(|e| panic!("after {name}: {e}\n{text}"));
        let model = Model::compile(reparsed, &CompileOptions::default())
            .unwrap_or_else(|e| panic!("building the module after {name}: {e}\n{text}"));
        assert_eq!(run(&model, &args), expected, "after {name}");
    }
}

#[test]
fn optimization_levels_beyond_3_are_rejected() {
    let options = |level| CompileOptions { opt_level: Some(level), ..CompileOptions::default() };
    for level in 0..=3 {
        assert!(Model::compile(parse(PROGRAM), &options(level)).is_ok(), "level {level}");
    }
    let error = Model::compile(parse(PROGRAM), &options(99)).err().expect("no such level");
    let text = error.to_string();
    assert!(text.contains("the option `opt_level` must be from 0 to 3, but is 99"), "{text}");
}

#[test]
fn passes_are_idempotent() {
    let pipeline = pliant_opt::pipeline("default").expect("the default pipeline exists");
    let ctx = pliant::pass_context(&CompileOptions::default());
    let mut module = parse(PROGRAM);
    for pass in pipeline.passes() {
        module = pass.apply(module, &ctx).unwrap();
        let once = pliant::print(&module);
        module = pass.apply(module, &ctx).unwrap();
        assert_eq!(pliant::print(&module), once, "{} twice", pass.name());
    }
}

#[test]
fn stage_text_returns_every_kind_of_stage() {
    for stage in ["input", "LegalizeOps", "VMShapeLower", "loops", "bytecode"] {
        let text = pliant::stage_text(parse(PROGRAM), stage, true)
            .unwrap_or_else(|e| panic!("{stage}: {e}"));
        assert!(!text.is_empty(), "{stage}");
    }
    let message = pliant::stage_text(parse(PROGRAM), "nonsense", true).unwrap_err().to_string();
    assert!(message.contains("the stages are input, loops, bytecode"), "{message}");
    let _ = HEADER;
}
