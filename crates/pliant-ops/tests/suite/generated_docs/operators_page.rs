//! Generates the page `docs/reference/operators.md` from the operator declarations.

use std::fmt::Write;

use pliant_ir::OpRegistry;
use pliant_ops::op_declaration::{Legalize, Pattern};
use pliant_ops::{OpDecl, registry};

use super::accepted_types::data_types;
use super::unsupported_ops::{REASONS, unsupported_operators};
use super::{check, groups, params, short};

const HEAD: &str = "\
# Operators

Generated from the operator declarations in `crates/pliant-ops/src/ops`; a test fails if this page is out of date.

- **Types** are the element types that an operand may have: *numbers* are all types except bool, *integers* have 8 to 64 bits and
  are signed or unsigned, *floats* are float16, bfloat16, float32 and float64. *As `x`* is the type of the operand `x`; a scalar
  operand adopts it as [Numerics](numerics.md) describes. *Result* is the element type of the result. A call with operands of other
  types is rejected.
- **Fuses** describes how the operator is fused with its neighbours. *Elementwise*, *broadcast* and *injective* operators fuse
  with any operator. A *reduction* fuses with its producers, an *anchor* (matrix products, convolutions, pooling) with its
  consumers. *Alone* means that the operator has a loop function of its own.
- **Implementation** is a *tensor expression* (the single definition for loop functions, the interpreter and `topi`), a *view* (the
  same memory with another shape; it also has a tensor expression), a *packed function* (the size of the result depends on
  values), or a *stage* (later compilation stages implement the operator).

All tensor expressions support symbolic sizes, sizes of 0, and operands of unknown rank and element type, which are resolved at
run time. In the signatures, `=` is followed by the default of an attribute, `?` marks an optional operand, and `*` any number of
operands. In a script, `axis` and `axes` are interchangeable. Attributes are compile-time constants, except those that *may be
symbolic*: they accept sizes, integers and shapes that are values of the program.
";

#[test]
fn the_operators_page_is_up_to_date() {
    check("docs/reference/operators.md", &page());
}

fn page() -> String {
    let mut out = String::from(HEAD);
    let count = registry().decls().count();
    writeln!(out, "\nThere are {count} operators.").unwrap();
    for (group, list) in groups() {
        let title = if group.is_empty() { "`R`".to_string() } else { format!("`R.{group}`") };
        writeln!(out, "\n## {title}\n").unwrap();
        for decl in list {
            entry(&mut out, decl);
        }
    }
    let has = |name: &str| registry().lookup(&format!("relax.{name}")).is_some();
    out.push_str(
        "## Not supported\n\nOperators of comparable compilers that this library does not have, with the reason.\n\n\
         | operators | reason |\n|---|---|\n",
    );
    let missing = unsupported_operators(has);
    let reasons = REASONS.iter().map(|(_, why)| *why);
    for why in reasons.filter(|why| missing.iter().any(|(_, w)| w == why)) {
        let names: Vec<String> =
            missing.iter().filter(|(_, w)| *w == why).map(|(n, _)| format!("`{n}`")).collect();
        writeln!(out, "| {} | {why} |", names.join(", ")).unwrap();
    }
    out
}

fn entry(out: &mut String, decl: &OpDecl) {
    writeln!(out, "**`{}`**  \n{}  ", signature(decl), decl.description()).unwrap();
    let mut facts = Vec::new();
    if !decl.aliases.is_empty() {
        let names: Vec<String> =
            decl.aliases.iter().map(|a| format!("`{}`", a.trim_start_matches("relax."))).collect();
        facts.push(format!("Also {}", names.join(", ")));
    }
    if let Some(numpy) = decl.numpy {
        facts.push(format!("NumPy `{numpy}`"));
    }
    if !decl.onnx.is_empty() {
        facts.push(format!("ONNX {}", code(decl.onnx)));
    }
    if let Some(types) = data_types(decl) {
        facts.push(format!("types: {}", types.text));
    }
    if let Some(name) = decl.symbolic {
        facts.push(format!("`{name}` may be symbolic"));
    }
    facts.push(meaning(decl));
    if !decl.pure {
        facts.push("has side effects".into());
    }
    if let Some(limits) = decl.limits {
        facts.push(format!("not supported: {limits}"));
    }
    writeln!(out, "{}.\n", facts.join(" · ")).unwrap();
}

fn code(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    names.join(", ")
}

fn meaning(decl: &OpDecl) -> String {
    let fuses = match decl.pattern {
        Pattern::ElemWise => "elementwise",
        Pattern::Broadcast => "broadcast",
        Pattern::Injective => "injective",
        Pattern::CommReduce => "reduction",
        Pattern::OutEWiseFusable => "anchor",
        Pattern::Opaque => "alone",
    };
    match decl.legalize {
        Legalize::Te(_) => format!("fuses: {fuses} · tensor expression"),
        Legalize::View(_) => format!("fuses: {fuses} · view"),
        Legalize::Packed(name) => format!("packed function `{name}`"),
        Legalize::Keep => "stage".into(),
    }
}

/// The signature with defaults, as in a Python call.
fn signature(decl: &OpDecl) -> String {
    let mut parts = Vec::new();
    let mut starred = false;
    for p in params(decl) {
        let star = p.name.starts_with('*');
        if p.keyword && !starred && !parts.iter().any(|s: &String| s.starts_with('*')) {
            parts.push("*".into());
        }
        starred |= p.keyword || star;
        parts.push(match (&p.default, p.attr) {
            (Some(_), None) => format!("{}?", p.name),
            (Some(value), Some(_)) => format!("{}={value}", p.name),
            (None, _) => p.name,
        });
    }
    format!("{}({})", short(decl), parts.join(", "))
}
