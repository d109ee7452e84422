//! Converters of operators that change the shape of a tensor, such as `Reshape` with the sizes 0 and -1, and of `Transpose`.
//!
//! The converter of `Reshape` resolves 0 and -1 itself: during the import if the elements of the new shape are known as symbolic
//! sizes (`resolve_target`), otherwise by operators on the shape tensor (`non_constant_target`). It does not leave this to the type
//! rule of `R.reshape` (`pliant-ops/src/ops/manipulate.rs`), because `R.reshape` has no attribute `allowzero`, and its rule infers
//! sizes only if the elements of the new shape are symbolic sizes.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, Attrs, DType};
use pliant_ops::size_proofs;
use pliant_sym::Sym;

use super::{OnnxOp, op};
use crate::import_error::Problem;
use crate::imported_value::SymTensor;
use crate::node::{ConvertResult, ExprResult, Node, ints_attr};

pub(super) static OPS: &[OnnxOp] = &[
    op("Expand", expand),
    op("Flatten", flatten),
    op("Reshape", reshape),
    op("Squeeze", squeeze),
    op("Tile", tile),
    op("Transpose", transpose),
    op("Unsqueeze", unsqueeze),
];

/// Converts `Reshape`. A 0 in the new shape keeps the input's dim (unless `allowzero` is set), and -1 is inferred.
fn reshape(n: &mut Node<'_, '_>) -> ConvertResult {
    let allow_zero = n.attrs().int("allowzero")?.unwrap_or(0) != 0;
    // Before opset 5, the new shape is an attribute.
    let target = match n.attrs().ints("shape")? {
        Some(dims) => Some(dims.iter().map(|&d| n.func().syms.int(d)).collect()),
        None => n.symbolic(1).map(|t| t.elems),
    };
    if n.is_symbolic(0)
        && let (Some(t), Some(target)) = (n.symbolic(0), &target)
    {
        let dims: Vec<Sym> = vec![n.func().syms.int(t.elems.len() as i64)];
        let dims = resolve_target(n, &dims, target, allow_zero)?;
        if let Some(shape) = constant_dims(n, &dims).and_then(|s| t.reshape(s)) {
            return Ok(vec![shape.into()]);
        }
    }
    let x = n.tensor(0)?;
    let Some(own_dims) = input_dims(n, x, allow_zero, target.as_deref())? else {
        return Err(Problem::known_only_at_run_time(
            "the rank of input 0, whose dims a 0 in the new shape copies,",
        ));
    };
    let Some(target) = target else {
        let sizes = non_constant_target(n, &own_dims, allow_zero)?;
        return Ok(vec![n.reshape_to_tensor(x, sizes)?.into()]);
    };
    let dims = resolve_target(n, &own_dims, &target, allow_zero)?;
    Ok(vec![n.reshape(x, &dims)?.into()])
}

/// Converts dims to numbers; `None` if any dim is symbolic.
pub(super) fn constant_dims(n: &mut Node<'_, '_>, dims: &[Sym]) -> Option<Vec<usize>> {
    dims.iter().map(|&d| n.func().syms.as_int(d).and_then(|d| usize::try_from(d).ok())).collect()
}

/// The dims of the input, as far as `Reshape` needs them. If the rank is unknown and the new shape
/// keeps no dim, the result has a single dim: the number of elements. `None` if the new shape keeps
/// dims but the rank is unknown.
fn input_dims(
    n: &mut Node<'_, '_>,
    x: Expr,
    allow_zero: bool,
    target: Option<&[Sym]>,
) -> Result<Option<Vec<Sym>>, Problem> {
    if let Ok(dims) = n.dims(x) {
        return Ok(Some(dims));
    }
    let zero = n.func().syms.int(0);
    if target.is_none_or(|t| !allow_zero && t.contains(&zero)) {
        return Ok(None);
    }
    let count = n.op("relax.size", &[x])?;
    let one = n.func().syms.int(1);
    let count = n.reshape(count, &[one])?;
    n.elements_as_symbols(count, 1).map(Some)
}

/// Resolves the 0 and -1 in a new shape whose sizes are known symbolically.
fn resolve_target(
    n: &mut Node<'_, '_>,
    input_dims: &[Sym],
    target: &[Sym],
    allow_zero: bool,
) -> Result<Vec<Sym>, Problem> {
    let mut dims = target.to_vec();
    let mut inferred = None;
    for (i, dim) in dims.iter_mut().enumerate() {
        match n.func().syms.as_int(*dim) {
            Some(0) if !allow_zero => {
                *dim = *input_dims.get(i).ok_or_else(|| {
                    Problem::invalid(format!(
                        "element {i} of the new shape is 0, which copies dim {i} of the input, but the input has only {} dims",
                        input_dims.len()
                    ))
                })?;
            }
            Some(-1) if inferred.is_some() => {
                return Err(Problem::invalid(
                    "the new shape has more than one -1, but only one dim can be inferred",
                ));
            }
            Some(-1) => inferred = Some(i),
            Some(d) if d < 0 => {
                return Err(Problem::invalid(format!("the new shape has the negative dim {d}")));
            }
            _ => {}
        }
    }
    let zero = n.func().syms.int(0);
    if allow_zero && inferred.is_some() && dims.contains(&zero) {
        return Err(Problem::invalid(
            "the new shape has both 0 and -1, which allowzero=1 does not allow",
        ));
    }
    if let Some(inferred) = inferred {
        if !allow_zero {
            for (i, &dim) in dims.iter().enumerate() {
                check_zero_dim(n, input_dims.get(i).copied(), dim)?;
            }
        }
        // A size that occurs on both sides cancels, even if it is 0.
        let others = dims.iter().enumerate().filter(|(i, _)| *i != inferred);
        let others: Vec<Sym> = others.map(|(_, &dim)| dim).collect();
        let syms = &mut n.func().syms;
        let (all_dims, others) = syms.reduced_quotient(input_dims, &others);
        dims[inferred] = match syms.as_int(others) {
            // NumPy does not define this case. The tensor is empty in any case.
            Some(0) => syms.int(0),
            _ => syms.floordiv(all_dims, others),
        };
    }
    Ok(dims)
}

/// Checks a symbolic size `dim` of the new shape. By the specification, a size of 0 keeps the input's dim, but the import treats
/// `dim` as the size itself. So it is a run-time error if `dim` is 0 and the kept dim is not.
fn check_zero_dim(n: &mut Node<'_, '_>, kept: Option<Sym>, dim: Sym) -> Result<(), Problem> {
    let Some(kept) = kept.filter(|&kept| kept != dim) else { return Ok(()) };
    let func = n.func();
    let (zero, one) = (func.syms.int(0), func.syms.int(1));
    if func.syms.as_int(dim).is_some() || size_proofs::at_most(func, one, dim) == Some(true) {
        return Ok(());
    }
    // If the kept dim is 0, too, there is no difference.
    let (empty, same) = (func.syms.eq(dim, zero), func.syms.eq(kept, zero));
    let differs = func.syms.not(empty);
    let is_valid = func.syms.or(differs, same);
    match func.syms.as_int(is_valid) {
        Some(1) => return Ok(()),
        Some(_) => {
            return Err(Problem::invalid(
                "the new shape contains a symbolic size that is always 0; with allowzero=0, this 0 stands for the dim of the \
                 input, which is never 0",
            )
            .with_help("set allowzero=1 if the dim of the result should be 0, or write the constant 0 \
                 to copy the dim of the input"));
        }
        None => {}
    }
    let is_valid = SymTensor { shape: Vec::new(), elems: vec![is_valid], dtype: DType::Bool };
    let (is_valid, size, kept) =
        (n.materialize(&is_valid.into())?, n.size_scalar(dim)?, n.size_scalar(kept)?);
    let text = "a dim of the new shape is {} at run time, which means the input's dim {}; set allowzero=1 if it means 0";
    n.require(is_valid, text, &[size, kept])
}

/// Emits the computation of the new shape of a `Reshape` whose shape input is non-constant. The
/// elements 0 and -1 are replaced by arithmetic on the shape tensor.
fn non_constant_target(n: &mut Node<'_, '_>, input_dims: &[Sym], allow_zero: bool) -> ExprResult {
    let target = n.tensor(1)?;
    let target = n.cast(target, DType::Int64)?;
    n.constant_length(target)?;
    let length = n.dims(target)?[0];
    let mut known = n.known_elements(&target.into()).unwrap_or_default();
    let (minus, zero, one) = (n.scalar(-1i64)?, n.scalar(0i64)?, n.scalar(1i64)?);
    let mut all_dims = n.size_vector(input_dims)?;
    let mut dims = target;
    let inferred = n.op("relax.equal", &[dims, minus])?;
    let valid = n.op("relax.greater_equal", &[dims, minus])?;
    n.require(valid, "the new shape {} has a negative size other than -1", &[dims])?;
    let inferred_count = n.cast(inferred, DType::Int64)?;
    let inferred_count = n.op("relax.sum", &[inferred_count])?;
    let at_most_one = n.op("relax.less_equal", &[inferred_count, one])?;
    n.require(
        at_most_one,
        "the new shape {} has more than one -1, but only one dim can be inferred",
        &[dims],
    )?;
    let mut others = n.op("relax.where", &[inferred, one, dims])?;
    if allow_zero {
        let zeros = n.op("relax.equal", &[dims, zero])?;
        n.require_not_both(zeros, inferred)?;
    } else {
        for (&known, &kept) in known.clone().iter().zip(input_dims) {
            if let Some(dim) = known {
                check_zero_dim(n, Some(kept), dim)?;
            }
        }
        let mut padded = input_dims.to_vec();
        for (i, known) in known.iter_mut().enumerate() {
            match (known.map(|k| n.func().syms.as_int(k)), padded.get_mut(i)) {
                (Some(Some(0)), kept) => *known = kept.copied(),
                // A known symbolic size is used as it is, even if it is 0 at run time.
                (Some(None), Some(kept)) => *kept = known.unwrap_or(*kept),
                _ => {}
            }
        }
        // A 0 beyond the input's rank keeps no dim. It remains 0.
        padded.push(n.func().syms.int(0));
        let padded = n.size_vector(&padded)?;
        let positions = n.iota(length)?;
        let attrs = ints_attr("axis", 0).with("mode", AttrValue::str("clip"));
        let kept = n.op_with("relax.take", &[padded, positions], attrs)?;
        let keeps = n.op("relax.equal", &[dims, zero])?;
        dims = n.op("relax.where", &[keeps, kept, dims])?;
        // Kept dims cancel, so that -1 can be inferred even if they are 0.
        others = n.op("relax.where", &[keeps, one, others])?;
        all_dims = mask_kept_dims(n, all_dims, keeps, input_dims.len())?;
    }
    let others = n.op("relax.prod", &[others])?;
    let others = n.op("relax.maximum", &[others, one])?;
    let all_dims = n.op("relax.prod", &[all_dims])?;
    let remaining = n.op("relax.floor_divide", &[all_dims, others])?;
    let sizes = n.op("relax.where", &[inferred, remaining, dims])?;
    n.record_known_elements(sizes, known);
    Ok(sizes)
}

/// Emits the dims of the input, with 1 in place of the dims that the new shape keeps. `keeps` is a mask over the new shape.
fn mask_kept_dims(n: &mut Node<'_, '_>, input_dims: Expr, keeps: Expr, rank: usize) -> ExprResult {
    let rank = n.func().syms.int(rank as i64);
    let (one, off) = (n.scalar(1i64)?, n.scalar(false)?);
    let padding = n.full(&[rank], off)?;
    let mask = n.concat(&[keeps, padding], 0)?;
    let zero = n.func().syms.int(0);
    let mask = n.slice_axis(mask, 0, zero, rank)?;
    let mask = n.reshape(mask, &[rank])?;
    n.op("relax.where", &[mask, one, input_dims])
}

/// Converts `Expand`. Broadcasting is bidirectional, so a 1 in the new shape keeps the input's dim.
fn expand(n: &mut Node<'_, '_>) -> ConvertResult {
    let x = n.tensor(0)?;
    let input_dims = n.dims(x)?;
    if n.symbolic(1).is_none() {
        let sizes = n.tensor(1)?;
        if n.constant_length(sizes)?.is_none() {
            return expand_to_tensor(n, x, &input_dims, sizes);
        }
    }
    let target = n.sizes_input(1, None)?;
    let rank = input_dims.len().max(target.len());
    let one = n.func().syms.int(1);
    let dim_from_end = |dims: &[Sym], i: usize| {
        if i + dims.len() < rank { one } else { dims[i + dims.len() - rank] }
    };
    let mut dims = Vec::with_capacity(rank);
    for i in 0..rank {
        let (a, b) = (dim_from_end(&input_dims, i), dim_from_end(&target, i));
        dims.push(broadcast_dim(n, a, b)?);
    }
    let shape = n.func().shape(&dims);
    Ok(vec![n.op("relax.broadcast_to", &[x, shape])?.into()])
}

/// Converts `Expand` if the length of the new shape is unknown. Ones are prepended to the shorter shape.
fn expand_to_tensor(
    n: &mut Node<'_, '_>,
    x: Expr,
    input_dims: &[Sym],
    sizes: Expr,
) -> ConvertResult {
    let sizes = n.cast(sizes, DType::Int64)?;
    let target = n.dims(sizes)?[0];
    let rank = n.func().syms.int(input_dims.len() as i64);
    let full_rank = n.func().syms.max(rank, target);
    let one = n.scalar(1i64)?;
    let filled = |n: &mut Node<'_, '_>, vector: Expr, length: Sym| {
        let missing = n.func().syms.sub(full_rank, length);
        let ones = n.full(&[missing], one)?;
        let all_dims = n.concat(&[ones, vector], 0)?;
        n.reshape(all_dims, &[full_rank])
    };
    let input_dims = n.size_vector(input_dims)?;
    let (input_dims, sizes) = (filled(n, input_dims, rank)?, filled(n, sizes, target)?);
    let keeps = n.op("relax.equal", &[sizes, one])?;
    let sizes = n.op("relax.where", &[keeps, input_dims, sizes])?;
    let shape = n.tensor_to_shape(sizes)?;
    Ok(vec![n.op("relax.broadcast_to", &[x, shape])?.into()])
}

/// The dim that results from broadcasting two dims. If neither dim is known to be 1, the result is selected at run time.
fn broadcast_dim(n: &mut Node<'_, '_>, a: Sym, b: Sym) -> Result<Sym, Problem> {
    let syms = &mut n.func().syms;
    if a == b {
        return Ok(a);
    }
    Ok(match (syms.as_int(a), syms.as_int(b)) {
        (Some(1), _) => b,
        (_, Some(1)) => a,
        (Some(x), Some(y)) => {
            return Err(Problem::invalid(format!(
                "the input has a dim of size {x}, which does not broadcast with size {y} in the new shape"
            )));
        }
        (Some(_), None) => {
            let one = syms.int(1);
            let keeps = syms.eq(b, one);
            let required = syms.select(keeps, a, b);
            let text = "the new shape has a dim of size {}, which does not broadcast with the input's dim of size {}";
            n.require_equal(required, a, text)?;
            a
        }
        // The size in the new shape wins, unless it is 1.
        _ => {
            let one = syms.int(1);
            let keeps = syms.eq(b, one);
            syms.select(keeps, a, b)
        }
    })
}

fn flatten(n: &mut Node<'_, '_>) -> ConvertResult {
    let x = n.tensor(0)?;
    let dims = n.dims(x)?;
    let axis = n.attrs().int("axis")?.unwrap_or(1);
    let dim_from_end =
        if axis == dims.len() as i64 { dims.len() } else { n.axis(axis, dims.len())? };
    let syms = &mut n.func().syms;
    let (rows, columns) = (
        syms.product(dims[..dim_from_end].iter().copied()),
        syms.product(dims[dim_from_end..].iter().copied()),
    );
    Ok(vec![n.reshape(x, &[rows, columns])?.into()])
}

/// Reads the axes from an attribute or a constant input; `None` if they are non-constant or absent.
fn constant_axes(n: &mut Node<'_, '_>) -> Result<Option<Vec<i64>>, Problem> {
    Ok(match n.attrs().ints("axes")? {
        Some(axes) => Some(axes.to_vec()),
        None => n.const_ints(1),
    })
}

fn squeeze(n: &mut Node<'_, '_>) -> ConvertResult {
    let axes = constant_axes(n)?;
    if axes.is_none() && n.has_input(1) {
        let (x, axes) = (n.tensor(0)?, n.tensor(1)?);
        let (rank, count) = (n.rank(x)? as i64, n.constant_length(axes)?);
        let rank = n.func().syms.int(rank);
        let mask = n.axes_mask(axes, rank)?;
        return Ok(vec![n.drop_axes(x, mask, count)?.into()]);
    }
    if n.is_symbolic(0)
        && let Some(t) = n.symbolic(0)
    {
        let rank = t.shape.len();
        let drop = normalized_axes(n, axes.as_deref(), rank)?;
        let keep = |i: usize| match &drop {
            Some(drop) => !drop.contains(&i),
            None => t.shape[i] != 1,
        };
        let shape = (0..rank).filter(|&i| keep(i)).map(|i| t.shape[i]).collect();
        if let Some(t) = t.reshape(shape) {
            return Ok(vec![t.into()]);
        }
    }
    let x = n.tensor(0)?;
    if axes.is_none()
        && let Some(result) = squeeze_non_constant(n, x)?
    {
        return Ok(vec![result.into()]);
    }
    let axes = axes.map_or(AttrValue::None, AttrValue::ints);
    Ok(vec![n.op_with("relax.squeeze", &[x], Attrs::default().with("axis", axes))?.into()])
}

/// Converts `Squeeze` without axes: removes the dims that are 1 at run time. `None` if these dims are known statically, from the
/// sizes or from the declared rank of the result.
fn squeeze_non_constant(n: &mut Node<'_, '_>, x: Expr) -> Result<Option<Expr>, Problem> {
    let dims = n.dims(x)?;
    let (one, two) = (n.func().syms.int(1), n.func().syms.int(2));
    let remaining: Vec<Sym> = dims.iter().copied().filter(|&d| d != one).collect();
    let mut may_be_one = |d: Sym| {
        n.func().syms.as_int(d).is_none() && size_proofs::at_most(n.func(), two, d) != Some(true)
    };
    if !remaining.iter().any(|&d| may_be_one(d)) || n.declared_rank(0) == Some(remaining.len()) {
        return Ok(None);
    }
    let (sizes, one) = (n.size_vector(&dims)?, n.scalar(1i64)?);
    let mask = n.op("relax.equal", &[sizes, one])?;
    n.drop_axes(x, mask, None).map(Some)
}

/// Normalizes axes for a tensor of the given rank, so that none is negative.
fn normalized_axes(
    n: &Node<'_, '_>,
    axes: Option<&[i64]>,
    rank: usize,
) -> Result<Option<Vec<usize>>, Problem> {
    axes.map(|axes| axes.iter().map(|&a| n.axis(a, rank)).collect()).transpose()
}

fn unsqueeze(n: &mut Node<'_, '_>) -> ConvertResult {
    let Some(axes) = constant_axes(n)? else { return unsqueeze_non_constant(n) };
    if n.is_symbolic(0)
        && let Some(t) = n.symbolic(0)
    {
        let rank = t.shape.len() + axes.len();
        let new = normalized_axes(n, Some(&axes), rank)?.unwrap_or_default();
        if let Some(k) = (1..new.len()).find(|&k| new[..k].contains(&new[k])) {
            return Err(Problem::invalid(format!("'axes' contains axis {} twice", new[k])));
        }
        let mut old_rank = t.shape.iter().copied();
        let shape: Vec<usize> = (0..rank)
            .map(|i| if new.contains(&i) { 1 } else { old_rank.next().unwrap_or(1) })
            .collect();
        if let Some(t) = t.reshape(shape) {
            return Ok(vec![t.into()]);
        }
    }
    let x = n.tensor(0)?;
    let attrs = Attrs::default().with("axis", AttrValue::ints(axes));
    Ok(vec![n.op_with("relax.expand_dims", &[x], attrs)?.into()])
}

/// Converts `Unsqueeze` with non-constant axes. An output dim is 1 on a new axis, else the next dim of the input.
fn unsqueeze_non_constant(n: &mut Node<'_, '_>) -> ConvertResult {
    let (x, axes) = (n.tensor(0)?, n.tensor(1)?);
    let input_dims = n.dims(x)?;
    n.constant_length(axes)?;
    let count = n.dims(axes)?[0];
    let old_rank = n.func().syms.int(input_dims.len() as i64);
    let rank = n.func().syms.add(old_rank, count);
    if input_dims.is_empty() {
        n.axes_mask(axes, rank)?;
        let one = n.scalar(1i64)?;
        let ones = n.full(&[count], one)?;
        return Ok(vec![n.reshape_to_tensor(x, ones)?.into()]);
    }
    let mask = n.axes_mask(axes, rank)?;
    let kept = n.op("relax.logical_not", &[mask])?;
    let kept = n.cast(kept, DType::Int64)?;
    let valid = n.op_with("relax.cumsum", &[kept], ints_attr("axis", 0))?;
    let one = n.scalar(1i64)?;
    let positions = n.op("relax.subtract", &[valid, one])?;
    let input_dims = n.size_vector(&input_dims)?;
    let attrs = ints_attr("axis", 0).with("mode", AttrValue::str("clip"));
    let sizes = n.op_with("relax.take", &[input_dims, positions], attrs)?;
    let sizes = n.op("relax.where", &[mask, one, sizes])?;
    Ok(vec![n.reshape_to_tensor(x, sizes)?.into()])
}

fn transpose(n: &mut Node<'_, '_>) -> ConvertResult {
    let perm = n.attrs().ints("perm")?.map(<[i64]>::to_vec);
    if n.is_symbolic(0)
        && let Some(t) = n.symbolic(0)
    {
        let rank = t.shape.len();
        let perm =
            normalized_axes(n, perm.as_deref(), rank)?.unwrap_or_else(|| (0..rank).rev().collect());
        if perm.len() == rank && (0..rank).all(|axis| perm.contains(&axis)) {
            let shape = perm.iter().map(|&a| t.shape[a]).collect();
            let moved = t.gather(shape, |index| {
                let mut from = vec![0; rank];
                perm.iter().zip(index).for_each(|(&a, &i)| from[a] = i);
                from
            });
            return Ok(vec![moved.into()]);
        }
    }
    let x = n.tensor(0)?;
    let axes = perm.map_or(AttrValue::None, AttrValue::ints);
    Ok(vec![n.op_with("relax.permute_dims", &[x], Attrs::default().with("axes", axes))?.into()])
}

fn tile(n: &mut Node<'_, '_>) -> ConvertResult {
    let x = n.tensor(0)?;
    let rank = n.rank(x)?;
    let repeats = SymTensor::vector(n.sizes_input(1, Some(rank))?);
    if repeats.elems.len() != rank {
        let count = repeats.elems.len();
        let message = format!("'repeats' has {count} numbers, but the input has {rank} dims");
        return Err(Problem::invalid(message));
    }
    let zero = n.func().syms.int(0);
    for &repeat in &repeats.elems {
        n.require_at_most(
            zero,
            repeat,
            "the numbers in 'repeats' must be at least {}, but one is {}",
        )?;
    }
    if let Some(counts) = repeats.constants(&n.func().syms) {
        let attrs = Attrs::default().with("repeats", AttrValue::ints(counts));
        return Ok(vec![n.op_with("relax.tile", &[x], attrs)?.into()]);
    }
    // Reshape each dim d to (1, d), broadcast it to (r, d), and reshape it to r * d.
    let dims = n.dims(x)?;
    let one = n.func().syms.int(1);
    let pairs = |first: &[Sym]| -> Vec<Sym> {
        first.iter().zip(&dims).flat_map(|(&a, &d)| [a, d]).collect()
    };
    let (apart, wide) = (pairs(&vec![one; dims.len()]), pairs(&repeats.elems));
    let full_rank: Vec<Sym> =
        repeats.elems.iter().zip(&dims).map(|(&r, &d)| n.func().syms.mul(r, d)).collect();
    let y = n.reshape(x, &apart)?;
    let shape = n.func().shape(&wide);
    let y = n.op("relax.broadcast_to", &[y, shape])?;
    Ok(vec![n.reshape(y, &full_rank)?.into()])
}
