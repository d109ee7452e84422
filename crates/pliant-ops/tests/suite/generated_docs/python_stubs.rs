//! Generates the Python stubs of `relax.op`, `python/pliant/relax/op/*.pyi`.

use std::fmt::Write;

use pliant_ops::OpDecl;
use pliant_ops::op_declaration::Default;

use super::accepted_types::data_types;
use super::{Param, check, groups, params, short};

const HAND_WRITTEN: [&str; 5] =
    ["call_tir", "call_dps_packed", "call_kernel", "call_packed", "call_pure_packed"];

/// A paragraph about the exceptions of all operators, for the docstrings of the modules.
const ERRORS: &str = "\
A call with invalid operands or attributes raises `CompileError`, when it is created or when its operand types become known.
Conditions that depend on values or on symbolic sizes are checked when the program runs. In the lists of data types, \"as\" means
the type of another operand; a scalar adopts it.
";

#[test]
fn the_python_stubs_are_up_to_date() {
    let groups = groups();
    for (group, list) in &groups {
        let nested: Vec<&str> = if group.is_empty() {
            groups.iter().map(|(name, _)| *name).filter(|name| !name.is_empty()).collect()
        } else {
            Vec::new()
        };
        let file = if group.is_empty() { "__init__" } else { group };
        check(&format!("python/pliant/relax/op/{file}.pyi"), &stub(group, list, &nested));
    }
}

fn stub(group: &str, list: &[&'static OpDecl], nested: &[&str]) -> String {
    let group_text = if group.is_empty() { String::new() } else { format!(" under `R.{group}`") };
    let mut out = format!(
        "\"\"\"The operators{group_text}, generated from their declarations (see docs/reference/operators.md). A test compares both.\n"
    );
    writeln!(out, "\n{ERRORS}\"\"\"\n").unwrap();
    out.push_str("from collections.abc import Sequence\nfrom typing import Any, TypeAlias\n\n");
    out.push_str("from pliant._core.relax import Expr\n");
    if !nested.is_empty() {
        let names: Vec<String> = nested.iter().map(|n| format!("{n} as {n}")).collect();
        writeln!(out, "from pliant.relax.op import {}", names.join(", ")).unwrap();
        let names: Vec<String> = HAND_WRITTEN.iter().map(|n| format!("{n} as {n}")).collect();
        writeln!(out, "from pliant.relax.op._calls import {}", names.join(", ")).unwrap();
        out.push_str("from pliant.relax.op._user_operators import register_op as register_op\n");
    }
    out.push_str("\n# An expression, a number, an array, a shape, or a sequence of these.\nOperand: TypeAlias = Any\n");
    let mut functions: Vec<(String, &OpDecl)> = Vec::new();
    for decl in list {
        functions.push((last(short(decl)), decl));
        let group_aliases = decl.aliases.iter().filter_map(|a| a.strip_prefix("relax."));
        let group_aliases =
            group_aliases.filter(|a| a.rsplit_once('.').map_or("", |(g, _)| g) == group);
        functions.extend(group_aliases.map(|alias| (last(alias), *decl)));
    }
    for (name, decl) in aliases_of_other_groups(group) {
        functions.push((name, decl));
    }
    functions.sort_by(|a, b| a.0.cmp(&b.0));
    for (name, decl) in functions {
        if group.is_empty() && HAND_WRITTEN.contains(&name.as_str()) {
            continue;
        }
        function(&mut out, &name, decl);
    }
    out
}

/// The aliases in this group that refer to operators of other groups.
fn aliases_of_other_groups(group: &str) -> Vec<(String, &'static OpDecl)> {
    let mut aliases = Vec::new();
    for decl in pliant_ops::registry().decls() {
        let decl_group = short(decl).rsplit_once('.').map_or("", |(g, _)| g);
        for alias in decl.aliases.iter().filter_map(|a| a.strip_prefix("relax.")) {
            let other = alias.rsplit_once('.').map_or("", |(g, _)| g);
            if other == group && decl_group != group {
                aliases.push((last(alias), decl));
            }
        }
    }
    aliases
}

fn last(name: &str) -> String {
    name.rsplit('.').next().unwrap_or(name).to_string()
}

fn function(out: &mut String, name: &str, decl: &OpDecl) {
    let mut parts: Vec<String> = Vec::new();
    for p in params(decl) {
        if p.keyword && !parts.iter().any(|s| s.starts_with('*')) {
            parts.push("*".into());
        }
        let ty = annotation(&p);
        parts.push(match &p.default {
            Some(value) => format!("{}: {ty} = {value}", p.name),
            None => format!("{}: {ty}", p.name),
        });
    }
    writeln!(out, "\ndef {name}({}) -> Expr:", parts.join(", ")).unwrap();
    let mut doc = decl.description().replace('\\', "\\\\");
    if let Some(numpy) = decl.numpy {
        write!(doc, "\n\n    Corresponds to ``numpy.{numpy}``.").unwrap();
    }
    if !decl.onnx.is_empty() {
        write!(doc, "\n\n    Implements ONNX {}.", decl.onnx.join(", ")).unwrap();
    }
    if let Some(types) = data_types(decl) {
        let error =
            if types.restricted { " Tensors of other types raise `CompileError`." } else { "" };
        write!(doc, "\n\n    Data types: {}.{error}", types.text).unwrap();
    }
    let quotes = if doc.ends_with('"') { " " } else { "" };
    writeln!(out, "    \"\"\"{doc}{quotes}\"\"\"").unwrap();
}

fn annotation(p: &Param) -> &'static str {
    match p.attr {
        _ if p.symbolic => "Operand",
        None if p.default.is_some() => "Operand | None",
        None => "Operand",
        Some(Default::Required | Default::None) => "Any",
        Some(Default::Bool(_)) => "bool",
        Some(Default::Int(_)) => "int | Sequence[int]",
        Some(Default::Float(_)) => "float",
        Some(Default::Str(_)) => "str",
        Some(Default::Ints(_)) => "int | Sequence[int]",
    }
}
