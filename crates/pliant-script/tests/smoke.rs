//! First programs.

use pliant_diag::Diagnostic;
use pliant_ir::print::{PrintOptions, print_module};
use pliant_script::parse_module;

fn parse(text: &str) -> String {
    let ops = pliant_ops::registry();
    match parse_module(text, ops) {
        Ok(m) => print_module(&m, ops, &PrintOptions::default()),
        Err(errors) => errors.iter().map(Diagnostic::to_string).collect::<Vec<_>>().join("\n"),
    }
}

#[test]
fn simple() {
    let text = r#"
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), dtype="float32"), y: R.Tensor(("n", 4), dtype="float32")) -> R.Tensor(("n", 4), dtype="float32"):
        n = T.int64()
        with R.dataflow():
            lv: R.Tensor((n, 4), dtype="float32") = R.add(x, y)
            lv1 = R.multiply(lv, R.const(2.0, "float32")) + x
            gv = R.exp(lv1 * 2.0)
            R.output(gv)
        return gv
"#;
    let out = parse(text);
    println!("{out}");
    assert_eq!(parse(&out), out);
}
