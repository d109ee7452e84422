//! Recurrent layers as loop functions call them: numbers and addresses, whose reach the bounds checks know
//! (`pliant_tir::strided`).

use std::ptr::{null, null_mut};

use pliant_exec::abi::{KernelRuntime, STATUS_BAD_ARGUMENTS};
use pliant_tensor::gates::Cell;

use super::layer::{Layer, run};
use crate::isa::isa;

/// Numbers that are not negative.
fn sizes<const N: usize>(numbers: [i64; N]) -> Option<[usize; N]> {
    let mut out = [0; N];
    for (to, n) in out.iter_mut().zip(numbers) {
        *to = usize::try_from(n).ok()?;
    }
    Some(out)
}

/// Whether a cell of so many units has as many packed columns, and peepholes.
fn fits(cell: Cell, hidden: usize, columns: [usize; 3], peepholes: Option<i64>) -> bool {
    let want = [cell.input_columns(hidden), cell.state_columns(hidden), cell.bias_columns(hidden)];
    let three = hidden.checked_mul(3).and_then(|n| i64::try_from(n).ok());
    columns.map(Some) == want && (peepholes.is_none() || cell == Cell::Lstm && peepholes == three)
}

/// A recurrent layer of float32. The number of the cell ([`Cell`]); steps, sequences, elements of an input, units, directions;
/// whether the first begins at the end. The inputs and their strides from step to step and sequence to sequence. Packed input
/// weights, weights of the state and biases, and how many columns each has for a direction. Whether there are peepholes; these
/// and how many there are for a direction; whether there are lengths, and these. The results and their strides from step to
/// step, direction to direction and sequence to sequence. Whether there are first output states, these, whether there are first
/// cell states, these. The last output states; whether there are last cell states, and these; the strides of all states from
/// direction to direction and sequence to sequence. Returns a kernel status.
///
/// # Safety
/// As for [`run`]; the addresses of what is not there are not used.
pub unsafe extern "C" fn pliant_recur_f32(
    runtime: *const KernelRuntime,
    cell: i64,
    steps: i64,
    batch: i64,
    input: i64,
    hidden: i64,
    directions: i64,
    reverse: i64,
    x: *const f32,
    x_step: i64,
    x_batch: i64,
    w: *const f32,
    w_columns: i64,
    r: *const f32,
    r_columns: i64,
    bias: *const f32,
    bias_columns: i64,
    has_peepholes: i64,
    peepholes: *const f32,
    peephole_columns: i64,
    has_lengths: i64,
    lengths: *const i64,
    y: *mut f32,
    y_step: i64,
    y_direction: i64,
    y_batch: i64,
    has_h: i64,
    h: *const f32,
    has_c: i64,
    c: *const f32,
    last_h: *mut f32,
    has_last_c: i64,
    last_c: *mut f32,
    state_direction: i64,
    state_batch: i64,
) -> i64 {
    let (Some(cell), Some(numbers), Some(columns), Some(strides)) = (
        Cell::from_number(cell),
        sizes([steps, batch, input, hidden, directions]),
        sizes([w_columns, r_columns, bias_columns]),
        sizes([x_step, x_batch, y_step, y_direction, y_batch, state_direction, state_batch]),
    ) else {
        return STATUS_BAD_ARGUMENTS;
    };
    let [steps, batch, input, hidden, directions] = numbers;
    let [x_step, x_batch, y_step, y_direction, y_batch, state_direction, state_batch] = strides;
    let lstm = cell == Cell::Lstm;
    let peephole_columns = (has_peepholes != 0).then_some(peephole_columns);
    let whole = (1..=2).contains(&directions) && (has_last_c != 0) == lstm;
    if !whole || !fits(cell, hidden, columns, peephole_columns) {
        return STATUS_BAD_ARGUMENTS;
    }
    let given = |has: i64, p: *const f32| if has == 0 { null() } else { p };
    let layer = Layer {
        cell,
        steps,
        batch,
        input,
        hidden,
        directions,
        reverse: reverse != 0,
        x: (x, x_step, x_batch),
        w,
        r,
        bias,
        peepholes: given(has_peepholes, peepholes),
        lengths: if has_lengths == 0 { null() } else { lengths },
        y: (y, y_step, y_direction, y_batch),
        first: (given(has_h, h), given(has_c, c)),
        last: (last_h, if lstm { last_c } else { null_mut() }),
        state: (state_direction, state_batch),
    };
    // SAFETY: the caller's promise.
    unsafe { run(isa(), &*runtime, &layer) }
}
