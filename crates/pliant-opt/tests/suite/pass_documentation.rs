//! Checks the examples in the documentation of passes: the pass turns each `# Before` into its `# After`, a second run changes
//! nothing, and the result is well-formed. In `# After`, `...` stands for any text in a line, and a line of `...` stands for any
//! lines. The rest is compared with the printed module.
//!
//! `docs/reference/passes.md` is generated from this documentation and the table of passes. With `PLIANT_BLESS=1`, a test writes it.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pliant_ir::print::{PrintOptions, print_module};
use pliant_ir::relax::TypeData;
use pliant_ir::structural_equality::structural_equal;
use pliant_ir::verify::verify_module;
use pliant_ir::{DType, IRModule};
use pliant_opt::differentiate::gradient::Gradient;
use pliant_opt::offload::offload_kernels::OffloadKernels;
use pliant_opt::offload::offload_rule::Stage;
use pliant_opt::offload::rules::rules;
use pliant_opt::params::bind_params::{BindParams, ParamKey, ParamValue};
use pliant_opt::params::bind_symbolic_vars::BindSymbolicVars;
use pliant_opt::params::update_param_struct_info::UpdateParamStructInfo;
use pliant_opt::pass_contracts::{
    Gate, INITIAL, INVALIDATED_BY_ALLOC_TENSOR, INVALIDATED_BY_CALL_TIR, INVALIDATED_BY_OPERATOR,
    Phase, Properties, Property,
};
use pliant_opt::pipelines;
use pliant_pass::{ModulePass, PassContext};
use pliant_tensor::Tensor;

/// Creates a pass that needs arguments, with the arguments that its example uses. `None` for other passes, which come from the
/// table of passes.
fn pass_with_arguments(stem: &str) -> Option<Box<dyn ModulePass>> {
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
        "gradient" => Box::new(Gradient {
            func_name: "main".into(),
            require_grads: None,
            target_index: 0,
            warn: None,
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

/// Returns the first code block under a heading in the documentation of a file.
fn example(text: &str, heading: &str) -> Option<String> {
    let doc = text.lines().map_while(|line| line.strip_prefix("//!"));
    let mut lines = doc.map(|line| line.strip_prefix(' ').unwrap_or(line));
    lines.find(|line| *line == heading)?;
    let section: Vec<&str> = lines.take_while(|line| !line.starts_with("# ")).collect();
    let from = section.iter().position(|line| *line == "```python")? + 1;
    let to = from + section[from..].iter().position(|line| *line == "```")?;
    Some(section[from..to].join("\n"))
}

/// Parses the script of a module, or of the functions of a module.
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

/// Creates the pass that applies only the offload rule with this name.
fn pass_of_rule(stem: &str) -> Option<OffloadKernels> {
    let rule = rules().into_iter().find(|rule| rule.name == stem)?;
    Some(OffloadKernels { stage: rule.stage, only: Some(vec![stem.to_string()]) })
}

/// Returns the pass or offload rule that a file with this stem implements, as (name, pass to run).
fn pass_of(stem: &str) -> Option<(String, Box<dyn ModulePass>)> {
    if let Some(pass) = pass_of_rule(stem) {
        return Some((stem.to_string(), Box::new(pass)));
    }
    let name = stem.replace('_', "");
    let pass = pass_with_arguments(stem)
        .or_else(|| pliant_opt::passes::find(&name).map(|info| (info.make)()))?;
    Some((pass.name().to_string(), pass))
}

/// Runs the example of a pass and compares the result.
fn check(stem: &str, text: &str, pass: &dyn ModulePass) -> Result<(), String> {
    let before = example(text, "# Before").ok_or("no example under `# Before`")?;
    let after = example(text, "# After").ok_or("no example under `# After`")?;
    let ctx = PassContext::new(pliant_ops::registry());
    let run = |module: &IRModule| {
        pass.apply(module.clone(), &ctx).map_err(|e| format!("the pass fails: {e}"))
    };
    let before = parse(&before)?;
    let result = run(&before)?;
    if structural_equal(&result, &before).is_ok() {
        return Err("the pass changes nothing in its example".into());
    }
    if after.contains("...") {
        let printed = print_module(&result, pliant_ops::registry(), &PrintOptions::default());
        matches_with_gaps(&printed, &after)
            .map_err(|line| format!("no line '{line}' in\n{printed}"))?;
    } else {
        structural_equal(&result, &parse(&after)?)
            .map_err(|d| format!("{d}\nthe pass makes\n{}", print(&result)))?;
    }
    if let Some(d) = verify_module(&result, pliant_ops::registry()).iter().find(|d| d.is_error()) {
        return Err(format!("the result is not well-formed: {d}\n{}", print(&result)));
    }
    if stem.starts_with("bind_") || stem == "gradient" {
        // A bound parameter no longer exists, so it cannot be bound twice. A second run of `Gradient` adds a function.
        return Ok(());
    }
    let again = run(&result)?;
    for (name, func) in again.relax_funcs() {
        let old = result.get(name).and_then(|f| f.as_relax());
        if !old.is_some_and(|old| Arc::ptr_eq(old, func)) {
            structural_equal(&again, &result).map_err(|d| format!("a second run changes {d}"))?;
        }
    }
    Ok(())
}

/// Compares a printed module with an expected text that may contain gaps (`...`).
///
/// # Errors
/// The first line that does not match.
fn matches_with_gaps(printed: &str, expected: &str) -> Result<(), String> {
    let lines = |text: &str| -> Vec<String> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.map(str::to_string).collect()
    };
    let (mut printed, expected) = (lines(printed), lines(expected));
    if !expected.iter().any(|line| line == "class Module:") {
        let class = printed.iter().position(|line| line == "class Module:");
        printed.drain(..=class.unwrap_or(0));
    }
    let (mut at, mut gap) = (0, false);
    for line in &expected {
        if line == "..." {
            gap = true;
            continue;
        }
        let last = if gap { printed.len() } else { printed.len().min(at + 1) };
        let found = (at..last).find(|&i| line_matches_with_gaps(&printed[i], line));
        (at, gap) = (found.ok_or_else(|| line.clone())? + 1, false);
    }
    if gap || at == printed.len() { Ok(()) } else { Err("(the end)".into()) }
}

/// Whether a line matches an expected line in which `...` stands for any text.
fn line_matches_with_gaps(printed: &str, expected: &str) -> bool {
    let mut parts = expected.split("...");
    let Some(mut rest) = parts.next().and_then(|start| printed.strip_prefix(start)) else {
        return false;
    };
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        let found = if parts.peek().is_none() {
            rest.ends_with(part).then(|| rest.len() - part.len())
        } else {
            rest.find(part)
        };
        match found {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.is_empty()
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

/// The documentation of a pass: its name, the path of its file from `src`, and the text of the file.
struct Documented {
    name: String,
    stem: String,
    path: String,
    text: String,
    pass: Box<dyn ModulePass>,
}

/// Collects the documentation of all passes and offload rules.
fn documented() -> Vec<Documented> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    files.sort();
    let mut found = Vec::new();
    for file in files {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        // A pass that is a folder is documented in its `mod.rs`.
        let stem = match (stem.as_str(), file.parent().and_then(Path::file_name)) {
            ("mod", Some(folder)) => folder.to_string_lossy().into_owned(),
            _ => stem,
        };
        let text = std::fs::read_to_string(&file).expect("the sources can be read");
        let Some((name, pass)) = pass_of(&stem).filter(|_| text.starts_with("//! # What it does"))
        else {
            continue;
        };
        let path = file.strip_prefix(&root).expect("the file is below the root");
        let path = path.to_string_lossy().replace('\\', "/");
        found.push(Documented { name, stem, path, text, pass });
    }
    found
}

/// Returns the name under which a pass is documented. All passes that apply offload rules share one file and its documentation.
fn documentation_of(name: &'static str) -> &'static str {
    let staged = Stage::ALL.iter().any(|stage| stage.pass() == name);
    if staged { Stage::Kernel.pass() } else { name }
}

/// Returns the names and phases of all passes.
fn all_passes() -> Vec<(&'static str, Phase)> {
    let table = pliant_opt::PASSES.iter().map(|p| (p.name, p.phase));
    let others = pliant_opt::passes::WITH_PARAMETERS.iter().map(|&(name, phase, _)| (name, phase));
    table.chain(others).collect()
}

#[test]
fn passes_turn_their_before_example_into_the_after_example() {
    let documented = documented();
    let mut failed = Vec::new();
    for d in &documented {
        if let Err(why) = check(&d.stem, &d.text, &*d.pass) {
            failed.push(format!("---- {} ----\n{why}", d.name));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    for rule in rules() {
        assert!(
            documented.iter().any(|d| d.name == rule.name),
            "no documentation of {}",
            rule.name
        );
    }
    for (name, phase) in all_passes() {
        let d = documented.iter().find(|d| d.name == documentation_of(name));
        let d = d.unwrap_or_else(|| panic!("the documentation of {name} has no examples"));
        assert!(d.path.starts_with(phase.name()), "{name} lies in {}, not {phase:?}", d.path);
    }
}

#[test]
fn ellipses_in_examples_match_any_text() {
    let printed = "header\nclass Module:\n    a\n    f(1, 2, 3)\n\n    z\n";
    for expected in [
        "a\nf(1, 2, 3)\nz",
        "a\n...\nz",
        "...\nz",
        "a\nf(..., 3)\nz",
        "a\n...",
        "a\nf(..., 2, ...)\nz",
    ] {
        assert_eq!(matches_with_gaps(printed, expected), Ok(()), "{expected}");
    }
    for expected in
        ["a\nz", "a\nf(1, ...", "f(1, 2, 3)\nz", "a\n...\ny", "a\nf(...4...)\nz", "a\nf(1, 2, 3)"]
    {
        assert!(matches_with_gaps(printed, expected).is_err(), "{expected}");
    }
}

/// Returns the documentation of a file as Markdown, with links to Rust items as plain text. Omits the last section if it is
/// `# Files`, the table of the source files of a pass.
fn sections(text: &str) -> String {
    let mut out = String::new();
    let mut code = false;
    let lines = text.lines().map_while(|line| line.strip_prefix("//!"));
    for line in lines.take_while(|line| *line != " # Files") {
        let line = line.strip_prefix(' ').unwrap_or(line);
        code ^= line.starts_with("```");
        match line.strip_prefix("# ") {
            // The introduction has no heading.
            Some("What it does") if !code => continue,
            Some(heading) if !code => writeln!(out, "**{heading}**\n"),
            // Code blocks marked as `python` in docs are run as user code.
            _ if line == "```python" => writeln!(out, "```py"),
            _ if code => writeln!(out, "{line}"),
            _ => writeln!(out, "{}", without_links(line)),
        }
        .expect("strings can be written");
    }
    out
}

/// Removes the targets of links from a line: [`Name`](crate::module) and [`Name`] become `Name`.
fn without_links(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("[`") {
        let Some((name, after)) = after.split_once("`]") else { break };
        write!(out, "{before}`{name}`").expect("strings can be written");
        rest = match after.strip_prefix('(').and_then(|address| address.split_once(')')) {
            Some((_, after)) => after,
            None => after,
        };
    }
    out + rest
}

fn property_list(properties: Properties) -> String {
    if properties == Properties::NONE {
        return "nothing".into();
    }
    let groups = [
        ("everything that lowering operators ensures", INVALIDATED_BY_OPERATOR),
        ("everything that lowering calls ensures", INVALIDATED_BY_CALL_TIR),
        ("everything that lowering memory ensures", INVALIDATED_BY_ALLOC_TENSOR),
    ];
    let group = groups.iter().find(|(_, group)| properties.includes(*group));
    let rest = group.map_or(properties, |(_, group)| properties.without(*group));
    let names = rest.iter().map(|p| format!("`{p:?}`"));
    group.iter().map(|(name, _)| name.to_string()).chain(names).collect::<Vec<_>>().join(", ")
}

/// The contents of `docs/reference/passes.md`.
fn page() -> Result<String, std::fmt::Error> {
    let mut page = String::from(
        "# Graph passes

This page is generated from the table of passes (`crates/pliant-opt/src/passes.rs`) and the documentation of each pass.
`pliant opt --passes=NAME file.py` runs a pass on a script, and `pliant opt --list` lists all, those on loop functions too. In
Python, a pass is `relax.transform.NAME()`. [Write a pass](../extend/pass.md) shows how.

A pass is safe on every module. *Requires* lists the properties that it needs for its full effect: if one of them does not hold,
the pass optimizes less. *Ensures* lists the properties that hold after it, *Invalidates* those that may no longer hold. Tests
check Pliant's own pipelines against these lists.
",
    );
    for name in ["default", "minimum"] {
        let steps = pipelines::steps(name).expect("the pipeline exists");
        let steps: Vec<String> =
            steps.iter().map(|p| format!("[{0}](#{1})", p.name, p.name.to_lowercase())).collect();
        writeln!(page, "\n**Pipeline `{name}`**: {}.", steps.join(", "))?;
    }
    page += "\n## Properties\n\n| property | meaning |\n|---|---|\n";
    for p in Property::ALL {
        let initial = if INITIAL.includes(Properties::of(&[*p])) { " Holds at first." } else { "" };
        writeln!(page, "| `{p:?}` | {}{initial} |", p.doc())?;
    }
    let groups = [
        (
            "Lowering operators",
            INVALIDATED_BY_OPERATOR.without(INVALIDATED_BY_CALL_TIR),
            ", and everything that lowering calls ensures",
        ),
        (
            "Lowering calls",
            INVALIDATED_BY_CALL_TIR.without(INVALIDATED_BY_ALLOC_TENSOR),
            ", and everything that lowering memory ensures",
        ),
        ("Lowering memory", INVALIDATED_BY_ALLOC_TENSOR, ""),
    ];
    page.push('\n');
    for (name, group, more) in groups {
        writeln!(page, "{name} ensures {}{more}.", property_names(group))?;
    }
    let documented = documented();
    for &phase in Phase::ALL {
        writeln!(page, "\n## {}\n\nThese passes {}.\n", phase.name(), phase.doc())?;
        let passes: Vec<&str> = all_passes().iter().filter(|p| p.1 == phase).map(|p| p.0).collect();
        page += "| pass | what it does |\n|---|---|\n";
        for name in &passes {
            writeln!(page, "| [{name}](#{}) | {} |", name.to_lowercase(), doc(name))?;
        }
        for name in passes {
            let d = documented.iter().find(|d| d.name == documentation_of(name));
            let d = d.unwrap_or_else(|| panic!("{name} is not documented"));
            write_pass(&mut page, name, d)?;
        }
    }
    page += "\n## Offload rules\n\n";
    page += "`pliant opt --list-rules` prints this table, with the rules that a program has registered.\n\n";
    page += "| rule | pass | kernel | replaces |\n|---|---|---|---|\n";
    for rule in rules() {
        let (name, pass, doc) = (&rule.name, rule.stage.pass(), &rule.doc);
        let kernel = rule.kernel.as_ref().map_or_else(String::new, |kernel| format!("`{kernel}`"));
        writeln!(page, "| [{name}](#rule-{name}) | {pass} | {kernel} | {doc} |")?;
    }
    for rule in rules() {
        let d = documented.iter().find(|d| d.name == rule.name).expect("rules are documented");
        writeln!(page, "\n### Rule {}\n\n{}", rule.name, sections(&d.text).trim_end())?;
    }
    Ok(page)
}

fn property_names(properties: Properties) -> String {
    properties.iter().map(|p| format!("`{p:?}`")).collect::<Vec<_>>().join(", ")
}

fn doc(name: &str) -> &'static str {
    let table = pliant_opt::passes::find(name).map(|p| p.doc);
    table.or_else(|| Some(pliant_opt::passes::with_parameters(name)?.2)).unwrap_or_default()
}

/// Returns the names of the pipelines that contain a pass.
fn pipelines_with(name: &str) -> String {
    let contains = |pipeline: &str| {
        pipelines::steps(pipeline).is_some_and(|steps| steps.iter().any(|step| step.name == name))
    };
    let names = pipelines::NAMES.iter().filter(|pipeline| contains(pipeline));
    let names: Vec<String> = names.map(|pipeline| format!("`{pipeline}`")).collect();
    match names.as_slice() {
        [] => "no pipeline, only when called".into(),
        [one] => format!("the pipeline {one}"),
        all => format!("the pipelines {}", all.join(", ")),
    }
}

fn write_pass(page: &mut String, name: &str, d: &Documented) -> std::fmt::Result {
    writeln!(page, "\n### {name}\n")?;
    writeln!(page, "| | |\n|---|---|\n| source | `crates/pliant-opt/src/{}` |", d.path)?;
    writeln!(page, "| runs in | {} |", pipelines_with(name))?;
    if let Some(info) = pliant_opt::passes::find(name) {
        if !info.aliases.is_empty() {
            writeln!(page, "| other names | {} |", info.aliases.join(", "))?;
        }
        writeln!(page, "| requires | {} |", property_list(info.requires))?;
        writeln!(page, "| ensures | {} |", property_list(info.ensures))?;
        writeln!(page, "| invalidates | {} |", property_list(info.invalidates))?;
        match info.gate {
            Gate::None => {}
            Gate::Kernels => writeln!(page, "| does nothing | with `kernels=\"off\"` |")?,
            Gate::OptLevel(level) => {
                writeln!(page, "| skipped | by pipelines below optimization level {level} |")?;
            }
        }
    } else {
        writeln!(page, "| parameters | required, so the command line cannot create the pass |")?;
    }
    if name != d.name {
        return writeln!(
            page,
            "\nSame as [{0}](#{1}), with the rules of its own stage.",
            d.name,
            d.name.to_lowercase()
        );
    }
    writeln!(page, "\n{}", sections(&d.text).trim_end())
}

#[test]
fn docs_passes_md_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/passes.md");
    let page = page().expect("strings can be written");
    if std::env::var_os("PLIANT_BLESS").is_some() {
        std::fs::write(&path, page).expect("the page is writable");
        return;
    }
    let current = std::fs::read_to_string(&path).unwrap_or_default();
    let bless = "PLIANT_BLESS=1 cargo test --package pliant-opt --test suite documentation";
    assert!(current == page, "docs/reference/passes.md is stale: {bless}");
}
