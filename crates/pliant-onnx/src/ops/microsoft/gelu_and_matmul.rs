//! Converters of Microsoft's GELU variants, of matrix products with fused operations, and of matrix products with quantized
//! weights.

use pliant_ir::DType;
use pliant_ir::relax::Expr;
use pliant_tensor::Tensor;

use super::op;
use crate::import_error::Problem;
use crate::node::{ConvertResult, ExprResult, Node};
use crate::ops::OnnxOp;
use crate::ops::quantization::repeat_and_truncate;

pub(super) static OPS: &[OnnxOp] = &[
    op("BiasGelu", |n| gelu(n, "relax.nn.gelu")),
    op("FastGelu", |n| gelu(n, "relax.nn.gelu_tanh")),
    op("FusedMatMul", fused_matmul),
    op("Gelu", |n| gelu(n, "relax.nn.gelu")),
    op("MatMulNBits", matmul_nbits),
    op("QuickGelu", quick_gelu),
    op("TransposeMatMul", fused_matmul),
];

/// Converts a GELU operator with an optional bias, which is added to the input.
fn gelu(n: &mut Node<'_, '_>, name: &str) -> ConvertResult {
    let mut x = n.tensor(0)?;
    if let Some(bias) = n.optional_tensor(1)? {
        x = n.op("relax.add", &[x, bias])?;
    }
    Ok(vec![n.op(name, &[x])?.into()])
}

fn quick_gelu(n: &mut Node<'_, '_>) -> ConvertResult {
    let alpha = n.attrs().float("alpha")?.unwrap_or(1.702);
    let x = n.tensor(0)?;
    let dtype = n.dtype(x)?;
    let alpha = n.scalar_as(alpha, dtype)?;
    let scaled = n.op("relax.multiply", &[x, alpha])?;
    let gate = n.op("relax.sigmoid", &[scaled])?;
    Ok(vec![n.op("relax.multiply", &[x, gate])?.into()])
}

/// Converts `FusedMatMul`: a matrix product with optionally transposed operands, scaled by `alpha`.
fn fused_matmul(n: &mut Node<'_, '_>) -> ConvertResult {
    let alpha = n.attrs().float("alpha")?.unwrap_or(1.0);
    let mut operands = [n.tensor(0)?, n.tensor(1)?];
    let names = [("transA", "transBatchA"), ("transB", "transBatchB")];
    for (operand, (transpose, batch)) in operands.iter_mut().zip(names) {
        let rank = n.rank(*operand)?;
        let mut order: Vec<usize> = (0..rank).collect();
        if n.attrs().int(batch)?.unwrap_or(0) != 0 && rank > 2 {
            order[..rank - 1].rotate_left(1);
        }
        if n.attrs().int(transpose)?.unwrap_or(0) != 0 && rank > 1 {
            order.swap(rank - 2, rank - 1);
        }
        *operand = n.permute(*operand, &order)?;
    }
    let y = n.op("relax.matmul", &operands)?;
    if alpha == 1.0 {
        return Ok(vec![y.into()]);
    }
    let dtype = n.dtype(y)?;
    let alpha = n.scalar_as(alpha, dtype)?;
    Ok(vec![n.op("relax.multiply", &[y, alpha])?.into()])
}

/// Emits the unpacking of integers of `bits` bits from bytes, lowest bits first. Converts bytes
/// `(rows, count)` to int32 `(rows, count * 8 / bits)`.
fn unpack_fields(n: &mut Node<'_, '_>, bytes: Expr, bits: i64) -> ExprResult {
    let dims = n.dims_with_min_rank(bytes, 2)?;
    let wide = n.cast(bytes, DType::Int32)?;
    if bits == 8 {
        return Ok(wide);
    }
    let syms = &mut n.func().syms;
    let (one, each) = (syms.int(1), syms.int(8 / bits));
    let all = syms.mul(dims[1], each);
    let column = n.reshape(wide, &[dims[0], dims[1], one])?;
    let shifts = n.iota(each)?;
    let shifts = n.cast(shifts, DType::Int32)?;
    let (width, mask) = (n.scalar(bits as i32)?, n.scalar((1i32 << bits) - 1)?);
    let shifts = n.op("relax.multiply", &[shifts, width])?;
    let moved = n.op("relax.right_shift", &[column, shifts])?;
    let low = n.op("relax.bitwise_and", &[moved, mask])?;
    n.reshape(low, &[dims[0], all])
}

/// Maximum size of a dim of the weights, so that the product of two such sizes stays below 2^63.
const MAX_WEIGHT_SIZE: i64 = 1 << 30;
/// Unpacks integers of `bits` bits from constant bytes, lowest bits first. Each of the `rows` rows
/// contains `stored_count` integers, of which the first `count` are returned.
fn unpack_constant_fields(
    bytes: &Tensor,
    (rows, stored_count): (i64, i64),
    count: i64,
    bits: i64,
) -> Option<Tensor> {
    let all = bytes.to_vec::<u8>().ok()?;
    let (row, mask) = ((stored_count.checked_mul(bits)? + 7) / 8, ((1u32 << bits) - 1) as u8);
    if all.len() as i64 != rows.checked_mul(row)? {
        return None;
    }
    let field = |i: i64| {
        let bit = i % count * bits;
        all[(i / count * row + bit / 8) as usize] >> (bit % 8) & mask
    };
    let fields: Vec<u8> = (0..rows * count).map(field).collect();
    Tensor::from_slice(&[rows, count], &fields).ok()
}

/// Dequantizes constant weights `(N, K)` in the form that later passes recognize: the integers are
/// cast, zero points are subtracted, and the result is multiplied by the scales, each repeated for
/// its block. The last block may be incomplete. `None` if the weights are not constants of the
/// expected shape.
fn dequantized_constant_weights(
    n: &mut Node<'_, '_>,
    (rows, depth): (i64, i64),
    (bits, block): (i64, i64),
) -> Result<Option<Expr>, Problem> {
    let blocks = (depth + block - 1) / block;
    let (Some(b), Some(scales)) = (n.constant(1), n.constant(2)) else { return Ok(None) };
    let small = [rows, depth, block].iter().all(|&d| d <= i64::from(i32::MAX));
    if !small || block * bits % 8 != 0 || b.dtype() != DType::UInt8 {
        return Ok(None);
    }
    let Some(integers) = unpack_constant_fields(&b, (rows, blocks * block), depth, bits) else {
        return Ok(None);
    };
    let zeros = match (n.has_input(3), n.constant(3)) {
        (false, _) => None,
        (true, Some(z)) if z.dtype() == DType::UInt8 => {
            unpack_constant_fields(&z, (rows, blocks), blocks, bits)
        }
        (true, Some(z)) => z.reshape(&[rows, blocks]).ok(),
        (true, None) => return Ok(None),
    };
    let Ok(scales) = scales.reshape(&[rows, blocks]) else { return Ok(None) };
    if n.has_input(3) && zeros.is_none() {
        return Ok(None);
    }
    let a = n.tensor(0)?;
    let dtype = n.dtype(a)?;
    let repeat_per_block = |n: &mut Node<'_, '_>, t: &Tensor| {
        let part = n.importer.constant(t);
        let part = n.cast(part, dtype)?;
        let [each, end] = [block, depth].map(|v| n.func().syms.int(v));
        repeat_and_truncate(n, part, each, 1, end)
    };
    let zeros = match &zeros {
        Some(zeros) => repeat_per_block(n, zeros)?,
        None => n.scalar_as((1i64 << (bits - 1)) as f64, dtype)?,
    };
    let scales = repeat_per_block(n, &scales)?;
    let integers = n.importer.constant(&integers);
    let weights = n.cast(integers, dtype)?;
    let weights = n.op("relax.subtract", &[weights, zeros])?;
    n.op("relax.multiply", &[weights, scales]).map(Some)
}

/// Converts `MatMulNBits`: `A * W^T` with quantized weights `(N, blocks, block_size)`. Each block has a scale and optionally a zero
/// point.
fn matmul_nbits(n: &mut Node<'_, '_>) -> ConvertResult {
    let attrs = n.attrs();
    let positive_attr = |name: &str| {
        let value = attrs.int(name)?.filter(|&v| v > 0);
        value.ok_or_else(|| {
            Problem::attribute(format!("attribute '{name}' must be present and positive"))
        })
    };
    let (depth, rows, block) =
        (positive_attr("K")?, positive_attr("N")?, positive_attr("block_size")?);
    let bits = attrs.int("bits")?.unwrap_or(4);
    if ![2, 4, 8].contains(&bits) {
        return Err(Problem::unsupported(format!(
            "attribute 'bits' is {bits}, but only weights of 2, 4 and 8 bits are supported"
        )));
    }
    if [depth, rows, block].iter().any(|&v| v > MAX_WEIGHT_SIZE) {
        return Err(Problem::invalid(format!(
            "attributes 'K', 'N' and 'block_size' are {depth}, {rows} and {block}, but must be at most {MAX_WEIGHT_SIZE}"
        )));
    }
    if n.has_input(4) {
        return Err(Problem::unsupported("reordered weights (g_idx, input 4) are not supported"));
    }
    let blocks = (depth + block - 1) / block;
    if let Some(weights) = dequantized_constant_weights(n, (rows, depth), (bits, block))? {
        return matmul_transposed(n, weights);
    }
    let per_block = (block * bits + 7) / 8;
    let zero_bytes = (blocks * bits + 7) / 8;
    let [a, b, scales] = [n.tensor(0)?, n.tensor(1)?, n.tensor(2)?];
    let dtype = n.dtype(a)?;
    let sym = |n: &mut Node<'_, '_>, v: i64| n.func().syms.int(v);
    let (rows, blocks_s, block_s) = (sym(n, rows), sym(n, blocks), sym(n, block));
    let (one, zero) = (sym(n, 1), sym(n, 0));
    let bytes = sym(n, blocks * per_block);
    let packed = n.reshape(b, &[rows, bytes])?;
    let weights = unpack_fields(n, packed, bits)?;
    let weights = n.reshape(weights, &[rows, blocks_s, block_s])?;
    let weights = n.cast(weights, dtype)?;
    let zeros = match n.optional_tensor(3)? {
        Some(zero_points) if n.dtype(zero_points)?.is_float() => {
            n.reshape(zero_points, &[rows, blocks_s, one])?
        }
        Some(zero_points) => {
            let bytes = sym(n, zero_bytes);
            let packed = n.reshape(zero_points, &[rows, bytes])?;
            let all = unpack_fields(n, packed, bits)?;
            let all = n.slice_axis(all, 1, zero, blocks_s)?;
            n.reshape(all, &[rows, blocks_s, one])?
        }
        None => n.scalar_as((1i64 << (bits - 1)) as f64, dtype)?,
    };
    let zeros = n.cast(zeros, dtype)?;
    let scales = n.reshape(scales, &[rows, blocks_s, one])?;
    let weights = n.op("relax.subtract", &[weights, zeros])?;
    let weights = n.op("relax.multiply", &[weights, scales])?;
    let (whole, depth) = (sym(n, blocks * block), sym(n, depth));
    let weights = n.reshape(weights, &[rows, whole])?;
    let weights = n.slice_axis(weights, 1, zero, depth)?;
    matmul_transposed(n, weights)
}

/// Multiplies input 0 by the transposed weights, and adds the bias if the node has one.
fn matmul_transposed(n: &mut Node<'_, '_>, weights: Expr) -> ConvertResult {
    let a = n.tensor(0)?;
    let weights = n.permute(weights, &[1, 0])?;
    let y = n.op("relax.matmul", &[a, weights])?;
    match n.optional_tensor(5)? {
        Some(bias) => Ok(vec![n.op("relax.add", &[y, bias])?.into()]),
        None => Ok(vec![y.into()]),
    }
}
