//! [`Origins`]: which node made each value and from what, so that messages tell the way of a size.

use pliant_ir::relax::derive::type_syms;
use pliant_ir::relax::{Function, TypeData};
use pliant_sym::SymVar;

use crate::graph::operator_name;
use crate::node::label;
use crate::proto::NodeProto;
use crate::value::Value;

/// Steps of a way that are told.
const STEPS: usize = 8;

/// Where a value comes from: a place in [`Origins`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Origin(u32);

/// An input, an initializer or a node.
#[derive(Debug, Default)]
pub(crate) struct Source {
    /// How messages call it.
    pub label: String,
    /// The operator with its domain; empty where there is no node.
    pub operator: String,
    inputs: Vec<Origin>,
    /// The symbols in the shapes, or in the elements, of what it gives.
    symbols: Vec<SymVar>,
    /// The numbers among its dims.
    sizes: Vec<i64>,
    /// Whether its second input alone says how large its result is.
    shape_last: bool,
}

/// All that values come from. The first stands for what has no origin.
#[derive(Debug)]
pub(crate) struct Origins {
    list: Vec<Source>,
}

impl Default for Origins {
    fn default() -> Self {
        Origins { list: vec![Source::default()] }
    }
}

impl Origins {
    fn add(&mut self, source: Source) -> Origin {
        self.list.push(source);
        Origin(self.list.len() as u32 - 1)
    }

    /// A value that the file or the user gives by that name.
    pub fn named(&mut self, name: &str) -> Origin {
        self.add(Source { label: format!("'{name}'"), ..Source::default() })
    }

    /// What a node gives.
    pub fn node(&mut self, node: &NodeProto, inputs: Vec<Origin>) -> Origin {
        let shape_last = matches!(node.op_type(), "Reshape" | "Expand" | "Tile");
        let (label, operator) = (label(node), operator_name(node));
        self.add(Source { label, operator, inputs, shape_last, ..Source::default() })
    }

    pub fn get(&self, at: Origin) -> &Source {
        &self.list[at.0 as usize]
    }

    /// Input `i` of a node; the node itself where it has no such input.
    pub fn input(&self, node: Origin, i: usize) -> Origin {
        self.get(node).inputs.get(i).copied().unwrap_or(node)
    }

    /// A value that a graph inside the node gives it.
    pub fn also(&mut self, node: Origin, from: Origin) {
        let inputs = &mut self.list[node.0 as usize].inputs;
        if from != node && !inputs.contains(&from) {
            inputs.push(from);
        }
    }

    /// Notes what is known of a value of that origin.
    pub fn describe(&mut self, at: Origin, func: &Function, value: &Value) {
        let made = &mut self.list[at.0 as usize];
        match value {
            Value::Expr(e) => {
                let ty = func.expr_ty(*e);
                made.symbols.extend(type_syms(func, ty));
                if let TypeData::Tensor { .. } = func.types.get(ty) {
                    let dims = func.types.get(ty).dims().unwrap_or_default();
                    made.sizes.extend(dims.iter().filter_map(|&d| func.syms.as_int(d)));
                }
            }
            Value::Syms(t) => {
                for &elem in &t.elems {
                    made.symbols.extend(func.syms.free_vars(elem));
                }
            }
            Value::Ratios(r) => {
                for &elem in r.over.elems.iter().chain(&r.under.elems) {
                    made.symbols.extend(func.syms.free_vars(elem));
                }
            }
            Value::Const(t) => made.sizes.extend_from_slice(t.shape()),
            Value::Coded(_, held) => self.describe(at, func, held),
            Value::Sequence(items) => items.iter().for_each(|v| self.describe(at, func, v)),
            Value::Object(..) | Value::Absent | Value::Failed => {}
        }
    }

    /// The nodes through which a symbol comes to a node, from the input on, which is the first.
    pub fn path_of(&self, node: Origin, symbol: SymVar) -> Vec<String> {
        let (mut at, mut way) = (node, vec![node]);
        loop {
            let holds = |i: &&Origin| !way.contains(*i) && self.get(**i).symbols.contains(&symbol);
            let Some(&next) = self.get(at).inputs.iter().find(holds) else { break };
            way.push(next);
            at = next;
        }
        way[1..].iter().rev().map(|&i| self.get(i).label.clone()).collect()
    }

    /// From which nodes a fixed size of a node comes, the nearest first: back along what holds none of the symbols.
    pub fn source_of(
        &self,
        node: Origin,
        values: &[i64],
        watched: &dyn Fn(SymVar) -> bool,
    ) -> Vec<String> {
        let mut chain = Vec::new();
        // Whatever broadcasts may be 1.
        let many = values.len() > 1;
        let told: Vec<i64> = values.iter().copied().filter(|&v| v != 1 || !many).collect();
        let free = |i: Origin| !self.get(i).symbols.iter().any(|&v| watched(v));
        let mut at = node;
        while chain.len() < STEPS {
            let (here, made) = (at, self.get(at));
            let before = move |i: &&Origin| i.0 != 0 && **i != here;
            let has = |i: &&Origin| told.iter().any(|v| self.get(**i).sizes.contains(v));
            let mut fixed = made.inputs.iter().filter(before).filter(|i| free(**i));
            let next = match made.shape_last {
                true => made.inputs.get(1).filter(before),
                false => fixed.clone().find(has).or_else(|| fixed.next()),
            };
            let next = next.or_else(|| made.inputs.iter().filter(before).find(has));
            let Some(&next) = next else { break };
            chain.push(self.get(next).label.clone());
            at = next;
        }
        chain
    }
}
