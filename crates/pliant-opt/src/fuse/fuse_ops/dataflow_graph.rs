//! The dataflow graph of one block: a node for each binding, and an edge from each value to each of its readers.

use std::sync::Arc;

use pliant_ir::attr_names::OP_PATTERN;
use pliant_ir::relax::type_lattice::prove_dims_equal;
use pliant_ir::relax::{Binding, Block, Expr, ExprData, Function, Type, Var};
use pliant_ir::{AttrValue, IRModule};
use pliant_pass::binding_rewrites::for_each_operand_var;
use rustc_hash::FxHashMap;

use crate::analysis::Effects;
use crate::analysis::dominators::Node;
use crate::analysis::fusion_pattern_kind::{OpPattern, is_mergeable};
use crate::analysis::loop_function_calls::{PrimFuncSizes, TirCall};

/// The loop functions of the module that can be fused, each with its fusion pattern and its sizes.
pub(super) struct FusibleFunctions(FxHashMap<Arc<str>, (OpPattern, PrimFuncSizes)>);

impl FusibleFunctions {
    pub fn new(module: &IRModule) -> Self {
        let mut map = FxHashMap::default();
        for (name, f) in module.prim_funcs() {
            let annotation = f.attrs.get(OP_PATTERN).and_then(AttrValue::as_int);
            let pattern = annotation.and_then(OpPattern::from_int).unwrap_or(OpPattern::Opaque);
            // The user may have set the annotation. It states what is profitable, so what is allowed must be checked separately.
            if pattern < OpPattern::Tuple
                && is_mergeable(f)
                && let Some(sizes) = PrimFuncSizes::of(f)
            {
                map.insert(name.clone(), (pattern, sizes));
            }
        }
        FusibleFunctions(map)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The dataflow graph of one block: nodes are bindings, and edges lead from values to their readers.
pub(super) struct Graph {
    pub bindings: Vec<Binding>,
    pub nodes: Vec<Node>,
    /// Whether each node is a call of a loop function.
    pub calls: Vec<bool>,
    /// Maps each variable of the block to its node.
    pub index: FxHashMap<Var, u32>,
    /// The epoch of each node: the number of impure calls before it. A group contains only nodes of one epoch, because the whole
    /// group is computed at the position of its last node.
    pub epochs: Vec<u32>,
}

impl Graph {
    pub fn new(
        func: &mut Function,
        block: Block,
        fusible: &FusibleFunctions,
        effects: &Effects,
    ) -> Graph {
        let bindings = func.block(block).bindings.clone();
        let mut graph = Graph {
            nodes: Vec::with_capacity(bindings.len()),
            calls: Vec::with_capacity(bindings.len()),
            index: FxHashMap::default(),
            epochs: Vec::with_capacity(bindings.len()),
            bindings,
        };
        let mut epoch = 0;
        for binding in &graph.bindings {
            graph.epochs.push(epoch);
            epoch += u32::from(effects.is_impure(func, binding.value));
        }
        for at in 0..graph.bindings.len() {
            graph.add_node(func, at as u32, fusible);
        }
        graph
    }

    fn add_node(&mut self, func: &mut Function, node: u32, fusible: &FusibleFunctions) {
        let binding = self.bindings[node as usize];
        let call = self.fusible_call(func, &binding, fusible);
        let pattern = match &call {
            Some((_, pattern)) => *pattern,
            None if self.is_field_of_call(func, &binding) => OpPattern::ElemWise,
            None => OpPattern::Opaque,
        };
        let mut operands = Vec::new();
        for_each_operand_var(func, binding.value, &mut |v| operands.push(v));
        for v in operands {
            let Some(&from) = self.index.get(&v) else { continue };
            let edge = match &call {
                Some((call, p)) => edge_pattern(func, *p, v, call),
                None => pattern,
            };
            self.nodes[from as usize].readers.push((node, edge));
        }
        let escapes = !func.var(binding.var).dataflow;
        self.nodes.push(Node { pattern, readers: Vec::new(), escapes });
        self.calls.push(call.is_some());
        self.index.insert(binding.var, node);
    }

    /// If a binding is a call of a loop function that can be fused, and the sizes at the call provably fit the function, returns
    /// the call and the fusion pattern of the function.
    fn fusible_call(
        &self,
        func: &mut Function,
        binding: &Binding,
        fusible: &FusibleFunctions,
    ) -> Option<(TirCall, OpPattern)> {
        if binding.cast.is_some() {
            return None;
        }
        let call = TirCall::of(func, binding.value)?;
        let (pattern, sizes) = fusible.0.get(&call.callee)?;
        let is_leaf = |&e: &Expr| matches!(func.expr(e), ExprData::Var(_) | ExprData::Constant(_));
        if !call.inputs.iter().all(is_leaf) {
            return None;
        }
        sizes.bind(func, &call)?;
        Some((call, *pattern))
    }

    /// Whether a binding accesses a field of the result of a call in this block.
    fn is_field_of_call(&self, func: &Function, binding: &Binding) -> bool {
        let ExprData::TupleGetItem(tuple, _) = func.expr(binding.value) else { return false };
        let ExprData::Var(v) = func.expr(*tuple) else { return false };
        self.index.get(v).is_some_and(|&i| self.calls[i as usize])
    }
}

/// Returns the fusion pattern of the edge from the variable `input` to a call that reads it. `pattern` is the fusion
/// pattern of the called loop function.
fn edge_pattern(func: &mut Function, pattern: OpPattern, input: Var, call: &TirCall) -> OpPattern {
    let ty = func.var(input).ty;
    let same_shape = call.out_tys.iter().all(|&out| same_dims(func, ty, out));
    match pattern {
        OpPattern::ElemWise if !same_shape => OpPattern::Broadcast,
        _ => pattern,
    }
}

fn same_dims(func: &mut Function, a: Type, b: Type) -> bool {
    let dims = |t: Type| func.types.get(t).dims().map(<[_]>::to_vec);
    let (Some(x), Some(y)) = (dims(a), dims(b)) else { return false };
    x.len() == y.len() && x.iter().zip(&y).all(|(&p, &q)| prove_dims_equal(func, p, q).is_yes())
}
