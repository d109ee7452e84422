//! Recurrent layers.

use pliant_tensor::DType::{Float32, Int64};
use pliant_tensor::gates::Cell;

use crate::{Attr, AttrDefault, AttrType, Call, Dims, Kernel, Operand, Sizes};

/// The cells, in the order of [`Cell::number`].
const CELLS: &[&str] = &["lstm", "gru", "linear_gru", "rnn"];
/// The layouts of `x` and `y`: steps or sequences first.
pub const LAYOUTS: &[&str] = &["steps_first", "batch_first"];

const X: Dims = Dims::ByLayout(&[&["steps", "batch", "input"], &["batch", "steps", "input"]]);
const Y: Dims = Dims::ByLayout(&[
    &["steps", "directions", "batch", "hidden"],
    &["batch", "steps", "directions", "hidden"],
]);
const STATE: Dims =
    Dims::ByLayout(&[&["directions", "batch", "hidden"], &["batch", "directions", "hidden"]]);

/// The declaration.
pub static KERNEL: Kernel = Kernel {
    name: "recurrent",
    doc: "An LSTM, GRU or plain recurrent layer, in one or both directions (ONNX `LSTM`, `GRU`, `RNN`). Weights are packed: \
          the gates of 16 units lie side by side (`pliant_tensor::gates`).",
    operands: &[
        Operand::input("x", Float32, X, "inputs").strided_rows(),
        Operand::input("w", Float32, Dims::Fixed(&["input_weights"]), "packed input weights"),
        Operand::input("r", Float32, Dims::Fixed(&["state_weights"]), "packed recurrence weights"),
        Operand::input("bias", Float32, Dims::Fixed(&["biases"]), "packed biases"),
        Operand::input(
            "peepholes",
            Float32,
            Dims::Fixed(&["directions", "peephole_weights"]),
            "peepholes of the input, output and forget gates of an LSTM",
        )
        .optional(),
        Operand::input(
            "lengths",
            Int64,
            Dims::Fixed(&["batch"]),
            "steps of each sequence, 0 to `steps`; without, all have `steps`",
        )
        .optional(),
        Operand::input(
            "initial_h",
            Float32,
            STATE,
            "hidden states before the first step; without, zeros",
        )
        .optional(),
        Operand::input(
            "initial_c",
            Float32,
            STATE,
            "cell states of an LSTM before the first step; without, zeros",
        )
        .optional(),
        Operand::output(
            "y",
            Float32,
            Y,
            "hidden states after each step, zeros after the end of a sequence",
        ),
        Operand::output("last_h", Float32, STATE, "hidden states after the last step"),
        Operand::output("last_c", Float32, STATE, "cell states of an LSTM after the last step")
            .optional(),
    ],
    attrs: &[
        Attr {
            name: "cell",
            ty: AttrType::Choice(CELLS),
            default: AttrDefault::Required,
            doc: "the kind of cell; `linear_gru` applies the reset gate after the recurrence product",
        },
        Attr {
            name: "layout",
            ty: AttrType::Choice(LAYOUTS),
            default: AttrDefault::Number(0),
            doc: "the order of the dims of inputs, results and states",
        },
        Attr {
            name: "reverse",
            ty: AttrType::Bool,
            default: AttrDefault::Number(0),
            doc: "whether the first direction starts at the last step",
        },
    ],
    derived: &[
        ("input_weights", |c, s| packed(c, s, Cell::input_columns, s.get("input"))),
        ("state_weights", |c, s| packed(c, s, Cell::state_columns, s.get("hidden"))),
        ("biases", |c, s| packed(c, s, Cell::bias_columns, 1)),
        ("peephole_weights", |_, s| s.get("hidden").checked_mul(3)),
    ],
    relations,
    flops,
};

/// The name of a cell in the attribute `cell`.
pub fn cell_name(cell: Cell) -> &'static str {
    CELLS[cell.number() as usize]
}

/// The cell of a call.
pub fn cell(call: &Call) -> Cell {
    Cell::from_number(call.int("cell")).expect("the attribute is in range")
}

/// The number of packed elements of all directions: `columns` of the cell for each of
/// `rows` inputs.
fn packed(
    call: &Call,
    sizes: &Sizes,
    columns: fn(Cell, usize) -> Option<usize>,
    rows: i64,
) -> Option<i64> {
    let size = |name: &str| usize::try_from(sizes.get(name)).ok();
    let columns = columns(cell(call), size("hidden")?)?;
    let per_direction = columns.checked_mul(usize::try_from(rows).ok()?)?;
    i64::try_from(per_direction.checked_mul(size("directions")?)?).ok()
}

fn relations(call: &Call, sizes: &Sizes) -> Result<(), String> {
    let directions = sizes.get("directions");
    if !(1..=2).contains(&directions) {
        return Err(format!("operand y has {directions} directions, expected 1 or 2"));
    }
    let lstm = cell(call) == Cell::Lstm;
    for name in ["peepholes", "initial_c", "last_c"] {
        if call.operand(name).is_some() && !lstm {
            return Err(format!("operand {name} is given, but only an LSTM has one"));
        }
    }
    if lstm && call.operand("last_c").is_none() {
        return Err("operand last_c is missing, which an LSTM writes".to_string());
    }
    Ok(())
}

fn flops(call: &Call, sizes: &Sizes) -> f64 {
    let gates = cell(call).gates() as f64;
    let size = |name: &str| sizes.get(name) as f64;
    let rows = size("steps") * size("batch") * size("directions");
    2.0 * rows * gates * size("hidden") * (size("input") + size("hidden"))
}
