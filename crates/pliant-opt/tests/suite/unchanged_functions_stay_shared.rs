//! Tests that a pass that changes nothing returns the same function objects, so that they stay shared between modules.

use std::sync::Arc;

use pliant_ir::IRModule;
use pliant_pass::PassContext;

const SOURCE: &str = r#"
from pliant.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @R.function(private=True)
    def shared(a: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        return R.exp(a)

    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        cls = Module
        with R.dataflow():
            lv = R.sin(x)
            gv = R.add(lv, x)
            R.output(gv)
        if c:
            r = cls.shared(gv)
        else:
            r = R.cos(gv)
        return r
"#;

#[test]
fn passes_with_nothing_to_do_keep_all_function_objects() {
    let ctx = PassContext::new(pliant_ops::registry());
    let module = pliant_script::parse_module(SOURCE, pliant_ops::registry());
    let mut module: IRModule = module.expect("the script is well-formed");
    // The module must be in a canonical form, in which the results of branches are not renamed.
    for name in ["Normalize", "CanonicalizeBindings"] {
        let pass = pliant_opt::passes::find(name).expect("the pass is in the table");
        module = (pass.make)().run(module, &ctx).expect("the pass runs");
    }
    let passes = [
        "Normalize",
        "CanonicalizeBindings",
        "EliminateCommonSubexpr",
        "DeadCodeElimination",
        "FoldConstant",
        "RemoveRedundantReshape",
        "ConvertToDataflow",
        "TopologicalSort",
        "RemoveUnusedParameters",
        "RemoveUnusedOutputs",
        "ExpandTupleArguments",
        "LiftTransformParams",
        "BundleModelParams",
        "NormalizeGlobalVar",
        "EliminateUnused",
    ];
    for name in passes {
        let pass = pliant_opt::passes::find(name).expect("the pass is in the table");
        let after = (pass.make)().run(module.clone(), &ctx).expect("the pass runs");
        assert_eq!(after.functions.len(), module.functions.len(), "{name}");
        for (func, old) in module.relax_funcs() {
            let new = after.get(func).and_then(|f| f.as_relax()).expect("it is still there");
            assert!(Arc::ptr_eq(old, new), "{name} copied '{func}'");
        }
    }
}
