//! Creates the constants, variables and outputs of the function `main`.
//!
//! `Importer::bind` binds the results of operator calls to variables. It also gives symbols to unknown dims, such as the number of
//! nonzero elements that `NonZero` finds: `size_symbols.rs` creates the symbols, and `bind` inserts a `match_cast` after the
//! variable, which defines them.

use pliant_ir::relax::{Expr, TypeData};
use pliant_tensor::Tensor;
use rustc_hash::FxHashSet;

use super::{Importer, identifier};
use crate::import_error::Problem;
use crate::imported_value::Value;
use crate::node::{ExprResult, Node};
use crate::proto::type_proto::Value as TypeValue;
use crate::proto::{GraphProto, NodeProto, ValueInfoProto};

impl Importer<'_> {
    /// Creates a constant for a tensor. Tensors that share the same data and shape get the same
    /// constant.
    pub(crate) fn constant(&mut self, tensor: &Tensor) -> Expr {
        let key = (tensor.data_ptr() as usize, tensor.shape().to_vec());
        if tensor.numel() == 0 {
            return self.builder.func_mut().constant(tensor.clone());
        }
        let builder = &mut self.builder;
        *self.constants.entry(key).or_insert_with(|| builder.func_mut().constant(tensor.clone()))
    }

    /// Binds an expression to a variable that is named after the node's first output. If dims of its type are unknown or large size
    /// expressions, inserts a `match_cast` to a type with new symbols for them, and returns the variable of the `match_cast`.
    pub(crate) fn bind(&mut self, value: Expr, node: &NodeProto) -> Expr {
        let hint = identifier(node.output.first().map_or("", String::as_str), "lv");
        let var = self.builder.emit_named(value, &hint);
        let var = match self.type_with_size_symbols(var, &hint) {
            Some(ty) => {
                let from = self.builder.func().var_expr(var);
                self.builder.match_cast(from, ty, &hint)
            }
            None => var,
        };
        self.builder.func_mut().var_expr(var)
    }

    /// Converts the value of a graph output to an expression.
    pub(super) fn output_expr(&mut self, value: &Value, output: &ValueInfoProto) -> ExprResult {
        let name = output.name();
        let identity = NodeProto { output: vec![name.into()], ..NodeProto::default() };
        let mut node = Node::new(self, &identity, 1, Vec::new());
        let value = match value {
            Value::Narrow(_, storage) => storage,
            other => other,
        };
        match value {
            // A sequence becomes a tuple.
            Value::Sequence(items) => {
                let items: Result<Vec<Expr>, Problem> =
                    items.iter().map(|item| node.object_of_value(item).map(|(e, _)| e)).collect();
                return items.map(|items| node.func().tuple(&items));
            }
            Value::Object(e, _) => return Ok(*e),
            Value::Absent if is_optional(output) => return node.null_value(),
            _ => {}
        }
        node.materialize(value)
            .map_err(|p| Problem { message: format!("output '{name}': {}", p.message), ..p })
    }

    /// Appends the tensors that the nodes of the main graph compute to the outputs of the function `main`, for the option that
    /// requests all intermediate tensors.
    pub(super) fn add_intermediate_outputs(
        &mut self,
        graph: &GraphProto,
        outputs: &mut Vec<String>,
        results: &mut Vec<Expr>,
    ) {
        let names = graph.node.iter().flat_map(|n| &n.output).filter(|o| !o.is_empty());
        let mut existing: FxHashSet<String> = outputs.iter().cloned().collect();
        for name in names {
            let Some(value) = self.lookup(name).filter(|_| existing.insert(name.clone())) else {
                continue;
            };
            let info = ValueInfoProto { name: Some(name.clone()), ..ValueInfoProto::default() };
            // Sequences and optionals are skipped.
            let Ok(e) = self.output_expr(&value, &info) else { continue };
            if matches!(self.builder.func().ty(e), TypeData::Tensor { .. }) {
                outputs.push(name.clone());
                results.push(e);
            }
        }
    }
}

/// Whether the file declares a value as optional.
fn is_optional(info: &ValueInfoProto) -> bool {
    let value = info.r#type.as_ref().and_then(|t| t.value.as_ref());
    matches!(value, Some(TypeValue::OptionalType(_)))
}
