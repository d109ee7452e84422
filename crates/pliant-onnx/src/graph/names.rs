//! Names: what they stand for, in the graph under way and those around it, and where that comes from.

use rustc_hash::FxHashMap;

use super::Importer;
use crate::origin::Origin;
use crate::value::Value;

impl Importer<'_> {
    /// What a name stands for, here or in a graph around.
    pub(crate) fn lookup(&self, name: &str) -> Option<Value> {
        self.scopes.iter().rev().find_map(|s| s.get(name)).map(|(value, _)| value.clone())
    }

    /// Where what a name stands for comes from.
    pub(super) fn origin_of(&self, name: &str) -> Origin {
        let found = self.scopes.iter().rev().find_map(|s| s.get(name));
        found.map_or_else(Origin::default, |(_, origin)| *origin)
    }

    /// Gives a name of the innermost graph its value, which what is under way made.
    pub(crate) fn define(&mut self, name: &str, value: Value) {
        self.define_from(name, value, self.origin);
    }

    /// [`define`](Self::define), made elsewhere.
    pub(crate) fn define_from(&mut self, name: &str, value: Value, origin: Origin) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.into(), (value, origin));
        }
    }

    /// Opens the names of a graph inside the one under way.
    pub(crate) fn enter(&mut self) {
        self.scopes.push(FxHashMap::default());
        self.watch.inside += 1;
    }

    /// Closes them.
    pub(crate) fn leave(&mut self) {
        self.scopes.pop();
        self.watch.inside -= 1;
    }

    /// A value that a graph inside the node under way gives it.
    pub(super) fn inner_output(&mut self, name: &str) -> Value {
        let origin = self.origin_of(name);
        self.origins.also(self.origin, origin);
        self.lookup(name).unwrap_or(Value::Failed)
    }
}
