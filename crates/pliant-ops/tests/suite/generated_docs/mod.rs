//! Tests of the files that are generated from the operator declarations: `docs/reference/operators.md` and the stubs of `relax.op`. The tests
//! fail if a file is out of date. With `PLIANT_BLESS=1`, they write the files.

mod accepted_types;
mod operators_page;
mod python_stubs;
mod tutorial_op;
mod unsupported_ops;

use std::path::Path;

use pliant_ops::op_declaration::Default;
use pliant_ops::{OpDecl, registry};

/// Compares a generated file with the expected text. With `PLIANT_BLESS=1`, writes the text to the
/// file.
fn check(path: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if std::env::var_os("PLIANT_BLESS").is_some() {
        std::fs::write(&file, text).unwrap_or_else(|e| panic!("{path}: {e}"));
        return;
    }
    let old = std::fs::read_to_string(&file).unwrap_or_default();
    let line = old.lines().zip(text.lines()).position(|(a, b)| a != b).map_or(0, |k| k + 1);
    assert!(
        old == text,
        "{path} is stale from line {line}: PLIANT_BLESS=1 cargo test --package pliant-ops --test suite generated_docs"
    );
}

/// Checks that the declaration in docs/extend/operator.md compiles, and that its type rule works.
#[test]
fn the_tutorial_operator_compiles() {
    let page = include_str!("../../../../../docs/extend/operator.md");
    let code = page.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next());
    let table = include_str!("tutorial_op.rs").split_once("= &[\n").expect("a table").1;
    assert_eq!(code, table.strip_suffix("];\n"), "docs/extend/operator.md shows another row");
    let [decl] = tutorial_op::DECLS else { panic!("one operator") };
    let types = accepted_types::element_types(decl);
    let floats = |name: &str| (name.to_string(), "floats".to_string());
    assert_eq!(types[0], floats("x1"));
}

/// The operators by group, that is, by the part of the name before the last dot. Operators without a group come first.
fn groups() -> Vec<(&'static str, Vec<&'static OpDecl>)> {
    let mut groups: Vec<(&str, Vec<&OpDecl>)> = Vec::new();
    for decl in registry().decls() {
        let group = short(decl).rsplit_once('.').map_or("", |(group, _)| group);
        match groups.iter_mut().find(|(name, _)| *name == group) {
            Some((_, list)) => list.push(decl),
            None => groups.push((group, vec![decl])),
        }
    }
    groups.sort_by_key(|(name, _)| *name);
    groups
}

/// The full name of an operator without the prefix `relax.`.
fn short(decl: &OpDecl) -> &'static str {
    decl.name.strip_prefix("relax.").unwrap_or(decl.name)
}

/// A parameter of an operator as written in Python.
struct Param {
    name: String,
    /// The default in Python syntax, if there is one.
    default: Option<String>,
    /// Whether the parameter can only be passed by keyword.
    keyword: bool,
    /// The declared default, if the parameter is an attribute. `None` for an operand.
    attr: Option<Default>,
    /// Whether the value of the parameter may contain symbols.
    symbolic: bool,
}

/// The parameters in the order of `inspect.signature`: operands, then attributes.
fn params(decl: &OpDecl) -> Vec<Param> {
    let mut list: Vec<Param> = Vec::new();
    let mut keyword = false;
    for spec in decl.signature().operands {
        let name = if spec.variadic { format!("*{}", spec.name) } else { spec.name.to_string() };
        let default = (spec.optional && !spec.variadic).then(|| "None".to_string());
        list.push(Param { name, default, keyword: false, attr: None, symbolic: false });
        keyword |= spec.variadic;
    }
    for &(name, default) in decl.attrs {
        let value = python(default);
        // A parameter without a default after one with a default is keyword-only.
        let keyword = keyword || (value.is_none() && list.iter().any(|p| p.default.is_some()));
        let symbolic = decl.symbolic == Some(name);
        list.push(Param {
            name: name.to_string(),
            default: value,
            keyword,
            attr: Some(default),
            symbolic,
        });
    }
    list.sort_by_key(|p| p.keyword);
    list
}

/// Formats the default of an attribute in Python syntax.
fn python(default: Default) -> Option<String> {
    Some(match default {
        Default::Required => return None,
        Default::None => "None".into(),
        Default::Bool(b) => if b { "True" } else { "False" }.into(),
        Default::Int(v) => v.to_string(),
        Default::Float(v) => format!("{v:?}"),
        Default::Str(s) => format!("{s:?}"),
        Default::Ints(list) => format!("{list:?}"),
    })
}
