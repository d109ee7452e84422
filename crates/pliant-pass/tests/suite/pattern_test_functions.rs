//! Functions that parse and print modules for the tests of patterns and rewrite rules.

use std::sync::Arc;

use pliant_diag::FileId;
use pliant_ir::print::{PrintOptions, print_module};
use pliant_ir::relax::visit::bindings;
use pliant_ir::relax::{Expr, Function};
use pliant_ir::verify::verify_module;
use pliant_ir::{BaseFunc, IRModule, Op, OpRegistry};
use pliant_pass::pattern::{Pattern, is_op};
use pliant_script::{NoHost, parse};

pub fn ops() -> &'static dyn OpRegistry {
    pliant_ops::registry()
}

/// Parses the functions of a script.
pub fn module(text: &str) -> IRModule {
    let (parsed, problems) = parse(text, FileId(0), &NoHost, ops());
    assert!(problems.is_empty(), "{problems:?}");
    parsed.expect("a script without problems is parsed").into_module()
}

/// Parses the function `main` of a script.
pub fn main_of(text: &str) -> Function {
    let module = module(text);
    let func = module.get("main").and_then(BaseFunc::as_relax).expect("there is a main");
    (**func).clone()
}

/// Parses a function `main` with the float32 parameters `x: (n, 4)` and `y: (n, 4)`, a dataflow block with the given lines, and
/// the given result.
pub fn flow(lines: &str, result: &str) -> Function {
    let mut text = String::from(
        "@R.function\ndef main(x: R.Tensor((\"n\", 4), \"float32\"), y: R.Tensor((\"n\", 4), \"float32\")):\n    with R.dataflow():\n",
    );
    for line in lines.trim().lines() {
        text.push_str(&format!("        {}\n", line.trim()));
    }
    text.push_str(&format!("        R.output({result})\n    return {result}\n"));
    main_of(&text)
}

/// Returns the printed bindings of a function, after checking that the function is well-formed.
pub fn text(func: &Function) -> String {
    let mut module = IRModule::new();
    module.insert("main", BaseFunc::Relax(Arc::new(func.clone())));
    let problems = verify_module(&module, ops());
    let printed = print_module(&module, ops(), &PrintOptions::default());
    assert!(problems.is_empty(), "{problems:?}\n{printed}");
    let keep = |l: &&str| l.contains(" = ") && !l.contains("metadata") && !l.contains("T.int64()");
    let line = |l: &str| {
        let (left, right) = l.trim().split_once(" = ").expect("it has a sign");
        let name = left.split(':').next().unwrap_or(left);
        format!("{name} = {right}")
    };
    printed.lines().filter(keep).map(line).collect::<Vec<_>>().join("\n")
}

/// Returns the expression that is bound to the variable with the given name.
pub fn value(func: &Function, name: &str) -> Expr {
    let found = bindings(func).into_iter().find(|(_, b)| &*func.var(b.var).name == name);
    found.expect("the variable is bound").1.value
}

pub fn op(name: &'static str) -> Pattern {
    is_op(Op::new(name))
}
