//! Finds host objects that are reachable only through given values, for hosts with a cycle
//! collector.

use std::any::Any;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::Value;

/// Calls `visit` for each host object that is kept alive by `values` alone. A cycle collector can
/// count exactly these objects as referenced by the owner of `values`; no object is counted twice.
///
/// A hosted function ([`FuncValue::hosted`](crate::FuncValue::hosted)) is one object, which its
/// closure also references.
pub fn sole_objects<'a>(
    values: impl IntoIterator<Item = &'a Value>,
    visit: &mut dyn FnMut(&Arc<dyn Any + Send + Sync>),
) {
    let mut held = Held::default();
    let mut stack: Vec<&Value> = values.into_iter().collect();
    while let Some(value) = stack.pop() {
        match value {
            Value::Tuple(tuple) if held.is_last(tuple.shared()) => stack.extend(tuple.iter()),
            Value::Func(func) if held.is_last(func.shared()) => {
                let (captured, host) = func.reach();
                stack.extend(captured);
                host.into_iter().for_each(&mut *visit);
            }
            Value::Object(object) => {
                let shared = (Arc::as_ptr(object).cast::<()>(), Arc::strong_count(object));
                if held.is_last(shared) {
                    visit(object);
                }
            }
            _ => {}
        }
    }
}

/// Counts how often each shared allocation was reached.
#[derive(Default)]
struct Held(FxHashMap<*const (), usize>);

impl Held {
    /// Whether all references to the allocation have been reached, including this one.
    fn is_last(&mut self, (place, holders): (*const (), usize)) -> bool {
        if holders == 1 {
            return true;
        }
        let met = self.0.entry(place).or_default();
        *met += 1;
        *met == holders
    }
}
