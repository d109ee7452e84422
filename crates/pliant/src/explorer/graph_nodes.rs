//! The nodes of graph functions as JSON.

use std::sync::Arc;

use pliant_diag::{SourceMap, Span};
use pliant_ir::relax::visit::{bindings, operand_vars};
use pliant_ir::relax::{Binding, Callee, ExprData, Function, Var};
use pliant_ir::{IRModule, print};
use serde_json::{Value as Json, json};

/// The longest text of a node's value.
const MAX_TEXT: usize = 2000;

/// Returns the graph functions of a module. Each has its parameters and its bindings as nodes, in order. A node refers to its
/// operands by their variables' numbers.
pub fn functions(module: &IRModule, sources: Option<&SourceMap>) -> Json {
    let function = |(name, f): (&Arc<str>, &Arc<Function>)| {
        let mut nodes: Vec<Json> = f.params().iter().map(|&p| parameter(f, p)).collect();
        nodes.extend(bindings(f).iter().map(|(_, binding)| node(f, binding, sources)));
        let results: Vec<u32> =
            operand_vars(f, f.seq(f.body()).result).iter().map(|v| v.as_u32()).collect();
        json!({"name": &**name, "nodes": nodes, "results": results})
    };
    module.relax_funcs().map(function).collect()
}

fn parameter(f: &Function, var: Var) -> Json {
    let data = f.var(var);
    json!({"id": var.as_u32(), "name": &*data.name, "op": "input", "inputs": [], "type": print::type_text(f, data.ty)})
}

fn node(f: &Function, binding: &Binding, sources: Option<&SourceMap>) -> Json {
    let data = f.var(binding.var);
    let mut text = print::expr_text(f, binding.value, pliant_ops::registry());
    if let Some((end, _)) = text.char_indices().nth(MAX_TEXT) {
        text.truncate(end);
        text.push('…');
    }
    let inputs: Vec<u32> = operand_vars(f, binding.value).iter().map(|v| v.as_u32()).collect();
    json!({
        "id": binding.var.as_u32(),
        "name": &*data.name,
        "op": operator_name(f, binding),
        "inputs": inputs,
        "type": print::type_text(f, data.ty),
        "text": text,
        "lines": location(sources, data.span),
    })
}

/// The name of the operator or function that a binding calls, or the kind of its value.
fn operator_name(f: &Function, binding: &Binding) -> String {
    if binding.cast.is_some() {
        return "match_cast".into();
    }
    match f.expr(binding.value) {
        ExprData::Call { callee: Callee::Op(op), .. } => op.short_name().to_string(),
        ExprData::Call { callee: Callee::Expr(function), .. } => {
            print::expr_text(f, *function, pliant_ops::registry())
        }
        ExprData::If { .. } => "if".into(),
        ExprData::Func(_) => "function".into(),
        ExprData::Tuple(_) => "tuple".into(),
        ExprData::TupleGetItem(..) => "field".into(),
        ExprData::Constant(_) => "constant".into(),
        ExprData::Shape(_) => "shape".into(),
        _ => "value".into(),
    }
}

/// Returns a source location: the file, the first and the last line, and the text by which profiles call it. `null` if it is
/// unknown.
pub fn location(sources: Option<&SourceMap>, span: Span) -> Json {
    let Some((file, first, last)) = sources.and_then(|sources| sources.lines(span)) else {
        return Json::Null;
    };
    let text = match sources.and_then(|sources| sources.nodes(span)) {
        Some(nodes) => nodes,
        None if first == last => format!("{file}:{first}"),
        None => format!("{file}:{first}-{last}"),
    };
    json!({"file": &**file, "first": first, "last": last, "text": text})
}
