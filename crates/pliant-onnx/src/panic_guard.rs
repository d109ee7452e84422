//! Converts panics of converters into problems of their nodes, so that no file can terminate the process.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::import_error::Problem;
use crate::node::{ConvertResult, Node};
use crate::ops::OnnxOp;

/// Runs the converter of a node, and converts a panic into a problem. A panic may leave the importer in an inconsistent state, but
/// the import fails anyway.
pub(crate) fn convert(op: &OnnxOp, node: &mut Node<'_, '_>) -> ConvertResult {
    let outcome = catch_unwind(AssertUnwindSafe(|| (op.convert)(node)));
    outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        let message = text.unwrap_or("a panic without a message");
        let help = "please report it with the file that `pliant check --reduce DIR` writes";
        Err(Problem::internal(&format!("the converter of {}", op.name), message).with_help(help))
    })
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::graph_import::Importer;
    use crate::import_limits::Limits;
    use crate::model_file::Model;
    use crate::proto::{GraphProto, ModelProto, NodeProto};

    #[test]
    fn reports_a_panic_in_a_converter_as_a_problem() {
        let proto = ModelProto { graph: Some(GraphProto::default()), ..ModelProto::default() };
        let model = Model::from_bytes(proto.encode_to_vec(), Limits::default()).unwrap();
        let mut importer = Importer::new(&model);
        let node = NodeProto::default();
        let op = OnnxOp { domain: "", name: "Boom", convert: |_| panic!("out of {}", "luck") };
        let error = convert(&op, &mut Node::new(&mut importer, &node, 1, Vec::new())).unwrap_err();
        assert!(error.message.contains("out of luck") && error.help.is_some(), "{error}");
    }
}
