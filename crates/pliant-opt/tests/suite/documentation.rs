//! The examples in the passes' documentation are true: each `# Before` that is a whole program (it begins with `@` and
//! leaves nothing out with `...`) becomes
//! its `# After` under the pass, a second time changes nothing, and what comes out is well-formed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pliant_ir::equal::structural_equal;
use pliant_ir::print::{PrintOptions, print_module};
use pliant_ir::relax::TypeData;
use pliant_ir::verify::verify_module;
use pliant_ir::{DType, IRModule};
use pliant_opt::params::bind_params::{BindParams, ParamKey, ParamValue};
use pliant_opt::params::bind_symbolic_vars::BindSymbolicVars;
use pliant_opt::params::update_param_struct_info::UpdateParamStructInfo;
use pliant_pass::{ModulePass, PassContext};
use pliant_tensor::Tensor;

/// Passes that take arguments, as their examples use them. The others come from the table of passes.
fn with_arguments(stem: &str) -> Option<Box<dyn ModulePass>> {
    Some(match stem {
        "bind_params" => {
            let ones = Tensor::from_slice(&[2], &[1.0f32, 2.0]).expect("two elements");
            let params = vec![(ParamKey::Name("w".into()), ParamValue::Tensor(ones))];
            Box::new(BindParams { func_name: "main".into(), params })
        }
        "bind_symbolic_vars" => Box::new(BindSymbolicVars {
            binding_map: vec![("m".into(), 4.into())],
            func_name: None,
        }),
        "update_param_struct_info" => Box::new(UpdateParamStructInfo {
            sinfo_func: Arc::new(|_, f| {
                let eight = f.syms.int(8);
                let known = f.syms.vars().find(|&v| f.syms.name(v) == "n");
                let n = known.unwrap_or_else(|| f.fresh_sym("n"));
                let n = f.syms.var(n);
                let ty = f.intern(TypeData::tensor(vec![n, eight], DType::Float32));
                let x = f.params().iter().copied().find(|&p| &*f.var(p).name == "x");
                Ok(x.map(|x| (x, ty)).into_iter().collect())
            }),
        }),
        _ => return None,
    })
}

/// The first block of code under a heading of a file's documentation.
fn example(text: &str, heading: &str) -> Option<String> {
    let doc = text.lines().map_while(|line| line.strip_prefix("//!"));
    let mut lines = doc.map(|line| line.strip_prefix(' ').unwrap_or(line));
    lines.find(|line| *line == heading)?;
    let section: Vec<&str> = lines.take_while(|line| !line.starts_with("# ")).collect();
    let from = section.iter().position(|line| *line == "```python")? + 1;
    let to = from + section[from..].iter().position(|line| *line == "```")?;
    Some(section[from..to].join("\n"))
}

/// The script of some functions, or of a module, as a module.
fn parse(functions: &str) -> Result<IRModule, String> {
    let mut text = String::from("from pliant.script import ir as I, relax as R, tir as T\n");
    if functions.starts_with("@I.ir_module") {
        text.push_str(functions);
    } else {
        text.push_str("@I.ir_module\nclass Module:\n");
        for line in functions.lines() {
            text.push_str(&format!("    {line}\n"));
        }
    }
    pliant_script::parse_module(&text, pliant_ops::registry()).map_err(|list| {
        let list: Vec<String> = list.iter().map(|d| d.to_string()).collect();
        format!("{}\n{text}", list.join("\n"))
    })
}

fn print(module: &IRModule) -> String {
    print_module(module, pliant_ops::registry(), &PrintOptions::complete())
}

/// Whether the file has an example that is a program; it is run.
fn check(stem: &str, text: &str) -> Result<bool, String> {
    let (Some(before), Some(after)) = (example(text, "# Before"), example(text, "# After")) else {
        return Ok(false);
    };
    let name = stem.replace('_', "");
    let pass =
        with_arguments(stem).or_else(|| pliant_opt::passes::find(&name).map(|info| (info.make)()));
    let program = before.starts_with('@') && !format!("{before}{after}").contains("...");
    let Some(pass) = pass.filter(|_| program) else { return Ok(false) };
    let ctx = PassContext::new(pliant_ops::registry());
    let run = |module: &IRModule| {
        pass.apply(module.clone(), &ctx).map_err(|e| format!("the pass fails: {e}"))
    };
    let made = run(&parse(&before)?)?;
    let expected = parse(&after)?;
    structural_equal(&made, &expected)
        .map_err(|d| format!("{d}\nthe pass makes\n{}", print(&made)))?;
    if let Some(d) = verify_module(&made, pliant_ops::registry()).iter().find(|d| d.is_error()) {
        return Err(format!("the result is not well-formed: {d}\n{}", print(&made)));
    }
    if stem.starts_with("bind_") {
        // What is bound once is no parameter any more.
        return Ok(true);
    }
    let again = run(&made)?;
    for (name, func) in again.relax_funcs() {
        let old = made.get(name).and_then(|f| f.as_relax());
        if !old.is_some_and(|old| Arc::ptr_eq(old, func)) {
            structural_equal(&again, &made).map_err(|d| format!("a second run changes {d}"))?;
        }
    }
    Ok(true)
}

fn sources(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("the sources can be listed") {
        let path = entry.expect("the sources can be listed").path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

#[test]
fn examples_in_the_documentation_are_true() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    files.sort();
    let (mut ran, mut failed) = (Vec::new(), Vec::new());
    for file in files {
        let text = std::fs::read_to_string(&file).expect("the sources can be read");
        let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        // A pass that is a folder is documented in its `mod.rs`.
        let stem = match (stem.as_str(), file.parent().and_then(Path::file_name)) {
            ("mod", Some(folder)) => folder.to_string_lossy().into_owned(),
            _ => stem,
        };
        match check(&stem, &text) {
            Ok(true) => ran.push(stem),
            Ok(false) => {}
            Err(why) => failed.push(format!("---- {stem} ----\n{why}")),
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    for stem in MUST_RUN {
        assert!(ran.iter().any(|s| s == stem), "the example of {stem} is gone; these ran: {ran:?}");
    }
}

/// Passes whose examples are programs and have to stay so.
const MUST_RUN: &[&str] = &[
    "adjust_matmul_order",
    "bind_params",
    "bind_symbolic_vars",
    "bundle_model_params",
    "canonicalize_bindings",
    "combine_parallel_matmul",
    "convert_to_dataflow",
    "dataflow_use_inplace_calls",
    "dead_code_elimination",
    "eliminate_common_subexpr",
    "expand_tuple_arguments",
    "expand_matmul_of_sum",
    "fold_constant",
    "fuse_transpose_matmul",
    "inline_private_functions",
    "lambda_lift",
    "lift_transform_params",
    "normalize_global_var",
    "remove_redundant_reshape",
    "remove_unused_outputs",
    "remove_unused_parameters",
    "reorder_permute_dims_after_concat",
    "reorder_take_after_matmul",
    "topological_sort",
    "update_param_struct_info",
];
