//! Scopes: the values of the names in the current graph and the enclosing graphs, and the origins of these values.

use rustc_hash::FxHashMap;

use super::Importer;
use crate::imported_value::Value;
use crate::value_origins::Origin;

impl Importer<'_> {
    /// The value of a name; `None` if it is undefined. A name of an inner graph hides the same name
    /// of an outer graph.
    pub(crate) fn lookup(&self, name: &str) -> Option<Value> {
        self.scopes.iter().rev().find_map(|s| s.get(name)).map(|(value, _)| value.clone())
    }

    /// The origin of the value of a name: the input, initializer or node that it comes from.
    pub(super) fn origin_of(&self, name: &str) -> Origin {
        let problems = self.scopes.iter().rev().find_map(|s| s.get(name));
        problems.map_or_else(Origin::default, |(_, origin)| *origin)
    }

    /// Defines a name in the innermost graph. The origin of the value (where messages say that it comes from) is the current
    /// node.
    pub(crate) fn define(&mut self, name: &str, value: Value) {
        self.define_from(name, value, self.origin);
    }

    /// Defines a name in the innermost graph. `origin` is the node or input from which messages say that the value comes.
    pub(crate) fn define_from(&mut self, name: &str, value: Value, origin: Origin) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.into(), (value, origin));
        }
    }

    /// Opens the scope of a subgraph.
    pub(crate) fn enter_scope(&mut self) {
        self.scopes.push(FxHashMap::default());
        self.symbol_constraints.graph_depth += 1;
    }

    /// Closes the scope of a subgraph.
    pub(crate) fn leave_scope(&mut self) {
        self.scopes.pop();
        self.symbol_constraints.graph_depth -= 1;
    }

    /// The value of an output of a subgraph of the current node. The node that computes this value
    /// is recorded as an input of the current node, for messages about sizes.
    pub(super) fn subgraph_output(&mut self, name: &str) -> Value {
        let origin = self.origin_of(name);
        self.origins.add_source(self.origin, origin);
        self.lookup(name).unwrap_or(Value::Failed)
    }
}
