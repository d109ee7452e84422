//! Converters of numeric operators of the domain `ai.onnx.ml`.

use pliant_ir::DType;

use super::OnnxOp;
use crate::node::{ConvertResult, Node};

const DOMAIN: &str = "ai.onnx.ml";

pub(super) static OPS: &[OnnxOp] = &[
    OnnxOp { domain: DOMAIN, name: "ArrayFeatureExtractor", convert: array_feature_extractor },
    OnnxOp { domain: DOMAIN, name: "Binarizer", convert: binarize },
];

/// Converts `ArrayFeatureExtractor`, which selects columns by index.
fn array_feature_extractor(n: &mut Node<'_, '_>) -> ConvertResult {
    let (x, positions) = (n.tensor(0)?, n.tensor(1)?);
    let (rank, dims) = (n.rank(x)?, n.dims(positions)?);
    let count = n.func().syms.product(dims);
    let positions = n.reshape(positions, &[count])?;
    let y = n.take(x, positions, rank.saturating_sub(1))?;
    if rank > 1 {
        return Ok(vec![y.into()]);
    }
    let one = n.func().syms.int(1);
    Ok(vec![n.reshape(y, &[one, count])?.into()])
}

/// Converts `Binarizer`: the result is 1 for elements above a threshold, else 0.
fn binarize(n: &mut Node<'_, '_>) -> ConvertResult {
    let threshold = n.attrs().float("threshold")?.unwrap_or(0.0);
    let x = n.tensor(0)?;
    let dtype: DType = n.dtype(x)?;
    let wide = if dtype.is_integer() { DType::Float64 } else { dtype };
    let (x, threshold) = (n.cast(x, wide)?, n.scalar_as(threshold, wide)?);
    let above = n.op("relax.greater", &[x, threshold])?;
    Ok(vec![n.cast(above, dtype)?.into()])
}
