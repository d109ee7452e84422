//! Which objects of the host can be reached through one value alone: for a host that collects cycles.

use std::any::Any;
use std::sync::Arc;

use crate::Value;

/// Calls `visit` for each object of the host that nothing but `value` keeps alive. A host whose collector asks who
/// holds what may count these, and no others, as held by whoever owns `value`: nothing is counted twice.
///
/// A hosted function ([`FuncValue::hosted`](crate::FuncValue::hosted)) is one object, which its function shares.
pub fn sole_objects(value: &Value, visit: &mut dyn FnMut(&Arc<dyn Any + Send + Sync>)) {
    let mut stack = vec![value];
    while let Some(value) = stack.pop() {
        match value {
            Value::Tuple(tuple) => stack.extend(tuple.sole().into_iter().flatten()),
            Value::Func(func) => {
                let Some((captured, host)) = func.sole() else { continue };
                stack.extend(captured);
                host.into_iter().for_each(&mut *visit);
            }
            Value::Object(object) if Arc::strong_count(object) == 1 => visit(object),
            _ => {}
        }
    }
}
