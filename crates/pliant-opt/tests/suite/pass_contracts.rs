//! Checks the contracts in the table of passes on the programs of the filetests: the properties that a pass ensures hold after it,
//! and the properties that it does not invalidate still hold.
//!
//! A property is considered to hold if the pass that ensures it changes nothing.

use std::path::Path;
use std::sync::Arc;

use pliant_ir::relax::visit::{bindings, operand_vars};
use pliant_ir::relax::{Callee, Expr, ExprData, Function, Var};
use pliant_ir::structural_equality::structural_equal;
use pliant_ir::{BaseFunc, IRModule};
use pliant_opt::common::matmul_and_conv_operands::{CONVOLUTIONS, LINEAR, MATMUL};
use pliant_opt::pass_contracts::{Gate, INITIAL, Properties, Property};
use pliant_opt::{PASSES, PassInfo, pipelines};
use pliant_pass::PassContext;

/// Returns the pass that ensures a property together with as few other properties as possible.
fn ensuring_pass(property: Property) -> Option<&'static PassInfo> {
    let ensure = PASSES.iter().filter(|p| p.ensures.includes(Properties::of(&[property])));
    ensure.min_by_key(|p| p.ensures.iter().count())
}

/// Runs the pass that ensures the property, and describes its changes. `None` if it changes nothing, so that the property holds.
fn violation(property: Property, module: &IRModule, ctx: &PassContext) -> Option<String> {
    if INITIAL.includes(Properties::of(&[property])) {
        return None;
    }
    if property == Property::NoDeadReaders {
        return find_dead_reader(module, ctx);
    }
    let pass = ensuring_pass(property)?;
    let again = match (pass.make)().run(module.clone(), ctx) {
        Ok(again) => again,
        Err(error) => return Some(format!("{} fails: {error}", pass.name)),
    };
    let same = |name: &str, old: &BaseFunc| match (old, again.get(name)) {
        (BaseFunc::Relax(a), Some(BaseFunc::Relax(b))) => Arc::ptr_eq(a, b),
        (BaseFunc::Prim(a), Some(BaseFunc::Prim(b))) => Arc::ptr_eq(a, b),
        // Whether functions are reachable and whether bindings are used are different properties.
        (_, None) => property == Property::NoDeadCode,
        _ => false,
    };
    if module.functions.iter().all(|(name, f)| same(name, f))
        && again.functions.len() <= module.functions.len()
    {
        return None;
    }
    let (mut old, mut again) = (module.clone(), again);
    if property == Property::NoDeadCode {
        old.functions.retain(|name, _| again.get(name).is_some());
    }
    if ![Property::NormalBlocks, Property::PlainBlocks].contains(&property) {
        // Changes that only result from merging blocks do not count.
        let flat = |module| run("ToNonDataflow", module, ctx);
        (old, again) = (flat(old)?, flat(again)?);
    }
    structural_equal(&old, &again).err().map(|d| format!("{} changes the module: {d}", pass.name))
}

fn run(name: &str, module: IRModule, ctx: &PassContext) -> Option<IRModule> {
    let pass = (pliant_opt::passes::find(name).expect("the pass exists").make)();
    pass.run(module, ctx).ok()
}

/// Finds an unused binding that reads the result of a matmul or convolution, which violates the property `NoDeadReaders`.
fn find_dead_reader(module: &IRModule, ctx: &PassContext) -> Option<String> {
    let live = run("DeadCodeElimination", module.clone(), ctx)?;
    for (name, func) in module.relax_funcs() {
        let Some(live) = live.get(name).and_then(|f| f.as_relax()) else { continue };
        let kept: Vec<_> =
            bindings(live).iter().map(|(_, b)| live.var(b.var).name.clone()).collect();
        let all = bindings(func);
        let products: Vec<Var> =
            all.iter().filter(|(_, b)| is_product(func, b.value)).map(|(_, b)| b.var).collect();
        for (_, b) in &all {
            let dead = !kept.contains(&func.var(b.var).name);
            if dead && operand_vars(func, b.value).iter().any(|v| products.contains(v)) {
                return Some(format!("{name}: '{}' is unused", func.var(b.var).name));
            }
        }
    }
    None
}

fn is_product(func: &Function, value: Expr) -> bool {
    match func.expr(value) {
        ExprData::Call { callee: Callee::Op(op), .. } => {
            [MATMUL, LINEAR].contains(op) || CONVOLUTIONS.contains(op)
        }
        _ => false,
    }
}

/// Runs a pass. Returns the resulting module, the properties that hold after the pass according to the table, and a description
/// of each of them that does not hold.
fn violations_after(
    info: &PassInfo,
    module: IRModule,
    held: Properties,
    ctx: &PassContext,
) -> Option<(IRModule, Properties, Vec<String>)> {
    // Some programs in the filetests have errors.
    let module = (info.make)().apply(module, ctx).ok()?;
    let held = info.apply(held);
    let broken = held.iter().filter_map(|property| {
        let why = violation(property, &module, ctx)?;
        Some(format!("after {} {property:?} does not hold: {why}", info.name))
    });
    let broken = broken.collect();
    Some((module, held, broken))
}

/// Returns every `stride`-th well-formed program of the filetests, with its name.
fn programs(stride: usize) -> Vec<(String, IRModule)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/filetests");
    let mut files: Vec<_> = std::fs::read_dir(root)
        .expect("the filetests can be listed")
        .flat_map(|dir| {
            let dir = dir.expect("the filetests can be listed").path();
            std::fs::read_dir(dir).into_iter().flatten()
        })
        .map(|file| file.expect("the filetests can be listed").path())
        .filter(|file| file.extension().is_some_and(|e| e == "py"))
        .collect();
    files.sort();
    let parse = |file: &Path| {
        let text = std::fs::read_to_string(file).ok()?;
        let module = pliant_script::parse_module(&text, pliant_ops::registry()).ok()?;
        module.relax_funcs().next()?;
        Some((file.display().to_string(), module))
    };
    files.iter().step_by(stride).filter_map(|file| parse(file)).collect()
}

fn stride() -> usize {
    std::env::var("PLIANT_CONTRACT_STRIDE").ok().and_then(|s| s.parse().ok()).unwrap_or(3)
}

fn report(mut broken: Vec<String>) {
    broken.sort();
    broken.dedup_by_key(|line| line.split(':').next().map(str::to_string));
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn pipelines_keep_the_contracts_of_their_passes() {
    let ctx = PassContext::new(pliant_ops::registry());
    let mut broken = Vec::new();
    for (file, module) in programs(stride()) {
        for name in ["default", "minimum"] {
            let (mut module, mut held) = (module.clone(), INITIAL);
            for info in pipelines::steps(name).expect("the pipeline exists") {
                let Some((after, now, found)) = violations_after(info, module, held, &ctx) else {
                    break;
                };
                broken.extend(found.into_iter().map(|line| format!("{line}\n    {file}, {name}")));
                (module, held) = (after, now);
            }
        }
    }
    report(broken);
}

#[test]
fn single_passes_keep_their_contracts() {
    let ctx = PassContext::new(pliant_ops::registry());
    let starts: &[&[&str]] = &[
        &[
            "LambdaLift",
            "MatchUnknownShapes",
            "DeadCodeElimination",
            "FoldConstant",
            "ChannelsLast",
            "DeadCodeElimination",
            "Normalize",
        ],
        &[
            "MatchUnknownShapes",
            "LegalizeOps",
            "LambdaLift",
            "DeadCodeElimination",
            "AnnotateTIROpPattern",
            "CopyWrittenViews",
            "Normalize",
        ],
        &[
            "MatchUnknownShapes",
            "LegalizeOps",
            "LambdaLift",
            "CopyWrittenViews",
            "ToNonDataflow",
            "RemovePurityChecking",
            "CallTIRRewrite",
            "StaticPlanBlockMemory",
            "LowerAllocTensor",
            "KillAfterLastUse",
        ],
    ];
    let mut broken = Vec::new();
    for (file, module) in programs(stride() * 2) {
        for start in starts {
            let begun = start.iter().try_fold((module.clone(), INITIAL), |(module, held), name| {
                let info = pliant_opt::passes::find(name).expect("the pass exists");
                Some(((info.make)().apply(module, &ctx).ok()?, info.apply(held)))
            });
            let Some((module, held)) = begun else { continue };
            for info in PASSES.iter().filter(|p| held.includes(p.requires)) {
                if let Some((.., found)) = violations_after(info, module.clone(), held, &ctx) {
                    broken.extend(
                        found.into_iter().map(|line| format!("{line}\n    {file}, {start:?}")),
                    );
                }
            }
        }
    }
    report(broken);
}

#[test]
fn kernel_passes_change_nothing_if_kernels_are_disabled() {
    let mut ctx = PassContext::new(pliant_ops::registry());
    ctx.config
        .insert(pliant_pass::pass_settings::KERNELS.into(), pliant_ir::AttrValue::Bool(false));
    for (file, module) in programs(stride()) {
        for info in PASSES.iter().filter(|p| p.gate == Gate::Kernels) {
            let after = (info.make)().run(module.clone(), &ctx).expect("a pass that is off runs");
            assert!(structural_equal(&module, &after).is_ok(), "{} changes {file}", info.name);
        }
    }
}
