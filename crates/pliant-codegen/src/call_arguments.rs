//! Helpers of all code generators: the buffers that the arguments of calls in loop functions stand for, and the list of error
//! messages of a loop function.

use std::sync::Arc;

use pliant_ir::tir::{Buffer, Expr, ExprData, PrimFunc};

/// Returns the position of the parameter that is bound to a buffer, if there is one.
pub fn param_position(f: &PrimFunc, buffer: Buffer) -> Option<usize> {
    f.params.iter().position(|p| f.buffer_map.get(p) == Some(&buffer))
}

/// If an expression loads the first element of a buffer that is a parameter or has no strides, returns the buffer. A packed
/// function that receives such an argument gets the whole buffer.
pub fn whole_buffer(f: &PrimFunc, element: Expr) -> Option<Buffer> {
    let ExprData::Load(buffer, indices) = f.expr(element) else { return None };
    let is_first = indices.iter().all(|&i| f.as_int(i) == Some(0));
    let is_whole = param_position(f, *buffer).is_some() || f.buffer(*buffer).strides.is_empty();
    (is_first && is_whole).then_some(*buffer)
}

/// Returns the status with which a loop function reports an error message: the 1-based position in the list of messages. Adds the
/// message to the list if it is new.
pub fn message_status(messages: &mut Vec<Arc<str>>, message: impl Into<Arc<str>>) -> i64 {
    let message = message.into();
    let index = match messages.iter().position(|m| *m == message) {
        Some(index) => index,
        None => {
            messages.push(message);
            messages.len() - 1
        }
    };
    index as i64 + 1
}
