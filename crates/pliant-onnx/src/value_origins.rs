//! [`Origins`]: for each value, the node that computed it and the values that the node read.
//! Messages use these origins to explain where a size comes from.

use pliant_ir::relax::type_lattice::type_syms;
use pliant_ir::relax::{Function, TypeData};
use pliant_sym::SymVar;

use crate::graph_import::operator_name;
use crate::imported_value::Value;
use crate::node::label;
use crate::proto::NodeProto;

/// Maximum number of nodes that a message lists to explain where a size comes from.
const MAX_STEPS: usize = 8;

/// The origin of a value, as an index into [`Origins`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Origin(u32);

/// The source of a value: an input, an initializer or a node.
#[derive(Debug, Default)]
pub(crate) struct ValueSource {
    /// The label of the source in messages.
    pub label: String,
    /// The operator of a node, with its domain; empty for inputs and initializers.
    pub operator: String,
    inputs: Vec<Origin>,
    /// The symbols that occur in the shapes or elements of the values from this source.
    symbols: Vec<SymVar>,
    /// The constant sizes in the shapes of the values from this source.
    sizes: Vec<i64>,
    /// Whether the source is a node whose second input alone determines the shape of its result, such as `Reshape`.
    shape_last: bool,
}

/// The sources of all values. Index 0 stands for values without an origin.
#[derive(Debug)]
pub(crate) struct Origins {
    list: Vec<ValueSource>,
}

impl Default for Origins {
    fn default() -> Self {
        Origins { list: vec![ValueSource::default()] }
    }
}

impl Origins {
    fn add(&mut self, source: ValueSource) -> Origin {
        self.list.push(source);
        Origin(self.list.len() as u32 - 1)
    }

    /// Adds a graph input or an initializer with the name `name` to the sources. Returns the origin of its value.
    pub fn add_named(&mut self, name: &str) -> Origin {
        self.add(ValueSource { label: format!("'{name}'"), ..ValueSource::default() })
    }

    /// Adds a node to the sources. `inputs` are the origins of the values that it reads. Returns the origin of its results.
    pub fn add_node(&mut self, node: &NodeProto, inputs: Vec<Origin>) -> Origin {
        let shape_last = matches!(node.op_type(), "Reshape" | "Expand" | "Tile");
        let (label, operator) = (label(node), operator_name(node));
        self.add(ValueSource { label, operator, inputs, shape_last, ..ValueSource::default() })
    }

    pub fn get(&self, current: Origin) -> &ValueSource {
        &self.list[current.0 as usize]
    }

    /// The origin of input `i` of a node; the node itself if it has no such input.
    pub fn input_of(&self, node: Origin, i: usize) -> Origin {
        self.get(node).inputs.get(i).copied().unwrap_or(node)
    }

    /// Records that the values of `node` also depend on `from`, the origin of an output of one of the node's subgraphs.
    pub fn add_source(&mut self, node: Origin, from: Origin) {
        let inputs = &mut self.list[node.0 as usize].inputs;
        if from != node && !inputs.contains(&from) {
            inputs.push(from);
        }
    }

    /// Records the symbols and sizes of a value that comes from the given origin.
    pub fn record_properties(&mut self, current: Origin, func: &Function, value: &Value) {
        let source = &mut self.list[current.0 as usize];
        match value {
            Value::Expr(e) => {
                let ty = func.expr_ty(*e);
                source.symbols.extend(type_syms(func, ty));
                if let TypeData::Tensor { .. } = func.types.get(ty) {
                    let dims = func.types.get(ty).dims().unwrap_or_default();
                    source.sizes.extend(dims.iter().filter_map(|&d| func.syms.as_int(d)));
                }
            }
            Value::Symbolic(t) => {
                for &elem in &t.elems {
                    source.symbols.extend(func.syms.free_vars(elem));
                }
            }
            Value::Rational(r) => {
                for &elem in r.numerators.elems.iter().chain(&r.denominators.elems) {
                    source.symbols.extend(func.syms.free_vars(elem));
                }
            }
            Value::Const(t) => source.sizes.extend_from_slice(t.shape()),
            Value::Narrow(_, storage) => self.record_properties(current, func, storage),
            Value::Sequence(items) => {
                items.iter().for_each(|v| self.record_properties(current, func, v))
            }
            Value::Object(..) | Value::Absent | Value::Failed => {}
        }
    }

    /// The path by which a symbol reaches a node: the label of the input, then the labels of the
    /// nodes on the path.
    pub fn symbol_path(&self, node: Origin, symbol: SymVar) -> Vec<String> {
        let (mut current, mut path) = (node, vec![node]);
        loop {
            let holds = |i: &&Origin| !path.contains(*i) && self.get(**i).symbols.contains(&symbol);
            let Some(&next) = self.get(current).inputs.iter().find(holds) else { break };
            path.push(next);
            current = next;
        }
        path[1..].iter().rev().map(|&i| self.get(i).label.clone()).collect()
    }

    /// The nodes that computed the given sizes for a node, nearest first. Follows the node's inputs backward, and prefers values
    /// whose sizes do not depend on the symbols for which `is_tracked` returns true.
    pub fn size_sources(
        &self,
        node: Origin,
        values: &[i64],
        is_tracked: &dyn Fn(SymVar) -> bool,
    ) -> Vec<String> {
        let mut chain = Vec::new();
        // A dim of 1 may be due to broadcasting, so it is not searched for if there are other sizes.
        let many = values.len() > 1;
        let significant: Vec<i64> = values.iter().copied().filter(|&v| v != 1 || !many).collect();
        let free = |i: Origin| !self.get(i).symbols.iter().any(|&v| is_tracked(v));
        let mut current = node;
        while chain.len() < MAX_STEPS {
            let (this, source) = (current, self.get(current));
            let before = move |i: &&Origin| i.0 != 0 && **i != this;
            let has = |i: &&Origin| significant.iter().any(|v| self.get(**i).sizes.contains(v));
            let mut fixed = source.inputs.iter().filter(before).filter(|i| free(**i));
            let next = match source.shape_last {
                true => source.inputs.get(1).filter(before),
                false => fixed.clone().find(has).or_else(|| fixed.next()),
            };
            let next = next.or_else(|| source.inputs.iter().filter(before).find(has));
            let Some(&next) = next else { break };
            chain.push(self.get(next).label.clone());
            current = next;
        }
        chain
    }
}
