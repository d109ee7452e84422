//! Converters of `Concat`, `Split`, `DepthToSpace` and `SpaceToDepth`.

use pliant_ir::relax::Expr;
use pliant_sym::Sym;

use super::{OnnxOp, op};
use crate::import_error::Problem;
use crate::imported_value::SymTensor;
use crate::node::{ConvertResult, Node};

pub(super) static OPS: &[OnnxOp] = &[
    op("Concat", concat),
    op("DepthToSpace", depth_to_space),
    op("SpaceToDepth", space_to_depth),
    op("Split", split),
];

fn concat(n: &mut Node<'_, '_>) -> ConvertResult {
    let axis = n.attrs().int("axis")?.unwrap_or(1);
    if n.len() == 0 {
        return Err(Problem::invalid("the node has no inputs, but needs at least one"));
    }
    // Shape vectors remain symbolic. Constants alone are concatenated as tensors.
    if (0..n.len()).any(|i| n.is_symbolic(i)) {
        let parts: Option<Vec<SymTensor>> = (0..n.len()).map(|i| n.symbolic(i)).collect();
        if let Some(parts) = parts
            && parts.iter().all(|p| p.shape.len() == 1)
        {
            n.axis(axis, 1)?;
            let dtype = parts[0].dtype;
            let elems: Vec<Sym> = parts.into_iter().flat_map(|p| p.elems).collect();
            return Ok(vec![SymTensor { dtype, ..SymTensor::vector(elems) }.into()]);
        }
    }
    let mut known: Option<Vec<Option<Sym>>> = Some(Vec::new());
    for i in 0..n.len() {
        let part = n.input(i);
        known = known.and_then(|all| Some([all, n.known_elements(&part)?].concat()));
    }
    let parts = n.tensors()?;
    let rank = n.rank(parts[0])?;
    n.axis(axis, rank)?;
    let result = n.concat(&parts, axis)?;
    n.record_known_elements(result, known.unwrap_or_default());
    Ok(vec![result.into()])
}

/// Converts `Split`: splits a tensor into parts of the given lengths, or into equal parts. Since opset 18, the last of the equal
/// parts may be smaller.
fn split(n: &mut Node<'_, '_>) -> ConvertResult {
    let x = n.tensor(0)?;
    let dims = n.dims(x)?;
    let axis = n.axis(n.attrs().int("axis")?.unwrap_or(0), dims.len())?;
    let lengths: Option<Vec<Sym>> = match n.attrs().ints("split")? {
        Some(ints) => Some(ints.iter().map(|&v| n.func().syms.int(v)).collect()),
        None if n.has_input(1) => Some(n.sizes_input(1, Some(n.proto.output.len()))?),
        None => None,
    };
    let output_count = n.proto.output.len() as i64;
    let count = n.attrs().int("num_outputs")?.unwrap_or(output_count);
    if count != output_count {
        let message =
            format!("attribute 'num_outputs' is {count}, but the node has {output_count} outputs");
        return Err(Problem::invalid(message));
    }
    let lengths = match lengths {
        Some(lengths) => lengths,
        None => equal_parts(n, dims[axis], count)?,
    };
    check_part_lengths(n, &lengths, dims[axis])?;
    let mut outputs = Vec::with_capacity(lengths.len());
    let mut from = n.func().syms.int(0);
    for length in lengths {
        let to = n.func().syms.add(from, length);
        outputs.push(n.slice_axis(x, axis, from, to)?.into());
        from = to;
    }
    Ok(outputs)
}

/// Checks that there is one length per output, and that the lengths add up to the size of the split axis.
fn check_part_lengths(n: &mut Node<'_, '_>, lengths: &[Sym], dim: Sym) -> Result<(), Problem> {
    let output_count = n.proto.output.len();
    if lengths.len() != output_count {
        let message = format!(
            "'split' has {} lengths, but the node has {output_count} outputs",
            lengths.len()
        );
        return Err(Problem::invalid(message));
    }
    let known = lengths.iter().filter_map(|&l| n.func().syms.as_int(l)).collect::<Vec<i64>>();
    if let Some(length) = known.into_iter().find(|&l| l < 0) {
        return Err(Problem::invalid(format!("'split' contains the negative length {length}")));
    }
    let zero = n.func().syms.int(0);
    let mut sum = zero;
    for &length in lengths {
        n.require_at_most(
            zero,
            length,
            "the lengths in 'split' must be at least {}, but one is {}",
        )?;
        sum = n.func().syms.add(sum, length);
    }
    n.require_equal(
        sum,
        dim,
        "the lengths in 'split' sum to {}, but the axis that is split has {} elements",
    )
}

/// The lengths of the parts if an axis of size `dim` is split into `count` equal parts. The last part may be smaller.
fn equal_parts(n: &mut Node<'_, '_>, dim: Sym, count: i64) -> Result<Vec<Sym>, Problem> {
    if count <= 0 {
        return Err(Problem::invalid(
            "the node must split its input into at least one part, but has no outputs",
        ));
    }
    let syms = &mut n.func().syms;
    let parts = syms.int(count);
    let whole = syms.ceildiv(dim, parts);
    let all_but_last = syms.int(count - 1);
    let covered = syms.mul(whole, all_but_last);
    let last = syms.sub(dim, covered);
    if n.opset < 18 {
        let text = "the axis cannot be split into equal parts: the last part would have {} elements, but the others {}; \
                    set 'split' or export with opset 18, which allow a smaller last part";
        n.require_equal(last, whole, text)?;
    }
    let mut lengths = vec![whole; count as usize - 1];
    lengths.push(last);
    Ok(lengths)
}

fn depth_to_space(n: &mut Node<'_, '_>) -> ConvertResult {
    let (x, [b, c, h, w], k) = block_inputs(n)?;
    let column_row = n.attrs().choice("mode", &["DCR", "CRD"])? == "CRD";
    let syms = &mut n.func().syms;
    let area = syms.mul(k, k);
    let depth = syms.floordiv(c, area);
    let (height, width) = (syms.mul(h, k), syms.mul(w, k));
    let (split_shape, order) = if column_row {
        ([b, depth, k, k, h, w], [0, 1, 4, 2, 5, 3])
    } else {
        ([b, k, k, depth, h, w], [0, 3, 4, 1, 5, 2])
    };
    let y = n.reshape(x, &split_shape)?;
    let y = n.permute(y, &order)?;
    Ok(vec![n.reshape(y, &[b, depth, height, width])?.into()])
}

fn space_to_depth(n: &mut Node<'_, '_>) -> ConvertResult {
    let (x, [b, c, h, w], k) = block_inputs(n)?;
    let column_row = n.attrs().choice("mode", &["DCR", "CRD"])? == "CRD";
    let syms = &mut n.func().syms;
    let (rows, narrow) = (syms.floordiv(h, k), syms.floordiv(w, k));
    let area = syms.mul(k, k);
    let deep = syms.mul(c, area);
    let y = n.reshape(x, &[b, c, rows, k, narrow, k])?;
    let order = if column_row { [0, 1, 3, 5, 2, 4] } else { [0, 3, 5, 1, 2, 4] };
    let y = n.permute(y, &order)?;
    Ok(vec![n.reshape(y, &[b, deep, rows, narrow])?.into()])
}

/// Reads the inputs of `DepthToSpace` and `SpaceToDepth`: the tensor, its four dims, and the attribute `blocksize`.
fn block_inputs(n: &mut Node<'_, '_>) -> Result<(Expr, [Sym; 4], Sym), Problem> {
    let size = n.attrs().int("blocksize")?.unwrap_or(0);
    if size <= 0 {
        let text = format!("attribute 'blocksize' must be positive, but is {size}");
        return Err(Problem::attribute(text));
    }
    let x = n.tensor(0)?;
    let dims: [Sym; 4] = n.dims(x)?.try_into().map_err(|d: Vec<Sym>| {
        Problem::invalid(format!("the input must have 4 dims, but has {}", d.len()))
    })?;
    let size = n.func().syms.int(size);
    Ok((x, dims, size))
}
