//! The operator `call_kernel`, which calls a library kernel: its type rule and its lowering. The type rule checks operands and
//! attributes as far as they are known at compile time. The kernel checks the rest when it is called
//! (`pliant-kernels/src/kernel_entry_points.rs`).

use pliant_ir::op::InferError;
use pliant_ir::print::type_text;
use pliant_ir::relax::TypeData;
use pliant_ir::relax::kernel_call::{ATTRIBUTES, AXES, KERNEL, KernelCall, NEW_AXIS, OPERANDS};
use pliant_kernel_api::{Dims, MAX_RANK, Order, Role, leading_dims};
use pliant_sym::Sym;

use crate::legalize::{LegalizeCtx, LegalizeError};
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::size_proofs;
use crate::te::{self, Tensor, TensorView};
use crate::type_inference::{InferCtx, TensorTy};

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[OpDecl::new(
    "relax.call_kernel",
    infer,
    "Calls a library kernel (docs/reference/kernels.md), which writes new tensors of the given types. Operands and attributes are \
     named: `R.call_kernel(\"pool\", x=x, kind=\"max\", ..., out_sinfo=...)`. `axes[name][i]` is the dim of the tensor that \
     becomes dim `i` of the kernel operand; -1 inserts a dim of size 1. Ranks and data types must be known.",
)
.operands(&["*tensors"])
.attrs(&[
    (KERNEL, Default::Required),
    (OPERANDS, Default::Required),
    (AXES, Default::None),
    (ATTRIBUTES, Default::None),
])
.te(Pattern::Opaque, te_call_kernel)
.errors("the kernel is unknown, an operand or attribute does not match its declaration, or `out_sinfo` is missing")];

fn decode_call(ctx: &InferCtx<'_>) -> Result<KernelCall, InferError> {
    KernelCall::of_attrs(ctx.attrs, ctx.args.len()).map_err(|message| ctx.error(message))
}

/// Returns the explicit result type, after checking operands and results against the declaration of the kernel.
fn infer(ctx: &mut InferCtx<'_>) -> InferResult {
    let call = decode_call(ctx)?;
    let mut sizes = Vec::new();
    for (i, &at) in call.operands.iter().enumerate() {
        let tensor = ctx.tensor(i)?;
        check_operand(ctx, &call, at, &tensor)?;
        check_sizes(ctx, &call, at, &tensor, &mut sizes)?;
    }
    let ty = match *ctx.ty_args {
        [ty] => ty,
        [] => return Err(ctx.error("out_sinfo is missing: it must give the types of the results")),
        _ => ctx.func.intern(TypeData::Tuple(ctx.ty_args.into())),
    };
    let results = match ctx.func.types.get(ty) {
        TypeData::Tuple(fields) => fields.to_vec(),
        _ => vec![ty],
    };
    let Some(written) = call.results(results.len()) else {
        let count = results.len();
        let names = call.kernel.operands.iter().filter(|operand| operand.role.is_written());
        let names: Vec<&str> = names.map(|operand| operand.name).collect();
        let name = call.kernel.name;
        let message =
            format!("kernel {name} writes {}, but out_sinfo has {count} types", names.join(", "));
        return Err(ctx.error(message));
    };
    for (&at, &result) in written.iter().zip(&results) {
        let name = call.kernel.operands[at].name;
        if !matches!(ctx.func.types.get(result), TypeData::Tensor { .. }) {
            let text = type_text(ctx.func, result);
            return Err(ctx.error(format!(
                "result {name} of the kernel is a tensor, but its type in out_sinfo is {text}"
            )));
        }
        let tensor = ctx.tensor_ty(result, || name.to_string())?;
        check_operand(ctx, &call, at, &tensor)?;
        if tensor.dims.is_none() {
            return Err(operand_error(ctx, &call, at, |operand| {
                format!("{operand} has unknown dims")
            }));
        }
        check_sizes(ctx, &call, at, &tensor, &mut sizes)?;
    }
    Ok(ty)
}

/// Creates an error about operand `at` of the kernel. `message` receives the name of the operand.
fn operand_error(
    ctx: &InferCtx<'_>,
    call: &KernelCall,
    at: usize,
    message: impl FnOnce(&str) -> String,
) -> InferError {
    let (kernel, operand) = (call.kernel.name, call.kernel.operands[at].name);
    ctx.error(message(&format!("operand '{operand}' of kernel {kernel}")))
}

/// Checks the data type, the rank and the axes of a tensor against the declaration of the kernel's operand.
fn check_operand(
    ctx: &InferCtx<'_>,
    call: &KernelCall,
    at: usize,
    tensor: &TensorTy,
) -> Result<(), InferError> {
    let operand = &call.kernel.operands[at];
    let name = format!("operand '{}' of kernel {}", operand.name, call.kernel.name);
    let fail = |message: String| Err(ctx.error(message));
    if tensor.scalar {
        return fail(format!("{name} is a scalar, expected a tensor"));
    }
    let accumulate = call.kernel.attr("accumulate");
    let accumulates = accumulate.is_some_and(|(_, first)| call.numbers[first] != 0);
    if operand.role == Role::Accumulator && accumulates {
        return fail(format!(
            "{name} is a new tensor, so it has no values to which accumulate=True could add"
        ));
    }
    let Some(dtype) = tensor.dtype else {
        return fail(format!("{name} has an unknown data type; declare it with R.match_cast"));
    };
    if operand.dtypes().all(|accepted| accepted != dtype) {
        let wanted: Vec<String> = operand.dtypes().map(|dtype| dtype.to_string()).collect();
        return fail(format!("{name} is {dtype}, expected {}", wanted.join(" or ")));
    }
    let Some(rank) = tensor.ndim else {
        return fail(format!(
            "{name} has an unknown number of dims; declare its shape with R.match_cast"
        ));
    };
    let rank = match &call.axes[at] {
        Some(axes) => {
            check_axes(&name, operand.order, axes, rank).or_else(fail)?;
            axes.len()
        }
        None => rank,
    };
    if rank.max(tensor.ndim.unwrap_or(0)) > MAX_RANK {
        return fail(format!("{name} has {rank} dims, but kernels support at most {MAX_RANK}"));
    }
    let names = dims(call, at);
    match leading_dims(names, rank) {
        None => fail(format!("{name} has {rank} dims, expected the dims ({})", names.join(", "))),
        Some(_) => Ok(()),
    }
}

/// Checks that a kernel that requires the memory order `order` can read a tensor of rank `rank`
/// whose dims are permuted to `axes`. `name` is the name of the tensor for messages.
fn check_axes(name: &str, order: Order, axes: &[i64], rank: usize) -> Result<(), String> {
    let tensor_axes: Vec<i64> = axes.iter().copied().filter(|&axis| axis != NEW_AXIS).collect();
    if tensor_axes.len() != rank {
        return Err(format!(
            "{name} has {rank} dims, but the argument 'axes' names {} dims for it: {axes:?}",
            tensor_axes.len()
        ));
    }
    let last = rank as i64 - 1;
    match order {
        Order::RowMajor if !tensor_axes.is_sorted() => Err(format!(
            "{name} has the axes {axes:?}, but they must be in ascending order for this kernel"
        )),
        Order::StridedRows if axes.last().is_some_and(|&k| k != NEW_AXIS && k != last) => {
            Err(format!(
                "{name} has the axes {axes:?}, but the kernel reads contiguous rows, so \
                 axis {last} must be last"
            ))
        }
        _ => Ok(()),
    }
}

/// Checks the dims of a tensor against dims of the same name in earlier operands. Sizes that are
/// neither provably equal nor provably different are compared at run time.
fn check_sizes(
    ctx: &mut InferCtx<'_>,
    call: &KernelCall,
    at: usize,
    tensor: &TensorTy,
    sizes: &mut Vec<(&'static str, usize, Sym)>,
) -> Result<(), InferError> {
    let Some(tensor_dims) = &tensor.dims else { return Ok(()) };
    let operand_dims: Vec<Sym> = match &call.axes[at] {
        Some(axes) => {
            let one = ctx.func.syms.int(1);
            axes.iter()
                .map(|&axis| if axis == NEW_AXIS { one } else { tensor_dims[axis as usize] })
                .collect()
        }
        None => tensor_dims.clone(),
    };
    let names = dims(call, at);
    let leading = leading_dims(names, operand_dims.len()).unwrap_or(0);
    // The first name may represent several dims, whose product is compared.
    let (first, rest) = operand_dims.split_at(leading);
    let product = (!names.is_empty()).then(|| {
        let one = ctx.func.syms.int(1);
        first.iter().fold(one, |all, &size| ctx.func.syms.mul(all, size))
    });
    for (name, size) in names.iter().zip(product.into_iter().chain(rest.iter().copied())) {
        let name = name.trim_start_matches('*');
        let Some(&(_, other, known)) = sizes.iter().find(|known| known.0 == name) else {
            sizes.push((name, at, size));
            continue;
        };
        if size_proofs::equal(ctx.func, known, size) == Some(false) {
            let (size, known) = (ctx.dim_text(size), ctx.dim_text(known));
            let other = call.kernel.operands[other].name;
            return Err(operand_error(ctx, call, at, |operand| {
                format!("{operand} has {name} = {size}, but operand '{other}' has {name} = {known}")
            }));
        }
    }
    Ok(())
}

/// The names of the dims that the kernel declares for operand `at`.
fn dims(call: &KernelCall, at: usize) -> &'static [&'static str] {
    match call.kernel.operands[at].dims {
        Dims::Fixed(dims) => dims,
        Dims::ByLayout(list) => {
            let (_, first) = call
                .kernel
                .attr("layout")
                .expect("a kernel with dims by layout has the attribute layout");
            list[call.numbers[first] as usize]
        }
    }
}

/// Lowers the call to a stage with one statement, which calls the kernel.
fn te_call_kernel(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let call = decode_call(&ctx.infer())?;
    let tensors = (0..ctx.args.len()).map(|i| ctx.tensor(i)).collect::<Result<Vec<_>, _>>()?;
    let count = ctx.out_tys().len();
    let written = call.results(count).ok_or_else(|| {
        ctx.error(format!(
            "out_sinfo gives the types of {count} results, but kernel {} has fewer results",
            call.kernel.name
        ))
    })?;
    let results = (0..count)
        .map(|k| Ok((ctx.out_shape(k)?, ctx.out_dtype(k)?)))
        .collect::<Result<Vec<_>, LegalizeError>>()?;
    let name = |at: usize| call.kernel.operands[at].name;
    ctx.name_hint = Some(call.kernel.name);
    Ok(te::extern_(call.kernel.name, &results, |b, out| {
        let mut new = te::KernelCall::new(call.kernel);
        for (tensor, &at) in tensors.iter().zip(&call.operands) {
            new = new.operand(name(at), view(tensor, call.axes[at].as_deref()));
        }
        for (tensor, &at) in out.iter().zip(&written) {
            new = new.operand(name(at), view(tensor, call.axes[at].as_deref()));
        }
        let mut numbers = &call.numbers[..];
        for attr in call.kernel.attrs {
            let (attr_numbers, rest) = numbers.split_at(attr.ty.number_count());
            numbers = rest;
            new = new.numbers(attr, attr_numbers);
        }
        b.evaluate(new.finish());
    }))
}

/// A view of a tensor whose dims are in the order that the kernel declares.
fn view<'a>(tensor: &'a Tensor, axes: Option<&[i64]>) -> TensorView<'a> {
    let view = TensorView::from(tensor);
    match axes {
        Some(axes) => view.with_axes(axes),
        None => view,
    }
}
