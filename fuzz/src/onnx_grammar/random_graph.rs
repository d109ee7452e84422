//! Generates graphs of random ONNX nodes. Operands are the usual ones of the operator, or earlier
//! values of the graph; some are missing or superfluous.

use pliant::onnx::proto::{GraphProto, NodeProto};

use super::attributes::random_attribute;
use super::model_builders::{
    Dim, Operand, attribute, graph_attribute, info, loop_condition, node, sequence_type, tensor,
    tensor_type,
};
use super::operator_operands::{Row, row};
use super::operator_schemas::{Schema, schemas};
use super::random_choices::Choices;

/// Letters of the element types of tensors, with the frequent ones first.
const TYPE_LETTERS: &[u8] = b"agijkfbcpdelmqrstuvwxyzhno";
/// Maximum nesting depth of graph attributes.
const MAX_DEPTH: usize = 2;

/// A value of the graph that later nodes may read.
#[derive(Clone)]
struct KnownValue {
    name: String,
    /// The letter of the element type; `None` if it is unknown because a node computes the value.
    letter: Option<u8>,
}

/// A graph under construction.
pub struct Builder<'s, 'b> {
    source: &'s mut Choices<'b>,
    opset: i64,
    /// The numbers of inputs and outputs of each function of the model.
    pub functions: Vec<(usize, usize)>,
    graph: GraphProto,
    scope: Vec<KnownValue>,
    names: usize,
    depth: usize,
}

impl<'s, 'b> Builder<'s, 'b> {
    /// Creates an empty graph for a model with this opset version of the default domain.
    pub fn new(source: &'s mut Choices<'b>, opset: i64) -> Self {
        let (functions, graph, scope) = (Vec::new(), GraphProto::default(), Vec::new());
        Builder { source, opset, functions, graph, scope, names: 0, depth: 0 }
    }

    /// Generates the main graph of a model.
    pub fn main(mut self) -> GraphProto {
        let count = 1 + self.source.below(6);
        self.nodes(count);
        self.outputs(None);
        self.declare();
        self.graph.name = Some("g".into());
        self.graph
    }

    /// Generates the body of a function with `inputs` inputs. Returns the body and the names of its inputs.
    pub fn function(mut self, inputs: usize) -> (GraphProto, Vec<String>) {
        let names: Vec<String> = (0..inputs).map(|i| format!("in{i}")).collect();
        let known = |name: &String| KnownValue { name: name.clone(), letter: None };
        self.scope = names.iter().map(known).collect();
        // A function has no initializers and no typed inputs, so its operands are constants.
        self.depth = 1;
        let count = 1 + self.source.below(3);
        self.nodes(count);
        self.outputs(None);
        (self.graph, names)
    }

    fn new_name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    fn nodes(&mut self, count: usize) {
        for _ in 0..count {
            if self.graph.node.is_empty() || self.source.has_bytes() {
                self.node();
            }
        }
    }

    /// Adds a random node to the graph.
    fn node(&mut self) {
        if !self.functions.is_empty() && self.source.chance(20) {
            return self.call();
        }
        let Some(schema) = self.schema() else { return };
        let row = row(&schema.full_name());
        let inputs = self.operands(&schema, row.as_ref());
        let outputs = self.results(&schema);
        let mut node_proto = node(schema.domain, schema.name, inputs, outputs.clone());
        if self.source.chance(2) {
            node_proto.domain = self.source.pick(&super::DOMAINS).map(str::to_owned);
        }
        self.attributes(&mut node_proto, &schema, row);
        self.graph.node.push(node_proto);
        for name in outputs.into_iter().filter(|n| !n.is_empty()) {
            self.scope.push(KnownValue { name, letter: None });
        }
    }

    /// Chooses a random operator schema, mostly in the version for the model's opset.
    fn schema(&mut self) -> Option<Schema> {
        let all = schemas();
        let mut index = self.source.below(all.len());
        let operator = (all[index].domain, all[index].name);
        let version = if operator.0.is_empty() { self.opset } else { i64::MAX };
        if self.source.chance(95) {
            let same =
                |i: &usize| (all[*i].domain, all[*i].name) == operator && all[*i].since <= version;
            index = (0..all.len()).filter(same).max_by_key(|&i| all[i].since).unwrap_or(index);
        }
        let mut schema = all[index].clone();
        if self.source.chance(2) {
            schema.name = all[self.source.below(all.len())].name;
        }
        Some(schema)
    }

    fn call(&mut self) {
        let (num_inputs, num_outputs) = self.functions[0];
        let num_inputs = if self.source.chance(8) { self.source.below(4) } else { num_inputs };
        let inputs = (0..num_inputs).map(|_| self.value(None)).collect();
        let outputs: Vec<String> = (0..num_outputs).map(|_| self.new_name("r")).collect();
        self.graph.node.push(node("local", "Local0", inputs, outputs.clone()));
        self.scope.extend(outputs.into_iter().map(|name| KnownValue { name, letter: None }));
    }

    /// Adds operands for a node of the operator. Returns the names of the operands.
    fn operands(&mut self, schema: &Schema, row: Option<&Row>) -> Vec<String> {
        let (min_inputs, max_inputs) = schema.inputs;
        let usual_inputs =
            row.map_or(min_inputs.max(1).min(max_inputs), |row| row.operands.len().min(max_inputs));
        let mut count = match self.source.below(8) {
            0 => min_inputs,
            1 => self.source.below(max_inputs.min(6) + 2),
            2 => max_inputs.min(usual_inputs + 2),
            _ => usual_inputs,
        };
        if schema.inputs == (0, 0) && !self.source.chance(5) {
            count = 0;
        }
        // Operands with the same type parameter have the same type.
        let mut shared: Vec<(&str, u8)> = Vec::new();
        let mut names = Vec::with_capacity(count);
        for i in 0..count {
            let (parameter, letters) = schema.input_type(i);
            let mut letter = match letters.as_bytes() {
                [] => TYPE_LETTERS[self.source.below(3)],
                [first, ..] if self.source.chance(70) => *first,
                all => all[self.source.below(all.len())],
            };
            match shared.iter().find(|(p, _)| *p == parameter) {
                Some((_, same)) if !parameter.is_empty() => letter = *same,
                _ => shared.push((parameter, letter)),
            }
            if self.source.chance(2) {
                letter = self.source.pick(TYPE_LETTERS).unwrap_or(b'a');
            }
            let spec = row.and_then(|row| row.operands.get(i)).copied().unwrap_or("2x2");
            names.push(self.operand(spec, letter));
        }
        names
    }

    /// Chooses or adds a value as an operand. Returns its name; empty for an omitted operand.
    fn operand(&mut self, spec: &str, letter: u8) -> String {
        match self.source.below(24) {
            0 => String::new(),
            1..=4 => self.value(Some(letter)),
            5..=7 => self.value(None),
            _ if spec == "." => String::new(),
            _ if spec == "seq" => self.sequence(letter),
            _ => self.new_operand(Operand::parse(spec), letter),
        }
    }

    /// Chooses an existing value that may have this element type, or adds one. Returns its name.
    fn value(&mut self, letter: Option<u8>) -> String {
        let fits = |k: &&KnownValue| letter.is_none() || k.letter.is_none() || k.letter == letter;
        let fitting: Vec<KnownValue> = self.scope.iter().filter(fits).cloned().collect();
        match self.source.pick(&fitting) {
            Some(known) => known.name,
            None => self.new_operand(Operand::parse("2x2"), letter.unwrap_or(b'a')),
        }
    }

    fn sequence(&mut self, letter: u8) -> String {
        let name = self.new_name("s");
        let letter = if TYPE_LETTERS.contains(&letter) { letter } else { b'a' };
        if self.depth == 0 && self.source.chance(15) {
            self.graph.input.push(info(&name, Some(sequence_type(letter))));
        } else {
            let parts = (0..2).map(|_| self.value(Some(letter))).collect();
            self.graph.node.push(node("", "SequenceConstruct", parts, vec![name.clone()]));
        }
        self.scope.push(KnownValue { name: name.clone(), letter: None });
        name
    }

    /// Adds an operand as a graph input, an initializer or a constant. Returns its name.
    fn new_operand(&mut self, operand: Operand, letter: u8) -> String {
        let letter = operand.letter.unwrap_or(letter);
        let mut dims = operand.dims;
        if self.source.chance(8) {
            match self.source.below(4) {
                0 => dims.push(1 + self.source.below(3) as i64),
                1 => drop(dims.pop()),
                _ => {
                    let axis = self.source.below(dims.len());
                    dims.iter_mut()
                        .skip(axis)
                        .take(1)
                        .for_each(|d| *d = self.source.below(5) as i64);
                }
            }
        }
        let name = self.new_name("v");
        let is_constant = self.depth > 0 || operand.elems.is_some() || self.source.chance(30);
        if is_constant && !(self.depth == 0 && self.source.chance(15)) {
            let mut elems = operand.elems.unwrap_or_default();
            if elems.is_empty() || self.source.chance(20) {
                let is_integer = !b"akjpno".contains(&letter);
                let float =
                    |s: &mut Choices<'_>| if is_integer { s.integer() as f64 } else { s.float() };
                elems = (0..1 + self.source.below(4)).map(|_| float(self.source)).collect();
            }
            let value_proto = tensor(&name, letter, &dims, &elems);
            if self.depth > 0 && self.source.chance(50) {
                let mut constant = node("", "Constant", Vec::new(), vec![name.clone()]);
                let mut value = attribute("value", "a:1");
                value.t = Some(value_proto);
                constant.attribute.push(value);
                self.graph.node.push(constant);
            } else {
                self.graph.initializer.push(value_proto);
            }
        } else {
            let ty = self.declared_type(letter, &dims);
            self.graph.input.push(info(&name, Some(ty)));
        }
        self.scope.push(KnownValue { name: name.clone(), letter: Some(letter) });
        name
    }

    /// Declares a type for a tensor with these dims, some of which become symbolic or unspecified.
    fn declared_type(&mut self, letter: u8, dims: &[i64]) -> pliant::onnx::proto::TypeProto {
        if self.source.chance(7) {
            return tensor_type(letter, None);
        }
        let dim = |&d: &i64| match self.source.below(8) {
            0 => Dim::Unspecified,
            1 => Dim::Name(format!("n{d}")),
            2 => Dim::Name(format!("m{d}")),
            _ => Dim::Number(d),
        };
        let dims: Vec<Dim> = dims.iter().map(dim).collect();
        tensor_type(letter, Some(&dims))
    }

    fn results(&mut self, schema: &Schema) -> Vec<String> {
        let (min_outputs, max_outputs) = schema.outputs;
        let count = match self.source.below(6) {
            0 => max_outputs.min(4),
            1 => self.source.below(max_outputs.min(4) + 2),
            _ => min_outputs.max(1),
        };
        let name = |b: &mut Self| if b.source.chance(5) { String::new() } else { b.new_name("y") };
        (0..count).map(|_| name(self)).collect()
    }

    fn attributes(&mut self, node_proto: &mut NodeProto, schema: &Schema, row: Option<Row>) {
        let usual_attributes = row.map_or(Vec::new(), |row| row.attributes);
        for &(name, required) in &schema.attributes {
            let text =
                usual_attributes.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
            let is_graph =
                matches!(name, "body" | "then_branch" | "else_branch" | "score_mod" | "prob_mod");
            let attr = match text {
                _ if is_graph && (required || self.source.chance(40)) => {
                    let body = self.body(node_proto);
                    Some(graph_attribute(name, body))
                }
                _ if is_graph => None,
                Some(text) if !self.source.chance(8) => Some(attribute(name, text)),
                Some(_) => Some(random_attribute(self.source, name)),
                None if required || self.source.chance(12) => {
                    Some(random_attribute(self.source, name))
                }
                None => None,
            };
            node_proto.attribute.extend(attr.filter(|_| !self.source.chance(1)));
        }
    }

    /// Generates a random graph attribute for a node, such as a loop body.
    fn body(&mut self, outer: &NodeProto) -> GraphProto {
        if self.depth >= MAX_DEPTH {
            return GraphProto::default();
        }
        let outer_graph = std::mem::take(&mut self.graph);
        let outer_scope_len = self.scope.len();
        self.depth += 1;
        let is_if = outer.op_type() == "If";
        let count = if is_if { 0 } else { outer.input.len() + usize::from(self.source.chance(4)) };
        for i in 0..count {
            let name = self.new_name("in");
            let ty = self.source.chance(25).then(|| self.declared_type(b'a', &[2, 2]));
            self.graph.input.push(info(&name, ty));
            let letter = match (outer.op_type(), i) {
                ("Loop", 0) => Some(b'g'),
                ("Loop", 1) => Some(b'i'),
                _ => None,
            };
            self.scope.push(KnownValue { name, letter });
        }
        let nodes = self.source.below(3);
        if is_if || nodes > 0 {
            self.nodes(nodes.max(1));
        }
        let not_returned = usize::from(outer.op_type() == "Loop");
        let mut outputs = outer.output.len() + not_returned;
        if self.source.chance(5) {
            outputs = self.source.below(4);
        }
        self.outputs(Some((outputs, not_returned)));
        if let (1, Some(counter), Some(first)) =
            (not_returned, self.graph.input.first(), self.graph.output.first_mut())
        {
            let name = format!("{}_goes_on", counter.name());
            self.graph.node.extend(loop_condition(counter.name(), &name));
            *first = info(&name, None);
        }
        self.scope.truncate(outer_scope_len);
        self.depth -= 1;
        std::mem::replace(&mut self.graph, outer_graph)
    }

    /// Chooses the outputs of the graph. For a graph attribute, `body` is the number of outputs that its node expects,
    /// and the number of leading inputs that the graph does not return.
    fn outputs(&mut self, body: Option<(usize, usize)>) {
        let node_outputs: Vec<String> = self
            .graph
            .node
            .iter()
            .flat_map(|n| &n.output)
            .filter(|o| !o.is_empty())
            .cloned()
            .collect();
        let mut names: Vec<String> = match body {
            None if self.source.chance(50) => node_outputs.last().cloned().into_iter().collect(),
            None => node_outputs.iter().rev().take(4).cloned().collect(),
            Some((count, not_returned)) => {
                let graph_inputs = self.graph.input.clone();
                let mut name = |i: usize| {
                    let input = graph_inputs.get(i + not_returned).map(|i| i.name().to_owned());
                    let other =
                        if self.source.chance(60) { node_outputs.last().cloned() } else { None };
                    other
                        .filter(|_| i >= not_returned)
                        .or(input)
                        .or_else(|| node_outputs.last().cloned())
                };
                (0..count).filter_map(&mut name).collect()
            }
        };
        if self.source.chance(2) {
            names.push("nowhere".into());
        }
        for name in names {
            let ty = self.source.chance(20).then(|| {
                let letter = TYPE_LETTERS[self.source.below(3)];
                self.declared_type(letter, &[2, 2])
            });
            self.graph.output.push(info(&name, ty));
        }
    }

    /// Declares types for some values of the graph. The types may be wrong.
    fn declare(&mut self) {
        for _ in 0..2 {
            if self.source.chance(10)
                && let Some(known) = self.source.pick(&self.scope.clone())
            {
                let ty = self.declared_type(known.letter.unwrap_or(b'a'), &[2, 2]);
                self.graph.value_info.push(info(&known.name, Some(ty)));
            }
        }
    }
}
