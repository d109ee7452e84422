//! Finds the objects of the embedding program (such as Python objects) that only given VM values keep alive, for embedding programs
//! with a cycle collector.

use std::any::Any;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::Value;

/// Calls `visit`, once each, for the opaque objects (such as Python objects) whose references are all reachable from `values`. The
/// garbage collector of the language of these objects may count them as owned by the holder of `values`.
///
/// A hosted function ([`FuncValue::hosted`](crate::FuncValue::hosted)) counts as one object, although its closure also references
/// the object that it represents.
pub fn uniquely_held_objects<'a>(
    values: impl IntoIterator<Item = &'a Value>,
    visit: &mut dyn FnMut(&Arc<dyn Any + Send + Sync>),
) {
    let mut counts = ReferenceCounts::default();
    let mut stack: Vec<&Value> = values.into_iter().collect();
    while let Some(value) = stack.pop() {
        match value {
            Value::Tuple(tuple) if counts.is_last(tuple.shared()) => stack.extend(tuple.iter()),
            Value::Func(func) if counts.is_last(func.shared()) => {
                let (captured, host) = func.gc_children();
                stack.extend(captured);
                host.into_iter().for_each(&mut *visit);
            }
            Value::Object(object) => {
                let shared = (Arc::as_ptr(object).cast::<()>(), Arc::strong_count(object));
                if counts.is_last(shared) {
                    visit(object);
                }
            }
            _ => {}
        }
    }
}

/// A counter for each shared allocation: the number of references found so far.
#[derive(Default)]
struct ReferenceCounts(FxHashMap<*const (), usize>);

impl ReferenceCounts {
    /// Counts one more reference to the allocation at `address`, which has `references` references
    /// in total. Returns whether all of them have now been found.
    fn is_last(&mut self, (address, references): (*const (), usize)) -> bool {
        if references == 1 {
            return true;
        }
        let seen = self.0.entry(address).or_default();
        *seen += 1;
        *seen == references
    }
}
