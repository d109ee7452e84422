//! Calls of functions and closures, shape queries, and the operators that later compiler stages
//! emit for memory management and the VM.

use pliant_ir::attr_names::INPLACE_INDICES;
use pliant_ir::print::type_text;
use pliant_ir::relax::type_lattice::{derive_callable_ty, erase, is_subtype, type_syms};
use pliant_ir::relax::while_loop::while_loop_ty;
use pliant_ir::relax::{ExprData, Type, TypeData};
use pliant_ir::{DType, Sym};

use crate::legalize::LegalizeCtx;
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::te;
use crate::type_inference::InferCtx;

const INPLACE_ATTR: &[(&str, Default)] = &[(INPLACE_INDICES, Default::Required)];
/// The errors of the operators with the attribute `inplace_indices`.
const INPLACE_ERRORS: &str = "`inplace_indices` does not have one entry per output, or an entry is not the index of an input, is that of \
    another entry, or that of an input whose type differs from the output";

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new(
        "relax.call_tir",
        infer_explicit,
        "Calls a loop function that writes new tensors of the given types.",
    )
    .operands(&["gvar", "args", "tir_vars?"]),
    OpDecl::new(
        "relax.call_tir_with_grad",
        infer_explicit,
        "Calls a loop function like call_tir. The pass `Gradient` computes the gradient of the call with the function that is \
        registered under the name `te_grad_name`, which receives `te_grad_kwargs` as keyword arguments.",
    )
    .operands(&["gvar", "args", "tir_vars?"])
    .attrs(&[("te_grad_name", Default::Required), ("te_grad_kwargs", Default::None)]),
    OpDecl::new(
        "relax.call_tir_inplace",
        infer_tir_inplace,
        "Calls a loop function whose outputs overwrite inputs: `inplace_indices` has, for each output, the index of the input that \
        it overwrites, or -1 for a new tensor.",
    )
    .operands(&["gvar", "args", "tir_vars?"])
    .attrs(INPLACE_ATTR)
    .errors(INPLACE_ERRORS),
    OpDecl::new(
        "relax.call_dps_packed",
        infer_explicit,
        "Calls a packed function that writes new tensors of the given types.",
    )
    .operands(&["func", "args", "tir_vars?"]),
    OpDecl::new(
        "relax.call_pure_packed",
        infer_explicit,
        "Calls a packed function without side effects.",
    )
    .operands(&["func", "*args: scalar"]),
    OpDecl::new(
        "relax.call_inplace_packed",
        infer_packed_inplace,
        "Calls a packed function that overwrites inputs: `inplace_indices` has, for each output, the index of the input that \
        it overwrites, or -1 for a new value.",
    )
    .operands(&["func", "*args: scalar"])
    .attrs(INPLACE_ATTR)
    .errors(INPLACE_ERRORS),
    OpDecl::new(
        "relax.call_builtin_with_ctx",
        infer_explicit,
        "Calls a builtin that takes the context of the VM.",
    )
    .operands(&["func", "args"])
    .impure(),
    OpDecl::new(
        "relax.make_closure",
        infer_make_closure,
        "Creates a closure: a function whose last arguments are bound to captured values.",
    )
    .operands(&["func", "args"])
    .errors("`func` is not a function, or has fewer parameters than there are captured values"),
    OpDecl::new("relax.invoke_closure", infer_invoke, "Calls a closure.")
        .operands(&["closure", "args"])
        .impure()
        .errors("the arguments do not match the parameters of the closure"),
    OpDecl::new("relax.invoke_pure_closure", infer_invoke, "Calls a closure that has no side effects.")
        .operands(&["closure", "args"])
        .errors("the arguments do not match the parameters of the closure"),
    OpDecl::new(
        "relax.while_loop",
        infer_while_loop,
        "Runs a loop: as long as `cond` of the state is true, replaces the state by `body` of the state. Returns the final \
        state.",
    )
    .operands(&["cond", "body", "*state: scalar"])
    .errors(
        "`cond` does not return a bool scalar, or the state does not match the parameters of `cond` and `body` and the result of \
        `body`",
    ),
    OpDecl::new("relax.null_value", infer_object, "The null value: as an operand of a call, it marks an optional operand as \
        absent. It has no operands and the type `R.Object`."),
    OpDecl::new("relax.print", infer_unit, "Prints values.")
        .operands(&["*values: scalar"])
        .attrs(&[("format", Default::Str(""))])
        .packed("vm.builtin.print")
        .impure(),
    OpDecl::new("relax.assert_op", infer_assert, "Fails at run time if the condition is false.")
        .operands(&["condition: bool", "*format_args: scalar"])
        .attrs(&[("format", Default::Str(""))])
        .packed("vm.builtin.assert_op")
        .impure()
        .errors("the condition is not a bool scalar"),
    OpDecl::new("relax.shape_of", infer_shape_of, "The shape of a tensor.")
        .operands(&["x"])
        .depends_on_types_only()
        .numpy("shape")
        .onnx(&["Shape"]),
    OpDecl::new(
        "relax.tensor_to_shape",
        infer_tensor_to_shape,
        "The elements of an int64 vector as the dims of a shape.",
    )
    .operands(&["x"])
    .errors("`x` is not an int64 vector"),
    OpDecl::new(
        "relax.shape_to_tensor",
        infer_shape_to_tensor,
        "The dims of a shape as an int64 vector.",
    )
    .operands(&["x"])
    .te(Pattern::Opaque, te_shape_to_tensor)
    .errors("`x` is neither a shape nor integers"),
    OpDecl::new("relax.size", infer_size, "The number of elements, as a tensor of rank 0.")
        .operands(&["x"])
        .te(Pattern::Opaque, te_size)
        .numpy("size")
        .onnx(&["Size"]),
    OpDecl::new("relax.builtin.alloc_tensor", infer_alloc_tensor, "Allocates a tensor.")
        .operands(&["shape", "dtype", "runtime_device_index", "storage_scope?"])
        .impure(),
    OpDecl::new(
        "relax.memory.alloc_storage",
        infer_object,
        "Allocates a storage, which kill_storage frees.",
    )
    .operands(&["size", "virtual_device_index", "storage_scope", "dtype"])
    .impure(),
    OpDecl::new("relax.memory.alloc_tensor", infer_tensor_in_storage, "Creates a tensor in a storage, at an offset in bytes.")
        .operands(&["storage", "offset", "shape", "dtype", "runtime_device_index?"])
        .impure(),
    OpDecl::new("relax.memory.kill_storage", infer_unit, "Frees a storage.")
        .operands(&["storage"])
        .impure(),
    OpDecl::new("relax.memory.kill_tensor", infer_unit, "Ends the lifetime of a tensor.")
        .operands(&["tensor"])
        .impure(),
    OpDecl::new("relax.vm.alloc_storage", infer_object, "Allocates a storage in the VM.")
        .operands(&["size", "runtime_device_index", "dtype", "storage_scope?"])
        .impure(),
    OpDecl::new(
        "relax.vm.alloc_tensor",
        infer_tensor_in_storage,
        "Creates a tensor in a storage of the VM, at an offset in bytes.",
    )
    .operands(&["storage", "offset", "shape", "dtype", "runtime_device_index?"])
    .impure(),
    OpDecl::new("relax.vm.alloc_shape_heap", infer_object, "Allocates a shape heap with the given number of slots.")
        .operands(&["size"])
        .packed("vm.builtin.alloc_shape_heap")
        .impure(),
    OpDecl::new(
        "relax.vm.store_shape",
        infer_unit,
        "Writes the dims of a shape to slots of a shape heap.",
    )
    .operands(&["shape", "heap", "*slots"])
    .packed("vm.builtin.store_shape")
    .impure(),
    OpDecl::new("relax.vm.load_shape", infer_load_shape, "Reads a shape from slots of a shape heap.")
        .operands(&["heap", "*slots"])
        .packed("vm.builtin.load_shape")
        .impure(),
    OpDecl::new("relax.vm.kill_object", infer_unit, "Clears a VM register.")
        .operands(&["obj"])
        .impure(),
    OpDecl::new(
        "relax.vm.call_tir_dyn",
        infer_unit,
        "Calls a loop function with sizes unpacked from a shape.",
    )
    .operands(&["func", "args"])
    .impure(),
];

/// The type rule of operators whose calls state the result type explicitly.
fn infer_explicit(ctx: &mut InferCtx<'_>) -> InferResult {
    Ok(match *ctx.ty_args {
        [] => ctx.func.intern(TypeData::Any),
        [ty] => ty,
        _ => {
            let fields = ctx.ty_args.into();
            ctx.func.intern(TypeData::Tuple(fields))
        }
    })
}

fn infer_tir_inplace(ctx: &mut InferCtx<'_>) -> InferResult {
    let inputs = match ctx.operand_type(1) {
        TypeData::Tuple(fields) => fields.to_vec(),
        _ => return infer_explicit(ctx),
    };
    infer_inplace(ctx, &inputs)
}

fn infer_packed_inplace(ctx: &mut InferCtx<'_>) -> InferResult {
    let inputs: Vec<Type> = ctx.args.iter().skip(1).map(|&e| ctx.func.expr_ty(e)).collect();
    infer_inplace(ctx, &inputs)
}

/// The type rule of in-place calls, which returns the result type that the call states. Checks
/// `inplace_indices`: each entry is the index of an input whose type is compatible with the output,
/// or -1.
fn infer_inplace(ctx: &mut InferCtx<'_>, inputs: &[Type]) -> InferResult {
    let whole = infer_explicit(ctx)?;
    let outputs = match ctx.func.types.get(whole) {
        TypeData::Tuple(fields) => fields.to_vec(),
        _ => vec![whole],
    };
    let Some(indices) = ctx.attr(INPLACE_INDICES).as_ints() else {
        return Err(ctx.error("inplace_indices must be a list of integers: for each output, the index of the input that it overwrites, or -1"));
    };
    if indices.len() != outputs.len() {
        let (n, m) = (indices.len(), outputs.len());
        return Err(
            ctx.error(format!("inplace_indices has {n} entries, but the call has {m} outputs"))
        );
    }
    for (k, &index) in indices.iter().enumerate() {
        if index == -1 {
            continue;
        }
        let Some(&input) = usize::try_from(index).ok().and_then(|i| inputs.get(i)) else {
            let n = inputs.len();
            let message = format!("inplace_indices[{k}] is {index}, but the call has {n} inputs");
            return Err(ctx.error(message));
        };
        if indices[..k].contains(&index) {
            return Err(
                ctx.error(format!("inplace_indices lets two outputs overwrite input {index}"))
            );
        }
        if is_subtype(ctx.func, input, outputs[k]).is_no() {
            let (actual, expected) = (type_text(ctx.func, input), type_text(ctx.func, outputs[k]));
            let message = format!(
                "output {k} is {expected}, but overwrites input {index}, which is {actual}"
            );
            return Err(ctx.error(message));
        }
    }
    if indices.iter().all(|&i| i == -1) {
        return Err(
            ctx.error("inplace_indices has only the value -1, so no input is overwritten: use R.call_tir or R.call_pure_packed")
        );
    }
    Ok(whole)
}

fn infer_object(ctx: &mut InferCtx<'_>) -> InferResult {
    Ok(ctx.func.intern(TypeData::Any))
}

fn infer_unit(ctx: &mut InferCtx<'_>) -> InferResult {
    Ok(ctx.unit_type())
}

/// The type rule of `make_closure`. The captured values are the last arguments of the function, so
/// the closure has the remaining parameters.
fn infer_make_closure(ctx: &mut InferCtx<'_>) -> InferResult {
    let captured = match ctx.operand_type(1) {
        TypeData::Tuple(fields) => Some(fields.len()),
        _ => None,
    };
    let data = match ctx.operand_type(0) {
        TypeData::Callable { params: Some(params), ret, pure } => {
            let rest: Option<Box<[Type]>> = match captured.map(|n| params.len().checked_sub(n)) {
                Some(Some(rest)) => Some(params[..rest].into()),
                Some(None) => {
                    return Err(ctx.error(format!(
                        "the closure captures {} values, but the function has only {} parameters",
                        captured.unwrap_or(0),
                        params.len()
                    )));
                }
                None => None,
            };
            // Symbols that are only defined by captured values are unknown to callers.
            let (ret, pure) = (*ret, *pure);
            let param_types = rest.as_deref().unwrap_or(&[]);
            let known: Vec<_> =
                param_types.iter().flat_map(|&ty| type_syms(ctx.func, ty)).collect();
            let ret = erase(ctx.func, ret, &|v| known.contains(&v));
            TypeData::Callable { params: rest, ret, pure }
        }
        TypeData::Callable { params: None, ret, pure } => {
            TypeData::Callable { params: None, ret: *ret, pure: *pure }
        }
        TypeData::Any => TypeData::Any,
        _ => {
            return Err(ctx.error(format!(
                "func must be a function, but is {ty}",
                ty = ctx.operand_type_text(0)
            )));
        }
    };
    Ok(ctx.func.intern(data))
}

/// The type rule of closure calls: the result type that the call states, else the closure's result
/// type for these arguments. Rejects provably incompatible arguments.
fn infer_invoke(ctx: &mut InferCtx<'_>) -> InferResult {
    let args = match ctx.operand_type(1) {
        TypeData::Tuple(fields) => Some(fields.to_vec()),
        TypeData::Any => None,
        _ => Some(vec![ctx.func.expr_ty(ctx.args[1])]),
    };
    let closure = ctx.func.expr_ty(ctx.args[0]);
    let Some(args) = args else { return infer_explicit(ctx) };
    let derived = derive_callable_ty(ctx.func, closure, &args).map_err(|e| {
        let name = match ctx.func.expr(ctx.args[0]) {
            ExprData::Var(v) => ctx.func.var(*v).name.to_string(),
            _ => ctx.operand_name(0),
        };
        ctx.error(format!("cannot call the closure '{name}': {}", e.message))
    })?;
    if ctx.ty_args.is_empty() { Ok(derived) } else { infer_explicit(ctx) }
}

fn infer_while_loop(ctx: &mut InferCtx<'_>) -> InferResult {
    let tys: Vec<Type> = ctx.args.iter().map(|&e| ctx.func.expr_ty(e)).collect();
    let [cond, body, states @ ..] = tys.as_slice() else {
        return Err(ctx.error(format!(
            "the first two operands must be a condition function and a body function, but the call has {} operands",
            tys.len()
        )));
    };
    while_loop_ty(ctx.func, *cond, *body, states)
}

fn infer_load_shape(ctx: &mut InferCtx<'_>) -> InferResult {
    let ndim = u32::try_from(ctx.args.len().saturating_sub(1)).ok();
    Ok(ctx.func.intern(TypeData::Shape { dims: None, ndim }))
}

fn infer_assert(ctx: &mut InferCtx<'_>) -> InferResult {
    let cond = ctx.tensor(0)?;
    if cond.ndim.is_some_and(|n| n != 0) || cond.dtype.is_some_and(|d| !d.is_bool()) {
        return Err(ctx.error(format!(
            "condition must be a bool scalar, but is {ty}",
            ty = ctx.operand_type_text(0)
        )));
    }
    Ok(ctx.unit_type())
}

fn infer_shape_of(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    let ndim = t.ndim.map(|n| n as u32);
    Ok(ctx.func.intern(TypeData::Shape { dims: t.dims.map(Into::into), ndim }))
}

fn infer_tensor_to_shape(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    if t.ndim.is_some_and(|n| n != 1) || t.dtype.is_some_and(|d| d != DType::Int64) {
        return Err(ctx.error(format!(
            "x must be a tensor of int64 of rank 1, but is {ty}",
            ty = ctx.operand_type_text(0)
        )));
    }
    let len = t.dims.and_then(|d| ctx.func.syms.as_int(d[0]));
    let ndim = len.and_then(|n| u32::try_from(n).ok());
    Ok(ctx.func.intern(TypeData::Shape { dims: None, ndim }))
}

fn infer_shape_to_tensor(ctx: &mut InferCtx<'_>) -> InferResult {
    let sizes = ctx.sizes(0)?;
    match sizes.ndim {
        Some(n) => {
            let n = ctx.func.syms.int(n as i64);
            Ok(ctx.tensor_type(Some(vec![n]), None, Some(DType::Int64)))
        }
        None => Ok(ctx.tensor_type(None, Some(1), Some(DType::Int64))),
    }
}

fn te_shape_to_tensor(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let dims = ctx.sizes(0)?;
    let dims = ctx.size_list(&dims);
    let shape = vec![te::int(dims.len() as i64)];
    Ok(vec![te::compute(shape, "T_shape_to_tensor", |i| {
        let select_dim = |acc: te::Expr, (k, d): (usize, &te::Expr)| {
            te::select(&te::eq(&i[0], &te::int(k as i64)), d, &acc)
        };
        dims.iter().enumerate().fold(te::int(0), select_dim)
    })])
}

/// Adds run-time checks to `stage` that no size in `dims` is negative and that their product fits
/// in 64 bits. A stage that reads only the sizes of a tensor needs these checks, because the tensor
/// itself is not computed and its sizes are not checked elsewhere.
fn with_size_checks(ctx: &mut LegalizeCtx<'_>, mut stage: te::Tensor, dims: &[Sym]) -> te::Tensor {
    let op = ctx.decl.name;
    let zero = ctx.func.syms.int(0);
    for &dim in dims {
        if crate::size_proofs::at_most(ctx.func, zero, dim) != Some(true) {
            let size = ctx.size(dim);
            let message = format!("{op}: the size {} is negative", te::size_text(&size, 0));
            let cond = te::explain(&te::ge(&size, &te::int(0)), &[size]);
            stage = stage.with_check(te::Check { axes: Vec::new(), cond, message: message.into() });
        }
    }
    let sizes = ctx.size_list(dims);
    let may_exceed_one = sizes.iter().filter(|s| s.as_int().is_none_or(|v| v > 1)).count();
    if may_exceed_one > 1 || sizes.iter().any(te::computed_size_checks::is_computed) {
        let count = sizes.iter().fold(te::const_of(1.0, DType::Float64), |n, s| {
            n * te::computed_size_checks::in_float(s)
        });
        let cond = te::lt(&count, &te::const_of(2f64.powi(63), DType::Float64));
        // A computed size may have overflowed, so its value is not shown.
        let size_texts = |(k, s)| {
            if te::computed_size_checks::is_computed(s) {
                s.to_string()
            } else {
                te::size_text(s, k)
            }
        };
        let size_texts: Vec<String> = sizes.iter().enumerate().map(size_texts).collect();
        let message = format!(
            "{op}: the number of elements of a tensor of shape ({}) exceeds 64 bits",
            size_texts.join(", ")
        );
        let cond = te::explain(&cond, &sizes);
        stage = stage.with_check(te::Check { axes: Vec::new(), cond, message: message.into() });
    }
    stage
}

fn infer_size(ctx: &mut InferCtx<'_>) -> InferResult {
    ctx.tensor(0)?;
    Ok(ctx.tensor_type(Some(Vec::new()), None, Some(DType::Int64)))
}

fn te_size(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let dims = ctx.dims(0)?;
    let size = ctx.size_list(&dims).iter().fold(te::int(1), |acc, d| acc * d);
    let stage = te::compute(Vec::new(), "T_size", |_| size);
    Ok(vec![with_size_checks(ctx, stage, &dims)])
}

fn infer_alloc_tensor(ctx: &mut InferCtx<'_>) -> InferResult {
    infer_allocated(ctx, 0, 1)
}

fn infer_tensor_in_storage(ctx: &mut InferCtx<'_>) -> InferResult {
    infer_allocated(ctx, 2, 3)
}

/// Infers the type of an allocated tensor. `shape` and `dtype` are the indices of the operands that
/// contain its shape and data type.
fn infer_allocated(ctx: &mut InferCtx<'_>, shape: usize, dtype: usize) -> InferResult {
    let dtype = ctx.dtype_operand(dtype)?;
    // A shape variable describes the shape more precisely than its rank.
    if let ExprData::Var(v) = *ctx.func.expr(ctx.args[shape])
        && ctx.operand_type(shape).dims().is_none()
    {
        let shape = pliant_ir::relax::TensorShape::Var(v);
        return Ok(ctx.func.intern(TypeData::Tensor { shape, dtype: Some(dtype) }));
    }
    let sizes = ctx.result_sizes(shape)?;
    Ok(ctx.tensor_type(sizes.dims, sizes.ndim, Some(dtype)))
}
