//! Generates models of one node with its usual operands, some of which are omitted.

use pliant::onnx::proto::{GraphProto, ModelProto, NodeProto, OperatorSetIdProto, ValueInfoProto};

use super::model_builders::{
    Dim, Operand, attribute, graph_attribute, info, loop_condition, node, tensor, tensor_type,
};
use super::operator_operands::{Row, row};
use super::operator_schemas::Schema;

/// The description of a model of one node.
#[derive(Clone, Debug)]
pub struct Case<'s> {
    /// The schema of the node's operator.
    pub schema: &'s Schema,
    /// The opset version of the operator's domain; `None` if the model does not import the domain.
    pub opset: Option<i64>,
    /// Whether each input is present; absent inputs have an empty name.
    pub inputs: Vec<bool>,
    /// Whether each output has a name.
    pub outputs: Vec<bool>,
    /// Whether all operands except the first are constants.
    pub constant: bool,
}

/// Returns the usual number of inputs of an operator.
pub fn usual_inputs(schema: &Schema) -> usize {
    let max_inputs = schema.inputs.1;
    match row(&schema.full_name()) {
        Some(row) if !row.operands.is_empty() => row.operands.len().min(max_inputs),
        _ if max_inputs == usize::MAX => schema.inputs.0.max(2),
        _ => max_inputs,
    }
}

impl Case<'_> {
    /// Builds the model of one node.
    pub fn model(&self) -> ModelProto {
        let schema = self.schema;
        let row = row(&schema.full_name());
        let mut graph = GraphProto { name: Some("g".into()), ..GraphProto::default() };
        let names: Vec<String> = (0..self.inputs.len()).map(|i| format!("x{i}")).collect();
        for (i, name) in names.iter().enumerate().filter(|(i, _)| self.inputs[*i]) {
            let spec = row.as_ref().and_then(|row| row.operands.get(i)).copied().unwrap_or("2x2");
            self.operand(&mut graph, name, i, spec);
        }
        let input_name =
            |(i, name): (usize, String)| if self.inputs[i] { name } else { String::new() };
        let inputs = names.into_iter().enumerate().map(input_name).collect();
        let output_name = |(i, &output_name): (usize, &bool)| {
            if output_name { format!("y{i}") } else { String::new() }
        };
        let outputs: Vec<String> = self.outputs.iter().enumerate().map(output_name).collect();
        graph.output = outputs.iter().filter(|o| !o.is_empty()).map(|o| info(o, None)).collect();
        let mut node_proto = node(schema.domain, schema.name, inputs, outputs);
        self.attributes(&mut node_proto, row);
        graph.node.push(node_proto);
        let opset = |(domain, version): (&str, i64)| OperatorSetIdProto {
            domain: Some(domain.into()),
            version: Some(version),
        };
        let domain_opset = self.opset.map(|version| (schema.domain, version));
        let default_opset = (!schema.domain.is_empty()).then_some(("", super::newest_version("")));
        ModelProto {
            ir_version: Some(10),
            opset_import: default_opset.into_iter().chain(domain_opset).map(opset).collect(),
            graph: Some(graph),
            ..ModelProto::default()
        }
    }

    /// Adds operand `i` of the node to the graph, as an input or a constant.
    fn operand(&self, graph: &mut GraphProto, name: &str, i: usize, spec: &str) {
        if spec == "seq" {
            let parts = vec![format!("{name}_part"); 2];
            self.operand(graph, &parts[0], 0, "2x2");
            graph.node.push(node("", "SequenceConstruct", parts, vec![name.into()]));
            return;
        }
        let operand = Operand::parse(if spec == "." { "2x2" } else { spec });
        let first_letter = self.schema.input_type(i).1.bytes().next();
        let letter = operand.letter.or(first_letter).unwrap_or(b'a');
        if operand.elems.is_some() || self.constant && i > 0 {
            let elems = operand.elems.unwrap_or_default();
            graph.initializer.push(tensor(name, letter, &operand.dims, &elems));
            return;
        }
        let dims: Vec<Dim> = operand.dims.iter().map(|&d| Dim::Number(d)).collect();
        graph.input.push(info(name, Some(tensor_type(letter, Some(&dims)))));
    }

    fn attributes(&self, node_proto: &mut NodeProto, row: Option<Row>) {
        for (name, value) in row.map_or(Vec::new(), |row| row.attributes) {
            if !self.schema.attributes.iter().any(|(known, _)| *known == name) {
                continue;
            }
            node_proto.attribute.push(match value {
                "{}" => graph_attribute(name, body(node_proto)),
                value => attribute(name, value),
            });
        }
    }
}

/// Builds a graph attribute with the number of outputs that the node expects. The outputs are constants for `If`, otherwise the
/// inputs of the graph.
fn body(outer: &NodeProto) -> GraphProto {
    let mut graph = GraphProto { name: Some("body".into()), ..GraphProto::default() };
    let count = outer.output.len();
    let not_returned = usize::from(outer.op_type() == "Loop");
    if outer.op_type() != "If" {
        let input =
            |i: usize| ValueInfoProto { name: Some(format!("in{i}")), ..Default::default() };
        graph.input = (0..outer.input.len()).map(input).collect();
    }
    for i in 0..count + not_returned {
        let output = format!("out{i}");
        graph.output.push(info(&output, None));
        if i < not_returned {
            graph.node.extend(loop_condition("in0", &output));
            continue;
        }
        let node_proto = match graph.input.get(i + not_returned) {
            Some(input) => node("", "Identity", vec![input.name().into()], vec![output.clone()]),
            None => {
                let mut node_proto = node("", "Constant", Vec::new(), vec![output.clone()]);
                node_proto.attribute.push(attribute("value_float", "1f"));
                node_proto
            }
        };
        graph.node.push(node_proto);
    }
    graph
}
