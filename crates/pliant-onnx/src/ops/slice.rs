//! Converter of the ONNX operator `Slice`.

use pliant_ir::DType;
use pliant_ir::relax::Expr;
use pliant_sym::Sym;

use super::{OnnxOp, op};
use crate::import_error::Problem;
use crate::imported_value::{SymTensor, Value};
use crate::node::{ConvertResult, Node, ints_attr};

pub(super) static OPS: &[OnnxOp] = &[op("Slice", slice)];

/// The bounds of a `Slice` node: symbolic starts and ends, and constant axes and steps. They are attributes before opset 10, and
/// inputs since then.
struct Bounds {
    starts: Vec<Sym>,
    ends: Vec<Sym>,
    axes: Vec<usize>,
    steps: Vec<i64>,
}

fn slice(n: &mut Node<'_, '_>) -> ConvertResult {
    let rank = match n.value(0)? {
        Value::Symbolic(t) => t.shape.len(),
        _ => {
            let x = n.tensor(0)?;
            n.rank(x)?
        }
    };
    let Some(bounds) = slice_bounds(n, rank)? else { return slice_non_constant(n, rank) };
    if n.is_symbolic(0)
        && let Some(t) = n.symbolic(0)
        && let Some(part) = slice_symbolic(n, &t, &bounds)
    {
        return Ok(vec![part.into()]);
    }
    let x = n.tensor(0)?;
    let dims = n.dims(x)?;
    let starts: Vec<Sym> = (0..bounds.starts.len())
        .map(|k| clamp_start(n, bounds.starts[k], bounds.steps[k], dims[bounds.axes[k]]))
        .collect();
    let func = n.func();
    let axes: Vec<Sym> = bounds.axes.iter().map(|&a| func.syms.int(a as i64)).collect();
    let steps: Vec<Sym> = bounds.steps.iter().map(|&s| func.syms.int(s)).collect();
    let args = [&axes, &starts, &bounds.ends, &steps].map(|list| func.shape(list));
    Ok(vec![n.op("relax.strided_slice", &[x, args[0], args[1], args[2], args[3]])?.into()])
}

/// Returns the start of a slice along an axis of size `size`. If the step is negative and the start is before the first
/// element, the result is the first element, as ONNX requires. In NumPy, such a slice is empty.
fn clamp_start(n: &mut Node<'_, '_>, start: Sym, step: i64, size: Sym) -> Sym {
    let syms = &mut n.func().syms;
    // A constant start of at least -1 is never before the first element.
    if step > 0 || syms.as_int(start).is_some_and(|start| start >= -1) {
        return start;
    }
    let first = syms.neg(size);
    syms.max(start, first)
}

/// Converts `Slice` with non-constant bounds. The bounds for the given axes are scattered into lists of bounds for all axes.
fn slice_non_constant(n: &mut Node<'_, '_>, rank: usize) -> ConvertResult {
    let x = n.tensor(0)?;
    let vector =
        |n: &mut Node<'_, '_>, attr: &str, input: usize| -> Result<Option<Expr>, Problem> {
            if let Some(ints) = n.attrs().ints(attr)? {
                return n.int_vector(ints).map(Some);
            }
            let Some(values) = n.optional_tensor(input)? else { return Ok(None) };
            n.cast(values, DType::Int64).map(Some)
        };
    let missing_input =
        |what: &str| Problem::invalid(format!("'{what}' is missing, but the node requires it"));
    let starts = vector(n, "starts", 1)?.ok_or_else(|| missing_input("starts"))?;
    let ends = vector(n, "ends", 2)?.ok_or_else(|| missing_input("ends"))?;
    let count = n.dims(starts)?;
    let count = *count
        .first()
        .ok_or_else(|| Problem::invalid("'starts' must be a vector, but is a scalar"))?;
    let axes = match vector(n, "axes", 3)? {
        Some(axes) => {
            let rank = n.func().syms.int(rank as i64);
            n.axes_mask(axes, rank)?;
            n.normalize_axes(axes, rank)?
        }
        None => n.iota(count)?,
    };
    let steps = match vector(n, "steps", 4)? {
        Some(steps) => steps,
        None => {
            let one = n.scalar(1i64)?;
            n.full(&[count], one)?
        }
    };
    for (list, name) in [(ends, "'ends'"), (axes, "'axes'"), (steps, "'steps'")] {
        let length = n.vector_length(list, name)?;
        n.require_equal(
            length,
            count,
            "'starts', 'ends', 'axes' and 'steps' must have equal lengths, but have {} and {}",
        )?;
    }
    let input_dims = n.dims(x)?;
    let (first, last, step) =
        (n.int_vector(&vec![0; rank])?, n.size_vector(&input_dims)?, n.int_vector(&vec![1; rank])?);
    let mut args = vec![x];
    for (full_bounds, given_bounds) in [(first, starts), (last, ends), (step, steps)] {
        args.push(n.op_with(
            "relax.scatter_elements",
            &[full_bounds, axes, given_bounds],
            ints_attr("axis", 0),
        )?);
    }
    // Clamp the starts as `clamp_start` does for known bounds.
    let (zero, sizes) = (n.scalar(0i64)?, n.size_vector(&input_dims)?);
    let first = n.op("relax.negative", &[sizes])?;
    let first = n.op("relax.maximum", &[args[1], first])?;
    let is_backward = n.op("relax.less", &[args[3], zero])?;
    args[1] = n.op("relax.where", &[is_backward, first, args[1]])?;
    let y = n.op("relax.dynamic_strided_slice", &args)?;
    // The dims of all other axes do not change.
    let sliced_axes = match (n.attrs().ints("axes")?, n.const_ints(3)) {
        (Some(axes), _) => Some(axes.to_vec()),
        (None, None) if !n.has_input(3) => {
            n.func().syms.as_int(count).map(|count| (0..count).collect())
        }
        (None, known) => known,
    };
    let Some(sliced_axes) = sliced_axes else { return Ok(vec![y.into()]) };
    let mut kept: Vec<Option<Sym>> = input_dims.into_iter().map(Some).collect();
    for axis in sliced_axes {
        kept[n.axis(axis, rank)?] = None;
    }
    Ok(vec![n.with_dims(y, &kept)?.into()])
}

/// Reads the bounds of a slice as symbolic terms; `None` if any bound is not known symbolically.
fn slice_bounds(n: &mut Node<'_, '_>, rank: usize) -> Result<Option<Bounds>, Problem> {
    let values =
        |n: &mut Node<'_, '_>, attr: &str, input: usize| -> Result<Option<Vec<Sym>>, Problem> {
            if let Some(ints) = n.attrs().ints(attr)? {
                return Ok(Some(ints.iter().map(|&v| n.func().syms.int(v)).collect()));
            }
            if !n.has_input(input) {
                return Ok(None);
            }
            if let Some(t) = n.symbolic(input) {
                return Ok(Some(t.elems));
            }
            Ok(None)
        };
    let (Some(starts), Some(ends)) = (values(n, "starts", 1)?, values(n, "ends", 2)?) else {
        return Ok(None);
    };
    let constants = |n: &mut Node<'_, '_>, list: Vec<Sym>| -> Option<Vec<i64>> {
        list.iter().map(|&s| n.func().syms.as_int(s)).collect()
    };
    let axes = match values(n, "axes", 3)? {
        Some(axes) => {
            let Some(axes) = constants(n, axes) else { return Ok(None) };
            axes.iter().map(|&a| n.axis(a, rank)).collect::<Result<_, _>>()?
        }
        None if n.has_input(3) => return Ok(None),
        None => (0..starts.len()).collect::<Vec<usize>>(),
    };
    let steps = match values(n, "steps", 4)? {
        Some(steps) => match constants(n, steps) {
            Some(steps) => steps,
            None => return Ok(None),
        },
        None if n.has_input(4) => return Ok(None),
        None => vec![1; starts.len()],
    };
    let lengths = [ends.len(), axes.len(), steps.len()];
    if lengths.iter().any(|&l| l != starts.len()) {
        return Err(Problem::invalid(format!(
            "'starts', 'ends', 'axes' and 'steps' must have equal lengths, but have {}, {}, {} and {}",
            starts.len(),
            ends.len(),
            axes.len(),
            steps.len()
        )));
    }
    if axes.iter().any(|&a| a >= rank) {
        let text = format!("'starts' has {} numbers, but the input has {rank} dims", starts.len());
        return Err(Problem::invalid(text));
    }
    if steps.contains(&0) {
        return Err(Problem::invalid("'steps' contains 0, but a step must not be 0"));
    }
    Ok(Some(Bounds { starts, ends, axes, steps }))
}

/// Folds a slice of a shape computation with constant bounds; `None` if it cannot be folded.
fn slice_symbolic(n: &mut Node<'_, '_>, t: &SymTensor, b: &Bounds) -> Option<SymTensor> {
    let mut shape = t.shape.clone();
    let mut from = vec![0i64; shape.len()];
    let mut step = vec![1i64; shape.len()];
    for (k, &axis) in b.axes.iter().enumerate() {
        let syms = &n.func().syms;
        let (start, end) = (syms.as_int(b.starts[k])?, syms.as_int(b.ends[k])?);
        let (size, by) = (t.shape[axis] as i64, b.steps[k]);
        let position = |v: i64| if v < 0 { v.saturating_add(size) } else { v };
        let (low, high) = if by > 0 { (0, size) } else { (-1, size - 1) };
        let start = position(start).clamp(0.min(high), high.max(low));
        let end = position(end).clamp(low, high.max(low));
        // The step may be any 64-bit integer, so the count is computed in 128 bits.
        let span = if by > 0 { end - start } else { start - end };
        let count = i128::from(span).unsigned_abs().div_ceil(i128::from(by).unsigned_abs());
        shape[axis] = if span > 0 { usize::try_from(count).ok()? } else { 0 };
        (from[axis], step[axis]) = (start, by);
    }
    Some(t.gather(shape, |index| {
        index.iter().enumerate().map(|(d, &i)| (from[d] + step[d] * i as i64) as usize).collect()
    }))
}
